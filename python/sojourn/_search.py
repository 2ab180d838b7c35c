"""Search: which parameters make a metric best while claims hold. The sampler is Optuna's."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, NamedTuple, cast

from ._given import refused
from ._native import Error
from ._points import (
    FAR,
    RUNNING,
    Among,
    Trial,
    at,
    check_given,
    check_point,
    check_space,
    check_trials,
    needed,
    plain_point,
    plain_space,
    sampler,
    suggested,
    texts_of,
    write,
)
from ._results import Results
from ._storage import inside
from ._study import Study


class Found(NamedTuple):
    """What a search found: its trials in their order."""

    trials: list[Trial]

    @property
    def best(self) -> Trial | None:
        """The least objective among trials whose claims all hold and whose runs with all seeds all have a result."""
        allowed = [trial for trial in self.trials if trial.is_allowed and trial.has_all_seeds]
        return min(allowed, key=lambda trial: trial.value, default=None)

    def __repr__(self) -> str:
        best, refused = self.best, sum(bool(trial.failed) for trial in self.trials)
        incomplete = [trial for trial in self.trials if trial.problem]
        parts = [f"{len(self.trials)} points", f"{refused} of them with claims that do not hold" if refused else ""]
        parts.append(f"{len(incomplete)} of them incomplete ({incomplete[0].problem})" if incomplete else "")
        if best is None:
            parts.append("none is allowed")
        else:
            where = ", ".join(f"{name} = {text}" for name, text in texts_of(best.parameters).items())
            parts.append(f"the best is {best.value:.6g} with {where}: {best.folder}")
        return "; ".join(part for part in parts if part)


def search(
    study: Study,
    change: Mapping[str, str],
    space: Mapping[str, Among],
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
    parameter its least and largest value, whole numbers if both are, or a list of texts. `objective` is a number of `Results`.
    Points in `first`, such as the defaults, are tried before the sampler's.

    Racing: a point is run with the first seed alone, and with all only if no claim fails with it and its objective
    is not worse than the best by more than a quarter. Each point is a study in a folder of its own in `out`, so the same call
    goes on after an interruption and runs nothing twice; `search.json` lists them. `running` goes to `Study.run`:
    `jobs`, `progress` and `executor`.

    A point of which a run has no result is not the best: its objective is not asked for, and its `problem` says why.
    """
    check_given("search", study, out, seed, running, RUNNING)
    check_trials("search", trials)
    if not callable(objective):
        raise refused("search: objective", objective, "a function of Results")
    if isinstance(cast(object, first), Mapping | str) or not hasattr(first, "__iter__"):
        raise refused("search: first", first, "a list of points, such as [{'packets': 50}]")
    space, first = plain_space("search", space), [plain_point("search: a point in first", point) for point in first]
    check_space("search", change, space)
    for point in first:
        check_point("search", point, space)
    optuna = needed("optuna", "search", "search")
    asked = optuna.create_study(sampler=sampler(optuna, seed))
    for point in first:
        asked.enqueue_trial(dict(point))
    done: list[Trial] = []
    for number in range(trials):
        trial = asked.ask()
        parameters = {name: suggested(trial, name, among) for name, among in space.items()}
        best = Found(done).best
        found = tried(study, change, parameters, objective, out, number, study.seeds, best, running)
        done.append(found)
        trial.set_user_attr("constraints", [float(len(found.failed) + bool(found.problem))])
        asked.tell(trial, FAR if found.problem else found.value)
        write(out, "search.json", done)
    return Found(done)


def tried(
    study: Study,
    change: Mapping[str, str],
    parameters: dict[str, Any],
    objective: Callable[[Results], float],
    out: str | PathLike[str],
    number: int,
    seeds: list[int],
    best: Trial | None,
    running: dict[str, Any],
) -> Trial:
    """Runs a point with the first seed, and with all if it may be the best."""
    changed = at(study, change, parameters)
    some = seeds[:1]
    while True:
        folder = inside(out, f"{number:04}", f"{len(some)}-seeds")
        results = changed.change(seeds=some)._done(folder, **running)
        if problem := results._lack:
            return Trial(number, parameters, math.nan, [], len(some), False, folder, problem)
        value = finite(objective(results), parameters)
        verdicts = results.verdicts
        failed = [claim.id for claim in verdicts if claim.verdict != "holds"]
        found = Trial(number, parameters, value, failed, len(some), some == seeds, folder)
        is_worse = best is not None and value > best.value + abs(best.value) / 4
        if some == seeds or is_worse or any(claim.verdict == "fails" for claim in verdicts):
            return found
        some = seeds


def finite(value: object, parameters: dict[str, Any]) -> float:
    """What the objective gave, as a number of Python's."""
    try:
        number = math.nan if isinstance(value, str | bytes) else float(cast(Any, value))
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise Error(f"search: the objective of {texts_of(parameters)} is {value!r:.60} (allowed: finite numbers)")
    return number
