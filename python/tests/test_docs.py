"""The blocks of docs/python.md, as one program: what somebody writes who has that page alone."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from .conftest import ROOT

BLOCK = re.compile(r"(<!-- not run[^>]*-->\n)?```python\n(.*?)```", re.DOTALL)


def test_every_block_of_the_page_runs(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "python.md").read_text()
    blocks = BLOCK.findall(page)
    assert page.count("```python") == len(blocks) > 8
    program = "\n".join(block for not_run, block in blocks if not not_run)
    # Two seconds of each run, so that it takes seconds.
    program = program.replace('from_toml("studies/home-router")', 'from_toml("studies/home-router").change(shorten="12s", seeds=1)')
    (tmp_path / "page.py").write_text(program)
    # The page's folder is the repository's, and what is written goes elsewhere.
    for name in ("studies", "examples", "docs"):
        (tmp_path / name).symlink_to(ROOT / name)
    environment = {**os.environ, "MPLBACKEND": "svg", "PYTHONWARNINGS": "error::DeprecationWarning:sojourn"}
    done = subprocess.run(
        [sys.executable, "page.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    assert "the claim 'fair'" in done.stdout and "rtt_p95_ms, morris, 16 points" in done.stdout
    for figure in ("call.svg", "rtt.svg", "sensitivity.svg"):
        assert (tmp_path / figure).read_text().lstrip().startswith("<")
