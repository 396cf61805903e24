"""The JSON form: logs as a string; entries that are not OK are sent again, and no others."""

import json
import os
import sys

import requests


def send(entries):
    response = requests.post(
        sys.argv[1],
        json={"access_token": os.environ.get("TOKEN", "any"), "logs": json.dumps(entries)},
        timeout=60,
    )
    assert response.status_code == 200, (response.status_code, response.text)
    answer = response.json()
    codes = [answer["response_codes"][str(index)] for index in range(len(entries))]
    assert answer["count"] == len(entries), answer
    return codes


def entry(message):
    return {"category": "perfpipe_gcm", "message": json.dumps(message)}


entries = [
    entry({"int": {"time": 1_700_000_000, "gpus": 8}, "normal": {"node": "n1"}}),
    entry({"int": {"time": 1_700_000_000, "gpus": "eight"}}),
    entry({"double": {"power": 1.5}, "tags": {"jobs": ["b", "a", "b"]}, "normvector": {"path": ["z", "a"]}}),
]
codes = send(entries)
print(codes)
again = [entry for entry, code in zip(entries, codes) if code != "OK"]
print(send(again))
