"""The adversary: a world in which a claim fails, made as simple as it can be."""

from __future__ import annotations

import math
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from ._native import Error
from ._points import (
    Among,
    Trial,
    at,
    check_point,
    check_space,
    is_in,
    is_texts,
    is_whole,
    needed,
    sampler,
    suggested,
    texts_of,
    width,
    write,
)
from ._results import Results
from ._study import Study

STEPS = 64
"""A number is brought as near to its start as this part of its range."""


class Refutation(NamedTuple):
    """What the adversary found."""

    claim: str
    start: dict[str, Any]
    trials: list[Trial]
    """All worlds in their order. The value of each is how far the claim is from failing, as a share of
    its bound; below zero it fails."""
    first: Trial | None
    """The first world in which the claim fails; None if it holds in all that were tried."""
    world: Trial | None
    """The one that is nearest to the start."""

    @property
    def changed(self) -> dict[str, Any]:
        """What differs from the start in the world that was found."""
        world = self.world
        if world is None:
            return {}
        return {name: value for name, value in world.parameters.items() if value != self.start[name]}

    def __repr__(self) -> str:
        if self.world is None:
            nearest = min(self.trials, key=lambda trial: trial.value)
            return (
                f"the claim '{self.claim}' held in all {len(self.trials)} worlds that were tried; it was nearest to "
                f"failing with {shown(nearest.parameters)}, {nearest.value:.1%} from its bound"
            )
        where = shown(self.changed) or "the start itself"
        return f"the claim '{self.claim}' fails with {where}, {-self.world.value:.1%} beyond its bound: {self.world.folder}"


def refute(
    study: Study,
    claim: str,
    change: Mapping[str, str],
    space: Mapping[str, Among],
    start: Mapping[str, Any],
    out: str | PathLike[str],
    *,
    trials: int = 50,
    seed: int = 0,
    **running: Any,
) -> Refutation:
    """Looks for a world in which `claim` fails, and then for the one nearest to `start` in which it still does.

    `change` and `space` are those of `search`, and `start` is a point of the space, such as the study's own world. Optuna
    looks where the claim is nearest to failing. As soon as it fails, with all seeds, the world is made simpler as property
    testing does: parameters go back to the start one by one, the others as near to it as the claim still
    fails, texts to the first in their list. So of two conditions that are both needed both remain, and
    each number says how far one has to go.

    Each world is a study in a folder of its own in `out`, and ``refute.json`` lists them; the same call runs
    nothing twice. `running` goes to `Study.run`. That none was found proves nothing.
    """
    check_space("refute", change, space)
    check_point("refute", start, space)
    document = study.to_dict()
    ids = [str(one.get("id")) for one in document.get("claim", [])]
    if claim not in ids:
        raise Error(f"refute: the study has no claim '{claim}' (allowed: {', '.join(ids) or 'none'})")
    # The others would only take time.
    document["claim"] = [one for one in document["claim"] if one.get("id") == claim]
    study = Study(document, folder=study._native.folder)
    adversary = Adversary(study, claim, change, space, dict(start), Path(out), running)
    optuna = needed("optuna", "search", "refute")
    asked = optuna.create_study(sampler=sampler(optuna, seed))
    asked.enqueue_trial(dict(start))
    first: Trial | None = None
    while first is None and len(adversary.trials) < trials:
        trial = asked.ask()
        found = adversary.tried({name: suggested(trial, name, among) for name, among in space.items()})
        asked.tell(trial, found.value)
        if found.failed:
            first = found
        elif len(asked.trials) > 4 * trials:
            # Of few texts and whole numbers the sampler names the same again and again.
            break
    world = adversary.shrunk(first) if first is not None else None
    adversary.write(first, world)
    return Refutation(claim, dict(start), adversary.trials, first, world)


