"""Looks for the parameters of BBRv3 with which packets wait least in world.toml, while its claims hold.

python tune.py [FOLDER]: 80 points, some ten seconds. Needs the package with its search (pip install '.[search]').
"""

import sys
from pathlib import Path
from statistics import mean

import pyarrow as pa

import sojourn as sj

HERE = Path(__file__).parent
DEFAULT = {"cwnd": 2.0, "up": 1.25, "up_cwnd": 2.25, "down": 0.9, "headroom": 0.15, "wait": 2.0}


def waits(results: sj.Results) -> float:
    """Mean wait in the bottleneck's queue, in milliseconds."""
    rows = pa.table(results.runs).to_pylist()
    return mean(row["sojourn_mean_ms"] for row in rows if row["kind"] == "queue" and row["name"] == "queue")


found = sj.search(
    sj.Study.from_toml(HERE / "world.toml"),
    change={
        "cca": "bbr3 cwnd_gain={cwnd} probe_up_pacing_gain={up} probe_up_cwnd_gain={up_cwnd} "
        "probe_down_pacing_gain={down} headroom={headroom} probe_wait_base={wait}s"
    },
    space={
        "cwnd": (1.0, 2.5),
        "up": (1.05, 1.5),
        "up_cwnd": (1.2, 2.5),
        "down": (0.5, 0.95),
        "headroom": (0.0, 0.4),
        "wait": (1.0, 5.0),
    },
    objective=waits,
    out=sys.argv[1] if len(sys.argv) > 1 else "results/tune-bbr3-search",
    trials=80,
    seed=1,
    first=[DEFAULT],
    progress=False,
)
for trial in [found.trials[0], *sorted(found.trials, key=lambda trial: trial.value)[:8]]:
    parameters = " ".join(f"{name}={value:.3g}" for name, value in trial.parameters.items())
    print(f"{trial.number:3} {trial.value:6.1f} ms  {parameters}  {', '.join(trial.failed) or 'all claims hold'}")
print("best:", found.best and found.best.number)
