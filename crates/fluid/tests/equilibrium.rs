//! Points at rest that follow on paper, and what runs say of them.

mod path;

use proptest::prelude::*;
use sojourn_fluid::{equilibrium, trajectory};
use sojourn_scenario::Checked;

/// Bytes of a packet on the wire.
const PACKET: f64 = 1514.0;

fn scenario(ccas: &[&str], mbps: u64, rtt_ms: u64, queue: &str) -> Checked {
    path::scenario(ccas, mbps, rtt_ms, queue, 10)
}

/// Between its line's ends RED rests where the square-root law and the line meet.
#[test]
fn reno_rests_where_the_square_root_law_meets_the_line_of_red() {
    let scenario = scenario(
        &["reno"; 4],
        20,
        40,
        "red limit 400000 avpkt 1514 min 30000 max 90000 probability 0.1",
    );
    let rest = equilibrium(&scenario).expect("a point");
    let p = rest.signalled;
    let flow = rest.flows[0];
    assert!((flow.window / (2.0 * (1.0 - p) / p).sqrt() - 1.0).abs() < 1e-6, "{flow:?}");
    let sum: f64 = rest.flows.iter().map(|flow| flow.goodput).sum();
    assert!((sum / (20e6 * 1448.0 / PACKET) - 1.0).abs() < 1e-6, "{sum}");
    assert!((rest.queue * PACKET / 30_000.0 - 1.0) > 0.0, "{rest:?}");
}

#[test]
fn pie_and_dualpi2_rest_at_their_targets() {
    for (queue, target) in [("pie target 20ms", 0.020), ("dualpi2 target 15ms", 0.015)] {
        let rest = equilibrium(&scenario(&["cubic", "reno"], 20, 40, queue)).expect("a point");
        assert!((rest.wait - target).abs() < 1e-9, "{queue}: {rest:?}");
    }
}

/// N flows of BBR version 2 hold (N − 1)/(4N + 1) of a bandwidth-delay product, of version 1 a whole
/// one.
#[test]
fn flows_of_bbr_hold_what_is_on_paper() {
    let bdp = |cca, flows: usize| {
        let rest = equilibrium(&scenario(&vec![cca; flows], 100, 30, "pfifo limit 2000"));
        let rest = rest.expect("a point");
        rest.queue / (100e6 / 8.0 / PACKET * (rest.flows[0].rtt - rest.wait))
    };
    assert!((bdp("bbr", 10) - 1.0).abs() < 1e-9);
    assert!((bdp("bbr2", 2) - 1.0 / 9.0).abs() < 1e-9);
    assert!((bdp("bbr2", 10) - 9.0 / 41.0).abs() < 1e-9);
}

/// Disturbed by a thousandth, a stable world comes back within a minute and an unstable one swings out,
/// as the roots say.
#[test]
fn the_roots_say_what_a_disturbance_does() {
    let mut seen = [false; 2];
    for (flows, rtt, queue) in [
        (20, 40, "pie target 15ms"),
        (2, 400, "pie target 15ms"),
        (4, 40, "red limit 4000000 avpkt 1514 min 30000 max 900000 probability 0.1"),
        (2, 300, "red limit 400000 avpkt 1514 min 15000 max 60000 probability 0.5"),
    ] {
        let scenario = scenario(&vec!["reno"; flows], 20, rtt, queue);
        let rest = equilibrium(&scenario).expect("a point");
        let stability = rest.stability.expect("laws");
        let rows = trajectory(&scenario, 1.001, 60.0, 600).expect("rows");
        let at_rest = rest.flows[0].window;
        let away = rows[500..].iter().map(|row| (row[2] / at_rest - 1.0).abs()).fold(0.0, f64::max);
        eprintln!("{flows} {rtt} {queue}: {:?} {away}", stability.roots[0]);
        assert_eq!(stability.is_stable(), away < 1e-4, "{flows} {rtt} {queue}: {stability:?}");
        assert_eq!(!stability.is_stable(), away > 1e-2, "{flows} {rtt} {queue}: {stability:?}");
        seen[usize::from(stability.is_stable())] = true;
    }
    assert_eq!(seen, [true, true], "one kind was not tried");
}

#[test]
fn what_has_no_smooth_law_is_refused_with_the_reason() {
    for (ccas, queue, problem) in [
        (&["cubic"][..], "fq_codel", "'fq_codel' signals at moments"),
        (&["cubic", "bbr"], "pfifo limit 100", "no smooth law of 'bbr' beside others"),
        (&["bbr3", "bbr3"], "pfifo limit 1000", "no equilibrium of BBR version 3"),
        (&["bbr", "bbr"], "pfifo limit 10", "more than the queue"),
        (&["prague"], "dualpi2", "no smooth law"),
        (
            &["reno"; 2],
            "red limit 400000 avpkt 1514 min 30000 max 90000 probability 0.0001",
            "no equilibrium: at the most",
        ),
    ] {
        let error = equilibrium(&scenario(ccas, 20, 40, queue)).expect_err(queue).to_string();
        assert!(error.contains(problem), "{queue}: {error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn no_point_has_numbers_that_are_none(
        ccas in prop::collection::vec(prop::sample::select(vec!["reno", "cubic", "dctcp", "bbr", "bbr2", "prague"]), 1..5),
        mbps in 1u64..2000,
        rtt in 1u64..400,
        queue in prop::sample::select(vec!["pfifo limit 50", "pfifo limit 1000", "pie", "dualpi2", "red limit 400000 avpkt 1514"]),
    ) {
        if let Ok(rest) = equilibrium(&scenario(&ccas, mbps, rtt, queue)) {
            prop_assert!(rest.queue.is_finite() && rest.queue >= 0.0 && (0.0..=1.0).contains(&rest.signalled));
            for flow in &rest.flows {
                prop_assert!(flow.window.is_finite() && flow.window > 0.0 && flow.goodput > 0.0, "{flow:?}");
            }
            for root in rest.stability.iter().flat_map(|stability| &stability.roots) {
                prop_assert!(root.0.is_finite() && root.1.is_finite());
            }
        }
    }
}
