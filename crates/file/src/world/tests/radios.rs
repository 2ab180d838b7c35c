//! Radio cells.

use super::*;

const RADIO: &str = r#"
[[scenario.node]]
name = "server"
[[scenario.node]]
name = "router"
[[scenario.link]]
name = "wire"
from = "server"
to = "router"
rate = "1Gbps"
queue = "pfifo limit 1000"
delay = "1ms"
[[scenario.radio]]
name = "wifi"
ap = "router"
queueing = "airtime"
aggregate_frames = 32
[[scenario.radio.station]]
name = "fast"
mode = "ht mcs 15 sgi"
fallback = "ht mcs 5 sgi"
[[scenario.radio.station]]
name = "slow"
mode = "ht mcs 0 sgi"
error = 0.1
[[scenario.flow]]
name = "down"
app = "bulk"
src = "server"
dst = "slow"
"#;

#[test]
fn stations_of_a_radio_are_nodes_behind_its_access_point() {
    let world = scenario(&format!(
        "{RADIO}[[scenario.flow]]\nname = \"across\"\napp = \"ping\"\nsrc = \"fast\"\ndst = \"slow\"\n"
    ));
    assert_eq!(world.port_count(), world.ports().len());
    let names: Vec<String> = world.ports().into_iter().map(|port| port.name).collect();
    assert_eq!(
        names[2..],
        ["wifi.fast-down", "wifi.fast-up", "wifi.slow-down", "wifi.slow-up"].map(String::from)
    );
    let routes: Vec<_> =
        world.flows.iter().map(|flow| (&flow.forward[..], &flow.reverse[..])).collect();
    assert_eq!(routes[0], (&ports([0, 4])[..], &ports([5, 1])[..]));
    assert_eq!(routes[1], (&ports([3, 4])[..], &ports([5, 2])[..]));
    let text = world.canonical();
    for words in ["mpdus=32", "airtime quantum 300us", "fallback ht mcs 5", "error 0.1"] {
        assert!(text.contains(words), "{words} in {text}");
    }
}

#[test]
fn an_access_point_may_contend_otherwise_and_stations_have_weights() {
    let text = changed(
        RADIO,
        "aggregate_frames = 32",
        "ap_vo = \"cw 3 7 aifsn 1\"\nvo = \"cw 7 15 aifsn 2\"",
    );
    let text = changed(&text, "error = 0.1", "airtime_weight = 512");
    let canonical = scenario(&text).canonical();
    for words in ["vo 3 7 1 0", "vo 7 15 2 0", " weight 512"] {
        assert!(canonical.contains(words), "{words} in {canonical}");
    }
    assert_eq!(
        scenario(&changed(RADIO, "error = 0.1", "error = 0.1\nairtime_weight = 256")).canonical(),
        scenario(RADIO).canonical()
    );
}

/// So that a factor can have them among its values.
#[test]
fn what_a_cell_lacks_by_default_can_be_written() {
    let with = |words: &str| scenario(&changed(RADIO, "aggregate_frames = 32", words)).canonical();
    let without = with("");
    assert_eq!(with("protection = \"off\"\nrts_threshold = \"never\""), without);
    assert_ne!(with("protection = \"ofdm 24\""), without);
    assert_ne!(with("rts_threshold = \"500B\""), without);
    assert_eq!(with("retries = 7"), without);
    assert!(with("retries = 255").contains("retry_limit=255"));
    assert!(with("retries = \"never\"").contains("retry_limit=never"));
}

#[test]
fn factors_reach_radios_and_their_stations() {
    let factors = "[factors]\n\"radio.wifi.queueing\" = [\"fifo\", \"mac80211\"]\n\
                   \"radio.wifi.station.*.mode\" = [\"ht mcs 7\", \"ht mcs 6\"]\n";
    let study =
        study_in(Path::new(""), &format!("{RADIO}{factors}")).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(study.scenarios.len(), 4);
    let queue = |scenario: usize| {
        study.scenarios.get(scenario).expect("it is one of them").queues[2].clone()
    };
    assert_eq!((&queue(0).queue[..], &queue(0).rate[..]), ("fifo", "ht mcs 7"));
    assert_eq!((&queue(3).queue[..], &queue(3).rate[..]), ("mac80211", "ht mcs 6"));
}

#[test]
fn a_radio_may_behave_as_other_implementations_do() {
    let keys = "aggregate_frames = 1\naccess = \"dcf\"\nlost_block_ack = \"request\"\ncf_end = true\n\
                eifs_after_collisions = \"on\"";
    let canonical = scenario(&changed(RADIO, "aggregate_frames = 32", keys)).canonical();
    for words in ["qos=false", "lost_block_ack=request", "cf_end=true", "eifs=true"] {
        assert!(canonical.contains(words), "{words} in {canonical}");
    }
    let usual = "aggregate_frames = 32\naccess = \"edca\"\nlost_block_ack = \"repeat\"\ncf_end = false\n\
                 eifs_after_collisions = \"off\"";
    assert_eq!(
        scenario(&changed(RADIO, "aggregate_frames = 32", usual)).canonical(),
        scenario(RADIO).canonical()
    );
}

