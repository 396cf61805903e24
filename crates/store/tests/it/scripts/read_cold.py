"""Reads a cold segment, and its lists, with pyarrow, polars and DuckDB; prints what each of them
found, and what the file says about itself."""

import json
import sys

import duckdb
import polars
import pyarrow
import pyarrow.parquet

rows_path, lists_path = sys.argv[1:]


def by_pyarrow(path):
    table = pyarrow.parquet.read_table(path)
    table.validate(full=True)
    return table.cast(
        pyarrow.schema(
            # Nanoseconds as numbers, which JSON has.
            field.with_type(pyarrow.int64()) if pyarrow.types.is_timestamp(field.type) else field
            for field in table.schema
        )
    ).to_pylist()


def by_polars(path):
    frame = polars.read_parquet(path)
    return frame.with_columns(polars.col(polars.Datetime("ns", "UTC")).to_physical()).to_dicts()


def by_duckdb(path):
    rows = duckdb.read_parquet(path)
    if "time" in rows.columns:
        rows = rows.select("* REPLACE (epoch_ns(time) AS time)")
    return [dict(zip(rows.columns, row)) for row in rows.fetchall()]


def lists_of_rows():
    """How often each list is in a row: what is stored once is found through its id."""
    counted = duckdb.sql(
        f"""
        SELECT items, count(*) AS rows
        FROM read_parquet('{lists_path}')
        JOIN (SELECT unnest([stack, tags]) AS id FROM read_parquet('{rows_path}')) USING (id)
        GROUP BY items ORDER BY items
        """
    )
    return counted.fetchall()


def metadata():
    file = pyarrow.parquet.ParquetFile(rows_path)
    group = file.metadata.row_group(0)
    time = group.column(0)
    return {
        "sorted_by": file.schema.column(group.sorting_columns[0].column_index).name,
        "page_index": time.has_offset_index and time.has_column_index,
        "time_range": time.statistics.has_min_max,
    }


readers = {"pyarrow": by_pyarrow, "polars": by_polars, "duckdb": by_duckdb}
found = {
    name: {"rows": read(rows_path), "lists": read(lists_path)} for name, read in readers.items()
}
json.dump({**found, "metadata": metadata(), "stacks": lists_of_rows()}, sys.stdout)
