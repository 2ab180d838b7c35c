"""Sensitivity: which parameters a metric depends on. Samples and indices are SALib's."""

from __future__ import annotations

import random
from collections.abc import Mapping
from os import PathLike
from typing import Any, Literal, NamedTuple

from ._given import whole
from ._native import Error
from ._points import RUNNING, Among, changes, check_given, check_space, is_texts, is_whole, needed, plain_space, width
from ._results import Results
from ._study import Study

LEAST = 4
"""Fewer samples say nothing of how certain the indices are: of a single one all of Sobol's intervals have no width."""

INDICES = {"sobol": ("S1", "S1_conf", "ST", "ST_conf"), "morris": ("mu", "mu_star", "mu_star_conf", "sigma")}


class Sensitivity(NamedTuple):
    """Indices of a metric for each parameter."""

    method: str
    metric: str
    indices: dict[str, dict[str, float]]
    """Of each parameter. ``sobol``: ``S1``, the share of the variance that it explains alone, and ``ST``, with all that it
    takes part in, each with half its 95 % interval. ``morris``: ``mu_star``, the mean of the effects' sizes in the metric's
    unit over the whole range, ``mu`` with their signs, and ``sigma``, how much they depend on where one is. The range of a list
    is from its first text to its last, with equal steps between them."""
    points: list[dict[str, Any]]
    values: list[float]
    """Of the metric, for each point, a mean over seeds."""
    results: Results

    def __repr__(self) -> str:
        names = INDICES[self.method]
        width = max(len(name) for name in self.indices)
        lines = [f"{self.metric}, {self.method}, {len(self.points)} points"]
        lines.append(" " * width + "".join(f"{name:>14}" for name in names))
        for parameter, of in self.indices.items():
            lines.append(f"{parameter:{width}}" + "".join(f"{of[name]:14.3g}" for name in names))
        return "\n".join(lines)


def sensitivity(
    study: Study,
    change: Mapping[str, str],
    space: Mapping[str, Among],
    metric: str,
    out: str | PathLike[str],
    *,
    flow: str | None = None,
    queue: str | None = None,
    method: Literal["sobol", "morris"] = "sobol",
    samples: int = 64,
    seed: int = 0,
    **running: Any,
) -> Sensitivity:
    """Says how much `metric` depends on each parameter: Sobol's indices, or Morris's elementary effects.

    `change` and `space` are those of `search`; the study has no factors. `metric` is a column of `Results.runs`: of a `flow`, or the
    mean of a group of flows, of a `queue`, or of the whole run. All points are scenarios of one study with its result folder in
    `out`, which any executor can run; `running` goes to `Study.run`.

    ``sobol`` takes ``samples * (parameters + 2)`` points, and `samples` should be a power of two; ``morris`` takes
    ``samples * (parameters + 1)``, and some ten to fifty of them say which parameters matter at all; 4 are the least. Seeds add
    noise that no parameter explains, the same for all points.

    Raises `Error` if a run has no result; the same call tries those again. It does so, too, if a run lacks the metric, because
    the mean over the others would be too good.
    """
    check_given("sensitivity", study, out, seed, running, ("seeds", "shard", *RUNNING))
    space = plain_space("sensitivity", space)
    check_space("sensitivity", change, space)
    if method not in INDICES:
        raise Error(f"sensitivity: method is '{method}' (allowed: sobol, morris)")
    if whole("sensitivity: samples", samples) < LEAST:
        raise Error(f"sensitivity: samples is {samples} (allowed: {LEAST} or more)")
    if flow is not None and queue is not None:
        raise Error("sensitivity: a metric is of a flow or of a queue")
    if study.factors:
        raise Error(f"sensitivity: the study has factors, {', '.join(study.factors)} (allowed: parameters in their place)")
    sample = needed(f"SALib.sample.{method}", "sensitivity", "sensitivity")
    analyze = needed(f"SALib.analyze.{method}", "sensitivity", "sensitivity")
    problem = {"num_vars": len(space), "names": list(space), "bounds": [bounds(among) for among in space.values()]}
    if method == "sobol":
        drawn = sample.sample(problem, samples, calc_second_order=False, seed=seed)
    else:
        drawn = sample.sample(problem, samples, seed=seed)
    points = [{name: valued(among, x) for (name, among), x in zip(space.items(), row)} for row in drawn.tolist()]
    if method == "morris":
        points = stepped(points, drawn.tolist(), space, seed)
    rows = [tuple(changes(change, point).values()) for point in points]
    # A study refuses the same row twice.
    distinct = list(dict.fromkeys(rows))
    document = study.to_dict()
    listed = {address: [row[at] for row in distinct] for at, address in enumerate(change)}
    document["factors"] = {"zip": [listed]}
    results = Study(document, folder=study._native.folder)._done(out, **running)
    if results.missing:
        raise Error(f"sensitivity: {results._lack}; the same call tries them again")
    of_row = dict(zip(distinct, means(results, metric, flow, queue, len(distinct))))
    values = [of_row[row] for row in rows]
    numpy = needed("numpy", "sensitivity", "sensitivity")
    answers = numpy.array(values)
    if answers.std() == 0.0:
        raise Error(f"sensitivity: {metric} is {answers[0]:.6g} at all points, so it depends on nothing")
    if method == "sobol":
        # SALib takes a 0 for none, and its intervals are then others each time.
        found = analyze.analyze(problem, answers, calc_second_order=False, seed=seed + 1)
    else:
        found = analyze.analyze(problem, drawn, numpy.array(stretched(points, values, space)), seed=seed)
    indices = {name: {index: float(found[index][at]) for index in INDICES[method]} for at, name in enumerate(space)}
    return Sensitivity(method, metric, indices, points, values, results)


