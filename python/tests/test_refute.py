"""Worlds in which claims fail, and what metrics depend on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import sojourn as sj

from . import own_parts as parts

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
    assert "held in all 3 worlds that were tried, with all 2 seeds; it was nearest to failing with kilobytes = 9" in repr(found)


def of(cca: str, claim: str, seeds: int) -> sj.Study:
    """One flow over a loss that each seed has another draw of."""
    scenario = {**WORLD["scenario"], "flow": [{"name": "one", "app": "bulk", "cca": cca, "start_jitter": "50ms"}]}
    return sj.Study({**WORLD, "scenario": scenario, "repeat": {"seeds": seeds}, "claim": [{"id": "c", "text": "x", "expect": claim}]})


RTT: dict[str, Any] = {"rtt": (5.0, 50.0)}


@pytest.mark.parametrize(("cca", "count"), [(sj.own(parts.Broken), "1 of 1 runs has"), (sj.own(parts.Lazarus), " of 6 runs have")])
def test_worlds_without_results_neither_hold_nor_fail(cca: str, count: str, tmp_path: Path) -> None:
    study = of(cca, "goodput_mbps(one) > 0.01 Mbps", 6)
    found = sj.refute(study, "c", {"path.rtt": "{rtt}ms"}, RTT, {"rtt": 10.0}, tmp_path, trials=2, progress=False)
    assert found.world is None and [trial.failed for trial in found.trials] == [[], []]
    assert all(count in trial.problem and not trial.is_allowed and not trial.has_all_seeds for trial in found.trials)
    assert "is untestable in all of the 2 worlds that were tried: " in repr(found)
    assert f"{count} no result: run " in repr(found) and "ZeroDivisionError" in repr(found)
    listed = json.loads((tmp_path / "refute.json").read_text())["trials"]
    assert [trial["value"] for trial in listed] == [None, None]


def test_a_world_that_cannot_be_tested_is_told_beside_those_that_hold(tmp_path: Path) -> None:
    study = of("reno", "goodput_mbps(one) > 0.01 Mbps", 2)
    change, space = {"flow.one.cca": "{cca}"}, {"cca": ["reno", sj.own(parts.Broken)]}
    found = sj.refute(study, "c", change, space, {"cca": "reno"}, tmp_path, trials=2, progress=False)
    assert "held in 1 of the 2 worlds that were tried, with all 2 seeds; it was nearest to" in repr(found)
    assert "; it is untestable in 1 of 2 worlds: 1 of 1 runs has no result: run 0: " in repr(found)


def test_what_the_first_seed_hides_is_found(tmp_path: Path) -> None:
    """The first seed's loss leaves more than the bound in these worlds; the mean over all seeds is below it."""
    flows = [{"name": "one", "app": "bulk", "cca": "reno", "start_jitter": "50ms"}]
    scenario = {**WORLD["scenario"], "path": {**WORLD["scenario"]["path"], "loss": "1%"}, "flow": flows}
    world: dict[str, Any] = {**WORLD, "repeat": {"seeds": 5}, "scenario": scenario, "claim": []}
    table = sj.Study(world).run(tmp_path / "study", progress=False).runs
    rates = [rate for rate, kind in zip(table["goodput_mbps"], table["kind"]) if kind == "flow"]
    best = rates.index(max(rates))
    seeds = [best + 1, *(seed for seed in range(1, 6) if seed != best + 1)]
    bound = (max(rates) + sum(rates) / len(rates)) / 2
    claim = {"id": "c", "text": "x", "expect": f"goodput_mbps(one) > {bound:.6f} Mbps"}
    study = sj.Study({**world, "claim": [claim], "repeat": {"seeds": seeds}})
    assert study.change(seeds=seeds[:1]).run(tmp_path / "first", progress=False).verdicts[0].verdict == "holds"
    change, space = {"path.queue": "bfifo limit {kilobytes}kB"}, {"kilobytes": (400, 402)}
    found = sj.refute(study, "c", change, space, {"kilobytes": 400}, tmp_path / "out", trials=1, progress=False)
    assert found.world is not None and found.world.seeds == 5 and ", with all 5 seeds: " in repr(found)


def test_what_makes_a_world_simpler_rests_on_all_seeds(tmp_path: Path) -> None:
    found = adversary(tmp_path, trials=30, seed=3)
    assert found.first is not None
    # Those after the first that fails.
    assert all(trial.has_all_seeds for trial in found.trials[found.first.number :])


@pytest.mark.parametrize("trials", [0, -1])
def test_no_trials_are_refused(trials: int, tmp_path: Path) -> None:
    with pytest.raises(sj.Error, match=rf"refute: trials is {trials} \(allowed: 1 or more\)"):
        adversary(tmp_path, trials=trials)


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


@pytest.mark.parametrize(
    ("delay", "among", "effect"),
    [
        ("{a}ms", ["10", "30"], 20),
        ("{a}ms", ["10", "20", "30"], 20),
        ("{a}ms", ["10", "15", "20", "25", "30"], 20),
        ("1{a}ms", (0, 1), 1),
        ("1{a}ms", (0, 4), 4),
        ("{a}ms", (10, 30), 20),
        ("{a}ms", (10.0, 30.0), 20),
    ],
)
def test_an_effect_is_that_over_the_whole_range_whatever_the_values_are(delay: str, among: Any, effect: float, tmp_path: Path) -> None:
    """A ping takes the sum of both delays."""
    path = {"rate": "10Gbps", "delay": "10ms", "reverse_delay": "10ms", "queue": "pfifo limit 100"}
    study = sj.Study(title="x", scenario={"duration": "1s", "path": path, "flow": [{"name": "p", "app": "ping"}]}, repeat={"seeds": 1})
    found = sj.sensitivity(
        study, {"path.delay": delay, "path.reverse_delay": "{b}ms"}, {"a": among, "b": (10.0, 30.0)}, "ping_p50_ms", tmp_path,
        flow="p", method="morris", samples=6, progress=False,
    )  # fmt: skip
    a, b = found.indices["a"], found.indices["b"]
    assert (a["mu"], a["mu_star"], b["mu_star"]) == pytest.approx((effect, effect, 20), rel=1e-4)
    assert a["sigma"] < 1e-3
    if isinstance(among, list):
        assert {point["a"] for point in found.points} == set(among)


