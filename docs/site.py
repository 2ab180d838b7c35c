"""Lays the pages out as a book, under target/site, and builds it.

python3 docs/site.py [--build FOLDER] [--mdbook PROGRAM]: without --build the book is laid out and its links are checked.

The pages link to each other as the repository has them, and to studies and code too. So the book has the repository's folders: every page,
and every file that a page links to.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parents[1]
STAGE = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "site"

# Parts of the book. A page stands in the first that names it; what only patterns name is ordered by title.
PARTS = {
    "To begin with": ["docs/tour.md", "docs/gallery/README.md", "docs/gallery/*.md", "examples/README.md"],
    "Reference": [
        f"docs/{name}.md"
        for name in ("study", "cli", "results", "report", "metrics", "python", "cluster", "replay", "live", "kernel")
    ],
    "Models": ["docs/models/*.md"],
    "Studies": ["studies/*/*.md"],
    "How true, how fast, how made": [
        "docs/fidelity.md",
        "tests/*/README.md",
        "docs/speed.md",
        "docs/*.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
    ],
}

# Code is left as it is, and so are links that begin with a scheme.
CODE = re.compile(r"(^(?:```|~~~).*?^(?:```|~~~)[^\n]*$|(`+)(?!`).+?(?<!`)\2(?!`))", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(\]\()([^)\s#:]+)(#[^)\s]*)?(\))")


def prose(text: str) -> Iterator[tuple[str, bool]]:
    """The parts of a page, and whether each is code."""
    at = 0
    for code in CODE.finditer(text):
        yield text[at : code.start()], False
        yield code[0], True
        at = code.end()
    yield text[at:], False


def title(page: PurePosixPath) -> str:
    if page.parts[0] == "studies" and page.name == "README.md":
        return page.parts[1]
    for line in (ROOT / page).read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            return line[2:].replace("`", "").strip()
    sys.exit(f"{page}: has no title (a line that begins with '# ')")


def order(page: PurePosixPath) -> str:
    return str(page) if page.parts[0] == "studies" else title(page).lower()


def parts() -> dict[str, list[PurePosixPath]]:
    seen, book = {PurePosixPath("README.md")}, dict[str, list[PurePosixPath]]()
    for part, patterns in PARTS.items():
        book[part] = []
        for pattern in patterns:
            found = [PurePosixPath(path.relative_to(ROOT).as_posix()) for path in ROOT.glob(pattern)]
            if not found:
                sys.exit(f"docs/site.py: no page is '{pattern}'")
            # "docs/*.md" comes after all that name some of these.
            new = sorted((page for page in found if page not in seen), key=order)
            book[part] += new
            seen.update(new)
    return book


def target(page: PurePosixPath, link: str) -> PurePosixPath:
    return PurePosixPath(os.path.normpath(page.parent / unquote(link)))


def in_book(page: PurePosixPath) -> PurePosixPath:
    """A folder's page is the one that a server shows for the folder."""
    return page.with_name("index.md") if page.name == "README.md" else page


def lay_out(book: dict[str, list[PurePosixPath]]) -> list[str]:
    """Writes the book's source, and returns links that lead nowhere."""
    source, wrong = STAGE / "src", list[str]()
    shutil.rmtree(STAGE, ignore_errors=True)
    pages = [PurePosixPath("README.md"), *(page for part in book.values() for page in part)]
    files, listed = set[PurePosixPath](), dict[PurePosixPath, str]()
    for page in pages:

        def linked(match: re.Match[str], page: PurePosixPath = page) -> str:
            to = target(page, match[2])
            if not (ROOT / to).exists() or ".." in to.parts:
                wrong.append(f"{page}: links to {match[2]}, which is not there")
            elif (ROOT / to).is_dir():
                to = to / "README.md"
                if to not in pages:
                    listed.setdefault(to, folder(to.parent, pages))
            elif to not in pages:
                files.add(to)
            relative = os.path.relpath(in_book(to), page.parent)
            return match[1] + relative.replace(os.sep, "/") + (match[3] or "") + match[4]

        text = (ROOT / page).read_text(encoding="utf-8")
        text = "".join(part if code else LINK.sub(linked, part) for part, code in prose(text))
        write(source / in_book(page), text)
    for page, text in listed.items():
        write(source / in_book(page), text)
        files.update(target(page, link) for link in re.findall(r"\]\(([^)]+)\)", text) if not link.endswith(".md"))
    for file in files:
        (source / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / file, source / file)
    write(source / "SUMMARY.md", summary(book, sorted(listed)))
    shutil.copyfile(ROOT / "docs/book.toml", STAGE / "book.toml")
    return wrong


