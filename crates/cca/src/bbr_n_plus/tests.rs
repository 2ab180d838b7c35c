//! What follows from the rules: on the model's page under "Validation".

use proptest::prelude::*;

use super::*;
use crate::bbr::harness::{Lab, Path, Row, SECOND, at, setup, torment};

fn lab(text: &str, path: Path) -> Lab<BbrNPlus> {
    let config = Config::parse(&mut Words::new(text)).expect("a good spec");
    let rtt = path.rtt;
    Lab::new(config.build(setup(1, Some(rtt))), path)
}

fn plain(path: Path) -> Lab<Bbr3> {
    let rtt = path.rtt;
    Lab::new(Bbr3::new(bbr3::Config::default(), setup(1, Some(rtt))), path)
}

/// 100 Mbit/s, 50 ms, a deep buffer.
fn path() -> Path {
    Path::new(100, 50, 4_000)
}

fn windows(share: f64) -> u32 {
    (path().bdp() * share) as u32
}

fn seen(rows: &[Row]) -> String {
    format!("{rows:?}")
}

/// Share of the link used over the `last` seconds before now.
fn recent<C: Controller>(lab: &Lab<C>, last_ms: u64) -> f64 {
    lab.utilisation(at(lab.now.as_nanos() / 1_000_000 - last_ms))
}

/// Milliseconds from `from` until 90 % of the link is used over a round-trip time.
fn time_to_fill<C: Controller>(lab: &mut Lab<C>, from: u64) -> u64 {
    for elapsed in 1..20_000 {
        lab.run(Span::from_millis(1));
        if elapsed > 50 && recent(lab, 50) >= 0.9 {
            return lab.now.as_nanos() / 1_000_000 - from;
        }
    }
    panic!("the link was never filled");
}

#[test]
fn without_a_limiting_window_every_step_is_the_drafts() {
    for path in [path(), Path::new(10, 20, 20), path().dropping_every(40), Path::new(5, 200, 30)] {
        let (mut ours, mut drafts) = (lab("", path.clone()), plain(path));
        ours.run(SECOND * 12);
        drafts.run(SECOND * 12);
        assert_eq!(seen(&ours.rows), seen(&drafts.rows));
    }
}

#[test]
fn switched_off_it_is_the_draft_behind_any_window() {
    let (mut ours, mut drafts) = (lab("mode=off", path()), plain(path()));
    (ours.rwnd, drafts.rwnd) = (windows(0.5), windows(0.5));
    ours.run(SECOND * 12);
    drafts.run(SECOND * 12);
    assert_eq!(seen(&ours.rows), seen(&drafts.rows));
}

#[test]
fn a_fixed_window_is_the_limit_whatever_startup_does() {
    for share in [0.25, 0.5, 0.9] {
        let (mut ours, mut drafts) = (lab("", path()), plain(path()));
        (ours.rwnd, drafts.rwnd) = (windows(share), windows(share));
        let full = until_window_is_full(&mut ours);
        ours.run_to(&["PROBE_BW:DOWN", "PROBE_BW:CRUISE"]);
        assert!(rounds(&ours) <= full + 5, "{share}: {} rounds", rounds(&ours));
        assert!(!ours.phases().iter().any(|(_, phase)| *phase == "DRAIN"), "nothing to drain");
        let expected = f64::from(windows(share)) / path().bdp();
        for share in [later_share(&mut ours), later_share(&mut drafts)] {
            assert!((share / expected - 1.0).abs() < 0.02, "{share}, expected {expected}");
        }
        let longest = ours.rows.iter().map(|row| row.rtt).max().expect("there are rows");
        assert!(longest < Span::from_millis(52), "{share}: a queue of {longest}");
    }
}

/// Utilisation between 1.5 and 4.5 seconds, before the first PROBE_RTT.
fn later_share<C: Controller>(lab: &mut Lab<C>) -> f64 {
    lab.run(at(4_500).since(lab.now));
    lab.utilisation(at(1_500))
}

#[test]
fn a_window_that_opens_later_is_filled_within_ten_round_trips() {
    let (mut ours, mut drafts) = (lab("", path()), plain(path()));
    (ours.rwnd, drafts.rwnd) = (windows(0.25), windows(0.25));
    ours.run(SECOND * 2);
    drafts.run(SECOND * 2);
    (ours.rwnd, drafts.rwnd) = (windows(4.0), windows(4.0));
    let ours = time_to_fill(&mut ours, 2_000);
    let drafts = time_to_fill(&mut drafts, 2_000);
    assert!(ours <= 500, "{ours} ms");
    assert!(drafts > ours, "{drafts} ms against {ours} ms");
}

