"""What other code a class's code depends on, and that it is a part of the identity of its runs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

# How a class may come by a number: what is beside it, and what it calls.
WAYS = {
    "cache": ("@functools.cache\ndef f(w): return w * KK", "f(w)"),
    "limited_cache": ("@functools.lru_cache(maxsize=9)\ndef f(w): return w * KK", "f(w)"),
    "for_types": ("@functools.singledispatch\ndef f(w): return 1\n@f.register\ndef _(w: float): return w * KK", "f(w)"),
    "vectorized": ("@numpy.vectorize\ndef f(w): return w * KK", "f(w)"),
    "wrapped": ("def deco(f):\n    @functools.wraps(f)\n    def g(w): return f(w) * KK\n    return g\n@deco\ndef f(w): return w", "f(w)"),
    "method_of_instance": ("class H:\n    def g(self, w): return w * KK\nh = H()", "h.g(w)"),
    "call_of_instance": ("class H:\n    def __call__(self, w): return w * KK\nh = H()", "h(w)"),
    "bound_method": ("class H:\n    def g(self, w): return w * KK\nh = H().g", "h(w)"),
    "attribute": ("class H:\n    def __init__(self, k): self.k = k\nh = H(KK)", "w * h.k"),
    "slot": ("class H:\n    __slots__ = ('k',)\n    def __init__(self): self.k = KK\nh = H()", "w * h.k"),
    "namespace": ("h = types.SimpleNamespace(k=KK)", "w * h.k"),
    "deque": ("h = collections.deque([KK])", "w * h[0]"),
    "text": ("h = re.compile('KK')", "w * len(h.pattern)"),
    "key_function": ("h = operator.itemgetter('KK')", "h(w)"),
    "nested": ("h = {'a': [{1: (lambda w: w * KK,)}]}", "h['a'][0][1][0](w)"),
    "deep": ("h = KK\n" + "\n".join(f"h = [h, {level}]" for level in range(40)), "h"),
    "many": ("h = list(range(20_000)) + [KK]", "h[-1]"),
    "dataclass": ("@dataclasses.dataclass\nclass D:\n    k: float = KK\nd = D()", "w * d.k"),
    "made_by_dataclass": ("@dataclasses.dataclass\nclass D:\n    k: list = dataclasses.field(default_factory=lambda: [KK])", "w * D().k[0]"),
    "frozen": ("@dataclasses.dataclass(frozen=True, order=True)\nclass D:\n    k: float\nd = D(KK)", "w * d.k"),
    "named_tuple": ("class D(typing.NamedTuple):\n    k: float = 1.0\n    def m(self): return KK\nd = D()", "w * d.m()"),
    "enumeration": ("class D(enum.Enum):\n    A = 1\n    def m(self): return KK", "w * D.A.m()"),
    "compiled": ("f = eval('lambda w: w * KK')", "f(w)"),
    "set_of_functions": ("def f(w): return w * KK\ndef g(w): return w\nh = {f, g}", "[f(w) for f in h]"),
    "dict_by_function": ("def f(w): return w\nh = {f: KK}", "w * h[f]"),
    "circle": ("class H: pass\nh = H()\nh.h = h\nh.s = {h}\nh.k = KK", "w * h.k"),
}  # fmt: skip

HEAD = "import collections, dataclasses, enum, functools, json, operator, re, sys, types, typing, numpy, warnings\nimport sojourn as sj\n"
TAIL = """
from sojourn._source import digest
warnings.simplefilter("ignore")
found = {name: digest(part) for name, part in list(globals().items()) if isinstance(part, type) and name.startswith("C_")}
print(json.dumps(found))
"""


def class_with(name: str, expression: str, before: str = "") -> str:
    return f"class C_{name}(sj.Controller):\n    def on_ack(self, ack):\n        w = 1.0\n        {before}\n        return {expression}\n"


def digests(folder: Path, script: str, seed: str = "0") -> dict[str, str]:
    path = folder / "script.py"
    path.write_text(script)
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, str(path)], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_all_that_the_code_of_a_script_reaches_is_a_part_of_it(tmp_path: Path) -> None:
    parts: list[str] = []
    for name, (beside, expression) in WAYS.items():
        # Each way has names of its own.
        text = f"{beside}\n{class_with(name, expression)}"
        for word in ("deco", "h", "d", "f", "H", "D"):
            text = re_named(text, word, f"{word}_{name}")
        parts.append(text)
    script = HEAD + "".join(parts) + TAIL
    first = digests(tmp_path, script.replace("KK", "3"))
    assert list(first) == [f"C_{name}" for name in WAYS]
    assert digests(tmp_path, script.replace("KK", "3"), seed="1") == first
    other = digests(tmp_path, script.replace("KK", "4"))
    assert [name for name in first if first[name] == other[name]] == []


def re_named(text: str, word: str, other: str) -> str:
    return re.sub(rf"(?<![\w.'\"]){word}(?=[\s.(\[:,;)}}\]]|$)", other, text)


HELPER = """
import functools
L = [KK]
class H:
    def g(self, w): return w * KK
