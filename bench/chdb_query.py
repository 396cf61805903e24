"""Loads Arrow streams into chDB (ClickHouse) MergeTree tables and answers questions:
chdb_query.py STREAMS FOLDER."""

import sys
from pathlib import Path

import chdb
import pyarrow.ipc
from chdb import session

from peer import load_once, say, serve, size, streams

# Nothing is remembered between questions.
SETTINGS = """max_threads = 2, use_query_cache = 0, use_query_condition_cache = 0,
    allow_suspicious_low_cardinality_types = 1, output_format_arrow_string_as_string = 1"""
# What was fastest for each column: of many values, a dictionary slows everything down.
FEW = "LowCardinality(Nullable(String))"
MANY = "Nullable(String)"
NUMBER = "Nullable(Float64)"
TABLES = {
    "rows": f"""time DateTime64(6, 'UTC'), weight UInt8, status LowCardinality(String), job {FEW},
        test {MANY}, host {MANY}, commit {MANY}, latency {NUMBER}, user_cpu Float64,
        system_cpu Float64, memory Float64, read Float64, written Float64""",
    "samples": "time DateTime64(6, 'UTC'), weight UInt8, tag LowCardinality(String), stack_id UInt32",
    "stacks": "stack_id UInt32, frames Array(String)",
}
ORDER = {"rows": "time", "samples": "time", "stacks": "stack_id"}


def load(folder, source):
    store = session.Session(str(folder))
    store.query("CREATE DATABASE bench ENGINE = Atomic")
    for table, columns in TABLES.items():
        store.query(
            f"CREATE TABLE bench.{table} ({columns}) ENGINE = MergeTree ORDER BY {ORDER[table]}"
        )
        for stream in streams(source, table):
            store.query(f"INSERT INTO bench.{table} SELECT * FROM file('{stream}', 'ArrowStream')")
        store.query(f"OPTIMIZE TABLE bench.{table} FINAL")
    store.close()


def main():
    source, folder = sys.argv[1], Path(sys.argv[2])
    load_s = load_once(folder, lambda folder: load(folder, source))
    store = session.Session(str(folder))
    store.query("USE bench")

    def ask(sql):
        answer = store.query(f"{sql} SETTINGS {SETTINGS}", "Arrow")
        return pyarrow.ipc.open_file(answer.bytes()).read_all()

    say({"version": chdb.__version__, "load_s": load_s, "bytes": size(folder)})
    serve(ask)


if __name__ == "__main__":
    main()
