from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

import sojourn as sj

from . import own_parts as parts
from .conftest import ROOT, TWO_FLOWS, files


def test_the_folder_is_the_one_that_the_command_writes(study: sj.Study, results: sj.Results, tmp_path: Path) -> None:
    command = ROOT / "target" / "debug" / "sojourn"
    if not command.exists():
        pytest.skip("the command is not built")
    (tmp_path / "study").write_text(study.to_toml())
    subprocess.run(
        [command, "run", "study", "--out", "out", "--no-report", "--quiet"], cwd=tmp_path, check=False,
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    assert files(tmp_path / "out") == files(results.folder)


def test_runs_that_are_there_are_not_run_again(study: sj.Study, results: sj.Results) -> None:
    told: list[sj.Progress] = []
    again = study.run(results.folder, progress=told.append)
    assert told[-1] == sj.Progress(total=6, done=6, resumed=6, failed=0)
    assert again.missing == []


def test_shards_are_parts(study: sj.Study, tmp_path: Path) -> None:
    part = study.run(tmp_path / "part", shard="1/3", progress=False)
    assert part.missing == [1, 2, 4, 5] and part.verdicts == []
    with pytest.raises(sj.StudyError, match="'4/3' is no shard"):
        study.run(tmp_path / "other", shard="4/3")


def test_another_study_does_not_get_the_folder(study: sj.Study, results: sj.Results) -> None:
    with pytest.raises(sj.RunError, match="holds results of another study"):
        study.change({"path.rate": "20Mbps"}).run(results.folder, progress=False)
    with pytest.raises(sj.RunError, match="jobs: 0 runs at a time"):
        study.run(results.folder, jobs=0)
    with pytest.raises(TypeError, match="jobs is a str .allowed: a whole number"):
        study.run(results.folder, jobs="2")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="progress is an int"):
        study.run(results.folder, progress=3)  # type: ignore[arg-type]


