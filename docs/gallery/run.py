"""Runs the gallery's pages: each must print what it says that it prints and draw the figure beside it.

python docs/gallery/run.py [NAME …] [--keep FOLDER]; with UPDATE=1 in the environment, outputs and figures are renewed.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
# A page has one script, and one output after it.
SCRIPT = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OUTPUT = re.compile(r"(?<=^```text\n)(.*?)(?=^```$)", re.MULTILINE | re.DOTALL)


def run(name: str, folder: Path, update: bool) -> list[str]:
    """Runs the script of a page in a folder, and returns what differs from the page."""
    page = HERE / f"{name}.md"
    text = page.read_text(encoding="utf-8")
    scripts, outputs = SCRIPT.findall(text), OUTPUT.findall(text)
    if len(scripts) != 1 or len(outputs) != 1:
        return [f"{page}: has {len(scripts)} scripts and {len(outputs)} outputs (allowed: one of each)"]
    (folder / f"{name}.py").write_text(scripts[0], encoding="utf-8")
    studies = folder / "studies"
    if not studies.exists():
        studies.symlink_to(ROOT / "studies")
    environment = {
        **os.environ,
        "MPLBACKEND": "svg",
        "MATPLOTLIBRC": str(HERE),
        "SOURCE_DATE_EPOCH": "0",
        "PYTHONWARNINGS": "error",
    }
    command = [sys.executable, f"{name}.py"]
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=900)
    if ended.returncode != 0:
        return [f"{page}: its script ended with {ended.returncode}\n{ended.stderr}"]
    figure = HERE / f"{name}.svg"
    if not (folder / figure.name).exists():
        return [f"{page}: its script draws no {figure.name}"]
    drawn = (folder / figure.name).read_text(encoding="utf-8")
    there = figure.read_text(encoding="utf-8") if figure.exists() else ""
    if update:
        figure.write_text(drawn, encoding="utf-8")
        page.write_text(OUTPUT.sub(lambda _: ended.stdout, text), encoding="utf-8")
        return []
    wrong = []
    if ended.stdout != outputs[0]:
        lines = difflib.unified_diff(outputs[0].splitlines(), ended.stdout.splitlines(), "page", "run", lineterm="")
        wrong.append(f"{page}: prints something else\n" + "\n".join(lines))
    if drawn != there:
        wrong.append(f"{figure}: is not what the script draws")
    return wrong


def main() -> int:
    pages = sorted(page.stem for page in HERE.glob("*.md") if page.stem != "README")
    arguments = argparse.ArgumentParser(description="Runs the gallery's pages and compares.")
    arguments.add_argument("names", nargs="*", metavar="NAME", help=f"which pages: {', '.join(pages)}; all if left out")
    arguments.add_argument("--keep", type=Path, metavar="FOLDER", help="run there, and leave results and figures")
    asked = arguments.parse_args()
    for name in asked.names:
        if name not in pages:
            arguments.error(f"no page is named '{name}' (allowed: {', '.join(pages)})")
    update = "UPDATE" in os.environ
    passed = failed = 0
    for name in asked.names or pages:
        with tempfile.TemporaryDirectory(prefix="gallery-") as scratch:
            folder = asked.keep or Path(scratch)
            folder.mkdir(parents=True, exist_ok=True)
            wrong = run(name, folder, update)
        print(f"{name}: {'FAILED' if wrong else 'renewed' if update else 'as on its page'}", flush=True)
        print(*wrong, sep="\n", end="\n" if wrong else "")
        passed, failed = passed + (not wrong), failed + bool(wrong)
    print(f"{passed} passed, {failed} failed")
    if failed:
        print("If the change is meant: UPDATE=1 bash .ci/test gallery, then read the pages' sentences again.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
