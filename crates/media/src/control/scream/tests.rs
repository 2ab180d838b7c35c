//! Equilibria that follow from RFC 8298.

use crate::control::testing::World;

/// Queueing stays below its target of 100 ms (section 4.1.2.2), and the link is used.
#[test]
fn a_flow_alone_uses_the_link_below_its_delay_target() {
    for rate in [1e6, 2e6] {
        let seen = World::new("scream compensate=off", rate, 6_000_000).run(120);
        assert!(
            (0.7..=1.02).contains(&(seen.target / rate)),
            "{rate} {} {}",
            seen.target,
            seen.queue
        );
        assert!(seen.queue < 0.100, "{rate} {}", seen.queue);
    }
}

/// The rate rises by at most RAMP_UP_SPEED a second and by at least a fifth of it, up to the largest rate.
#[test]
fn the_rate_rises_by_the_ramp_up_speed() {
    let seen = World::new("scream", 20e6, 1_500_000).run(30);
    let rises = seen.seconds.windows(2).map(|pair| pair[1] - pair[0]);
    let most = rises.fold(0.0, f64::max);
    assert!((150e3..=201e3).contains(&most), "{:?}", seen.seconds);
    assert!((seen.target / 1.5e6 - 1.0).abs() < 0.01, "{:?}", seen.seconds);
}

#[test]
fn loss_lowers_the_rate() {
    let mut world = World::new("scream", 20e6, 3_000_000);
    world.loss_every = 50;
    let seen = world.run(60);
    assert!((150e3..2e6).contains(&seen.target), "{:?}", seen.seconds);
}
