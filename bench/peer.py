"""What the query scripts share: questions as JSON lines on stdin, answers as JSON lines on stdout."""

import json
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


def say(answer):
    print(json.dumps(answer), flush=True)


def serve(ask):
    """Answers each `{"sql": …}` with the rows of `ask(sql)` and how long they took."""
    for line in sys.stdin:
        sql = json.loads(line)["sql"]
        start = time.perf_counter()
        try:
            rows = ask(sql)
        except Exception as error:  # the benchmark decides what a failure means
            say({"error": str(error)})
            continue
        say({"ms": (time.perf_counter() - start) * 1e3, "rows": rows})
