//! Points at rest that follow on paper, and what runs say of them.

mod collect;
mod path;

use proptest::prelude::*;
use sojourn_core::Span;
use sojourn_fluid::{Options, equilibrium, trajectory};
use sojourn_host::tcp::EcnOffer;
use sojourn_link::LossConfig;
use sojourn_scenario::{App, Checked, Scenario};

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

/// RFC 9332 section 2.1: p' signals p'² to Classic flows and k·p' to the others.
#[test]
fn what_dualpi2_signals_is_what_its_flows_hear() {
    let classic = equilibrium(&scenario(&["reno"; 2], 20, 40, "dualpi2")).expect("a point");
    for flow in &classic.flows {
        assert!((flow.signalled / classic.signalled - 1.0).abs() < 1e-9, "{classic:?}");
        let p = flow.signalled;
        assert!((flow.window / (2.0 * (1.0 - p) / p).sqrt() - 1.0).abs() < 1e-6, "{classic:?}");
    }
    let both = equilibrium(&scenario(&["cubic", "prague"], 20, 40, "dualpi2")).expect("a point");
    let [cubic, prague] = both.flows[..] else { panic!("two flows") };
    assert!((prague.signalled / (2.0 * cubic.signalled.sqrt()) - 1.0).abs() < 1e-9, "{both:?}");
    assert!((cubic.signalled..prague.signalled).contains(&both.signalled), "{both:?}");
}

/// RFC 8257 answers marks once a round trip, and grows in between as Reno does, also right after an answer.
#[test]
fn dctcp_and_prague_hear_as_many_marks_as_their_point_at_rest_says() {
    for cca in ["dctcp", "prague"] {
        let mut world = path::scenario(&[cca], 20, 40, "pie ecn", 60).into_inner();
        let App::Tcp { transport, .. } = &mut world.flows[0].app else { panic!("it is TCP") };
        transport.ecn = Some(EcnOffer::Accurate);
        let world = world.checked().expect("a scenario");
        let run = collect::run(&world, 1, &Options::default()).0;
        let value = |metric| run.flows[0].value(metric).expect("known");
        let heard = value("ce_packets") / value("arrived_packets");
        let rest = equilibrium(&world).expect("a point");
        assert!((heard / rest.signalled - 1.0).abs() < 0.15, "{cca}: {heard} {rest:?}");
    }
}

/// The first link of the scenario loses `loss` on its medium, and each flow's receive buffer has `buffer` bytes.
fn limited(scenario: Checked, loss: &str, buffer: Option<u64>) -> Scenario {
    let mut scenario = scenario.into_inner();
    scenario.links[0].loss = LossConfig::parse(loss).expect("a loss");
    for flow in &mut scenario.flows {
        let App::Tcp { transport, .. } = &mut flow.app else { continue };
        if let Some(bytes) = buffer {
            transport.most_receive_buffer = bytes;
            transport.initial_receive_buffer = transport.initial_receive_buffer.min(bytes);
        }
    }
    scenario
}

/// 1 % of loss keeps Reno at √(2·0.99/0.01) = 14.07 packets, of 66 that fit the pipe.
#[test]
fn losses_on_the_medium_keep_windows_from_filling_the_link() {
    for queue in ["pie", "pfifo limit 132", "red limit 400000 avpkt 1514 min 30000 max 90000"] {
        let scenario = limited(scenario(&["reno"; 2], 20, 40, queue), "1%", None);
        let rest = equilibrium(&scenario).expect("a point");
        let [flow, _] = rest.flows[..] else { panic!("two flows") };
        assert!((flow.window / 198f64.sqrt() - 1.0).abs() < 1e-9, "{flow:?}");
        assert_eq!((rest.queue, rest.wait, rest.signalled), (0.0, 0.0, 0.0), "{queue}");
        assert!(!rest.is_full());
        let sent = 2.0 * flow.window / flow.rtt;
        assert!((rest.utilisation / (sent * PACKET * 8.0 / 20e6) - 1.0).abs() < 1e-9, "{rest:?}");
        let arrives = flow.goodput / (1448.0 * 8.0) * flow.rtt;
        assert!((arrives / (0.99 * flow.window) - 1.0).abs() < 1e-9, "{flow:?}");
        assert!(rest.stability.expect("laws").is_stable());
    }
}

/// What the queue signals and what the medium loses together is what the square-root law asks for, and the queue
/// signals less the more is lost.
#[test]
fn the_queue_signals_what_losses_on_the_medium_leave() {
    let rest = |loss: &str| {
        let scenario = limited(scenario(&["reno"; 8], 20, 40, "pie"), loss, None);
        equilibrium(&scenario).expect("a point")
    };
    let (none, some) = (rest("none"), rest("0.5%"));
    assert!(none.signalled > some.signalled && some.signalled > 0.0 && some.is_full());
    let all = 1.0 - (1.0 - some.signalled) * 0.995;
    let flow = some.flows[0];
    assert!((flow.window / (2.0 * (1.0 - all) / all).sqrt() - 1.0).abs() < 1e-6, "{some:?}");
    let sum: f64 = some.flows.iter().map(|flow| flow.goodput).sum();
    assert!((sum / (20e6 * 0.995 * 1448.0 / PACKET) - 1.0).abs() < 1e-6, "{sum}");
}

