"""The adversary: a world in which a claim fails, made as simple as it can be."""

from __future__ import annotations

import math
from collections.abc import Mapping
from os import PathLike
from typing import Any, NamedTuple

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
    is_in,
    is_texts,
    is_whole,
    needed,
    plain_point,
    plain_space,
    sampler,
    suggested,
    texts_of,
    width,
    write,
)
from ._results import Results
from ._storage import inside
from ._study import Study

NEAR = 0.25
"""A world whose first seed is as near as this to failing, as a share of the bound, is run with all seeds."""

STEPS = 64
"""A number is brought as near to its start as this part of its range."""


class Refutation(NamedTuple):
    """What the adversary found."""

    claim: str
    start: dict[str, Any]
    trials: list[Trial]
    """All worlds in their order. The value of each is how far the claim is from failing, as a share of
    its bound; below zero it fails. It is infinite where the claim has no such distance, and not a number where it is untestable."""
    first: Trial | None
    """The first world in which the claim fails; None if it holds in all that were tried."""
    world: Trial | None
    """The one that is nearest to the start."""
    seeds: int
    """Of the study. A world in which the claim fails was run with all of them, and so was every world that was compared with it."""

    @property
    def changed(self) -> dict[str, Any]:
        """What differs from the start in the world that was found."""
        world = self.world
        if world is None:
            return {}
        return {name: value for name, value in world.parameters.items() if value != self.start[name]}

    def __repr__(self) -> str:
        untested = [trial for trial in self.trials if trial.problem]
        count = len(self.trials)
        if len(untested) == count:
            return f"the claim '{self.claim}' is untestable in all of the {count} worlds that were tried: {untested[0].problem}"
        told = self.found() if self.world else self.held()
        if not untested:
            return f"the claim '{self.claim}' {told}"
        return f"the claim '{self.claim}' {told}; it is untestable in {len(untested)} of {count} worlds: {untested[0].problem}"

    def found(self) -> str:
        assert self.world is not None
        where = shown(self.changed) or "the start itself"
        return f"fails with {where}, {-self.world.value:.1%} beyond its bound{self.rests_on([self.world])}: {self.world.folder}"

    def held(self) -> str:
        held = [trial for trial in self.trials if trial.is_allowed]
        count = f"all {len(held)}" if len(held) == len(self.trials) else f"{len(held)} of the {len(self.trials)}"
        text = f"held in {count} worlds that were tried{self.rests_on(held)}"
        nearest = min(held, key=lambda trial: trial.value)
        if math.isfinite(nearest.value):
            text += f"; it was nearest to failing with {shown(nearest.parameters)}, {nearest.value:.1%} from its bound"
        return text

    def rests_on(self, trials: list[Trial]) -> str:
        """With how many seeds."""
        if self.seeds == 1:
            return ", with one seed"
        alone = sum(not trial.has_all_seeds for trial in trials)
        if alone:
            return f", in {alone} of them with the first of {self.seeds} seeds alone"
        return f", with all {self.seeds} seeds"


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

    While it looks, a world in which the claim holds by more than a quarter of its bound with the first seed is left, unless it is the nearest to
    failing so far; all others, and all while the world is made simpler, are run with all seeds. A world in which the
    claim is untestable, because runs have no result or for another reason, counts neither as one where it holds nor as one where it fails.

    Each world is a study in a folder of its own in `out`, and ``refute.json`` lists them; the same call runs
    nothing twice. `running` goes to `Study.run`: `jobs`, `progress` and `executor`. That none was found proves nothing.
    """
    check_given("refute", study, out, seed, running, RUNNING)
    check_trials("refute", trials)
    space, start = plain_space("refute", space), plain_point("refute: start", start)
    check_space("refute", change, space)
    check_point("refute", start, space)
    document = study.to_dict()
    ids = [str(one.get("id")) for one in document.get("claim", [])]
    if claim not in ids:
        raise Error(f"refute: the study has no claim '{claim}' (allowed: {', '.join(ids) or 'none'})")
    # The others would only take time.
    document["claim"] = [one for one in document["claim"] if one.get("id") == claim]
    study = Study(document, folder=study._native.folder)
    adversary = Adversary(study, claim, change, space, dict(start), out, running)
    optuna = needed("optuna", "search", "refute")
    asked = optuna.create_study(sampler=sampler(optuna, seed))
    asked.enqueue_trial(dict(start))
    first: Trial | None = None
    while first is None and len(adversary.trials) < trials:
        trial = asked.ask()
        found = adversary.tried({name: suggested(trial, name, among) for name, among in space.items()})
        trial.set_user_attr("constraints", [1.0 if found.problem else 0.0])
        asked.tell(trial, found.value if math.isfinite(found.value) else FAR)
        if found.failed:
            first = found
        elif len(asked.trials) > 4 * trials:
            # Of few texts and whole numbers the sampler names the same again and again.
            break
    world = adversary.shrunk(first) if first is not None else None
    adversary.write(first, world)
    return Refutation(claim, dict(start), adversary.trials, first, world, len(study.seeds))


class Adversary:
    def __init__(
        self,
        study: Study,
        claim: str,
        change: Mapping[str, str],
        space: Mapping[str, Among],
        start: dict[str, Any],
        out: str | PathLike[str],
        running: dict[str, Any],
    ) -> None:
        self.study, self.claim, self.change, self.space = study, claim, change, space
        self.start, self.out, self.running = start, out, running
        self.trials: list[Trial] = []
        self.known: dict[tuple[str, ...], Trial] = {}

    def tried(self, parameters: dict[str, Any], with_all: bool = False) -> Trial:
        """Runs a world with the first seed, and with all if it may fail, or in any case."""
        key = tuple(texts_of(parameters).values())
        known = self.known.get(key)
        if known is not None and (known.has_all_seeds or known.problem or not with_all):
            return known
        number = len(self.trials) if known is None else known.number
        changed = at(self.study, self.change, parameters)
        seeds = self.study.seeds
        some = seeds if with_all else seeds[:1]
        while True:
            folder = inside(self.out, f"{number:04}", f"{len(some)}-seeds")
            results = changed.change(seeds=some)._done(folder, **self.running)
            room, has_failed, problem = room_of(results)
            if some == seeds or results.missing or (not has_failed and not problem and self.is_far(room)):
                break
            some = seeds
        failed = [self.claim] if has_failed else []
        has_all = some == seeds and not results.missing
        found = Trial(number, parameters, room, failed, len(some), has_all, folder, problem)
        self.trials[number : number + 1] = [found]
        self.known[key] = found
        self.write(None, None)
        return found

    def is_far(self, room: float) -> bool:
        """So far from failing that other seeds hardly make it fail."""
        nearest = min((trial.value for trial in self.trials if not trial.problem), default=math.inf)
        return math.isfinite(room) and room > NEAR and room >= nearest

    def write(self, first: Trial | None, world: Trial | None) -> None:
        numbers = {"first": first and first.number, "world": world and world.number}
        write(self.out, "refute.json", self.trials, claim=self.claim, start=self.start, **numbers)

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
        return self.tried({**trial.parameters, name: value}, with_all=True)


def room_of(results: Results) -> tuple[float, bool, str]:
    """How far the claim is from failing as a share of its bound, below zero if it fails; whether it does; and why it
    is untestable, if so."""
    verdict = results.verdicts[0].verdict
    claims = results.claims
    if verdict == "fails":
        missed = zip(claims["check"], claims["off_by_share"], claims["off_by"])
        return -max(share if share is not None else by or 0.0 for check, share, by in missed if check == "fails"), True, ""
    if verdict == "holds":
        return min((room for room in claims["room_share"] if room is not None), default=math.inf), False, ""
    reasons = [reason for check, reason in zip(claims["check"], claims["reason"]) if check != "holds" and reason]
    return math.nan, False, results._lack or (reasons or ["the claim is untestable"])[0]


def shown(point: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {text}" for name, text in texts_of(point).items())