def test_the_usual_folder_is_that_of_the_command(study: sj.Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert study.run(seeds=1, progress=False).folder.parts[0] == "results"


LONG = {
    "title": "Many runs",
    "scenario": {**TWO_FLOWS["scenario"], "path": {"rate": "100Mbps", "rtt": "20ms", "queue": "pfifo limit 50"}},
    "repeat": {"seeds": 2000},
}


def test_an_exception_of_progress_stops_and_keeps_what_is_done(tmp_path: Path) -> None:
    def tell(progress: sj.Progress) -> None:
        if progress.done > 2:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        sj.Study(LONG).run(tmp_path / "out", progress=tell)
    there = sj.Results(tmp_path / "out")
    assert 2 < 2000 - len(there.missing) < 2000
    assert len(set(there.runs["run"])) == 2000 - len(there.missing)


def test_ctrl_c_keeps_what_is_done(tmp_path: Path) -> None:
    code = """
import sys, sojourn as sj
study = sj.Study.from_toml(sys.argv[1])
try:
    study.run(sys.argv[2], progress=lambda p: print(p.done, flush=True))
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    (tmp_path / "long.toml").write_text(sj.Study(LONG).to_toml())
    command = [sys.executable, "-c", code, tmp_path / "long.toml", tmp_path / "out"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        while int(child.stdout.readline()) < 3:
            pass
        child.send_signal(signal.SIGINT)
        asked = time.monotonic()
        assert child.stdout.read().endswith("interrupted\n")
        assert child.wait() == 0 and time.monotonic() - asked < 10
    there = sj.Results(tmp_path / "out")
    assert 3 <= 2000 - len(there.missing) < 2000


def test_other_threads_go_on_while_runs_are_run(study: sj.Study, tmp_path: Path) -> None:
    turns = 0
    is_over = threading.Event()

    def turn() -> None:
        nonlocal turns
        while not is_over.wait(0.001):
            turns += 1

    thread = threading.Thread(target=turn)
    thread.start()
    study.change(seeds=20).run(tmp_path / "out", progress=False)
    is_over.set()
    thread.join()
    assert turns > 10


def test_one_run_is_the_run_of_a_study(study: sj.Study, results: sj.Results) -> None:
    run = sj.simulate(study.scenarios[1], seed=2)
    row = [index for index, name in enumerate(results.runs["name"]) if name == "cubic"][4]
    assert results.runs["seed"][row] == 2 and results.runs["path.queue"][row] == "fq_codel"
    assert run.digest == results.runs["digest"][row]
    assert run.flows["cubic"]["goodput_mbps"] == results.runs["goodput_mbps"][row]
    assert run.series(flow="cubic", metric="rtt")["rtt_mean_ms"] == results.series(
        flow="cubic", metric="rtt", run=4
    )["rtt_mean_ms"]
    assert run.delays(metric="rtt")["samples"] == results.delays(metric="rtt", run=4)["samples"]
    assert run.whole["tcp_goodput_sum_mbps"] > 8
    assert "cwnd" in run.end_states["cubic"] and set(run.queues) == {"queue", "reverse_queue"}
    assert run.runs["kind"][0] == "run" and "cubic" in repr(run)
    assert sj.simulate(study.scenarios[1], seed=3).digest != run.digest


def test_runs_and_results_come_back_from_other_processes(study: sj.Study, results: sj.Results) -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        run = pool.submit(sj.simulate, study.scenarios[1], 2).result()
        assert run.digest == sj.simulate(study.scenarios[1], 2).digest
        assert pool.submit(sj.Results, results.folder).result().runs["digest"] == results.runs["digest"]
    again = pickle.loads(pickle.dumps(run))
    assert again.runs.to_dict() == run.runs.to_dict() and again.flows == run.flows
    assert again.series(flow="cubic").to_dict() == run.series(flow="cubic").to_dict()
    assert again.delays().to_dict() == run.delays().to_dict()
    with pytest.raises(sj.ResultsError, match="no run of this version"):
        type(run._native).of_parts(b"\0", "[]")


def test_one_run_needs_one_scenario(study: sj.Study) -> None:
    assert sj.simulate(TWO_FLOWS["scenario"], seed=2).seed == 2
    with pytest.raises(sj.RunError, match="the study has 2 scenarios"):
        sj.simulate(study)


def test_ctrl_c_leaves_one_run_at_once() -> None:
    code = """
import sojourn as sj
world = {"duration": "100000s", "step": "10s", "path": {"rate": "1Gbps", "rtt": "20ms", "queue": "pfifo limit 50"},
         "flow": [{"name": "a", "app": "bulk"}]}
study = sj.Study(title="long", scenario=world)
print("ready", flush=True)
try:
    sj.simulate(study)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    import os
    os._exit(0)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None and child.stdout.readline() == "ready\n"
        time.sleep(0.3)
        child.send_signal(signal.SIGINT)
        assert child.stdout.read() == "interrupted\n"
        assert child.wait() == 0


def test_calling_costs_less_than_a_millisecond() -> None:
    """The least time of a run that does next to nothing, so all of it counts as overhead."""
    world = {"duration": "1ms", "step": "1ms", "path": {"rate": "1Mbps", "rtt": "20ms", "queue": "pfifo limit 5"}}
    study = sj.Study(title="nothing", scenario={**world, "flow": [{"name": "a", "app": "ping"}]})
    least = float("inf")
    for seed in range(200):
        began = time.perf_counter()
        sj.simulate(study, seed)
        least = min(least, time.perf_counter() - began)
    assert least < 1e-3, least


BROKEN = sj.own(parts.Broken)


def test_runs_without_a_result_are_warned_of_and_told(study: sj.Study, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = study.change({"flow.cubic.cca": BROKEN})
    with pytest.warns(RuntimeWarning, match=r"Two flows: 6 of 6 runs ended without a result: run 0: .*ZeroDivisionError") as warned:
        results = broken.run(tmp_path / "out")
    assert warned[0].filename == __file__
    assert "6 of 6 runs, 6 failed" in capsys.readouterr().err
    told = "6 of 6 runs ended without a result: run 0: tests.own_parts:Broken: ZeroDivisionError"
    assert f"0 of 6 runs in {tmp_path / 'out'}\n! {told}" in repr(results) and f"<p>{told}" in results._repr_html_()
    again = sj.Results(tmp_path / "out")
    assert f"! {told}" in repr(again)


def test_a_folder_may_be_where_fsspec_knows(study: sj.Study, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    url = "memory://runs/two"
    results = study.run(url, progress=False)
    assert url in repr(results) and url in results._repr_html_()
    assert sj.Results(url).plan == results.plan
    with pytest.raises(sj.ResultsError) as missing:
        sj.Results("memory://nowhere/else")
    assert "memory://nowhere/else" in str(missing.value) and "sojourn-" not in str(missing.value)
    with pytest.raises(sj.Error) as other:
        study.change({"path.rate": "5Mbps"}).run(url, progress=False)
    assert url in str(other.value) and str(tmp_path) not in str(other.value)


def test_searches_may_be_where_fsspec_knows(study: sj.Study, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import fsspec

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    alone = sj.Study({**study.to_dict(), "factors": {}, "views": {}})
    change, space = {"path.rtt": "{rtt}ms"}, {"rtt": (np.int64(5), np.int64(50))}
    found = sj.search(alone, change, space, lambda _: 1.0, "memory://runs/search", trials=1, first=[{"rtt": np.int32(20)}], progress=False)
    assert found.trials[0].parameters == {"rtt": 20} and found.trials[0].folder == "memory://runs/search/0000/1-seeds"
    assert len(sj.Results(found.trials[0].folder).missing) == 0
    refuted = sj.refute(alone, "used", change, space, {"rtt": np.int64(20)}, "memory://runs/refute", trials=1, progress=False)
    assert refuted.trials[0].folder == "memory://runs/refute/0000/3-seeds"
    storage = fsspec.filesystem("memory")
    for name in ("search/search.json", "refute/refute.json"):
        assert "3-seeds" in storage.cat(f"/runs/{name}").decode() or "1-seeds" in storage.cat(f"/runs/{name}").decode()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache"]


def test_the_report_is_written_though_nobody_reads_the_claims(study: sj.Study, tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(study.to_toml(), encoding="utf-8")
    words = [sys.executable, "-m", "sojourn", "run", "study.toml", "--out", "out", "--quiet"]
    reader, writer = os.pipe()
    os.close(reader)
    ended = subprocess.run(words, cwd=tmp_path, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    # A claim of this study fails.
    assert (ended.returncode, ended.stderr) == (1, "") and (tmp_path / "out" / "report.html").exists()
