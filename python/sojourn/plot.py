# pyright: basic
# Its strict rules refuse what matplotlib leaves untyped; mypy holds this file strictly.
"""Figures of the field, drawn with matplotlib (``pip install 'sojourn[plot]'``).

    import sojourn as sj
    from sojourn import plot

    results = sj.Results("results/home-router-…")
    plot.delays(results, metric="rtt").figure.savefig("rtt.svg")

Each function draws into `ax`, or into a new figure, and returns its axes. Where a study has factors, ``where``
chooses: ``where={"path.queue": "fq_codel"}``. Means are over runs; nothing is smoothed. If runs have no result, or
have not the metric that is drawn, the figure says how many do: a mean over the others alone would be too good.
"""

from __future__ import annotations

import difflib
import math
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from ._given import check_text, refused, whole
from ._native import ResultsError, Table
from ._results import Results, Run, choices
from ._sensitivity import Sensitivity

try:
    import matplotlib.pyplot as plt
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import Ellipse
    from numpy.typing import NDArray
except ImportError as error:
    raise ImportError("sojourn.plot needs matplotlib: pip install 'sojourn[plot]'") from error

__all__ = ["delays", "ellipses", "heat", "sensitivity", "series", "shares", "throughput_delay"]

Where = Mapping[str, str | int | Iterable[str | int]]
"""Values of factors, or of ``seed``, ``scenario``, ``run``, ``name`` and ``group``."""
Numbers = NDArray[np.float64]

UNENDED = ("completion", "fct")
"""Delays of what had begun and may not have ended when the run did; ``completion_open`` has how old that was."""

# Okabe and Ito's colours, which the colour-blind can tell apart.
COLOURS = ["#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#F0E442", "#000000"]
# What tells lines, points and bars apart once the colours are used up.
DASHES = ["-", "--", ":", "-."]
MARKERS = ["o", "s", "^", "D", "v", "P", "X", "*"]
HATCHES = ["", "//", "..", "xx", "--", "++", "oo", "||"]

CROWD = 8
"""More entries of a legend have no room over the data."""

ENTRY = 13
"""How high an entry is, in points."""

