"""Studies: read from a file or a text, or built of dicts."""

from __future__ import annotations

import copyreg
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, NamedTuple, cast, overload

from . import _executors, _storage
from . import _native as extension
from ._executors import Executor
from ._given import check_path, check_text, check_unicode, refused, unicode, whole
from ._progress import Progress, Tell, teller
from ._results import Results, Run


class Check(NamedTuple):
    """What a study would do."""

    scenarios: int
    seeds: int
    runs: int
    claims: int
    views: int
    digest: str
    """A name for the list of runs; it changes if anything changes what they do."""
    notices: dict[str, int]
    """Settings that are valid but probably not intended, and how many scenarios have each."""


class Scenario:
    """One world of a study: a value for each factor."""

    def __init__(self, study: Study, index: int) -> None:
        self.study = study
        self.index = index
        label, values, self.duration_s, self.flows, self.queues = study._native.scenario(index)
        self.label = label
        self.factors: dict[str, str] = dict(zip(study.factors, values))

    def __repr__(self) -> str:
        return f"<sojourn.Scenario {self.index}: {self.label or self.study.title}>"


class Scenarios(Sequence[Scenario]):
    """The scenarios of a study, made when they are asked for."""

    def __init__(self, study: Study) -> None:
        self._study = study

    def __len__(self) -> int:
        return len(self._study._native)

    @overload
    def __getitem__(self, index: int) -> Scenario: ...
    @overload
    def __getitem__(self, index: slice) -> list[Scenario]: ...
    def __getitem__(self, index: int | slice) -> Scenario | list[Scenario]:
        positions = range(len(self))
        if isinstance(index, slice):
            return [Scenario(self._study, at) for at in positions[index]]
        try:
            return Scenario(self._study, positions[index])
        except IndexError:
            raise IndexError(f"scenario {index}: the study has {len(self)}") from None

    def __iter__(self) -> Iterator[Scenario]:
        return (Scenario(self._study, at) for at in range(len(self)))

    def __repr__(self) -> str:
        return f"<{len(self)} scenarios>"


