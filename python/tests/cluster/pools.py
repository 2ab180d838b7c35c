"""Runs a study on MPI's pool and on Ray; the tables must be those of one machine, byte for byte.

    mpiexec -n 3 python -m mpi4py.futures pools.py mpi     # Debian's openmpi-bin; pip install mpi4py
    python pools.py ray                                    # pip install ray; kills a worker in the middle
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from world import WORLD, tables

import sojourn as sj
from sojourn import _executors


class RayExecutor:
    """Ray's tasks as an executor; its futures are Python's."""

    def __init__(self, workers: int) -> None:
        import ray

        self._max_workers = workers
        self._call = ray.remote(max_retries=0)(lambda fn, *args: fn(*args))

    def submit(self, fn: Any, /, *args: Any) -> Future[Any]:
        future: Future[Any] = self._call.remote(fn, *args).future()
        return future


def ray_pool(study: sj.Study, out: Path) -> sj.Results:
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    killed: list[int] = []

    def disturb(progress: sj.Progress) -> None:
        if not killed and progress.done > progress.total // 3:
            listed = os.popen("pgrep -f 'ray::<lambda>'").read().split()
            for pid in map(int, listed[:1]):
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)

    _executors.BATCH_S = 0.1
    results = study.run(out, executor=RayExecutor(2), progress=disturb)
    assert killed
    print(f"Ray: killed {len(killed)} worker")
    return results


def mpi_pool(study: sj.Study, out: Path) -> sj.Results:
    from mpi4py.futures import MPIPoolExecutor

    with MPIPoolExecutor() as pool:
        print(f"MPI: {pool.num_workers} workers")
        return study.run(out, executor=pool, progress=False)


def main() -> None:
    study = sj.Study(title="many", scenario=WORLD, repeat={"seeds": 600})
    scratch = Path(tempfile.mkdtemp())
    alone = tables(study.run(scratch / "alone", progress=False).folder)
    began = time.monotonic()
    results = {"mpi": mpi_pool, "ray": ray_pool}[sys.argv[1]](study, scratch / "pool")
    assert results.failed == {} and tables(results.folder) == alone
    print(f"600 runs in {time.monotonic() - began:.1f} s; tables are equal to those of one machine, byte for byte")


if __name__ == "__main__":
    main()
