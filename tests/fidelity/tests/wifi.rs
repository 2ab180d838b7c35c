//! Every radio cell, number by number, inside the tolerances; numbers outside are listed with the
//! mechanism found.

use sojourn_fidelity::wifi::{compare, situations};

const SEEDS: u64 = 6;

/// Situation, number, and the mechanism found.
const MISSED: &[(&str, &str, &str)] = &[
    ("B-mcs7-up10", "collision_probability", REQUEST),
    ("E-edca-ul-n4", "collision_probability", REQUEST),
    ("F-ax20-mcs5-down-q100", "mpdus_per_ppdu_up", ACKS),
    ("C-up-4rates-noagg", "sta0_up_mbps", TIMEOUT),
    ("D-be5-bk5-sat", "throughput_bk_mbps", TIMEOUT),
];

const REQUEST: &str = "After a collision of A-MPDUs the request for the BlockAck succeeds first, and a success that \
    ends a TXOP sets the window to its smallest size (802.11-2020 section 10.23.2.2, reason b). So the frames \
    themselves collide more often than Bianchi's: 0.40 and 0.26, where the formula without requests has 0.38 and \
    0.23 and 0.37 and 0.21 were measured. Eight of the ten cells of this kind agree. If the request left the window \
    as it is, eight cells would be outside, with throughputs 9 to 12 % too high.";

const TIMEOUT: &str = "Once the Ack has not come in time, ns-3 lets SIFS and AIFSN slots pass again before the first \
    slot of the function that sent. In the standard they are counted from the end of its frame (802.11-2020 section \
    10.23.2.4, item e), and are over by then. So in ns-3 who collides loses some five slots: to those of a lower \
    category, which lag by four, and with unequal rates to the sender of the shorter frame, whose timeout ends while \
    the longer one is on the air. With ns-3's rule both cells are inside, B-mcs7-up10 and E-edca-ul-n4 too, \
    and three numbers of D-vo-dn-be-up5 and D-vo5-both-be-dn are not.";

const ACKS: &str = "The queue of 100 packets is shorter than CUBIC's window, so the sender stalls after each loss \
    and acknowledgements come in bursts whose lengths follow from the two TCPs' recovery. Goodput, collisions \
    and the aggregates of data agree, and so do the acknowledgements of the cells whose queue never empties.";

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
    assert_eq!(compared, 143);
    // An A-MSDU of 7935 octets inside an A-MPDU, which the standard does not allow.
    assert_eq!(refused, ["B-mcs7-amsdu7935"]);
    let mut entries = MISSED.iter().zip(missed);
    if let Some(((id, what, _), _)) = entries.find(|(_, is_missed)| !is_missed) {
        panic!("{id}, {what}: inside its tolerance, and listed as missed");
    }
}
