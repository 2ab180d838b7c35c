"""Runs a study on a Dask scheduler with two worker processes, kills workers and restarts the scheduler.

The tables must be those of one machine, byte for byte. `python dask_workers.py` prints what was done.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from world import WORLD, tables

import sojourn as sj
from sojourn import _executors


def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number: int = free.getsockname()[1]
        return number


class Cluster:
    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        self.port = port()
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.scheduler = self.start("scheduler", "--port", str(self.port), "--dashboard-address", ":0")
        self.workers = [self.worker(), self.worker()]

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        log = (self.scratch / "log").open("ab")
        return subprocess.Popen(
            [sys.executable, "-m", "distributed.cli.dask_" + words[0], *words[1:]], stdout=log, stderr=log
        )

    def worker(self) -> subprocess.Popen[bytes]:
        # Without a nanny, so that the process that is killed is the one that computes.
        return self.start(
            "worker", self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory",
            str(self.scratch), "--death-timeout", "60",
        )  # fmt: skip

    def kill_worker(self) -> None:
        oldest = self.workers.pop(0)
        oldest.send_signal(signal.SIGKILL)
        oldest.wait()
        self.workers.append(self.worker())

    def restart_scheduler(self) -> None:
        self.scheduler.send_signal(signal.SIGKILL)
        self.scheduler.wait()
        self.scheduler = self.start("scheduler", "--port", str(self.port), "--dashboard-address", ":0")
        # Workers end when they lose their scheduler; one that had not met the old one yet meets the new one.
        lost: list[subprocess.Popen[bytes]] = []
        for worker in self.workers:
            with contextlib.suppress(subprocess.TimeoutExpired):
                worker.wait(timeout=20)
                lost.append(worker)
        self.workers = [worker for worker in self.workers if worker not in lost]
        self.workers += [self.worker() for _ in lost]

    def stop(self) -> None:
        for process in [*self.workers, self.scheduler]:
            process.kill()
            process.wait()


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 1500
    study = sj.Study(title="many", scenario=WORLD, repeat={"seeds": runs})
    scratch = Path(tempfile.mkdtemp())
    began = time.monotonic()
    alone = tables(study.run(scratch / "alone", progress=False).folder)
    print(f"one machine, threads: {runs} runs in {time.monotonic() - began:.1f} s", flush=True)

    from distributed import Client

    cluster = Cluster(scratch)
    try:

        def connect() -> Any:
            client = Client(cluster.address, timeout="30s")
            client.wait_for_workers(2)
            return client.get_executor()

        done: list[str] = []

        def disturb(progress: sj.Progress) -> None:
            if len(done) < 3 and progress.done > (len(done) + 1) * runs // 6:
                done.append("worker")
                cluster.kill_worker()
            elif len(done) == 3 and progress.done > runs * 4 // 6:
                done.append("scheduler")
                cluster.restart_scheduler()

        began = time.monotonic()
        quiet = study.run(scratch / "quiet", executor=connect, progress=False)
        print(f"two workers: {runs} runs in {time.monotonic() - began:.1f} s", flush=True)
        assert tables(quiet.folder) == alone
        _executors.BATCH_S = 0.05
        began = time.monotonic()
        disturbed = study.run(scratch / "disturbed", executor=connect, progress=disturb)
        print(f"disturbed by {', '.join(done)}: {time.monotonic() - began:.1f} s", flush=True)
        assert done == ["worker"] * 3 + ["scheduler"], done
        assert disturbed.failed == {} and tables(disturbed.folder) == alone
        words = [sys.executable, "-m", "sojourn", "run", "study.toml", "--dask", cluster.address, "--out", "command"]
        (scratch / "study.toml").write_text(study.to_toml())
        ended = subprocess.run(words, cwd=scratch, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
        print(ended.stdout.splitlines()[0])
        os.chdir(scratch)
        assert tables(scratch / "command")["runs.parquet"] == alone["runs.parquet"]
        print("tables are equal to those of one machine, byte for byte")
    finally:
        cluster.stop()


if __name__ == "__main__":
    main()
