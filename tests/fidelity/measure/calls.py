#!/usr/bin/env python3
"""Measures calls between two Chromiums over the live engine, for `--bin webrtc --data RESULTS`.

    sudo calls.py SITUATIONS RESULTS --film FILE.y4m [--repeats N] [--at-once N] [--program target/release/sojourn] [NAME...]

SITUATIONS is a file as ../data/webrtc-more.json, whose rows are not looked at. RESULTS gets those that were measured, one
number in each row for each repeat. Needs Debian's packages chromium, iperf3 and tcpdump, and a machine that is quiet: a call
takes a third of a core.

Packets are timed where they leave the sender's device and where they come to the receiver's. What a packet waited is the
time between, less half of the round trip. Bounds are the mean of the repeats and the tolerances of ../data/webrtc.json.
"""

import argparse
import json
import math
import os
import statistics
import struct
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
CHROMIUM = os.path.join(HERE, "../../../studies/webrtc-coexistence/peers/chromium.py")
ETHERNET = 14
# A FIFO that lasts shorter loses packets before it is found to be full.
SHORT_MS = 100


def steps(values, end, written):
    """A value, or from second to second, as a study writes it."""
    if len(values) == 1:
        return written(values[0][1])
    ends = [start for start, _ in values[1:]] + [end]
    return "steps " + " ".join(f"{written(v)} {to - at:g}s" for (at, v), to in zip(values, ends)) + " end hold"


def study(situation, folder, film):
    end = situation["duration_s"]
    lines = [
        'schema = 1', f'title = "{situation["id"]}"', '[scenario]', 'engine = "live"', f'duration = "{end}s"',
        'step = "1s"', '[scenario.path]', f'rtt = "{situation["rtt_ms"]}ms"', f'queue = "{situation["queue"]}"',
        f'rate = "{steps(situation["rate"], end, lambda kbps: f"{kbps:g}kbit")}"',
        'reverse_rate = "10Gbps"', 'reverse_queue = "pfifo limit 1000"',
    ]
    if any(share for _, share in situation["loss"]):
        lines.append(f'loss = "{steps(situation["loss"], end, lambda share: f"{100 * share:g}%")}"')

    def flow(name, start, protocol, receiver, sender):
        capture = "tcpdump -i eth0 -s 96 -U -w"
        lines.extend([
            '[[scenario.flow]]', f'name = "{name}"', 'app = "exec"', f'protocol = "{protocol}"', f'start = "{start}s"',
            f'src = "from-{name}"', f'dst = "to-{name}"',
            f'receiver = "{capture} {folder}/{name}.in 2>/dev/null & exec {receiver} > {folder}/{name}.received"',
            f'sender = "date +%s.%N > {folder}/{name}.start; {capture} {folder}/{name}.out 2>/dev/null & '
            f'exec {sender} > {folder}/{name}.sent"',
        ])

    for n, call in enumerate(situation["calls"]):
        start, most = call["start"], int(1000 * call["max_kbps"])
        options = f"--fps 30 --film {film} --most {most}" + ("" if call.get("fec") else " --no-parity")
        flow(f"call{n}", start, "udp", f"python3 {CHROMIUM} receive {{port}} --fps 30",
             f"python3 {CHROMIUM} send {{receiver}} {{port}} {end - start} {options}")
    for n, tcp in enumerate(situation["tcp"]):
        flow(f"tcp{n}", tcp["start"], "tcp", "iperf3 -s -1 -p {port}",
             f"iperf3 -c {{receiver}} -p {{port}} -t {tcp['dur']} -C {tcp['cc']} -J")
        lines.append(f'stop = "{min(tcp["start"] + tcp["dur"], end)}s"')
    return "\n".join(lines) + "\n"


def packets(path, protocol):
    """Time, both addresses, bytes with Ethernet's, and what comes after the header of each packet of IPv4."""
    with open(path, "rb") as file:
        data = file.read()
    (magic,) = struct.unpack("<I", data[:4])
    fraction, at = (1e-9 if magic == 0xA1B23C4D else 1e-6), 24
    while at + 16 <= len(data):
        seconds, part, kept, length = struct.unpack("<IIII", data[at:at + 16])
        packet = data[at + 16:at + 16 + kept]
        at += 16 + kept
        if len(packet) >= 20 and packet[0] >> 4 == 4 and packet[9] == protocol:
            yield seconds + part * fraction, packet[12:20], length + ETHERNET, packet[4 * (packet[0] & 15):]