class Study:
    """A question: scenarios, seeds, figures and claims.

    Keys are those of a study file, given as a mapping, as keywords, or both; `schema` may be left out.
    Relative paths in it start from `folder`.

    >>> study = Study(
    ...     title="Two flows",
    ...     scenario={
    ...         "duration": "2s",
    ...         "path": {"rate": "10Mbps", "rtt": "20ms", "queue": "pfifo limit 50"},
    ...         "flow": [{"name": "cubic", "app": "bulk"}, {"name": "bbr", "app": "bulk", "cca": "bbr3"}],
    ...     },
    ...     factors={"path.queue": ["pfifo limit 50", "fq_codel"]},
    ... )
    >>> study.check().runs
    2

    Raises `StudyError` with every mistake that is found.
    """

    _native: extension.Study

    def __init__(
        self,
        document: Mapping[str, Any] | None = None,
        /,
        *,
        folder: str | PathLike[str] = ".",
        **keys: Any,
    ) -> None:
        values = {"schema": 1, **(document or {}), **keys}
        # An empty one is where the program is.
        check_path("folder", folder or ".", extension.StudyError)
        with unicode("", values, extension.StudyError):
            self._native = extension.Study.build(values, folder)

    @classmethod
    def from_toml(
        cls, source: str | PathLike[str], *, folder: str | PathLike[str] | None = None
    ) -> Study:
        """Reads a file, a folder with a ``study.toml``, or a text: a `str` with a line break is one.

        Relative paths in a text start from `folder`, in a file from its own.
        """
        if not isinstance(cast(object, source), str | PathLike):
            raise refused("source", source, "the path of a file or of a folder, or a text with a line break")
        if isinstance(source, str) and "\n" in source:
            check_unicode("the text", source, extension.StudyError)
            return cls._of(extension.Study.parse("study", source, "." if folder is None else folder))
        if folder is not None:
            raise TypeError("folder: relative paths in a file start from its own folder")
        check_path("source", source, extension.StudyError)
        return cls._of(extension.Study.load(source))

    @classmethod
    def _of(cls, native: extension.Study) -> Study:
        study = cls.__new__(cls)
        study._native = native
        return study

    @property
    def title(self) -> str:
        return self._native.title

    @property
    def source(self) -> str | None:
        return self._native.source

    @property
    def question(self) -> str | None:
        return self._native.question

    @property
    def seeds(self) -> list[int]:
        return self._native.seeds

    @property
    def factors(self) -> dict[str, list[str]]:
        """What is varied, with its values."""
        return dict(self._native.factors)

    @property
    def scenarios(self) -> Scenarios:
        """Every combination of the factors' values, the first factor changing slowest."""
        return Scenarios(self)

    def to_toml(self) -> str:
        """The study as one file; what was read from a file without changes is that file."""
        return self._native.text

    def to_dict(self) -> dict[str, Any]:
        """The same as values: ``Study(study.to_dict())`` is the same study."""
        return self._native.to_dict()

    def check(self) -> Check:
        """Counts what would be run, and says what is probably not intended."""
        native = self._native
        scenarios, seeds = len(native), len(native.seeds)
        return Check(
            scenarios=scenarios,
            seeds=seeds,
            runs=scenarios * seeds,
            claims=len(native.claims),
            views=len(native.views),
            digest=native.digest,
            notices=dict(native.notices),
        )

    def change(
        self,
        set: Mapping[str, Any] | None = None,
        *,
        seeds: int | Iterable[int] | None = None,
        shorten: str | None = None,
        engine: str | None = None,
    ) -> Study:
        """The same study with changes, as the options of ``sojourn run`` make them.

        `set` has addresses as factors have them; a factor takes the value or list of values instead of its own.
        `seeds` is how many, or which. `shorten` makes runs at most this long.
        """
        if not isinstance(cast(object, set), Mapping | None):
            raise refused("set", set, "keys with values, such as {'path.rate': '10Mbps'}")
        changes = list((set or {}).items())
        for key, _ in changes:
            if not isinstance(cast(object, key), str):
                raise refused("set: a key", key, "a text such as 'path.rate'")
        check_text("shorten", shorten, "5s")
        if engine is not None:
            check_text("engine", engine, "fluid")
            changes.append(("engine", engine))
        count: int | None = None
        if isinstance(seeds, str | bytes | bool):
            raise refused("seeds", seeds, "a whole number, or several")
        if hasattr(seeds, "__iter__"):
            changes.append(("repeat.seeds", [whole("seeds", seed) for seed in cast(Iterable[int], seeds)]))
        elif seeds is not None:
            count = whole("seeds", seeds)
            if not 0 < count < 1 << 64:
                raise extension.StudyError(f"seeds: {count} is no number of seeds (allowed: 1 or more, or a list of seeds)")
        with unicode("set", dict(changes), extension.StudyError):
            return self._of(self._native.changed({"set": changes, "seeds": count, "shorten": shorten}))

    def run(
        self,
        out: str | PathLike[str] | None = None,
        *,
        seeds: int | Iterable[int] | None = None,
        jobs: int | None = None,
        shard: str | None = None,
        progress: bool | Callable[[Progress], object] = True,
        executor: Executor | Callable[[], Executor] | None = None,
    ) -> Results:
        """Runs what is not done yet, and checks the claims.

        `out` is the result folder; left out, it is the one that ``sojourn run`` would choose,
        ``results/STUDY-DIGEST``, so another study or other settings never meet old results. After an
        interruption the same call goes on where it stopped. It may be on object storage, as fsspec writes
        such paths: ``s3://bucket/folder``.

        `jobs` is how many runs at a time, by default as many as there are cores, or workers of the executor.
        `shard` is a part of the runs: ``"2/8"``. `progress` shows a bar, or is called with a `Progress`, in this
        thread.

        `executor` computes the runs: anything with the ``submit`` of `concurrent.futures.Executor`, or a function
        or class that makes one and is called again if a worker's death breaks it. Dask's client stands for the executor that it has.

        Warns (`RuntimeWarning`) if runs ended without a result, with how many and why the first did; `Results.failed` has all.

        Other Python threads go on meanwhile. Ctrl-C raises `KeyboardInterrupt` as soon as the runs under way
        have ended; they are kept. Pressed once more, it ends these, too.

        Raises `StudyError`, `RunError`, `ResultsError`, or `ExecutorError` if the executor breaks.
        """
        results = self._done(out, seeds=seeds, jobs=jobs, shard=shard, progress=progress, executor=executor)
        if failures := results._failures:
            warnings.warn(f"{self.title}: {failures}; the same call tries them again", RuntimeWarning, stacklevel=2)
        return results

    def _done(
        self,
        out: str | PathLike[str] | None = None,
        *,
        seeds: int | Iterable[int] | None = None,
        jobs: int | None = None,
        shard: str | None = None,
        progress: bool | Callable[[Progress], object] = True,
        executor: Executor | Callable[[], Executor] | None = None,
    ) -> Results:
        """`run` for those who say themselves which runs have no result."""
        if seeds is not None:
            return self.change(seeds=seeds)._done(out, jobs=jobs, shard=shard, progress=progress, executor=executor)
        if jobs is not None and whole("jobs", jobs) not in range(1 << 32):
            raise extension.RunError(f"jobs: {jobs} runs at a time is no number of runs (allowed: 1 or more)")
        check_text("shard", shard, "2/8")
        tell = teller(progress)
        folder = self._native.default_folder(shard) if out is None else out
        check_path("out", folder, extension.RunError)
        if _storage.is_remote(folder):
            url = os.fspath(folder)
            with _storage.kept_at(url) as here, _storage.named(here, url):
                self._run(here, jobs, shard, tell, executor)
            return Results(url)
        return Results._of(self._run(folder, jobs, shard, tell, executor))

    def _run(
        self,
        folder: str | PathLike[str],
        jobs: int | None,
        shard: str | None,
        tell: Tell | None,
        executor: Executor | Callable[[], Executor] | None,
    ) -> extension.Results:
        if executor is None:
            return self._native.run(folder, jobs, shard, sys.argv, tell)
        recorder = self._native.record(folder, jobs, shard, sys.argv)
        try:
            _executors.Coordinator(executor, self._native, recorder, jobs, tell).run()
            return recorder.finish()
        finally:
            recorder.close()

    def __repr__(self) -> str:
        count, seeds = len(self._native), len(self._native.seeds)
        return f"<sojourn.Study: {self.title}: {count} scenarios × {seeds} seeds>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Study) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return (_again, (self._native.path, self.to_toml(), os.path.abspath(self._native.folder)))