LETTER = 0.6
"""How wide a letter is, of its height."""


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
    phases of the first flow's congestion control; the legend names both.
    """
    check_text("metric", metric, "cwnd_pkts")
    if whole("run", run) and isinstance(results, Run):
        raise ResultsError(f"run is {run}, but a Run is one run (allowed: 0, or Results, which have several)")
    if isinstance(results, Run):
        table = results.series(flow=flow, queue=queue, metric=metric)
    else:
        table = readable(results).series(flow=flow, queue=queue, metric=metric, run=run)
    column = only(table, metric)
    times, values = numbers(table, "t_s"), numbers(table, column)
    names, phases = table["name"], cast(list[str | None], table["phase"])
    at = positions(names)
    drawn = [name for name in at if np.isfinite(values[at[name]]).any()]
    if not drawn:
        raise ResultsError(f"nothing that was asked for has {column}")
    first = at[drawn[0]]
    named = sorted({f"{drawn[0]}: {phases[row]}" for row in first if states and phases[row]})
    ax = axes(ax, beside([*named, *drawn], is_outside=True))
    if states:
        bands(ax, drawn[0], times[first], [phases[row] for row in first])
    for style, name in zip(lines(len(drawn)), drawn):
        ax.plot(times[at[name]], values[at[name]], label=name, linewidth=1.2, **style)
    ax.set(xlabel="time (s)", ylabel=titled(column), xlim=(0, float(times.max())))
    ax.set_ylim(bottom=0)
    legend(ax, is_outside=True)
    return noted(ax, alike(len(drawn), lines))


def delays(
    results: Results | Run,
    metric: str = "rtt",
    *,
    flow: str | Iterable[str] | None = None,
    queue: str | Iterable[str] | None = None,
    by: str | None = None,
    where: Mapping[str, str | Iterable[str]] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Cumulative distributions of a delay, over all samples of all runs that are chosen.

    A line for each flow or queue, or with `by` for each value of that factor. Of ``completion`` and ``fct`` they are
    Kaplan and Meier's estimate, and end at the share that had ended: the legend has how many did.
    """
    check_text("metric", metric, "rtt")
    note, open_metric = "", f"{metric}_open"
    wanted = [metric, open_metric] if metric in UNENDED else [metric]
    if where and isinstance(results, Run):
        raise ResultsError("where chooses among scenarios, but a Run is of one (allowed: Results, which have several)")
    if isinstance(results, Run):
        table = results.delays(flow=flow, queue=queue, metric=wanted)
    else:
        table = readable(results).delays(flow=flow, queue=queue, metric=wanted, where=where)
        note = seeds_of(results, choices(where))
    if by is not None and by not in table.columns:
        raise ResultsError(f"by: no factor that varies is named '{by}'")
    if not len(table):
        raise ResultsError(f"nothing that was asked for has a distribution of {metric}")
    low, high, samples = numbers(table, "low_ns") / 1e6, numbers(table, "high_ns") / 1e6, numbers(table, "samples")
    is_open = np.array([one == open_metric for one in table["metric"]], dtype=bool)
    at = positions(table[by or "name"])
    ax = axes(ax, beside(at))
    for style, name in zip(lines(len(at)), at):
        rows = at[name]
        order = rows[np.argsort(high[rows], kind="stable")]
        known, unended = order[~is_open[order]], order[is_open[order]]
        ended, all_of = samples[known].sum(), samples[rows].sum()
        label = name if ended == all_of else f"{name} ({ended:.0f} of {all_of:.0f} ended)"
        share = shares_ended(low[known], samples[known], high[unended], samples[unended])
        # No sample is below the first bucket.
        ax.step([*low[known[:1]], *high[known]], [*np.zeros(len(known[:1])), *share], where="post", label=label, linewidth=1.2, **style)
    what = "transfers" if metric in UNENDED else "samples"
    ax.set(xlabel=titled(f"{metric}_ms"), ylabel=f"share of {what}", ylim=(0, 1))
    legend(ax)
    return noted(ax, note, alike(len(at), lines))


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

    A small point is a flow of a run, a large one their mean. `by` is ``group`` (of flows) or a factor. Where flows lack
    one of both metrics, the legend has of how many the mean is.
    """
    found, note = clouds(results, delay, throughput, by, where)
    ax = axes(ax, beside(found))
    for style, (name, points) in zip(dots(len(found)), found.items()):
        ax.scatter(points[:, 0], points[:, 1], s=10, alpha=0.4, linewidths=0, **style)
        x, y = points.mean(axis=0)
        ax.scatter(x, y, s=60, label=name, edgecolors="black", linewidths=0.6, **style)
    return noted(better_up_and_right(ax, delay, throughput), note, alike(len(found), dots))


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
    the ellipse of one standard deviation of the two-dimensional normal distribution that fits them best.

    Where flows lack one of both metrics, the legend has of how many the mean is.
    """
    if not isinstance(cast(object, sigmas), int | float):
        raise refused("sigmas", sigmas, "a number above 0")
    if not 0 < sigmas < math.inf:
        raise ResultsError(f"sigmas is {sigmas} (allowed: a number above 0)")
    found, note = clouds(results, delay, throughput, by, where)
    ax = axes(ax, beside(found))
    for style, (name, points) in zip(dots(len(found)), found.items()):
        x, y = points.mean(axis=0)
        ax.scatter(x, y, s=30, label=name, **style)
        if len(points) > 1:
            values, vectors = np.linalg.eigh(np.cov(points.T))
            width, height = 2 * sigmas * np.sqrt(np.maximum(values, 0))
            angle = math.degrees(math.atan2(vectors[1, 0], vectors[0, 0]))
            centre = (float(x), float(y))
            ax.add_patch(Ellipse(centre, float(width), float(height), angle=angle, color=style["color"], alpha=0.25))
    ax.autoscale_view()
    return noted(better_up_and_right(ax, delay, throughput), note, alike(len(found), dots))