h = H()
@functools.cache
def cached(w): return w * KK
bound = h.g
"""

IMPORTS = {
    "instance": ("from helper import h", "h.g(w)", ""),
    "list": ("from helper import L", "w * L[0]", ""),
    "cached": ("from helper import cached", "cached(w)", ""),
    "bound": ("from helper import bound", "bound(w)", ""),
    "star": ("from helper import *", "h.g(w)", ""),
    "module": ("import helper", "helper.h.g(w)", ""),
    "through": ("from through import again", "again(w)", ""),
    "package": ("from package import part", "part.inner.h.g(w)", ""),
    "inside": ("", "helper.h.g(w)", "import helper"),
    "name_inside": ("", "g(w)", "from helper import bound as g"),
}


@pytest.mark.parametrize("where", ["script", "module"])
def test_modules_that_the_code_imports_are_a_part_of_it(tmp_path: Path, where: str) -> None:
    (tmp_path / "through.py").write_text("from helper import h\ndef again(w): return h.g(w)\n")
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "part.py").write_text("from . import inner\n")
    found: list[dict[str, str]] = []
    for number in ("3", "4"):
        for path in (tmp_path / "helper.py", tmp_path / "package" / "inner.py"):
            path.write_text(HELPER.replace("KK", number))
        texts = {name: f"{imports}\n{class_with(name, expression, before)}" for name, (imports, expression, before) in IMPORTS.items()}
        if where == "module":
            for name, text in texts.items():
                (tmp_path / f"mine_{name}.py").write_text("import sojourn as sj\n" + text)
            texts = {name: f"from mine_{name} import C_{name}\n" for name in texts}
        found.append(digests(tmp_path, HEAD + "".join(texts.values()) + TAIL))
    assert [name for name in found[0] if found[0][name] == found[1][name]] == []


def test_a_module_that_was_changed_after_it_was_imported_is_known_by_what_runs(tmp_path: Path) -> None:
    script = """
from pathlib import Path
import importlib
file = Path("mine.py")
text = "import sojourn as sj\\nclass C_one(sj.Controller):\\n    def on_ack(self, ack): self.cwnd = KK\\n"
file.write_text(text.replace("KK", "5"))
import mine
from sojourn._source import digest
found = {"old": digest(mine.C_one)}
file.write_text(text.replace("KK", "50"))
found["edited"] = digest(mine.C_one)
importlib.reload(mine)
found["new"] = digest(mine.C_one)
file.write_text(text.replace("KK", "5"))
importlib.reload(mine)
found["again"] = digest(mine.C_one)
import json
print(json.dumps(found))
"""
    with_warning = "import warnings\nwarnings.filterwarnings('error', '.*mine.py was changed after it was imported: the old code runs')"
    found = digests(tmp_path, script)
    assert found["again"] == found["old"] and len({found["old"], found["edited"], found["new"]}) == 3
    with pytest.raises(AssertionError, match="mine.py was changed after it was imported"):
        digests(tmp_path, with_warning + script)


def test_what_cannot_be_read_is_warned_of(tmp_path: Path) -> None:
    script = """
import threading
import sojourn as sj
lock = threading.Lock()
class Mine(sj.Controller):
    def on_ack(self, ack):
        with lock: __import__("helper").f()
    def on_congestion(self, congestion): pass
flow = {"name": "a", "app": "bulk", "cca": sj.own(Mine)}
path = {"rate": "10Mbps", "rtt": "20ms", "queue": "pfifo limit 50"}
sj.Study(title="x", scenario={"duration": "1s", "path": path, "flow": [flow]})
"""
    (tmp_path / "script.py").write_text(script)
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("UserWarning") == 1
    assert "script.py:11: UserWarning: python: __main__:Mine depends on what cannot be read" in done.stderr
    assert "(what Mine.on_ack imports by __import__, lock, a _thread.lock)" in done.stderr
