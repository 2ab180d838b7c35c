//! What programs say of themselves: the JSON of iperf3, and results of `getStats` (W3C, webrtc-stats), a line each.
//!
//! Both come from programs that talked to a network, so nothing is believed of their form: what does not fit is
//! left out.

use serde_json::Value;
use sojourn_core::{Span, Time};
use sojourn_metrics::Reported;

/// What the sender's and the receiver's iperf3 have printed, of the time between `warm` and `end`; the sender's has begun at `start`.
pub(super) fn iperf3(printed: [&[u8]; 2], start: Time, warm: Time, end: Time) -> Reported {
    let mut reported = Reported::default();
    let within = |interval: &&Value| {
        let sum = &interval["sum"];
        let at = |key: &str| Some(start + span(sum[key].as_f64()?));
        let (Some(from), Some(to)) = (at("start"), at("end")) else { return false };
        // The last one ends a little after it should.
        from >= warm && to <= end + Span::from_millis(500) && sum["omitted"] != Value::Bool(true)
    };
    // What the receiver says of rates and losses comes last, because it knows.
    for bytes in printed {
        let Some(json) = object_in(bytes).filter(|json| json["intervals"].is_array()) else {
            continue;
        };
        let intervals: Vec<&Value> =
            json["intervals"].as_array().into_iter().flatten().filter(within).collect();
        let sums = |key: &str| {
            let values = intervals.iter().filter_map(|interval| interval["sum"][key].as_f64());
            let values: Vec<f64> = values.collect();
            (!values.is_empty()).then(|| values.iter().sum::<f64>())
        };
        if let (Some(bytes), Some(seconds)) = (sums("bytes"), sums("seconds"))
            && seconds > 0.0
        {
            reported.mbps = Some(bytes * 8e-6 / seconds);
        }
        reported.retransmits = sums("retransmits").or(reported.retransmits);
        let rtts = intervals.iter().flat_map(|interval| interval["streams"].as_array());
        // 0 stands for unknown.
        let rtts =
            rtts.flatten().filter_map(|stream| stream["rtt"].as_f64()).filter(|us| *us > 0.0);
        reported.rtt_ms = mean(rtts).map(|us| us / 1000.0).or(reported.rtt_ms);
        let jitters = intervals.iter().filter_map(|interval| interval["sum"]["jitter_ms"].as_f64());
        reported.jitter_ms = mean(jitters).or(reported.jitter_ms);
        if let (Some(lost), Some(packets)) = (sums("lost_packets"), sums("packets"))
            && packets > 0.0
        {
            reported.loss = Some(lost / packets);
        }
    }
    reported
}

/// Of both ends' lines, with when each came, those that are results of `getStats`: an array, or an object by
/// identifiers.
pub(super) fn add_get_stats<'a>(
    reported: &mut Reported,
    lines: impl Iterator<Item = (Time, &'a [u8])>,
    warm: Time,
    end: Time,
) {
    let mut incoming = Vec::new();
    let mut outgoing = Vec::new();
    for (at, line) in lines {
        if at > end || !matches!(line.first(), Some(b'[' | b'{')) {
            continue;
        }
        let Ok(json) = serde_json::from_slice::<Value>(line) else { continue };
        for stats in entries(&json) {
            let is_video = ["kind", "mediaType"].iter().any(|key| stats[*key] == "video");
            match stats["type"].as_str() {
                Some("inbound-rtp") if is_video => incoming.push((at, stats.clone())),
                Some("outbound-rtp") if is_video => outgoing.push((at, stats.clone())),
                Some("remote-inbound-rtp") if is_video => outgoing.push((at, stats.clone())),
                _ => {}
            }
        }
    }
    let after = |own: &[(Time, Value)], key: &str| {
        let values = own.iter().filter(|(at, _)| *at >= warm);
        mean(values.filter_map(|(_, stats)| stats[key].as_f64()))
    };
    // How a counter has grown since the last time that it was read before the warm-up's end, and in how long.
    let growth = |key: &str| {
        let mut known = incoming.iter().filter_map(|(at, stats)| Some((*at, stats[key].as_f64()?)));
        let mut first = known.next()?;
        let mut last = first;
        for now in known {
            if now.0 <= warm {
                first = now;
            }
            last = now;
        }
        Some((last.1 - first.1, last.0.since(first.0)))
    };
    let count = |key: &str| growth(key).map(|(more, _)| more);
    if let Some((frames, took)) = growth("framesDecoded") {
        reported.frames = Some(frames);
        reported.fps = (!took.is_zero()).then(|| frames / took.as_secs_f64());
    }
    reported.freezes = count("freezeCount").or(reported.freezes);
    reported.freeze_ms = count("totalFreezesDuration").map(|s| s * 1e3).or(reported.freeze_ms);
    if let (Some(waited), Some(frames)) =
        (count("jitterBufferDelay"), count("jitterBufferEmittedCount"))
        && frames > 0.0
    {
        reported.jitter_buffer_ms = Some(waited / frames * 1e3);
    }
    if let Some((bytes, took)) = growth("bytesReceived")
        && !took.is_zero()
    {
        reported.mbps = Some(bytes * 8e-6 / took.as_secs_f64());
    }
    if let (Some(lost), Some(came)) = (count("packetsLost"), count("packetsReceived"))
        && lost + came > 0.0
    {
        reported.loss = Some(lost.max(0.0) / (lost.max(0.0) + came));
    }
    let ms = |seconds: f64| seconds * 1e3;
    reported.jitter_ms = after(&incoming, "jitter").map(ms).or(reported.jitter_ms);
    reported.rtt_ms = after(&outgoing, "roundTripTime").map(ms).or(reported.rtt_ms);
    reported.target_mbps = after(&outgoing, "targetBitrate").map(|bps| bps * 1e-6);
}

