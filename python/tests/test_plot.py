from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest

import sojourn as sj

matplotlib.use("Agg")

from matplotlib import pyplot as plt  # noqa: E402
from matplotlib.patches import Ellipse  # noqa: E402

from sojourn import plot  # noqa: E402


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    plt.close("all")


def labels(ax: plt.Axes) -> list[str]:
    legend = ax.get_legend()
    assert legend is not None
    ax.figure.canvas.draw()
    return [text.get_text() for text in legend.get_texts()]


def test_a_time_series_has_the_numbers_of_the_table_and_bands_of_phases(results: sj.Results) -> None:
    ax = plot.series(results, "cwnd_pkts", flow="bbr", run=3)
    table = results.series(flow="bbr.1", metric="cwnd_pkts", run=3)
    line = ax.get_lines()[0]
    assert list(line.get_ydata()) == table["cwnd_pkts"] and list(line.get_xdata()) == table["t_s"]
    assert set(labels(ax)) == {"bbr.1", "bbr.2", *(f"bbr.1: {phase}" for phase in table["phase"])}
    assert ax.get_ylabel() == "cwnd (packets)"
    assert "bbr.1: STARTUP" not in labels(plot.series(results, "cwnd_pkts", flow="bbr", states=False))


def test_a_run_in_memory_is_drawn_too(study: sj.Study) -> None:
    run = sj.simulate(study.scenarios[0])
    assert labels(plot.series(run, "cwnd_pkts", flow="cubic"))[-1] == "cubic"
    assert labels(plot.delays(run, "rtt")) == ["cubic", "bbr.1", "bbr.2"]


def test_a_distribution_reaches_its_quantiles(results: sj.Results) -> None:
    run = sj.simulate(sj.Study.from_toml(results.study).scenarios[0])
    ax = plot.delays(run, "rtt", flow="cubic")
    x, y = (np.asarray(data) for data in ax.get_lines()[0].get_data())
    assert y[-1] == pytest.approx(1) and (np.diff(y) >= 0).all()
    p95 = x[np.searchsorted(y, 0.95)]
    assert p95 == pytest.approx(run.flows["cubic"]["rtt_p95_ms"], rel=0.01)
    assert labels(plot.delays(results, "rtt", by="path.queue")) == ["pfifo limit 50", "fq_codel"]


def test_points_are_flows_and_better_is_up_and_right(results: sj.Results) -> None:
    ax = plot.throughput_delay(results, delay="rtt_p95_ms", where={"path.queue": "fq_codel"})
    assert labels(ax) == ["cubic", "bbr"] and ax.xaxis_inverted()
    small, large = ax.collections[:2]
    points = np.asarray(small.get_offsets())
    assert len(points) == 3 and np.allclose(np.asarray(large.get_offsets())[0], points.mean(axis=0))


def test_an_ellipse_has_the_standard_deviations_of_its_points(results: sj.Results) -> None:
    ax = plot.ellipses(results, delay="rtt_p95_ms", by="path.queue")
    ellipses = [patch for patch in ax.patches if isinstance(patch, Ellipse)]
    assert len(ellipses) == 2
    runs = results.runs
    rows = zip(runs["kind"], runs["path.queue"], runs["rtt_p95_ms"], runs["goodput_mbps"])
    spread = np.cov(np.array([point for kind, queue, *point in rows if (kind, queue) == ("flow", "fq_codel")]).T)
    widths = (ellipses[1].get_width() / 2) ** 2 + (ellipses[1].get_height() / 2) ** 2
    assert widths == pytest.approx(np.trace(spread))
    turn = np.deg2rad(ellipses[1].get_angle())
    along = np.array([np.cos(turn), np.sin(turn)])
    assert along @ spread @ along == pytest.approx((ellipses[1].get_width() / 2) ** 2)


