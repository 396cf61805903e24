"""What the query scripts share: questions as JSON lines on stdin, answers as JSON lines on stdout."""

import json
import shutil
import sys
import time
from pathlib import Path


def streams(folder, name):
    """The Arrow streams of a table, in order."""
    return sorted(Path(folder).glob(f"{name}-*.arrows"))


def size(path):
    """How many bytes a file or folder takes."""
    path = Path(path)
    if path.is_file():
        return path.stat().st_size
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def load_once(folder, load):
    """Calls `load` with the folder of a store, unless that is there already; how long it took, if
    that is known."""
    folder = Path(folder)
    seconds = folder.with_suffix(".seconds")
    if folder.exists():
        return float(seconds.read_text()) if seconds.exists() else None
    unfinished = folder.with_suffix(".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    start = time.perf_counter()
    load(unfinished)
    load_s = time.perf_counter() - start
    unfinished.rename(folder)
    seconds.write_text(str(load_s))
    return load_s


def say(answer):
    print(json.dumps(answer), flush=True)


def serve(ask):
    """Answers each `{"sql": …}` with the rows of `ask(sql)`, an Arrow table, and how long it took.
    What Python then does with the rows is not the engine's time."""
    for line in sys.stdin:
        sql = json.loads(line)["sql"]
        start = time.perf_counter()
        try:
            table = ask(sql)
            ms = (time.perf_counter() - start) * 1e3
        except Exception as error:  # the benchmark decides what a failure means
            say({"error": str(error)})
            continue
        say({"ms": ms, "rows": rows(table)})


def rows(table):
    """Each row as a list, with text for what JSON has no word for."""
    columns = [table.column(n).to_pylist() for n in range(table.num_columns)]
    return [[plain(value) for value in row] for row in zip(*columns)]


def plain(value):
    return value if value is None or isinstance(value, (int, float, str)) else str(value)
