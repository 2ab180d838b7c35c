# pyright: basic
# Its strict rules refuse what matplotlib leaves untyped; mypy holds this file strictly.
"""Figures of the field, drawn with matplotlib (``pip install 'sojourn[plot]'``).

    import sojourn as sj
    from sojourn import plot

    results = sj.Results("results/home-router-…")
    plot.delays(results, metric="rtt").figure.savefig("rtt.svg")

Each function draws into `ax`, or into a new figure, and returns its axes. Where a study has factors, ``where``
chooses: ``where={"path.queue": "fq_codel"}``. Means are over runs; nothing is smoothed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, cast

from ._native import ResultsError, Table
from ._results import Results, Run
from ._sensitivity import Sensitivity

try:
    import matplotlib.pyplot as plt
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.patches import Ellipse
    from numpy.typing import NDArray
except ImportError as error:
    raise ImportError("sojourn.plot needs matplotlib: pip install 'sojourn[plot]'") from error

__all__ = ["delays", "ellipses", "heat", "sensitivity", "series", "shares", "throughput_delay"]

Where = Mapping[str, str | Iterable[str]]
Numbers = NDArray[np.float64]

# Okabe and Ito's colours, which the colour-blind can tell apart.
COLOURS = ["#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#F0E442", "#000000"]


def series(
    results: Results | Run,
    metric: str,
    *,
    flow: str | Iterable[str] | None = None,
    queue: str | Iterable[str] | None = None,
    run: int = 0,
    states: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """A time series of one run: a line for each flow or queue.

    `metric` is a column with its unit, such as ``cwnd_pkts``. With `states`, bands behind the lines are the
    phases of the first flow's congestion control.
    """
    if isinstance(results, Results):
        table = results.series(flow=flow, queue=queue, metric=metric, run=run)
    else:
        table = results.series(flow=flow, queue=queue, metric=metric)
    column = only(table, metric)
    ax = axes(ax)
    times, values = numbers(table, "t_s"), numbers(table, column)
    names, phases = table["name"], cast(list[str | None], table["phase"])
    at = positions(names)
    drawn = [name for name in at if np.isfinite(values[at[name]]).any()]
    if not drawn:
        raise ResultsError(f"nothing that was asked for has {column}")
    if states:
        first = at[drawn[0]]
        bands(ax, times[first], [phases[row] for row in first])
    for colour, name in zip(cycle(len(drawn)), drawn):
        ax.plot(times[at[name]], values[at[name]], color=colour, label=name, linewidth=1.2)
    ax.set(xlabel="time (s)", ylabel=titled(column), xlim=(0, float(times.max())))
    ax.set_ylim(bottom=0)
    ax.legend(fontsize="small")
    return ax


def delays(
    results: Results | Run,
    metric: str = "rtt",
    *,
    flow: str | Iterable[str] | None = None,
    queue: str | Iterable[str] | None = None,
    by: str | None = None,
    where: Where | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Cumulative distributions of a delay, over all samples of all runs that are chosen.

    A line for each flow or queue, or with `by` for each value of that factor.
    """
    if isinstance(results, Results):
        table = results.delays(flow=flow, queue=queue, metric=metric, where=where)
    else:
        table = results.delays(flow=flow, queue=queue, metric=metric)
    if by is not None and by not in table.columns:
        raise ResultsError(f"by: no factor that varies is named '{by}'")
    if not len(table):
        raise ResultsError(f"nothing that was asked for has a distribution of {metric}")
    ax = axes(ax)
    high, samples = numbers(table, "high_ns") / 1e6, numbers(table, "samples")
    at = positions(table[by or "name"])
    for colour, name in zip(cycle(len(at)), at):
        rows = at[name]
        order = rows[np.argsort(high[rows], kind="stable")]
        share = np.cumsum(samples[order]) / samples[order].sum()
        ax.step(high[order], share, where="post", color=colour, label=name, linewidth=1.2)
    ax.set(xlabel=f"{metric} (ms)", ylabel="share of samples", ylim=(0, 1))
    ax.legend(fontsize="small")
    return ax


