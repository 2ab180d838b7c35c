"""Congestion controls and queues in Python, for tests: right ones and wrong ones."""

from __future__ import annotations

from collections import deque

import sojourn as sj


class Reno(sj.Controller):
    """The built-in Reno, as far as nothing times out."""

    def begin(self) -> None:
        self.credit = 0
        self.phase = "slow_start"

    def on_ack(self, ack: sj.Ack) -> None:
        if not ack.moves_una or not ack.is_cwnd_limited or ack.is_reducing:
            return
        rest = ack.delivered
        if self.ssthresh is None or self.cwnd < self.ssthresh:
            grown = min(self.cwnd + ack.delivered, self.ssthresh or 1 << 30)
            rest -= int(grown - self.cwnd)
            self.cwnd = grown
        self.phase = "slow_start" if self.ssthresh is None or self.cwnd < self.ssthresh else "avoidance"
        if rest:
            every = int(self.cwnd)
            if self.credit >= every:
                self.credit = 0
                self.cwnd += 1
            self.credit += rest
            self.cwnd += self.credit // every
            self.credit %= every

    def on_congestion(self, congestion: sj.Congestion) -> None:
        self.before: tuple[float, float | None] | None = None
        if congestion.kind == "loss" and congestion.state in ("cwr", "recovery"):
            return
        self.before = (self.cwnd, self.ssthresh)
        self.ssthresh = max(self.cwnd // 2, 2)
        self.cwnd = congestion.in_flight + 1 if congestion.kind == "timeout" else self.ssthresh
        self.credit = 0
        self.phase = "avoidance"

    def on_undo(self, now_s: float) -> None:
        if self.before is not None:
            cwnd, ssthresh = self.before
            self.cwnd = max(self.cwnd, cwnd)
            self.ssthresh = None if ssthresh is None else max(self.ssthresh or 0, ssthresh)


class Steady(sj.Controller):
    """A window that stays as it is."""

    window: int = 10
    share: float = 0.5
    word: str = "plain"
    is_odd: bool = False

    def begin(self) -> None:
        self.cwnd = self.window

    def on_ack(self, ack: sj.Ack) -> None:
        pass

    def on_congestion(self, congestion: sj.Congestion) -> None:
        pass


class Fifo(sj.Queue):
    limit: int = 50

    def begin(self) -> None:
        self.waiting: deque[sj.Packet] = deque()

    def enqueue(self, packet: sj.Packet, now_s: float) -> bool:
        if len(self.waiting) >= self.limit:
            return False
        self.waiting.append(packet)
        return True

    def dequeue(self, now_s: float) -> sj.Packet | float | None:
        return self.waiting.popleft() if self.waiting else None


class HeadDrop(Fifo):
    """Makes room by dropping the oldest, and marks what waited for long."""

    def enqueue(self, packet: sj.Packet, now_s: float) -> bool:
        if len(self.waiting) >= self.limit:
            self.drop(self.waiting.popleft(), "overflow")
        self.waiting.append(packet)
        return True

    def dequeue(self, now_s: float) -> sj.Packet | float | None:
        packet = self.waiting.popleft() if self.waiting else None
        if packet is not None and now_s - packet.arrived_s > 0.01:
            self.mark(packet)
        return packet


class Paced(Fifo):
    """Gives a packet each 10 ms."""

    def begin(self) -> None:
        super().begin()
        self.next_s = 0.0

    def dequeue(self, now_s: float) -> sj.Packet | float | None:
        if not self.waiting:
            return None
        if now_s < self.next_s:
            return self.next_s
        self.next_s = now_s + 0.01
        return self.waiting.popleft()


class Broken(Steady):
    def on_ack(self, ack: sj.Ack) -> None:
        self.cwnd /= 0


class Lazarus(Steady):
    """Ends the runs of some seeds."""

    def begin(self) -> None:
        super().begin()
        self.is_doomed = self.random.random() < 0.3

    def on_ack(self, ack: sj.Ack) -> None:
        self.cwnd /= 0 if self.is_doomed else 1


class Vanishing(Steady):
    def on_congestion(self, congestion: sj.Congestion) -> None:
        self.cwnd = 0


class Nameless(Steady):
    def on_ack(self, ack: sj.Ack) -> None:
        self.phase = ""


class Wordy(Steady):
    def begin(self) -> None:
        self.cwnd = "ten"  # type: ignore[assignment]


class Windowless(Steady):
    def on_ack(self, ack: sj.Ack) -> None:
        self.cwnd = None  # type: ignore[assignment]


class Giant(Steady):
    def on_ack(self, ack: sj.Ack) -> None:
        self.ssthresh = 10**400


class Slow(Steady):
    def on_ack(self, ack: sj.Ack) -> None:
        self.pacing_rate_mbps = 1e-300


class Counting(Steady):
    def begin(self) -> None:
        self.phase = 3  # type: ignore[assignment]


CALLS = [0]


class Moody(Steady):
    """Answers by what happened to another connection."""

    def on_ack(self, ack: sj.Ack) -> None:
        CALLS[0] += 1
        self.cwnd = 2 + CALLS[0] % 7


class Twice(Fifo):
    """Gives the same packet again and again."""

    def dequeue(self, now_s: float) -> sj.Packet | float | None:
        return self.waiting[0] if self.waiting else None


class Forgetful(Fifo):
    def dequeue(self, now_s: float) -> sj.Packet | float | None:
        return None


class Vague(Fifo):
    def enqueue(self, packet: sj.Packet, now_s: float) -> bool:
        super().enqueue(packet, now_s)
        return None  # type: ignore[return-value]


class Stack(Fifo):
    """Gives the newest first."""

    def dequeue(self, now_s: float) -> sj.Packet | float | None:
        return self.waiting.pop() if self.waiting else None


class Late(Fifo):
    def dequeue(self, now_s: float) -> sj.Packet | float | None:
        return now_s if self.waiting else None


class Eager(Fifo):
    """Asks again a thousandth of a nanosecond later."""

    def dequeue(self, now_s: float) -> sj.Packet | float | None:
        return now_s + 1e-12 if self.waiting else None


class Nagging(Fifo):
    """Asks again in a nanosecond."""

    def dequeue(self, now_s: float) -> sj.Packet | float | None:
        return now_s + 1.5e-9 if self.waiting else None


class Endless(Fifo):
    def dequeue(self, now_s: float) -> sj.Packet | float | None:
        return 10**30 if self.waiting else None


class Slotted(Fifo):
    """Gives a packet in each slot, whose begin is no whole number of nanoseconds."""

    def begin(self) -> None:
        super().begin()
        self.slot = 0

    def dequeue(self, now_s: float) -> sj.Packet | float | None:
        if not self.waiting:
            return None
        at_s = (self.slot + 1) / 3000
        if now_s < at_s:
            return at_s
        self.slot = int(now_s * 3000)
        return self.waiting.popleft()


class Half(sj.Controller):
    def on_ack(self, ack: sj.Ack) -> None:
        pass
