//! Equilibria that follow from RFC 8698's equations.

use super::*;
use crate::control::testing::{PACKET_BITS, Seen, World};

/// Frames have one size, so that only the pacer makes the packets of a frame wait.
fn run(words: &str, rate: f64, rmax: u64, loss_every: u64) -> Seen {
    let mut world = World::new(words, rate, rmax);
    (world.noise, world.loss_every) = (0.0, loss_every);
    world.run(240)
}

/// In equilibrium, queueing is PRIO·XREF·RMAX/r: 15 ms at 1 Mbit/s with RMAX of 1.5 Mbit/s.
#[test]
fn a_flow_alone_settles_at_the_closed_form() {
    for (words, prio, xref, rate) in [
        ("nada", 1.0, 0.010, 1e6),
        ("nada", 1.0, 0.010, 0.7e6),
        ("nada xref=20ms", 1.0, 0.020, 1e6),
        ("nada prio=2", 2.0, 0.010, 1e6),
        ("nada", 1.0, 0.010, 1.3e6),
    ] {
        let seen = run(words, rate, 1_500_000, 0);
        let expected = prio * xref * 1.5e6 / rate;
        assert!((seen.rate / rate - 1.0).abs() < 0.03, "{words} {rate} {seen:?}");
        // NADA takes the least delay of 15 packets; the mean is higher by part of a packet's time.
        let above = seen.queue - expected;
        let packet = PACKET_BITS / rate;
        assert!(
            (-0.1 * expected..packet).contains(&above),
            "{words} {rate} {} {expected}",
            seen.queue
        );
    }
}

/// On a link faster than RMAX, the ramp-up ends at RMAX, without a queue.
#[test]
fn an_idle_link_is_ramped_up_to_the_largest_rate() {
    let seen = run("nada", 10e6, 1_500_000, 0);
    assert!((seen.by_delay / 1.5e6 - 1.0).abs() < 0.001 && seen.peak < 0.005, "{seen:?}");
}

/// With loss alone, DLOSS·(p/PLRREF)² = PRIO·XREF·RMAX/r: 1.25 % gives 0.64 of RMAX.
#[test]
fn loss_alone_has_its_closed_form() {
    let seen = run("nada", 200e6, 15_000_000, 80);
    assert!((seen.by_delay / 9.6e6 - 1.0).abs() < 0.05, "{}", seen.by_delay);
}

fn nada() -> Nada {
    let setup = Setup {
        now: Time::ZERO,
        start_rate: None,
        min_rate: Rate::from_bps(150_000),
        max_rate: Rate::from_bps(1_500_000),
        mtu: 1200,
        frames_per_second: 30.0,
        random: sojourn_core::StreamAddress { seed: 1, run: 0 }
            .stream(1, sojourn_core::Purpose::Controller),
    };
    Nada::new(&Config::default(), &setup)
}

/// γ = min(GAMMA_MAX, QBOUND/(rtt + DELTA + DFILT)) (equation 3): 50/(100 + 100 + 120).
#[test]
fn a_ramp_up_is_bounded_by_the_queueing_that_it_may_make() {
    let mut nada = nada();
    for packet in 0..100 {
        nada.received.add(Time::from_nanos(packet * 10_000_000), 500);
    }
    nada.update(Time::from_nanos(1_000_000_000), 0.1, 0.0);
    assert!((nada.r_ref / (400e3 * (1.0 + 50.0 / 320.0)) - 1.0).abs() < 1e-9, "{}", nada.r_ref);
    nada.r_ref = 150e3;
    nada.config.dfilt = Span::ZERO;
    nada.config.delta = Span::ZERO;
    nada.update(Time::from_nanos(1_000_000_000), 0.01, 0.0);
    assert!((nada.r_ref / 600e3 - 1.0).abs() < 1e-9, "{}", nada.r_ref);
}

#[test]
fn delay_above_the_threshold_is_warped_while_losses_are_expected() {
    let nada = nada();
    assert_eq!(nada.warped(0.049), 0.049);
    assert!((nada.warped(0.1) - 0.05 * libm::exp(-0.5)).abs() < 1e-12);
    let mut losses = Losses::new(Span::from_millis(500), 0.1);
    let mut packets = |count: u32, is_lost: bool| {
        for at in 0..count {
            losses.on_packet(Time::from_nanos(u64::from(at)), is_lost, false);
        }
        losses.expected(7.0)
    };
    assert_eq!(packets(100, false), 0.0);
    assert_eq!(packets(1, true), 1.0);
    packets(9, false);
    assert_eq!(packets(1, true), 1.0);
    assert_eq!(packets(70, false), 1.0);
    assert_eq!(packets(5, false), 0.5);
    assert_eq!(packets(5, false), 0.0);
}
