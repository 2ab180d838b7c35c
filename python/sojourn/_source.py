"""What the answers of a class depend on: its source, and what its code calls by name.

A digest of that is a part of a run's identity, so it is the same in each process that has the same code and values.
"""

from __future__ import annotations

import ast
import contextlib
import copyreg
import dataclasses
import dis
import enum
import functools
import hashlib
import inspect
import linecache
import sys
import warnings
from collections import deque
from collections.abc import Callable, Iterable
from functools import lru_cache
from importlib.machinery import ModuleSpec
from pathlib import Path, PurePath
from types import (
    BuiltinMethodType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any, cast

from ._native import Error

MOST = 1_000_000
"""Values and names. More take longer than a run."""

PLAIN = (bool, int, float, complex, str, bytes, range, PurePath)
EXACT = {"datetime", "decimal", "fractions"}
"""Modules of whose classes `repr` says everything."""

WRAPPERS = ("__wrapped__", "pyfunc", "py_func")
"""What wraps a function has it as one of these: Python's decorators, numpy's `vectorize`, numba."""

TOLD: set[str] = set()
"""Warnings, each of which is told once."""


def digest(part: type) -> str:
    """Of the class and its bases, of what is the user's and they name, and of the values of constants among that.

    Of a module that is a file the whole file counts, with the modules of the user's that it imports; in a notebook or a script each
    class and function by itself. What can change (lists, dicts, attributes of instances) counts in a notebook or a script only, because there
    nothing else says what it is. Names that the code itself assigns never count, because they change while a run lasts.

    Warns of what counts and cannot be read.
    """
    gathered = Gathered()
    gathered.of_class(part.__qualname__, part)
    gathered.go_on()
    if gathered.unknown:
        listed = ", ".join(gathered.unknown[:5]) + (", …" if len(gathered.unknown) > 5 else "")
        problem = (
            f"python: {part.__module__}:{part.__qualname__} depends on what cannot be read ({listed}): if that changes, "
            "results of before are taken for those of now"
        )
        tell(problem)
    for path in gathered.changed:
        tell(f"python: {path} was changed after it was imported: the old code runs until Python begins anew, or until importlib.reload")
    return gathered.hash.hexdigest()[:16]


def tell(problem: str) -> None:
    if problem not in TOLD:
        warnings.warn(problem, UserWarning, stacklevel=level_of_user())
        TOLD.add(problem)


def level_of_user() -> int:
    """How far above the caller the first function is that is not Sojourn's."""
    here, level = Path(__file__).parent, 0
    frame = sys._getframe(1)
    while frame.f_back is not None and Path(frame.f_code.co_filename).parent == here:
        frame, level = frame.f_back, level + 1
    return level + 1


class Gathered:
    """What was found, in an order that depends on the code alone."""

    def __init__(self) -> None:
        self.hash = hashlib.sha256()
        # By identity, with the order in which they were found, and themselves, so that no other gets the identity.
        self.seen: dict[tuple[int, bool], tuple[int, object]] = {}
        self.files: set[str] = set()
        self.todo: deque[tuple[str, Any, bool]] = deque()
        self.unknown: list[str] = []
        # Files that say something else than the code that was read of them.
        self.changed: list[str] = []
        self.count = 0

    def add(self, label: str, text: str | bytes) -> None:
        content = text.encode(errors="surrogatepass") if isinstance(text, str) else text
        self.hash.update(f"{label} {len(content)} ".encode(errors="surrogatepass"))
        self.hash.update(content)

    def is_new(self, label: str, thing: object, is_live: bool = False) -> bool:
        key = (id(thing), is_live)
        if key in self.seen:
            self.add(label, f"as {self.seen[key][0]}")
            return False
        self.seen[key] = (len(self.seen), thing)
        return True

    def value(self, label: str, value: Any, is_live: bool) -> None:
        """Of a name."""
        self.todo.append((label, value, is_live))

    def go_on(self) -> None:
        while self.todo:
            self.count += 1
            if self.count > MOST:
                self.unknown.append(f"all but the first {MOST} values, from {self.todo[0][0]} on")
                return
            self.look_at(*self.todo.popleft())

    def look_at(self, label: str, value: Any, is_live: bool) -> None:
        if isinstance(value, ModuleType):
            if is_users(value):
                self.file_of(value)
        elif isinstance(value, enum.Enum):
            self.value(f"{label} {type(value).__qualname__}.{value.name}", value.value, is_live)
            self.value(label, type(value), is_live)
        elif isinstance(value, type):
            if is_users(module_of(value)):
                self.of_class(label, value)
            else:
                self.add(label, value.__qualname__)
        elif isinstance(value, FunctionType):
            self.of_function(label, value)
        elif isinstance(value, staticmethod | classmethod):
            self.value(label, cast(Any, value).__func__, is_live)
        elif isinstance(value, MethodType):
            self.value(label, value.__func__, is_live)
            self.value(f"{label} self", value.__self__, is_live)
        elif isinstance(value, BuiltinMethodType):
            self.add(label, value.__name__)
            self.value(f"{label} self", value.__self__, is_live)
        elif isinstance(value, property):
            for accessor in (value.fget, value.fset):
                self.value(label, accessor, is_live)
        elif isinstance(value, functools.cached_property):
            self.value(label, value.func, is_live)
        elif isinstance(value, functools.partial):
            self.value(label, value.func, is_live)
            self.value(label, (value.args, value.keywords), True)
        elif value is None or type(value) in PLAIN or isinstance(value, PurePath) or type(value).__module__ in EXACT:
            self.add(label, f"{type(value).__name__} {value!r}")
        elif not isinstance(value, GetSetDescriptorType | MemberDescriptorType):
            self.of_object(label, value, is_live)

    def of_object(self, label: str, value: Any, is_live: bool) -> None:
        """Of what has several values, and of any other object."""
        is_of_user = is_users(module_of(type(value)))
        if is_of_user:
            self.value(f"{label} class", type(value), is_live)
        if type(value).__module__ == "numpy" and hasattr(value, "tobytes"):
            if value.dtype.hasobject:
                self.value(f"{label} {value.shape}", value.tolist(), is_live)
            elif is_live or value.ndim == 0:
                self.add(f"{label} {value.dtype} {value.shape}", value.tobytes())
        elif isinstance(value, PLAIN):
            self.add(label, f"{type(value).__name__} {value.__reduce_ex__(2)[1:2]!r}")
        elif isinstance(value, tuple) or is_live and isinstance(value, list):
            items = list(cast(Iterable[Any], value))
            if all(type(item) in PLAIN for item in items):
                self.add(label, f"several {items!r}")
            elif self.is_new(label, cast(object, value), is_live):
                self.add(label, f"several {len(items)}")
                for item in items:
                    self.value(label, item, is_live)
            if is_of_user:
                self.of_attributes(label, value, is_live)
        elif isinstance(value, frozenset) or is_live and isinstance(value, set):
            # The order of texts in a set is another in each process.
            items = list(cast(Iterable[Any], value))
            is_plain = all(type(item) in PLAIN for item in items)
            self.add(label, f"set {sorted(map(repr if is_plain else self.apart, items))}")
        elif is_live and isinstance(value, dict | MappingProxyType):
            if self.is_new(label, cast(object, value), is_live):
                for key, item in cast(Any, value).items():
                    if not isinstance(key, str):
                        self.value(f"{label} key", key, is_live)
                    self.value(f"{label} {key if isinstance(key, str) else ''}", item, is_live)
            if is_of_user:
                self.of_attributes(label, value, is_live)
        elif not is_of_user and (wrapped := wrapped_by(value)):
            for name in wrapped:
                self.value(f"{label} {name}", getattr(value, name), is_live)
        elif dataclasses.is_dataclass(value) and cast(Any, value).__dataclass_params__.frozen and is_of_user:
            for field in dataclasses.fields(value):
                self.value(f"{label} {field.name}", getattr(value, field.name, None), is_live)
        elif is_live and self.is_new(label, value, is_live):
            if is_of_user:
                self.of_attributes(label, value, is_live)
            else:
                self.of_state(label, value)

    def apart(self, value: Any) -> str:
        """The digest of an item that has no place in an order."""
        other = Gathered()
        other.seen = dict(self.seen)
        other.value("", value, True)
        other.go_on()
        self.unknown.extend(other.unknown)
        return other.hash.hexdigest()

    def of_attributes(self, label: str, value: Any, is_live: bool) -> None:
        """Of an instance of the user's."""
        names: set[str] = set(getattr(value, "__dict__", ()))
        for one in type(value).__mro__:
            slots: str | Iterable[str] = vars(one).get("__slots__", ())
            names.update((slots,) if isinstance(slots, str) else slots)
        if is_live:
            for name in sorted(map(str, names - {"__dict__", "__weakref__"})):
                self.value(f"{label}.{name}", getattr(value, name, None), is_live)
        if any(not (one is object or is_users(module_of(one)) or one.__module__ == "typing") for one in type(value).__mro__):
            # What a base class keeps where no attribute has it.
            if not isinstance(value, list | tuple | dict | set | frozenset | BaseException):
                self.of_state(label, value)

    def of_state(self, label: str, value: Any) -> None:
        """What `pickle` and `copy` take an object for."""
        try:
            reduce: Callable[[Any], Any] | None = copyreg.dispatch_table.get(cast(Any, type(value)))
            state: Any = value.__reduce_ex__(4) if reduce is None else reduce(value)
        except Exception:
            self.unknown.append(f"{label}, a {type(value).__module__}.{type(value).__qualname__}")
            return
        if isinstance(state, str):
            # A name of a package.
            self.add(label, state)
            return
        for part in state:
            several = part if part is None or not hasattr(part, "__next__") else list(part)
            self.value(f"{label} state", several, True)

    def of_class(self, label: str, part: type) -> None:
        for at, one in enumerate(part.__mro__):
            module = module_of(one)
            if one.__module__ == "builtins" or (at and not is_users(module)) or not self.is_new(label, one):
                continue
            is_live = is_of_no_file(module)
            if not is_live:
                self.file_of(module)
            elif any(code_of(value) for value in vars(one).values()):
                self.add(one.__qualname__, text_of_class(one))
            else:
                # It has nothing but the attributes that follow.
                self.add(one.__qualname__, bases_of(one))
            fields: dict[str, Any] = vars(one).get("__dataclass_fields__", {})
            for name, field in fields.items():
                if field.default_factory is not dataclasses.MISSING:
                    self.value(f"{one.__qualname__}.{name}", field.default_factory, is_live)
            for name, value in sorted(vars(one).items()):
                if name.startswith("_abc_") or is_made_by_dataclass(one, name, value):
                    continue
                if not name.startswith("__") or code_of(value):
                    self.value(f"{one.__qualname__}.{name}", value, is_live)

    def of_function(self, label: str, function: FunctionType) -> None:
        module = sys.modules.get(function.__module__)
        if not is_users(module) or not self.is_new(label, function):
            return
        is_live = is_of_no_file(module)
        if is_live:
            self.add(function.__qualname__, text_of_function(function))
        else:
            self.file_of(module)
            self.hold_against_file(function.__code__)
        for name, value in sorted(vars(function).items()):
            # Functions for several types may come from everywhere.
            self.value(f"{function.__qualname__} {name}", value, is_live or name == "registry")
        for cell in function.__closure__ or ():
            # An empty one, of a name that was not assigned, has none.
            with contextlib.suppress(ValueError):
                self.value(f"{function.__qualname__} closure", cell.cell_contents, is_live)
        given = (function.__defaults__ or (), function.__kwdefaults__ or {})
        self.value(f"{function.__qualname__} defaults", given, True)
        named, read, imported = names_of(function.__code__)
        for name in imported if is_live else []:
            for one, package, path in files_of(name):
                self.file_at(one, package, path)
        for name in {"__import__", "import_module"}.intersection(read):
            self.unknown.append(f"what {function.__qualname__} imports by {name}")
        for name in named:
            if name not in function.__globals__:
                continue
            value = function.__globals__[name]
            self.value(name, value, is_live)
            if isinstance(value, ModuleType) and is_users(value):
                for inner in read:
                    if inner in vars(value):
                        self.value(f"{name}.{inner}", vars(value)[inner], is_of_no_file(value))

    def hold_against_file(self, code: CodeType) -> None:
        path = code.co_filename
        if path not in self.files or key_of(code) in codes_of(Path(path).read_bytes()):
            return
        self.add(code.co_name, text_of_code(code))
        if path not in self.changed:
            self.changed.append(path)

    def file_of(self, module: ModuleType | None) -> None:
        """The file of a module, and those of the modules that it imports."""
        path = getattr(module, "__file__", None)
        if path is not None and module is not None:
            self.file_at(module.__name__, getattr(module, "__package__", None) or "", str(path))

    def file_at(self, name: str, package: str, path: str) -> None:
        waiting = deque([(name, package, path)])
        while waiting:
            name, package, path = waiting.popleft()
            if path in self.files:
                continue
            self.files.add(path)
            try:
                content = Path(path).read_bytes()
            except OSError as error:
                raise Error(f"python: the source of {path} is not to be had: {error}") from None
            self.add(f"file {name}", content)
            for imported in imports_of(content, package):
                waiting.extend(files_of(imported))


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
    return is_of_user(module.__name__, getattr(module, "__file__", None))


def is_of_user(name: str, path: str | None) -> bool:
    if name.partition(".")[0] in (*sys.builtin_module_names, *sys.stdlib_module_names, __package__):
        return False
    return path is not None and not {"site-packages", "dist-packages"} & set(Path(path).parts)


def files_of(name: str) -> list[tuple[str, str, str]]:
    """Of a module of the user's and of the packages that it is in: name, package and path. Imports nothing, so that it is
    the same before and after the code itself has imported it."""
    found: list[tuple[str, str, str]] = []
    parts = name.split(".")
    places: Any = None
    for count in range(1, len(parts) + 1):
        inner = ".".join(parts[:count])
        spec = spec_of(inner, places)
        if spec is None:
            break
        places = spec.submodule_search_locations
        if spec.has_location and is_of_user(inner, spec.origin):
            package = inner if places is not None else inner.rpartition(".")[0]
            found.append((inner, package, str(spec.origin)))
        if places is None:
            break
    return found


def spec_of(name: str, places: Any) -> ModuleSpec | None:
    if name.partition(".")[0] in (*sys.builtin_module_names, *sys.stdlib_module_names, __package__):
        return None
    loaded = getattr(sys.modules.get(name), "__spec__", None)
    if loaded is not None:
        return cast(ModuleSpec, loaded)
    for finder in sys.meta_path:
        with contextlib.suppress(Exception):
            if (spec := finder.find_spec(name, places)) is not None:
                return spec
    return None


@lru_cache(maxsize=1000)
def imports_of(content: bytes, package: str) -> list[str]:
    """Names of all that a file may import, wherever it does; what is imported from a module may be a module, too."""
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError):
        # It is no Python: an extension module.
        return []
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            found.add(module)
            found.update(f"{module}.{alias.name}" for alias in node.names if alias.name != "*")
    return sorted(found - {""})