def test_shares_make_one(results: sj.Results) -> None:
    ax = plot.shares(results, "path.queue")
    heights = np.array([[bar.get_height() for bar in group] for group in ax.containers])
    assert heights.shape == (2, 2) and np.allclose(heights.sum(axis=0), 1)
    # Fair queuing gives two flows of three two thirds.
    assert heights[1, 1] == pytest.approx(2 / 3, abs=0.05)


def test_a_heat_map_has_means(study: sj.Study) -> None:
    import tempfile

    wide = sj.Study({**study.to_dict(), "factors": {"path.queue": ["pfifo limit 50", "fq_codel"], "path.rate": ["5Mbps", "10Mbps"]}, "views": {}, "claim": []})  # fmt: skip
    results = wide.run(tempfile.mkdtemp() + "/out", seeds=2, progress=False)
    ax = plot.heat(results, "path.queue", "path.rate", "goodput_sum_mbps")
    grid = np.asarray(ax.images[0].get_array())
    columns = zip(*(results.runs[name] for name in ("kind", "path.queue", "path.rate", "goodput_sum_mbps")))
    rows = [value for *world, value in columns if world == ["run", "fq_codel", "10Mbps"]]
    assert len(rows) == 2 and grid[1, 1] == pytest.approx(np.mean(rows))
    assert plot.heat(results, "path.queue", "path.rate", "rtt_p95_ms", flow="bbr").get_xlabel() == "path.queue"


@pytest.mark.parametrize(
    ("draw", "text"),
    [
        (lambda r: plot.series(r, "rtt"), "'rtt' is several columns"),
        (lambda r: plot.series(r, "nothing"), "no column of the time series is named 'nothing'"),
        (lambda r: plot.delays(r, "frame_delay"), "has a distribution of frame_delay"),
        (lambda r: plot.delays(r, by="path.rate"), "no factor that varies is named 'path.rate'"),
        (lambda r: plot.shares(r, "path.rate"), "no factor is named 'path.rate'"),
        (lambda r: plot.throughput_delay(r, delay="late_ms"), "no metric is named 'late_ms'"),
        (lambda r: plot.throughput_delay(r, delay="freezes"), "no metric is named 'freezes'"),
        (lambda r: plot.throughput_delay(r, delay="ping_p95_ms"), "no flow that was asked for has"),
        (lambda r: plot.heat(r, "path.queue", "path.queue", "goodput_mbps", flow="reno"), "no flow is named 'reno'"),
        (lambda r: plot.shares(r, "path.queue", where={"rate": "x"}), r"where: no factor is named 'rate' \(allowed: path.queue, group"),
        (lambda r: plot.shares(r, "path.queue", where={"path.queue": "fq_code"}), "no value of 'path.queue' is named 'fq_code'; did you mean 'fq_codel'"),
        (lambda r: plot.heat(r, "path.queue", "path.queue", "rtt_p95_ms", flow="bbr", where={"path.queue": "x"}), "allowed: pfifo limit 50, fq_codel"),
        (lambda r: plot.throughput_delay(r, where={"seed": 9}), r"no value of 'seed' is named '9' \(allowed: 1, 2, 3\)"),
        (lambda r: plot.shares(r, "path.queue", metric="sojourn_p95_ms"), "no flow that was asked for has sojourn_p95_ms"),
        (lambda r: plot.heat(r, "path.queue", "path.queue", "ping_p95_ms", flow="bbr"), "no flow that was asked for has ping_p95_ms"),
        (lambda r: plot.heat(r, "path.queue", "path.queue", "goodput_mbps", queue="que"), "no queue is named 'que'; did you mean 'queue'"),
    ],
)
def test_what_is_not_there_is_told(draw: object, text: str, results: sj.Results) -> None:
    with pytest.raises(sj.ResultsError, match=text):
        draw(results)  # type: ignore[operator]


@pytest.mark.parametrize(
    "draw",
    [
        lambda run: plot.throughput_delay(run),
        lambda run: plot.ellipses(run),
        lambda run: plot.shares(run, "path.queue"),
        lambda run: plot.heat(run, "path.queue", "path.queue", "jain"),
    ],
)
def test_a_run_alone_has_no_seeds_to_compare(draw: object, study: sj.Study) -> None:
    with pytest.raises(TypeError, match=r"results is a Run \(allowed: Results, which study.run"):
        draw(sj.simulate(study.scenarios[0]))  # type: ignore[operator]


