//! Every call, number by number, inside the tolerances; numbers outside are listed with the mechanism
//! found, or with what was ruled out.

use sojourn_fidelity::webrtc::{compare, situations};

const SEEDS: u64 = 3;

/// Situation, number, and the mechanism found.
const MISSED: &[(&str, &str, &str)] = &[
    ("chr-control-20M", "media_kbps steady", ENCODER),
    ("chr-fix-2000-q300", "wait_p95_ms steady", GROUPS),
    ("chr-fix-2000-q50", "ramp_s steady", START),
    ("chr-fix-500-q50", "media_kbps steady", SMALL),
    ("chr-fix-500-q50", "ramp_s steady", START),
    ("chr-p003-bbr-40M", "media_kbps alone", SLOW),
    ("chr-step-1000-q300", "after_10s_kbps 40", RISE),
    ("chr-step-1000-q300", "drained_s 60", DRAIN),
    ("chr-step-2000-q100", "wait_p50_ms c2", GROUPS),
    ("chr-step-2000-q100", "wait_p95_ms c2", GROUPS),
    ("chr-step-2000-q100", "loss c2", GROUPS),
    ("chr-step-2000-q100", "media_kbps c2b", RISE),
    ("chr-step-2000-q100", "wait_p95_ms c2b", GROUPS),
    ("chr-step-2000-q100", "loss c2b", GROUPS),
    ("chr-tcp3p-bbr-4M-1bdp", "freezes tcp", FREEZES),
    ("chr-tcp3p-bbr-4M-4bdp", "wait_p50_ms alone1", GROUPS),
    ("chr-tcp3p-bbr-4M-4bdp", "wait_p95_ms alone1", GROUPS),
    ("chr-tcp3p-bbr-4M-4bdp", "loss alone1", GROUPS),
    ("chr-tcp3p-cubic-10M-1bdp", "loss tcp", LOSS),
    ("chr-tcp3p-cubic-10M-fq_codel", "loss tcp", LOSS),
    ("chr-tcp3p-cubic-4M-4bdp", "wait_p50_ms alone1", GROUPS),
    ("chr-tcp3p-cubic-4M-4bdp", "wait_p95_ms alone1", GROUPS),
    ("chr-tcp3p-cubic-4M-4bdp", "loss alone1", GROUPS),
    ("chr-tcp3p-cubic-4M-4bdp", "media_kbps tcp", BESIDE),
    ("chr-tcp3p-cubic-4M-4bdp", "media_kbps alone2", BESIDE),
    ("chr-tcpfirst-bbr-4M-1bdp", "media_kbps both", BESIDE),
    ("chr-tcpfirst-bbr-4M-1bdp", "media_kbps media_end", BESIDE),
    ("chr-tcpfirst-bbr-4M-4bdp", "media_kbps both", BESIDE),
];

const ENCODER: &str = "The machine could not encode 6 Mbit/s there. The runs on the quiet machine have 6.43 Mbit/s at \
    10 Mbit/s, and simulation 6.42.";

const START: &str = "Chromium's first seconds are its camera's and its first key frame's; here frames begin with the call, and \
    the key frame has RFC 8593's size whatever the rate.";

const SLOW: &str = "One of the two measured calls had no probe result at all and climbed for 20 s, which is the \
    machine's doing; the other one has 2640 kbit/s.";

const SMALL: &str = "50 ms at 500 kbit/s are three packets, fewer than a frame has. How the encoder's sizes vary decides what is lost, and \
    here they vary as RFC 8593's.";

const GROUPS: &str = "From 2 Mbit/s on, packets behind each other in the queue come less than 5 ms apart, so \
    frames join one group of up to 100 ms, and the trend over 20 groups is over 2 s: over-use is found at 105 to 200 ms of \
    wait, where 65 to 88 were measured. Without that rule (burst_gap=0ms) it is found earlier than measured (38 ms at 4 \
    Mbit/s). A receiver whose clock readings vary by some milliseconds splits such groups, and then the \
    numbers lie between.";

const RISE: &str = "How soon the slow rise near the old capacity ends decides: 1036 and 1122 kbit/s in one case and 2130 and \
    4916 in another were measured. Here the first acknowledged rate above three deviations ends it.";

const DRAIN: &str = "Not explained yet: a queue of 514 ms is below 100 ms after 5.3 s and not after 4. In the measured \
    run the target fell to 495 kbit/s within 1.1 s of the step.";

const FREEZES: &str = "Not explained yet: rates, waits and losses agree, so it is how soon a lost packet is there again and how long the \
    playout waits for it.";

const LOSS: &str = "Not explained yet: the call loses 3 to 4 % where 1 to 2 % were measured, or 2 % and not 0.3 %, at rates that agree.";

const BESIDE: &str = "Not explained yet. The call holds more than measured in a queue that TCP keeps full, and comes back from more; \
    with burst_gap=0ms, too, so the groups of packets are not the reason.";

#[test]
fn simulation_does_what_chromium_did() {
    let mut wrong = Vec::new();
    let mut missed = vec![false; MISSED.len()];
    let mut compared = 0;
    for situation in situations() {
        for row in compare(&situation, SEEDS) {
            compared += 1;
            if row.is_inside() {
                continue;
            }
            let listed =
                MISSED.iter().position(|(id, what, _)| *id == situation.id && *what == row.what);
            match listed {
                Some(entry) => missed[entry] = true,
                None => wrong.push(format!("{}: {row}", situation.id)),
            }
        }
    }
    assert!(wrong.is_empty(), "outside of their bounds:\n{}", wrong.join("\n"));
    assert!(compared >= 195, "{compared} numbers");
    let mut entries = MISSED.iter().zip(missed);
    if let Some(((id, what, _), _)) = entries.find(|(_, is_missed)| !is_missed) {
        panic!("{id}, {what}: inside its bounds, and listed as missed");
    }
}