@lru_cache(maxsize=1000)
def names_of(code: CodeType) -> tuple[list[str], list[str], list[str]]:
    """Names of its module that it reads and does not assign, all that it reads, and modules that it imports, with those of the
    code in it."""
    read: set[str] = set()
    assigned: set[str] = set()
    everything: set[str] = set()
    imported: set[str] = set()
    within = [code]
    while within:
        one = within.pop()
        everything.update(one.co_names)
        within.extend(constant for constant in one.co_consts if isinstance(constant, CodeType))
        for step in dis.get_instructions(one):
            if "GLOBAL" in step.opname or step.opname == "LOAD_NAME":
                (read if step.opname.startswith("LOAD") else assigned).add(str(step.argval))
            elif step.opname == "IMPORT_NAME":
                imported.add(str(step.argval))
            elif step.opname == "IMPORT_FROM":
                # A module may come from a package, too.
                imported.update(f"{name}.{step.argval}" for name in list(imported))
    return sorted(read - assigned), sorted(everything), sorted(imported)


def code_of(value: Any) -> CodeType | None:
    """Of a function, or of what stands for one in a class."""
    for name in ("__func__", "fget", "func", "__wrapped__"):
        value = getattr(value, name, value)
    return value.__code__ if isinstance(value, FunctionType) else None


