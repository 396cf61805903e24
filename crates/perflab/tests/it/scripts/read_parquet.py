"""Reads a Parquet file with one of the libraries; prints its columns and its rows as JSON, those
with a time in the order of time, as nanoseconds."""

import json
import sys

import duckdb
import polars
import pyarrow.parquet


def by_pyarrow(path):
    return pyarrow.parquet.read_table(path)


def by_duckdb(path):
    return duckdb.sql(f"SELECT * FROM '{path}'").to_arrow_table()


def by_polars(path):
    return polars.read_parquet(path).to_arrow()


library, path = sys.argv[1:]
table = {"pyarrow": by_pyarrow, "duckdb": by_duckdb, "polars": by_polars}[library](path)
columns = []
for name, column in zip(table.column_names, table.columns):
    if pyarrow.types.is_timestamp(column.type):
        column = column.cast(pyarrow.timestamp("ns", column.type.tz)).cast("int64")
    columns.append(column)
rows = list(zip(*(column.to_pylist() for column in columns)))
if table.column_names[0] == "time":
    rows.sort()
print(json.dumps({"columns": table.column_names, "rows": rows}))
