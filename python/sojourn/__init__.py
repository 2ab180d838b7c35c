"""Sojourn: a laboratory for the last mile.

    import sojourn as sj

    study = sj.Study.from_toml("studies/home-router")
    results = study.run()
    print(results)
    results.runs        # a table for pandas, Polars, pyarrow or DuckDB

`Study` is what a study file says, read or built of dicts; `Study.run` runs it into a result folder;
`Results` is such a folder; `simulate` is one run in memory; `plot` draws both. What goes wrong is an `Error`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._executors import ExecutorError
from ._native import MODEL, Error, Mistake, ResultsError, RunError, StudyError, Table, __version__
from ._progress import Progress
from ._results import Claim, Figure, Results, Run
from ._search import Found, Trial, search
from ._study import Check, Scenario, Study, simulate

if TYPE_CHECKING:
    from . import plot

__all__ = [
    "MODEL",
    "Check",
    "Claim",
    "Error",
    "ExecutorError",
    "Figure",
    "Found",
    "Mistake",
    "Progress",
    "Results",
    "ResultsError",
    "Run",
    "RunError",
    "Scenario",
    "Study",
    "StudyError",
    "Table",
    "Trial",
    "__version__",
    "plot",
    "search",
    "simulate",
]


def __getattr__(name: str) -> Any:
    """`plot` is loaded when it is asked for, because it loads matplotlib."""
    if name == "plot":
        import importlib

        return importlib.import_module(".plot", __name__)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
