"""Runs that an executor computes: batches go out, results come in, whatever becomes of the workers.

The coordinator asks for a batch of runs at a time and keeps each result on the disk as it comes. A worker
computes runs of its batch for `BATCH_S`, longer if there are many workers, and sends back what it has; so neither side holds more
than a few batches, and a worker that dies costs that much work at most.
"""

from __future__ import annotations

import contextlib
import os
import queue
import time
import zlib
from collections import deque
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError, ProcessPoolExecutor, ThreadPoolExecutor
from functools import lru_cache
from typing import Any, Protocol, cast

from . import _native as extension
from ._given import refused
from ._native import RunError
from ._progress import Tell

BATCH_S = 0.5
"""How long a worker computes before it sends what it has."""

WORKER_S = 0.005
"""By how much longer for each worker, so that a thousand of them do not answer more often than a scheduler can
take."""

MOST_RUNS = 1000
"""In a batch."""

CHANCES = 3
"""How often a run may be in a batch that failed before it is tried alone, and how often then."""

GRACE_S = 10.0
"""How long batches that are under way are waited for when the runs are stopped."""

Asked = list[tuple[int, str]]
"""Runs with their identities."""


class Future(Protocol):
    """What `concurrent.futures.Future` has and is needed of it."""

    def add_done_callback(self, fn: Callable[[Any], object], /) -> object: ...
    def cancel(self) -> object: ...
    def done(self) -> bool: ...
    def result(self, timeout: float | None = None) -> Any: ...


class Executor(Protocol):
    """What `concurrent.futures.Executor` has and is needed of it."""

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Any: ...


class ExecutorError(RunError):
    """An executor broke, or a promise that executors give. What was finished is kept."""

    is_of_machine = True


@lru_cache(maxsize=4)
def read(path: str, text: str, folder: str) -> extension.Study:
    return extension.Study.parse(path, text, folder)


def compute(
    path: str, text: str, folder: str, asked: Asked, budget_s: float
) -> tuple[float, list[tuple[int, bytes, int | None]]] | str:
    """What a worker does: as many of the runs as there is time for, but at least one.

    For each run its result with a checksum, or why it has none. A text says why the worker can do nothing.
    """
    began = time.perf_counter()
    try:
        study = read(path, text, folder)
    except extension.Error as error:
        return str(error)
    answers: list[tuple[int, bytes, int | None]] = []
    for run, id in asked:
        try:
            result = study.compute(run, id)
            answers.append((run, result, zlib.crc32(result)))
        except RunError as error:
            return str(error)
        except extension.Error as error:
            answers.append((run, str(error).encode(), None))
        if time.perf_counter() - began > budget_s:
            break
    return time.perf_counter() - began, answers


def executor_of(given: Any) -> Any:
    """Dask's client is not the executor that it has."""
    if isinstance(given, type):
        return cast(Any, given)
    found: Any = given.get_executor() if callable(getattr(given, "get_executor", None)) else given
    return found


