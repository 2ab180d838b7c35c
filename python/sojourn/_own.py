"""Congestion controls and queues written in Python, for trying an idea before it is written in Rust.

They are slow: each acknowledgement, or each packet, is a call of Python's, and only one thread at a time runs it.
"""

from __future__ import annotations

import functools
import importlib
import math
import random
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Literal, NamedTuple, cast

from . import _native as extension
from ._given import check_unicode, refused
from ._native import Ack, Congestion, Error, Lost, Packet, Start
from ._study import Study, simulate

Value = bool | int | float | str


class Controller:
    """A congestion control: a subclass says how large the window is.

    The transport finds losses, paces, repairs, and lowers the window gradually (PRR). It reads `cwnd`, `ssthresh`,
    `pacing_rate_mbps` and `phase` after each call. Class attributes with a type and a default are parameters, which
    a study sets: ``keep: float = 0.7``.

    An instance is one connection's. Draw random numbers from `random`, and ask no clock: the same seed
    has to give the same run.
    """

    ecn: ClassVar[Literal["host", "mark by mark", "l4s"]] = "host"
    """``host``: what the flow's ``ecn`` says. ``mark by mark``: as DCTCP. ``l4s``: as Prague."""
    uses_prr: ClassVar[bool] = True
    """Whether the transport lowers the window gradually in recovery (RFC 9937)."""
    phases: ClassVar[tuple[str, ...]] = ()
    """All values of `phase`, if a study changes the world when one begins."""

    cwnd: float
    """Segments that may be in flight; at first the initial window."""
    ssthresh: float | None
    """None before the first congestion."""
    pacing_rate_mbps: float | None
    """None lets the transport derive it from the window and the round-trip time."""
    phase: str
    """What ``ss``, plots and claims call the state it is in."""
    start: Start
    random: random.Random

    def __init__(self, start: Start) -> None:
        self.start = start
        self.random = random.Random(start.random)
        self.cwnd = start.initial_cwnd
        self.ssthresh = None
        self.pacing_rate_mbps = None
        self.phase = "running"

    def begin(self) -> None:
        """A connection begins; parameters are set."""

    def on_ack(self, ack: Ack) -> None:
        raise NotImplementedError

    def on_congestion(self, congestion: Congestion) -> None:
        """Fast recovery, a reduction for ECN marks, or a timeout begins: lower the window and the threshold."""
        raise NotImplementedError

    def on_lost(self, lost: Lost) -> None:
        """For each segment deemed lost, before the acknowledgement that revealed it."""

    def on_sent(self, now_s: float) -> None:
        """A burst leaves."""

    def on_recovered(self, now_s: float) -> None:
        """All of the flight that was reduced is acknowledged."""

    def on_undo(self, now_s: float) -> None:
        """The reduction was for nothing: what was deemed lost had only come late."""

    def on_restart(self, idle_s: float) -> None:
        """It sends again with nothing in flight."""


