use proptest::prelude::*;
use sojourn_core::{Bytes, Framing, Purpose, Rate, Span, Stream, StreamAddress, Time};

use super::*;
use crate::{OnEnd, Playback, Transmitter};

fn spec(text: &str) -> RateSpec {
    RateSpec::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn mbit(rate: u64) -> Rate {
    Rate::from_bps(rate * 1_000_000)
}

fn stream() -> Stream {
    StreamAddress { seed: 1, run: 0 }.stream(1, Purpose::Capacity)
}

#[test]
fn rates_are_read_as_users_write_them() {
    let fixed = |rate, overhead| {
        RateSpec::Fixed(FixedSpec { rate, framing: Framing::on_ethernet(overhead) })
    };
    for (text, read) in [
        ("10Mbps", fixed(mbit(10), 0)),
        ("10mbit", fixed(mbit(10), 0)),
        (" 1.5 Gbit/s ", fixed(mbit(1500), 0)),
        ("fixed 10mbit overhead 24", fixed(mbit(10), 24)),
        ("10mbit overhead=-14", fixed(mbit(10), -14)),
        ("unlimited", RateSpec::Unlimited),
    ] {
        assert_eq!(spec(text), read, "{text}");
    }
}

#[test]
fn htb_takes_the_bursts_that_tc_derives() {
    let htb = |burst, cburst| {
        RateSpec::Htb(HtbSpec {
            rate: mbit(10),
            burst: Bytes::new(burst),
            cburst: Bytes::new(cburst),
            quantum: 125_000,
            overhead: 0,
        })
    };
    assert_eq!(spec("htb rate 10mbit"), htb(1600, 1600));
    assert_eq!(spec("htb rate 10mbit ceil 10mbit burst 15k cburst 15kb"), htb(15_360, 15_360));
    assert_eq!(spec("htb rate 10mbit mtu 9000"), htb(9000, 9000));
    let quantum = |text| match spec(text) {
        RateSpec::Htb(HtbSpec { quantum, .. }) => quantum,
        other => panic!("{other:?}"),
    };
    assert_eq!(quantum("htb rate 3gbit"), 200_000);
    assert_eq!(quantum("htb rate 3gbit r2q 10000"), 37_500);
    // One that is given is not cut.
    assert_eq!(quantum("htb rate 3gbit quantum 300"), 300);
    // Raising one alone changes nothing, as in Linux.
    let config = spec("htb rate 10mbit burst 15k").complete(None);
    let burst = Bytes::new(1600);
    assert_eq!(config, Ok(RateConfig::Htb(HtbClass { rate: mbit(10), burst, overhead: 0 })));
}

#[test]
fn a_trace_is_named_here_and_read_elsewhere() {
    let trace = |path: &str, playback, on_end, shaper| {
        RateSpec::Trace(TraceSpec {
            path: path.to_owned(),
            reading: Reading::default(),
            playback,
            serving: Serving { on_end, shaper, framing: Framing::default() },
        })
    };
    let witest = |ms| Playback::Witest2020 { step_overhead: Span::from_millis(ms) };
    for (text, read) in [
        ("trace a=b.csv", trace("a=b.csv", Playback::Nominal, OnEnd::Wrap, Shaper::None)),
        ("trace x.csv end hold", trace("x.csv", Playback::Nominal, OnEnd::Hold, Shaper::None)),
        ("trace x.csv shaper htb", trace("x.csv", Playback::Nominal, OnEnd::Wrap, Shaper::Htb)),
        ("trace x.csv playback witest-2020", trace("x.csv", witest(16), OnEnd::Hold, Shaper::Htb)),
        (
            "trace \"my traces/x y.csv\" playback witest-2020 step_overhead 20ms end wrap shaper none",
            trace("my traces/x y.csv", witest(20), OnEnd::Wrap, Shaper::None),
        ),
    ] {
        assert_eq!(spec(text), read, "{text}");
        assert!(spec(text).path().is_some());
    }
    let config = spec("trace x.csv").complete(Some("10,1\n20,1\n")).expect("good text");
    assert_eq!(config.mean(), Some(mbit(15)));
    let error = spec("trace x.csv").complete(Some("10,1\nten,1")).expect_err("bad text");
    // Who read the file knows its name.
    assert!(error.to_string().starts_with("line 2: rate 'ten'"), "{error}");
    assert!(spec("trace x.csv").complete(None).is_err());
}

#[test]
fn a_mahimahi_trace_can_count_as_mm_link_does_or_ip_alone() {
    let size = |text| match spec(text) {
        RateSpec::Mahimahi(MahimahiSpec { size, .. }) => size,
        other => panic!("{other:?}"),
    };
    assert_eq!(size("mahimahi att.up"), OpportunitySize::Tun1504);
    assert_eq!(size("mahimahi att.up opportunity 1500"), OpportunitySize::Ip1500);
    let config = spec("mahimahi att.up opportunity 1500").complete(Some("1\n")).expect("good");
    assert_eq!(config.mean(), Some(mbit(12)));
}

#[test]
fn a_trace_may_be_in_any_format_and_the_column_of_its_rate_named() {
    let irish = "Timestamp,DL_bitrate,UL_bitrate\n2019.12.16_13.40.04,3000,500\n\
                 2019.12.16_13.40.05,1000,700\n";
    for (text, file, mean) in [
        ("trace x", irish, 2_000_000),
        ("trace x column UL_bitrate", irish, 600_000),
        ("trace x", "0 86\n1 105\n", 95_500_000),
        ("trace x format steps", "0 86\n1 105\n", 549_738),
        (
            "trace x",
            "{\"uplink\":{\"trace_pattern\":[{\"duration\":9,\"capacity\":179}]}}",
            179_000,
        ),
    ] {
        let config = spec(text).complete(Some(file)).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(config.mean(), Some(Rate::from_bps(mean)), "{text}");
    }
    // Opportunities are played as such, and what only rates have is refused.
    let opportunities = |text| spec(text).complete(Some("1\n2\n"));
    assert_eq!(opportunities("trace x"), opportunities("mahimahi x"));
    for text in
        ["trace x end hold", "trace x shaper htb", "trace x format steps", "trace x column b"]
    {
        opportunities(text).expect_err(text);
    }
}

#[test]
fn an_outage_can_be_scheduled_without_a_file() {
    let config = spec("steps 10mbit 5s 0 500ms 10mbit 1s end hold").complete(None).expect("good");
    let transmitter = config.build(&mut stream());
    let at = |ms: u64| transmitter.capacity(Time::from_nanos(ms * 1_000_000));
    assert_eq!(
        (at(4_999), at(5_000), at(5_499), at(5_500)),
        (mbit(10), mbit(0), mbit(0), mbit(10))
    );
    assert_eq!(at(60_000), mbit(10));
}

#[test]
fn rfc_8867_5_1_goes_from_1_to_2_5_to_0_6_and_back() {
    let capacity = |text: &str, seconds: &[u64]| -> Vec<u64> {
        let transmitter = spec(text).complete(None).expect("complete").build(&mut stream());
        let at =
            |s: &u64| transmitter.capacity(Time::from_nanos(s * 1_000_000_000)).as_bps() / 1000;
        seconds.iter().map(at).collect()
    };
    assert_eq!(
        capacity("rfc8867 5.1", &[0, 39, 40, 59, 60, 79, 80, 99, 500]),
        [1000, 1000, 2500, 2500, 600, 600, 1000, 1000, 1000]
    );
    // Sections 5.2 and 5.3.
    assert_eq!(capacity("rfc8867 5.2", &[0, 25, 50, 75, 100]), [4000, 2000, 3500, 1000, 2000]);
    assert_eq!(capacity("rfc8867 5.3", &[0, 20, 40, 60]), [2000, 1000, 500, 2000]);
    assert_eq!(capacity("rfc8867 5.3 backward", &[0, 34, 35, 70]), [2000, 2000, 800, 2000]);
    assert_eq!(capacity("rfc8867 5.1 reference 3mbit", &[0, 40]), [3000, 7500]);
    assert_eq!(capacity("rfc8867 5.5", &[0, 299]), [4000, 4000]);
}

/// Section 6.3: 2 Mbit/s from A to B, four times that from B to C, three quarters from C to D.
#[test]
fn rfc_8867_6_3_has_three_links() {
    for (link, kbps) in [("A-B", 2000), ("B-C", 8000), ("C-D", 1500)] {
        let config = spec(&format!("rfc8867 6.3 {link}")).complete(None).expect("complete");
        let capacity =
            |ms: u64| config.build(&mut stream()).capacity(Time::from_nanos(ms * 1_000_000));
        assert_eq!(
            (capacity(0), capacity(299_999)),
            (Rate::from_bps(kbps * 1000), Rate::from_bps(kbps * 1000))
        );
    }
}

#[test]
fn a_brownian_link_is_drawn_when_the_run_is_built() {
    let config = spec("brownian duration 10s").complete(None).expect("complete");
    assert_eq!(config.mean(), None);
    assert!(matches!(config.build(&mut stream()), Transmitter::Opportunities(_)));
}

#[test]
fn a_blockage_process_is_drawn_when_the_run_is_built() {
    let config = spec("blockage short-blockages duration 60s").complete(None).expect("complete");
    assert_eq!(config.mean(), None);
    let capacity = |random: &mut Stream| {
        let transmitter = config.build(random);
        (0..60).map(|s| transmitter.capacity(Time::from_nanos(s * 1_000_000_000))).collect()
    };
    let (first, again): (Vec<_>, Vec<_>) = (capacity(&mut stream()), capacity(&mut stream()));
    assert_eq!(first, again);
    assert!(first.iter().max() > first.iter().min());
}

#[test]
fn bad_specs_say_what_is_allowed() {
    for (text, says) in [
        ("", "10Mbps"),
        ("10", "no unit"),
        ("10mbot", "unknown unit 'mbot'"),
        ("-10mbit", "negative"),
        ("0mbit", "out of range (allowed: a rate above 0 and up to 10000gbit)"),
        ("20tbit", "unknown unit"),
        ("20000gbit", "out of range"),
        ("10mbit overhaed 3", "did you mean 'overhead'"),
        ("10mbit overhead 1000", "-64 to 256 bytes"),
        ("10mbit ethernot", "did you mean 'ethernet'"),
        ("10mbit overhead 250 ethernet", "the overheads add up to 288 bytes"),
        ("htb rate 10mbit atm", "htb has no parameter 'atm'"),
        ("unlimited overhead 3", "no parameter 'overhead'"),
        ("htb", "htb needs 'rate'"),
        ("htb rate 10mbps", "bytes per second"),
        ("htb rate 10mbit ceil 20mbit", "nobody to borrow from"),
        ("htb rate 10mbit brst 3k", "did you mean 'burst'"),
        ("trace", "needs the path"),
        ("trace \"x.csv", "not closed"),
        ("trace x.csv playback witest-2021", "did you mean 'witest-2020'"),
        ("trace x.csv step_overhead 3ms", "belongs to playback witest-2020"),
        ("trace x.csv end loop", "allowed: wrap, hold"),
        ("mahimahi x opportunity 1514", "allowed: 1500, 1504"),
        ("blockage", "needs a value"),
        ("blockage short-blockage", "did you mean 'short-blockages'"),
        ("blockage static duration 0s", "'duration' is 0s"),
        ("htb rate 10mbit quantum 0", "'quantum' is 0 bytes (allowed: 1 to 4294967295 bytes"),
        ("htb rate 10mbit r2q 0", "'r2q' is '0'"),
        ("trace x.csv format cvs", "did you mean 'csv'"),
        ("trace x.csv format mahimahi", "'mahimahi FILE' instead"),
        ("trace x.csv column", "needs a value"),
        ("steps", "steps: the trace has no steps"),
        ("steps 0 1s", "every rate is zero"),
        ("steps 10mbit", "steps: '10mbit' needs a value"),
        ("steps 10mbit 0s", "step 1 lasts 0s"),
        ("steps 10mbit 1s 10 1s", "no unit"),
        ("steps 10mbit 1s -1mbit 1s", "negative"),
        ("steps 10mbit 1s ned hold", "did you mean 'end'"),
        ("rfc8867", "needs the section of a test case (allowed: 5.1, 5.2"),
        ("rfc8867 5.9", "no test case '5.9' (allowed: 5.1, 5.2"),
        ("rfc8867 5.1 backward", "no limit 'backward' (allowed: 'backward' of 5.3, 'A-B' of 6.3"),
        ("rfc8867 6.2", "repeats those of section 5 with ECN"),
        ("rfc8867 6.3", "needs a link (allowed: A-B, B-C, C-D)"),
        ("rfc8867 6.3 backward", "no limit 'backward'"),
        ("rfc8867 5.1 reference 0bit", "'reference' is 0bit (allowed: a rate from 100bit"),
        ("brownian max 10", "no unit"),
        ("trase x.csv", "did you mean 'trace'"),
    ] {
        let error = RateSpec::parse(text).expect_err(text).to_string();
        assert!(error.contains(says), "{text}: {error}");
    }
}

#[test]
fn a_fixed_rate_in_code_is_checked_too() {
    assert!(RateConfig::fixed(Rate::ZERO).is_err());
    assert_eq!(RateConfig::fixed(Rate::UNLIMITED), Ok(RateConfig::Unlimited));
}

#[test]
fn a_rate_built_in_code_is_checked_too() {
    let good = |text: &str| spec(text).complete(None).expect("complete");
    for text in ["10mbit overhead 24", "htb rate 10mbit", "steps 1mbit 1s", "brownian", "unlimited"]
    {
        assert_eq!(good(text).check(), Ok(()), "{text}");
    }
    let (rate, burst) = (mbit(10), Bytes::new(1600));
    let framing = Framing { mpu: 10_000, ..Framing::default() };
    let RateConfig::Trace { trace, .. } = good("steps 1mbit 1s") else { panic!("steps") };
    for bad in [
        RateConfig::Fixed { rate: Rate::ZERO, framing: Framing::default() },
        RateConfig::Fixed { rate, framing: Framing::on_ethernet(257) },
        RateConfig::Htb(HtbClass { rate: Rate::ZERO, burst, overhead: 0 }),
        RateConfig::Htb(HtbClass { rate, burst, overhead: 65_536 }),
        RateConfig::Trace { trace, serving: Serving { framing, ..Serving::default() } },
    ] {
        bad.check().expect_err(&format!("{bad:?}"));
    }
}

/// A rate as somebody may write it.
fn any_text() -> impl Strategy<Value = String> {
    let any = |words: &'static [&'static str]| prop::sample::select(words.to_vec());
    let rate = || (1u64..=10_000_000_000).prop_map(|kbps| format!("{}kbit", kbps));
    let framing = any(&[
        "",
        " overhead -14",
        " overhead 20 mpu 64",
        " atm overhead 32",
        " ethernet",
        " raw ptm",
        " noatm",
    ]);
    let serving =
        (any(&["", " end hold", " end wrap"]), any(&["", " shaper htb"]), framing.clone())
            .prop_map(|(end, shaper, framing)| format!("{end}{shaper}{framing}"));
    let path = "[a-z/][ -!#-~]{0,15}".prop_map(|path| format!("\"{path}\""));
    let reading = (
        any(&["", " format csv", " format gym"]),
        prop::option::of("[a-zA-Z_.0-9]{1,12}"),
        any(&["", " playback nominal", " playback witest-2020 step_overhead 3ms"]),
    )
        .prop_map(|(format, column, playback)| {
            let column = column.map_or(String::new(), |column| format!(" column {column}"));
            format!("{format}{column}{playback}")
        });
    let steps = prop::collection::vec((rate(), 1u64..1_000_000), 1..6).prop_map(|steps| {
        steps.iter().map(|(rate, ms)| format!(" {rate} {ms}ms")).collect::<String>()
    });
    let preset = any(&["static", "short-blockages", "mobility-and-blockages"]);
    let case = any(&["5.1", "5.2", "5.3 backward", "6.3 C-D reference 3mbit"]);
    prop_oneof![
        Just("unlimited".to_owned()),
        (rate(), framing.clone()).prop_map(|(rate, framing)| rate + framing),
        (rate(), 0u64..1 << 32, 1u64..1 << 32, 0u32..=65_535).prop_map(
            |(rate, burst, quantum, overhead)| format!(
                "htb rate {rate} burst {burst} quantum {quantum} overhead {overhead}"
            )
        ),
        (path.clone(), reading, serving.clone())
            .prop_map(|(path, reading, serving)| format!("trace {path}{reading}{serving}")),
        (path, any(&["", " opportunity 1500"]))
            .prop_map(|(path, opportunity)| format!("mahimahi {path}{opportunity}")),
        (steps, serving.clone()).prop_map(|(steps, serving)| format!("steps{steps}{serving}")),
        (case, framing).prop_map(|(case, framing)| format!("rfc8867 {case}{framing}")),
        (preset, any(&["", " nooutages"]), serving)
            .prop_map(|(preset, outages, serving)| format!("blockage {preset}{outages}{serving}")),
        (rate(), 1u64..100_000)
            .prop_map(|(sigma, ms)| format!("brownian sigma {sigma} duration {ms}ms"))
            .prop_filter("not cellular", |text| RateSpec::parse(text).is_ok()),
    ]
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(
        text in "(htb |trace |mahimahi |blockage |fixed |steps |rfc8867 |brownian |10mbit )?([ -~]|.){0,32}"
    ) {
        if let Ok(spec) = RateSpec::parse(&text) {
            let _ = spec.complete(None);
        }
    }

    #[test]
    fn what_is_printed_reads_back(text in any_text()) {
        let spec = spec(&text);
        prop_assert_eq!(RateSpec::parse(&spec.to_string()), Ok(spec), "{}", text);
    }
}
