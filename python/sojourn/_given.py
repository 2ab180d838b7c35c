"""What callers give, checked: an error says what it is, where, and what is allowed."""

from __future__ import annotations

import operator
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from os import PathLike
from typing import Any, cast

from ._native import Error, StudyError


def kind_of(value: object) -> str:
    """``an int``, as in a sentence."""
    name = type(value).__name__
    return "None" if value is None else f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def refused(name: str, value: object, allowed: str) -> TypeError:
    """For a value of a type that means nothing here."""
    return TypeError(f"{name} is {kind_of(value)} (allowed: {allowed})")


def whole(name: str, number: Any, allowed: str = "a whole number") -> int:
    """Numbers of numpy are whole numbers, too."""
    if not hasattr(number, "__index__"):
        raise refused(name, number, allowed)
    return operator.index(number)


def check_text(name: str, text: object, example: str) -> None:
    """None stands for what is left out."""
    if text is not None and not isinstance(text, str):
        raise refused(name, text, f"a text such as '{example}'")
    check_unicode(name, text)


def mapping(name: str, values: object, example: str) -> Mapping[Any, Any]:
    """Texts with values."""
    if not isinstance(values, Mapping):
        raise refused(name, values, f"a dict such as {example}")
    given = cast(Mapping[Any, object], values)
    for key in given:
        if not isinstance(key, str):
            raise refused(f"{name}: a key", key, f"a text, as in {example}")
        check_unicode(f"{name}: a key", key)
    return given


def check_path(name: str, folder: object, kind: type[Error] = Error) -> None:
    """An empty one would be the folder that the program is in, or none at all."""
    if not isinstance(folder, str | PathLike):
        raise refused(name, folder, "a path")
    path = os.fspath(cast("str | PathLike[str]", folder))
    if not path:
        raise made(kind, f"{name} is '' (allowed: a path)")
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        raise not_unicode(name, str(path), kind) from None


def check_unicode(name: str, text: object, kind: type[Error] = Error) -> None:
    if isinstance(text, str):
        try:
            text.encode()
        except UnicodeEncodeError:
            raise not_unicode(name, text, kind) from None


def not_unicode(name: str, text: str, kind: type[Error] = Error) -> Error:
    at = next(at for at, sign in enumerate(text) if "\ud800" <= sign <= "\udfff")
    return made(kind, f"{name} has half of a surrogate pair: {ascii(text[max(at - 20, 0) : at + 20])} (allowed: Unicode)")


def made(kind: type[Error], text: str) -> Error:
    error = kind(text)
    if isinstance(error, StudyError):
        error.mistakes = []
    return error


@contextmanager
def unicode(name: str, values: object, kind: type[Error] = Error) -> Generator[None, None, None]:
    """For calls of the extension that take a text, or values with texts: it can take no halves of surrogate pairs."""
    try:
        yield
    except UnicodeEncodeError:
        for path, text in texts_in(name, values):
            check_unicode(path, text, kind)
        raise


def texts_in(path: str, values: object) -> Generator[tuple[str, str], None, None]:
    """Every text in values, with the keys that lead there."""
    if isinstance(values, str):
        yield path, values
    elif isinstance(values, Mapping):
        for key, value in cast(Mapping[object, object], values).items():
            yield from texts_in(f"{path}: a key" if path else "a key", key)
            yield from texts_in(f"{path}.{key}" if path else str(key), value)
    elif isinstance(values, list | tuple):
        for at, value in enumerate(cast("list[object]", values)):
            yield from texts_in(f"{path}[{at}]", value)