def bounds(among: Among) -> list[float]:
    if is_texts(among):
        return [0.0, float(len(among))]
    return [float(among[0]), float(among[1]) + (1.0 if is_whole(among) else 0.0)]


def valued(among: Among, x: float) -> Any:
    """What a number of the sampler's stands for."""
    if is_texts(among):
        return among[min(int(x), len(among) - 1)]
    return min(int(x), among[1]) if is_whole(among) else x


def count_of(among: Among) -> int:
    """How many values there are, of texts or whole numbers."""
    return len(among) if is_texts(among) else int(among[1]) - int(among[0]) + 1


def stepped(points: list[dict[str, Any]], drawn: list[list[float]], space: Mapping[str, Among], seed: int) -> list[dict[str, Any]]:
    """The points of Morris's trajectories with values of their own for lists and whole numbers.

    In a trajectory each parameter steps once, between two values. The sampler has four levels, with which values of a list would
    be left out; here the step is half the list, and begins at each value in turn that it can begin at.
    """
    length, draw = len(space) + 1, random.Random(seed)
    points = [dict(point) for point in points]
    for column, (name, among) in enumerate(space.items()):
        if not is_texts(among) and not is_whole(among):
            continue
        count, samples = count_of(among), len(points) // length
        step = count // 2
        places = range(count - step)
        begins = [places[at % len(places)] for at in range(samples)] if len(places) <= samples else draw.sample(places, samples)
        draw.shuffle(begins)
        for trajectory, begin in enumerate(begins):
            rows = range(trajectory * length, (trajectory + 1) * length)
            least = min(drawn[row][column] for row in rows)
            for row in rows:
                at = begin if drawn[row][column] == least else begin + step
                points[row][name] = among[at] if is_texts(among) else int(among[0]) + at
    return points


def stretched(points: list[dict[str, Any]], values: list[float], space: Mapping[str, Among]) -> list[float]:
    """The values as if each step of a trajectory had been the sampler's, of 2/3 of the range, with an effect in proportion."""
    length, found = len(space) + 1, list[float]()
    for row, (point, value) in enumerate(zip(points, values)):
        if row % length == 0:
            found.append(value)
            continue
        before = points[row - 1]
        moved = sum(moved_by(among, before[name], point[name]) for name, among in space.items())
        # A list of one value is nowhere to go.
        found.append(found[-1] + ((value - values[row - 1]) * STEP / moved if moved else 0.0))
    return found


STEP = 2 / 3
"""Of the range, by which SALib's four levels step."""


def moved_by(among: Among, before: Any, now: Any) -> float:
    """How far it is from one value to the other, of the way from the first to the last."""
    if is_texts(among):
        return abs(among.index(now) - among.index(before)) / max(len(among) - 1, 1)
    return abs(float(now) - float(before)) / width(among)


NO_METRICS = ("run", "scenario", "seed", "kind", "name", "digest", "end_state", "freezes")
"""Columns that are no number, or that say which run it is."""


def means(results: Results, metric: str, flow: str | None, queue: str | None, scenarios: int) -> list[float]:
    """The metric in each scenario, over what was asked for and over seeds."""
    table = results.runs
    # A text, or nothing at all, is no metric.
    factors = [one["name"] for one in results.plan["factors"]]
    if metric not in table.columns or metric in (*NO_METRICS, *factors):
        raise Error(f"sensitivity: no metric is named '{metric}' (allowed: the columns of Results.runs)")
    kind, name = ("flow", flow) if flow else ("queue", queue) if queue else ("run", "")
    groups: list[dict[str, str]] = [{one["name"]: one["group"] for one in scenario["flows"]} for scenario in results.plan["scenarios"]]
    found: list[list[float]] = [[] for _ in range(scenarios)]
    asked = [0] * scenarios
    scenarios_of: list[int] = table["scenario"]
    for scenario, of, called, value in zip(scenarios_of, table["kind"], table["name"], table[metric]):
        if of == kind and name in (called, groups[scenario].get(called)):
            asked[scenario] += 1
            found[scenario] += [value] if value is not None else []
    for scenario, values in enumerate(found):
        if not values or len(values) < asked[scenario]:
            who = f"the {kind} '{name}'" if name else "the run"
            has = f"has {metric} {len(values)} times of {asked[scenario]}" if values else f"has no {metric}"
            where = results.plan["scenarios"][scenario]["factors"]
            raise Error(f"sensitivity: {who} {has} in the world {', '.join(where)} (allowed: a metric that each run has in each world)")
    return [sum(values) / len(values) for values in found]
