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
from ._native import (
    MODEL,
    Ack,
    Congestion,
    Error,
    Lost,
    Mistake,
    Packet,
    Rate,
    ResultsError,
    RunError,
    Start,
    StudyError,
    Table,
    __version__,
)
from ._model import model, models
from ._own import Controller, Queue, check, own
from ._points import Trial
from ._progress import Progress
from ._refute import Refutation, refute
from ._results import Claim, Figure, FigureTable, Results, Run
from ._search import Found, search
from ._sensitivity import Sensitivity, sensitivity
from ._study import Check, Scenario, Study, simulate

if TYPE_CHECKING:
    from . import plot

__all__ = [
    "MODEL",
    "Ack",
    "Check",
    "Claim",
    "Congestion",
    "Controller",
    "Error",
    "ExecutorError",
    "Figure",
    "FigureTable",
    "Found",
    "Lost",
    "Mistake",
    "Packet",
    "Progress",
    "Queue",
    "Rate",
    "Refutation",
    "Results",
    "ResultsError",
    "Run",
    "RunError",
    "Scenario",
    "Sensitivity",
    "Start",
    "Study",
    "StudyError",
    "Table",
    "Trial",
    "__version__",
    "check",
    "model",
    "models",
    "own",
    "plot",
    "refute",
    "search",
    "sensitivity",
    "simulate",
]


def __getattr__(name: str) -> Any:
    """`plot` is loaded when it is asked for, because it loads matplotlib."""
    if name == "plot":
        import importlib

        return importlib.import_module(".plot", __name__)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