#[test]
fn a_window_that_opens_at_once_lets_no_burst_out() {
    let mut lab = lab("", path());
    lab.rwnd = windows(0.25);
    lab.run(SECOND * 2);
    let (before, opened) = (lab.rwnd, lab.now);
    lab.rwnd = windows(10.0);
    lab.run(path().rtt);
    let peak = lab.rows.iter().filter(|row| row.at >= opened).map(|row| row.in_flight).max();
    let quantum = match lab.cc.send_quantum() {
        Quantum::Segments(segments) => segments,
        Quantum::Auto { least } => least,
    };
    let peak = peak.expect("there are rows");
    assert!(peak <= (2 * before).max(10) + quantum, "{peak} in flight, {before} before");
}

#[test]
fn a_window_that_doubles_every_other_round_is_not_taken_for_the_networks_limit() {
    for seed in 1..20 {
        let setup = setup(seed, Some(path().rtt));
        let ours = fill(Config::default().build(setup.clone()));
        let drafts = fill(Bbr3::new(bbr3::Config::default(), setup));
        assert!(ours <= drafts, "seed {seed}: {ours} ms against {drafts} ms");
    }
}

/// Milliseconds until the link is filled behind a window that doubles every other round trip from
/// 64 kB on.
fn fill(cc: impl Controller) -> u64 {
    let mut lab = Lab::new(cc, path());
    lab.rwnd = 45;
    for _ in 0..5 {
        lab.run(path().rtt * 2);
        lab.rwnd *= 2;
    }
    time_to_fill(&mut lab, 0)
}

#[test]
fn immediately_means_after_the_first_limited_round() {
    let mut lab = lab("mode=immediate", path());
    lab.rwnd = windows(0.25);
    let full = until_window_is_full(&mut lab);
    lab.run_to(&["PROBE_BW:DOWN", "PROBE_BW:CRUISE"]);
    assert_eq!(rounds(&lab), full + 3, "what left in the next round is acknowledged");
    lab.rwnd = windows(4.0);
    lab.run(path().rtt * 2);
    assert_ne!(lab.cc.phase(), "STARTUP", "it does not begin again");
}

#[test]
fn losses_end_startup_as_in_the_draft() {
    let lossy = path().dropping_every(40);
    let (mut ours, mut drafts) = (lab("", lossy.clone()), plain(lossy));
    (ours.rwnd, drafts.rwnd) = (windows(0.9), windows(0.9));
    ours.run_to(&["DRAIN", "PROBE_BW:DOWN"]);
    drafts.run_to(&["DRAIN", "PROBE_BW:DOWN"]);
    assert_ne!(ours.cc.inflight_longterm(), None, "a loss has bounded it");
    assert_eq!(ours.cc.inflight_longterm(), drafts.cc.inflight_longterm());
    // With a bound from losses STARTUP does not begin again.
    ours.rwnd = windows(4.0);
    ours.run(path().rtt * 3);
    assert_ne!(ours.cc.phase(), "STARTUP");
}

/// Runs until as much is in flight as the receiver allows; the round in which that is.
fn until_window_is_full(lab: &mut Lab<BbrNPlus>) -> u64 {
    lab.run_while(|lab| lab.in_flight() < lab.rwnd);
    rounds(lab)
}

fn rounds(lab: &Lab<BbrNPlus>) -> u64 {
    lab.cc.round_count().expect("BBR counts rounds")
}

proptest! {
    #[test]
    fn its_parameters_are_printed_as_they_are_read(share in 0.0f64..=1.0, rounds in 1u32..100) {
        let text = format!("bbr-n+ mode=immediate rwnd_round_share={share} rwnd_rounds={rounds} cwnd_gain=2.5");
        let config = crate::Config::parse(&text).expect("a good spec");
        prop_assert_eq!(crate::Config::parse(&config.to_string()), Ok(config));
    }

    #[test]
    fn nothing_that_a_transport_may_say_breaks_it(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        torment(Config::default().build(setup(1, None)), &bytes);
    }
}
