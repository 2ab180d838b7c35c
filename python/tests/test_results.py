from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sojourn as sj

from . import own_parts as parts
from .conftest import TWO_FLOWS, files


def test_tables_have_what_the_folder_has(results: sj.Results) -> None:
    stored = pq.read_table(results.folder / "runs.parquet")
    given = pa.table(results.runs)
    assert given.column_names == stored.column_names
    assert given.to_pylist() == stored.to_pylist()

    stored = pq.read_table(results.folder / "series.parquet")
    given = pa.table(results.series())
    for name in set(stored.column_names):
        if name in given.column_names:
            assert given[name].to_pylist() == stored[name].to_pylist(), name
    assert len(set(stored.column_names) - set(given.column_names)) == 0

    stored = pq.read_table(results.folder / "delays.parquet")
    given = pa.table(results.delays())
    for name in stored.column_names:
        assert given[name].to_pylist() == stored[name].to_pylist(), name


def test_series_can_be_restricted(results: sj.Results) -> None:
    table = pl.DataFrame(results.series(flow="bbr", metric="rtt", where={"path.queue": "fq_codel"}, seed=2))
    assert set(table["name"]) == {"bbr.1", "bbr.2"}
    assert set(table["path.queue"]) == {"fq_codel"} and set(table["seed"]) == {2}
    assert [name for name in table.columns if name.endswith("_ms")] == [
        "rtt_mean_ms", "rtt_max_ms", "rtt_p50_ms", "rtt_p95_ms",
    ]  # fmt: skip
    assert len(table) == 2 * 20
    one = results.series(flow="cubic", metric="cwnd_pkts", run=np.int64(0))
    assert one.columns[-1] == "cwnd_pkts" and len(one) == 20
    assert set(results.series(queue="queue", run=[1, 2])["kind"]) == {"queue"}
    assert set(results.delays(flow="cubic", metric="rtt")["metric"]) == {"rtt"}


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ({"flow": "bb"}, r"no flow is named 'bb'; did you mean 'bbr'\? \(allowed: cubic, bbr, bbr.1"),
        ({"queue": "bbr"}, "no queue is named 'bbr'"),
        ({"metric": "rt"}, "no column of the time series is named 'rt'"),
        ({"run": 6}, r"there is no run 6 \(allowed: 0 to 5\)"),
        ({"run": [0, -1]}, r"there is no run -1 \(allowed: 0 to 5\)"),
        ({"seed": 9}, r"no run has seed 9 \(allowed: 1, 2, 3\)"),
        ({"where": {"path.que": "x"}}, "no factor is named 'path.que'; did you mean 'path.queue'"),
        ({"where": {"path.queue": "x"}}, "no value of 'path.queue' is named 'x'"),
    ],
)
def test_what_is_not_there_is_told(results: sj.Results, asked: dict[str, object], text: str) -> None:
    with pytest.raises(sj.ResultsError, match=text):
        results.series(**asked)  # type: ignore[arg-type]


def test_wrong_types_are_told(results: sj.Results) -> None:
    with pytest.raises(TypeError, match="flow is an int"):
        results.series(flow=3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="run is a str"):
        results.series(run="0")  # type: ignore[arg-type]
    with pytest.raises(KeyError, match="did you mean 'rtt_p50_ms'"):
        results.runs["rtt_p5_0_ms"]




def test_libraries_take_a_table_over_without_a_copy(results: sj.Results) -> None:
    table = results.series(metric="goodput_mbps")

    def addresses() -> list[int]:
        return [chunk.buffers()[1].address for chunk in pa.table(table)["t_s"].chunks]

    assert addresses() == addresses(), "each time the same memory is handed out"
    numbers = pl.DataFrame(table)["t_s"].to_numpy(allow_copy=False)
    assert [numbers.__array_interface__["data"][0]] == addresses()


