//! Fairness among flows, and harm done to one.

use alloc::vec;
use alloc::vec::Vec;

/// Jain's index (Σx)²/(n·Σx²), from 1/n (one has all) to 1 (all have the same). `None` of nothing
/// or when all are zero.
///
/// Flows that want less than their share lower it although nobody is unfair; see
/// [`jain_normalised`].
pub fn jain(values: &[f64]) -> Option<f64> {
    let sum: f64 = values.iter().sum();
    let squares: f64 = values.iter().map(|value| value * value).sum();
    (squares > 0.0).then(|| sum * sum / (values.len() as f64 * squares))
}

/// Jain's index after dividing each flow's value by what it could ask for: its demand, or its
/// max-min fair share of `capacity` if that is less. An unlimited demand is infinite. `None` if no
/// flow could ask for anything.
pub fn jain_normalised(flows: &[(f64, f64)], capacity: f64) -> Option<f64> {
    let fair = max_min(flows.iter().map(|(_, demand)| *demand).collect(), capacity);
    let parts: Vec<f64> = flows
        .iter()
        .zip(fair)
        .filter(|(_, fair)| *fair > 0.0)
        .map(|(flow, fair)| flow.0 / fair)
        .collect();
    jain(&parts)
}

/// Least over largest; `None` of nothing or when all are zero. RFC 5166 section 2.3 calls a share
/// ε-fair when this is at least 1 − ε.
pub fn min_max_ratio(values: &[f64]) -> Option<f64> {
    let least = values.iter().copied().reduce(f64::min)?;
    let largest = values.iter().copied().reduce(f64::max)?;
    (largest > 0.0).then(|| least / largest)
}

/// Whether more or less of a quantity is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Throughput, frame rate, opinion score.
    More,
    /// Delay, completion time, loss, stall.
    Less,
}

/// Harm after Ware et al., "Beyond Jain's Fairness Index" (HotNets 2019): how much worse a
/// flow is `beside` another than it was `alone`. 0 is none and 1 the worst; negative is a benefit
/// and is not clipped.
///
/// More is better: (alone − beside)/alone. Less is better: (beside − alone)/beside. Nothing on
/// both sides is no harm; stall that appears from nothing is 1; throughput that appears from
/// nothing, and delay that vanishes, are a benefit without bound (−∞).
pub fn harm(alone: f64, beside: f64, better: Better) -> f64 {
    let (reference, loss) = match better {
        Better::More => (alone, alone - beside),
        Better::Less => (beside, beside - alone),
    };
    if loss == 0.0 { 0.0 } else { loss / reference }
}

/// Max-min fair shares of `capacity`: no flow gets more than its demand, and the others share the
/// rest.
fn max_min(demands: Vec<f64>, capacity: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..demands.len()).collect();
    order.sort_by(|left, right| demands[*left].total_cmp(&demands[*right]));
    let mut parts = vec![0.0; demands.len()];
    let mut left = capacity;
    for (served, at) in order.iter().enumerate() {
        let equal = left / (demands.len() - served) as f64;
        parts[*at] = demands[*at].min(equal);
        left -= parts[*at];
    }
    parts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn near(left: Option<f64>, right: f64) -> bool {
        left.is_some_and(|left| (left - right).abs() < 5e-4)
    }

    #[test]
    fn jains_index_of_known_shares() {
        assert_eq!(jain(&[5.0, 5.0, 5.0]), Some(1.0));
        assert_eq!(jain(&[1.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert!(near(jain(&[1.01, 37.5]), 0.527));
        assert!(near(jain(&[0.87, 37.5]), 0.523));
        assert_eq!((jain(&[]), jain(&[0.0, 0.0])), (None, None));
    }

    #[test]
    fn a_flow_that_wants_little_and_has_it_is_not_treated_unfairly() {
        let flows = [(1.0, 1.0), (37.0, f64::INFINITY)];
        assert!(near(jain_normalised(&flows, 38.0), 1.0));
        let starved = [(0.5, 1.0), (37.5, f64::INFINITY)];
        assert!(jain_normalised(&starved, 38.0).expect("demand") < 0.95);
        assert_eq!(max_min(vec![1.0, 10.0, f64::INFINITY], 12.0), [1.0, 5.5, 5.5]);
        assert_eq!(jain_normalised(&[(0.0, 0.0)], 10.0), None);
    }

    #[test]
    fn least_over_largest() {
        assert_eq!(min_max_ratio(&[2.0, 8.0, 4.0]), Some(0.25));
        assert_eq!((min_max_ratio(&[]), min_max_ratio(&[0.0])), (None, None));
    }

    #[test]
    fn harm_is_relative_to_the_better_side() {
        assert_eq!(harm(10.0, 4.0, Better::More), 0.6);
        assert_eq!(harm(20.0, 80.0, Better::Less), 0.75);
        assert_eq!(harm(10.0, 12.0, Better::More), -0.2);
        assert_eq!(harm(10.0, 0.0, Better::More), 1.0);
    }

    #[test]
    fn harm_from_and_to_nothing() {
        assert_eq!(harm(0.0, 0.0, Better::Less), 0.0);
        assert_eq!(harm(0.0, 0.0, Better::More), 0.0);
        assert_eq!(harm(0.0, 3.0, Better::Less), 1.0);
        assert_eq!(harm(3.0, 0.0, Better::Less), f64::NEG_INFINITY);
        assert_eq!(harm(0.0, 3.0, Better::More), f64::NEG_INFINITY);
    }

    proptest! {
        #[test]
        fn jains_index_lies_between_one_nth_and_one(values in prop::collection::vec(0.0..1e9f64, 1..40)) {
            if let Some(index) = jain(&values) {
                let least = 1.0 / values.len() as f64;
                prop_assert!(index >= least - 1e-12 && index <= 1.0 + 1e-12);
            }
        }

        #[test]
        fn max_min_parts_use_the_capacity_or_meet_the_demands(
            demands in prop::collection::vec(0.0..100.0f64, 1..20), capacity in 0.0..500.0f64,
        ) {
            let used: f64 = max_min(demands.clone(), capacity).iter().sum();
            let wanted: f64 = demands.iter().sum();
            prop_assert!((used - wanted.min(capacity)).abs() < 1e-9);
        }
    }
}