class Queue:
    """A queue discipline: a subclass takes packets and gives them, in its order.

    It gives, drops or refuses each packet exactly once. Class attributes with a type and a default are parameters.
    """

    random: random.Random

    def __init__(self, start: int) -> None:
        self.random = random.Random(start)
        self._told: list[tuple[Packet, str | None]] = []
        self._waits = 0
        self._short_waits = 0

    def begin(self) -> None:
        """The queue is made; parameters are set."""

    def enqueue(self, packet: Packet, now_s: float) -> bool:
        """A packet arrives; False refuses it."""
        raise NotImplementedError

    def dequeue(self, now_s: float) -> Packet | float | None:
        """The next packet; None if there is none; a later time until which a shaper holds packets back.

        A run ends if it asks to wait without getting on: three times in a row for less than a nanosecond, which
        is the simulator's step, or a hundred thousand times while no packet comes or goes.
        """
        raise NotImplementedError

    def drop(self, packet: Packet, why: Literal["aqm", "overflow", "full"] = "aqm") -> None:
        """Drops a packet that is in the queue."""
        self._told.append((packet, why))

    def mark(self, packet: Packet) -> bool:
        """Marks a packet that is in the queue, if its sender allows that."""
        marked = packet._mark()
        if marked:
            self._told.append((packet, None))
        return marked

    def _enqueue(self, packet: Packet, now_s: float) -> str | None:
        """Why it was refused."""
        self._waits = 0
        taken = cast(object, self.enqueue(packet, now_s))
        if not isinstance(taken, bool):
            raise TypeError(f"enqueue returned a {type(taken).__name__} (allowed: True, or False to refuse the packet)")
        return None if taken else "full"

    def _dequeue(self, ask: Callable[[float], Any], now_s: float) -> Any:
        """What `ask` answers, unless time would not get on with it."""
        answer = ask(now_s)
        if not isinstance(answer, float | int) or not answer > now_s:
            self._waits = self._short_waits = 0
            return answer
        self._waits += 1
        self._short_waits = self._short_waits + 1 if answer - now_s < STEP_S else 0
        # A time may round to what is a nanosecond too early, once.
        if self._short_waits > MOST_SHORT_WAITS:
            raise ValueError(f"dequeue asks to wait until {answer} s, at {now_s} s (allowed: times that are later by a nanosecond)")
        if LATEST_S < answer < math.inf:
            raise ValueError(f"dequeue asks to wait until {answer:g} s (allowed: up to {LATEST_S:g} s)")
        if self._waits > MOST_WAITS:
            raise ValueError(
                f"dequeue asked to wait {self._waits} times in a row, at last until {answer} s, at {now_s} s "
                "(allowed: the time at which it has a packet)"
            )
        return answer

    def _take_told(self) -> list[tuple[Packet, str | None]]:
        told, self._told = self._told, []
        return told


STEP_S = 1e-9
"""Of the simulator's time."""

LATEST_S = 1e9
"""What is added to a time later has to fit, too: the simulator counts nanoseconds in 64 bits."""

MOST_SHORT_WAITS = 2

MOST_WAITS = 100_000


class Loaded(NamedTuple):
    """What the extension module has to know of a class."""

    class_: Any
    settings: list[tuple[str, str]]
    code: str
    methods: list[str]
    phases: list[str]
    ecn: str
    uses_prr: bool


def own(part: type[Controller] | type[Queue], **parameters: Value) -> str:
    """What a study calls a class: ``cca = own(Aimd, keep=0.7)``.

    It is a text with where Python imports the class from, so processes that run the study must be able to
    import it from there.
    """
    allowed = "a class of yours with the base sojourn.Controller or sojourn.Queue"
    if not isinstance(cast(object, part), type):
        raise refused("part", part, allowed)
    if part in (Controller, Queue) or not issubclass(cast(type, part), Controller | Queue):
        raise TypeError(f"part is the class {part.__qualname__} (allowed: {allowed})")
    path = f"{part.__module__}:{part.__qualname__}"
    return " ".join(["python", path, *(f"{name}={written(value)}" for name, value in parameters.items())])


def check(part: type[Controller] | type[Queue], **parameters: Value) -> None:
    """Tries a class against what every built-in one must do too, and raises `Error` with what it does wrong.

    That is the suite of Sojourn's own controllers, or queues: random connections, or packets, after
    each step of which nothing may be lost or out of bounds, twice alike; then runs with losses, marks and short buffers, twice
    alike packet by packet.
    """
    text = own(part, **parameters)
    problem = extension.check(issubclass(part, Queue), text)
    if problem is not None:
        raise Error(f"{text}: {problem}")
    for path in WORLDS:
        scenario = {"duration": "3s", "path": path, "flow": [{"name": "one", "app": "bulk"}, {"name": "two", "app": "bulk"}]}
        if issubclass(part, Queue):
            path = {**path, "queue": text}
        else:
            scenario["flow"] = [{"name": "own", "app": "bulk", "cca": text}, {"name": "cubic", "app": "bulk"}]
        study = Study(title="Twice", scenario={**scenario, "path": path})
        if simulate(study).digest != simulate(study).digest:
            raise Error(f"{text}: the same seed gives another run the second time, over {path}")


WORLDS: tuple[dict[str, Any], ...] = (
    {"rate": "10Mbps", "rtt": "40ms", "queue": "pfifo limit 20"},
    {"rate": "10Mbps", "rtt": "40ms", "queue": "fq_codel", "loss": "1%"},
    {"rate": "1Mbps", "rtt": "200ms", "queue": "pfifo limit 1000"},
)


