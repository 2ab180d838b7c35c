"""Sojourn: a laboratory for the last mile.

    import sojourn as sj

    study = sj.Study.from_toml("studies/home-router")
    results = study.run()
    print(results)
    results.runs        # a table for pandas, Polars, pyarrow or DuckDB

`Study` is what a study file says, read or built of dicts; `Study.run` runs it into a result folder;
`Results` is such a folder; `simulate` is one run in memory. What goes wrong is an `Error`.
"""

from __future__ import annotations

from ._executors import ExecutorError
from ._native import MODEL, Error, Mistake, ResultsError, RunError, StudyError, Table, __version__
from ._progress import Progress
from ._results import Claim, Figure, Results, Run
from ._study import Check, Scenario, Study, simulate

__all__ = [
    "MODEL",
    "Check",
    "Claim",
    "Error",
    "ExecutorError",
    "Figure",
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
    "__version__",
    "simulate",
]
