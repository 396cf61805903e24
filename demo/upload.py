"""Sends the results of pytest-benchmark to perflab, the way benchmark jobs send them to Scribe:
one form POST with every measurement as a typed row."""

import argparse
import json
import sys
import time

import requests

STATISTICS = ("min", "max", "mean", "median", "stddev", "iqr", "q1", "q3", "ops")


def row(benchmark, results, now):
    """One measurement as sections of typed fields."""
    machine = results["machine_info"]
    commit = results["commit_info"]
    stats = benchmark["stats"]
    return {
        "int": {
            "time": now,
            "rounds": stats["rounds"],
            "iterations": stats["iterations"],
        },
        "normal": {
            "benchmark_name": benchmark["name"],
            "benchmark_group": benchmark["group"],
            "commit_id": commit.get("id"),
            "branch": commit.get("branch"),
            "python_version": machine["python_version"],
            "machine": machine["machine"],
            "kernel": machine["release"],
        },
        "float": {name: stats[name] for name in STATISTICS},
    }


def send(url, token, category, rows):
    logs = [
        {"category": category, "message": json.dumps(message), "line_escape": False}
        for message in rows
    ]
    form = {"access_token": token, "logs": json.dumps(logs)}
    answer = requests.post(url, data=form, timeout=30)
    answer.raise_for_status()
    return answer.json()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--token", default="demo")
    parser.add_argument("--category", required=True)
    parser.add_argument("results", type=argparse.FileType("r"))
    arguments = parser.parse_args()

    results = json.load(arguments.results)
    now = int(time.time())
    rows = [row(benchmark, results, now) for benchmark in results["benchmarks"]]
    answer = send(arguments.url, arguments.token, arguments.category, rows)
    codes = list(answer["response_codes"].values())
    print(f"{codes.count('OK')} of {len(rows)} measurements are on disk", file=sys.stderr)
    if codes != ["OK"] * len(rows):
        sys.exit(f"refused: {answer}")


if __name__ == "__main__":
    main()
