//! Radio cells of study files on the air: what their keys change.

use std::path::Path;

use sojourn_core::Span;
use sojourn_file::Overrides;
use sojourn_study::Study;
use sojourn_study::results::{Folder, Kind, Results};
use sojourn_study::runner;

/// A download to each of four stations.
const STUDY: &str = r#"
schema = 1
title = "a cell"

[scenario]
duration = "1500ms"
warmup = "500ms"

[[scenario.node]]
name = "server"
[[scenario.node]]
name = "router"

[[scenario.link]]
name = "wire"
from = "server"
to = "router"
rate = "1Gbps"
delay = "1ms"
queue = "pfifo limit 1000"

[[scenario.radio]]
name = "wifi"
ap = "router"
queueing = "airtime"
RADIO

[[scenario.radio.station]]
name = "one"
mode = "he mcs 11"
STATION
[[scenario.radio.station]]
name = "two"
mode = "he mcs 11"
[[scenario.radio.station]]
name = "three"
mode = "he mcs 11"
[[scenario.radio.station]]
name = "four"
mode = "he mcs 11"

[[scenario.flow]]
name = "one"
app = "udp"
src = "server"
dst = "one"
rate = "60Mbps"
[[scenario.flow]]
name = "two"
app = "udp"
src = "server"
dst = "two"
rate = "60Mbps"
[[scenario.flow]]
name = "three"
app = "udp"
src = "three"
dst = "server"
rate = "60Mbps"
[[scenario.flow]]
name = "four"
app = "udp"
src = "four"
dst = "server"
rate = "60Mbps"
"#;

fn ran(radio: &str, station: &str, folder: &Path) -> Results {
    let text = STUDY.replace("RADIO", radio).replace("STATION", station);
    let study = Study::parse("radio.toml", &text, folder, &Overrides::default());
    finished(&study.unwrap_or_else(|error| panic!("{error}")))
}

/// A shipped study with one seed and these values, no longer than `seconds`.
fn shipped(file: &str, set: &[&str], seconds: u64) -> Results {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies").join(file);
    let set = set.iter().map(|text| (*text).to_owned()).collect();
    let shorten = Some(Span::from_secs(seconds));
    let study = Study::load(&path, &Overrides { set, seeds: Some(1), shorten });
    finished(&study.unwrap_or_else(|error| panic!("{error}")))
}

fn finished(study: &Study) -> Results {
    let scratch = tempfile::tempdir().unwrap();
    let out = scratch.path().join("out");
    let summary = runner::run(study, &runner::Options::new(&out), &|_| {}).unwrap();
    assert_eq!(summary.failed, []);
    Folder::open(&out).unwrap()
}

/// What the reference names as default may be written, and changes no run.
#[test]
fn the_defaults_of_a_radio_can_be_written() {
    let digest = |radio: &str, station: &str| {
        let text = STUDY.replace("RADIO", radio).replace("STATION", station);
        let study = Study::parse("radio.toml", &text, Path::new(""), &Overrides::default());
        study.unwrap_or_else(|error| panic!("{error}")).plan().digest
    };
    let radio = "aggregate_time = '5.484ms'\namsdu = 0\nrts_threshold = 'never'\nprotection = 'off'\n\
                 access = 'edca'\nlost_block_ack = 'repeat'\ncf_end = 'off'\nretries = 7\n\
                 eifs_after_collisions = 'off'\nbe = 'cw 15 1023 aifsn 3'\nofdma = 'off'\n";
    let station = "airtime_weight = 256\nerror = 0\nrate_control = 'fixed'\npresent = 'always'\n";
    let plain = digest("", "");
    assert_eq!(digest(radio, ""), plain);
    assert_eq!(digest("", station), plain);
    assert_ne!(digest("", "present = '0s to 1s'\n"), plain);
}

/// Section 4.1.2 and Figure 6 of "Ending the Anomaly".
#[test]
fn downloads_share_the_air_equally_by_airtime() {
    let set = ["radio.wifi.queueing=airtime"];
    let results = shipped("ending-the-anomaly/tcp.toml", &set, 20);
    let jain = value(&results, Kind::Queue, "wifi.slow-down", "jain_airtime");
    assert!(jain >= 0.99, "{jain}");
}

fn value(results: &Results, kind: Kind, name: &str, metric: &str) -> f64 {
    let rows = results.table.run(0).iter();
    let row = rows.into_iter().find(|row| row.kind == kind && row.name == name).expect("a row");
    results.table.value(row, metric).expect("it is measured")
}

/// Goodput of the first station, in a cell with these settings for it.
fn first(station: &str) -> f64 {
    value(&ran("", station, Path::new("")), Kind::Flow, "one", "goodput_mbps")
}

