"""Congestion controls and queues that are written in Python."""

from __future__ import annotations

import ast
import importlib
import multiprocessing
import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import sojourn as sj

from . import own_parts as parts
from .conftest import ROOT, files

PATH = {"rate": "10Mbps", "rtt": "20ms", "queue": "pfifo limit 50"}


def study(cca: str = "cubic", **path: str) -> sj.Study:
    flows = [{"name": "one", "app": "bulk", "cca": cca}, {"name": "two", "app": "bulk", "start": "500ms"}]
    return sj.Study(title="Own", scenario={"duration": "4s", "path": {**PATH, **path}, "flow": flows})


def test_reno_in_python_sends_the_packets_of_the_built_in_one() -> None:
    own, built_in = sj.simulate(study(sj.own(parts.Reno))), sj.simulate(study("reno"))
    assert own.whole["tcp_goodput_sum_mbps"] > 8
    assert own.flows == built_in.flows
    phases = {phase for phase in own.series(flow="one", metric="cwnd_pkts")["phase"] if phase}
    assert phases == {"slow_start", "avoidance"}


@pytest.mark.parametrize("path", [{}, {"rate": "3Mbps", "queue": "pfifo limit 7", "loss": "0.5%"}])
def test_a_fifo_in_python_treats_packets_as_the_built_in_one(path: dict[str, str]) -> None:
    limit = int(path.get("queue", "pfifo limit 50").split()[-1])
    own = sj.simulate(study(**{**path, "queue": sj.own(parts.Fifo, limit=limit)}))
    built_in = sj.simulate(study(**path))
    assert own.digest == built_in.digest
    assert own.flows == built_in.flows


def test_a_queue_in_python_drops_marks_and_shapes() -> None:
    head = sj.simulate(study(queue=sj.own(parts.HeadDrop, limit=20)))
    assert head.queues["queue"]["drops_overflow"] > 0 and head.queues["queue"]["drops_full"] == 0
    marked = study(queue=sj.own(parts.HeadDrop)).to_dict()
    marked["scenario"]["flow"][0]["ecn"] = "classic"
    assert sj.simulate(sj.Study(marked)).queues["queue"]["marks"] > 0
    shaped = sj.simulate(study(queue=sj.own(parts.Paced)))
    # A full packet each 10 ms.
    assert 1.0 < sum(flow["goodput_mbps"] for flow in shaped.flows.values()) < 1.2


@pytest.mark.parametrize("part", [parts.Reno, parts.Steady, parts.Fifo, parts.HeadDrop, parts.Paced, parts.Slotted])
def test_what_is_right_passes_the_suite(part: Any) -> None:
    sj.check(part)


@pytest.mark.parametrize(
    ("part", "problem"),
    [
        (parts.Broken, "ZeroDivisionError: division by zero (own_parts.py:"),
        (parts.Vanishing, "cwnd is 0 (allowed: 1 to 2**31 segments)"),
        (parts.Nameless, "phase is '' (allowed: a name"),
        (parts.Wordy, "own_parts:Wordy: ValueError: cwnd is 'ten' (allowed: 1 to 2**31 segments)"),
        (parts.Windowless, "own_parts:Windowless: ValueError: cwnd is None (allowed: 1 to 2**31 segments)"),
        (parts.Giant, f"own_parts:Giant: ValueError: ssthresh is 1{'0' * 59}… (allowed: 0 to 2**31 segments, or None)"),
        (parts.Slow, "own_parts:Slow: ValueError: pacing_rate_mbps is 1e-300 (allowed: more than 0.000001, less than 10**9, or None)"),
        (parts.Counting, "own_parts:Counting: ValueError: phase is 3 (allowed: a name, and fewer than 100 of them)"),
        (parts.Moody, "the same calls are answered otherwise the second time"),
        (parts.Twice, "is not in the queue: it was given, dropped or refused before"),
        (parts.Forgetful, "dequeue returned None with 1 packets inside"),
        (parts.Vague, "enqueue returned a NoneType (allowed: True, or False to refuse the packet)"),
        (parts.Stack, "packets of a flow change their order"),
        (parts.Late, "dequeue asks to wait until"),
        (parts.Eager, "(allowed: times that are later by a nanosecond)"),
        (parts.Endless, "dequeue asks to wait until 1e+30 s (allowed: up to 1e+09 s)"),
        (parts.Nagging, "dequeue asked to wait 100001 times in a row, at last until"),
    ],
)
def test_what_is_wrong_is_said(part: Any, problem: str) -> None:
    with pytest.raises(sj.Error) as raised:
        sj.check(part)
    assert problem in str(raised.value)
    assert "fault of Sojourn" not in str(raised.value)


def test_an_exception_ends_the_run_with_its_text_and_place(tmp_path: Path) -> None:
    broken = study(sj.own(parts.Broken))
    with pytest.raises(sj.RunError) as raised:
        sj.simulate(broken)
    assert str(raised.value).startswith("tests.own_parts:Broken: ZeroDivisionError: division by zero (own_parts.py:")
    with pytest.warns(RuntimeWarning, match="1 of 1 runs ended without a result"):
        results = broken.run(tmp_path / "broken", progress=False)
    assert "ZeroDivisionError" in results.failed[0]


