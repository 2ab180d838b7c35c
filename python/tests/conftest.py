from __future__ import annotations

from pathlib import Path

import pytest

import sojourn as sj

ROOT = Path(__file__).parents[2]

TWO_FLOWS = {
    "title": "Two flows",
    "scenario": {
        "duration": "2s",
        "warmup": "500ms",
        "path": {"rate": "10Mbps", "rtt": "20ms", "queue": "pfifo limit 50"},
        "flow": [
            {"name": "cubic", "app": "bulk", "start_jitter": "50ms"},
            {"name": "bbr", "app": "bulk", "cca": "bbr3", "count": 2},
        ],
    },
    "factors": {"path.queue": ["pfifo limit 50", "fq_codel"]},
    "repeat": {"seeds": 3},
    "views": {"rate": {"kind": "bars", "x": "path.queue", "y": "goodput", "split": "flow"}},
    "claim": [
        {"id": "used", "text": "The link is used", "expect": "tcp_goodput_sum() > 8 Mbps"},
        {"id": "slow", "text": "Nobody gets <anything>", "expect": "goodput(cubic) < 1 kbps"},
    ],
}


@pytest.fixture(scope="session")
def study() -> sj.Study:
    return sj.Study(TWO_FLOWS)


@pytest.fixture(scope="session")
def results(study: sj.Study, tmp_path_factory: pytest.TempPathFactory) -> sj.Results:
    return study.run(tmp_path_factory.mktemp("results") / "two", progress=False)


def files(folder: Path) -> dict[str, bytes]:
    """What does not depend on the machine and on how often the run was interrupted."""
    return {
        path.name: path.read_bytes()
        for path in folder.iterdir()
        if path.name not in ("machine.json", "SHA256SUMS", "report.html")
    }