def test_the_same_seed_gives_the_same_intervals(tmp_path: Path) -> None:
    first, second = (samples("sobol", tmp_path / "points", samples=8) for _ in range(2))
    assert first.indices == second.indices


def test_too_few_samples_are_refused(tmp_path: Path) -> None:
    with pytest.raises(sj.Error, match=r"samples is 1 \(allowed: 4 or more\)"):
        samples("sobol", tmp_path, samples=1)


def test_there_is_no_sensitivity_of_a_part_of_the_runs(tmp_path: Path) -> None:
    study = of(sj.own(parts.Lazarus), "goodput_mbps(one) > 0.01 Mbps", 6)
    with pytest.raises(sj.Error, match=r"\d+ of \d+ runs have no result: run \d+: .*ZeroDivisionError.*the same call tries them again"):
        sj.sensitivity(study, {"path.rtt": "{rtt}ms"}, RTT, "rtt_p95_ms", tmp_path, flow="one", method="morris", samples=4, progress=False)


def test_what_has_no_sensitivity_is_told(tmp_path: Path) -> None:
    change, space = {"path.queue": "bfifo limit {kilobytes}kB"}, {"kilobytes": (6, 100)}
    study = sj.Study({**WORLD, "factors": {"path.rtt": ["5ms", "6ms"]}})
    with pytest.raises(sj.Error, match=r"the study has factors, path.rtt"):
        sj.sensitivity(study, change, space, "rtt_min_ms", tmp_path, progress=False)
    with pytest.raises(sj.Error, match="no metric is named 'speed'"):
        sj.sensitivity(sj.Study(WORLD), change, space, "speed", tmp_path / "a", samples=4, progress=False)
    with pytest.raises(sj.Error, match="the flow 'two' has no rtt_min_ms in the world"):
        sj.sensitivity(sj.Study(WORLD), change, space, "rtt_min_ms", tmp_path / "b", flow="two", samples=4, progress=False)


@pytest.mark.parametrize(
    ("given", "kind", "text"),
    [
        ({"change": {}, "space": {}}, sj.Error, "sensitivity: the space is empty (allowed: one parameter or more)"),
        ({"samples": 5.5}, TypeError, "sensitivity: samples is a float (allowed: a whole number)"),
        ({"seed": -1}, sj.Error, "sensitivity: seed is -1 (allowed: 0 to 4294967295)"),
        ({"metric": "end_state"}, sj.Error, "sensitivity: no metric is named 'end_state'"),
        ({"metric": "path.rtt"}, sj.Error, "sensitivity: no metric is named 'path.rtt'"),
        ({"nope": 1}, TypeError, "sensitivity: no argument is named 'nope'"),
    ],
)
def test_what_cannot_be_sensitive_is_told(given: dict[str, Any], kind: type[Exception], text: str, tmp_path: Path) -> None:
    usual = {"study": sj.Study(PING), "change": PING_CHANGE, "space": PING_SPACE, "metric": "ping_min_ms", "out": tmp_path, "samples": 4}
    with pytest.raises(kind) as raised:
        sj.sensitivity(**{**usual, "flow": "one", "method": "morris", **given, "progress": False})  # type: ignore[arg-type]
    assert text in str(raised.value)


def test_a_counterexample_is_not_looked_for_in_a_part_of_the_runs(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="refute: no argument is named 'shard', or it has no place here"):
        adversary(tmp_path, shard="1/2")


def test_there_is_no_sensitivity_of_what_some_runs_lack(tmp_path: Path) -> None:
    flow = {"name": "one", "app": "bulk", "bytes": "2MB", "start_jitter": "3s"}
    study = sj.Study({**WORLD, "scenario": {**WORLD["scenario"], "flow": [flow]}, "repeat": {"seeds": 8}, "claim": []})
    with pytest.raises(sj.Error, match=r"the flow 'one' has completion_p50_ms [1-7] times of 8 in the world .* \(allowed: a metric that each run has"):
        sj.sensitivity(
            study, {"path.rtt": "{rtt}ms"}, {"rtt": (10.0, 20.0)}, "completion_p50_ms", tmp_path, flow="one", method="morris", samples=4,
            progress=False,
        )  # fmt: skip


def test_closed_forms_are_those_of_the_command() -> None:
    found = sj.model("square-root", p=0.01, rtt="40ms")
    assert found["goodput_mbps"] == pytest.approx(1448 * 8 / 0.04 / 1e6 * (1.5 / 0.01) ** 0.5)
    assert sj.models()["square-root"]["p"].startswith("0.001: ")
    with pytest.raises(sj.Error, match="unknown closed form 'square-rot'"):
        sj.model("square-rot")
    with pytest.raises(sj.Error, match="has no parameter 'q'"):
        sj.model("square-root", q=1)
