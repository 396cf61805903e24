"""Loads Arrow streams into DuckDB tables and answers questions: duckdb_query.py STREAMS FOLDER."""

import sys
from pathlib import Path

import duckdb
import pyarrow.ipc

from peer import load_once, say, serve, size, streams

THREADS = 2
MEMORY = "10GB"
FILE = "rows.duckdb"
TABLES = {
    "rows": """time TIMESTAMP, weight UTINYINT, status VARCHAR, job VARCHAR, test VARCHAR, host VARCHAR,
        commit VARCHAR, latency DOUBLE, user_cpu DOUBLE, system_cpu DOUBLE, memory DOUBLE, read DOUBLE,
        written DOUBLE""",
    "samples": "time TIMESTAMP, weight UTINYINT, tag VARCHAR, stack_id UINTEGER",
    "stacks": "stack_id UINTEGER, frames VARCHAR[]",
}


def connect(folder):
    database = duckdb.connect(str(folder / FILE))
    database.execute(f"SET threads = {THREADS}; SET memory_limit = '{MEMORY}'; SET TimeZone = 'UTC'")
    return database


def load(folder, source):
    database = connect(folder)
    for table, columns in TABLES.items():
        database.execute(f"CREATE TABLE {table} ({columns})")
        for stream in streams(source, table):
            with pyarrow.ipc.open_stream(pyarrow.memory_map(str(stream))) as reader:
                database.execute(f"INSERT INTO {table} SELECT * FROM reader")
    database.execute("CHECKPOINT")
    database.close()


def main():
    source, folder = sys.argv[1], Path(sys.argv[2])
    load_s = load_once(folder, lambda folder: load(folder, source))
    database = connect(folder)
    say({"version": duckdb.__version__, "load_s": load_s, "bytes": size(folder / FILE)})
    serve(lambda sql: database.sql(sql).to_arrow_table())


if __name__ == "__main__":
    main()
