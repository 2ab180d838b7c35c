//! Every call, number by number, inside the tolerances; numbers outside are listed with the mechanism
//! found, or with what was ruled out.

use sojourn_fidelity::webrtc::{compare, model_of, situations};

const SEEDS: u64 = 10;

/// Situation, number, and the mechanism found.
const MISSED: &[(&str, &str, &str)] = &[
    ("chr-control-20M", "media_kbps steady", ENCODER),
    ("chr-fix-500-q50", "ramp_s steady", START),
    ("chr-p003-bbr-40M", "media_kbps alone", SLOW),
    ("chr-step-1000-q300", "after_10s_kbps 40", RISE),
    ("chr-step-2000-q100", "loss c2", GROUPS),
    ("chr-tcp3p-bbr-4M-1bdp", "loss alone1", GROUPS),
    ("chr-tcp3p-bbr-4M-1bdp", "freezes tcp", STORM),
    ("chr-tcp3p-bbr-4M-4bdp", "wait_p95_ms alone1", GROUPS),
    ("chr-tcp3p-cubic-4M-1bdp", "loss alone1", GROUPS),
    ("chr-tcp3p-cubic-4M-4bdp", "media_kbps tcp", BESIDE),
    ("chr-tcp3p-cubic-4M-4bdp", "media_kbps alone2", BESIDE),
    ("chr-tcpfirst-bbr-4M-4bdp", "media_kbps both", BESIDE),
    ("chr-tcpfirst-cubic-4M-1bdp", "media_kbps both", BESIDE),
    ("chr-tcpfirst-cubic-4M-4bdp", "media_kbps both", BESIDE),
    ("chr-tcpfirst-cubic-4M-4bdp", "media_kbps media_end", BESIDE),
    ("aio-control-20M", "freezes steady", AIO_HOST),
    ("aio-loss-5", "media_kbps steady", AIO_LOSS),
    ("aio-loss-5", "freezes steady", AIO_LOSS),
    ("aio-p003-bbr-40M-30fps", "freezes alone", AIO_HOST),
    ("aio-p003-bbr-40M-30fps", "freezes tcp", AIO_HOST),
    ("aio-p003-bbr-40M-30fps", "freezes tcp_loss1", AIO_HOST),
    ("aio-tcp3p-bbr-4M-1bdp", "freezes alone1", AIO_HOST),
    ("aio-tcp3p-bbr-4M-1bdp", "tcp_kbps tcp", AIO_STORM),
    ("aio-tcp3p-bbr-4M-1bdp", "freezes tcp", AIO_STORM),
    ("aio-tcp3p-bbr-4M-4bdp", "media_kbps tcp", AIO_STORM),
    ("aio-tcp3p-bbr-4M-4bdp", "wait_p50_ms tcp", AIO_STORM),
    ("aio-tcp3p-bbr-4M-4bdp", "freezes tcp", AIO_STORM),
    ("aio-tcp3p-cubic-4M-1bdp", "freezes alone1", AIO_HOST),
];

const ENCODER: &str = "The machine could not encode 6 Mbit/s there. The runs on the quiet machine have 6.43 \
    Mbit/s at 10 Mbit/s, and simulation 6.42.";

const GROUPS: &str = "At 4 Mbit/s over-use is found at 43 ms of wait (95th percentile), where 45 to 78 were measured in \
    four calls over that link; so the rate is 5 % lower, and behind short queues less is lost. libwebrtc joins packets of equal times of leaving to the \
    group before, and its times count milliseconds, so some of its groups are longer than here, where \
    no two packets leave at the same instant. With milliseconds and 60 to 100 us from packet to \
    packet of a burst the wait is 43 to 48 ms and the rate 2 to 3 % higher, but how far apart they left was not measured.";

const START: &str = "Chromium's first seconds are its camera's and its first key frame's; here frames begin \
    with the call, and the key frame has RFC 8593's size whatever the rate.";

const SLOW: &str = "One of the two measured calls had no probe result at all and climbed for 20 s, which is \
    the machine's doing; the other one has 2640 kbit/s.";

const RISE: &str = "How soon the slow rise near the old capacity ends decides: 1036 and 1122 kbit/s in one \
    case and 2130 and 4916 in another were measured. Here the first acknowledged rate above \
    three deviations ends it.";

const STORM: &str = "When BBR began, measured calls fell into a storm of repairs that lasted five seconds: a third to two thirds of \
    what they sent was dropped and sent again, video waited behind repairs in the pacer for one to two seconds, and then the \
    pacer sent two to three times the target, as it does when packets wait for so long; 4 to 9 frames came in a second. \
    In simulation the first losses are repaired within a second, and the target falls sooner. Apart from storms measured calls hardly froze, beside BBR and beside CUBIC.";

const BESIDE: &str = "Not explained yet. How fast a call gives way to TCP in a queue that TCP keeps full, and \
    how far it falls, decides where it is after a minute.";

const AIO_HOST: &str = "Freezes without a lost packet, with frames that came at 26 to 28 a second: aiortc's \
    encoder and decoder are Python's, on a machine that was busy.";

const AIO_LOSS: &str = "Repeats of this situation differ by a factor of 2.5 (1544 and 629 kbit/s): one call's estimate \
    fell each second from 1136 to 500 kbit/s, the other's stood still at 1450 for 45 s, which \
    of its rules only those for over-use and under-use do. A lossy link of 20 Mbit/s has \
    neither; here nothing does either.";

const AIO_STORM: &str = "Measured calls lose 60 to 80 % of what they send, nearly all of it copies, and hold the link \
    against TCP. The storms come about here too, beside CUBIC as long as measured; beside \
    BBR they end sooner, and behind 160 ms of FIFO, where the queue grows slowly enough to \
    be found as over-use, hardly begin. Measured ones sent up to 70 frames in a second there: \
    the sender's process stood still and made up for it, and such bursts overflow any queue.";

#[test]
fn simulation_does_what_measured_calls_did() {
    let mut wrong = Vec::new();
    let mut missed = vec![false; MISSED.len()];
    let mut compared = 0;
    for situation in situations() {
        for row in compare(&situation, SEEDS, &model_of) {
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
    assert!(compared >= 271, "{compared} numbers");
    let mut entries = MISSED.iter().zip(missed);
    if let Some(((id, what, _), _)) = entries.find(|(_, is_missed)| !is_missed) {
        panic!("{id}, {what}: inside its bounds, and listed as missed");
    }
}
