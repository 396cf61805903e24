"""Checks an OpenAPI document, and requests and answers against it.

Reads {"document": …, "requests": […], "answers": […]} from standard input and prints, for each
request and each answer, null or what does not fit.
"""

import json
import sys

from jsonschema import Draft202012Validator
from openapi_spec_validator import validate
from referencing import Registry
from referencing.jsonschema import DRAFT202012

ADDRESS = "urn:openapi"


def pointer(*steps: str) -> str:
    return "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in steps)


def problem(registry: Registry, value: object, *steps: str) -> str | None:
    """What keeps a value from fitting the schema that is found by these steps."""
    schema = {"$ref": f"{ADDRESS}#{pointer(*steps, 'schema')}"}
    validator = Draft202012Validator(schema, registry=registry)
    errors = [f"{error.json_path}: {error.message}" for error in validator.iter_errors(value)]
    return "; ".join(errors) or None


def main() -> None:
    asked = json.load(sys.stdin)
    document = asked["document"]
    validate(document)
    registry = Registry().with_resource(ADDRESS, DRAFT202012.create_resource(document))
    requests = [
        problem(registry, one["body"], "paths", one["path"], one["method"], "requestBody", "content", one["media_type"])
        for one in asked["requests"]
    ]
    answers = [
        problem(registry, one["body"], "paths", one["path"], one["method"], "responses", one["status"], "content", one["media_type"])
        for one in asked["answers"]
    ]
    json.dump({"requests": requests, "answers": answers}, sys.stdout)


main()