def shares(
    results: Results, by: str, *, metric: str = "goodput_mbps", where: Where | None = None, ax: Axes | None = None
) -> Axes:
    """Bars of what each group of flows gets of all flows' `metric`, one bar for each value of the factor `by`.

    Groups without the metric are left out, and so are values for which no flow has it. Where some flows of a group
    lack it, the legend has how many it is of.
    """
    rows = chosen(results, "flow", where, ["group", by], [metric])
    is_there = np.isfinite(rows.values[metric])
    if not is_there.any():
        raise ResultsError(f"no flow that was asked for has {metric}")
    labels, note = lacking(rows, "group", is_there, [metric])
    group_of, value_of = np.array(rows.texts["group"])[is_there], np.array(rows.texts[by])[is_there]
    groups, values = list(dict.fromkeys(group_of.tolist())), list(dict.fromkeys(value_of.tolist()))
    totals = np.zeros((len(groups), len(values)))
    places = ([groups.index(name) for name in group_of], [values.index(value) for value in value_of])
    np.add.at(totals, places, rows.values[metric][is_there])
    share = totals / np.maximum(totals.sum(axis=0), 1e-300)
    ax = axes(ax, beside(labels.values(), is_outside=True))
    below = np.zeros(len(values))
    for style, group, part in zip(bars(len(groups)), groups, share):
        ax.bar(range(len(values)), part, bottom=below, label=labels[group], **style)
        below += part
    ax.set(ylabel=f"share of {worded(metric)}", xlabel=by, ylim=(0, 1))
    legend(ax, is_outside=True)
    under(ax, values)
    return noted(ax, note, alike(len(groups), bars))


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
    """The mean of a metric over two factors: of a group of flows, of a queue, or of the runs.

    Where some have no value, the cell says how many have one, in place of a mean.
    """
    kind = "flow" if flow else "queue" if queue else "run"
    rows = chosen(results, kind, where, [x, y], [metric], flow or queue)
    is_there = np.isfinite(rows.values[metric])
    if not is_there.any():
        raise ResultsError(f"no {kind} that was asked for has {metric}")
    across, up = list(dict.fromkeys(rows.texts[x])), list(dict.fromkeys(rows.texts[y]))
    sums, counts, planned = (np.zeros((len(up), len(across))) for _ in range(3))
    places = (np.array([up.index(value) for value in rows.texts[y]]), np.array([across.index(value) for value in rows.texts[x]]))
    np.add.at(planned, places, 1)
    places = (places[0][is_there], places[1][is_there])
    np.add.at(sums, places, rows.values[metric][is_there])
    np.add.at(counts, places, 1)
    is_whole = (counts == planned) & (planned > 0)
    means = np.divide(sums, counts, out=np.full_like(sums, np.nan), where=is_whole)
    texts = {at: short(float(means[at])) if is_whole[at] else f"{counts[at]:.0f} of {planned[at]:.0f}" for at in np.ndindex(means.shape) if planned[at]}
    longest = max(map(len, texts.values()))
    # Beside the cells are the names of the rows and the scale of colours.
    ax = axes(ax, (1.5 + max(map(len, up)) / 12 + len(across) * longest / 13, 1.2 + len(up) / 5))
    image = ax.imshow(means, origin="lower", aspect="auto", cmap="viridis")
    ax.set_yticks(range(len(up)), up)
    ax.set(xlabel=x, ylabel=y)
    middle = float(means[is_whole].mean()) if is_whole.any() else 0.0
    if is_whole.any():
        ax.figure.colorbar(image, ax=ax, label=titled(metric))
    under(ax, across)
    across_pt, up_pt = room(ax)
    size = min(8.0, across_pt / len(across) / (longest + 1) / LETTER, up_pt / len(up) / 1.2)
    for (row_at, column_at), text in texts.items():
        colour = "white" if is_whole[row_at, column_at] and means[row_at, column_at] < middle else "black"
        ax.text(column_at, row_at, text, ha="center", va="center", color=colour, fontsize=size)
    return noted(ax, rows.note, f"n of m: so many have {titled(metric)}" if not is_whole[planned > 0].all() else "")


def sensitivity(found: Sensitivity, *, ax: Axes | None = None) -> Axes:
    """Bars of what each parameter does to a metric, with 95 % intervals; for Morris the size of its effects."""
    if not isinstance(cast(object, found), Sensitivity):
        raise refused("found", found, "what sojourn.sensitivity gives")
    ax = axes(ax)
    places = np.arange(len(found.indices))
    drawn = {"ST": "in all", "S1": "alone"} if found.method == "sobol" else {"mu_star": "size of effects"}
    width = 0.8 / len(drawn)
    for at, (colour, (index, label)) in enumerate(zip(COLOURS, drawn.items())):
        values = [of[index] for of in found.indices.values()]
        errors = [of[f"{index}_conf"] for of in found.indices.values()]
        ax.barh(places + at * width, values, width, xerr=errors, color=colour, label=label, capsize=3)
    ax.set_yticks(places + width * (len(drawn) - 1) / 2, list(found.indices))
    ax.invert_yaxis()
    ax.set(xlabel=f"share of the variance of {worded(found.metric)}" if found.method == "sobol" else titled(found.metric))
    ax.legend(fontsize="small")
    return ax


