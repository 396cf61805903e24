"""The fields of the benchmark's messages, and how an insert is timed."""

import json
import resource
import sys
import time
from contextlib import contextmanager

INT = ("time", "rounds", "iterations", "outliers", "weight", "pid", "cpu_count")
NORMAL = (
    "benchmark_group",
    "benchmark_name",
    "commit_id",
    "branch",
    "hostname",
    "python_version",
    "machine",
    "os",
    "suite_path",
)
FLOAT = ("min", "max", "mean", "median", "stddev", "iqr", "q1", "q3", "ops")
SECTIONS = {"int": INT, "normal": NORMAL, "float": FLOAT}


def columns():
    """Each field's path in a message and its name, as SQL."""
    return ", ".join(
        f'"{section}"."{field}" AS "{field}"'
        for section, fields in SECTIONS.items()
        for field in fields
    )


def cpu_s():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


@contextmanager
def timed(result):
    """Adds the wall and CPU seconds of the block, all threads, to `result`."""
    wall, cpu = time.perf_counter(), cpu_s()
    yield
    result["wall_s"] = time.perf_counter() - wall
    result["cpu_s"] = cpu_s() - cpu


def report(result):
    json.dump(result, sys.stdout)