def load(base: str, path: str, settings: list[tuple[str, str]]) -> Loaded:
    """Imports a class with what a study says behind its name. What is wrong is a sentence."""
    # What it needs of Python's library takes a while, and few studies need it.
    from ._source import digest

    part = imported(path)
    kind = Controller if base == "Controller" else Queue
    if not (isinstance(part, type) and issubclass(part, kind)):
        raise Error(f"python: {path} is no subclass of sojourn.{base}")
    for method in ("on_ack", "on_congestion") if kind is Controller else ("enqueue", "dequeue"):
        if getattr(part, method) is getattr(kind, method):
            raise Error(f"python: {path} has no method {method}")
    code = digest(part)
    known = parameters_of(part)
    values: list[tuple[str, str]] = []
    for name, text in settings:
        if name == "code":
            # What printed queues carry.
            if text != code:
                raise Error(f"python: {path} is not the code {text}, but {code}")
            continue
        if name not in known:
            raise Error(f"python: {path} has no parameter '{name}' (allowed: {', '.join(known) or 'none'})")
        value = valued(name, text, known[name])
        if value != known[name]:
            values.append((name, written(value)))
    values.sort(key=lambda setting: list(known).index(setting[0]))
    optional = [name for name in dir(kind) if name.startswith("on_")]
    has = [name for name in optional if getattr(part, name) is not getattr(kind, name)]
    ecn = getattr(part, "ecn", "host")
    if ecn not in ("host", "mark by mark", "l4s"):
        raise Error(f"python: {path}: ecn is '{ecn}' (allowed: host, mark by mark, l4s)")
    phases = [str(phase) for phase in getattr(part, "phases", ())]
    return Loaded(part, values, code, has, phases, ecn, bool(getattr(part, "uses_prr", True)))


def imported(path: str) -> Any:
    module, colon, name = path.partition(":")
    if not colon or not module or not name:
        raise Error(f"python: '{path}' names no class (allowed: MODULE:CLASS)")
    try:
        found: Any = importlib.import_module(module)
    except Exception as error:
        raise Error(f"python: {path}: {described(error, error.__traceback__)}") from error
    try:
        return functools.reduce(getattr, name.split("."), found)
    except AttributeError:
        raise Error(f"python: the module {module} of this process has no {name}") from None


def parameters_of(part: type) -> dict[str, Value]:
    """Class attributes with a type and a default, base classes first."""
    found: dict[str, Value] = {}
    for one in reversed(part.__mro__):
        if one in (object, Controller, Queue):
            continue
        for name in one.__dict__.get("__annotations__", {}):
            value = one.__dict__.get(name)
            if isinstance(value, bool | int | float | str):
                found[name] = value
    return found


def valued(name: str, text: str, default: Value) -> Value:
    kind = type(default)
    if kind is bool:
        words = {"on": True, "off": False, "true": True, "false": False}
        if text.lower() not in words:
            raise Error(f"python: {name} is '{text}' (allowed: on, off)")
        return words[text.lower()]
    try:
        return kind(text)
    except ValueError:
        raise Error(f"python: {name} is '{text}' (allowed: {kind.__name__})") from None


def written(value: Value) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    text = str(value)
    check_unicode("own: a parameter", text)
    if not text or any(sign.isspace() or sign == "=" for sign in text):
        raise Error(f"python: '{text}' cannot be written in a study (allowed: texts without blanks and '=')")
    return text


def make(part: Any, settings: list[tuple[str, str]], start: Any) -> Any:
    made = part(start)
    known = parameters_of(part)
    for name, text in settings:
        setattr(made, name, valued(name, text, known[name]))
    made.begin()
    if isinstance(made, Queue):
        made.dequeue = functools.partial(made._dequeue, made.dequeue)  # type: ignore[method-assign]
    return made


def interrupt(threads: list[int]) -> None:
    """Raises `KeyboardInterrupt` in threads that run code of a class."""
    import ctypes

    for thread in threads:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(KeyboardInterrupt))


def described(error: BaseException, raised: TracebackType | None) -> str:
    """What was raised, and where."""
    frames = traceback.extract_tb(raised)
    at = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno}, in {frames[-1].name})" if frames else ""
    return f"{type(error).__name__}: {error}{at}" if str(error) else f"{type(error).__name__}{at}"
