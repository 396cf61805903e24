"""Inserts the messages of an NDJSON file into a chDB (ClickHouse) MergeTree table, synced to disk:
chdb_insert.py FILE FOLDER. Threads as ClickHouse chooses: all cores."""

import sys
from pathlib import Path

import chdb
from chdb import session

from fields import SECTIONS, columns, report, timed

TYPES = {"int": "Int64", "normal": "LowCardinality(String)", "float": "Float64"}
# Read as plain strings and coded on the way into the table.
READ_TYPES = TYPES | {"normal": "String"}
DURABLE = "fsync_after_insert = 1, fsync_part_directory = 1"


def tuple_of(section, fields):
    inner = ", ".join(f'"{field}" {READ_TYPES[section]}' for field in fields)
    return f'"{section}" Tuple({inner})'


def main():
    source, folder = sys.argv[1], Path(sys.argv[2])
    store = session.Session(str(folder / "chdb"))
    table = ", ".join(
        f'"{field}" {TYPES[section]}' for section, fields in SECTIONS.items() for field in fields
    )
    store.query("CREATE DATABASE bench ENGINE = Atomic")
    store.query(
        f"CREATE TABLE bench.rows ({table}) ENGINE = MergeTree ORDER BY time SETTINGS {DURABLE}"
    )
    shape = ", ".join(tuple_of(section, fields) for section, fields in SECTIONS.items())
    rows = f"FROM file('{source}', 'JSONEachRow', '{shape}')"
    result = {"version": chdb.__version__}
    with timed(result):
        store.query(f"INSERT INTO bench.rows SELECT {columns()} {rows}")
    result["rows"] = int(str(store.query("SELECT count() FROM bench.rows", "CSV")).strip())
    store.close()
    report(result)


if __name__ == "__main__":
    main()
