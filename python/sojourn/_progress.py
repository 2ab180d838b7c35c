"""Progress of the runs: a bar on a terminal, otherwise a line for each tenth."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import NamedTuple, TextIO

from ._given import refused


class Progress(NamedTuple):
    """Counts of runs."""

    total: int
    done: int
    """With a result; those of an earlier start included."""
    resumed: int
    """With a result from an earlier start."""
    failed: int
    """Ended without a result."""


Tell = Callable[[int, int, int, int], None]


def teller(progress: bool | Callable[[Progress], object]) -> Tell | None:
    """What is called with the four counts after runs."""
    if progress is True:
        return Bar(sys.stderr).show
    if progress is False:
        return None
    if not callable(progress):
        raise refused("progress", progress, "True, False, or a function of a Progress")

    def tell(total: int, done: int, resumed: int, failed: int) -> None:
        progress(Progress(total, done, resumed, failed))

    return tell


class Bar:
    """Draws into a terminal in place; into anything else it prints a line for each tenth."""

    def __init__(self, out: TextIO) -> None:
        self.out = out
        self.is_terminal = out.isatty()
        self.began = time.monotonic()
        self.tenths = 0

    def show(self, total: int, done: int, resumed: int, failed: int) -> None:
        ended = done + failed
        tenths = ended * 10 // max(total, 1)
        if self.is_terminal:
            self.draw(total, ended, resumed, failed)
        elif ended > resumed and tenths > self.tenths:
            self.tenths = tenths
            lost = f", {failed} failed" if failed else ""
            print(f"{ended} of {total} runs{lost}", file=self.out, flush=True)

    def draw(self, total: int, ended: int, resumed: int, failed: int) -> None:
        # Runs of an earlier start say nothing about the speed of this one.
        took = time.monotonic() - self.began
        new = ended - resumed
        left = f", {took / new * (total - ended):.0f} s to go" if new else ""
        lost = f", {failed} failed" if failed else ""
        full = ended * 30 // max(total, 1)
        bar = "█" * full + "░" * (30 - full)
        end = "\n" if ended == total else ""
        self.out.write(f"\r\x1b[K{bar} {ended}/{total} runs, {took:.0f} s so far{left}{lost}{end}")
        self.out.flush()