def numbered(path):
    """Packets of UDP by what tells them apart: their beginning, and how many of the same came before."""
    found, seen = {}, {}
    for time, ends, size, rest in packets(path, 17):
        key = ends, rest[:64]
        seen[key] = seen.get(key, 0) + 1
        found[key, seen[key]] = time, size
    return found


def is_rtp(key):
    (_, rest), _ = key
    return len(rest) > 20 and 128 <= rest[8] < 192 and not 192 <= rest[9] <= 207


def passed(folder, name, zero, delay):
    """When each of a call's packets came to the queue, its bytes, and when it left, or nothing."""
    sent, came = numbered(f"{folder}/{name}.out"), numbered(f"{folder}/{name}.in")
    bytes_of = {}
    for ((ends, _), _), (_, size) in came.items():
        bytes_of[ends] = bytes_of.get(ends, 0) + size
    media = max(bytes_of, key=bytes_of.get)
    left = {key: came[key][0] - zero - delay for key in sent if key in came}
    rows = [(time - zero, size, left.get(key), is_rtp(key)) for key, (time, size) in sent.items() if key[0][0] == media]
    return sorted(rows, key=lambda row: row[0])


def freezes(path, zero):
    """Seconds and the browser's count of freezes."""
    found = [(0.0, 0)]
    with open(path, encoding="utf-8") as file:
        for line in file:
            try:
                reports = json.loads(line)
            except ValueError:
                continue  # the last line, cut off
            for report in reports:
                if report.get("type") == "inbound-rtp" and "freezeCount" in report:
                    found.append((report["timestamp"] / 1e3 - zero, report["freezeCount"]))
    return found


def at(part, values):
    return values[int(part * len(values))]


def read(situation, folder):
    """Numbers by name and window, and when the first packets of calls and TCP left."""
    def start(name):
        with open(f"{folder}/{name}.start", encoding="utf-8") as file:
            return float(file.read())

    zero, delay = start("call0") - situation["calls"][0]["start"], situation["rtt_ms"] / 2e3
    calls = [passed(folder, f"call{n}", zero, delay) for n in range(len(situation["calls"]))]
    connects = [min(row[0] for row in rows if row[3]) - call["start"] for rows, call in zip(calls, situation["calls"])]
    tcp = []
    for n in range(len(situation["tcp"])):
        rows = [(time - zero - delay, size, ends) for time, ends, size, _ in packets(f"{folder}/tcp{n}.in", 6)]
        data = max({row[2] for row in rows}, key=lambda ends: sum(row[1] for row in rows if row[2] == ends))
        tcp.extend((time, size, time, False) for time, size, ends in rows if ends == data)

    def kbps(rows, since, until):
        return sum(row[1] for row in rows if row[2] is not None and since <= row[2] < until) * 8e-3 / (until - since)

    frozen, found = freezes(f"{folder}/call0.received", zero), {}
    for window, (since, until) in situation["windows"].items():
        own = [row for row in calls[0] if since <= row[0] < until]
        waits = sorted(1e3 * (row[2] - row[0]) for row in own if row[2] is not None)
        media = kbps(calls[0], since, until)
        found[window] = numbers = {"media_kbps": media}
        if tcp:
            numbers["tcp_kbps"] = kbps(tcp, since, until)
        if len(calls) > 1 and (other := kbps(calls[1], since, until)) > 0:
            numbers |= {"sum_kbps": media + other, "ratio": media / other}
        if waits:
            numbers |= {"wait_p50_ms": at(0.5, waits), "wait_p95_ms": at(0.95, waits), "loss": 1 - len(waits) / len(own)}
        count = [max(n for time, n in frozen if time < moment) for moment in (since, until)]
        numbers["freezes"] = count[1] - count[0]
        tenths = range(10, 10 * int(situation["duration_s"]), 2)
        reached = (n / 10 for n in tenths if kbps(calls[0], n / 10 - 1, n / 10) >= 0.9 * media)
        numbers["ramp_s"] = next(reached, math.nan)
    for (_, before), (second, after) in zip(situation["rate"], situation["rate"][1:]):
        numbers = found.setdefault(f"{second:.1f}".removesuffix(".0"), {})
        numbers["after_10s_kbps"] = kbps(calls[0], second + 9, second + 10)
        late = [row for row in calls[0] if second <= row[0] < second + 20 and row[2] is not None]
        if after < before and late:
            peak = max(range(len(late)), key=lambda n: late[n][2] - late[n][0])
            drained = (row[0] for row in late[peak:] if row[2] - row[0] < 0.1)
            numbers["drained_s"] = next(drained, math.nan) - second
    return found, connects, [start(f"tcp{n}") - zero for n in range(len(situation["tcp"]))]


