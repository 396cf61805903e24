"""A small benchmark suite over Python's own library: something real to measure in seconds."""

import bisect
import hashlib
import json
import random
import re
import zlib

import pytest

ROWS = [
    {
        "name": f"test_{i}",
        "group": f"group_{i % 7}",
        "mean": i * 0.001,
        "tags": ["cpu", "small"],
    }
    for i in range(200)
]
TEXT = json.dumps(ROWS)
COMPRESSED = zlib.compress(TEXT.encode())
NUMBERS = random.Random(7).sample(range(1_000_000), 5_000)


@pytest.mark.benchmark(group="json")
@pytest.mark.parametrize("sort_keys", [False, True])
def test_json_dumps(benchmark, sort_keys):
    assert len(benchmark(json.dumps, ROWS, sort_keys=sort_keys)) == len(TEXT)


@pytest.mark.benchmark(group="json")
def test_json_loads(benchmark):
    assert benchmark(json.loads, TEXT) == ROWS


@pytest.mark.benchmark(group="zlib")
@pytest.mark.parametrize("level", [1, 6, 9])
def test_compress(benchmark, level):
    assert len(benchmark(zlib.compress, TEXT.encode(), level)) < len(TEXT)


@pytest.mark.benchmark(group="zlib")
def test_decompress(benchmark):
    assert benchmark(zlib.decompress, COMPRESSED) == TEXT.encode()


@pytest.mark.benchmark(group="sort")
def test_sorted(benchmark):
    assert benchmark(sorted, NUMBERS)[0] == min(NUMBERS)


@pytest.mark.benchmark(group="sort")
def test_insort(benchmark):
    def insert_all():
        ordered = []
        for number in NUMBERS:
            bisect.insort(ordered, number)
        return ordered

    assert benchmark(insert_all) == sorted(NUMBERS)


@pytest.mark.benchmark(group="text")
def test_find_names(benchmark):
    assert len(benchmark(re.findall, r'"name": "(test_\d+)"', TEXT)) == len(ROWS)


@pytest.mark.benchmark(group="text")
@pytest.mark.parametrize("algorithm", ["sha256", "blake2b"])
def test_digest(benchmark, algorithm):
    assert benchmark(lambda: hashlib.new(algorithm, TEXT.encode()).digest())
