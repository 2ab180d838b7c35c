"""Search: which parameters make a metric best while claims hold. The sampler is Optuna's."""

from __future__ import annotations

import importlib
import json
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from ._native import Error
from ._results import Results
from ._study import Study

Range = tuple[float, float]


class Trial(NamedTuple):
    """A point of a search."""

    number: int
    parameters: dict[str, Any]
    value: float
    """Of the objective, over the seeds with which it was run."""
    failed: list[str]
    """Claims that do not hold, or cannot be tested."""
    seeds: int
    """With how many it was run."""
    has_all_seeds: bool
    """False if it was left after the first."""
    folder: Path

    @property
    def is_allowed(self) -> bool:
        return not self.failed


class Found(NamedTuple):
    """What a search found: its trials in their order."""

    trials: list[Trial]

    @property
    def best(self) -> Trial | None:
        """The least objective among trials whose claims all hold and that ran with all seeds."""
        allowed = [trial for trial in self.trials if trial.is_allowed and trial.has_all_seeds]
        return min(allowed, key=lambda trial: trial.value, default=None)


def search(
    study: Study,
    change: Mapping[str, str],
    space: Mapping[str, Range | Sequence[str]],
    objective: Callable[[Results], float],
    out: str | PathLike[str],
    *,
    trials: int = 50,
    seed: int = 0,
    first: Sequence[Mapping[str, Any]] = (),
    **running: Any,
) -> Found:
    """Looks for the parameters with which `objective` is least while the study's claims hold.

    `change` has addresses with templates, ``{"flow.bbr.cca": "bbr3 headroom={headroom}"}``; `space` has for each
    parameter its least and largest value, or a list of texts. `objective` is a number of `Results`.
    Points in `first`, such as the defaults, are tried before the sampler's.

    Racing: a point is run with the first seed alone, and with all only if no claim fails with it and its objective
    is not worse than the best by more than a quarter. Each point is a study in a folder of its own in `out`, so the same call
    goes on after an interruption and runs nothing twice; `search.json` lists them. `running` goes to `Study.run`.
    """
    try:
        optuna: Any = importlib.import_module("optuna")
    except ImportError:
        raise Error("search: needs the package optuna: pip install 'sojourn[search]'") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    folder = Path(out)
    with warnings.catch_warnings():
        # That constraints may change in a later version of Optuna.
        warnings.simplefilter("ignore")
        sampler = optuna.samplers.TPESampler(seed=seed, constraints_func=broken)
    asked = optuna.create_study(sampler=sampler)
    for point in first:
        asked.enqueue_trial(dict(point))
    done: list[Trial] = []
    for number in range(trials):
        trial = asked.ask()
        parameters = {name: suggested(trial, name, among) for name, among in space.items()}
        best = Found(done).best
        found = tried(study, change, parameters, objective, folder / f"{number:04}", study.seeds, best, running)
        done.append(found)
        trial.set_user_attr("constraints", [float(len(found.failed))])
        asked.tell(trial, found.value)
        write(folder / "search.json", done)
    return Found(done)


def broken(trial: Any) -> list[float]:
    """How many claims do not hold; Optuna wants none."""
    constraints: list[float] = trial.user_attrs["constraints"]
    return constraints


def suggested(trial: Any, name: str, among: Range | Sequence[str]) -> Any:
    if all(isinstance(value, str) for value in among):
        return trial.suggest_categorical(name, list(among))
    least, most = among
    return trial.suggest_float(name, least, most)


def tried(
    study: Study,
    change: Mapping[str, str],
    parameters: dict[str, Any],
    objective: Callable[[Results], float],
    folder: Path,
    seeds: list[int],
    best: Trial | None,
    running: dict[str, Any],
) -> Trial:
    """Runs a point with the first seed, and with all if it may be the best."""
    texts = {name: value if isinstance(value, str) else f"{value:.6g}" for name, value in parameters.items()}
    changed = study.change({address: template.format(**texts) for address, template in change.items()})
    number = int(folder.name)
    some = seeds[:1]
    while True:
        results = changed.change(seeds=some).run(folder / f"{len(some)}-seeds", **running)
        value = float(objective(results))
        if not math.isfinite(value):
            raise Error(f"search: the objective of {texts} is {value} (allowed: finite numbers)")
        verdicts = results.verdicts
        failed = [claim.id for claim in verdicts if claim.verdict != "holds"]
        found = Trial(number, parameters, value, failed, len(some), some == seeds, results.folder)
        is_worse = best is not None and value > best.value + abs(best.value) / 4
        if some == seeds or is_worse or any(claim.verdict == "fails" for claim in verdicts):
            return found
        some = seeds


def write(path: Path, trials: list[Trial]) -> None:
    listed = [{**trial._asdict(), "folder": trial.folder.relative_to(path.parent).as_posix()} for trial in trials]
    path.write_text(json.dumps(listed, indent=1) + "\n", encoding="utf-8")
