"""Ctrl-C, in processes of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAD = """
import os, signal, sys, threading, time
import sojourn as sj
signal.signal(signal.SIGINT, signal.default_int_handler)
def press():
    os.kill(os.getpid(), signal.SIGINT)
class Calm(sj.Controller):
    def on_ack(self, ack): pass
    def on_congestion(self, congestion): pass
class Busy(Calm):
    def on_ack(self, ack):
        press()
        while True: pass
class Stubborn(Calm):
    def on_ack(self, ack):
        while True:
            press()
            time.sleep(0.1)
class Leaving(Calm):
    def on_ack(self, ack): sys.exit(7)
def scenario(cca, duration="1s"):
    path = {"rate": "10Mbps", "rtt": "20ms", "queue": "pfifo limit 50"}
    return {"duration": duration, "path": path, "flow": [{"name": "a", "app": "bulk", "cca": cca, "start_jitter": "10ms"}]}
def threads():
    return len(os.listdir("/proc/self/task"))
"""


def end_of(folder: Path, script: str) -> int:
    """What is not interrupted lasts for ever."""
    (folder / "script.py").write_text(HEAD + script)
    done = subprocess.run([sys.executable, "script.py"], cwd=folder, capture_output=True, text=True, timeout=100)
    print(done.stderr)
    return done.returncode


@pytest.mark.parametrize("call", ["sj.simulate(scenario(sj.own(Busy)))", "sj.check(Busy)"])
def test_it_comes_out_of_a_class_that_is_busy(tmp_path: Path, call: str) -> None:
    assert end_of(tmp_path, f"try: {call}\nexcept KeyboardInterrupt: sys.exit(3)") == 3


def test_what_a_class_raises_besides_errors_comes_through(tmp_path: Path) -> None:
    assert end_of(tmp_path, "sj.simulate(scenario(sj.own(Leaving)))") == 7


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts threads in /proc")
@pytest.mark.parametrize("engine", ["sim", "fluid"])
def test_a_run_in_memory_ends_and_computes_no_more(tmp_path: Path, engine: str) -> None:
    script = f"""
world = scenario("bbr3" if "{engine}" == "sim" else "reno", "100000s")
before = threads()
threading.Timer(0.2, press).start()
try: sj.simulate({{**world, "engine": "{engine}"}})
except KeyboardInterrupt: sys.exit(3 if threads() <= before else 4)
"""
    assert end_of(tmp_path, script) == 3


def test_the_second_ends_runs_under_way(tmp_path: Path) -> None:
    script = """
study = sj.Study(title="x", scenario=scenario(sj.own(Stubborn)), repeat={"seeds": 3})
try: study.run("out", progress=False)
except KeyboardInterrupt:
    results = sj.Results("out")
    sys.exit(3 if len(results.missing) == 3 and not results.failed else 4)
"""
    assert end_of(tmp_path, script) == 3
    # Runs of the built-in controls, which ask no class.
    script = """
study = sj.Study(title="x", scenario=scenario("bbr3", "100000s"), repeat={"seeds": 3})
def twice():
    while True:
        press()
        time.sleep(0.3)
threading.Timer(0.5, twice).start()
try: study.run("long", progress=False)
except KeyboardInterrupt:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os._exit(3)
"""
    assert end_of(tmp_path, script) == 3
