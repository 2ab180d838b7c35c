"""What the extension module has. `sojourn` passes on what is meant for users."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, TypedDict, final

__version__: str
MODEL: str
"""The version of the models; it is a part of every run's identity."""

class Error(Exception):
    """What Sojourn could not do, and why."""

    is_of_machine: bool
    """Whether this machine is to blame (a full disk, no permission) and not what was given."""

class StudyError(Error):
    """What is wrong with a study: a line for each mistake."""

    mistakes: list[Mistake]

class RunError(Error):
    """Why a study could not be run to its end. What was finished is kept."""

class ResultsError(Error):
    """Why a result folder cannot be read, or has not what was asked for."""

@final
class Mistake:
    """One mistake of a study."""

    @property
    def file(self) -> str:
        """The file, the option, or ``study`` where it was built of values."""
    @property
    def line(self) -> int | None:
        """Counted from 1; None where there are no lines."""
    @property
    def column(self) -> int | None:
        """Counted from 1; None where there are no lines."""
    @property
    def key(self) -> str:
        """With dots: ``scenario.path.rate``."""
    @property
    def problem(self) -> str:
        """What is wrong, what is allowed and what is near."""
    @property
    def text(self) -> str:
        """All of it, as the command prints it."""

@final
class Table:
    """A table in Arrow's memory, which other libraries take over without a copy.

    ``polars.DataFrame(table)``, ``pyarrow.table(table)``, ``pandas.DataFrame.from_arrow(table)``, and
    in DuckDB ``duckdb.sql("SELECT … FROM table")``.
    """

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
    def __getitem__(self, name: str, /) -> list[Any]:
        """A column as a list, with None where there is no value."""
    def numbers(self, name: str) -> bytes:
        """A column of numbers as bytes of 64-bit floats of this machine, not-a-number where there is
        no value: ``numpy.frombuffer(table.numbers("t_s"))``."""
    def to_dict(self) -> dict[str, list[Any]]:
        """All columns as lists, by name."""
    def __len__(self) -> int: ...
    def __contains__(self, name: str, /) -> bool:
        """Whether there is a column of this name."""
    def __iter__(self) -> Iterator[str]:
        """The names of the columns, as those of a dict."""
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...

class Wanted(TypedDict):
    flow: list[str] | None
    queue: list[str] | None
    metric: list[str] | None
    run: list[int] | None
    seed: list[int] | None
    factors: list[tuple[str, list[str]]]

class Changes(TypedDict):
    set: list[tuple[str, Any]]
    seeds: int | None
    shorten: str | None

@final
class Study:
    @staticmethod
    def load(path: str | PathLike[str]) -> Study: ...
    @staticmethod
    def parse(name: str, text: str, folder: str | PathLike[str]) -> Study: ...
    @staticmethod
    def build(values: Mapping[str, Any], folder: str | PathLike[str]) -> Study: ...
    def changed(self, changes: Changes) -> Study: ...
    @property
    def title(self) -> str: ...
    @property
    def source(self) -> str | None: ...
    @property
    def question(self) -> str | None: ...
    @property
    def path(self) -> str: ...
    @property
    def folder(self) -> PathLike[str]: ...
    @property
    def text(self) -> str: ...
    def to_dict(self) -> dict[str, Any]: ...
    @property
    def seeds(self) -> list[int]: ...
    @property
    def factors(self) -> list[tuple[str, list[str]]]: ...
    @property
    def claims(self) -> list[tuple[str, str]]: ...
    @property
    def views(self) -> list[str]: ...
    @property
    def notices(self) -> list[tuple[str, int]]: ...
    @property
    def digest(self) -> str: ...
    def __len__(self) -> int: ...
    def scenario(self, index: int) -> tuple[str, list[str], float, list[str], list[str]]: ...
    def default_folder(self, shard: str | None) -> PathLike[str]: ...
    def run(
        self,
        out: str | PathLike[str],
        jobs: int | None,
        shard: str | None,
        command: Sequence[str],
        progress: Callable[[int, int, int, int], object] | None,
    ) -> Results: ...
    def record(
        self,
        out: str | PathLike[str],
        jobs: int | None,
        shard: str | None,
        command: Sequence[str],
    ) -> Recorder: ...
    def compute(self, run: int, id: str) -> bytes: ...
    def simulate(self, scenario: int, seed: int) -> Run: ...

