"""Loads Arrow streams into DuckDB tables and answers questions: duckdb_query.py STREAMS FOLDER."""

import sys
import time
from pathlib import Path

import duckdb
import pyarrow.ipc

from peer import say, serve, size, streams

THREADS = 2
MEMORY = "10GB"
TABLES = {
    "rows": """time TIMESTAMP, weight UTINYINT, status VARCHAR, job VARCHAR, test VARCHAR, host VARCHAR,
        commit VARCHAR, latency DOUBLE, user_cpu DOUBLE, system_cpu DOUBLE, memory DOUBLE, read DOUBLE,
        written DOUBLE""",
    "samples": "time TIMESTAMP, weight UTINYINT, tag VARCHAR, stack_id UINTEGER",
    "stacks": "stack_id UINTEGER, frames VARCHAR[]",
}


def load(database, source):
    for table, columns in TABLES.items():
        database.execute(f"CREATE TABLE {table} ({columns})")
        for stream in streams(source, table):
            with pyarrow.ipc.open_stream(pyarrow.memory_map(str(stream))) as reader:
                database.execute(f"INSERT INTO {table} SELECT * FROM reader")
    database.execute("CHECKPOINT")


def main():
    source, folder = sys.argv[1], Path(sys.argv[2])
    file = folder / "rows.duckdb"
    database = duckdb.connect(str(file))
    database.execute(f"SET threads = {THREADS}; SET memory_limit = '{MEMORY}'; SET TimeZone = 'UTC'")
    start = time.perf_counter()
    load(database, source)
    load_s = time.perf_counter() - start
    say({"version": duckdb.__version__, "load_s": load_s, "bytes": size(file)})
    serve(lambda sql: database.execute(sql).fetchall())


if __name__ == "__main__":
    main()
