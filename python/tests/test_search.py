from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import sojourn as sj

from . import own_parts as parts

CALL = {
    "title": "How long a buffer",
    "scenario": {
        "duration": "3s",
        "warmup": "1s",
        "path": {"rate": "10Mbps", "rtt": "20ms", "queue": "pfifo limit 100"},
        "flow": [{"name": "cubic", "app": "bulk", "start_jitter": "50ms"}],
    },
    "repeat": {"seeds": 2},
    "claim": [{"id": "full", "text": "The link is full", "expect": "tcp_goodput_sum() > 9 Mbps"}],
}
CHANGE = {"path.queue": "bfifo limit {kilobytes}kB"}
SPACE = {"kilobytes": (4.0, 400.0)}


def delay(results: sj.Results) -> float:
    values = [value for value in results.runs["rtt_p95_ms"] if value is not None]
    return sum(values) / len(values)


def test_a_search_finds_less_delay_among_what_keeps_the_claim_and_goes_on_where_it_stopped(tmp_path: Path) -> None:
    def look(trials: int) -> sj.Found:
        return sj.search(
            sj.Study(CALL), CHANGE, SPACE, delay, tmp_path, trials=trials, progress=False,
            first=[{"kilobytes": kilobytes} for kilobytes in (400.0, 30.0, 300.0)],
        )  # fmt: skip

    found = look(12)
    first, best = found.trials[0], found.best
    assert first.parameters == {"kilobytes": 400.0} and first.is_allowed and first.seeds == 2
    assert best is not None and best.value < first.value * 0.6 and best.is_allowed and best.seeds == 2
    assert all(trial.value >= best.value for trial in found.trials if trial.is_allowed and trial.has_all_seeds)
    # What the first seed showed to be bad was left.
    assert found.trials[2].seeds == 1 and not found.trials[2].has_all_seeds
    listed = json.loads((tmp_path / "search.json").read_text())
    assert [one["value"] for one in listed] == [trial.value for trial in found.trials]
    assert delay(sj.Results(tmp_path / listed[best.number]["folder"])) == best.value
    before = (best.folder / "runs.parquet").stat().st_mtime_ns
    assert look(12) == found and (best.folder / "runs.parquet").stat().st_mtime_ns == before


def test_nothing_is_found_where_the_claim_never_holds(tmp_path: Path) -> None:
    study = sj.Study({**CALL, "claim": [{"id": "no", "text": "Too fast", "expect": "tcp_goodput_sum() > 20 Mbps"}]})
    found = sj.search(study, CHANGE, SPACE, delay, tmp_path, trials=2, progress=False)
    assert found.best is None and [trial.failed for trial in found.trials] == [["no"], ["no"]]


def test_a_point_with_runs_without_a_result_is_not_the_best(tmp_path: Path) -> None:
    study = sj.Study({**CALL, "claim": [], "repeat": {"seeds": 6}})
    points = [{"cca": sj.own(parts.Lazarus)}, {"cca": "reno"}]
    found = sj.search(
        study, {"flow.cubic.cca": "{cca}"}, {"cca": [point["cca"] for point in points]}, delay, tmp_path,
        trials=2, first=points, progress=False,
    )  # fmt: skip
    incomplete, whole = found.trials
    assert not incomplete.has_all_seeds and not incomplete.is_allowed and "no result: run " in incomplete.problem
    assert whole.has_all_seeds and found.best == whole
    assert "2 points; 1 of them incomplete (" in repr(found) and "the best is " in repr(found)
    assert json.loads((tmp_path / "search.json").read_text())[0]["value"] is None


@pytest.mark.parametrize("trials", [0, -1])
def test_no_trials_are_refused(trials: int, tmp_path: Path) -> None:
    with pytest.raises(sj.Error, match=rf"search: trials is {trials} \(allowed: 1 or more\)"):
        sj.search(sj.Study(CALL), CHANGE, SPACE, delay, tmp_path, trials=trials, progress=False)