/// The statistics of a report: the members of an array or of an object.
fn entries(json: &Value) -> Vec<&Value> {
    match json {
        Value::Array(all) => all.iter().collect(),
        Value::Object(all) if all.contains_key("type") => vec![json],
        Value::Object(all) => all.values().collect(),
        _ => Vec::new(),
    }
}

/// The first object in what was printed, which a shell may have put words before or after.
fn object_in(bytes: &[u8]) -> Option<Value> {
    let start = bytes.iter().position(|byte| *byte == b'{')?;
    let mut values = serde_json::Deserializer::from_slice(&bytes[start..]).into_iter::<Value>();
    values.next()?.ok()
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

fn span(seconds: f64) -> Span {
    Span::from_nanos((seconds.clamp(0.0, 1e9) * 1e9) as u64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn s(seconds: u64) -> Time {
        Time::ZERO + Span::from_secs(seconds)
    }

    /// Two intervals of iperf3 3.12's output, shortened; the first is within the warm-up.
    const IPERF3: &str = r#"{"start":{"version":"iperf 3.12"},"intervals":[
        {"streams":[{"socket":5,"rtt":90000,"retransmits":7}],
         "sum":{"start":0,"end":1.000089,"seconds":1.000089,"bytes":9,"bits_per_second":72,"retransmits":7,"omitted":false}},
        {"streams":[{"socket":5,"rtt":43000,"retransmits":1}],
         "sum":{"start":1.000089,"end":2.00005,"seconds":1.0,"bytes":1250000,"bits_per_second":1e7,"retransmits":1,"omitted":false}}],
        "end":{}}"#;

    #[test]
    fn intervals_of_iperf3_count_after_the_warm_up() {
        let client = iperf3([IPERF3.as_bytes(), b"x"], s(0), s(1), s(2));
        assert_eq!(
            (client.mbps, client.retransmits, client.rtt_ms),
            (Some(10.0), Some(1.0), Some(43.0))
        );
        let server = IPERF3.replace("1250000", "1000000").replace("retransmits", "other");
        let both = iperf3([IPERF3.as_bytes(), server.as_bytes()], s(0), s(1), s(2));
        assert_eq!((both.mbps, both.retransmits), (Some(8.0), Some(1.0)));
        assert_eq!(iperf3([b"iperf3: error", b""], s(0), s(1), s(2)), Reported::default());
    }

    #[test]
    fn counters_of_get_stats_are_differences() {
        let at = |second: u64, frames: u64| {
            let stats = format!(
                r#"[{{"type":"inbound-rtp","kind":"video","framesDecoded":{frames},"freezeCount":{second},"jitter":0.002}},
                {{"type":"inbound-rtp","kind":"audio","framesDecoded":9}}]"#
            );
            (s(second), stats.replace('\n', ""))
        };
        let printed = [at(1, 100), at(2, 160), at(4, 280), at(6, 999)];
        let lines = printed.iter().map(|(at, line)| (*at, line.as_bytes()));
        let mut reported = Reported::default();
        add_get_stats(&mut reported, lines, s(2), s(5));
        assert_eq!((reported.frames, reported.fps), (Some(120.0), Some(60.0)));
        assert_eq!((reported.freezes, reported.jitter_ms), (Some(2.0), Some(2.0)));
    }

    proptest! {
        #[test]
        fn nothing_printed_makes_it_panic(
            cut in 0..IPERF3.len(),
            from in 0..IPERF3.len(),
            word in "[\\[\\]{}\":,a-z0-9.e-]{0,30}",
            line in "(\\[\\{\"type\":\"inbound-rtp\",\"kind\":\"video\",\"framesDecoded\":)?[-0-9.e\"}\\]]{0,12}",
        ) {
            let mut bytes = IPERF3.as_bytes()[..cut].to_vec();
            bytes.extend(word.as_bytes());
            bytes.extend(&IPERF3.as_bytes()[from..]);
            let mut reported = iperf3([&bytes, line.as_bytes()], s(0), s(1), s(2));
            let lines = [(s(2), &bytes[..]), (s(1), line.as_bytes())];
            add_get_stats(&mut reported, lines.into_iter(), s(1), s(2));
        }
    }
}