def test_a_queue_that_never_gets_on_ends_its_run() -> None:
    with pytest.raises(sj.RunError, match="later by a nanosecond"):
        sj.simulate(study(queue=sj.own(parts.Eager)))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("python", "which class? (allowed: python MODULE:CLASS NAME=VALUE …)"),
        ("python nothing", "'nothing' names no class (allowed: MODULE:CLASS)"),
        ("python no_such:Thing", "ModuleNotFoundError: No module named 'no_such'"),
        ("python tests.own_parts:Nothing", "the module tests.own_parts of this process has no Nothing"),
        ("python tests.own_parts:Fifo", "is no subclass of sojourn.Controller"),
        ("python tests.own_parts:Half", "has no method on_congestion"),
        ("python tests.own_parts:Steady colour=red", "no parameter 'colour' (allowed: window, share, word, is_odd)"),
        ("python tests.own_parts:Steady window=wide", "window is 'wide' (allowed: int)"),
        ("python tests.own_parts:Steady is_odd=perhaps", "is_odd is 'perhaps' (allowed: on, off)"),
        ("python tests.own_parts:Steady window", "'window' needs a value"),
    ],
)
def test_a_class_that_cannot_be_had_is_a_mistake_of_the_study(text: str, problem: str) -> None:
    with pytest.raises(sj.StudyError) as raised:
        study(text)
    assert problem in str(raised.value)
    assert raised.value.mistakes[0].key.endswith("cca")


def test_parameters_are_read_by_the_types_of_their_defaults() -> None:
    wide = sj.own(parts.Steady, window=30, share=0.25, word="other", is_odd=True)
    assert wide == "python tests.own_parts:Steady window=30 share=0.25 word=other is_odd=on"
    few, many = (sj.simulate(study(sj.own(parts.Steady, window=window))) for window in (4, 30))
    assert few.flows["one"]["goodput_mbps"] < many.flows["one"]["goodput_mbps"]
    # A default that is written changes no identity.
    assert study(sj.own(parts.Steady, window=10)).check().digest == study(sj.own(parts.Steady)).check().digest
    assert study(sj.own(parts.Steady, window=11)).check().digest != study(sj.own(parts.Steady)).check().digest
    with pytest.raises(sj.Error, match="without blanks"):
        sj.own(parts.Steady, word="two words")


def test_other_code_has_other_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    source = Path(parts.__file__).read_text()
    (tmp_path / "mine_one.py").write_text(source)
    (tmp_path / "mine_two.py").write_text(source + "\n# changed\n")
    digests = {name: study(f"python {name}:Steady").scenarios[0].study.check().digest for name in ("mine_one", "mine_two")}
    assert len(set(digests.values())) == 2
    queue = f"python mine_one:Fifo code={'0' * 16}"
    with pytest.raises(sj.StudyError, match="is not the code 0000000000000000"):
        study(queue=queue)


MINE = """
import os
import sojourn as sj
import helper_module
from base_module import Base
STEP = float(os.environ["STEP"])
UNUSED = os.environ["UNUSED"]
COUNT = 0
SEEN = []
class Child(Base):
    def begin(self):
        global COUNT
        COUNT += 1
        SEEN.append(COUNT)
    def step(self):
        return STEP * helper_module.half()
"""
BASE = """
import sojourn as sj
class Base(sj.Controller):
    def on_ack(self, ack):
        self.cwnd += self.step() * ack.delivered / self.cwnd
    def on_congestion(self, congestion):
        self.cwnd = max(self.cwnd / 2, 2)
"""
HELPER = """
import deeper_module
def half():
    return deeper_module.HALF
"""
DEEPER = """
import os
HALF = float(os.environ["HALF"])
"""


def test_what_the_code_names_is_a_part_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    # Files that change within a second would be taken for those that were compiled.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    sources = {"mine_module": MINE, "base_module": BASE, "helper_module": HELPER, "deeper_module": DEEPER}

    def digest(changed: dict[str, str] = {}, /, **environment: str) -> str:
        for name, value in {"STEP": "1", "UNUSED": "1", "HALF": "0.5", **environment}.items():
            monkeypatch.setenv(name, value)
        for name, source in {**sources, **changed}.items():
            (tmp_path / f"{name}.py").write_text(source)
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        own = study("python mine_module:Child")
        before = own.check().digest
        sj.simulate(own)
        assert importlib.import_module("mine_module").COUNT > 0
        # What changes while a run lasts does not count.
        assert study("python mine_module:Child").check().digest == before
        return before

    first = digest()
    assert digest() == first and digest(UNUSED="2") == first
    others = [
        digest(STEP="2"),
        digest(HALF="0.25"),
        digest({"base_module": BASE.replace("/ 2", "/ 3")}),
        digest({"helper_module": HELPER + "# changed"}),
    ]
    assert len({first, *others}) == 5


def test_classes_of_a_notebook_are_known_by_their_text_and_what_it_names(tmp_path: Path) -> None:
    environment = {**os.environ, "IPYTHONDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("notebook.py"))], cwd=tmp_path, env=environment, capture_output=True, text=True
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_workers_import_the_class(tmp_path: Path) -> None:
    own = study(sj.own(parts.Reno), queue=sj.own(parts.Fifo)).change(seeds=4)
    here = own.run(tmp_path / "here", progress=False)
    context = multiprocessing.get_context("spawn")
    there = own.run(tmp_path / "there", progress=False, executor=lambda: ProcessPoolExecutor(2, mp_context=context))
    assert not here.missing
    assert files(here.folder) == files(there.folder)


def test_the_types_say_what_each_attribute_is() -> None:
    stub = ast.parse((Path(sj.__file__).parent / "_native.pyi").read_text(encoding="utf-8"))
    given = {"Ack", "Rate", "Congestion", "Lost", "Packet"}
    classes = [node for node in stub.body if isinstance(node, ast.ClassDef) and node.name in given]
    silent = [
        f"{one.name}.{node.name}" for one in classes for node in one.body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and not ast.get_docstring(node)
    ]  # fmt: skip
    assert len(classes) == 5 and not silent
    page = (ROOT / "docs/python.md").read_text(encoding="utf-8")
    assert all(f"| `{name}` |" in page for name in dir(sj.Ack) if not name.startswith("_"))