def throughput_delay(
    results: Results,
    *,
    delay: str = "owd_p95_ms",
    throughput: str = "goodput_mbps",
    by: str = "group",
    where: Where | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Pantheon's plot: delay to the left, throughput upwards, so that up and right is better.

    A small point is a flow of a run, a large one their mean. `by` is ``group`` (of flows) or a factor.
    """
    ax = axes(ax)
    for colour, name, points in clouds(results, delay, throughput, by, where):
        ax.scatter(points[:, 0], points[:, 1], s=10, color=colour, alpha=0.4, linewidths=0)
        x, y = points.mean(axis=0)
        ax.scatter(x, y, s=60, color=colour, label=name, edgecolors="black", linewidths=0.6)
    return better_up_and_right(ax, delay, throughput)


def ellipses(
    results: Results,
    *,
    delay: str = "owd_p95_ms",
    throughput: str = "goodput_mbps",
    by: str = "group",
    where: Where | None = None,
    sigmas: float = 1.0,
    ax: Axes | None = None,
) -> Axes:
    """Remy's plot (Winstein and Balakrishnan, SIGCOMM 2013, figure 4): for each group the mean of its flows, and
    the ellipse of one standard deviation of the two-dimensional normal distribution that fits them best."""
    ax = axes(ax)
    for colour, name, points in clouds(results, delay, throughput, by, where):
        x, y = points.mean(axis=0)
        ax.scatter(x, y, s=30, color=colour, label=name)
        if len(points) > 1:
            values, vectors = np.linalg.eigh(np.cov(points.T))
            width, height = 2 * sigmas * np.sqrt(np.maximum(values, 0))
            angle = math.degrees(math.atan2(vectors[1, 0], vectors[0, 0]))
            centre = (float(x), float(y))
            ax.add_patch(Ellipse(centre, float(width), float(height), angle=angle, color=colour, alpha=0.25))
    ax.autoscale_view()
    return better_up_and_right(ax, delay, throughput)


def shares(
    results: Results, by: str, *, metric: str = "goodput_mbps", where: Where | None = None, ax: Axes | None = None
) -> Axes:
    """Bars of what each group of flows gets of all flows' `metric`, one bar for each value of the factor `by`."""
    rows = flows(results, where)
    ax = axes(ax)
    groups = list(dict.fromkeys(row["group"] for row in rows))
    values = list(dict.fromkeys(factor(row, by) for row in rows))
    totals = np.zeros((len(groups), len(values)))
    for row in rows:
        totals[groups.index(row["group"]), values.index(factor(row, by))] += row[metric_of(row, metric)] or 0.0
    share = totals / np.maximum(totals.sum(axis=0), 1e-300)
    below = np.zeros(len(values))
    for colour, group, part in zip(cycle(len(groups)), groups, share):
        ax.bar(values, part, bottom=below, color=colour, label=group)
        below += part
    ax.set(ylabel=f"share of {metric}", xlabel=by, ylim=(0, 1))
    ax.legend(fontsize="small")
    return ax


def heat(
    results: Results,
    x: str,
    y: str,
    metric: str,
    *,
    flow: str | None = None,
    queue: str | None = None,
    where: Where | None = None,
    ax: Axes | None = None,
) -> Axes:
    """The mean of a metric over two factors: of a group of flows, of a queue, or of the runs."""
    kind = "flow" if flow else "queue" if queue else "run"
    rows = [
        row
        for row in chosen(results, where)
        if row["kind"] == kind and (flow is None or flow in (row["name"], row["group"]))
        and (queue is None or row["name"] == queue)
    ]  # fmt: skip
    if not rows:
        raise ResultsError(f"no {kind} is named '{flow or queue}'")
    across = list(dict.fromkeys(factor(row, x) for row in rows))
    up = list(dict.fromkeys(factor(row, y) for row in rows))
    sums, counts = np.zeros((len(up), len(across))), np.zeros((len(up), len(across)))
    for row in rows:
        value = row[metric_of(row, metric)]
        if value is not None:
            sums[up.index(factor(row, y)), across.index(factor(row, x))] += value
            counts[up.index(factor(row, y)), across.index(factor(row, x))] += 1
    means = np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)
    ax = axes(ax)
    image = ax.imshow(means, origin="lower", aspect="auto", cmap="viridis")
    ax.set_xticks(range(len(across)), across)
    ax.set_yticks(range(len(up)), up)
    ax.set(xlabel=x, ylabel=y)
    middle = float(np.nanmean(means)) if counts.any() else 0.0
    for (row_at, column_at), mean in np.ndenumerate(means):
        if np.isfinite(mean):
            colour = "white" if mean < middle else "black"
            ax.text(column_at, row_at, f"{mean:.3g}", ha="center", va="center", color=colour, fontsize="small")
    ax.figure.colorbar(image, ax=ax, label=titled(metric))
    return ax


def sensitivity(found: Sensitivity, *, ax: Axes | None = None) -> Axes:
    """Bars of what each parameter does to a metric, with 95 % intervals; for Morris the size of its effects."""
    ax = axes(ax)
    places = np.arange(len(found.indices))
    drawn = {"ST": "in all", "S1": "alone"} if found.method == "sobol" else {"mu_star": "size of effects"}
    width = 0.8 / len(drawn)
    for at, (colour, (index, label)) in enumerate(zip(cycle(len(drawn)), drawn.items())):
        values = [of[index] for of in found.indices.values()]
        errors = [of[f"{index}_conf"] for of in found.indices.values()]
        ax.barh(places + at * width, values, width, xerr=errors, color=colour, label=label, capsize=3)
    ax.set_yticks(places + width * (len(drawn) - 1) / 2, list(found.indices))
    ax.invert_yaxis()
    ax.set(xlabel=f"share of the variance of {found.metric}" if found.method == "sobol" else titled(found.metric))
    ax.legend(fontsize="small")
    return ax