@final
class Recorder:
    def pending(self, first: int, most: int) -> list[tuple[int, str]]: ...
    def progress(self) -> tuple[int, int, int, int]: ...
    def keep(self, run: int, result: bytes) -> bool: ...
    def give_up(self, run: int, problem: str) -> None: ...
    def finish(self) -> Results: ...
    def close(self) -> None: ...

@final
class Results:
    @staticmethod
    def open(folder: str | PathLike[str]) -> Results: ...
    @property
    def folder(self) -> PathLike[str]: ...
    @property
    def has_checksums(self) -> bool: ...
    @property
    def study(self) -> str: ...
    @property
    def plan(self) -> str: ...
    @property
    def machine(self) -> str | None: ...
    @property
    def missing(self) -> list[int]: ...
    @property
    def failed(self) -> list[tuple[int, str]]: ...
    @property
    def verdicts(self) -> list[tuple[str, str, str]]: ...
    def runs(self) -> Table: ...
    def series(self, wanted: Wanted) -> Table: ...
    def delays(self, wanted: Wanted) -> Table: ...
    def claims(self) -> Table: ...
    def report(self) -> str: ...
    def figures(self) -> list[tuple[str, str]]: ...
    def tables(self) -> list[tuple[str, str, str]]: ...
    def figure(self, name: str) -> str: ...
    def table(self, name: str) -> tuple[str, str]: ...

