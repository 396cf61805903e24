"""What PyTorch's uploaders send, with the address as an argument."""

import json
import os
import sys

import requests

messages = [
    {"int": {"time": 1_700_000_000, "rounds": 7}, "normal": {"benchmark_name": "a b+c&d=é%"}, "float": {"mean": 0.25}},
    {"int": {"time": 1_700_000_001, "rounds": "seven"}, "normal": {"benchmark_name": "wrong"}},
]
response = requests.post(
    sys.argv[1],
    data={
        "access_token": os.environ.get("SCRIBE_GRAPHQL_ACCESS_TOKEN", "any"),
        "logs": json.dumps(
            [
                {"category": "perfpipe_pytorch_benchmarks", "message": json.dumps(message), "line_escape": False}
                for message in messages
            ]
        ),
    },
)
print(response.text)
response.raise_for_status()
