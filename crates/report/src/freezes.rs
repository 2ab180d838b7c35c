//! Why a call's picture stood still, in words: what the frame that ended a freeze waited for, and which
//! packets were lost.

use sojourn_study::results::{Freeze, LostPacket};

use crate::number::number;

/// Where the time of a freeze went, in seconds; together it is the whole freeze.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Parts {
    /// Until the frame that ended it was captured: the sender had nothing to show before.
    pub(crate) nothing: f64,
    /// Until the last packet of that frame had left.
    pub(crate) sender: f64,
    /// Until all its packets were there, repeated ones among them.
    pub(crate) way: f64,
    /// Until it was shown.
    pub(crate) receiver: f64,
}

impl Parts {
    pub(crate) fn of(freeze: &Freeze) -> Self {
        let within = |at: f64| at.clamp(freeze.from_s, freeze.to_s);
        let captured = within(freeze.captured_s);
        let received = within(freeze.received_s.unwrap_or(freeze.to_s)).max(captured);
        // The last packet may be there before a repetition of another one.
        let sent = within(freeze.sent_s.unwrap_or(captured)).clamp(captured, received);
        Self {
            nothing: captured - freeze.from_s,
            sender: sent - captured,
            way: received - sent,
            receiver: freeze.to_s - received,
        }
    }
}

/// What made it, in a sentence.
pub(crate) fn cause(freeze: &Freeze) -> String {
    let parts = Parts::of(freeze);
    let longest = parts.nothing.max(parts.sender).max(parts.way).max(parts.receiver);
    let frame = freeze.frame;
    let mut text = if freeze.lost_packets > 0 && parts.way + parts.receiver >= longest {
        lost_words(freeze)
    } else if freeze.lost_packets > 0 && freeze.never_shown > 0 {
        format!(
            "{}; nothing could be shown before frame {frame}, which was captured {} after the last one was shown",
            what_was_lost(freeze),
            ms(parts.nothing)
        )
    } else if longest == parts.sender {
        format!("frame {frame} left the sender {} after it was captured", ms(parts.sender))
    } else if longest == parts.nothing {
        format!(
            "frame {frame} was captured only {} after the one before was shown",
            ms(parts.nothing)
        )
    } else if longest == parts.way {
        match &freeze.last {
            Some(last) => format!(
                "packet {} of frame {frame} was {} under way{}",
                header(last.sequence),
                ms(last.arrived_s - last.sent_s),
                if last.is_repair { ", repeated" } else { "" }
            ),
            None => format!("frame {frame} was {} under way", ms(parts.way)),
        }
    } else {
        format!("frame {frame} was there and waited {} at the receiver", ms(parts.receiver))
    };
    if freeze.never_shown > 0 {
        let frames = if freeze.never_shown == 1 { "frame" } else { "frames" };
        text += &format!("; {} {frames} never shown", freeze.never_shown);
    }
    text
}

/// The first packet that was lost, how many more there are, and where.
fn what_was_lost(freeze: &Freeze) -> String {
    let mut text = match freeze.lost.first() {
        Some(first) => format!("packet {} of frame {}", header(first.sequence), first.frame),
        None => "packets".to_owned(),
    };
    match freeze.lost_packets {
        0 | 1 => {}
        2 => text += " and one more",
        all => text += &format!(" and {} more", all - 1),
    }
    text += " lost";
    let mut places: Vec<String> = Vec::new();
    for LostPacket { queue, why, .. } in &freeze.lost {
        let place = format!("{queue} ({why})");
        if !places.contains(&place) {
            places.push(place);
        }
    }
    if !places.is_empty() {
        text += &format!(" at {}", places.join(" and "));
    }
    text
}

fn lost_words(freeze: &Freeze) -> String {
    let mut text = what_was_lost(freeze);
    if let (Some(sent), Some(received)) = (freeze.sent_s, freeze.received_s) {
        let whole = ms((received - sent).max(0.0));
        text += &format!("; frame {} was whole {whole} after it had left", freeze.frame);
        if let Some(last) = freeze.last.as_ref().filter(|last| last.is_repair) {
            text += &format!(", with packet {} repeated", header(last.sequence));
        }
    }
    text
}

/// The packets that were lost, each with frame, place and time.
pub(crate) fn lost(freeze: &Freeze) -> Vec<String> {
    let said = |lost: &LostPacket| {
        format!(
            "{}{} of frame {}: {} {}, {:.3} s",
            header(lost.sequence),
            if lost.is_repair { " (repeated)" } else { "" },
            lost.frame,
            lost.queue,
            lost.why,
            lost.lost_s
        )
    };
    let mut out: Vec<String> = freeze.lost.iter().map(said).collect();
    let more = freeze.lost_packets as usize - freeze.lost.len().min(freeze.lost_packets as usize);
    if more > 0 {
        out.push(format!("{more} more"));
    }
    out
}

/// What it does not count as, in brackets; empty for most.
pub(crate) fn counted(freeze: &Freeze, warmup_s: f64) -> &'static str {
    match (freeze.to_s < warmup_s, freeze.is_pause()) {
        (true, _) => " (warm-up, not counted)",
        (false, true) => " (more than 5 s: a pause, no freeze)",
        (false, false) => "",
    }
}

