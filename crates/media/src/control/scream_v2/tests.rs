//! The equilibria that the draft and libwebrtc's tests name.

use crate::control::testing::World;

/// libwebrtc's acceptance: over a link of 1 Mbit/s that marks, 650 to 1100 kbit/s.
#[test]
fn a_marking_link_of_a_megabit_is_used() {
    let mut world = World::new("scream-v2", 1e6, 6_000_000);
    world.delay = sojourn_core::Span::from_millis(25);
    world.step = Some(0.005);
    let seen = world.run(60);
    assert!((0.65e6..=1.1e6).contains(&seen.target), "{seen:?}");
    assert!(seen.queue < 0.025, "{seen:?}");
}

/// libwebrtc's acceptance: 2 Mbit/s limited by delay alone, 1.5 to 2.5.
#[test]
fn a_link_that_only_queues_is_used() {
    let seen = World::new("scream-v2", 2e6, 6_000_000).run(60);
    assert!((1.2e6..=2.5e6).contains(&seen.target), "{seen:?}");
    assert!(seen.queue < 0.060, "{seen:?}");
}

/// At most two marks in a round trip (the draft's equilibrium; delays and small windows may make it fewer).
#[test]
fn marks_come_about_twice_in_a_round_trip() {
    let mut world = World::new("scream-v2", 4e6, 20_000_000);
    world.delay = sojourn_core::Span::from_millis(12);
    world.step = Some(0.001);
    let seen = world.run(60);
    assert!((0.2..=2.5).contains(&seen.marks), "{seen:?}");
}

#[test]
fn an_idle_link_is_used_up_to_the_largest_rate() {
    let seen = World::new("scream-v2", 20e6, 3_000_000).run(60);
    assert!((seen.target / 3e6 - 1.0).abs() < 0.01, "{seen:?}");
}

/// The window stays above MIN_REF_WND whatever the loss.
#[test]
fn constant_loss_lowers_the_rate_but_not_to_nothing() {
    let mut world = World::new("scream-v2", 20e6, 6_000_000);
    world.loss_every = 50;
    let seen = world.run(60);
    assert!((0.2e6..6e6).contains(&seen.target), "{seen:?}");
}
