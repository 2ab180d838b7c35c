"""What the answers of a class depend on: its source, and what its code calls by name.

A digest of that is a part of a run's identity, so it is the same in each process that has the same code and values.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import dis
import enum
import functools
import hashlib
import inspect
import linecache
import sys
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path, PurePath
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, cast

from ._native import Error

DEPTH = 8
"""Of names that the code of names calls."""

MOST = 10_000
"""Items of a list, and names."""

PLAIN = (bool, int, float, complex, str, bytes, range, PurePath)
EXACT = {"datetime", "decimal", "fractions"}
"""Modules of whose classes `repr` says everything."""


def digest(part: type) -> str:
    """Of the class and its bases, of the functions, classes and modules of the user's that their code names, and of the values of
    constants among those names.

    Of a module that is a file the whole file counts, in a notebook or a script each class and function by itself. Lists, dicts and
    sets count in a notebook or a script only, because there nothing else says what they are; they may change while
    a run lasts, and so may names that the code itself assigns, which never count.
    """
    gathered = Gathered()
    gathered.of_class(part, 0)
    return gathered.hash.hexdigest()[:16]


class Gathered:
    """What was found, in an order that depends on the code alone."""

    def __init__(self) -> None:
        self.hash = hashlib.sha256()
        self.seen: set[int] = set()
        self.files: set[str] = set()
        self.count = 0

    def add(self, label: str, text: str | bytes) -> None:
        content = text.encode(errors="surrogatepass") if isinstance(text, str) else text
        self.hash.update(f"{label} {len(content)} ".encode(errors="surrogatepass"))
        self.hash.update(content)

    def is_new(self, thing: object) -> bool:
        if id(thing) in self.seen:
            return False
        self.seen.add(id(thing))
        return True

    def value(self, label: str, value: Any, depth: int, is_live: bool) -> None:
        """Of a name; what is neither plain nor code of the user's is left out."""
        self.count += 1
        if depth > DEPTH or self.count > MOST:
            return
        deeper = depth + 1
        if isinstance(value, ModuleType):
            if is_users(value):
                self.file_of(value)
        elif isinstance(value, enum.Enum):
            self.value(f"{label} {type(value).__qualname__}.{value.name}", value.value, deeper, is_live)
        elif isinstance(value, type):
            if is_users(module_of(value)):
                self.of_class(value, deeper)
        elif isinstance(value, FunctionType):
            self.of_function(value, deeper)
        elif isinstance(value, staticmethod | classmethod | MethodType):
            self.value(label, cast(Any, value).__func__, deeper, is_live)
        elif isinstance(value, property):
            for accessor in (value.fget, value.fset):
                self.value(label, accessor, deeper, is_live)
        elif isinstance(value, functools.cached_property):
            self.value(label, value.func, deeper, is_live)
        elif isinstance(value, functools.partial):
            self.value(label, value.func, deeper, is_live)
            self.value(label, (value.args, value.keywords), deeper, True)
        elif value is None or isinstance(value, PLAIN) or type(value).__module__ in EXACT:
            self.add(label, f"{type(value).__name__} {value!r}")
        else:
            self.of_items(label, value, deeper, is_live)

    def of_items(self, label: str, value: Any, depth: int, is_live: bool) -> None:
        if isinstance(value, tuple) or is_live and isinstance(value, list):
            items = list(cast(Iterable[Any], value))
            self.add(label, f"several {len(items)}")
            for item in items:
                self.value(label, item, depth, is_live)
        elif isinstance(value, frozenset) or is_live and isinstance(value, set):
            # The order of texts in a set is another in each process.
            self.add(label, f"set {sorted(map(repr, cast(Iterable[Any], value)))}")
        elif is_live and isinstance(value, dict):
            for name, item in cast(Any, value).items():
                self.value(f"{label} {name!r}", item, depth, is_live)
        elif type(value).__module__ == "numpy" and hasattr(value, "tobytes"):
            if is_live or value.ndim == 0:
                self.add(f"{label} {value.dtype} {value.shape}", value.tobytes())
        elif dataclasses.is_dataclass(value) and is_users(module_of(type(value))):
            self.value(label, type(value), depth, is_live)
            if is_live or cast(Any, value).__dataclass_params__.frozen:
                for field in dataclasses.fields(value):
                    self.value(f"{label} {field.name}", getattr(value, field.name, None), depth, is_live)

    def of_class(self, part: type, depth: int) -> None:
        for at, one in enumerate(part.__mro__):
            module = module_of(one)
            if one.__module__ == "builtins" or (at and not is_users(module)) or not self.is_new(one):
                continue
            is_live = is_of_no_file(module)
            if not is_live:
                self.file_of(module)
            elif any(code_of(value) for value in vars(one).values()):
                self.add(one.__qualname__, text_of_class(one))
            else:
                # It has nothing but the attributes that follow.
                self.add(one.__qualname__, " ".join(base.__qualname__ for base in one.__bases__))
            for name, value in sorted(vars(one).items()):
                if not name.startswith("__") or code_of(value):
                    self.value(f"{one.__qualname__}.{name}", value, depth, is_live)

    def of_function(self, function: FunctionType, depth: int) -> None:
        module = sys.modules.get(function.__module__)
        if not is_users(module) or not self.is_new(function):
            return
        is_live = is_of_no_file(module)
        if is_live:
            self.add(function.__qualname__, text_of_function(function))
        else:
            self.file_of(module)
        for cell in function.__closure__ or ():
            # An empty one, of a name that was not assigned, has none.
            with contextlib.suppress(ValueError):
                self.value(f"{function.__qualname__} closure", cell.cell_contents, depth, is_live)
        given = (function.__defaults__ or (), function.__kwdefaults__ or {})
        self.value(f"{function.__qualname__} defaults", given, depth, True)
        named, read = names_of(function.__code__)
        for name in named:
            if name not in function.__globals__:
                continue
            value = function.__globals__[name]
            self.value(name, value, depth, is_live)
            if isinstance(value, ModuleType) and is_users(value):
                for inner in read:
                    if inner in vars(value):
                        self.value(f"{name}.{inner}", vars(value)[inner], depth, is_of_no_file(value))

    def file_of(self, module: ModuleType | None) -> None:
        path = getattr(module, "__file__", None)
        if path is None or path in self.files:
            return
        self.files.add(path)
        try:
            self.add("file", Path(path).read_bytes())
        except OSError as error:
            raise Error(f"python: the source of {path} is not to be had: {error}") from None