def test_every_library_reads_the_same(results: sj.Results) -> None:
    runs = results.runs
    mean = np.nanmean(np.frombuffer(runs.numbers("goodput_mbps")))
    assert pl.DataFrame(runs)["goodput_mbps"].mean() == pytest.approx(mean)
    assert pd.DataFrame.from_arrow(runs)["goodput_mbps"].mean() == pytest.approx(mean)
    assert duckdb.sql("SELECT avg(goodput_mbps) FROM runs").fetchall()[0][0] == pytest.approx(mean)
    assert np.mean([x for x in runs["goodput_mbps"] if x is not None]) == pytest.approx(mean)
    assert runs.to_dict()["seed"] == pa.table(runs)["seed"].to_pylist()
    assert pa.schema(runs).names == runs.columns == list(runs) and "seed" in runs and "sed" not in runs
    with pytest.raises(sj.Error, match="column 'name' holds texts"):
        runs.numbers("name")


def test_a_table_outlives_its_folder(study: sj.Study, tmp_path: Path) -> None:
    table = pa.table(study.run(tmp_path / "out", progress=False).runs)
    assert len(table) == 36 and table["kind"][0].as_py() == "run"


def test_claims_are_a_table_and_verdicts(results: sj.Results) -> None:
    assert [(claim.id, claim.verdict) for claim in results.verdicts] == [("used", "holds"), ("slow", "fails")]
    claims = pl.DataFrame(results.claims)
    assert str(claims["scenario"].dtype) == str(claims["seeds"].dtype) == "UInt32"
    assert claims["where"].to_list()[:2] == ["path.queue = pfifo limit 50", "path.queue = fq_codel"]
    stored = json.loads((results.folder / "claims.json").read_text())["claims"]
    assert claims["value"].to_list() == [c["value"]["mean"] for one in stored for c in one["checks"]]
    assert claims["off_by"].to_list() == [
        c["miss"] and c["miss"]["by"] for one in stored for c in one["checks"]
    ]
    # What holds says how far it is from failing: of 9.5 Mbit/s from 8.
    room, value = claims["room_share"].to_list(), claims["value"].to_list()
    assert room[:2] == pytest.approx([one / 8 - 1 for one in value[:2]]) and room[2:] == [None, None]


def test_a_notebook_shows_the_claims_and_the_first_figure(results: sj.Results) -> None:
    shown = results._repr_html_()
    assert "<td>holds</td><td>used</td><td>The link is used</td>" in shown
    assert "Nobody gets &lt;anything&gt;" in shown and "<anything>" not in shown
    assert results.figure("rate").svg in shown
    assert results.figure("rate").svg.startswith("<svg")
    assert "✗ slow: Nobody gets" in repr(results)


def test_a_notebook_shows_all_figures(results: sj.Results, tmp_path: Path) -> None:
    figures = results.figures
    assert list(figures)[0] == "rate" and len(figures) > 3
    assert all(figure.svg == results.figure(name).svg for name, figure in figures.items())
    assert figures._repr_html_().count("<h4>") == len(figures)
    # A study without views has those that each report has.
    plain = sj.Study({name: value for name, value in TWO_FLOWS.items() if name not in ("views", "factors")})
    plainly = plain.run(tmp_path / "plain", seeds=1, progress=False)
    assert plainly.figures and next(iter(plainly.figures.values())).svg in plainly._repr_html_()


def test_tables_are_markdown_and_latex(tmp_path: Path) -> None:
    views = {
        "rate": {"kind": "bars", "x": "path.queue", "y": "goodput"},
        "numbers": {"kind": "table", "y": ["goodput", "jain"]},
    }
    results = sj.Study({**TWO_FLOWS, "views": views}).run(tmp_path / "two", seeds=2, progress=False)
    table = results.table("numbers")
    lines = table.markdown.splitlines()
    assert lines[0] == "| queue | goodput (Mbit/s): cubic | bbr | Jain's index |" and len(lines) == 4
    assert table.latex.startswith("\\begin{tabular}{lrrr}") and "fq\\_codel" in table.latex
    assert table._repr_markdown_() == table.markdown
    for name, text in (("numbers.md", table.markdown), ("numbers.tex", table.latex)):
        table.save(tmp_path / name)
        assert (tmp_path / name).read_text(encoding="utf-8") == text
    assert list(results.tables) == ["numbers"] and "numbers" not in results.figures
    with pytest.raises(sj.ResultsError, match=r"'numbers' is a table: results.table\('numbers'\)"):
        results.figure("numbers")
    with pytest.raises(sj.ResultsError, match=r"'rate' is a drawing: results.figure\('rate'\)"):
        results.table("rate")
    with pytest.raises(sj.ResultsError, match=r"allowed: a name that ends with .md or .tex"):
        table.save(tmp_path / "numbers.svg")