/// When each lost packet was asked for, and when copies of it left.
pub(crate) fn repairs(freeze: &Freeze) -> Vec<String> {
    let mut sequences: Vec<u32> = freeze.repairs.iter().map(|step| step.sequence).collect();
    sequences.sort_unstable();
    sequences.dedup();
    let times = |sequence: u32, is_copy: bool| {
        let steps = freeze.repairs.iter();
        let steps = steps.filter(|step| step.sequence == sequence && step.is_copy == is_copy);
        steps.map(|step| format!("{:.3}", step.at_s)).collect::<Vec<_>>().join(", ")
    };
    let said = |sequence: u32| {
        let (asked, copies) = (times(sequence, false), times(sequence, true));
        let mut text = format!("{} asked for at {asked} s", header(sequence));
        if !copies.is_empty() {
            text += &format!(", copies left at {copies} s");
        }
        text
    };
    sequences.into_iter().map(said).collect()
}

/// The number that the packet's RTP header has; it begins anew after 65535.
fn header(sequence: u32) -> u16 {
    sequence as u16
}

pub(crate) fn ms(seconds: f64) -> String {
    format!("{} ms", number((seconds * 1e3).round()))
}

#[cfg(test)]
mod tests {
    use sojourn_study::results::{CompletingPacket, RepairStep};

    use super::*;

    fn late(captured_s: f64, sent_s: f64, received_s: f64) -> Freeze {
        Freeze {
            from_s: 10.0,
            to_s: 10.5,
            after_frame: 299,
            frame: 300,
            captured_s,
            sent_s: Some(sent_s),
            received_s: Some(received_s),
            last: Some(CompletingPacket {
                sequence: 1207,
                is_repair: false,
                sent_s,
                arrived_s: received_s,
            }),
            never_shown: 0,
            lost: vec![],
            lost_packets: 0,
            repairs: vec![],
        }
    }

    #[test]
    fn the_longest_wait_is_the_cause() {
        let cases = [
            (late(9.99, 10.0, 10.47), "packet 1207 of frame 300 was 470 ms under way"),
            (late(9.99, 10.4, 10.47), "frame 300 left the sender 400 ms after it was captured"),
            (
                late(10.4, 10.41, 10.47),
                "frame 300 was captured only 400 ms after the one before was shown",
            ),
            (late(9.9, 9.95, 9.99), "frame 300 was there and waited 500 ms at the receiver"),
        ];
        for (freeze, words) in cases {
            assert_eq!(cause(&freeze), words);
            let Parts { nothing, sender, way, receiver } = Parts::of(&freeze);
            assert!((nothing + sender + way + receiver - 0.5).abs() < 1e-9);
        }
    }

    #[test]
    fn lost_packets_are_named_with_place_and_time() {
        let lost_at = |sequence, is_repair| LostPacket {
            sequence,
            frame: 300,
            is_repair,
            sent_s: 10.0,
            lost_s: 10.0005,
            queue: "downlink".into(),
            why: "full".into(),
        };
        let freeze = Freeze {
            lost: vec![lost_at(1206, false), lost_at(1206, true)],
            lost_packets: 3,
            never_shown: 2,
            last: Some(CompletingPacket {
                sequence: 1206,
                is_repair: true,
                sent_s: 10.3,
                arrived_s: 10.4,
            }),
            ..late(9.99, 10.0, 10.4)
        };
        assert_eq!(
            cause(&freeze),
            "packet 1206 of frame 300 and 2 more lost at downlink (full); frame 300 was whole 400 ms after it had left, with packet \
             1206 repeated; 2 frames never shown"
        );
        assert_eq!(
            lost(&freeze),
            [
                "1206 of frame 300: downlink full, 10.001 s",
                "1206 (repeated) of frame 300: downlink full, 10.001 s",
                "1 more"
            ]
        );
    }

    /// 559 134 is 8 times 65 536 and 34 846.
    #[test]
    fn packets_have_the_numbers_of_their_headers() {
        let packet = LostPacket {
            sequence: 559_134,
            frame: 300,
            is_repair: false,
            sent_s: 10.0,
            lost_s: 10.0005,
            queue: "queue".into(),
            why: "full".into(),
        };
        let step = RepairStep { sequence: 559_134, at_s: 10.04, is_copy: false };
        let freeze = Freeze {
            lost: vec![packet],
            lost_packets: 1,
            repairs: vec![step],
            ..late(9.99, 10.0, 10.4)
        };
        assert!(cause(&freeze).starts_with("packet 34846 of frame 300 lost"), "{}", cause(&freeze));
        assert_eq!(lost(&freeze), ["34846 of frame 300: queue full, 10.001 s"]);
        assert_eq!(super::repairs(&freeze), ["34846 asked for at 10.040 s"]);
    }

    #[test]
    fn repairs_are_told_packet_by_packet() {
        let step = |sequence, at_s, is_copy| RepairStep { sequence, at_s, is_copy };
        let repairs = vec![
            step(1206, 10.04, false),
            step(1207, 10.04, false),
            step(1206, 10.06, true),
            step(1206, 10.1, false),
        ];
        let freeze = Freeze { repairs, ..late(9.99, 10.0, 10.4) };
        let said = [
            "1206 asked for at 10.040, 10.100 s, copies left at 10.060 s",
            "1207 asked for at 10.040 s",
        ];
        assert_eq!(super::repairs(&freeze), said);
    }

    #[test]
    fn what_was_lost_and_never_shown_is_named_where_a_key_frame_came_long_after() {
        let lost = LostPacket {
            sequence: 112,
            frame: 40,
            is_repair: false,
            sent_s: 10.0,
            lost_s: 10.0,
            queue: "queue".into(),
            why: "medium".into(),
        };
        let freeze = Freeze {
            lost: vec![lost],
            lost_packets: 1,
            never_shown: 9,
            ..late(10.4, 10.41, 10.47)
        };
        assert_eq!(
            cause(&freeze),
            "packet 112 of frame 40 lost at queue (medium); nothing could be shown before frame 300, which was \
             captured 400 ms after the last one was shown; 9 frames never shown"
        );
    }
}
