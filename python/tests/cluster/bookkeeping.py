"""What runs cost beside their simulation, with two worker processes: `python bookkeeping.py [RUNS] [FLOWS] [MBPS]`.

All numbers are processor time, so others on the machine do not change them much. Memory is what the coordinator's
peak grew by.
"""

from __future__ import annotations

import json
import multiprocessing
import resource
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import sojourn as sj
from sojourn import _executors


def world(flows: int, mbps: int) -> dict[str, Any]:
    return {
        "duration": "1s",
        "path": {"rate": f"{mbps}Mbps", "rtt": "20ms", "queue": f"pfifo limit {5 * mbps // 2}"},
        "flow": [{"name": "cubic", "app": "bulk", "count": flows, "start_jitter": "50ms"}],
    }


class Counted:
    """Computes as a worker does, and notes how long each batch took of this process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *args: Any) -> Any:
        began = time.process_time()
        answer = _executors.compute(*args)
        name = multiprocessing.current_process().name
        with (self.folder / name).open("a") as notes:
            notes.write(json.dumps([time.process_time() - began, len(answer[1])]) + "\n")
        return answer


class Pool(ProcessPoolExecutor):
    counted: Counted

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        return super().submit(self.counted, *args, **kwargs)


def used(who: int) -> float:
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    flows = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    mbps = int(sys.argv[3]) if len(sys.argv) > 3 else 10 * flows
    scratch = Path(tempfile.mkdtemp())
    notes = scratch / "notes"
    notes.mkdir()
    study = sj.Study(title="many", scenario=world(flows, mbps), repeat={"seeds": runs})
    began, memory = used(resource.RUSAGE_SELF), peak()
    recorder = study._native.record(scratch / "out", None, None, [])
    opened = used(resource.RUSAGE_SELF)
    with Pool(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        pool.counted = Counted(notes)
        _executors.Coordinator(pool, study._native, recorder, None, None).run()
    came, held = used(resource.RUSAGE_SELF), peak()
    results = sj.Results._of(recorder.finish())
    ended, end = used(resource.RUSAGE_SELF), peak()
    assert not results.missing
    batches = [json.loads(line) for path in notes.iterdir() for line in path.read_text().splitlines()]
    simulation = sum(seconds for seconds, _ in batches)
    workers = used(resource.RUSAGE_CHILDREN)
    per_run = {
        "simulation (with encoding the result)": simulation,
        "workers beside it": workers - simulation,
        "coordinator: opening": opened - began,
        "coordinator: while runs come": came - opened,
        "coordinator: tables and claims": ended - came,
    }
    print(f"{runs} runs of one simulated second, {flows} flows over {mbps} Mbit/s, {len(batches)} batches")
    for name, seconds in per_run.items():
        print(f"{name:40} {seconds / runs * 1e3:8.3f} ms a run")
    total = sum(per_run.values())
    print(f"in simulation: {simulation / total:.1%} of the processors' time, {simulation / (workers + came - opened):.1%} while runs come")
    print(f"memory of the coordinator: {(held - memory) / runs:.2f} kB a run while runs come, {(end - held) / runs:.2f} at the end")


if __name__ == "__main__":
    main()