/// DIFS is SIFS and two slots (802.11-2020, 10.3.2.3.5).
#[test]
fn stations_of_a_dcf_wait_for_difs() {
    let dcf = "aggregate_frames = 1\naccess = \"dcf\"\n";
    let of = |keys: &str| {
        let text = changed(RADIO, "aggregate_frames = 32", &format!("{dcf}{keys}"));
        scenario(&text).canonical()
    };
    assert_eq!(of(""), of("be = \"cw 15 1023 aifsn 2\"\nbk = \"\"\nvi = \"\"\nvo = \"\"\n"));
    assert_eq!(of("be = \"cw 31 1023\"\n"), of("be = \"cw 31 1023 aifsn 2\"\n"));
    assert_ne!(of(""), of("be = \"aifsn 3\"\n"));
    assert_eq!(of("ap_be = \"cw 31 63\"\n"), of("ap_be = \"cw 31 63 aifsn 2\"\n"));
}

#[test]
fn stations_that_are_alike_are_written_once() {
    let text = changed(RADIO, "name = \"slow\"", "name = \"slow\"\ncount = 3");
    let world = scenario(&changed(&text, "dst = \"slow\"", "dst = \"slow.3\""));
    let names: Vec<String> = world.ports().into_iter().map(|port| port.name).collect();
    assert_eq!(names.len(), 2 + 2 * 4);
    assert_eq!(names[8..], ["wifi.slow.3-down", "wifi.slow.3-up"].map(String::from));
    assert_eq!(world.flows[0].forward, ports([0, 8]));
}

#[test]
fn no_packet_is_longer_than_an_msdu() {
    let flow = |app: &str| changed(RADIO, "app = \"bulk\"", app);
    for fits in ["app = \"bulk\"\nmss = 2244", "app = \"udp\"\nsize = \"2268B\"\nrate = \"1Mbps\""]
    {
        scenario(&flow(fits));
    }
    for (wrong, words) in [
        (
            "app = \"udp\"\nsize = \"2269B\"\nrate = \"1Mbps\"",
            "flow.0.size: 2269 bytes are an IP packet of 2297",
        ),
        ("app = \"ping\"\nsize = \"65507B\"", "(allowed: at most 2268 bytes)"),
    ] {
        is_refused(&flow(wrong), words);
    }
    // Over the wire alone they go.
    scenario(&changed(
        &flow("app = \"ping\"\nsize = \"65507B\""),
        "dst = \"slow\"",
        "dst = \"router\"",
    ));
}