def bounds(situation, window, what, measured):
    """What a simulated number may be, or nothing where none is asked for."""
    mean = statistics.mean(measured)
    is_short = situation["queue"].startswith("bfifo limit ")
    is_short = is_short and 8 * int(situation["queue"].split()[2]) / situation["rate"][0][1] < SHORT_MS
    is_lossy = any(share for _, share in situation["loss"])
    since, until = situation["windows"].get(window, (0, 0))
    beside = any(tcp["start"] < until - 1 and tcp["start"] + tcp["dur"] > since + 1 for tcp in situation["tcp"])
    is_after = bool(situation["tcp"]) and not beside
    factor = 1.5 if beside else 1.3 if is_lossy else 1.2 if is_after else 1.1 if is_short else 1.08
    wait = max(10 if beside else 6, 0.1 * mean)
    match what:
        case "media_kbps":
            return mean / factor, mean * factor
        case "tcp_kbps" if beside:
            factor = 1.35 if is_short else 1.2
            return mean / factor, mean * factor
        case "sum_kbps":
            return 0.95 * mean, 1.05 * mean
        case "ratio":
            return 0.9, max(1.9, *measured)
        case "wait_p50_ms":
            return max(0, mean - wait), mean + wait
        case "wait_p95_ms":
            return max(0, mean - 20), mean + 20
        case "loss":
            return (0.4 * mean if mean > 0.004 else 0), max(0.002, 2.5 * mean)
        case "freezes":
            return max(0, min(mean - 6, mean / 2.5)), max(mean + 6, 2.5 * mean)
        case "ramp_s" if window == "steady" and not is_lossy:
            return mean - 1, mean + 1
        case "after_10s_kbps":
            return mean / 1.5, mean * 1.5
        case "drained_s":
            return mean - 1.5, mean + 1.5
    return None


def measured(situation, folders):
    runs = [read(situation, folder) for folder in folders]
    rows = []
    for window, numbers in runs[0][0].items():
        for what in numbers:
            values = [run[0].get(window, {}).get(what, math.nan) for run in runs]
            values = [round(value, 4) for value in values if math.isfinite(value)]
            allowed = bounds(situation, window, what, values) if values else None
            if allowed:
                least, most = (round(bound, 4) for bound in allowed)
                rows.append({"what": what, "window": window, "measured": values, "least": least, "most": most})
    calls = [
        call | {"kind": "chromium", "connects_s": round(statistics.mean(run[1][n] for run in runs), 3)}
        for n, call in enumerate(situation["calls"])
    ]
    tcp = [t | {"start": round(statistics.mean(run[2][n] for run in runs), 2)} for n, t in enumerate(situation["tcp"])]
    return situation | {"calls": calls, "tcp": tcp, "repeats": len(runs), "rows": rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("situations")
    parser.add_argument("results")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--film", required=True)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--at-once", type=int, default=1)
    parser.add_argument("--program", default=os.path.join(HERE, "../../../target/release/sojourn"))
    own = parser.parse_intermixed_args()
    with open(own.situations, encoding="utf-8") as file:
        wanted = [s for s in json.load(file)["situations"] if not own.names or s["id"] in own.names]
    work = tempfile.mkdtemp(prefix="calls-")
    print(f"captures: {work}", flush=True)

    def run(job):
        situation, repeat = job
        folder = f"{work}/{situation['id']}-{repeat}"
        os.mkdir(folder)
        with open(f"{folder}/study.toml", "w", encoding="utf-8") as file:
            file.write(study(situation, folder, os.path.abspath(own.film)))
        command = [own.program, "run", f"{folder}/study.toml", "--out", f"{folder}/results", "--no-report", "--quiet"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        print(situation["id"], repeat, "done" if done.returncode == 0 else done.stderr, flush=True)
        return done.returncode == 0 and folder

    jobs = [(situation, repeat) for repeat in range(own.repeats) for situation in wanted]
    with ThreadPoolExecutor(own.at_once) as pool:
        folders = list(zip(jobs, pool.map(run, jobs)))
    results = []
    for situation in wanted:
        good = [folder for (of, _), folder in folders if of is situation and folder]
        if good:
            results.append(measured(situation, good))
    with open(own.results, "w", encoding="utf-8") as file:
        json.dump({"meta": {}, "situations": results}, file, indent=1)


if __name__ == "__main__":
    main()