#[test]
fn a_station_far_away_gets_less_and_chooses_slower_modes() {
    let near = first("distance = \"5m\"\nrate_control = \"ideal\"");
    let far = first("distance = \"90m\"\nrate_control = \"ideal\"");
    let fixed = first("distance = \"90m\"");
    assert!(far < 0.7 * near && far > 0.5, "{near} near, {far} far");
    assert!(fixed < 0.01, "MCS 11 does not reach so far, but {fixed} Mbit/s came");
    let minstrel = first("distance = \"90m\"\nrate_control = \"minstrel\"");
    assert!(minstrel > 0.3 * far, "{minstrel} of {far}");
}

#[test]
fn what_is_said_of_a_station_happens_at_its_time() {
    let always = first("");
    let leaves = first("present = \"0s to 1s\"");
    assert!((0.3..0.8).contains(&(leaves / always)), "{leaves} of {always}");
    let walks = first("distance = \"5m at 0s 5m at 900ms 400m at 1s\"\nrate_control = \"ideal\"");
    assert!((0.2..0.8).contains(&(walks / always)), "{walks} of {always}");
    let keys = "distance = \"8m\"\nfading = \"depth 60 clear 20ms faded 20ms\"";
    let fades = first(keys);
    assert!(fades < 0.8 * first("distance = \"8m\""), "{fades} Mbit/s");
}

#[test]
fn a_trace_of_rates_is_read_from_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("rates.txt");
    let with = |text: &str| {
        std::fs::write(&trace, text).unwrap();
        let results = ran("", "rate_control = \"trace rates.txt\"", folder.path());
        value(&results, Kind::Flow, "one", "goodput_mbps")
    };
    let slow = with("0s 1s he mcs 0\n");
    let fast = with("0s 1s he mcs 11\n");
    let slow_later = with("0s 1s he mcs 11\n1s 2s he mcs 0\n");
    assert!(slow < slow_later && slow_later < fast, "{slow}, {slow_later}, {fast}");
}

#[test]
fn ofdma_sends_to_and_asks_several_stations_at_once() {
    let of = |radio: &str| {
        let results = ran(radio, "", Path::new(""));
        ["one", "two", "three", "four"]
            .map(|flow| value(&results, Kind::Flow, flow, "goodput_mbps"))
    };
    // Stations that are asked do not contend, so that the access point's share is no longer a third.
    let (alone, asked) = (of(""), of("ofdma = \"on mu_edca_time 100ms\""));
    assert!(asked[0] > 1.05 * alone[0], "{alone:?} alone, {asked:?} asked");
    assert!((asked[2] / asked[3] - 1.0).abs() < 0.1, "stations take turns: {asked:?}");
    let chance = of("ofdma = \"on stations 0 random_units 9 mu_edca_time 100ms\"");
    assert!(chance[2] > 0.5 && chance[2] < asked[2], "{chance:?} by chance, {asked:?} asked");
    let down = of("ofdma = \"on uplink off\"");
    assert!(down[2] > 0.8 * alone[2] && down != alone, "{down:?} with downlink OFDMA");
}

/// Goodput of the flows `one` to `four`, TCP downwards or upwards, of three stations of 802.11ax and one that can't join
/// their PPDUs.
fn beside_an_older_station(queueing: &str, ofdma: &str, last: &str) -> [f64; 4] {
    let radio = format!("ofdma = \"{ofdma}\"");
    let text = STUDY
        .replace("queueing = \"airtime\"", &format!("queueing = \"{queueing}\""))
        .replace("RADIO", &radio)
        .replace("STATION", "")
        .replace("1500ms", "4s")
        .replace("name = \"four\"\nmode = \"he mcs 11\"", "name = \"four\"\nmode = \"ht mcs 7\"")
        .replace("app = \"udp\"", "app = \"bulk\"\ncca = \"cubic\"")
        .replace("rate = \"60Mbps\"\n", "")
        .replace("src = \"three\"\ndst = \"server\"", "src = \"server\"\ndst = \"three\"")
        .replace("src = \"four\"\ndst = \"server\"", last);
    let study = Study::parse("radio.toml", &text, Path::new(""), &Overrides::default());
    let results = finished(&study.unwrap_or_else(|error| panic!("{error}")));
    ["one", "two", "three", "four"].map(|flow| value(&results, Kind::Flow, flow, "goodput_mbps"))
}

#[test]
fn downloads_and_uploads_of_an_older_station_go_on_beside_ofdma() {
    for queueing in ["fq-mac", "airtime", "mac80211"] {
        for ofdma in ["on", "on uplink off", "on proportional-fair"] {
            for last in ["src = \"server\"\ndst = \"four\"", "src = \"four\"\ndst = \"server\""] {
                let mbps = beside_an_older_station(queueing, ofdma, last);
                assert!(mbps.iter().all(|mbps| *mbps > 5.0), "{queueing} '{ofdma}': {mbps:?}");
            }
        }
    }
}
