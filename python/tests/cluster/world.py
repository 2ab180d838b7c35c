"""The world of the scripts beside this one, and what they compare."""

from __future__ import annotations

from pathlib import Path
from typing import Any

WORLD: dict[str, Any] = {
    "duration": "1s",
    "path": {"rate": "20Mbps", "rtt": "20ms", "queue": "pfifo limit 50"},
    "flow": [{"name": "cubic", "app": "bulk", "start_jitter": "50ms"}, {"name": "bbr", "app": "bulk", "cca": "bbr3"}],
}


def tables(folder: Path) -> dict[str, bytes]:
    """What does not depend on the machine and on how often the run was interrupted."""
    names = ("machine.json", "SHA256SUMS", "report.html")
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name not in names}
