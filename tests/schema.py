#!/usr/bin/env python3
"""The committed JSON Schema accepts every study that runs: the shipped ones, the examples, one that
extends another, and one whose factors give what the scenario lacks. It refuses what is none.

Needs Python 3.11 and its jsonschema (Debian's python3-jsonschema)."""

import json
import sys
import tomllib
from pathlib import Path

from jsonschema import Draft202012Validator

ROOT = Path(__file__).resolve().parent.parent
SCHEMA = json.loads((ROOT / "schema/study.schema.json").read_text())

PATH = {"rate": "10Mbps", "rtt": "20ms", "queue": "pfifo limit 50"}
FLOW = {"name": "a", "app": "bulk"}
GOOD = {
    "schema": 1,
    "title": "t",
    "scenario": {"duration": "1s", "path": PATH, "flow": [FLOW]},
}


def without(table: dict, *keys: str) -> dict:
    return {key: value for key, value in table.items() if key not in keys}


def with_scenario(**changes: object) -> dict:
    return GOOD | {"scenario": GOOD["scenario"] | changes}


ACCEPTED = {
    "a small study": GOOD,
    "one that extends another": {"extends": "study.toml"},
    "one that extends and changes": {
        "extends": "study.toml",
        "scenario": {"path": {"rtt": "80ms"}},
        "views": {"share": {"title": "a title of its own"}},
    },
    "one whose factors give the queue and the application": with_scenario(
        path=without(PATH, "queue"), flow=[without(FLOW, "app")]
    )
    | {"factors": {"path.queue": ["pfifo", "fq_codel"], "flow.a.app": ["bulk", "ping"]}},
    "an application that a program registered": with_scenario(flow=[FLOW | {"app": "ask pause=10ms"}]),
}

REFUSED = {
    "nothing": {},
    "an unknown key": GOOD | {"colour": "red"},
    "no title": without(GOOD, "title"),
    "no queue": with_scenario(path=without(PATH, "queue")),
    "no application": with_scenario(flow=[without(FLOW, "app")]),
    "a flow without a name": with_scenario(flow=[without(FLOW, "name")])
    | {"factors": {"path.queue": ["pfifo"]}},
    "a number for a rate": with_scenario(path=PATH | {"rate": 10}),
    "a number for an application": with_scenario(flow=[FLOW | {"app": 3}]),
    "a path of a number": {"extends": 3},
    "a claim without a text": GOOD | {"claim": [{"id": "C1"}]},
    "a figure without a kind": GOOD | {"views": {"share": {"y": "goodput"}}},
}


def main() -> int:
    Draft202012Validator.check_schema(SCHEMA)
    validator = Draft202012Validator(SCHEMA)
    files = [*ROOT.glob("studies/*/*.toml"), *ROOT.glob("examples/**/*.toml")]
    studies = sorted(path for path in files if path.name != "Cargo.toml")
    assert len(studies) > 8, studies
    wrong = []
    for path in studies:
        for error in validator.iter_errors(tomllib.loads(path.read_text())):
            wrong.append(f"{path.relative_to(ROOT)}: {error.json_path}: {error.message}")
    for name, study in ACCEPTED.items():
        wrong.extend(f"{name}: {error.message}" for error in validator.iter_errors(study))
    wrong.extend(f"{name}: is accepted" for name, s in REFUSED.items() if validator.is_valid(s))
    print("\n".join(wrong) or f"{len(studies)} studies fit the schema")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
