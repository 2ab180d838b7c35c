//! Every radio cell, number by number, inside the tolerances; numbers outside are listed with the
//! mechanism found.

use sojourn_fidelity::wifi::{compare, situations};

const SEEDS: u64 = 24;

/// Situation, number, and the mechanism found.
const MISSED: &[(&str, &str, &str)] = &[
    ("E-edca-ul-n3-rts", "sta0_up_mbps", CHANCE),
    ("F-ax20-mcs5-down-q100", "mpdus_per_ppdu_up", ACKS),
    ("F-ax20-mcs5-up-q100", "collision_probability", UP),
    ("C-tcp-15-7-3", "sta0_down_airtime_share", FIRST),
    ("C-tcp-15-7-3", "mpdus_per_ppdu_up", FIRST),
    ("D-ax-vo-up-be-up3", "ping_rtt_mean_ms", REPLY),
    ("D-ax-vo-up-be-up3", "ping_rtt_p50_ms", REPLY),
    ("D-ax-vo-up-be-up3", "ping_rtt_p95_ms", REPLY),
    ("D-ax-vo-up-be-up3", "ping_rtt_p99_ms", REPLY),
    ("E-mu-ul-n4-40M", "throughput_mbps", RESERVED),
    ("E-mu-ul-n4-t5440", "collision_probability", RESERVED),
    ("E-mu-ul-n4-t5440", "mpdus_per_ppdu_up", RESERVED),
    ("E-mu-ul-n9-t2528-nobsrp", "throughput_mbps", KNOWN),
    ("E-mu-ul-n9-t2528-nobsrp", "mpdus_per_ppdu_up", KNOWN),
    ("F-n-mcs15-down-q1000", "mpdus_per_ppdu_up", FEWER),
    ("F-n-mcs7-up-q100", "mpdus_per_ppdu_up", SHORT),
];

const CHANCE: &str = "Three stations that differ in nothing share 104.1 Mbit/s here and there, 34.7 each. The first \
    of them has 34.5 here. It had 37.0 there, and the second 32.5, by chance.";

const ACKS: &str = "The queue of 100 packets is shorter than CUBIC's window, so the sender stalls after each loss \
    and acknowledgements come in bursts whose lengths follow from the two TCPs' recovery. Goodput, collisions \
    and the aggregates of data agree, and so do the acknowledgements of the cells whose queue never empties.";

const UP: &str = "Chance: with ten other seeds 6.9 % of the transmissions collide there, too (here 6.8 %), at 52.5 Mbit/s (52.7). The three of the \
    file have 4.8 % at 49.5 ± 6.3.";

const FIRST: &str = "The flow that starts first has 18 % of the air there (ten seeds) and 10 % here, the others more: which CUBIC is ahead \
    after slow start decides for seconds, and the fastest station's acknowledgements have the longest aggregates.";

const REPLY: &str = "Echoes return by BE from the station that has the voice, past three that are saturated. The tail is what its window does to a reply \
    that collides again and again. With the voice in the other direction (D-ax-vo-dn-be-up3) all four agree, so something of VO's \
    success shortens BE's wait in the same station there; not found.";

const RESERVED: &str = "With TXOP limits a PPDU reserves the rest of its TXOP, here for all but its two ends. In ns-3 some of the others contend as if \
    they had not read it: of 537 such PPDUs 32 were followed by a collision of a bystander with the access point or the holder in the same slot, which can't be where all others come 12 us later. \
    Why these don't wait was not found.";

const KNOWN: &str = "Without BSRP ns-3's access point knows a queue from the last frame that it received of it, here as it is at that moment.";

const SHORT: &str = "The queue of 100 packets is shorter than CUBIC's window, so what the station has to put into an aggregate follows from the \
    two TCPs' recovery: 20.6 here, and 22.3 there in ten seeds (23.1 in the first three). Goodput and collisions agree.";

const FEWER: &str = "Two acknowledgements in thirty fewer are in an aggregate here. Goodput, collisions and data's aggregates agree; not found.";

#[test]
fn simulation_does_what_another_implementation_did() {
    let mut wrong = Vec::new();
    let mut missed = vec![false; MISSED.len()];
    let (mut compared, mut refused) = (0, Vec::new());
    for situation in situations() {
        let Ok(rows) = compare(&situation, SEEDS) else {
            refused.push(situation.id);
            continue;
        };
        compared += 1;
        for row in rows.iter().filter(|row| !row.is_inside()) {
            let listed =
                MISSED.iter().position(|(id, what, _)| *id == situation.id && *what == row.what);
            match listed {
                Some(entry) => missed[entry] = true,
                None => wrong.push(format!("{}: {row}", situation.id)),
            }
        }
    }
    assert!(wrong.is_empty(), "outside of their tolerances:\n{}", wrong.join("\n"));
    assert_eq!(compared, 210);
    // An A-MSDU of 7935 octets inside an A-MPDU, which the standard does not allow.
    assert_eq!(refused, ["B-mcs7-amsdu7935"]);
    let mut entries = MISSED.iter().zip(missed);
    if let Some(((id, what, _), _)) = entries.find(|(_, is_missed)| !is_missed) {
        panic!("{id}, {what}: inside its tolerance, and listed as missed");
    }
}
