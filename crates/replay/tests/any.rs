//! Whatever is in a file, a replay ends with a comparison or with one error.

use proptest::prelude::*;
use sojourn_core::Span;
use sojourn_media::control::kinds;
use sojourn_replay::replay;

const HEAD: &str = r#"{"type":"call","version":2,"flow":"call","control":"gcc","feedback":"twcc","start_ns":0,"start_rate_bps":null,"min_rate_bps":30000,"max_rate_bps":2500000,"mtu_bytes":1238,"fps":30.0}"#;

const CONTROLLERS: [&str; 7] =
    ["gcc", "gcc-draft", "aiortc", "nada", "scream", "scream-v2", "fixed rate=1mbit"];

fn play(text: &str, controller: &str) -> Result<sojourn_replay::Replay, String> {
    let config = kinds().parse(controller).expect("a controller");
    replay(text.as_bytes(), &config, Span::from_secs(1)).map_err(|error| error.to_string())
}

/// One line of a recording, most of them right by themselves.
fn line() -> impl Strategy<Value = String> {
    let report = (0_u64..60, prop::option::of(0_u64..4_000_000_000), 0_usize..4);
    let marks = ["not_ect", "ect1", "ect0", "ce"];
    prop_oneof![
        (1_u32..1500, 0_u32..4).prop_map(|(bytes, probe)| {
            let probe = if probe > 0 { format!(r#","probe":{probe}"#) } else { String::new() };
            format!(r#""type":"sent","bytes":{bytes},"in_flight_bytes":3000{probe}"#)
        }),
        prop::collection::vec(report, 0..12).prop_map(move |mut packets| {
            packets.sort_unstable();
            packets.dedup_by_key(|packet| packet.0);
            let packets: Vec<String> = packets
                .into_iter()
                .map(|(number, at, mark)| {
                    let at = at.map_or("null".to_owned(), |at| at.to_string());
                    format!(r#"[{number},{at},"{}"]"#, marks[mark])
                })
                .collect();
            format!(r#""type":"feedback","packets":[{}]"#, packets.join(","))
        }),
        (0.0..1.0, prop::option::of(0_u64..3_000_000_000), 0_u64..1_000_000).prop_map(
            |(lost, rtt, expected)| {
                let rtt = rtt.map_or("null".to_owned(), |rtt| rtt.to_string());
                format!(
                    r#""type":"receiver_report","fraction_lost":{lost},"cumulative_lost":-3,"expected":{expected},"jitter_ns":1000000,"rtt_ns":{rtt}"#
                )
            }
        ),
        (0_u64..10_000_000_000).prop_map(|rate| format!(r#""type":"remb","rate_bps":{rate}"#)),
        (0_u32..200_000).prop_map(|bytes| format!(r#""type":"frame","bytes":{bytes}"#)),
        any::<bool>().prop_map(|has| format!(r#""type":"backlog","has_backlog":{has}"#)),
        Just(r#""type":"wake""#.to_owned()),
        Just(r#""type":"capture""#.to_owned()),
        (0_u64..10_000_000_000)
            .prop_map(|target| format!(r#""type":"decision","target_bps":{target}"#)),
    ]
}

/// Lines with times and packets' numbers in order.
fn recording() -> impl Strategy<Value = String> {
    let gap = prop_oneof![0_u64..40_000_000, 0_u64..5_000_000_000];
    prop::collection::vec((gap, line()), 0..120).prop_map(|lines| {
        let (mut at, mut number, mut text) = (0, 0, format!("{HEAD}\n"));
        for (gap, line) in lines {
            at += gap;
            let is_sent = line.contains("\"sent\"");
            let numbered = if is_sent { format!(r#","number":{number}"#) } else { String::new() };
            number += u64::from(is_sent);
            text += &format!("{{{line},\"at_ns\":{at}{numbered}}}\n");
        }
        text
    })
}

proptest! {
    #[test]
    fn any_bytes_end_with_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let config = kinds().parse("gcc").expect("a controller");
        prop_assert!(replay(&bytes[..], &config, Span::from_secs(1)).is_err());
    }

    #[test]
    fn any_recording_is_replayed_or_refused_by_every_controller(
        text in recording(),
        which in 0..CONTROLLERS.len(),
    ) {
        match play(&text, CONTROLLERS[which]) {
            Ok(found) => {
                let sent = text.matches("\"sent\"").count() as u64;
                prop_assert_eq!(found.packets, sent);
                prop_assert!(found.steps.iter().all(|step| step.replayed.is_finite()));
            }
            Err(problem) => prop_assert!(problem.starts_with("line "), "{}", problem),
        }
    }

    #[test]
    fn a_damaged_recording_is_no_panic(
        text in recording(),
        place in any::<prop::sample::Index>(),
        by in any::<char>(),
    ) {
        let mut text: Vec<char> = text.chars().collect();
        let place = place.index(text.len());
        text[place] = by;
        let _ = play(&text.into_iter().collect::<String>(), "gcc");
    }

    #[test]
    fn any_statistics_are_replayed_or_refused(
        samples in prop::collection::vec((0.0..3000.0_f64, 0.0..400.0_f64, 0.0..9.0_f64, 0.0..0.5_f64), 0..20),
        is_list in any::<bool>(),
    ) {
        let (mut at, mut packets, mut lost) = (0.0, 0.0, 0.0);
        let results: Vec<String> = samples
            .iter()
            .map(|(gap, more, gone, rtt)| {
                (at, packets, lost) = (at + gap, packets + more.floor(), lost + gone.floor());
                format!(
                    r#"{{"o":{{"type":"outbound-rtp","timestamp":{at},"packetsSent":{packets},"bytesSent":{}}},
                    "r":{{"type":"remote-inbound-rtp","packetsLost":{lost},"roundTripTime":{rtt}}}}}"#,
                    packets * 1000.0
                )
            })
            .map(|result| result.replace('\n', " "))
            .collect();
        let text = match is_list {
            true => format!("[{}]", results.join(",")),
            false => results.join("\n"),
        };
        if let Ok(found) = play(&text, "gcc") {
            let first = samples.iter().take_while(|(_, more, ..)| more.floor() < 1.0).count();
            let sent: f64 = samples.iter().skip(1.max(first)).map(|(_, more, ..)| more.floor()).sum();
            prop_assert!(found.packets as f64 <= sent);
            prop_assert!(found.is_laid_out);
        }
    }
}

#[test]
fn mistakes_are_told_with_their_line_and_what_is_allowed() {
    let after = |line: &str| play(&format!("{HEAD}\n{line}\n"), "gcc").expect_err("a mistake");
    for (line, problem) in [
        ("nonsense", "line 2: is no line of a recording"),
        (
            r#"{"type":"sentt","at_ns":1}"#,
            "line 2: is no line of a recording: unknown variant `sentt`",
        ),
        (
            r#"{"type":"sent","at_ns":1,"number":0,"bytes":0}"#,
            "line 2: bytes is 0 (allowed: 1 to 65535)",
        ),
        (
            r#"{"type":"feedback","at_ns":1,"packets":[[7,null,"ce"]]}"#,
            "line 2: packet 7 is reported on (allowed",
        ),
        (
            r#"{"type":"remb","at_ns":1,"rate_bps":-4}"#,
            "line 2: is no line of a recording: invalid value",
        ),
        (
            r#"{"type":"wake","at_ns":999999999999999999}"#,
            "line 2: at_ns is 999999999999999999 (allowed: 0",
        ),
    ] {
        let told = after(line);
        assert!(told.starts_with(problem), "{told}");
    }
    let told = play(&HEAD.replace("\"fps\":30.0", "\"fps\":0"), "gcc").expect_err("no frames");
    assert_eq!(told, "line 1: fps is 0 (allowed: 0.1 to 1000)");
    let told = play(&HEAD.replace("30000", "9000000"), "gcc").expect_err("out of order");
    assert!(
        told.contains("min_rate_bps is 9000000 (allowed: 1 to max_rate_bps, 2500000)"),
        "{told}"
    );
    let told = play(&HEAD.replace("twcc", "remb"), "gcc").expect_err("no packets");
    assert!(told.contains("'gcc' needs reports on each packet"), "{told}");
    let told = play("{\"a\": 1}", "gcc").expect_err("something else");
    assert!(told.contains("chrome://webrtc-internals"), "{told}");
}

/// A call at 1 Mbit/s whose round trip rises from second 25 on by 100 ms a second.
#[test]
fn a_controller_lowers_its_rate_when_round_trips_of_statistics_rise() {
    let series = |values: Vec<f64>| format!("{values:?}");
    let seconds = || (0..40).map(f64::from);
    let internals = serde_json::json!({ "PeerConnections": { "1-1": { "stats": {
        "OT1-timestamp": { "statsType": "outbound-rtp", "values": series(seconds().map(|s| 1.7e12 + 1000.0 * s).collect()) },
        "OT1-packetsSent": { "statsType": "outbound-rtp", "values": series(seconds().map(|s| 110.0 * s).collect()) },
        "OT1-bytesSent": { "statsType": "outbound-rtp", "values": series(seconds().map(|s| 121_000.0 * s).collect()) },
        "CP1-timestamp": { "statsType": "candidate-pair", "values": series(seconds().map(|s| 1.7e12 + 1000.0 * s).collect()) },
        "CP1-currentRoundTripTime": { "statsType": "candidate-pair",
            "values": series(seconds().map(|s| 0.05 + 0.1 * (s - 25.0_f64).max(0.0)).collect()) },
        // It is known only later than the others.
        "CP1-availableOutgoingBitrate": { "statsType": "candidate-pair", "values": series(vec![1e6; 38]) },
    } } } });
    let found = play(&internals.to_string(), "gcc").expect("it can be replayed");
    assert!(found.is_laid_out);
    assert_eq!(found.packets, 39 * 110);
    let target = |second: usize| found.steps[second].replayed;
    // To half as much again as arrives, and then to 0.85 of that.
    assert!((1.3e6..1.6e6).contains(&target(24)), "{}", target(24));
    assert!((0.6e6..0.95e6).contains(&target(29)), "{}", target(29));
    let known = found
        .steps
        .iter()
        .filter(|step| step.original.is_some_and(|original| (original - 1e6).abs() < 1.0))
        .count();
    assert!(known >= 36, "{known}");
    let sent = found.steps[5].sent;
    assert!((sent - 110.0 * 8.0 * 1138.0).abs() < 0.02 * sent, "{sent}");
}

/// Samples of `getStats`, one a second, whose counters and times are what `value` makes of their names and numbers.
fn stats(value: impl Fn(&str, f64) -> serde_json::Value) -> String {
    let sample = |s: u32| {
        let s = f64::from(s);
        let outbound = serde_json::json!({
            "type": "outbound-rtp",
            "timestamp": value("timestamp", 1.7e12 + 1000.0 * s),
            "packetsSent": value("packetsSent", 110.0 * s),
            "bytesSent": value("bytesSent", 121_000.0 * s),
        });
        let pair = serde_json::json!({ "type": "candidate-pair", "nominated": true,
            "currentRoundTripTime": value("currentRoundTripTime", 0.05) });
        serde_json::json!([outbound, pair]).to_string()
    };
    (0..10).map(sample).collect::<Vec<_>>().join("\n")
}

#[test]
fn numbers_of_statistics_may_be_text_and_the_rates_are_those_that_were_sent() {
    let plain = play(&stats(|_, number| number.into()), "fixed").expect("it can be replayed");
    let text = play(&stats(|_, number| number.to_string().into()), "fixed").expect("it can, too");
    assert_eq!((plain.packets, text.packets), (9 * 110, 9 * 110));
    assert_eq!(plain.steps, text.steps);
    // Without a rate of its own it is the call's largest.
    let sent = 110.0 * 8.0 * 1138.0;
    assert!((plain.steps[3].replayed - sent).abs() < 0.01 * sent, "{}", plain.steps[3].replayed);
}

#[test]
fn counters_that_can_not_be_are_told_with_their_sample() {
    let with = |wrong: &'static str, value: serde_json::Value| {
        let text = stats(|name, number| match name == wrong && number > 200.0 {
            true => value.clone(),
            false => number.into(),
        });
        play(&text, "gcc").expect_err(wrong)
    };
    for (name, value, says) in [
        (
            "bytesSent",
            (-1).into(),
            "sample 2: bytesSent or headerBytesSent is -1e0 (allowed: 0 to 2^53)",
        ),
        ("bytesSent", 1e300.into(), "sample 2: bytesSent or headerBytesSent is 1e300"),
        ("bytesSent", "many".into(), "sample 2: bytesSent or headerBytesSent is no number"),
        ("bytesSent", serde_json::Value::Null, "sample 2: packets without bytes were sent"),
        ("bytesSent", 1e12.into(), "sample 2: 1000000000000 bytes in 110 packets were sent"),
        ("packetsSent", (-3).into(), "sample 3: packetsSent is -3e0"),
        (
            "timestamp",
            "2026-01-01T10:00:00Z".into(),
            "sample 1: has no time (allowed: timestamp in milliseconds",
        ),
    ] {
        let told = with(name, value);
        assert!(told.starts_with(says), "{told}");
    }
}
