//! Every situation, number by number, inside the bounds; what is not is listed with its mechanism.

use sojourn_fidelity::{compare, simulate, situations};

const SEEDS: u64 = 9;

/// Situation, number, and what was found of it. `*` stands for every number of the situation.
const MISSED: &[(&str, &str, &str)] = &[
    (
        "native/100M_20ms_fifo1bdp166_10bbr1_10cubic",
        "goodput",
        "The measured sum, 96.13 Mbit/s, is more than the link can carry (1448/1514 of 100): it is \
         taken from socket statistics read at 4 Hz. By the packets that left the bottleneck it was \
         95.5; simulation has 94.5, because the ten BBR flows' ProbeRTT coincide.",
    ),
    ("native/10M_20ms_fifo50_reno_vs_bbr1", "bbr1 goodput", DRIFT),
    ("native/10M_20ms_fifo50_reno_vs_bbr1", "reno goodput", DRIFT),
    ("native/40M_20ms_fifo1000_loss1pct_bbr1_bulk_plus_udp1M60fps", "udp owd p50", LOSS_QUEUE),
    ("uml/40M_20ms_fifo1000_loss1pct_bbr1_bulk_plus_udp1M60fps", "udp owd p50", LOSS_QUEUE),
    (
        "uml/40M_20ms_fifo1000_loss1pct_cubic_bulk_plus_udp1M60fps",
        "goodput",
        "2 % low, where random loss alone moves a run by 4 %: CUBIC's window of ten segments is at \
         the edge where a lost retransmission costs a timeout. Mechanism not found.",
    ),
    ("uml/10M_100ms_pfifo84_cubic_vs_bbr3", "bbr3 goodput", DRIFT),
    ("uml/10M_100ms_pfifo84_cubic_vs_bbr3", "cubic goodput", DRIFT),
    (
        "uml/10M_20ms_fq_codel_bbr3_alone",
        "bbr3 srtt p50",
        "After a loss some acknowledgements fall out of step with bursts for a few round trips, and \
         the bandwidth filter keeps the rate of that moment (9.8 instead of 9.6 Mbit/s) for two \
         cycles; in the kernel this happens too (p95 9.86), but less often.",
    ),
    ("uml/10M_20ms_pfifo500_cubic_vs_bbr3", "bbr3 goodput", DRIFT),
    ("uml/10M_20ms_pfifo500_cubic_vs_bbr3", "bbr3 retransmits", DRIFT),
    ("uml/10M_20ms_pfifo500_cubic_vs_bbr3", "cubic goodput", DRIFT),
    (
        "uml/10M_20ms_pfifo50_bbr3_vs_bbr3",
        "bbr3 retransmits",
        "One segment in one of nine runs, in Startup, where the three measured runs lost none.",
    ),
    ("uml/40M_0.2ms_fifo1000_bbr3_bulk_plus_udp1M60fps", "*", TWO_STATES),
    ("uml/40M_1ms_fifo1000_bbr3_bulk_plus_udp1M60fps", "*", TWO_STATES),
    (
        "uml/40M_0.2ms_fifo1000_gso_on_8bbr3_plus_udp1M60fps",
        "*",
        "Eight flows near zero distance with offloaded bursts of up to 64 kB: goodput and \
         retransmissions agree, the queue is a third shorter. How bursts of several senders merge in \
         the receiver's offload is not modelled.",
    ),
];

const DRIFT: &str = "Shares drift from one ProbeRTT to the next by how much of the queue the other \
    flow leaves at that moment; single runs, measured and simulated, differ by a factor of two. The \
    like situations of the other platforms are met.";

const LOSS_QUEUE: &str = "With 1 % loss BBRv1's queue depends on how recovery and ProbeBW phases \
    meet: 1.8 ms on the native kernel and 3.8 ms on the user-mode one; simulation lies between them.";

const TWO_STATES: &str = "Two states: the smallest round trip of a ProbeRTT falls on either side of \
    1.024 ms and decides for ten seconds between bursts of 14 and 25 segments, and so between 12 and \
    22 ms. Simulation has the same states at the same values, and is a little more often in the second.";

#[test]
fn simulation_does_what_linux_did() {
    let mut wrong = Vec::new();
    for situation in situations() {
        let simulated = simulate(&situation, SEEDS)
            .unwrap_or_else(|needs| panic!("{} needs {}", situation.id, needs.0));
        for row in compare(&situation, &simulated).rows {
            let is_listed = MISSED
                .iter()
                .any(|(id, what, _)| *id == situation.id && (*what == "*" || *what == row.what));
            if !row.is_inside() && !is_listed {
                wrong.push(format!("{}: {row}", situation.id));
            }
        }
    }
    assert!(wrong.is_empty(), "outside of their bounds:\n{}", wrong.join("\n"));
}

#[test]
fn every_miss_names_a_situation_and_a_reason() {
    let situations = situations();
    for (id, _, why) in MISSED {
        assert!(situations.iter().any(|situation| situation.id == *id), "{id} is not there");
        assert!(why.len() > 20, "{id} gives no reason");
    }
}
