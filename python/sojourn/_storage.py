"""Result folders on object storage, by fsspec's paths.

Runs are kept on this machine while they are computed, because object storage cannot append. The folder goes
there when they are stopped or finished, `SHA256SUMS` last, so that it is never listed as whole before it is.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

from ._native import Error, ResultsError

LAST = "SHA256SUMS"


def is_remote(path: str | PathLike[str]) -> bool:
    """``s3://bucket/folder`` and its like."""
    return isinstance(path, str) and "://" in path


def inside(out: str | PathLike[str], *names: str) -> Path | str:
    """A folder in a folder."""
    return "/".join([os.fspath(out).rstrip("/"), *names]) if is_remote(out) else Path(out, *names)


@contextmanager
def named(here: Path, url: str) -> Generator[None, None, None]:
    """Errors name the address that was given, not where its copy is on this machine."""
    try:
        yield
    except Error as error:
        if str(here) not in str(error):
            raise
        raised = type(error)(str(error).replace(str(here), url))
        raised.is_of_machine = error.is_of_machine
        raise raised from None


def opened(url: str) -> tuple[Any, str]:
    try:
        core: Any = importlib.import_module("fsspec.core")
    except ImportError:
        raise ResultsError(f"{url}: needs the package fsspec, and the one for this kind of storage") from None
    try:
        storage, root = core.url_to_fs(url)
        return storage, root
    except (ValueError, ImportError) as error:
        raise ResultsError(f"{url}: {error}") from error


def names(storage: Any, root: str) -> dict[str, int | None]:
    """Files of the folder with their sizes; none if it is not there."""
    try:
        storage.invalidate_cache()
        listed = storage.ls(root, detail=True)
    except FileNotFoundError:
        return {}
    files = (entry for entry in listed if entry["type"] == "file" and entry["size"])
    return {str(entry["name"]).rsplit("/", 1)[-1]: entry["size"] for entry in files}


def fetch(url: str, folder: Path) -> None:
    """Copies what is there into a folder of this machine."""
    storage, root = opened(url)
    try:
        for name in names(storage, root):
            storage.get_file(f"{root}/{name}", str(folder / name))
    except Exception as error:
        # Each kind of storage has exceptions of its own.
        raise refused(url, error) from error


def send(folder: Path, url: str) -> None:
    """Copies a folder there; what is there and no longer here, such as a journal, goes away last."""
    storage, root = opened(url)
    try:
        here = sorted((path.name for path in folder.iterdir() if path.is_file()), key=lambda name: (name == LAST, name))
        storage.makedirs(root, exist_ok=True)
        for name in here:
            storage.put_file(str(folder / name), f"{root}/{name}")
        for name in names(storage, root):
            if name not in here and name.startswith("journal"):
                storage.rm_file(f"{root}/{name}")
    except Exception as error:
        raise refused(url, error) from error


def put(text: str, url: str, name: str) -> None:
    """Writes a file into the folder."""
    storage, root = opened(url)
    try:
        storage.makedirs(root, exist_ok=True)
        storage.pipe_file(f"{root}/{name}", text.encode())
    except Exception as error:
        raise refused(url, error) from error


def refused(url: str, error: Exception) -> ResultsError:
    raised = ResultsError(f"{url}: {error}")
    raised.is_of_machine = not isinstance(error, FileNotFoundError)
    return raised


def scratch(url: str) -> Path:
    """Where a folder of object storage stands on this machine: the same after a kill."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "sojourn" / hashlib.sha256(url.encode()).hexdigest()[:16]


@contextmanager
def kept_at(url: str) -> Generator[Path, None, None]:
    """A folder of this machine with what is there; however it ends, all of it goes there."""
    folder = scratch(url)
    # What a kill left here is newer than what is there.
    if not folder.exists():
        folder.mkdir(parents=True)
        fetch(url, folder)
    try:
        yield folder
    finally:
        send(folder, url)
        shutil.rmtree(folder)
