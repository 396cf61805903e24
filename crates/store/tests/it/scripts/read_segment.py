"""Reads the files of a segment with pyarrow and with polars; prints what each of them found."""

import json
import sys

import polars
import pyarrow

paths = dict(zip(("rows", "lists", "sparse"), sys.argv[1:]))


def by_pyarrow(path):
    table = pyarrow.ipc.open_file(pyarrow.memory_map(path)).read_all()
    table.validate(full=True)
    return table.cast(
        pyarrow.schema(
            # Nanoseconds as numbers, which JSON has.
            field.with_type(pyarrow.int64()) if pyarrow.types.is_timestamp(field.type) else field
            for field in table.schema
        )
    ).to_pylist()


def by_polars(path):
    frame = polars.read_ipc(path)
    return frame.with_columns(polars.col(polars.Datetime("ns", "UTC")).to_physical()).to_dicts()


json.dump(
    {
        library: {name: read(path) for name, path in paths.items()}
        for library, read in {"pyarrow": by_pyarrow, "polars": by_polars}.items()
    },
    sys.stdout,
)