def test_where_takes_seeds_and_numbers(results: sj.Results) -> None:
    ax = plot.throughput_delay(results, delay="rtt_p95_ms", where={"seed": [1, 2], "name": "cubic"})
    assert labels(ax) == ["cubic"] and len(np.asarray(ax.collections[0].get_offsets())) == 4


def test_a_distribution_rises_from_nothing_and_may_have_one_bucket() -> None:
    scenario = {"duration": "2s", "path": {"rate": "10Mbps", "rtt": "20ms", "queue": "pfifo"}, "flow": [{"name": "p", "app": "ping"}]}
    run = sj.simulate(scenario)
    assert len(run.delays(flow="p", metric="ping")) == 1
    x, y = (np.asarray(data) for data in plot.delays(run, "ping").get_lines()[0].get_data())
    assert list(y) == [0, 1] and x[0] <= run.flows["p"]["ping_p50_ms"] <= x[1]


def test_groups_without_the_metric_have_no_share(tmp_path: Path) -> None:
    flows = [{"name": "a", "app": "bulk"}, {"name": "p", "app": "ping"}]
    scenario = {"duration": "1s", "path": {"rate": "10Mbps", "rtt": "20ms", "queue": "pfifo"}, "flow": flows}
    study = sj.Study(title="x", scenario=scenario, factors={"path.rtt": ["10ms", "20ms"]}, repeat={"seeds": 1})
    assert labels(plot.shares(study.run(tmp_path / "out", progress=False), "path.rtt", metric="rtt_p50_ms")) == ["a"]


def test_what_is_a_mean_over_fewer_seeds_says_so(study: sj.Study, tmp_path: Path) -> None:
    part = study.run(tmp_path / "part", shard="1/4", progress=False)
    there: dict[int, int] = {0: 0, 1: 0}
    for scenario, kind in zip(part.runs["scenario"], part.runs["kind"]):
        there[scenario] += kind == "run"
    least, most = sorted(there.values())
    note = f"over {least} to {most} of 3 seeds" if least != most else f"over {least} of 3 seeds"
    drawn = [
        plot.throughput_delay(part, delay="rtt_p95_ms"),
        plot.ellipses(part, delay="rtt_p95_ms"),
        plot.shares(part, "path.queue"),
        plot.heat(part, "path.queue", "path.queue", "jain"),
        plot.delays(part, "rtt"),
    ]
    assert [ax.get_title(loc="right") for ax in drawn] == [note] * 5
    alone = plot.shares(part, "path.queue", where={"path.queue": "pfifo limit 50"})
    assert alone.get_title(loc="right") == f"over {there[0]} of 3 seeds"


def test_whole_results_have_no_such_note(results: sj.Results) -> None:
    assert plot.shares(results, "path.queue").get_title(loc="right") == ""