def axes(ax: Axes | None, least: tuple[float, float] = (0, 0)) -> Axes:
    """Those that were given, or those of a figure of at least this many inches."""
    size = (max(6.4, least[0]), max(4.0, least[1]))
    if not isinstance(cast(object, ax), Axes | None):
        raise refused("ax", ax, "axes of matplotlib")
    return ax if ax is not None else plt.subplots(figsize=size, layout="constrained")[1]


def beside(names: Iterable[str], *, is_outside: bool = False) -> tuple[float, float]:
    """How large a figure is in which these have room in a legend."""
    longest, entries = max(map(len, names := list(names))), len(names)
    if not (is_outside or entries > CROWD):
        return (0, 0)
    return (5.8 + math.ceil(entries / CROWD / 2.5) * (0.6 + longest * 0.08), 0)


def lines(count: int) -> list[dict[str, Any]]:
    """Styles of so many lines: colours, then dashes, then marks."""
    marks: list[dict[str, Any]] = [{}, *({"marker": marker, "markevery": 0.1, "markersize": 4} for marker in MARKERS)]
    return styles(count, [{"linestyle": dash, **mark} for mark in marks for dash in DASHES])


def dots(count: int) -> list[dict[str, Any]]:
    return styles(count, [{"marker": marker} for marker in MARKERS])


def bars(count: int) -> list[dict[str, Any]]:
    return styles(count, [{"hatch": hatch} for hatch in HATCHES])