def test_the_report_is_written(results: sj.Results, tmp_path: Path) -> None:
    page = results.report(tmp_path / "page.html")
    assert "Two flows" in page.read_text()


def test_a_folder_without_checksums_is_warned_of(results: sj.Results, tmp_path: Path) -> None:
    copy = tmp_path / "old"
    shutil.copytree(results.folder, copy)
    (copy / "SHA256SUMS").unlink()
    with pytest.warns(UserWarning, match="old: an older version wrote this folder, without checksums") as warned:
        sj.Results(copy)
    assert [Path(one.filename) for one in warned] == [Path(__file__)]


def test_a_folder_is_opened_again(results: sj.Results) -> None:
    again = sj.Results(results.folder)
    assert again.study == results.study
    assert again.plan == results.plan and again.machine == results.machine
    assert files(again.folder).keys() == files(results.folder).keys()
    with pytest.raises(sj.ResultsError, match="not a result folder"):
        sj.Results(results.folder.parent)


@pytest.mark.parametrize(
    ("ask", "error", "text"),
    [
        (lambda r: r.series(where=3), TypeError, "where is an int (allowed: a dict such as {'path.queue': 'fq_codel'})"),
        (lambda r: r.delays(where={3: "x"}), TypeError, "where: a key is an int"),
        (lambda r: r.series(run=10**30), sj.ResultsError, "there is no run 1000000000000000000000000000000 (allowed: 0 to 5)"),
        (lambda r: r.series(seed=10**30), sj.ResultsError, "there is no seed 1000000000000000000000000000000 (allowed: 1, 2, 3)"),
        (lambda r: r.series(run=1.5), TypeError, "run is a float (allowed: a whole number, or several of them)"),
        (lambda r: r.series(flow="a\ud800"), sj.Error, r"flow has half of a surrogate pair: 'a\ud800' (allowed: Unicode)"),
        (lambda r: r.figure("\ud800"), sj.Error, "figure has half of a surrogate pair"),
        (lambda r: r.report("/tmp/\ud800"), sj.ResultsError, "path has half of a surrogate pair"),
        (lambda r: r.figure("rate").save(3), TypeError, "path is an int (allowed: a path)"),
        (lambda r: sj.Results(""), sj.ResultsError, "folder is '' (allowed: a path)"),
        (lambda r: sj.Results("/tmp/\ud800"), sj.ResultsError, "folder has half of a surrogate pair"),
        (lambda r: r.figure("rate").save("rate.png"), sj.ResultsError, "rate.png: a figure of the report is SVG (allowed: a name that ends with .svg"),
    ],
)
def test_what_is_asked_for_wrongly_is_told(ask: Any, error: type[Exception], text: str, results: sj.Results) -> None:
    with pytest.raises(error, match=re.escape(text)):
        ask(results)


def test_a_run_without_a_result_says_why(tmp_path: Path) -> None:
    scenario = {"duration": "1s", "path": {"rate": "10Mbps", "rtt": "20ms", "queue": "pfifo"}, "flow": [{"name": "one", "app": "bulk"}]}
    scenario["flow"] = [{"name": "one", "app": "bulk", "cca": sj.own(parts.Lazarus), "start_jitter": "10ms"}]
    study = sj.Study(title="x", scenario=scenario, repeat={"seeds": 6})
    with pytest.warns(RuntimeWarning):
        results = study.run(tmp_path / "out", progress=False)
    failed = min(results.failed)
    for ask in (results.series, results.delays):
        with pytest.raises(sj.ResultsError, match=f"run {failed} has no result: .*ZeroDivisionError"):
            ask(run=failed)
        assert len(ask(run=range(6))) > 0
    part = sj.Study({**study.to_dict(), "scenario": {**scenario, "flow": [{"name": "one", "app": "bulk"}]}}).run(
        tmp_path / "part", shard="1/3", progress=False
    )
    with pytest.raises(sj.ResultsError, match=f"run {part.missing[0]} has no result, nor have any of the 1 others: it is not done yet"):
        part.series(run=part.missing[:2])