@final
class Run:
    @property
    def digest(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def rows(self) -> list[tuple[str, str, list[tuple[str, float]], str]]: ...
    def parts(self) -> tuple[bytes, str]: ...
    @staticmethod
    def of_parts(result: bytes, names: str) -> Run: ...
    def table(self) -> Table: ...
    def series(self, wanted: Wanted) -> Table: ...
    def delays(self, wanted: Wanted) -> Table: ...

@final
class Start:
    """What a connection knows when it begins."""

    @property
    def mss(self) -> int:
        """Payload bytes of a full segment."""
    @property
    def initial_cwnd(self) -> int:
        """Segments."""
    @property
    def now_s(self) -> float: ...
    @property
    def handshake_rtt_s(self) -> float | None: ...
    @property
    def random(self) -> int:
        """A number to begin a random generator with."""

@final
class Ack:
    """An acknowledgement, after the transport's own bookkeeping of it. Counts are segments; times end with `_s` and are seconds."""

    @property
    def now_s(self) -> float:
        """Since the run began."""
    @property
    def delivered(self) -> int:
        """Newly delivered, cumulatively or selectively."""
    @property
    def lost(self) -> int:
        """Newly deemed lost."""
    @property
    def marked(self) -> int:
        """Newly reported as marked; with classic ECN all of `delivered` while the receiver echoes a mark."""
    @property
    def ece(self) -> bool:
        """It carries ECN-Echo; with accurate ECN: `marked` is not 0."""
    @property
    def rtt_s(self) -> float | None:
        """The round-trip time of the newest segment that was not sent twice; None if it acknowledges none such."""
    @property
    def srtt_s(self) -> float | None:
        """The smoothed round-trip time (RFC 6298); None before the first."""
    @property
    def min_rtt_s(self) -> float | None:
        """The least round-trip time of the last 5 minutes; None before the first."""
    @property
    def prior_in_flight(self) -> int:
        """In flight before it."""
    @property
    def in_flight(self) -> int:
        """In flight after it."""
    @property
    def snd_una(self) -> int:
        """The number of the first segment that is not acknowledged cumulatively; a round trip ends when it passes what `snd_nxt` was."""
    @property
    def snd_nxt(self) -> int:
        """The number of the segment that is to be sent next for the first time."""
    @property
    def total_delivered(self) -> int:
        """Delivered since the connection began."""
    @property
    def total_lost(self) -> int:
        """Deemed lost since the connection began."""
    @property
    def is_cwnd_limited(self) -> bool:
        """The window was the limit in the round before; in slow start it is enough that half of it was used. A window that was not the
        limit says nothing of the path."""
    @property
    def was_cwnd_full(self) -> bool:
        """All of the window was used at some time in the round before: as `is_cwnd_limited`, but in slow start half of it is not enough."""
    @property
    def is_app_limited(self) -> bool:
        """The application has not given enough to fill the window."""
    @property
    def is_reducing(self) -> bool:
        """The transport lowers the window at present and does not want it to grow."""
    @property
    def moves_una(self) -> bool:
        """It acknowledges cumulatively at least one segment that was not before, so `snd_una` is larger than it was."""
    @property
    def state(self) -> str:
        """``open``, ``disorder``, ``cwr``, ``recovery`` or ``loss``, as in Linux."""
    @property
    def rate(self) -> Rate | None:
        """How fast segments were delivered lately; None if it delivers none."""

@final
class Rate:
    """A sample of the delivery rate (draft-ietf-ccwg-bbr)."""

    @property
    def mbps(self) -> float:
        """`delivered` over `interval_s`, as payload in Mbit/s."""
    @property
    def delivered(self) -> int:
        """Segments delivered in `interval_s`."""
    @property
    def lost(self) -> int:
        """Segments deemed lost from when the newest acknowledged segment left until it was acknowledged."""
    @property
    def interval_s(self) -> float:
        """The longer of the times in which they were sent and acknowledged."""
    @property
    def prior_delivered(self) -> int:
        """`Ack.total_delivered` when the newest acknowledged segment left."""
    @property
    def is_app_limited(self) -> bool:
        """The application was the limit when the newest acknowledged segment left, so the path may carry more."""
    @property
    def is_too_short(self) -> bool:
        """The interval is shorter than the least round-trip time, so the rate means nothing."""

@final
class Congestion:
    """A reduction begins."""

    @property
    def now_s(self) -> float:
        """Since the run began."""
    @property
    def kind(self) -> str:
        """``loss``, ``ecn`` or ``timeout``."""
    @property
    def in_flight(self) -> int:
        """Segments in flight."""
    @property
    def state(self) -> str:
        """The state before, as in `Ack`."""

@final
class Lost:
    """A segment is deemed lost."""

    @property
    def now_s(self) -> float:
        """Since the run began."""
    @property
    def sent_delivered(self) -> int:
        """Segments that the connection had delivered when it left."""
    @property
    def sent_in_flight(self) -> int:
        """Segments in flight when it left, with it."""
    @property
    def total_lost(self) -> int:
        """Deemed lost since the connection began, with it."""
    @property
    def total_delivered(self) -> int:
        """Delivered since the connection began."""
    @property
    def is_retransmission(self) -> bool:
        """It was sent before, and is lost again."""

@final
class Packet:
    """A packet, as a queue knows it."""

    @property
    def arrived_s(self) -> float:
        """When it came to the queue, since the run began."""
    @property
    def bytes(self) -> int:
        """On the wire, as Linux counts: with Ethernet's header."""
    @property
    def ip_bytes(self) -> int:
        """Of the IP packets alone."""
    @property
    def segments(self) -> int:
        """How many it is when divided: a host's queue holds packets of several segments (GSO)."""
    @property
    def flow(self) -> tuple[int, int, int]:
        """Sending host, receiving host, and a number for ports and protocol."""
    @property
    def dscp(self) -> int:
        """The class that the sender asks for (RFC 2474), 0 to 63."""
    @property
    def ecn(self) -> str:
        """``not-ect``, ``ect0``, ``ect1`` or ``ce``."""
    @property
    def is_pure_ack(self) -> bool:
        """It acknowledges and carries no data."""
    def _mark(self) -> bool: ...

def check(is_queue: bool, text: str) -> str | None: ...
def model(text: str) -> list[tuple[str, float]]: ...
def models() -> list[tuple[str, str, list[tuple[str, str, str]]]]: ...
