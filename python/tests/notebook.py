"""Classes in cells of a notebook; run by test_own.py in a process of its own."""

from IPython.core.interactiveshell import InteractiveShell

CELLS = [
    """import sojourn as sj
K = 1.0
GAINS = [1.0]
def helper(): return K * GAINS[0]
@(lambda part: part)
class Base(sj.Controller):
    add: float = 1.0
    def on_ack(self, ack):
        if ack.is_cwnd_limited and not ack.is_reducing:
            self.cwnd += self.add * self.step() * ack.delivered / self.cwnd
    def step(self): return 1.0
    def on_congestion(self, congestion):
        self.ssthresh = max(self.cwnd / 2, 2)
        self.cwnd = self.ssthresh if congestion.kind != "timeout" else 1""",
    "class Child(Base): pass",
    "%time 1 + 1\nclass Uses(Base):\n    def step(self): return helper()",
    "sj.check(Uses)",
    """class Fifo(sj.Queue):
    def begin(self): self.waiting = []
    def enqueue(self, packet, now_s):
        self.waiting.append(packet)
        return True
    def dequeue(self, now_s): return self.waiting.pop(0) if self.waiting else None""",
    """scenario = {"duration": "1s", "path": {"rate": "10Mbps", "rtt": "20ms", "queue": sj.own(Fifo)}}
def digest(part):
    study = sj.Study(title="x", scenario={**scenario, "flow": [{"name": "a", "app": "bulk", "cca": sj.own(part)}]})
    assert sj.simulate(study).flows["a"]["goodput_mbps"] > 1
    return study.check().digest
child, uses = digest(Child), digest(Uses)
assert (child, uses) == (digest(Child), digest(Uses)) and child != uses""",
    """K = 2.0
assert digest(Child) == child
assert digest(Uses) not in (uses, child)
K = 1.0
assert digest(Uses) == uses
GAINS = [2.0]
assert digest(Uses) != uses
GAINS = [1.0]""",
    """def helper(): return 3.0
assert digest(Uses) != uses""",
    """class Base(sj.Controller):
    def on_ack(self, ack): self.cwnd += 1
    def on_congestion(self, congestion): self.cwnd = 2""",
    # It has the base class that it was made with.
    "assert digest(Child) == child",
    "class Child(Base): pass",
    "assert digest(Child) != child",
]

if __name__ == "__main__":
    shell = InteractiveShell.instance()
    for cell in CELLS:
        shell.run_cell(cell, store_history=True).raise_error()