/// 0.05 % of loss lets two flows of Reno have 63.2 packets each, more than the 67 of the pipe: the rest waits, and no
/// queue signals anything until it is as long as it steers to.
#[test]
fn a_queue_stands_below_its_target_where_losses_keep_windows_small() {
    let scenario = limited(scenario(&["reno"; 2], 20, 40, "pfifo limit 132"), "0.05%", None);
    let rest = equilibrium(&scenario).expect("a point");
    let flow = rest.flows[0];
    assert!((flow.window / (2.0f64 * 0.9995 / 0.0005).sqrt() - 1.0).abs() < 1e-9, "{flow:?}");
    let pipe = 20e6 / 8.0 / PACKET * (flow.rtt - rest.wait);
    assert!((rest.queue / (2.0 * flow.window - pipe) - 1.0).abs() < 1e-6, "{rest:?}");
    assert!(rest.is_full() && rest.signalled == 0.0 && rest.queue < 132.0);
    assert!(rest.stability.expect("laws").is_stable());
}

#[test]
fn buffers_limit_windows() {
    // Of 50 000 bytes of memory 19 segments are window, and half a packet of each window waits at the receiver.
    let window = 19.0 - 0.5;
    let of = |ccas: &[&str], mbps, loss| {
        equilibrium(&limited(scenario(ccas, mbps, 40, "pie"), loss, Some(50_000)))
    };
    let rest = of(&["reno", "cubic"], 20, "none").expect("a point");
    assert!(rest.flows.iter().all(|flow| (flow.window - window).abs() < 1e-9), "{rest:?}");
    assert!(!rest.is_full() && rest.stability.is_none());
    // Windows below what the buffer allows are as ever.
    let rest = of(&["reno"; 2], 20, "1%").expect("a point");
    assert!((rest.flows[0].window / 198f64.sqrt() - 1.0).abs() < 1e-9, "{rest:?}");
    // Four windows are more than a pipe of 5 Mbit/s, and PIE has to signal.
    let rest = of(&["reno"; 4], 5, "none").expect("a point");
    assert!(rest.is_full() && rest.signalled > 0.0 && rest.flows[0].window < window, "{rest:?}");
    // Two of them are more than a pipe of 9 Mbit/s, and less than one with 15 ms of queue.
    let rest = of(&["reno"; 2], 9, "none").expect("a point");
    assert!(rest.is_full() && rest.signalled == 0.0 && rest.wait < 0.015, "{rest:?}");
    let error = equilibrium(&limited(
        scenario(&["bbr"; 2], 20, 40, "pfifo limit 500"),
        "none",
        Some(50_000),
    ));
    assert!(error.expect_err("too small").to_string().contains("buffers allow"));
}

/// Without marks they cut as Reno does.
#[test]
fn dctcp_that_hears_of_no_marks_is_reno() {
    let window = |cca: &str, queue: &str| {
        equilibrium(&scenario(&[cca; 4], 20, 40, queue)).expect("a point").flows[0].window
    };
    for queue in ["pie", "pfifo limit 60"] {
        assert!((window("dctcp", queue) / window("reno", queue) - 1.0).abs() < 1e-9, "{queue}");
    }
}

/// Losses halve windows that marks alone would leave larger.
#[test]
fn dctcp_rests_where_marks_and_losses_cut_what_grows() {
    let rest = |loss: &str| {
        let scenario = scenario(
            &["dctcp"; 4],
            20,
            40,
            "red limit 400000 avpkt 1514 min 30000 max 90000 probability 0.5 ecn",
        );
        equilibrium(&limited(scenario, loss, None)).expect("a point")
    };
    let (none, some) = (rest("none"), rest("0.1%"));
    assert!(some.signalled < none.signalled, "{none:?} {some:?}");
    let (w, p) = (some.flows[0].window, some.signalled);
    let left = 0.999 - p * w / 2.0 * -libm::expm1(-w * p) - 0.001 * w * w / 2.0;
    assert!(left.abs() < 1e-6, "{left}");
}

#[test]
fn flows_that_never_meet_have_no_common_rest() {
    let mut scenario = scenario(&["reno"; 3], 20, 40, "pie").into_inner();
    scenario.flows[0].stop = Some(Span::from_secs(4));
    scenario.flows[1].start = Span::from_secs(5);
    let error = equilibrium(&scenario).expect_err("never together").to_string();
    assert!(error.contains("flow '0' ends at 4s, before flow '1' begins at 5s"), "{error}");
    scenario.flows[1].start = Span::from_secs(3);
    equilibrium(&scenario).expect("a second together");
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
        loss in prop::sample::select(vec!["none", "0.001%", "0.1%", "1%", "50%"]),
        buffer in prop::option::of(5_000u64..5_000_000),
    ) {
        if let Ok(rest) = equilibrium(&limited(scenario(&ccas, mbps, rtt, queue), loss, buffer)) {
            prop_assert!((0.0..=1.0).contains(&rest.utilisation));
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

/// Ware et al. describe version 1.
#[test]
fn a_closed_form_is_recommended_only_for_what_it_describes() {
    let refused = |cca: &str| {
        let problem = equilibrium(&scenario(&["cubic", cca], 20, 40, "pfifo limit 132"));
        problem.expect_err("no smooth law").to_string()
    };
    assert!(refused("bbr").contains("ware-bbr"));
    for cca in ["bbr2", "bbr3"] {
        let problem = refused(cca);
        assert!(problem.contains(cca) && !problem.contains("ware-bbr"), "{problem}");
    }
}