class Coordinator:
    """Batches under way, and the runs that have to be tried again."""

    def __init__(
        self,
        executor: Executor | Callable[[], Executor],
        study: extension.Study,
        recorder: extension.Recorder,
        jobs: int | None,
        tell: Tell | None,
    ) -> None:
        executor = executor_of(executor)
        self.make: Callable[[], Executor] | None = None
        # A class makes executors, as a function does, and has a `submit` that is nobody's.
        if isinstance(executor, type) or not hasattr(executor, "submit"):
            if not callable(executor):
                raise refused("executor", executor, "what has concurrent.futures.Executor's submit, or a function that makes one")
            self.make = executor
        self.executor: Executor | None = None if self.make else cast(Executor, executor)
        self.study = (study.path, study.text, os.path.abspath(study.folder))
        self.recorder = recorder
        self.jobs = jobs
        self.tell = tell
        self.ended: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.under_way: dict[Any, Asked] = {}
        # Runs before this one have been asked for.
        self.next = 0
        # Those for which a batch had no time left; those with which one failed; those that fail often.
        self.rest: deque[tuple[int, str]] = deque()
        self.again: deque[tuple[int, str]] = deque()
        self.alone: deque[tuple[int, str]] = deque()
        # Batches that failed with a run in them.
        self.strikes: dict[int, int] = {}
        self.seconds_per_run = BATCH_S
        self.failures = 0
        self.slots = 1
        self.batch_s = BATCH_S

    def run(self) -> None:
        """Has the executor compute what is pending. What is finished is kept, however this ends."""
        try:
            self.work()
        except BaseException:
            self.stop()
            raise
        finally:
            self.close()

    def work(self) -> None:
        self.show()
        while True:
            self.fill()
            if not self.under_way:
                return
            self.take(self.wait())

    def stop(self) -> None:
        """Begins nothing more, waits for what cannot be stopped and keeps it."""
        for future in list(self.under_way):
            if future.cancel() is True:
                self.under_way.pop(future, None)
        until = time.monotonic() + GRACE_S
        while self.under_way and time.monotonic() < until:
            # Not by the queue: the exception may have come when a future was just taken from it.
            for future in [future for future in self.under_way if future.done()]:
                asked = self.under_way.pop(future)
                try:
                    self.keep(asked, future.result(timeout=0))
                except (Exception, CancelledError):
                    # What broke first is what is raised.
                    continue
            time.sleep(0.02)

    def close(self) -> None:
        if self.make and self.executor is not None:
            shut_down(self.executor)
            self.executor = None

    def wait(self) -> Any:
        is_dead = False
        while True:
            try:
                return self.ended.get(timeout=0.5)
            except queue.Empty:
                # Ctrl-C comes between. A pool that is well notices a dead worker sooner than this.
                was_dead, is_dead = is_dead, has_dead_worker(self.executor)
                if was_dead and is_dead:
                    unblock(self.executor)

    def fill(self) -> None:
        """Has two batches for each worker under way, so that none waits."""
        while True:
            if self.executor is None:
                assert self.make is not None
                made: Executor = executor_of(self.make())
                if not hasattr(made, "submit"):
                    raise self.broken(f"what makes executors made a {type(made).__name__}")
                self.executor = made
            try:
                self.slots = self.jobs or workers(self.executor)
            except Exception as error:
                # Dask's client, when it is closed meanwhile.
                raise self.broken(f"it does not say how many workers it has: {described(error)}") from error
            self.batch_s = max(BATCH_S, WORKER_S * self.slots)
            if len(self.under_way) >= 2 * self.slots:
                return
            asked = self.choose()
            if not asked:
                return
            try:
                future = self.executor.submit(compute, *self.study, asked, self.batch_s)
            except BrokenExecutor as error:
                # The batches under way come back with the same.
                self.again.extend(asked)
                if self.under_way:
                    return
                self.renew(error)
                continue
            except Exception as error:
                # Each executor has exceptions of its own.
                raise self.broken(f"its submit raised {described(error)}") from error
            if not all(hasattr(future, name) for name in ("add_done_callback", "done", "result")):
                raise self.broken(f"its submit returned a {type(future).__name__} and no future")
            self.under_way[future] = asked
            future.add_done_callback(self.ended.put)

    def choose(self) -> Asked:
        """The next batch: what failed before, then new runs, at last one by one what failed often."""
        if self.alone and not self.again and not self.rest and not self.under_way:
            if not self.recorder.pending(self.next, 1):
                return [self.alone.popleft()]
        at_once = min(int(self.batch_s / self.seconds_per_run), MOST_RUNS)
        if self.again:
            # Smaller ones, in case that one of them is to blame.
            count = max(1, min(at_once, len(self.again) // (2 * self.slots)))
            return [self.again.popleft() for _ in range(count)]
        total, done, _, failed = self.recorder.progress()
        left = max(1, total - done - failed)
        # Towards the end they get smaller, so that all workers end together.
        count = max(1, min(at_once, left // (4 * self.slots)))
        asked = [self.rest.popleft() for _ in range(min(count, len(self.rest)))]
        more = self.recorder.pending(self.next, count - len(asked)) if len(asked) < count else []
        if more:
            self.next = more[-1][0] + 1
        return asked + more

    def take(self, future: Any) -> None:
        asked = self.under_way.pop(future, None)
        if asked is None:
            raise self.broken("it ended a batch twice, or one that it was not given")
        try:
            answer = future.result(timeout=0)
        except (Exception, CancelledError) as error:
            self.lost(asked, error)
            return
        self.keep(asked, answer)

    def keep(self, asked: Asked, answer: object) -> None:
        """Keeps the results of a batch, and has asked again what there was no time for."""
        if isinstance(answer, str):
            raise self.broken(f"a worker cannot compute the study: {answer}")
        try:
            seconds, answers = cast(Any, answer)
            given = [(run, payload, checksum) for run, payload, checksum in answers]
            count, seconds = len(given), float(seconds)
        except (TypeError, ValueError):
            raise self.broken(f"a batch of runs came back as a {type(answer).__name__}") from None
        runs = [run for run, _, _ in given]
        if not runs or runs != [run for run, _ in asked[:count]]:
            raise self.broken(f"runs {shown([run for run, _ in asked])} came back as runs {shown(runs)}")
        self.rest.extend(asked[count:])
        for run, payload, checksum in given:
            if not isinstance(payload, bytes):
                raise self.broken(f"run {run} came back as a {type(payload).__name__}")
            if checksum is None:
                self.recorder.give_up(run, payload.decode(errors="replace"))
            elif checksum != zlib.crc32(payload):
                raise self.broken(f"run {run} came back damaged")
            else:
                self.recorder.keep(run, payload)
            self.strikes.pop(run, None)
        self.failures = 0
        self.seconds_per_run += (max(seconds / count, 1e-6) - self.seconds_per_run) * 0.5
        self.show()

    def lost(self, asked: Asked, error: BaseException) -> None:
        """A batch failed; which of its runs is to blame, if any, is not known."""
        is_death = isinstance(error, BrokenExecutor | CancelledError) or is_remote_death(error)
        self.strike(asked, error, is_death)
        if isinstance(error, BrokenExecutor):
            # All others under way fail with it.
            while self.under_way:
                future = self.wait()
                others = self.under_way.pop(future, None)
                if others is None:
                    continue
                try:
                    answer = future.result(timeout=0)
                except (Exception, CancelledError):
                    self.strike(others, error, is_death)
                else:
                    self.keep(others, answer)
            self.renew(error)
        self.failures += 1
        most = 2 * CHANCES if is_death else CHANCES
        if self.failures > most * max(1, self.slots):
            raise self.broken(f"{self.failures} batches in a row failed: {described(error)}") from error

    def strike(self, asked: Asked, error: BaseException, is_death: bool) -> None:
        for run, id in asked:
            strikes = self.strikes[run] = self.strikes.get(run, 0) + 1
            if strikes < CHANCES:
                self.again.append((run, id))
            elif strikes < 2 * CHANCES or not is_death:
                self.alone.append((run, id))
            else:
                self.recorder.give_up(
                    run, f"{CHANCES} workers died while they computed it and nothing else: {described(error)}"
                )
                self.failures = 0
                self.show()

    def renew(self, error: BaseException) -> None:
        """Makes another executor; one that was given cannot be made again."""
        if self.make is None:
            raise self.broken(f"it is broken: {described(error)}") from error
        if self.executor is not None:
            shut_down(self.executor)
        self.executor = None

    def broken(self, problem: str) -> ExecutorError:
        total, done, _, _ = self.recorder.progress()
        return ExecutorError(
            f"the executor broke a promise: {problem}; {done} of {total} runs are finished and kept; the same "
            "call goes on from there"
        )

    def show(self) -> None:
        if self.tell is not None:
            self.tell(*self.recorder.progress())


def workers(executor: Executor) -> int:
    """How many batches it computes at a time, if it tells; otherwise as many as there are cores here."""
    # Python's own pools, and MPI's.
    for name in ("_max_workers", "num_workers"):
        threads = getattr(executor, name, None)
        if isinstance(threads, int) and threads > 0:
            return threads
    client: Any = getattr(executor, "_client", None)
    if hasattr(client, "nthreads"):
        # Dask's; workers come and go.
        threads_of: dict[str, int] = client.nthreads()
        return max(1, sum(threads_of.values()))
    return os.cpu_count() or 1


def processes(executor: Any) -> list[Any]:
    if not isinstance(executor, ProcessPoolExecutor):
        return []
    known: dict[int, Any] = getattr(executor, "_processes", None) or {}
    return list(known.values())


def has_dead_worker(executor: Any) -> bool:
    return any(process.exitcode is not None for process in processes(executor))


def unblock(executor: Any) -> None:
    """A worker that is killed while it writes its result leaves a part, and CPython's pool waits forever for the
    rest, because it holds that end of the pipe open itself. Without it the pool sees that it is broken."""
    for process in processes(executor):
        process.kill()
    with contextlib.suppress(AttributeError, OSError):
        executor._result_queue._writer.close()


def shut_down(executor: Executor) -> None:
    if isinstance(executor, ProcessPoolExecutor | ThreadPoolExecutor):
        executor.shutdown(wait=False, cancel_futures=True)
    elif callable(shutdown := getattr(executor, "shutdown", None)):
        shutdown(wait=False)


def is_remote_death(error: BaseException) -> bool:
    """Dask's and Ray's names for it; neither is needed here."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return bool(names & {"KilledWorker", "FutureCancelledError", "CommClosedError", "WorkerCrashedError"})


def described(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def shown(runs: list[Any]) -> str:
    text = ", ".join(map(str, runs[:5]))
    return f"{text}, …" if len(runs) > 5 else text or "none"
