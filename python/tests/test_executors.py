from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import sojourn as sj
from sojourn import __main__ as command
from sojourn import _executors

from .conftest import TWO_FLOWS, files

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["sojourn._executors"])


def short(seeds: int) -> sj.Study:
    world = {**TWO_FLOWS["scenario"], "duration": "200ms", "warmup": "0s"}
    return sj.Study({**TWO_FLOWS, "scenario": world, "repeat": {"seeds": seeds}})


@pytest.fixture(scope="module")
def many() -> sj.Study:
    return short(150)


@pytest.fixture(scope="module")
def alone(many: sj.Study, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What one machine writes."""
    return files(many.run(tmp_path_factory.mktemp("alone") / "out", progress=False).folder)


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_an_executor_writes_the_folder_that_one_machine_writes(
    kind: str, many: sj.Study, alone: dict[str, bytes], tmp_path: Path
) -> None:
    told: list[sj.Progress] = []
    pool = ThreadPoolExecutor(2) if kind == "threads" else ProcessPoolExecutor(2, mp_context=CONTEXT)
    with pool:
        results = many.run(tmp_path / "out", executor=pool, progress=told.append)
    assert files(results.folder) == alone
    assert told[0] == sj.Progress(300, 0, 0, 0) and told[-1] == sj.Progress(300, 300, 0, 0)


class TwoThreads(ThreadPoolExecutor):
    def __init__(self) -> None:
        super().__init__(2)


def test_a_class_makes_executors_as_a_function_does(many: sj.Study, alone: dict[str, bytes], tmp_path: Path) -> None:
    assert files(many.run(tmp_path / "out", executor=TwoThreads, progress=False).folder) == alone


def test_fifty_workers_that_are_killed_lose_nothing(
    many: sj.Study, alone: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One run is a batch.
    monkeypatch.setattr(_executors, "WORKER_S", 0)
    monkeypatch.setattr(_executors, "BATCH_S", 1e-6)
    pools: list[ProcessPoolExecutor] = []
    kills: list[int] = []

    def make() -> Executor:
        pools.append(ProcessPoolExecutor(2, mp_context=CONTEXT))
        return pools[-1]

    def kill(progress: sj.Progress) -> None:
        # After each batch that came, while there are enough runs left for the others.
        if len(kills) < 50 and pools and progress.done > len(kills) * 4:
            # One that was killed before may not have been noticed yet.
            for pid in set(pools[-1]._processes or {}) - set(kills):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    kills.append(pid)
                    break

    results = many.run(tmp_path / "out", executor=make, progress=kill)
    assert len(kills) == 50 and len(pools) >= 25
    assert results.failed == {} and files(results.folder) == alone


class Deadly:
    """Computes as a worker does, but one of the runs kills it."""

    def __init__(self, run: int) -> None:
        self.run = run

    def __call__(self, *args: Any) -> Any:
        if any(run == self.run for run, _ in args[3]):
            os.kill(os.getpid(), signal.SIGKILL)
        return _executors.compute(*args)


def test_a_run_that_kills_its_workers_is_given_up_and_the_others_are_kept(tmp_path: Path) -> None:
    study = short(20)
    deadly = Deadly(7)

    class Pool(ProcessPoolExecutor):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            return super().submit(deadly, *args, **kwargs)

    with pytest.warns(RuntimeWarning, match="1 of 40 runs ended without a result: run 7: "):
        results = study.run(tmp_path / "out", executor=lambda: Pool(2, mp_context=CONTEXT), progress=False)
    assert results.missing == [7]
    assert results.failed[7].startswith("3 workers died while they computed it and nothing else")
    # The next start tries it again.
    again = study.run(tmp_path / "out", progress=False)
    assert again.missing == [] and files(again.folder) == files(study.run(tmp_path / "whole", progress=False).folder)


def test_a_pool_that_breaks_and_cannot_be_made_again_says_so_and_keeps_what_is_done(
    many: sj.Study, alone: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_executors, "BATCH_S", 0.005)
    monkeypatch.setattr(_executors, "WORKER_S", 0)
    with ProcessPoolExecutor(2, mp_context=CONTEXT) as pool:

        def kill(progress: sj.Progress) -> None:
            if progress.done > 20:
                for pid in list(pool._processes or {}):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)

        with pytest.raises(sj.ExecutorError, match="it is broken.* of 300 runs are finished and kept"):
            many.run(tmp_path / "out", executor=pool, progress=kill)
    there = sj.Results(tmp_path / "out")
    assert 20 < 300 - len(there.missing) < 300
    assert files(many.run(tmp_path / "out", progress=False).folder) == alone


class HalfAnAnswer:
    """Computes as a worker does, then writes a part of an answer into the pool's pipe and is killed."""

    def __init__(self, mark: str) -> None:
        self.mark = mark

    def __call__(self, *args: Any) -> Any:
        try:
            os.close(os.open(self.mark, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return _executors.compute(*args)
        import inspect

        # The queue of results is an argument of the function in which a worker of the pool waits.
        frame = inspect.currentframe()
        while frame is not None and "result_queue" not in frame.f_locals:
            frame = frame.f_back
        assert frame is not None
        # A length, and nothing that long.
        os.write(frame.f_locals["result_queue"]._writer.fileno(), (1000).to_bytes(4, "big") + b"x" * 10)
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_worker_that_is_killed_while_it_answers_blocks_nobody(tmp_path: Path) -> None:
    half = HalfAnAnswer(str(tmp_path / "mark"))

    class Pool(ProcessPoolExecutor):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            return super().submit(half, *args, **kwargs)

    study = short(20)
    results = study.run(tmp_path / "out", executor=lambda: Pool(1, mp_context=CONTEXT), progress=False)
    assert (tmp_path / "mark").exists() and results.failed == {}
    assert files(results.folder) == files(study.run(tmp_path / "whole", progress=False).folder)


class Inline(Executor):
    """Computes at once, and passes what comes out through `change`."""

    def __init__(self, change: Callable[[Any], Any]) -> None:
        self.change = change

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(self.change(fn(*args, **kwargs)))
        except ZeroDivisionError as error:
            future.set_exception(error)
        return future


class Twice:
    def __init__(self) -> None:
        self.answer: Any = None

    def add_done_callback(self, fn: Callable[[Any], object]) -> None:
        fn(self)
        fn(self)

    def cancel(self) -> bool:
        return False

    def done(self) -> bool:
        return True

    def result(self, timeout: float | None = None) -> Any:
        return self.answer


class TellsTwice:
    def submit(self, fn: Any, /, *args: Any) -> Any:
        future = Twice()
        future.answer = fn(*args)
        return future


class NoFuture:
    def submit(self, fn: Any, /, *args: Any) -> int:
        return 3


def fail(_: Any) -> Any:
    raise ZeroDivisionError("of the executor")


def with_runs(change: Callable[[list[Any]], list[Any]]) -> Inline:
    return Inline(lambda answer: (answer[0], change(answer[1])))


@pytest.mark.parametrize(
    ("executor", "text"),
    [
        (Inline(lambda _: None), "a batch of runs came back as a NoneType"),
        (Inline(lambda _: (0.1, 7)), "a batch of runs came back as a tuple"),
        (Inline(lambda _: (0.1, [])), "runs 0.* came back as runs none"),
        (with_runs(lambda runs: [*runs, runs[0]]), "came back as runs"),
        (with_runs(lambda runs: [(5, *runs[0][1:])]), "runs 0 came back as runs 5"),
        (with_runs(lambda runs: [(runs[0][0], "text", 1)]), "run 0 came back as a str"),
        (with_runs(lambda runs: [(runs[0][0], runs[0][1][:-1] + b"?", runs[0][2])]), "run 0 came back damaged"),
        (Inline(fail), "batches in a row failed: ZeroDivisionError: of the executor"),
        (TellsTwice(), "it ended a batch twice"),
        (NoFuture(), "its submit returned a int and no future"),
        (lambda: 3, "what makes executors made a int"),
    ],
)
def test_a_broken_promise_is_an_exception_that_says_which(executor: Any, text: str, tmp_path: Path) -> None:
    with pytest.raises(sj.ExecutorError, match=text) as raised:
        short(3).run(tmp_path / "out", executor=executor, progress=False)
    assert isinstance(raised.value, sj.RunError) and raised.value.is_of_machine
    # Nothing false was kept.
    assert short(3).run(tmp_path / "out", progress=False).missing == []


def test_bytes_of_another_run_are_refused_whatever_they_say(tmp_path: Path) -> None:
    first: list[Any] = []

    def swap(runs: list[Any]) -> list[Any]:
        first.extend(runs[:1])
        return [(run, *first[0][1:]) for run, _, _ in runs]

    with pytest.raises(sj.RunError, match="what was handed in as run 1 is not its result: this is the result of run 0"):
        short(3).run(tmp_path / "out", executor=with_runs(swap), progress=False)


def test_what_is_no_executor_is_told(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="executor is an int"):
        short(1).run(tmp_path / "out", executor=3, progress=False)  # type: ignore[arg-type]
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    with pytest.raises(sj.ExecutorError, match="after shutdown"):
        short(1).run(tmp_path / "out", executor=pool, progress=False)


def test_a_worker_with_another_study_refuses(tmp_path: Path) -> None:
    class Other(Inline):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            path, text, folder, *rest = args
            return super().submit(fn, path, text.replace("10Mbps", "20Mbps"), folder, *rest)

    with pytest.raises(sj.ExecutorError, match="cannot compute the study: run 0 is another one here"):
        short(1).run(tmp_path / "out", executor=Other(lambda answer: answer), progress=False)


def test_an_exception_of_progress_stops_and_the_next_call_goes_on(
    many: sj.Study, alone: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_executors, "BATCH_S", 0.005)
    monkeypatch.setattr(_executors, "WORKER_S", 0)

    def tell(progress: sj.Progress) -> None:
        if progress.done > 20:
            raise KeyboardInterrupt

    with ThreadPoolExecutor(2) as pool:
        with pytest.raises(KeyboardInterrupt):
            many.run(tmp_path / "out", executor=pool, progress=tell)
        done = 300 - len(sj.Results(tmp_path / "out").missing)
        assert 20 < done < 300
        told: list[sj.Progress] = []
        results = many.run(tmp_path / "out", executor=pool, progress=told.append)
    assert told[0] == sj.Progress(300, done, done, 0) and files(results.folder) == alone


def test_a_shard_may_have_an_executor(tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        part = short(3).run(tmp_path / "part", shard="2/3", executor=pool, progress=False)
    assert part.missing == [0, 2, 3, 5]


def test_bookkeeping_costs_less_than_a_millisecond_and_memory_is_flat(tmp_path: Path) -> None:
    """With results that are there already; nothing is left of a run but the journal's line."""
    answers: dict[int, Any] = {}

    class Known:
        _max_workers = 1

        def submit(self, fn: Any, /, *args: Any) -> Any:
            future: Future[Any] = Future()
            asked = args[3]
            future.set_result((0.005 * len(asked), [answers[run] for run, _ in asked]))
            return future

    def spent(count: int) -> tuple[float, int]:
        study = short(count)
        answers.clear()
        for run, id in study._native.record(tmp_path / f"plan{count}", None, None, []).pending(0, 10**9):
            payload = study._native.compute(run, id)
            answers[run] = (run, payload, _executors.zlib.crc32(payload))
        recorder = study._native.record(tmp_path / f"out{count}", None, None, [])
        tracemalloc.start()
        began = time.process_time()
        _executors.Coordinator(Known(), study._native, recorder, 1, None).run()
        took = time.process_time() - began
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert recorder.progress() == (2 * count, 2 * count, 0, 0)
        return took / (2 * count), most

    few_s, few_bytes = spent(250)
    many_s, many_bytes = spent(1000)
    assert few_s < 1e-3 and many_s < 1e-3
    assert many_bytes < few_bytes * 1.5 + 50_000


def test_the_command_line_runs_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    study = short(3)
    (tmp_path / "study.toml").write_text(study.to_toml())
    words = [sys.executable, "-m", "sojourn", "run", "study.toml", "--workers", "2", "--out", "out"]
    ended = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    # One of its claims fails.
    assert ended.returncode == 1, ended.stderr
    assert "✗ slow" in ended.stdout and "6 of 6 runs" in ended.stderr
    assert (tmp_path / "out" / "report.html").exists()
    assert files(tmp_path / "out") == files(sj.Study.from_toml("study.toml").run("here", progress=False).folder)


class Client:
    """As Dask's: it has a submit of its own, whose futures are none of Python's, and an executor."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self.pool = pool

    def submit(self, *words: object) -> None:
        raise AssertionError

    def get_executor(self) -> Executor:
        return self.pool


@pytest.mark.parametrize("is_made", [False, True])
def test_a_client_stands_for_its_executor(is_made: bool, tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        client: Any = Client(pool)
        results = short(2).run(tmp_path / "out", executor=(lambda: client) if is_made else client, progress=False)
    assert not results.missing


class Closed(ThreadPoolExecutor):
    """As Dask's, whose client is closed after the first batch."""

    class Gone:
        def nthreads(self) -> dict[str, int]:
            raise AttributeError("'NoneType' object has no attribute 'ncores'")

    def submit(self, *words: Any, **more: Any) -> Any:  # type: ignore[override]
        if not hasattr(self, "_client"):
            self._client = self.Gone()
            del self._max_workers
            return super().submit(*words, **more)
        raise AttributeError("'NoneType' object has no attribute 'submit'")

    def _adjust_thread_count(self) -> None:
        self._max_workers = 2
        super()._adjust_thread_count()
        del self._max_workers


def test_a_client_that_is_closed_meanwhile_is_a_broken_executor(tmp_path: Path) -> None:
    with Closed(2) as pool, pytest.raises(sj.ExecutorError, match=r"has no attribute .*; \d+ of 40 runs are finished and kept"):
        short(20).run(tmp_path / "out", executor=pool, progress=False)


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["none.toml"], 2, "none.toml"),
        (["study.toml", "--set", "path.rate"], 2, "has no value"),
        (["study.toml", "--seeds", "1,x"], 2, "'x' is no seed"),
        (["study.toml", "--dask", "nonsense"], 2, "'nonsense' is no address of a scheduler (allowed: tcp://HOST:PORT)"),
        (["study.toml", "--dask", "other://host:1"], 2, "is no address of a scheduler"),
        (["study.toml", "--shard", "3/2"], 2, "'3/2' is no shard"),
        (["study.toml", "--out", "nowhere://bucket/x"], 2, "nowhere"),
        (["study.toml", "--out", "/proc/none/x"], 2, "/proc/none/x"),
    ],
)
def test_the_command_line_ends_with_the_codes_of_the_command(
    words: list[str],
    code: int,
    text: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.toml").write_text(short(1).to_toml())
    assert command.main(["run", *words, "--quiet"]) == code
    assert text in capsys.readouterr().err


def test_the_command_line_takes_seeds_and_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.toml").write_text(short(1).to_toml())
    words = ["run", "study.toml", "--set", "path.queue=fq_codel", "--seeds", "2,4-5", "--out", "out", "--no-report"]
    assert command.main(words) == 1
    results = sj.Results(tmp_path / "out")
    assert results.plan["seeds"] == [2, 4, 5] and len(results.plan["scenarios"]) == 1
    assert "✓" in capsys.readouterr().out or results.verdicts


def test_ctrl_c_ends_processes_and_keeps_what_is_done(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(short(20_000).to_toml())
    words = [sys.executable, "-m", "sojourn", "run", "study.toml", "--workers", "2", "--out", "out"]
    with subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True) as child:
        assert child.stderr is not None
        while not (tmp_path / "out" / "journal.bin").exists() or (tmp_path / "out" / "journal.bin").stat().st_size < 1e5:
            assert child.poll() is None
            time.sleep(0.05)
        # As a terminal does: to all of the group.
        os.killpg(child.pid, signal.SIGINT)
        try:
            _, told = child.communicate(timeout=60)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
    assert child.returncode == 130 and "the same call goes on from there" in told, told
    assert len(sj.Results(tmp_path / "out").missing) < 40_000