@pytest.mark.parametrize(
    ("given", "kind", "text"),
    [
        ({"first": {"kilobytes": 5}}, TypeError, "search: first is a dict (allowed: a list of points"),
        ({"first": [3]}, TypeError, "search: a point in first is an int (allowed: a dict"),
        ({"first": [{"kilobytes": None}]}, sj.Error, "kilobytes = None is not in (4.0, 400.0)"),
        ({"space": {"kilobytes": (4, 400)}, "first": [{"kilobytes": 6.5}]}, sj.Error, "kilobytes = 6.5 is not in (4, 400), whole numbers"),
        ({"space": {"kilobytes": (4.0, float("inf"))}}, sj.Error, "kilobytes: (4.0, inf) is no range (allowed: (least, largest), both finite"),
        ({"space": {"kilobytes": (False, True)}}, sj.Error, "(False, True) is no range"),
        ({"space": {"kilobytes": "45"}}, TypeError, "search: space: kilobytes is a str (allowed: (least, largest), or a list of texts)"),
        ({"space": {}, "change": {"path.queue": "fq_codel"}}, sj.Error, "search: the space is empty (allowed: one parameter or more)"),
        ({"change": {"path.queue": "bfifo limit {kilobytes:.1f}kB"}}, sj.Error, "path.queue: 'bfifo limit {kilobytes:.1f}kB': a parameter stands in its braces alone"),
        ({"change": {"path.queue": "bfifo limit {kilobytes"}}, sj.Error, "path.queue: 'bfifo limit {kilobytes': expected '}' before end of string (allowed: {packets}"),
        ({"change": {"path.queue": 3}}, TypeError, "search: change: path.queue is an int (allowed: a text"),
        ({"seed": -1}, sj.Error, "search: seed is -1 (allowed: 0 to 4294967295)"),
        ({"trials": 1.5}, TypeError, "search: trials is a float (allowed: a whole number)"),
        ({"objective": lambda _: None}, sj.Error, "search: the objective of {'kilobytes': '221.33'} is None (allowed: finite numbers)"),
        ({"objective": lambda _: 10**400}, sj.Error, "(allowed: finite numbers)"),
        ({"objective": 3}, TypeError, "search: objective is an int (allowed: a function of Results)"),
        ({"shard": "1/2"}, TypeError, "search: no argument is named 'shard', or it has no place here (allowed of Study.run's: jobs, progress, executor)"),
        ({"out": ""}, sj.Error, "search: out is '' (allowed: a path)"),
        ({"study": 3}, TypeError, "search: study is an int (allowed: a Study)"),
    ],
)
def test_what_cannot_be_searched_is_told(given: dict[str, Any], kind: type[Exception], text: str, tmp_path: Path) -> None:
    usual = {"study": sj.Study(CALL), "change": CHANGE, "space": SPACE, "objective": delay, "out": tmp_path, "trials": 1}
    with pytest.raises(kind) as raised:
        sj.search(**{**usual, **given, "progress": False})  # type: ignore[arg-type]
    assert text in str(raised.value)


def test_a_whole_number_may_be_given_as_a_float(tmp_path: Path) -> None:
    space = {"kilobytes": (4, 400)}
    found = sj.search(sj.Study(CALL), CHANGE, space, delay, tmp_path, trials=1, first=[{"kilobytes": 30.0}], progress=False)
    assert found.trials[0].parameters == {"kilobytes": 30}


def test_what_is_wrong_is_told(tmp_path: Path) -> None:
    with pytest.raises(sj.StudyError, match="path.que"):
        sj.search(sj.Study(CALL), {"path.que": "{kilobytes}"}, SPACE, delay, tmp_path, trials=1, progress=False)
    with pytest.raises(sj.Error, match="the objective of .* is nan"):
        sj.search(sj.Study(CALL), CHANGE, SPACE, lambda _: float("nan"), tmp_path, trials=1, progress=False)


def test_large_whole_numbers_are_written_out(tmp_path: Path) -> None:
    change, space = {"path.queue": "bfifo limit {bytes}"}, {"bytes": (1_000_001, 1_000_002)}
    found = sj.search(sj.Study(CALL), change, space, delay, tmp_path, trials=1, first=[{"bytes": 1_000_001}], progress=False)
    assert "limit 1000001" in sj.Results(found.trials[0].folder).study and "bytes = 1000001:" in repr(found)
