"""Worlds in which claims fail, and what metrics depend on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import sojourn as sj

WORLD: dict[str, Any] = {
    "title": "A short buffer",
    "scenario": {
        "duration": "4s",
        "warmup": "1s",
        "path": {"rate": "10Mbps", "rtt": "20ms", "queue": "bfifo limit 100kB"},
        "flow": [{"name": "one", "app": "bulk", "cca": "reno"}],
    },
    "repeat": {"seeds": 2},
    "claim": [
        {"id": "full", "text": "The link is full", "expect": "tcp_goodput_sum() > 8 Mbps"},
        {"id": "other", "text": "Not asked for", "expect": "tcp_goodput_sum() > 99 Mbps"},
    ],
}
CHANGE = {"path.rtt": "{rtt}ms", "path.queue": "bfifo limit {kilobytes}kB", "flow.one.cca": "{cca}"}
SPACE: dict[str, Any] = {"rtt": (5.0, 200.0), "kilobytes": (6, 100), "cca": ["reno", "cubic", "bbr"]}
START = {"rtt": 20.0, "kilobytes": 100, "cca": "reno"}


def adversary(out: Path, claim: str = "full", **more: Any) -> sj.Refutation:
    return sj.refute(sj.Study(WORLD), claim, CHANGE, SPACE, START, out, progress=False, **more)


def test_a_counterexample_is_found_and_made_as_simple_as_it_can_be(tmp_path: Path) -> None:
    found = adversary(tmp_path, trials=30, seed=3)
    assert found.trials[0].parameters == START and found.trials[0].value > 0 and not found.trials[0].failed
    assert found.first is not None and found.world is not None
    assert found.world.failed == ["full"] and found.world.value < 0 and found.world.seeds == 2
    assert set(found.changed) <= set(name for name, value in found.first.parameters.items() if value != START[name])
    # Nearer to the start by one step in anything, or with one thing less changed, the claim holds.
    known = {tuple(trial.parameters.values()): trial for trial in found.trials}
    for name in found.changed:
        without = {**found.world.parameters, name: START[name]}
        assert not known[tuple(without.values())].failed
    listed = json.loads((tmp_path / "refute.json").read_text())
    assert listed["world"] == found.world.number and len(listed["trials"]) == len(found.trials)
    assert "the claim 'full' fails with " in repr(found)
    # The folder of the world says the same, with that claim alone.
    assert [(claim.id, claim.verdict) for claim in sj.Results(found.world.folder).verdicts] == [("full", "fails")]
    before = (found.world.folder / "runs.parquet").stat().st_mtime_ns
    again = adversary(tmp_path, trials=30, seed=3)
    assert again == found and (found.world.folder / "runs.parquet").stat().st_mtime_ns == before


def test_a_claim_that_holds_everywhere_is_said_to_have_held(tmp_path: Path) -> None:
    narrow = {"kilobytes": (90, 92)}
    change = {"path.queue": "bfifo limit {kilobytes}kB"}
    found = sj.refute(sj.Study(WORLD), "full", change, narrow, {"kilobytes": 90}, tmp_path, trials=6, progress=False)
    assert found.world is None and found.changed == {} and len(found.trials) == 3
    assert "held in all 3 worlds that were tried; it was nearest to failing with kilobytes = 9" in repr(found)


def test_a_claim_that_fails_at_the_start_is_refuted_there(tmp_path: Path) -> None:
    found = adversary(tmp_path, "other")
    assert len(found.trials) == 1 and found.changed == {} and "fails with the start itself" in repr(found)


@pytest.mark.parametrize(
    ("change", "space", "start", "problem"),
    [
        ({"path.rtt": "{delay}ms"}, {"rtt": (1.0, 2.0)}, {"rtt": 1.0}, "{delay} is no parameter of the space (allowed: rtt)"),
        ({"path.rtt": "5ms"}, {"rtt": (1.0, 2.0)}, {"rtt": 1.0}, "no change uses the parameter rtt"),
        ({"path.rtt": "{rtt}ms"}, {"rtt": (2.0, 1.0)}, {"rtt": 1.0}, "rtt: (2.0, 1.0) is no range"),
        ({"path.rtt": "{rtt}ms"}, {"rtt": (1.0, 2.0)}, {"rtt": 3.0}, "rtt = 3.0 is not in (1.0, 2.0)"),
        ({"path.rtt": "{rtt}ms"}, {"rtt": (1.0, 2.0)}, {}, "is no point (allowed: a value for each of rtt)"),
    ],
)
def test_what_does_not_fit_is_told(change: Any, space: Any, start: Any, problem: str, tmp_path: Path) -> None:
    with pytest.raises(sj.Error) as raised:
        sj.refute(sj.Study(WORLD), "full", change, space, start, tmp_path, progress=False)
    assert problem in str(raised.value)


def test_a_claim_that_is_none_is_told(tmp_path: Path) -> None:
    with pytest.raises(sj.Error, match=r"no claim 'fool' \(allowed: full, other\)"):
        adversary(tmp_path, "fool")


PING = {**WORLD, "scenario": {**WORLD["scenario"], "flow": [{"name": "one", "app": "ping"}]}, "repeat": {"seeds": 1}, "claim": []}
PING_CHANGE = {"path.rtt": "{rtt}ms", "path.queue": "bfifo limit {kilobytes}kB", "path.rate": "{rate}Mbps"}
PING_SPACE: dict[str, Any] = {"rtt": (10.0, 100.0), "kilobytes": (40, 100), "rate": (10, 20)}


def samples(method: Any, out: Path, **more: Any) -> sj.Sensitivity:
    return sj.sensitivity(
        sj.Study(PING), PING_CHANGE, PING_SPACE, "ping_min_ms", out, flow="one", method=method, progress=False, **more
    )


@pytest.mark.parametrize(("method", "index", "count"), [("sobol", "ST", 8 * 5), ("morris", "mu_star", 8 * 4)])
def test_the_least_round_trip_depends_on_the_path_alone(method: Any, index: str, count: int, tmp_path: Path) -> None:
    found = samples(method, tmp_path / "points", samples=8)
    assert len(found.points) == len(found.values) == count
    of = {name: one[index] for name, one in found.indices.items()}
    assert of["rtt"] > 20 * max(abs(of["kilobytes"]), abs(of["rate"]))
    if method == "morris":
        # Over its whole range it adds 90 ms.
        assert of["rtt"] == pytest.approx(90, rel=0.02)
    assert found.results.plan["title"] == "A short buffer" and not found.results.missing
    assert found.metric in repr(found) and index in repr(found)
    from sojourn import plot

    ax = plot.sensitivity(found)
    assert [label.get_text() for label in ax.get_yticklabels()] == list(PING_SPACE)


def test_what_has_no_sensitivity_is_told(tmp_path: Path) -> None:
    change, space = {"path.queue": "bfifo limit {kilobytes}kB"}, {"kilobytes": (6, 100)}
    study = sj.Study({**WORLD, "factors": {"path.rtt": ["5ms", "6ms"]}})
    with pytest.raises(sj.Error, match=r"the study has factors, path.rtt"):
        sj.sensitivity(study, change, space, "rtt_min_ms", tmp_path, progress=False)
    with pytest.raises(sj.Error, match="no metric is named 'speed'"):
        sj.sensitivity(sj.Study(WORLD), change, space, "speed", tmp_path / "a", samples=2, progress=False)
    with pytest.raises(sj.Error, match="the flow 'two' has no rtt_min_ms in the world"):
        sj.sensitivity(sj.Study(WORLD), change, space, "rtt_min_ms", tmp_path / "b", flow="two", samples=2, progress=False)


def test_closed_forms_are_those_of_the_command() -> None:
    found = sj.model("square-root", p=0.01, rtt="40ms")
    assert found["goodput_mbps"] == pytest.approx(1448 * 8 / 0.04 / 1e6 * (1.5 / 0.01) ** 0.5)
    assert sj.models()["square-root"]["p"].startswith("0.001: ")
    with pytest.raises(sj.Error, match="unknown closed form 'square-rot'"):
        sj.model("square-rot")
    with pytest.raises(sj.Error, match="has no parameter 'q'"):
        sj.model("square-root", q=1)