class Adversary:
    def __init__(
        self,
        study: Study,
        claim: str,
        change: Mapping[str, str],
        space: Mapping[str, Among],
        start: dict[str, Any],
        out: Path,
        running: dict[str, Any],
    ) -> None:
        self.study, self.claim, self.change, self.space = study, claim, change, space
        self.start, self.out, self.running = start, out, running
        self.trials: list[Trial] = []
        self.known: dict[tuple[str, ...], Trial] = {}

    def tried(self, parameters: dict[str, Any]) -> Trial:
        """Runs a world with the first seed, and with all if the claim fails there."""
        key = tuple(texts_of(parameters).values())
        if key in self.known:
            return self.known[key]
        folder = self.out / f"{len(self.trials):04}"
        changed = at(self.study, self.change, parameters)
        seeds = self.study.seeds
        some = seeds[:1]
        while True:
            results = changed.change(seeds=some).run(folder / f"{len(some)}-seeds", **self.running)
            room, has_failed = room_of(results)
            if some == seeds or not has_failed:
                break
            some = seeds
        failed = [self.claim] if has_failed else []
        found = Trial(len(self.trials), parameters, room, failed, len(some), some == seeds, results.folder)
        self.trials.append(found)
        self.known[key] = found
        self.write(None, None)
        return found

    def write(self, first: Trial | None, world: Trial | None) -> None:
        numbers = {"first": first and first.number, "world": world and world.number}
        write(self.out / "refute.json", self.trials, claim=self.claim, start=self.start, **numbers)

    def shrunk(self, failing: Trial) -> Trial:
        """The world nearest to the start in which the claim still fails, one parameter after the other."""
        while True:
            before = failing
            for name in self.changed(failing):
                failing = self.nearer(failing, name, self.space[name])
            if failing.parameters != before.parameters:
                continue
            failing = self.rounder(failing)
            without = (self.with_value(failing, name, self.start[name]) for name in self.changed(failing))
            simpler = next((found for found in without if found.failed), None)
            if simpler is None:
                return failing
            failing = simpler

    def nearer(self, failing: Trial, name: str, among: Among) -> Trial:
        start, value = self.start[name], failing.parameters[name]
        if is_texts(among):
            simpler = [start, *(text for text in among[: list(among).index(value)] if text != start)]
            for text in simpler:
                found = self.with_value(failing, name, text)
                if found.failed:
                    return found
            return failing
        found = self.with_value(failing, name, start)
        if found.failed:
            return found
        step = 1 if is_whole(among) else width(among) / STEPS
        holds = start
        while abs(failing.parameters[name] - holds) > step:
            middle = (failing.parameters[name] + holds) / 2
            middle = round(middle) if is_whole(among) else middle
            found = self.with_value(failing, name, middle)
            if found.failed:
                failing = found
            else:
                holds = middle
        return failing

    def rounder(self, failing: Trial) -> Trial:
        """Numbers with few digits, where they do as well."""
        for name, among in self.space.items():
            value = failing.parameters[name]
            if is_texts(among) or is_whole(among) or value == self.start[name]:
                continue
            for digits in (1, 2, 3):
                short = float(f"{value:.{digits}g}")
                if is_in(short, among) and abs(short - value) <= width(among) / STEPS:
                    found = self.with_value(failing, name, short)
                    if found.failed:
                        failing = found
                        break
        return failing

    def changed(self, trial: Trial) -> list[str]:
        return [name for name, value in trial.parameters.items() if value != self.start[name]]

    def with_value(self, trial: Trial, name: str, value: Any) -> Trial:
        return self.tried({**trial.parameters, name: value})


def room_of(results: Results) -> tuple[float, bool]:
    """How far the claim is from failing as a share of its bound, below zero if it fails; and whether it does.

    Where it cannot be tested it does not fail, and nothing is known of how far it is.
    """
    claims = results.claims
    nearest, has_failed = math.inf, False
    for verdict, room, share, miss in zip(claims["check"], claims["room_share"], claims["off_by_share"], claims["off_by"]):
        if verdict == "fails":
            has_failed = True
            nearest = min(nearest, -(share if share is not None else miss or 0.0))
        elif room is not None:
            nearest = min(nearest, room)
    # Optuna wants numbers.
    return (nearest if math.isfinite(nearest) else FAR), has_failed


FAR = 1e6


def shown(point: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {text}" for name, text in texts_of(point).items())
