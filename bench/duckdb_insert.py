"""Inserts the messages of an NDJSON file into a DuckDB table, committed and checkpointed to disk:
duckdb_insert.py FILE FOLDER. Threads as DuckDB chooses: all cores."""

import sys
from pathlib import Path

import duckdb

from fields import SECTIONS, columns, report, timed

TYPES = {"int": "BIGINT", "normal": "VARCHAR", "float": "DOUBLE"}


def struct(section, fields):
    inner = ", ".join(f'"{field}" {TYPES[section]}' for field in fields)
    return f"'{section}': 'STRUCT({inner})'"


def main():
    source, folder = sys.argv[1], Path(sys.argv[2])
    database = duckdb.connect(str(folder / "rows.duckdb"))
    shape = ", ".join(struct(section, fields) for section, fields in SECTIONS.items())
    rows = f"FROM read_json(?, format = 'newline_delimited', columns = {{{shape}}})"
    database.execute(f"CREATE TABLE rows AS SELECT {columns()} {rows} LIMIT 0", [source])
    result = {"version": duckdb.__version__}
    with timed(result):
        database.execute(f"INSERT INTO rows SELECT {columns()} {rows}", [source])
        database.execute("CHECKPOINT")
    result["rows"] = database.execute("SELECT count(*) FROM rows").fetchone()[0]
    database.close()
    report(result)


if __name__ == "__main__":
    main()
