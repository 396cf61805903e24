"""Posts a message to the server of the environment, as any program may."""

import os
import sys

import requests

category, message = sys.argv[1:]
url = os.environ["PERFLAB_SERVER"] + "/api/log"
requests.post(url, params={"category": category}, data=message).raise_for_status()
