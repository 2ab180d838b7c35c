from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import sojourn as sj

from .conftest import ROOT, TWO_FLOWS

SHIPPED = sorted(ROOT.glob("studies/*/*.toml")) + sorted(ROOT.glob("examples/*.toml"))


def test_a_study_built_of_values_is_the_one_that_its_toml_says(study: sj.Study) -> None:
    again = sj.Study.from_toml(study.to_toml())
    assert again == study
    assert again.to_dict() == {"schema": 1, **TWO_FLOWS}
    assert again.check() == study.check()
    assert sj.Study(again.to_dict()).to_toml() == study.to_toml()


@pytest.mark.parametrize("engine", ["live", "live link=emulated", "kernel"])
def test_engines_of_the_command_are_said_to_be_its(study: sj.Study, engine: str) -> None:
    with pytest.raises(sj.StudyError) as raised:
        study.change(engine=engine)
    problem = f"engine '{engine.split()[0]}': the command `sojourn run` has it, the Python package does not (allowed: sim, fluid)"
    assert problem in str(raised.value)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_shipped_study_loses_anything_on_the_way_through_python(path: Path) -> None:
    try:
        read = sj.Study.from_toml(path)
    except sj.StudyError as error:
        if "the trace" in str(error):
            pytest.skip("its traces are not in the repository")
        if "the command `sojourn run` has it" in str(error):
            pytest.skip("live runs and kernels are the command's")
        raise
    # What extends another file is joined with it, so its text differs.
    if "\nextends" not in path.read_text():
        assert read.to_toml() == path.read_text()
    built = sj.Study(read.to_dict(), folder=path.parent)
    assert built == read
    assert built.check() == read.check()


def test_keywords_and_a_mapping_say_the_same() -> None:
    scenario = TWO_FLOWS["scenario"]
    assert sj.Study(title="x", scenario=scenario) == sj.Study({"title": "x"}, scenario=scenario)


def test_values_of_numpy_and_paths_are_values() -> None:
    document: dict[str, object] = {**TWO_FLOWS}
    document["repeat"] = {"seeds": np.array([3, 5]), "study_seed": np.int64(7)}
    assert sj.Study(document).seeds == [3, 5]
    assert sj.Study(document).to_dict()["repeat"] == {"seeds": [3, 5], "study_seed": 7}


def test_scenarios_are_the_combinations_of_factors(study: sj.Study) -> None:
    assert [scenario.factors for scenario in study.scenarios] == [
        {"path.queue": "pfifo limit 50"},
        {"path.queue": "fq_codel"},
    ]
    last = study.scenarios[-1]
    assert (last.label, last.duration_s) == ("path.queue = fq_codel", 2.0)
    assert last.flows == ["cubic", "bbr.1", "bbr.2"]
    with pytest.raises(IndexError):
        study.scenarios[2]


def test_changes_are_those_of_the_command(study: sj.Study) -> None:
    changed = study.change(
        {"path.rate": "40Mbps", "path.queue": ["codel", "pie"]}, seeds=[4, 9], shorten="1s"
    )
    assert changed.factors == {"path.queue": ["codel", "pie"]}
    assert changed.seeds == [4, 9]
    assert [scenario.duration_s for scenario in changed.scenarios] == [1.0, 1.0]
    assert changed.to_dict()["scenario"]["path"]["rate"] == "40Mbps"
    assert changed.change(seeds=2).seeds == [1, 2]
    assert study.change({"cca": "reno", "path.loss": "1%"}).check().runs == 6
    fluid = study.change({"path.queue": "pfifo limit 50"}, engine="fluid")
    assert fluid.to_dict()["scenario"]["engine"] == "fluid"


def test_a_study_travels_to_another_process(study: sj.Study) -> None:
    again = pickle.loads(pickle.dumps(study))
    assert again == study and again.check() == study.check()


def error(document: object, **keys: object) -> str:
    with pytest.raises(sj.StudyError) as raised:
        sj.Study(document, **keys)  # type: ignore[arg-type]
    return str(raised.value)


def test_every_mistake_is_told_with_its_key_and_what_is_allowed() -> None:
    document = {**TWO_FLOWS, "titel": "x", "scenario": {**TWO_FLOWS["scenario"], "duration": "2 bananas"}}
    with pytest.raises(sj.StudyError) as raised:
        sj.Study(document)
    titel, duration = sorted(raised.value.mistakes, key=lambda mistake: mistake.key, reverse=True)
    assert titel.key == "titel" and "did you mean 'title'?" in titel.problem
    assert duration.key == "scenario.duration" and duration.file == "study"
    assert duration.line is None and duration.column is None
    assert str(raised.value).splitlines() == [str(mistake) for mistake in raised.value.mistakes]
    assert isinstance(raised.value, sj.Error)