def folder(path: PurePosixPath, pages: list[PurePosixPath]) -> str:
    """A page for a folder that has none: what is in it."""
    names = [entry.name for entry in sorted((ROOT / path).iterdir()) if entry.is_file()]
    there = [name for name in names if not name.endswith(".md") or path / name in pages]
    return f"# {path}\n\n" + "\n".join(f"- [{name}]({name})" for name in there) + "\n"


def summary(book: dict[str, list[PurePosixPath]], listed: list[PurePosixPath]) -> str:
    lines = ["# Summary", "", "[Sojourn](index.md)"]
    for part, pages in book.items():
        lines += ["", f"# {part}", ""]
        for page in pages:
            inner = page.name != "README.md" and page.parent.parts not in ((), ("docs",), ("docs", "models"))
            lines.append(f"{'  ' * inner}- [{title(page)}]({in_book(page)})")
    lines += ["", "# Folders", "", *(f"- [{page.parent}]({in_book(page)})" for page in listed)]
    return "\n".join(lines) + "\n"


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


class Links(HTMLParser):
    """What an HTML page links to, and the names within it."""

    def __init__(self) -> None:
        super().__init__()
        self.links, self.names = list[str](), set[str]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.names.add(value)
            if name in ("href", "src") and value and not re.match(r"[a-z]+:|//", value):
                self.links.append(value)


def built(site: Path) -> list[str]:
    """Links of the built site that lead nowhere."""
    pages = dict[Path, Links]()
    for path in site.rglob("*.html"):
        pages[path.resolve()] = page = Links()
        page.feed(path.read_text(encoding="utf-8"))
    wrong = list[str]()
    for path, page in pages.items():
        # Its links are those of a server's root, and the page of all pages repeats the others' names.
        if path.name in ("404.html", "print.html", "toc.html"):
            continue
        for link in page.links:
            file, _, name = link.partition("#")
            to = (path.parent / unquote(file)).resolve() if file else path
            if to.is_dir():
                to = to / "index.html"
            if not to.exists():
                wrong.append(f"{path.relative_to(site.resolve())}: links to {link}, which is not there")
            elif name and to in pages and unquote(name) not in pages[to].names:
                wrong.append(f"{path.relative_to(site.resolve())}: links to {link}; the page has no such heading")
    return wrong


def main() -> int:
    arguments = argparse.ArgumentParser(description="Lays the pages out as a book, and builds it.")
    arguments.add_argument("--build", type=Path, metavar="FOLDER", help="build the site into this folder, which it replaces")
    arguments.add_argument("--mdbook", default="mdbook", metavar="PROGRAM", help="where mdbook is")
    asked = arguments.parse_args()
    book = parts()
    wrong = lay_out(book)
    index = (ROOT / "docs/gallery/README.md").read_text(encoding="utf-8")
    wrong += [f"docs/gallery/README.md: leaves out {page.name}" for page in book["To begin with"]
              if page.parent.name == "gallery" and page.name != "README.md" and f"]({page.name})" not in index]  # fmt: skip
    if not wrong and asked.build is not None:
        subprocess.run([asked.mdbook, "build", "--dest-dir", asked.build.resolve(), STAGE], check=True)
        wrong = built(asked.build)
    print(*wrong, sep="\n", end="\n" if wrong else "")
    print(f"{sum(map(len, book.values())) + 1} pages, {len(wrong)} broken links")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