def _again(path: str, text: str, folder: str) -> Study:
    return Study._of(extension.Study.parse(path, text, folder))


def simulate(scenario: Scenario | Study | Mapping[str, Any], seed: int = 1) -> Run:
    """One run in memory: of a scenario, or of a study that has one scenario.

    A mapping is a scenario as a study file has it: ``{"duration": "10s", "path": …, "flow": […]}``.
    """
    if whole("seed", seed) not in range(1 << 64):
        raise extension.RunError(f"seed is {seed} (allowed: a whole number of 64 bits, 0 or more)")
    if not isinstance(cast(object, scenario), Scenario | Study | Mapping):
        raise refused("scenario", scenario, "one of study.scenarios, a Study with one scenario, or a dict")
    if isinstance(scenario, Mapping):
        scenario = Study(title="one run", scenario=scenario)
    if isinstance(scenario, Study):
        if len(scenario.scenarios) != 1:
            raise extension.RunError(
                f"the study has {len(scenario.scenarios)} scenarios (allowed: one of study.scenarios)"
            )
        return Run(scenario._native.simulate(0, seed))
    return Run(scenario.study._native.simulate(scenario.index, seed))


def _told(text: str) -> extension.StudyError:
    error = extension.StudyError(text)
    error.mistakes = []
    return error


def _reduced(error: extension.StudyError) -> tuple[Any, ...]:
    return _told, (str(error),)


# From another process it comes with its text; the extension's `Mistake` does not travel.
copyreg.pickle(extension.StudyError, _reduced)