def axes(ax: Axes | None) -> Axes:
    return ax if ax is not None else plt.subplots(figsize=(6.4, 4), layout="constrained")[1]


def cycle(count: int) -> list[str]:
    return [COLOURS[at % len(COLOURS)] for at in range(count)]


def numbers(table: Table, column: str) -> Numbers:
    return np.frombuffer(table.numbers(column))


def positions(names: list[str]) -> dict[str, NDArray[np.intp]]:
    """For each name its rows."""
    rows: dict[str, list[int]] = {}
    for at, name in enumerate(names):
        rows.setdefault(name, []).append(at)
    return {name: np.array(at, dtype=np.intp) for name, at in rows.items()}


def only(table: Table, metric: str) -> str:
    """The one column of a time series that is meant."""
    fixed = table.columns.index("phase") + 1
    columns = table.columns[fixed:]
    if len(columns) != 1:
        raise ResultsError(f"'{metric}' is several columns (allowed: one of {', '.join(columns)})")
    return columns[0]


def titled(column: str) -> str:
    """``rtt_p95_ms`` as ``rtt p95 (ms)``."""
    name, _, unit = column.rpartition("_")
    units = {"ms": "ms", "s": "s", "mbps": "Mbit/s", "pkts": "packets", "bytes": "bytes"}
    return f"{name.replace('_', ' ')} ({units[unit]})" if unit in units and name else column.replace("_", " ")


def bands(ax: Axes, times: Numbers, phases: list[str | None]) -> None:
    """A band for each time that a congestion control is in a phase."""
    named = list(dict.fromkeys(phase for phase in phases if phase))
    colours = dict(zip(named, plt.get_cmap("Pastel1").colors * 4))  # type: ignore[attr-defined]
    began, seen = 0.0, set[str]()
    for at, phase in enumerate(phases):
        if at + 1 < len(phases) and phases[at + 1] == phase:
            continue
        if phase:
            label = None if phase in seen else phase
            ax.axvspan(began, float(times[at]), color=colours[phase], alpha=0.5, linewidth=0, label=label)
            seen.add(phase)
        began = float(times[at])


def chosen(results: Results, where: Where | None) -> list[dict[str, Any]]:
    """The rows of the runs that are chosen, each with the group of its flow."""
    table = results.runs.to_dict()
    names = {name: ([values] if isinstance(values, str) else list(values)) for name, values in (where or {}).items()}
    for name in names:
        if name not in table:
            raise ResultsError(f"where: no factor is named '{name}'")
    groups = [{flow["name"]: flow["group"] for flow in one["flows"]} for one in results.plan["scenarios"]]
    rows: list[dict[str, Any]] = []
    for at in range(len(table["run"])):
        row = {name: values[at] for name, values in table.items()}
        if all(row[name] in values for name, values in names.items()):
            row["group"] = groups[row["scenario"]].get(row["name"], row["name"])
            rows.append(row)
    return rows


def flows(results: Results, where: Where | None) -> list[dict[str, Any]]:
    return [row for row in chosen(results, where) if row["kind"] == "flow"]


def factor(row: dict[str, Any], name: str) -> str:
    if not isinstance(row.get(name), str):
        raise ResultsError(f"no factor is named '{name}'")
    return str(row[name])


def metric_of(row: dict[str, Any], name: str) -> str:
    if name not in row:
        raise ResultsError(f"no metric is named '{name}'")
    return name


def clouds(
    results: Results, delay: str, throughput: str, by: str, where: Where | None
) -> list[tuple[str, str, NDArray[np.float64]]]:
    """For each group its colour, its name, and its flows' delays and throughputs."""
    points: dict[str, list[tuple[float, float]]] = {}
    for row in flows(results, where):
        point = (row[metric_of(row, delay)], row[metric_of(row, throughput)])
        if None not in point:
            points.setdefault(factor(row, by), []).append(point)
    if not points:
        raise ResultsError(f"no flow that was asked for has {delay} and {throughput}")
    return [(colour, name, np.array(points[name])) for colour, name in zip(cycle(len(points)), points)]


def better_up_and_right(ax: Axes, delay: str, throughput: str) -> Axes:
    ax.set(xlabel=f"{titled(delay)}, less is to the right", ylabel=titled(throughput))
    ax.set_ylim(bottom=0)
    if not ax.xaxis_inverted():
        ax.invert_xaxis()
    ax.legend(fontsize="small")
    return ax
