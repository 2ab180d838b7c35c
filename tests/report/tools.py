"""Opens exports in the tools they are for: tools.py FOLDER_OF_PAGES FOLDER_OF_CAPTURE"""

import csv
import gzip
import json
import subprocess
import sys
from pathlib import Path

pages, capture = Path(sys.argv[1]), Path(sys.argv[2])
failed = 0


def test(sentence):
    def run(body):
        global failed
        try:
            told = body()
            print("ok   ", sentence, f"({told})" if told else "")
        except Exception as error:  # noqa: BLE001 - every failure is told, none stops the others
            failed += 1
            print("FAIL ", sentence, "\n", repr(error))

    return run


def tshark(file, *arguments):
    command = ["tshark", "-r", str(file), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def counts():
    return json.loads((capture / "counts.json").read_text())


# At a sender nothing is out of order, so whatever tshark calls a segment of data it saw before is
# one that was sent again, under whichever of its names.
AGAIN = (
    "tcp.analysis.retransmission || tcp.analysis.fast_retransmission || "
    "tcp.analysis.spurious_retransmission || tcp.analysis.out_of_order"
)


@test("tshark finds as many retransmissions of each flow as the simulator counted")
def _():
    told = []
    for at, flow in enumerate(counts()):
        port = 40000 + at
        found = len(tshark(capture / "sender.pcapng", "-Y", f"tcp.srcport == {port} && ({AGAIN})"))
        assert found == flow["retransmits"], (flow, found)
        told.append(f"{flow['name']}: {found}")
    assert sum(flow["retransmits"] for flow in counts()) > 0, "nothing was sent again"
    return ", ".join(told)


@test("of a capture at every tap, each interface alone gives the same retransmissions")
def _():
    # Wireshark follows a connection over all interfaces, so one has to be taken out first.
    for at, flow in enumerate(counts()):
        one = capture / "one.pcapng"
        name = f"sender of {flow['name']}"
        tshark(capture / "all.pcapng", "-Y", f'frame.interface_name == "{name}"', "-w", str(one))
        found = len(tshark(one, "-Y", f"tcp.srcport == {40000 + at} && ({AGAIN})"))
        assert found == flow["retransmits"], (flow, found)


@test("tshark counts as many data packets and bytes as the simulator")
def _():
    for at, flow in enumerate(counts()):
        lines = tshark(
            capture / "sender.pcapng", "-Y", f"tcp.srcport == {40000 + at} && tcp.len > 0",
            "-T", "fields", "-e", "ip.len",
        )
        assert len(lines) == flow["sent_packets"], (flow, len(lines))
        assert sum(map(int, lines)) == flow["sent_bytes"], (flow, sum(map(int, lines)))


@test("every packet that a queue dropped says so in a comment")
def _():
    lines = tshark(
        capture / "sender.pcapng", "-Y", 'frame.comment contains "dropped"', "-T", "fields",
        "-e", "frame.comment", "-e", "tcp.srcport",
    )
    dropped = sum(flow["dropped_packets"] for flow in counts())
    assert len(lines) == dropped > 0, (len(lines), dropped)
    return lines[0].split("\t")[0]


@test("checksums are good and nothing is malformed")
def _():
    for name in ["sender.pcapng", "all.pcapng"]:
        bad = tshark(
            capture / name, "-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE",
            "-Y", "_ws.malformed || ip.checksum.status == 0 || tcp.checksum.status == 0",
        )
        assert bad == [], bad[:3]


@test("timestamps are nanoseconds in order, and every tap point is an interface")
def _():
    lines = tshark(
        capture / "all.pcapng", "-T", "fields", "-e", "frame.time_relative", "-e", "frame.interface_name",
    )
    times = [float(line.split("\t")[0]) for line in lines]
    assert times == sorted(times)
    assert any(line.split("\t")[0][-3:] != "000" for line in lines)
    names = sorted({line.split("\t")[1] for line in lines})
    assert len(names) >= 6, names
    return f"{len(lines)} packets at {len(names)} taps"


@test("selective acknowledgements name segments that were sent")
def _():
    lines = tshark(
        capture / "sender.pcapng", "-Y", "tcp.options.sack_le", "-T", "fields",
        "-e", "tcp.options.sack_le", "-e", "tcp.options.sack_re",
    )
    assert lines
    for line in lines:
        left, right = line.split("\t")
        for a, b in zip(left.split(","), right.split(","), strict=True):
            assert int(a) < int(b) and (int(b) - int(a)) % 1448 == 0, line


@test("flent loads and plots the export")
def _():
    value = json.loads(gzip.decompress((pages / "run.flent.gz").read_bytes()))
    assert value["version"] == 4
    for plot in ["totals", "ping_cdf"]:
        image = pages / f"flent-{plot}.png"
        image.unlink(missing_ok=True)
        done = subprocess.run(
            ["flent", "-i", str(pages / "run.flent.gz"), "-p", plot, "-o", str(image)],
            capture_output=True, text=True, check=False,
        )
        assert image.exists() and image.stat().st_size > 5000, done.stderr[-500:]
    table = subprocess.run(
        ["flent", "-i", str(pages / "run.flent.gz"), "-f", "summary"],
        capture_output=True, text=True, check=True,
    ).stdout
    assert "TCP download sum" in table and "Ping (ms) ICMP" in table, table
    return "totals, ping_cdf, summary"


@test("iperf3's JSON and the tables read back")
def _():
    iperf = json.loads((pages / "iperf3.json").read_text())
    assert len(iperf["intervals"]) == 60 and iperf["end"]["sum_sent"]["bytes"] > 0
    for name in ["runs.csv", "series.csv"]:
        with (pages / name).open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert rows and all(None not in row for row in rows)


@test("the link's log has what mm-throughput-graph reads")
def _():
    arrivals = departures = opportunities = drops = base = 0
    for line in (capture / "link.log").read_text().splitlines():
        if line.startswith("#"):
            base += "base timestamp" in line
            continue
        words = line.split()
        if words[1] == "+":
            arrivals += int(words[2])
        elif words[1] == "-":
            departures += int(words[2])
            assert int(words[3]) >= 0
        elif words[1] == "#":
            opportunities += int(words[2])
        elif words[1] == "d":
            drops += int(words[2])
        else:
            raise AssertionError(line)
    assert base == 1 and arrivals >= departures > 0 and drops > 0
    # Mahimahi counts IP bytes, and the link carries 14 bytes more of each packet.
    assert 0.8 < departures / opportunities <= 1.0, departures / opportunities
    return f"{departures / opportunities:.3f} of the opportunities used"


sys.exit(1 if failed else 0)