#[test]
fn radios_that_cannot_be_are_refused() {
    for (from, to, words) in [
        ("ht mcs 15 sgi", "ht mcs 32", "radio.0.station.0.mode"),
        ("ht mcs 15 sgi", "ht mcs 7 width 80MHz", "radio.0.station.0.mode: there is no"),
        ("ht mcs 15 sgi", "he mcs 11 gi 0.4us", "radio.0.station.0.mode"),
        ("error = 0.1", "error = 1.0", "radio.0.station.1.error: 1 of the frames are lost"),
        (
            "ap = \"router\"",
            "ap = \"ruter\"",
            "radio.0.ap: no node is named 'ruter'; did you mean 'router'? (allowed: server, router)",
        ),
        (
            "ap = \"router\"",
            "ap = \"fast\"",
            "radio.0.ap: 'fast' is a station of this radio (allowed: server, router)",
        ),
        ("name = \"slow\"", "name = \"fast\"", "radio.0.station.1.name: another node is named"),
        ("name = \"slow\"", "name = \"server\"", "another node is named 'server' already"),
        ("\"airtime\"", "\"airtme\"", "airtme"),
        ("\"airtime\"", "\"qdisc\"", "radio.0.queueing: the discipline above the driver"),
        ("\"airtime\"", "\"fifo\"\nqueue = \"codel\"", "radio.0.queue: there is no place"),
        ("\"airtime\"", "\"qdisc\"\nqueue = \"pfifo limit 1bdp\"", "radio.0.queue: "),
        (
            "aggregate_frames = 32",
            "aggregate_frames = 0",
            "radio.0.aggregate_frames: aggregates of 0",
        ),
        ("aggregate_frames = 32", "aggregate_frames = 65", "(allowed: 1 to 64 with the modes"),
        (
            "aggregate_frames = 32",
            "aggregate_time = \"6ms\"",
            "radio.0.aggregate_time: aggregates that last 6ms",
        ),
        ("aggregate_frames = 32", "aggregate_time = \"0s\"", "radio.0.aggregate_time: "),
        ("ht mcs 15 sgi", "ofdm 54 width 20MHz", "'width' after the rate"),
        ("aggregate_frames = 32", "be = \"cw 15 7\"", "radio.0.be: windows of 15 to 7"),
        ("aggregate_frames = 32", "ap_be = \"cw 15\"", "radio.0.ap_be: "),
        ("error = 0.1", "airtime_weight = 0", "radio.0.station.1.airtime_weight: a weight of 0"),
        ("aggregate_frames = 32", "retries = 0", "(allowed: a whole number from 1 to 255, or"),
        ("aggregate_frames = 32", "retries = 256", "(allowed: a whole number from 1 to 255, or"),
        ("aggregate_frames = 32", "amsdu = 7935", "radio.0.amsdu: an A-MSDU of 7935 octets"),
        ("aggregate_frames = 32", "aggregate_frames = 1\namsdu = 7936", "(allowed: 0 to 7935 with"),
        (
            "aggregate_frames = 32",
            "retries = \"often\"",
            "(allowed: a whole number from 1 to 255, or",
        ),
        ("error = 0.1", "airtime_weight = 70000", "(allowed: a whole number from 0 to 65535)"),
        ("ht mcs 5 sgi", "ht mcs 15 width 40MHz", "radio.0.station.0.fallback: 'ht mcs 15"),
        ("ht mcs 5 sgi", "ofdm 6", "'ofdm 6' is of another standard than 'ht mcs 15"),
        ("aggregate_frames = 32", "be = \"txop 100us\"", "radio.0.be: a TXOP of 100us"),
        ("aggregate_frames = 32", "access = \"dcf\"", "radio.0.access: DCF and aggregates in one"),
        ("error = 0.1", "count = 0", "radio.0.station.1.count: there are 0 of them"),
        ("error = 0.1", "count = 2000", "station.1.count: radio 'wifi' has too many stations"),
        ("app = \"bulk\"", "app = \"bulk\"\nmss = 2245", "flow.0.mss: 2245 bytes are an IP packet"),
    ] {
        is_refused(&changed(RADIO, from, to), words);
    }
    // Outside an A-MPDU the standard allows more.
    scenario(&changed(RADIO, "aggregate_frames = 32", "aggregate_frames = 1\namsdu = 7935"));
    let alone = RADIO.split("[[scenario.radio.station]]").next().expect("there is a part before");
    let flow =
        "[[scenario.flow]]\nname = \"f\"\napp = \"bulk\"\nsrc = \"server\"\ndst = \"router\"\n";
    let error = error(&format!("{alone}{flow}"));
    assert!(error.contains("radio 'wifi' has 0 stations"), "{error}");
}

/// Stations of 802.11ax that say how their rates change.
fn air() -> String {
    changed(RADIO, "ht mcs 15 sgi\"\nfallback = \"ht mcs 5 sgi\"", "he mcs 11\"\ndistance = \"8m\"")
        .replace("ht mcs 0 sgi", "he mcs 9")
        .replace(
            "aggregate_frames = 32",
            "ofdma = \"on proportional-fair\"\nsignal = \"exponent 3.5\"",
        )
}

#[test]
fn a_radio_says_how_its_rates_change_and_who_shares_a_ppdu() {
    let keys = "rate_control = \"minstrel interval 100ms\"\nfading = \"depth 15\"\n\
                present = \"0s to 2s 3s to end\"\n";
    let text = changed(
        &air(),
        "distance = \"8m\"\n",
        &format!("distance = \"8m at 0s 40m at 30s\"\n{keys}"),
    );
    let canonical = scenario(&text).canonical();
    for words in [
        "[ofdma proportional-fair] rates=[0 signal exponent=3.5 at 0s 8 at 30s 40 fading depth=15",
        "there 0s 2s there 3s end minstrel interval=100ms]",
    ] {
        assert!(canonical.contains(words), "{words} in {canonical}");
    }
    assert_eq!(
        scenario(&air().replace("ofdma = \"on proportional-fair\"\n", "")).canonical(),
        scenario(&air().replace("on proportional-fair", "off")).canonical()
    );
}

#[test]
fn a_station_that_comes_after_the_end_is_noticed() {
    let present = |times: &str| {
        let there = format!("distance = \"8m\"\npresent = \"{times}\"\n");
        super::notices(&changed(&air(), "distance = \"8m\"\n", &there))
    };
    assert_eq!(present("0s to 2s 9s to end"), [""; 0]);
    let [never] = &present("25s to 30s")[..] else { panic!("a notice") };
    assert!(never.contains("is never there: its 'present' has a time from 25s on"), "{never}");
    let [again] = &present("0s to 2s 10s to end")[..] else { panic!("a notice") };
    assert!(again.contains("is not there again"), "{again}");
}