def wrapped_by(value: Any) -> list[str]:
    """Not by asking for them, which some objects answer whatever the name is."""
    return [name for name in WRAPPERS if inspect.getattr_static(value, name, None) is not None]


def is_made_by_dataclass(part: type, name: str, value: Any) -> bool:
    """The class's own text has what makes it."""
    code = code_of(value)
    return dataclasses.is_dataclass(part) and name.startswith("__") and code is not None and not lines_of(code)


def lines_of(code: CodeType) -> list[str]:
    """None of what was given to `exec`, whose text nobody knows."""
    return [] if code.co_filename == "<string>" else linecache.getlines(code.co_filename)


def text_of_class(part: type) -> str:
    """Where Python knows no file of the module, as in a notebook, one of its methods knows where the text is."""
    for value in vars(part).values():
        code = code_of(value)
        if code is None:
            continue
        lines = lines_of(code)
        around = [node for node in classes_in("".join(lines)) if node.name == part.__name__ and is_in(code, node)]
        if around:
            node = max(around, key=lambda node: node.lineno)
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            return "".join(lines[first - 1 : node.end_lineno])
    with contextlib.suppress(OSError, TypeError):
        return inspect.getsource(part)
    # Its methods and attributes follow.
    fields: dict[str, object] = vars(part).get("__dataclass_fields__", {})
    return " ".join([bases_of(part), *fields, str(vars(part).get("__dataclass_params__"))])


