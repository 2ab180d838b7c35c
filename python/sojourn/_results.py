"""Results: of a folder, and of one run in memory."""

from __future__ import annotations

import html
import json
import os
import shutil
import warnings
import weakref
from collections.abc import Iterable, Mapping
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, NamedTuple

from . import _native as extension
from . import _storage
from ._given import check_path, check_unicode, mapping, refused, unicode, whole
from ._native import ResultsError, Table


class Claim(NamedTuple):
    """A claim of a study with its verdict."""

    id: str
    text: str
    verdict: str
    """``holds``, ``fails`` or ``untestable``."""


class Figure:
    """A figure of the report, as SVG; a notebook shows it."""

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def save(self, path: str | PathLike[str]) -> None:
        """Writes it as a file, whose name ends with ``.svg``."""
        check_path("path", path, ResultsError)
        if Path(path).suffix.lower() not in ("", ".svg"):
            raise ResultsError(f"{fspath(path)}: a figure of the report is SVG (allowed: a name that ends with .svg; sojourn.plot draws PNG, too)")
        Path(path).write_text(self.svg, encoding="utf-8")

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<sojourn.Figure of {len(self.svg)} bytes>"


class Figures(dict[str, Figure]):
    """Figures by name; a notebook shows all of them."""

    def _repr_html_(self) -> str:
        return "".join(f"<h4>{html.escape(name)}</h4>{figure.svg}" for name, figure in self.items())

    def __repr__(self) -> str:
        return f"<sojourn.Figures: {', '.join(self)}>"


class FigureTable:
    """A figure of the report that is a table, or several; a notebook shows it."""

    def __init__(self, markdown: str, latex: str) -> None:
        self.markdown = markdown
        self.latex = latex
        """``tabular`` with the rules of the package booktabs."""

    def save(self, path: str | PathLike[str]) -> None:
        """Writes it as a file, whose name ends with ``.md`` or ``.tex``."""
        check_path("path", path, ResultsError)
        forms = {".md": self.markdown, ".tex": self.latex}
        text = forms.get(Path(path).suffix.lower())
        if text is None:
            raise ResultsError(f"{fspath(path)}: a table is written as Markdown or for LaTeX (allowed: a name that ends with .md or .tex)")
        Path(path).write_text(text, encoding="utf-8")

    def _repr_markdown_(self) -> str:
        return self.markdown

    def __repr__(self) -> str:
        return f"<sojourn.FigureTable of {len(self.markdown.splitlines())} lines>"


