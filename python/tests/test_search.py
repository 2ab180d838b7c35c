from __future__ import annotations

import json
from pathlib import Path

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


def test_what_is_wrong_is_told(tmp_path: Path) -> None:
    with pytest.raises(sj.StudyError, match="path.que"):
        sj.search(sj.Study(CALL), {"path.que": "{kilobytes}"}, SPACE, delay, tmp_path, trials=1, progress=False)
    with pytest.raises(sj.Error, match="the objective of .* is nan"):
        sj.search(sj.Study(CALL), CHANGE, SPACE, lambda _: float("nan"), tmp_path, trials=1, progress=False)
