//! Every call, number by number, inside the tolerances; numbers outside are listed with the mechanism
//! found, or with what was ruled out.

use sojourn_fidelity::webrtc::{compare, model_of, situations};

const SEEDS: u64 = 20;

/// Situation, number, and the mechanism found.
const MISSED: &[(&str, &str, &str)] = &[
    ("chr-control-20M", "media_kbps steady", ENCODER),
    ("chr-p003-bbr-40M", "media_kbps alone", SLOW),
    ("chr-tcp3p-bbr-4M-1bdp", "freezes tcp", STORM),
    ("chr-tcp3p-cubic-4M-4bdp", "media_kbps tcp", BESIDE),
    ("chr-tcp3p-cubic-4M-4bdp", "media_kbps alone2", BESIDE),
    ("chr-tcpfirst-bbr-4M-1bdp", "media_kbps both", NEAR),
    ("chr-tcpfirst-bbr-4M-4bdp", "media_kbps both", BESIDE_BBR),
    ("chr-tcpfirst-cubic-4M-4bdp", "media_kbps both", PROBES),
    ("chr-tcpfirst-cubic-4M-4bdp", "media_kbps media_end", PROBES),
    ("aio-control-20M", "freezes steady", AIO_HOST),
    ("aio-loss-5", "media_kbps steady", AIO_LOSS),
    ("aio-loss-5", "freezes steady", AIO_LOSS),
    ("aio-p003-bbr-40M-30fps", "freezes alone", AIO_HOST),
    ("aio-p003-bbr-40M-30fps", "freezes tcp", AIO_HOST),
    ("aio-p003-bbr-40M-30fps", "freezes tcp_loss1", AIO_HOST),
    ("aio-tcp3p-bbr-4M-1bdp", "freezes alone1", AIO_HOST),
    ("aio-tcp3p-bbr-4M-1bdp", "tcp_kbps tcp", AIO_STORM),
    ("aio-tcp3p-bbr-4M-1bdp", "freezes tcp", AIO_STORM),
    ("aio-tcp3p-bbr-4M-4bdp", "wait_p50_ms tcp", AIO_STORM),
    ("aio-tcp3p-bbr-4M-4bdp", "freezes tcp", AIO_STORM),
    ("aio-tcp3p-cubic-4M-1bdp", "freezes alone1", AIO_HOST),
    ("aio-tcp3p-cubic-4M-1bdp", "tcp_kbps tcp", AIO_STORM),
    ("chr-fec-fix-2000-q300", "wait_p95_ms steady", LATER),
    ("chr-fec-fix-2000-q300", "ramp_s steady", NEAR),
    ("chr-fec-loss-5", "media_kbps steady", NEAR),
    ("chr-fix-4000-q300", "wait_p95_ms steady", LATER),
    ("chr-loss-20", "media_kbps steady", NEAR),
    ("chr-outage", "wait_p95_ms b", LATER),
    ("chr-step-down-3-0.4-q500", "loss a", ONE_OF_THREE),
    ("chr-step-down-3-0.4-q500", "loss c", NEAR),
    ("chr-tcp-bbr-2M-2bdp", "loss alone1", LATER),
    ("chr-tcp-bbr-4M-fq_codel", "loss alone1", CODEL),
    ("chr-tcp-cubic-2M-2bdp", "loss alone2", NEAR),
    ("chr-tcp-cubic-4M-codel", "loss alone1", CODEL),
    ("chr-tcp-cubic-4M-codel", "tcp_kbps tcp", CODEL),
    ("chr-tcp-cubic-4M-codel", "loss alone2", CODEL),
    ("chr-tcp-cubic-4M-fq_codel", "wait_p95_ms alone1", ONE_OF_THREE),
    ("chr-tcp-cubic-4M-fq_codel", "loss alone2", NEAR),
    ("chr-tcp-reno-4M-2bdp", "loss tcp", NEAR),
    ("chr-tcpfirst-bbr-10M-4bdp", "media_kbps media_end", NEAR),
    ("chr-tcpfirst-cubic-4M-2bdp", "loss both", NEAR),
    ("chr-two-2000-q50", "media_kbps two", NEAR),
];

const NEAR: &str = "Near the bound, and not looked into.";

const ONE_OF_THREE: &str = "One of the three measured calls lost 7 % there, or waited for 125 ms, and the other two 0 and 1 %, 31 and 34 ms.";

const LATER: &str = "Measured calls fall later here than those of webrtc.json behind such queues did (54, 55 and 64 ms at 2 Mbit/s), and \
    than simulated ones. Whether it is their film or their machine, on which three ran at once, is not known.";

const CODEL: &str = "From 3.75 Mbit/s on CoDel drops a packet or two a second of a simulated call alone, and of measured ones none below 3.95: sizes of simulated frames vary more from one to the \
    next (docs/models/media-sources.md, Noise). Beside CUBIC the call then yields more.";

const ENCODER: &str = "The machine could not encode 6 Mbit/s there. The runs on the quiet machine have 6.43 \
    Mbit/s at 10 Mbit/s, and simulation 6.42.";

const SLOW: &str = "One of the two measured calls had no probe result at all and climbed for 20 s, which is \
    the machine's doing; the other one has 2640 kbit/s.";

const STORM: &str = "Near the bound. When BBR began, both measured calls fell into a storm of repairs that lasted five seconds: a third to two thirds of \
    what they sent was dropped and sent again, video waited behind repairs in the pacer for one to two seconds, and then the \
    pacer sent two to three times the target, as it does when packets wait for so long; 4 to 9 frames came in a second. \
    Simulated storms are as long and as strong, but only two of five calls fall into one. In the six seconds from BBR's start 60 calls of models 24 lost 33 % of their packets and BBR 11 % \
    (measured 37 and 52 %, 14 and 10 %).";

const BESIDE: &str = "Near the bound. Calls come out of CUBIC's minute in 4 BDP with 230 to 460 kbit/s (measured 230 and 255), and then rise by 8 % a second as the measured ones do, \
    so that they are at 4 Mbit/s some seconds sooner.";

const BESIDE_BBR: &str = "Simulated calls fall once in ten seconds, when BBR has found its least round trip and fills the queue \
    again, and end at 450 to 570 kbit/s; measured ones fell as often for that, and once or twice more in between: where the film begins anew, and where BBR's queue grew by 20 to 30 ms. Its window was 42 to 48 segments there, 38 to 40 here: acknowledgements came \
    in clusters, as on a machine that is busy.";

const PROBES: &str = "The first probes decide where the call is for a minute. Measured ones found 1.9 and 2.2 Mbit/s while CUBIC was about to lose packets or had just \
    lost some; simulated ones find 0.7 to 2.7. All fall for the rest of the minute: those that begin with 2 Mbit/s to 0.9 to 1.2 after 20 to 25 s (1.0 and 1.2) and to 0.4 to 0.5 after 50 s (0.5).";

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
    the sender's process stood still and made up for it, and such bursts overflow any queue. In 1 BDP they leave CUBIC \
    108 kbit/s here, 535 and 775 there.";

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
    assert!(compared >= 710, "{compared} numbers");
    let mut entries = MISSED.iter().zip(missed);
    if let Some(((id, what, _), _)) = entries.find(|(_, is_missed)| !is_missed) {
        panic!("{id}, {what}: inside its bounds, and listed as missed");
    }
}