class Results:
    """A result folder with the runs that it had when it was opened; not all may be done.

    Their rows are read when they are asked for.

    `folder` may be on object storage, as fsspec writes such paths: ``s3://bucket/folder``.

    Warns (`UserWarning`) of a folder without checksums, in which damage is not noticed.
    """

    _url: str | None = None

    def __init__(self, folder: str | PathLike[str]) -> None:
        if _storage.is_remote(folder):
            # Its series are read when they are asked for, so the copy stays as long as this does.
            copy = mkdtemp(prefix="sojourn-")
            weakref.finalize(self, shutil.rmtree, copy, ignore_errors=True)
            self._url = os.fspath(folder)
            _storage.fetch(self._url, Path(copy))
            with _storage.named(Path(copy), self._url):
                self._native = extension.Results.open(copy)
        else:
            check_path("folder", folder, ResultsError)
            self._native = extension.Results.open(folder)
        if not self._native.has_checksums:
            problem = "an older version wrote this folder, without checksums: damage to its files would not be noticed"
            warnings.warn(f"{self._url or self.folder}: {problem}", UserWarning, stacklevel=2)

    @classmethod
    def _of(cls, native: extension.Results) -> Results:
        results = cls.__new__(cls)
        results._native = native
        return results

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process opens the folder anew."""
        return Results, (self._url or os.path.abspath(self._native.folder),)

    @property
    def folder(self) -> Path:
        return Path(fspath(self._native.folder))

    @cached_property
    def plan(self) -> dict[str, Any]:
        """`plan.json`: scenarios, factors, seeds, runs, views, metrics with unit and meaning."""
        plan: dict[str, Any] = json.loads(self._native.plan)
        return plan

    @cached_property
    def machine(self) -> dict[str, Any] | None:
        """`machine.json`: versions, cores, the command, how long it took."""
        text = self._native.machine
        return None if text is None else json.loads(text)

    @property
    def study(self) -> str:
        """The study as it was run, as TOML."""
        return self._native.study

    @property
    def missing(self) -> list[int]:
        """Positions of runs without a result."""
        return self._native.missing

    @property
    def failed(self) -> dict[int, str]:
        """Runs that ended without a result, and why."""
        return dict(self._native.failed)

    @property
    def verdicts(self) -> list[Claim]:
        """The claims with their verdicts; `claims` has every expression with its value."""
        return [Claim(*claim) for claim in self._native.verdicts]

    @cached_property
    def runs(self) -> Table:
        """A row for each run, each of its flows and each of its queues, with all metrics."""
        return self._native.runs()

    @cached_property
    def claims(self) -> Table:
        """A row for each expression of a claim and scenario: value, interval, bound, by how much it
        is off."""
        return self._native.claims()

    def series(
        self,
        *,
        flow: str | Iterable[str] | None = None,
        queue: str | Iterable[str] | None = None,
        metric: str | Iterable[str] | None = None,
        run: int | Iterable[int] | None = None,
        seed: int | Iterable[int] | None = None,
        where: Mapping[str, str | Iterable[str]] | None = None,
    ) -> Table:
        """Time series, a row for each step of each flow and queue.

        A flow may be named by its group. `metric` is a column with its unit (``rtt_mean_ms``), or the word
        with which several begin (``rtt``). `where` restricts factors: ``{"path.queue": "fq_codel"}``.

        Raises `ResultsError` if none of the runs in `run` has a result, with the reason.
        """
        return self._native.series(self._checked(wanted(flow, queue, metric, run, seed, where)))

    def delays(
        self,
        *,
        flow: str | Iterable[str] | None = None,
        queue: str | Iterable[str] | None = None,
        metric: str | Iterable[str] | None = None,
        run: int | Iterable[int] | None = None,
        seed: int | Iterable[int] | None = None,
        where: Mapping[str, str | Iterable[str]] | None = None,
    ) -> Table:
        """Distributions of delays, a row for each bucket; buckets are at most 0.4 % wide.

        `metric` is the word with which the names of its quantiles begin: ``rtt``, ``owd``, ``sojourn``. Raises `ResultsError`
        if none of the runs in `run` has a result, with the reason.
        """
        return self._native.delays(self._checked(wanted(flow, queue, metric, run, seed, where)))

    def _checked(self, asked: extension.Wanted) -> extension.Wanted:
        """Raises `ResultsError` for a run or seed that cannot be, and if none of the runs that are asked for has a result."""
        runs, seeds = asked["run"] or [], asked["seed"] or []
        count = len(self.plan["runs"]) if runs else 0
        for one in runs:
            if one not in range(count):
                raise ResultsError(f"there is no run {one} (allowed: 0 to {count - 1})")
        for one in seeds:
            if one not in range(1 << 64):
                raise ResultsError(f"there is no seed {one} (allowed: {', '.join(map(str, self.plan['seeds'][:20]))})")
        if runs and set(runs) <= set(self.missing):
            why = self.failed.get(runs[0], "it is not done yet")
            others = f", nor have any of the {len(runs) - 1} others" if len(runs) > 1 else ""
            raise ResultsError(f"run {runs[0]} has no result{others}: {why}")
        return asked

    def report(self, path: str | PathLike[str] | None = None) -> Path:
        """Writes the report, one page that needs no network: ``report.html`` in the folder.

        Of a folder on object storage the path is that of the copy on this machine.
        """
        if path is not None:
            check_path("path", path, ResultsError)
        target = self.folder / "report.html" if path is None else Path(path)
        page = self._native.report()
        target.write_text(page, encoding="utf-8")
        if path is None and self._url is not None:
            _storage.put(page, self._url, target.name)
        return target

    def figure(self, name: str) -> Figure:
        """A figure of the report: a view of the study by its name, or a standard one (``goodput``)."""
        with unicode("figure", name):
            return Figure(self._native.figure(name))

    @property
    def figures(self) -> Figures:
        """The report's drawings by their names: the study's views, then those that each report has."""
        return Figures((name, Figure(svg)) for name, svg in self._native.figures())

    def table(self, name: str) -> FigureTable:
        """A view of the study that is a table, a heat map or verdicts, by its name."""
        with unicode("table", name):
            return FigureTable(*self._native.table(name))

    @property
    def tables(self) -> dict[str, FigureTable]:
        """The report's figures that are tables, by their names."""
        return {name: FigureTable(markdown, latex) for name, markdown, latex in self._native.tables()}

    def __repr__(self) -> str:
        runs = len(self.plan["runs"])
        there = runs - len(self.missing)
        lines = [f"{self.plan['title']}: {there} of {runs} runs in {self._url or self.folder}"]
        if self._failures:
            lines.append(f"! {self._failures}")
        marks = {"holds": "✓", "fails": "✗"}
        for claim in self.verdicts:
            lines.append(f"{marks.get(claim.verdict, '?')} {claim.id}: {claim.text}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return glance(self)

    @property
    def _lack(self) -> str:
        """How many runs have no result and the first reason; empty if all have one."""
        missing, runs = len(self.missing), len(self.plan["runs"])
        if not missing:
            return ""
        failed = self.failed
        why = f"run {min(failed)}: {failed[min(failed)]}" if failed else "they are not done yet"
        return f"{missing} of {runs} runs {'has' if missing == 1 else 'have'} no result: {why}"

    @property
    def _failures(self) -> str:
        """How many runs ended without a result and why the first did; empty if none did."""
        failed, runs = self.failed, len(self.plan["runs"])
        if not failed:
            return ""
        return f"{len(failed)} of {runs} runs ended without a result: run {min(failed)}: {failed[min(failed)]}"


class Run:
    """One run in memory."""

    def __init__(self, native: extension.Run) -> None:
        self._native = native

    @property
    def digest(self) -> str:
        """Of all that happened: equal for two runs whose packets did the same at the same times."""
        return self._native.digest

    @property
    def seed(self) -> int:
        return self._native.seed

    @cached_property
    def _rows(self) -> dict[tuple[str, str], dict[str, float]]:
        return {(kind, name): dict(values) for kind, name, values, _ in self._native.rows}

    @property
    def whole(self) -> dict[str, float]:
        """Metrics of the run as a whole."""
        return self._rows["run", ""]

    @property
    def flows(self) -> dict[str, dict[str, float]]:
        """Metrics of each flow, by its name."""
        return {name: row for (kind, name), row in self._rows.items() if kind == "flow"}

    @property
    def queues(self) -> dict[str, dict[str, float]]:
        """Metrics of each queue, by its name."""
        return {name: row for (kind, name), row in self._rows.items() if kind == "queue"}

    @property
    def end_states(self) -> dict[str, str]:
        """What ``ss -ti`` (a TCP flow) or ``tc -s qdisc`` (a queue) would have printed at the end."""
        return {name: state for _, name, _, state in self._native.rows if state}

    @cached_property
    def runs(self) -> Table:
        """A row for the run, each flow and each queue, as in `Results.runs`."""
        return self._native.table()

    def series(
        self,
        *,
        flow: str | Iterable[str] | None = None,
        queue: str | Iterable[str] | None = None,
        metric: str | Iterable[str] | None = None,
    ) -> Table:
        """Time series, as `Results.series`."""
        return self._native.series(wanted(flow, queue, metric, None, None, None))

    def delays(
        self,
        *,
        flow: str | Iterable[str] | None = None,
        queue: str | Iterable[str] | None = None,
        metric: str | Iterable[str] | None = None,
    ) -> Table:
        """Distributions of delays, as `Results.delays`."""
        return self._native.delays(wanted(flow, queue, metric, None, None, None))

    def __reduce__(self) -> tuple[Any, ...]:
        return _run_again, self._native.parts()

    def __repr__(self) -> str:
        parts = [
            f"{name} {row['goodput_mbps']:.3g} Mbit/s"
            for name, row in self.flows.items()
            if "goodput_mbps" in row
        ]
        return f"<sojourn.Run of seed {self.seed}: {', '.join(parts)}>"


def _run_again(result: bytes, names: str) -> Run:
    return Run(extension.Run.of_parts(result, names))


def several(values: Any) -> list[Any]:
    return list(values) if hasattr(values, "__iter__") else [values]


def texts(values: str | Iterable[str] | None, name: str) -> list[str] | None:
    """One text, or several, as a list."""
    if values is None:
        return None
    items: list[Any] = [values] if isinstance(values, str) else several(values)
    for item in items:
        if not isinstance(item, str):
            raise refused(name, item, "a text, or several of them")
        check_unicode(name, item)
    return items


def wholes(values: int | Iterable[int] | None, name: str) -> list[int] | None:
    """One whole number, or several, as a list."""
    if values is None:
        return None
    items: list[Any] = [values] if isinstance(values, str) else several(values)
    return [whole(name, item, "a whole number, or several of them") for item in items]


def choices(where: Mapping[str, Any] | None) -> dict[str, list[str]]:
    """For each factor the values that are chosen, as the texts that they are in tables."""
    given: Mapping[str, Any] = {} if where is None else mapping("where", where, "{'path.queue': 'fq_codel'}")
    return {name: [values] if isinstance(values, str) else list(map(str, several(values))) for name, values in given.items()}


def wanted(
    flow: str | Iterable[str] | None,
    queue: str | Iterable[str] | None,
    metric: str | Iterable[str] | None,
    run: int | Iterable[int] | None,
    seed: int | Iterable[int] | None,
    where: Mapping[str, str | Iterable[str]] | None,
) -> extension.Wanted:
    factors: list[tuple[str, list[str]]] = []
    for name, values in choices(where).items():
        for value in values:
            check_unicode(f"where: {name}", value)
        factors.append((name, values))
    return {
        "flow": texts(flow, "flow"),
        "queue": texts(queue, "queue"),
        "metric": texts(metric, "metric"),
        "run": wholes(run, "run"),
        "seed": wholes(seed, "seed"),
        "factors": factors,
    }


def glance(results: Results) -> str:
    """The claims and the first figure, for a notebook."""
    runs = len(results.plan["runs"])
    parts = [
        f"<p><strong>{html.escape(results.plan['title'])}</strong><br>",
        f"{runs - len(results.missing)} of {runs} runs in <code>{html.escape(str(results._url or results.folder))}</code></p>",
    ]
    if results._failures:
        parts.append(f"<p>{html.escape(results._failures)}</p>")
    verdicts = results.verdicts
    if verdicts:
        parts.append("<table><thead><tr><th>verdict</th><th>claim</th><th>text</th></tr></thead><tbody>")
        for claim in verdicts:
            cells = "".join(f"<td>{html.escape(cell)}</td>" for cell in (claim.verdict, claim.id, claim.text))
            parts.append(f"<tr>{cells}</tr>")
        parts.append("</tbody></table>")
    parts.extend(figure.svg for figure in list(results.figures.values())[:1])
    return "".join(parts)
