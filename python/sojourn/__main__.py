"""``python -m sojourn run STUDY``: what ``sojourn run`` does, on an executor."""

from __future__ import annotations

import argparse
import importlib
import multiprocessing
import os
import re
import signal
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from ._executors import Executor
from ._native import Error, StudyError
from ._results import Results
from ._storage import is_remote
from ._study import Study


ADDRESS = re.compile(r"((tcp|tls|ucx|ws|wss)://)?[^/\s]+:\d+")
"""Of a Dask scheduler."""


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m sojourn",
        description="Runs studies on other processes and machines. All else is done by the command sojourn.",
        epilog="Exit codes: 0, done, and no claim failed; 1, a claim failed or a run has no result; 2, something that "
        "was given is wrong; 3, this machine or the executor cannot.",
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    run = verbs.add_parser("run", help="run a study, check its claims and write its report")
    run.add_argument("study", metavar="STUDY", help="a study file, or a folder with a study.toml")
    where = run.add_mutually_exclusive_group()
    where.add_argument("--dask", metavar="ADDRESS", help="a Dask scheduler: tcp://10.0.0.1:8786")
    where.add_argument("--workers", type=natural, metavar="N", help="this many processes of this machine")
    run.add_argument("--jobs", type=natural, metavar="N", help="runs at a time; by default as many as workers")
    run.add_argument("--out", metavar="FOLDER", help="result folder, or a path of fsspec: s3://bucket/folder")
    run.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="change a key or a factor")
    run.add_argument("--seeds", metavar="N|LIST", help="how many seeds (5 is 1 to 5), or which ones: 1,4,7-9")
    run.add_argument("--shorten", metavar="TIME", help="runs last at most this long: 5s")
    run.add_argument("--engine", metavar="ENGINE", help="what computes the runs: sim, fluid")
    run.add_argument("--shard", metavar="K/N", help="run a part: the K-th of N")
    run.add_argument("--no-report", action="store_true", help="write no report.html")
    run.add_argument("-q", "--quiet", action="store_true", help="say nothing but errors on standard error")
    return parser


def natural(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is no number (allowed: 1 or more)")
    return number


def seeds_of(text: str) -> int | list[int]:
    """``5`` is how many; with commas or ranges they are listed."""
    if text.isdecimal():
        return int(text)
    listed: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or dash and not last.isdecimal():
            raise StudyError(f"--seeds: '{part}' is no seed (allowed: 5, or 1,4,7-9)")
        listed.extend(range(int(first), int(last or first) + 1))
    return listed


def executor_of(options: argparse.Namespace) -> Callable[[], Any] | None:
    if options.dask:
        # Dask's client waits for ever for threads that it began for an address that it does not understand.
        if not ADDRESS.fullmatch(options.dask):
            raise StudyError(f"--dask: '{options.dask}' is no address of a scheduler (allowed: tcp://HOST:PORT)")
        try:
            distributed: Any = importlib.import_module("distributed")
        except ImportError:
            raise StudyError("--dask: needs the package distributed: pip install 'sojourn[dask]'") from None
        address = options.dask

        def connect() -> Executor:
            try:
                client = distributed.Client(address, set_as_default=False, timeout="30s")
            except (OSError, ValueError, RuntimeError) as error:
                raised = Error(f"--dask: {address}: {error}")
                raised.is_of_machine = True
                raise raised from error
            executor: Executor = client.get_executor()
            return executor

        return connect
    if options.workers:
        # Forked processes would share the coordinator's locks.
        context = multiprocessing.get_context("spawn")
        # On Ctrl-C the terminal asks all of them; this process alone ends the others.
        settings: Any = {"initializer": signal.signal, "initargs": (signal.SIGINT, signal.SIG_IGN)}
        return lambda: ProcessPoolExecutor(options.workers, mp_context=context, **settings)
    return None


def run(options: argparse.Namespace) -> int:
    study = Study.from_toml(options.study)
    changes: dict[str, Any] = {}
    for change in options.set:
        key, equals, value = change.partition("=")
        if not equals:
            raise StudyError(f"--set: '{change}' has no value (allowed: KEY=VALUE)")
        changes[key] = value
    seeds = None if options.seeds is None else seeds_of(options.seeds)
    if changes or seeds is not None or options.shorten or options.engine:
        study = study.change(changes, seeds=seeds, shorten=options.shorten, engine=options.engine)
    check = study.check()
    if not options.quiet:
        said = f"{study.title}: {check.scenarios} scenarios × {check.seeds} seeds"
        print(said, file=sys.stderr)
    results = study._done(
        options.out,
        jobs=options.jobs,
        shard=options.shard,
        progress=not options.quiet,
        executor=executor_of(options),
    )
    return finish(results, options)


def finish(results: Results, options: argparse.Namespace) -> int:
    for run, problem in results.failed.items():
        print(f"error: run {run} ended without a result: {problem}", file=sys.stderr)
    say(str(results))
    if options.shard is None and not options.no_report:
        page = results.report()
        say(f"report {options.out}/report.html" if is_remote(options.out or "") else f"report {page}")
    has_failed = any(claim.verdict == "fails" for claim in results.verdicts)
    # A shard lacks the runs of the others.
    is_lacking = results.missing if options.shard is None else results.failed
    return 1 if has_failed or is_lacking else 0


def say(text: str) -> None:
    """Prints a text, as long as somebody reads: with ``| head`` the report is still written, and the exit code is the claims'."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        # Python flushes once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def end_bar() -> None:
    if sys.stderr.isatty():
        print(file=sys.stderr)


def main(words: Sequence[str] | None = None) -> int:
    options = arguments().parse_args(words)
    try:
        return run(options)
    except Error as error:
        end_bar()
        for line in str(error).splitlines():
            print(f"error: {line}", file=sys.stderr)
        return 3 if error.is_of_machine else 2
    except KeyboardInterrupt:
        end_bar()
        print("stopped: what is finished is kept; the same call goes on from there", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
