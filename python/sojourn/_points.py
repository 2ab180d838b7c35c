"""Points of a space of parameters, and the studies that they make of a study."""

from __future__ import annotations

import importlib
import json
import math
import operator
import os
import re
import string
import warnings
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, cast

from . import _storage
from ._given import check_path, mapping, refused, whole
from ._native import Error
from ._study import Study

Range = tuple[float, float]

Among = Range | Sequence[str]
"""The least and the largest value, whole numbers if both are, or a list of texts."""

Point = Mapping[str, Any]


class Trial(NamedTuple):
    """A point that was run."""

    number: int
    parameters: dict[str, Any]
    value: float
    """Of the objective, over the seeds with which it was run; not a number where nothing can be said."""
    failed: list[str]
    """Claims that do not hold; in a search those that are untestable, too."""
    seeds: int
    """With how many it was run."""
    has_all_seeds: bool
    """False if it was left after the first, or if a run has no result."""
    folder: Path | str
    """A text where it is on object storage."""
    problem: str = ""
    """Why nothing can be said: runs without a result, or a claim that is untestable."""

    @property
    def is_allowed(self) -> bool:
        return not self.failed and not self.problem


def needed(package: str, extra: str, who: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError:
        raise Error(f"{who}: needs the package {package.split('.')[0]}: pip install 'sojourn[{extra}]'") from None


def sampler(optuna: Any, seed: int) -> Any:
    """Optuna's, which learns from objectives and from claims that fail."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with warnings.catch_warnings():
        # That constraints may change in a later version of Optuna.
        warnings.simplefilter("ignore")
        return optuna.samplers.TPESampler(seed=seed, constraints_func=broken)


def broken(trial: Any) -> list[float]:
    """How many claims do not hold; Optuna wants none."""
    constraints: list[float] = trial.user_attrs.get("constraints", [0.0])
    return constraints


RUNNING = ("jobs", "progress", "executor")
"""What of `Study.run` makes sense for a point, of which the search itself says where and with which seeds it runs."""

FAR = 1e6
"""What Optuna is told of a point of which nothing is known, because it wants numbers."""


def is_texts(among: Among) -> bool:
    return all(isinstance(value, str) for value in among)


def is_whole(among: Among) -> bool:
    return all(isinstance(value, int) for value in among)


def width(among: Among) -> float:
    """From the least to the largest."""
    least, most = among
    return float(most) - float(least)


def is_in(value: Any, among: Among) -> bool:
    if is_texts(among):
        return value in among
    least, most = among
    if isinstance(value, bool) or not isinstance(value, int | float) or is_whole(among) and value != int(value):
        return False
    return float(least) <= value <= float(most)


def suggested(trial: Any, name: str, among: Among) -> Any:
    if is_texts(among):
        return trial.suggest_categorical(name, list(among))
    least, most = among
    if is_whole(among):
        return trial.suggest_int(name, least, most)
    return trial.suggest_float(name, least, most)


def plain(value: Any) -> Any:
    """Python's number for one of numpy's."""
    if isinstance(value, bool | int | float | str):
        return value
    if hasattr(value, "__index__"):
        return operator.index(value)
    return float(value) if hasattr(value, "__float__") else value


def plain_space(who: str, space: Mapping[str, Among]) -> dict[str, Among]:
    found: dict[str, Among] = {}
    for name, among in mapping(f"{who}: space", space, "{'packets': (5, 500)}").items():
        if isinstance(among, str) or not hasattr(among, "__iter__"):
            raise refused(f"{who}: space: {name}", among, "(least, largest), or a list of texts")
        found[name] = cast(Among, tuple(plain(value) for value in among))
    return found


def plain_point(who: str, point: Point) -> dict[str, Any]:
    return {name: plain(value) for name, value in mapping(who, point, "{'packets': 50}").items()}


def check_given(who: str, study: Study, out: str | PathLike[str], seed: int, running: Mapping[str, Any], allowed: Sequence[str]) -> None:
    """Refuses what only later would make no sense, in runs that took a while."""
    if not isinstance(cast(object, study), Study):
        raise refused(f"{who}: study", study, "a Study")
    check_path(f"{who}: out", out)
    # What numpy's older generator takes.
    if whole(f"{who}: seed", seed) not in range(1 << 32):
        raise Error(f"{who}: seed is {seed} (allowed: 0 to {(1 << 32) - 1})")
    for name in running:
        if name not in allowed:
            raise TypeError(f"{who}: no argument is named '{name}', or it has no place here (allowed of Study.run's: {', '.join(allowed)})")


def used_by(who: str, change: Mapping[str, str]) -> set[str]:
    """The parameters that the templates have."""
    used: set[str] = set()
    for address, template in mapping(f"{who}: change", change, "{'path.queue': 'pfifo limit {packets}'}").items():
        if not isinstance(template, str):
            raise refused(f"{who}: change: {address}", template, "a text with parameters, such as 'pfifo limit {packets}'")
        try:
            for _, name, form, conversion in string.Formatter().parse(template):
                if name == "" or form or conversion:
                    raise ValueError("a parameter stands in its braces alone")
                used |= {name} if name else set()
        except ValueError as error:
            raise Error(
                f"{who}: change: {address}: '{template}': {error} (allowed: {{packets}} for a parameter; {{{{ and }}}} for braces)"
            ) from None
    return used


def is_range(among: Among) -> bool:
    """From a number to a larger one, so that both and what is between them can be computed with."""
    if len(among) != 2 or any(isinstance(value, bool) or not isinstance(value, int | float) for value in among):
        return False
    try:
        return float(among[0]) < float(among[1]) and math.isfinite(width(among))
    except OverflowError:
        return False


def check_space(who: str, change: Mapping[str, str], space: Mapping[str, Among]) -> None:
    """Refuses templates and parameters that do not fit each other."""
    used = used_by(who, change)
    if not space:
        raise Error(f"{who}: the space is empty (allowed: one parameter or more)")
    if unknown := sorted(used - set(space)):
        raise Error(f"{who}: {{{unknown[0]}}} is no parameter of the space (allowed: {', '.join(space) or 'none'})")
    if unused := sorted(set(space) - used):
        raise Error(f"{who}: no change uses the parameter {unused[0]}")
    for name, among in space.items():
        if not is_range(among) and not (len(among) and is_texts(among)):
            raise Error(f"{who}: {name}: {among!r} is no range (allowed: (least, largest), both finite, or a list of texts)")


def check_trials(who: str, trials: int) -> None:
    if whole(f"{who}: trials", trials) < 1:
        raise Error(f"{who}: trials is {trials} (allowed: 1 or more)")


def check_point(who: str, point: Point, space: Mapping[str, Among]) -> None:
    if set(point) != set(space):
        raise Error(f"{who}: {dict(point)} is no point (allowed: a value for each of {', '.join(space)})")
    for name, among in space.items():
        if not is_in(point[name], among):
            kind = ", whole numbers" if not is_texts(among) and is_whole(among) else ""
            raise Error(f"{who}: {name} = {point[name]!r} is not in {among!r}{kind}")


def texts_of(point: Point) -> dict[str, str]:
    return {name: f"{value:.6g}" if isinstance(value, float) else str(value) for name, value in point.items()}


def changes(change: Mapping[str, str], point: Point) -> dict[str, Any]:
    """Values for addresses. A template of nothing but a parameter has the parameter's type."""
    texts = texts_of(point)
    alone = {f"{{{name}}}": short(value) for name, value in point.items()}
    return {address: alone.get(template, template.format(**texts)) for address, template in change.items()}


def short(value: Any) -> Any:
    """As `texts_of` writes it."""
    return float(f"{value:.6g}") if isinstance(value, float) else value


def at(study: Study, change: Mapping[str, str], point: Point) -> Study:
    return study.change(changes(change, point))


def write(out: str | PathLike[str], name: str, trials: Iterable[Trial], **more: Any) -> None:
    """Lists trials where somebody who has only the folder finds them."""
    listed: Any = [
        {
            **trial._asdict(),
            # JSON has no infinity, and nothing that is not a number.
            "value": trial.value if math.isfinite(trial.value) else None,
            "folder": "/".join(re.split(r"[/\\]", str(trial.folder))[-2:]),
        }
        for trial in trials
    ]
    text = json.dumps({**more, "trials": listed} if more else listed, indent=1)
    if _storage.is_remote(out):
        _storage.put(text + "\n", os.fspath(out), name)
    else:
        Path(out, name).write_text(text + "\n", encoding="utf-8")