#[test]
fn factors_reach_ofdma_and_rate_control() {
    let factors = "[factors]\n\"radio.wifi.ofdma\" = [\"off\", \"on\", \"on uplink off\"]\n\
                   \"radio.wifi.signal\" = [\"power 20\", \"power 10\"]\n\
                   \"radio.wifi.station.fast.rate_control\" = [\"ideal\", \"minstrel\"]\n\
                   \"radio.wifi.station.fast.distance\" = [\"8m\", \"40m\"]\n";
    let study =
        study_in(Path::new(""), &format!("{}{factors}", air())).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(study.scenarios.len(), 24);
    let mut worlds: Vec<String> = study.scenarios.iter().map(|s| s.scenario.canonical()).collect();
    worlds.sort();
    worlds.dedup();
    assert_eq!(worlds.len(), 24);
}

#[test]
fn rates_and_ofdma_that_cannot_be_are_refused() {
    let air = air();
    for (from, to, words) in [
        ("on proportional-fair", "yes", "radio.0.ofdma: 'yes' is neither on nor off"),
        ("on proportional-fair", "on schedul", "radio.0.ofdma: ofdma has no parameter 'schedul'"),
        (
            "on proportional-fair",
            "on random_units 9",
            "radio.0.ofdma: 9 units for random access in 20MHz",
        ),
        (
            "on proportional-fair",
            "on stations 0",
            "radio.0.ofdma: a Trigger frame has no resource unit",
        ),
        ("on proportional-fair", "on uplink off downlink off", "radio.0.ofdma: OFDMA in neither"),
        (
            "ofdma = \"on proportional-fair\"",
            "ofdma = \"on\"\nprotection = \"dsss 11\"",
            "radio.0.protection: protection and OFDMA",
        ),
        (
            "he mcs 9",
            "he mcs 9 width 40MHz",
            "radio.0.ofdma: OFDMA among stations of 20MHz and 40MHz",
        ),
        ("exponent 3.5", "exponent 0.1", "radio.0.signal: "),
        ("distance = \"8m\"", "", "radio.0.signal: a signal, and no station with a distance"),
        ("8m", "8", "radio.0.station.0.distance: '8' is no distance in metres"),
        ("8m", "8m at 2s 4m at 1s", "radio.0.station.0.distance: a place at 1s after one at 2s"),
        (
            "distance = \"8m\"",
            "rate_control = \"ideal\"",
            "radio.0.station.0.rate_control: rate control 'ideal' without a distance",
        ),
        (
            "distance = \"8m\"",
            "fading = \"depth 3\"",
            "radio.0.station.0.fading: a signal that fades without",
        ),
        ("distance = \"8m\"", "fading = \"clear 0s\"", "radio.0.station.0.fading: "),
        (
            "distance = \"8m\"",
            "present = \"2s to 1s\"",
            "radio.0.station.0.present: a station is there from 2s",
        ),
        (
            "distance = \"8m\"",
            "rate_control = \"minstrl\"",
            "radio.0.station.0.rate_control: nobody chooses",
        ),
        ("distance = \"8m\"", "rate_control = \"trace none.txt\"", "none.txt"),
    ] {
        is_refused(&changed(&air, from, to), words);
    }
    let older = RADIO.replace("aggregate_frames = 32", "ofdma = \"on\"");
    is_refused(&older, "radio.0.ofdma: OFDMA in a cell without 802.11ax");
}

#[test]
fn a_rate_trace_with_gaps_names_them_and_its_file() {
    let scratch = tempfile::tempdir().expect("a folder for the test");
    let folder = scratch.path();
    let air = changed(&air(), "signal = \"exponent 3.5\"", "");
    let text = changed(&air, "distance = \"8m\"", "rate_control = \"trace rates.txt\"");
    let read = |trace: &str| {
        std::fs::write(folder.join("rates.txt"), trace).expect("it can be written");
        study_in(folder, &text).map_err(|error| error.to_string())
    };
    let good = read("0s 1s he mcs 11\n1s 2s he mcs 3\n").unwrap_or_else(|e| panic!("{e}"));
    let canonical = good.scenarios.get(0).expect("it is one of them").scenario.canonical();
    assert!(canonical.contains("step 1s 2s [he mcs 3"), "{canonical}");
    for (trace, says) in [
        ("0s 1s he mcs 11\n2s 3s he mcs 3\n", "a gap from 1s to 2s before step 2"),
        ("0s 1s he mcs 12\n", "line 1"),
        ("0s 1s ht mcs 3\n", "step 1 of the trace is 'ht mcs 3"),
        ("0s 1s he mcs 3 width 40MHz\n", "of the format and width"),
    ] {
        let error = read(trace).expect_err("it is refused");
        assert!(error.contains("station.0.rate_control") && error.contains(says), "{error}");
    }
}