def test_values_that_no_study_can_have_are_refused() -> None:
    assert error({"title": None}).startswith("study: title: None is no value; leave the key out")
    assert "a key is a int, not a text" in error({3: 4})
    assert "title: a object is no value of a study" in error({"title": object()})
    assert f"{2**63} is too large" in error({"title": 2**63})
    assert "a bytes is no value" in error({"title": b"x"})
    circle: list[object] = []
    circle.append(circle)
    assert "nested too deeply" in error({"title": circle})
    with pytest.raises(TypeError):
        sj.Study([1, 2])  # type: ignore[arg-type]


class Broken(dict):  # type: ignore[type-arg]
    def items(self) -> None:  # type: ignore[override]
        raise ZeroDivisionError


def test_what_python_raises_comes_through() -> None:
    with pytest.raises(ZeroDivisionError):
        sj.Study({"scenario": Broken()})


def test_errors_in_files_are_those_of_the_command(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(
        'schema = 1\ntitle = "x"\n[scenario]\nduration = "1 hour"\n'
        'path = { rate = "1Mbps", rtt = "9ms", queue = "pfifo" }\n'
        '[[scenario.flow]]\nname = "a"\napp = "bulk"\n'
    )
    with pytest.raises(sj.StudyError) as raised:
        sj.Study.from_toml(path)
    place = raised.value.mistakes[0]
    assert (place.file, place.line, place.column) == (str(path), 4, 12)
    assert str(raised.value).startswith(f"{path}:4:12: scenario.duration: ")
    with pytest.raises(sj.StudyError, match="nosuch.toml: cannot be read"):
        sj.Study.from_toml("nosuch.toml")
    with pytest.raises(sj.StudyError, match="not TOML"):
        sj.Study.from_toml("this is\nno study")


def test_importing_loads_little_and_nothing_from_elsewhere() -> None:
    """What an import takes is the time of the modules that it loads, so these are counted and no time is taken."""
    code = "import sys; before = set(sys.modules); import sojourn; print(*set(sys.modules) - before)"
    loaded = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    elsewhere = {module.partition(".")[0] for module in loaded} - set(sys.stdlib_module_names)
    # multiprocessing names the main module once more.
    assert elsewhere - {"__mp_main__"} == {"sojourn"}
    assert "asyncio" not in loaded
    assert len(loaded) < 160, sorted(loaded)


JUNK: list[Any] = [
    None, True, -1, 0, 10**30, 1.5, float("nan"), float("inf"), "", "x", "0s", "1e99s", "-5ms", "pfifo limit 0", "cubic", "\x00", b"x",
    [], [[]], {}, {"": ""}, {"name": "x"}, object(), {1: 2}, ["x"] * 3, "python os:path", "🛰",
]  # fmt: skip


def spoiled(value: Any, random: Random) -> Any:
    """The same with junk in the place of a part, or with a key that is junk."""
    if isinstance(value, dict) and value and random.random() < 0.85:
        key = random.choice(list(value))
        changed = {**value, key: spoiled(value[key], random)}
        if random.random() < 0.1:
            changed[random.choice(["x", "", "cca", "path.queue", "flow"])] = random.choice(JUNK)
        return changed
    if isinstance(value, list) and value and random.random() < 0.85:
        at = random.randrange(len(value))
        return [*value[:at], spoiled(value[at], random), *value[at + 1 :]]
    return random.choice(JUNK)


def test_whatever_a_study_is_built_of_an_exception_says_what_is_wrong() -> None:
    random = Random(5)
    refused = 0
    for _ in range(1500):
        document = spoiled(TWO_FLOWS, random)
        try:
            study = sj.Study(document)
            study.check()
            assert sj.Study.from_toml(study.to_toml()) == study
        except (sj.StudyError, TypeError, ValueError) as error:
            assert str(error) and "fault of Sojourn" not in str(error)
            refused += 1
    # A panic would be no Exception of these. Some junk is a study.
    assert 1000 < refused < 1500


def test_a_mistake_comes_from_another_process_with_its_text() -> None:
    with pytest.raises(sj.StudyError) as raised:
        sj.Study(title="x")
    again = pickle.loads(pickle.dumps(raised.value))
    assert type(again) is sj.StudyError and str(again) == str(raised.value) and again.mistakes == []


def test_seeds_may_be_numbers_of_numpy(study: sj.Study) -> None:
    assert study.change(seeds=np.array([4, 2])).seeds == [4, 2]
    assert study.change(seeds=np.int64(2)).seeds == [1, 2]
    assert study.change(seeds=range(3, 5)).seeds == [3, 4]
    assert study.change(seeds=(seed for seed in (7, 8))).seeds == [7, 8]


@pytest.mark.parametrize(
    ("change", "kind", "text"),
    [
        ({"seeds": "12"}, TypeError, "seeds is a str (allowed: a whole number, or several)"),
        ({"seeds": 1.0}, TypeError, "seeds is a float (allowed: a whole number)"),
        ({"seeds": [1, "2"]}, TypeError, "seeds is a str (allowed: a whole number)"),
        ({"seeds": True}, TypeError, "seeds is a bool"),
        ({"seeds": -1}, sj.StudyError, "seeds: -1 is no number of seeds (allowed: 1 or more, or a list of seeds)"),
        ({"seeds": 2**64}, sj.StudyError, f"seeds: {2**64} is no number of seeds"),
        ({"shorten": 1}, TypeError, "shorten is an int (allowed: a text such as '5s')"),
        ({"engine": 1}, TypeError, "engine is an int (allowed: a text such as 'fluid')"),
        ({"set": "path.rate"}, TypeError, "set is a str (allowed: keys with values"),
        ({"set": {5: 6}}, TypeError, "set: a key is an int (allowed: a text such as 'path.rate')"),
    ],
)
def test_changes_that_are_none_are_told(change: dict[str, Any], kind: type[Exception], text: str, study: sj.Study) -> None:
    with pytest.raises(kind) as raised:
        study.change(**change)
    assert text in str(raised.value)


def test_seeds_and_jobs_that_are_none_are_told(study: sj.Study) -> None:
    for seed in (-1, 2**64):
        with pytest.raises(sj.RunError, match=f"seed is {seed} "):
            sj.simulate(study.scenarios[0], seed)
    for jobs in (-1, 2**70):
        with pytest.raises(sj.RunError, match=rf"jobs: {jobs} runs at a time is no number of runs \(allowed: 1 or more\)"):
            study.run(jobs=jobs)
    with pytest.raises(TypeError, match="shard is an int"):
        study.run(shard=1)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("do", "kind", "text"),
    [
        (lambda s: sj.simulate("x"), TypeError, "scenario is a str (allowed: one of study.scenarios, a Study with one scenario, or a dict)"),
        (lambda s: sj.simulate(None), TypeError, "scenario is None (allowed"),
        (lambda s: sj.simulate([]), TypeError, "scenario is a list (allowed"),
        (lambda s: sj.simulate(s.scenarios), TypeError, "scenario is a Scenarios (allowed: one of study.scenarios"),
        (lambda s: sj.own(3), TypeError, "part is an int (allowed: a class of yours with the base sojourn.Controller or sojourn.Queue)"),
        (lambda s: sj.own(object), TypeError, "part is the class object (allowed"),
        (lambda s: sj.own(sj.Queue), TypeError, "part is the class Queue (allowed"),
        (lambda s: sj.own(sj.Queue.drop), TypeError, "part is a function (allowed"),
        (lambda s: sj.Study(s.to_dict(), title="a\ud800"), sj.StudyError, r"title has half of a surrogate pair: 'a\ud800' (allowed: Unicode)"),
        (lambda s: sj.Study(s.to_dict(), source={"\ud800": 1}), sj.StudyError, "source: a key has half of a surrogate pair"),
        (lambda s: sj.Study.from_toml("title = '\ud800'\n"), sj.StudyError, "the text has half of a surrogate pair"),
        (lambda s: sj.Study.from_toml(""), sj.StudyError, "source is '' (allowed: a path)"),
        (lambda s: sj.Study.from_toml(3), TypeError, "source is an int (allowed: the path of a file or of a folder, or a text with a line break)"),
        (lambda s: s.change({"path.rate": "\ud800"}), sj.StudyError, "set.path.rate has half of a surrogate pair"),
        (lambda s: s.change(shorten="\ud800"), sj.Error, "shorten has half of a surrogate pair"),
        (lambda s: s.run("\ud800"), sj.RunError, "out has half of a surrogate pair"),
        (lambda s: s.run(""), sj.RunError, "out is '' (allowed: a path)"),
        (lambda s: s.run(3), TypeError, "out is an int (allowed: a path)"),
        (lambda s: sj.model("\ud800"), sj.Error, "model[0] has half of a surrogate pair"),
    ],
)
def test_what_means_nothing_is_refused(do: Any, kind: type[Exception], text: str, study: sj.Study) -> None:
    with pytest.raises(kind) as raised:
        do(study)
    assert text in str(raised.value)
