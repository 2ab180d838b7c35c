#!/usr/bin/env python3
"""Runs the test programs that `cargo test --no-run --message-format=json` names on stdin, as `cargo test` does but two at
once: most have one long test at their end. Those that watch real time wait more than they compute, and come after the others.

Prints what failed, and ends with 1 then; and what of a program was skipped, and why. Names after the command choose
programs by the name of their test's file.
"""

import json
import os
import re
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# By the name of the test's file.
REAL_TIME = {"elsewhere", "live", "runs"}

# What cargo would set, unless the environment does: the seed of random cases.
CARGO = Path(__file__).parent.parent / ".cargo/config.toml"
ENVIRONMENT = tomllib.loads(CARGO.read_text())["env"] | os.environ


def programs():
    """Name and path of each program, and the folder of its package."""
    for line in sys.stdin:
        if not line.startswith("{"):
            continue
        message = json.loads(line)
        if message.get("profile", {}).get("test") and message.get("executable"):
            package = Path(message["manifest_path"]).parent
            yield message["target"]["name"], message["executable"], package


def run(program):
    name, path, package = program
    environment = ENVIRONMENT | {"CARGO_MANIFEST_DIR": str(package)}
    ran = subprocess.run(
        [path, "--quiet", "--show-output"],
        cwd=package,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    skipped = [line for line in ran.stdout.splitlines() if re.search(r"\bskipped: ", line)]
    for line in skipped:
        print(f"{package.name} {name}: {line}", flush=True)
    if ran.returncode:
        print(f"{package.name} {name} ended with {ran.returncode}:\n{ran.stdout}", flush=True)
    return ran.returncode == 0


def main():
    wanted = set(sys.argv[1:])
    every = [it for it in programs() if not wanted or it[0] in wanted]
    if not every:
        sys.exit("no test programs: were they built?")
    passed = []
    for is_real in (False, True):
        with ThreadPoolExecutor(2) as two:
            passed += two.map(run, (it for it in every if (it[0] in REAL_TIME) == is_real))
    print(f"{sum(passed)} of {len(passed)} test programs passed")
    sys.exit(not all(passed))


main()
