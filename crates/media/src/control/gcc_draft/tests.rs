//! What the draft's equations give.

use super::*;
use crate::control::testing::World;

#[test]
fn an_idle_link_is_used_at_the_slower_of_both_rates() {
    let seen = World::new("gcc-draft", 20e6, 3_000_000).run(90);
    assert!((seen.target / 3e6 - 1.0).abs() < 0.01, "{:?}", seen.seconds);
    // The rate by loss rises by 5 % a report, the rate by delay by 8 % a second: the lower rate counts.
    let rise = seen.seconds[20] / seen.seconds[10];
    assert!((rise / libm::pow(1.05, 10.0) - 1.0).abs() < 0.03, "{rise}");
}

#[test]
fn a_link_is_used_without_a_standing_queue() {
    let seen = World::new("gcc-draft", 1e6, 3_000_000).run(120);
    assert!((0.6e6..=1.02e6).contains(&seen.target), "{seen:?}");
    assert!(seen.queue < 0.100, "{seen:?}");
}

/// Each paced packet is a group of its own and arrives at most a few milliseconds later than the one before. By the
/// draft's text that is no over-use, however long the queue gets.
#[test]
fn by_the_letter_an_over_use_by_paced_packets_is_never_noticed() {
    let seen = World::new("gcc-draft gain=1", 1e6, 1_500_000).run(120);
    assert!(seen.target > 1.49e6 && seen.queue > 10.0, "{seen:?}");
}

/// Section 6: 20 % of loss leave 90 % of the rate a report, 5 % leave it as it is.
#[test]
fn loss_has_three_ranges() {
    let config = Config::default();
    let mut world = World::new("gcc-draft", 20e6, 3_000_000);
    world.loss_every = 5;
    assert!(world.run(60).target < 160e3);
    let mut held = World::new("gcc-draft", 20e6, 3_000_000);
    held.loss_every = 20;
    let seen = held.run(60);
    assert!((seen.target / config.start.as_bps() as f64 - 1.0).abs() < 0.06, "{seen:?}");
}

/// A queue that grows by more than the threshold with each group is over-use once that has lasted for 10 ms.
#[test]
fn growth_above_the_threshold_is_over_use() {
    let mut filter = Filter::new(&Config::default());
    for _ in 0..200 {
        filter.on_group(0.0, 33.0);
    }
    assert_eq!(filter.usage(), Usage::Normal);
    // Without growth the threshold falls, but slowly: 0.00018 a millisecond.
    assert!(
        (filter.threshold() / (12.5 * libm::pow(1.0 - 0.00018 * 33.0, 200.0)) - 1.0).abs() < 1e-9
            || filter.threshold() == 6.0
    );
    let over = (1..200).find(|_| {
        filter.on_group(25.0, 33.0);
        filter.usage() == Usage::Over
    });
    assert!(over.is_some_and(|groups| groups < 60), "{over:?}");
}
