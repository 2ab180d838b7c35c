"""A table of ten million rows that Polars takes over: `python large_table.py [ROWS]`. Needs 6 GB of memory."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import polars as pl
import pyarrow as pa

import sojourn as sj


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    seeds = max(1, rows // 900_000 + 1)
    world = {
        "duration": "300s",
        "step": "1ms",
        "path": {"rate": "10Mbps", "rtt": "20ms", "queue": "pfifo limit 50"},
        "flow": [{"name": "ping", "app": "ping"}],
    }
    study = sj.Study(title="long", scenario=world, repeat={"seeds": seeds})
    results = study.run(Path(tempfile.mkdtemp()) / "out", progress=False)
    table = results.series(metric=["rtt_mean_ms", "queue_pkts"])
    before, began = resident_mb(), time.perf_counter()
    frame = pl.DataFrame(table)
    took, after = time.perf_counter() - began, resident_mb()
    assert len(frame) == len(table) >= rows
    # Each piece of each column of numbers lies where Sojourn has it.
    columns = [name for name in table.columns if frame[name].dtype.is_numeric()]
    for name in columns:
        theirs = [piece.to_arrow().buffers()[1].address for piece in frame[name].get_chunks()]
        ours = [piece.buffers()[1].address for piece in pa.table(table)[name].chunks]
        assert theirs == ours, name
    print(f"{len(frame)} rows, {frame.estimated_size() / 1e6:.0f} MB: {took * 1e3:.0f} ms, and {after - before:.1f} MB more")
    print(f"{len(columns)} columns of numbers in {len(ours)} pieces, each at the same address")
    print(frame.group_by("name").len())


if __name__ == "__main__":
    main()