def test_only_the_columns_that_are_drawn_are_read(results: sj.Results, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    class Spied:
        columns = results.runs.columns

        def __len__(self) -> int:
            return len(results.runs)

        def __getitem__(self, name: str) -> list[object]:
            read.append(name)
            return results.runs[name]

        def numbers(self, name: str) -> bytes:
            read.append(name)
            return results.runs.numbers(name)

    fresh = sj.Results(results.folder)
    monkeypatch.setitem(fresh.__dict__, "runs", Spied())
    plot.ellipses(fresh, delay="rtt_p95_ms", by="path.queue")
    assert set(read) == {"kind", "name", "scenario", "path.queue", "rtt_p95_ms", "goodput_mbps"}


@pytest.fixture(scope="module")
def unended(tmp_path_factory: pytest.TempPathFactory) -> sj.Results:
    """Of ``a`` some transfers end at 6 Mbit/s, none at 4 and all at 20; of ``b`` all; a ping has no transfer."""
    flows = [
        {"name": "a", "app": "bulk", "bytes": "2MB", "start_jitter": "2s"},
        {"name": "b", "app": "bulk", "bytes": "100kB", "start_jitter": "100ms"},
        {"name": "p", "app": "ping"},
    ]
    scenario = {"duration": "4s", "path": {"rate": "6Mbps", "rtt": "20ms", "queue": "fq_codel"}, "flow": flows}
    study = sj.Study(title="x", scenario=scenario, factors={"path.rate": ["4Mbps", "6Mbps", "20Mbps"]}, repeat={"seeds": 8})
    return study.run(tmp_path_factory.mktemp("unended") / "out", progress=False)


def ended(results: sj.Results, rate: str) -> list[float]:
    columns = zip(results.runs["path.rate"], results.runs["name"], results.runs["completion_p50_ms"])
    return [value for of, name, value in columns if (of, name) == (rate, "a") and value is not None]


def test_a_cell_that_lacks_values_says_of_how_many_it_would_be(unended: sj.Results) -> None:
    some = len(ended(unended, "6Mbps"))
    assert 0 < some < 8 and not ended(unended, "4Mbps")
    ax = plot.heat(unended, "path.rate", "path.rate", "completion_p50_ms", flow="a")
    grid = np.ma.filled(ax.images[0].get_array(), np.nan)
    assert np.isnan(grid[0, 0]) and np.isnan(grid[1, 1]) and grid[2, 2] == pytest.approx(np.mean(ended(unended, "20Mbps")))
    assert {"0 of 8", f"{some} of 8"} < {text.get_text() for text in ax.texts}
    assert ax.get_title(loc="right") == "n of m: so many have completion p50 (ms)"
    # Without any mean there is no scale.
    slow = plot.heat(unended, "path.rate", "path.rate", "completion_p50_ms", flow="a", where={"path.rate": "6Mbps"})
    slow.figure.canvas.draw()
    assert [text.get_text() for text in slow.texts] == [f"{some} of 8"] and len(slow.figure.axes) == 1


def test_a_distribution_of_transfers_ends_at_the_share_that_ended(unended: sj.Results) -> None:
    some = len(ended(unended, "6Mbps"))
    ax = plot.delays(unended, "completion", flow="a", by="path.rate")
    assert labels(ax) == ["4Mbps (0 of 8 ended)", f"6Mbps ({some} of 8 ended)", "20Mbps"]
    ends = [list(line.get_ydata())[-1:] for line in ax.get_lines()]
    assert ends[0] == [] and ends[2] == [pytest.approx(1)] and ax.get_ylabel() == "share of transfers"
    # Those that began late were not as old as the slowest that ended, and may take as long.
    together = plot.delays(unended, "completion", flow="a")
    assert labels(together) == [f"a ({8 + some} of 24 ended)"]
    assert (8 + some) / 24 <= together.get_lines()[0].get_ydata()[-1] < 1


def test_the_share_that_ended_is_that_of_the_textbook() -> None:
    # Remission under 6-mercaptopurine, in weeks (Freireich et al., 1963), as in `sojourn_metrics`.
    weeks, counts = np.array([6.0, 7, 10, 13, 16, 22, 23]), np.array([3.0, 1, 1, 1, 1, 1, 1])
    open_weeks = np.array([6.0, 9, 10, 11, 17, 19, 20, 25, 32, 34, 35])
    open_counts = np.array([1.0, 1, 1, 1, 1, 1, 1, 1, 2, 1, 1])
    left = 1 - plot.shares_ended(weeks, counts, open_weeks, open_counts)
    assert [round(float(left[at]), 3) for at in (0, 5, 6)] == [0.857, 0.538, 0.448]


@pytest.mark.parametrize("draw", [plot.throughput_delay, plot.ellipses])
def test_means_of_flows_that_lack_values_say_of_how_many_they_are(draw: Any, unended: sj.Results) -> None:
    some = len(ended(unended, "6Mbps"))
    ax = draw(unended, delay="completion_p50_ms", by="path.rate")
    assert labels(ax) == ["4Mbps (8 of 16)", f"6Mbps ({8 + some} of 16)", "20Mbps"]
    note = f"{16 - some} of 48 flows lack completion p50 (ms); none of p has completion p50 (ms) or goodput (Mbit/s)"
    assert ax.get_title(loc="right").replace("\n", " ") == note
    by_group = draw(unended, delay="completion_p50_ms")
    assert set(labels(by_group)) == {f"a ({8 + some} of 24)", "b"}


def test_shares_of_flows_that_lack_values_say_so(unended: sj.Results) -> None:
    ax = plot.shares(unended, "path.rate", metric="completion_p50_ms")
    assert f"a ({8 + len(ended(unended, '6Mbps'))} of 24)" in labels(ax) and "flows lack" in ax.get_title(loc="right")


LONG = ["cake bandwidth 9mbit diffserv4 dual-dsthost", "pfifo limit 50", "fq_codel limit 1000 quantum 300"]


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> sj.Results:
    """Fifteen flows, queues with long names, and delays of four digits."""
    flows = [{"name": "download", "app": "bulk", "count": 14, "start_jitter": "100ms"}, {"name": "bbr", "app": "bulk", "cca": "bbr3"}]
    scenario = {"duration": "4s", "path": {"rate": "10Mbps", "rtt": "1030ms", "queue": "pfifo"}, "flow": flows}
    factors = {"path.queue": LONG, "path.rate": [f"{rate}Mbps" for rate in range(10, 26)]}
    study = sj.Study(title="x", scenario=scenario, factors=factors, repeat={"seeds": 1})
    return study.run(tmp_path_factory.mktemp("crowd") / "out", progress=False)


def overlaps(texts: list[Any]) -> bool:
    boxes = [text.get_window_extent() for text in texts]
    return any(a.overlaps(b) for at, a in enumerate(boxes) for b in boxes[:at])


def test_names_and_numbers_do_not_run_into_each_other(crowd: sj.Results) -> None:
    for ax in (
        plot.heat(crowd, "path.rate", "path.queue", "goodput_sum_mbps"),
        plot.heat(crowd, "path.queue", "path.rate", "rtt_min_ms", flow="bbr"),
        plot.shares(crowd, "path.queue"),
    ):
        ax.figure.canvas.draw()
        names = ax.get_xticklabels()
        assert not overlaps(ax.texts)
        # Those that are aslant overlap by their boxes only.
        assert names[0].get_rotation() == 45 or not overlaps(names)
    assert [name.get_text().replace("\n", " ") for name in names] == LONG
    # Axes that were given keep their size.
    small = plt.subplots(figsize=(4, 3))[1]
    ax = plot.heat(crowd, "path.rate", "path.queue", "goodput_sum_mbps", ax=small)
    ax.figure.canvas.draw()
    assert not overlaps(ax.texts) and ax.get_xticklabels()[0].get_rotation() == 45


def test_numbers_of_a_heat_map_are_written_out(crowd: sj.Results) -> None:
    ax = plot.heat(crowd, "path.queue", "path.rate", "rtt_min_ms", flow="bbr")
    assert all(text.get_text().isdigit() and len(text.get_text()) == 4 for text in ax.texts)
    assert [plot.short(value) for value in (0.01234, 99.96, 999.7, 1030.4, -1030.4, 2e6)] == ["0.0123", "100", "1000", "1030", "-1030", "2e+06"]


def test_every_line_is_told_apart(crowd: sj.Results) -> None:
    for ax in (plot.series(crowd, "cwnd_pkts"), plot.delays(crowd, "rtt"), plot.delays(crowd, "rtt", by="path.rate")):
        looks = {(line.get_color(), line.get_linestyle(), line.get_marker()) for line in ax.get_lines()}
        assert len(looks) == len(ax.get_lines()) >= 15
    for draw in (plot.throughput_delay, plot.ellipses):
        found = [handle for handle in draw(crowd, delay="rtt_p50_ms", by="path.rate").get_legend_handles_labels()[0]]
        looks_of = {(tuple(one.get_facecolor()[0]), str(one.get_paths()[0].vertices.tolist())) for one in found}
        assert len(looks_of) == len(found) == 16
    assert len({str(style) for style in plot.lines(288)}) == 288 and plot.alike(288, plot.lines) == ""
    assert plot.alike(300, plot.lines) == "from the 289th of 300 on they look as the first ones do"


def test_legends_stand_beside_the_data_and_say_whose_the_phases_are(crowd: sj.Results, results: sj.Results) -> None:
    for ax in (plot.series(crowd, "cwnd_pkts", flow="download"), plot.shares(results, "path.queue"), plot.delays(crowd, "rtt")):
        ax.figure.canvas.draw()
        legend = ax.get_legend()
        assert legend is not None and legend.get_window_extent().x0 > ax.get_window_extent().x1
        assert legend.get_window_extent().x1 <= ax.figure.bbox.x1 and ax.get_window_extent().width > 300
    assert "bbr: STARTUP" in labels(plot.series(crowd, "cwnd_pkts", flow="bbr"))


def test_labels_are_words_with_units(results: sj.Results) -> None:
    assert plot.shares(results, "path.queue").get_ylabel() == "share of goodput"
    assert plot.delays(results, "rtt").get_xlabel() == "rtt (ms)"
    titles = [plot.titled(name) for name in ("frame_delay_ms", "rest_damping_per_s", "rendered_fps", "jain")]
    assert titles == ["frame delay (ms)", "rest damping (1/s)", "rendered (frames/s)", "jain"]


@pytest.mark.parametrize(
    ("draw", "error", "text"),
    [
        (lambda r, _: plot.series(3, "cwnd_pkts"), TypeError, r"results is an int \(allowed: Results, or a Run"),  # type: ignore[arg-type]
        (lambda r, _: plot.delays(r.plan), TypeError, "results is a dict"),
        (lambda r, _: plot.series(r, "cwnd_pkts", run=10**30), sj.ResultsError, "there is no run 1000000000000000000000000000000 "),
        (lambda r, _: plot.series(r, "cwnd_pkts", run=[0, 1]), TypeError, "run is a list"),  # type: ignore[arg-type]
        (lambda r, _: plot.delays(r, ["rtt", "owd"]), TypeError, "metric is a list .allowed: a text such as 'rtt'"),  # type: ignore[arg-type]
        (lambda r, _: plot.shares(r, "path.queue", where=3), TypeError, "where is an int .allowed: a dict such as"),  # type: ignore[arg-type]
        (lambda r, _: plot.shares(r, 3), TypeError, "factor is an int .allowed: a text such as 'path.queue'"),  # type: ignore[arg-type]
        (lambda r, _: plot.throughput_delay(r, delay=None), TypeError, "metric is None .allowed: a text such as"),  # type: ignore[arg-type]
        (lambda r, _: plot.shares(r, "path.queue", ax=3), TypeError, "ax is an int .allowed: axes of matplotlib"),  # type: ignore[arg-type]
        (lambda r, _: plot.ellipses(r, sigmas=-1), sj.ResultsError, "sigmas is -1 .allowed: a number above 0"),
        (lambda r, _: plot.ellipses(r, sigmas=float("nan")), sj.ResultsError, "sigmas is nan"),
        (lambda _, run: plot.series(run, "cwnd_pkts", run=3), sj.ResultsError, "run is 3, but a Run is one run"),
        (lambda _, run: plot.delays(run, where={"path.queue": "fq_codel"}), sj.ResultsError, "where chooses among scenarios"),
        (lambda r, _: plot.sensitivity(r), TypeError, "found is a Results"),
    ],
)
def test_what_means_nothing_is_refused(draw: Any, error: type[Exception], text: str, results: sj.Results, study: sj.Study) -> None:
    with pytest.raises(error, match=text):
        draw(results, sj.simulate(study.scenarios[0]))