def styles(count: int, others: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each colour with the first of the others, then each with the second; from the beginning once all are used up."""
    all_of = [{"color": colour, **other} for other in others for colour in COLOURS]
    return [all_of[at % len(all_of)] for at in range(count)]


def alike(count: int, style: Callable[[int], list[dict[str, Any]]]) -> str:
    """What is noted if there are more than can be told apart."""
    unlike = len({str(one) for one in style(count)})
    return f"from the {unlike + 1}th of {count} on they look as the first ones do" if unlike < count else ""


def legend(ax: Axes, *, is_outside: bool = False) -> None:
    """Beside the axes, if it would hide data and the figure makes room for it."""
    entries = len(ax.get_legend_handles_labels()[1])
    if not (is_outside or entries > CROWD) or ax.figure.figure.get_layout_engine() is None:
        ax.legend(fontsize="small")
        return
    columns = math.ceil(entries * ENTRY / room(ax)[1])
    ax.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1.01, 1), borderaxespad=0, ncols=columns)


def room(ax: Axes) -> tuple[float, float]:
    """How wide and high the axes are, in points."""
    figure = ax.figure.figure
    if engine := figure.get_layout_engine():
        engine.execute(figure)
    box = ax.get_window_extent()
    return box.width / figure.dpi * 72, box.height / figure.dpi * 72


def under(ax: Axes, names: list[str]) -> None:
    """The names of the places 0, 1, 2 … below the axes, in lines that fit, or aslant."""
    letters = room(ax)[0] / len(names) / float(plt.rcParams["font.size"]) / LETTER
    broken = [textwrap.wrap(name, max(int(letters) - 1, 1), break_long_words=False, break_on_hyphens=False) for name in names]
    if max(len(line) for name in broken for line in name) < letters and max(map(len, broken)) <= 4:
        ax.set_xticks(range(len(names)), ["\n".join(name) for name in broken])
        return
    # The tick is where the name ends.
    ax.set_xticks(range(len(names)), [textwrap.fill(name, 30) for name in names], rotation=45, ha="right", rotation_mode="anchor")


def short(number: float) -> str:
    """Three digits, and all those before the point."""
    return f"{number:.0f}" if 100 <= abs(number) < 1e6 else f"{number:.3g}"


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


UNITS = {"ms": "ms", "per_s": "1/s", "s": "s", "mbps": "Mbit/s", "pkts": "packets", "bytes": "bytes", "fps": "frames/s"}


def titled(column: str) -> str:
    """``rtt_p95_ms`` as ``rtt p95 (ms)``."""
    for suffix, unit in UNITS.items():
        if column.endswith(f"_{suffix}"):
            return f"{worded(column)} ({unit})"
    return worded(column)


def worded(column: str) -> str:
    """``rtt_p95_ms`` as ``rtt p95``."""
    suffix = next((f"_{unit}" for unit in UNITS if column.endswith(f"_{unit}")), "")
    return column.removesuffix(suffix).replace("_", " ")


def bands(ax: Axes, flow: str, times: Numbers, phases: list[str | None]) -> None:
    """A band for each time that the congestion control of the flow is in a phase."""
    named = list(dict.fromkeys(phase for phase in phases if phase))
    colours = dict(zip(named, plt.get_cmap("Pastel1").colors * 4))  # type: ignore[attr-defined]
    began, seen = 0.0, set[str]()
    for at, phase in enumerate(phases):
        if at + 1 < len(phases) and phases[at + 1] == phase:
            continue
        if phase:
            label = None if phase in seen else f"{flow}: {phase}"
            ax.axvspan(began, float(times[at]), color=colours[phase], alpha=0.5, linewidth=0, label=label)
            seen.add(phase)
        began = float(times[at])


NO_METRICS = ("run", "scenario", "seed", "kind", "name", "digest", "end_state", "freezes")


class Rows(NamedTuple):
    """What was asked for of the rows that were chosen."""

    texts: dict[str, list[str]]
    values: dict[str, Numbers]
    """Not-a-number where there is none."""
    note: str


def chosen(
    results: Results, kind: str, where: Where | None, by: list[str], metrics: list[str], name: str | None = None
) -> Rows:
    """Columns of the flows, queues or runs that are chosen; of a table of some hundred columns no others are read."""
    if not isinstance(cast(object, results), Results):
        raise refused("results", results, "Results, which study.run and sojourn.Results give")
    plan, table = results.plan, results.runs
    factors = [str(one["name"]) for one in plan["factors"]]
    wanted = choices(where)
    for factor in by:
        known("factor", factor, factors + ["group"])
    for metric in metrics:
        known("metric", metric, [column for column in table.columns if column not in (*NO_METRICS, *factors)])
    if not len(table):
        raise ResultsError(f"there is nothing to draw: {results._lack}")
    groups = [{flow["name"]: flow["group"] for flow in one["flows"]} for one in plan["scenarios"]]
    names, scenarios = table["name"], numbers(table, "scenario").astype(np.intp)
    keep = np.array([one == kind for one in table["kind"]], dtype=bool)

    def column(named: str) -> list[str]:
        if named == "group":
            return [groups[scenario].get(name, name) for scenario, name in zip(scenarios.tolist(), names)]
        return names if named == "name" else list(map(str, table[named]))

    for named, values in wanted.items():
        known("factor", named, [*factors, "group", "name", "run", "scenario", "seed"], "where: ")
        texts = column(named)
        for value in values:
            known(f"value of '{named}'", value, allowed_values(results, named, texts), "where: ")
        asked = set(values)
        keep &= np.array([text in asked for text in texts], dtype=bool)
    if name is not None:
        grouped = column("group") if kind == "flow" else names
        of_kind = [row for row, one in enumerate(table["kind"]) if one == kind]
        known(kind, name, list(dict.fromkeys([grouped[row] for row in of_kind] + [names[row] for row in of_kind])))
        keep &= np.array([name in pair for pair in zip(names, grouped)], dtype=bool)
    at = np.flatnonzero(keep)
    if not len(at):
        raise ResultsError(f"no {kind} is all of what was asked for")
    texts_by = {one: [texts[row] for row in at] for one in by for texts in [column(one)]}
    return Rows(texts_by, {metric: numbers(table, metric)[at] for metric in metrics}, seeds_of(results, wanted))


def allowed_values(results: Results, named: str, texts: list[str]) -> list[str]:
    """Those of a factor that are planned, though they have no runs yet."""
    planned: list[list[str]] = [one["values"] for one in results.plan["factors"] if one["name"] == named]
    if named == "seed":
        planned = [list(map(str, results.plan["seeds"]))]
    return planned[0] if planned else list(dict.fromkeys(texts))


def readable(results: Results) -> Results:
    if not isinstance(cast(object, results), Results):
        raise refused("results", results, "Results, or a Run of sojourn.simulate")
    return results


def known(what: str, name: str, names: list[str], before: str = "") -> None:
    if not isinstance(cast(object, name), str):
        raise refused(f"{before}{what}", name, f"a text such as '{names[0]}'" if names else "a text")
    if name in names:
        return
    near = difflib.get_close_matches(name, names, 1)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    # A list of several hundred would hide the message.
    allowed = f" (allowed: {', '.join(names) or 'none'})" if len(names) <= 20 else " (allowed: what Results.runs.columns lists)"
    raise ResultsError(f"{before}no {what} is named '{name}'{hint}{allowed}")


def seeds_of(results: Results, where: Mapping[str, list[str]]) -> str:
    """Over how many seeds the chosen worlds are, if runs of them have no result."""
    plan, missing = results.plan, set(results.missing)
    if not missing:
        return ""
    names = [one["name"] for one in plan["factors"]]
    there: dict[int, int] = {}
    planned = 0
    for run, one in enumerate(plan["runs"]):
        of = {**dict(zip(names, plan["scenarios"][one["scenario"]]["factors"])), "seed": str(one["seed"])}
        if all(of[name] in values for name, values in where.items() if name in of):
            there[one["scenario"]] = there.get(one["scenario"], 0) + (run not in missing)
            planned += 1
    if not there or sum(there.values()) == planned:
        return ""
    least, most = min(there.values()), max(there.values())
    count = str(least) if least == most else f"{least} to {most}"
    return f"over {count} of {planned // len(there)} seeds"


def noted(ax: Axes, *notes: str) -> Axes:
    if note := "; ".join(note for note in notes if note):
        ax.set_title(textwrap.fill(note, 70), loc="right", fontsize="small")
    return ax


def lacking(
    rows: Rows, by: str, is_there: NDArray[np.bool_], metrics: Sequence[str]
) -> tuple[dict[str, str], str]:
    """For each value of `by` its name, with how many of its flows have all `metrics` if not all do, and what is to be noted.

    Flows of a group of which none ever has them are not counted: most often they are nothing that these could have.
    """
    found = {group: bool(is_there[at].any()) for group, at in positions(rows.texts["group"]).items()}
    can_have = np.array([found[group] for group in rows.texts["group"]], dtype=bool)

    def missing(of: NDArray[np.bool_], word: str) -> str:
        lacked = [metric for metric in metrics if not np.isfinite(rows.values[metric][of]).all()]
        return f" {word} ".join(map(titled, lacked))

    labels: dict[str, str] = {}
    for name, at in positions(rows.texts[by]).items():
        there, planned = int(is_there[at].sum()), int(can_have[at].sum())
        labels[name] = name if there == planned else f"{name} ({there} of {planned})"
    lost = int(can_have.sum() - is_there.sum())
    notes = [rows.note] if rows.note else []
    if lost:
        notes.append(f"{lost} of {int(can_have.sum())} flows lack {missing(can_have, 'and')}")
    if never := [group for group, has in found.items() if not has]:
        notes.append(f"none of {', '.join(never)} has {missing(~can_have, 'or')}")
    return labels, "; ".join(notes)


def shares_ended(low: Numbers, samples: Numbers, open_ages: Numbers, open_samples: Numbers) -> Numbers:
    """The share that has ended by each bucket, by Kaplan and Meier: what had not ended counts up to its age.

    `low` and `open_ages` are in ascending order. One that is as old as the bucket still counts, as in ``sojourn_metrics``.
    """
    gone = np.concatenate([[0.0], np.cumsum(open_samples)])[np.searchsorted(open_ages, low, "left")]
    at_risk = samples.sum() + open_samples.sum() - gone - (np.cumsum(samples) - samples)
    return cast(Numbers, 1 - np.cumprod(1 - samples / at_risk))


def clouds(
    results: Results, delay: str, throughput: str, by: str, where: Where | None
) -> tuple[dict[str, NDArray[np.float64]], str]:
    """For each group its flows' delays and throughputs; and over how many seeds and flows."""
    rows = chosen(results, "flow", where, [by, "group"], [delay, throughput])
    points = np.column_stack([rows.values[delay], rows.values[throughput]])
    is_there = np.isfinite(points[:, 0]) & np.isfinite(points[:, 1])
    there = np.flatnonzero(is_there)
    if not len(there):
        raise ResultsError(f"no flow that was asked for has {delay} and {throughput}")
    labels, note = lacking(rows, by, is_there, (delay, throughput))
    points, at = points[there], positions([rows.texts[by][row] for row in there])
    return {labels[name]: points[rows_of] for name, rows_of in at.items()}, note


def better_up_and_right(ax: Axes, delay: str, throughput: str) -> Axes:
    ax.set(xlabel=f"{titled(delay)}, less is to the right", ylabel=titled(throughput))
    ax.set_ylim(bottom=0)
    if not ax.xaxis_inverted():
        ax.invert_xaxis()
    legend(ax)
    return ax