def bases_of(part: type) -> str:
    return " ".join(base.__qualname__ for base in part.__bases__)


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
    lines = lines_of(function.__code__)
    if not lines:
        return text_of_code(function.__code__)
    return "".join(inspect.getblock(lines[function.__code__.co_firstlineno - 1 :]))


def text_of_code(code: CodeType) -> str:
    """What Python made of a text that nobody knows; another version of Python makes something else of it."""
    constants = [text_of_code(one) if isinstance(one, CodeType) else repr_of(one) for one in code.co_consts]
    return repr((code.co_code, constants, code.co_names, code.co_varnames, code.co_freevars, code.co_flags))


def key_of(code: CodeType) -> tuple[str, int, str]:
    return code.co_name, code.co_firstlineno, text_of_code(code)


@lru_cache(maxsize=100)
def codes_of(content: bytes) -> set[tuple[str, int, str]]:
    """All code in a file."""
    try:
        within: list[CodeType] = [compile(content, "source", "exec", dont_inherit=True)]
    except (SyntaxError, ValueError):
        # It is being edited.
        return set()
    found: set[tuple[str, int, str]] = set()
    while within:
        one = within.pop()
        found.add(key_of(one))
        within.extend(constant for constant in one.co_consts if isinstance(constant, CodeType))
    return found


def repr_of(constant: object) -> str:
    return f"set {sorted(map(repr, cast(Iterable[Any], constant)))}" if isinstance(constant, frozenset) else repr(constant)