def module_of(part: Any) -> ModuleType | None:
    return sys.modules.get(part.__module__)


def is_of_no_file(module: ModuleType | None) -> bool:
    """Whether it is a notebook, a prompt or a script, where a part may be replaced while the rest stays."""
    return module is None or module.__name__ in ("__main__", "__mp_main__") or getattr(module, "__file__", None) is None


def is_users(module: ModuleType | None) -> bool:
    """Not Python's, not Sojourn's, and not of a package that was installed."""
    if module is None:
        return False
    if module.__name__ in ("__main__", "__mp_main__"):
        return True
    if module.__name__.partition(".")[0] in (*sys.builtin_module_names, *sys.stdlib_module_names, __package__):
        return False
    path = getattr(module, "__file__", None)
    return path is not None and not {"site-packages", "dist-packages"} & set(Path(path).parts)


@lru_cache(maxsize=1000)
def names_of(code: CodeType) -> tuple[list[str], list[str]]:
    """Names of its module that it reads and does not assign, and all that it reads, with those of the code in it."""
    read: set[str] = set()
    assigned: set[str] = set()
    everything: set[str] = set()
    within = [code]
    while within:
        one = within.pop()
        everything.update(one.co_names)
        within.extend(constant for constant in one.co_consts if isinstance(constant, CodeType))
        for step in dis.get_instructions(one):
            if "GLOBAL" in step.opname or step.opname == "LOAD_NAME":
                (read if step.opname.startswith("LOAD") else assigned).add(str(step.argval))
    return sorted(read - assigned), sorted(everything)


def code_of(value: Any) -> CodeType | None:
    """Of a function, or of what stands for one in a class."""
    for name in ("__func__", "fget", "func", "__wrapped__"):
        value = getattr(value, name, value)
    return value.__code__ if isinstance(value, FunctionType) else None


def text_of_class(part: type) -> str:
    """Where Python knows no file of the module, as in a notebook, one of its methods knows where the text is."""
    for value in vars(part).values():
        code = code_of(value)
        if code is None:
            continue
        lines = linecache.getlines(code.co_filename)
        around = [node for node in classes_in("".join(lines)) if node.name == part.__name__ and is_in(code, node)]
        if around:
            node = max(around, key=lambda node: node.lineno)
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            return "".join(lines[first - 1 : node.end_lineno])
    try:
        return inspect.getsource(part)
    except (OSError, TypeError) as error:
        raise Error(f"python: the source of {part.__qualname__} is not to be had: {error}") from None


def is_in(code: CodeType, node: ast.ClassDef) -> bool:
    return node.lineno <= code.co_firstlineno <= (node.end_lineno or node.lineno)


@lru_cache(maxsize=100)
def classes_in(text: str) -> list[ast.ClassDef]:
    # A cell of a notebook may wait for something outside of a function.
    flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    try:
        tree = compile(text, "source", "exec", flags, dont_inherit=True)
    except SyntaxError:
        return []
    return [node for node in ast.walk(cast(ast.AST, tree)) if isinstance(node, ast.ClassDef)]


def text_of_function(function: FunctionType) -> str:
    lines = linecache.getlines(function.__code__.co_filename)
    if not lines:
        raise Error(f"python: the source of {function.__qualname__} is not to be had")
    return "".join(inspect.getblock(lines[function.__code__.co_firstlineno - 1 :]))
