//! Fair shares of a link among the classes that want some.

use alloc::vec::Vec;

/// Divides `capacity` by weights, and what a class leaves among the others: max–min. Paper "TCP BBR
/// Performance over Wi-Fi 6", equations (20) and (22), where an idle class would keep its share.
pub(super) fn divide(capacity: f64, wanted: &[f64], weights: &[f64], given: &mut [f64]) {
    let mut left = capacity;
    let mut open: Vec<usize> = (0..wanted.len()).filter(|class| wanted[*class] > 0.0).collect();
    given.fill(0.0);
    while !open.is_empty() {
        let sum: f64 = open.iter().map(|class| weights[*class]).sum();
        let unit = left / sum;
        let is_full = |class: &usize| wanted[*class] <= unit * weights[*class];
        if !open.iter().any(is_full) {
            open.iter().for_each(|class| given[*class] = unit * weights[*class]);
            return;
        }
        for class in open.extract_if(.., |class| is_full(class)) {
            given[class] = wanted[class];
            left -= wanted[class];
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_one_class_leaves_goes_to_the_others() {
        let mut given = [0.0; 3];
        divide(10.0, &[1.0, 9.0, 9.0], &[1.0, 1.0, 2.0], &mut given);
        assert_eq!(given, [1.0, 3.0, 6.0]);
        divide(10.0, &[0.0, 4.0, 3.0], &[1.0, 1.0, 1.0], &mut given);
        assert_eq!(given, [0.0, 4.0, 3.0]);
    }

    proptest! {
        #[test]
        fn the_link_is_never_idle_while_something_waits(
            wanted in prop::collection::vec(0.0..100.0f64, 1..8),
            capacity in 0.0..300.0f64,
        ) {
            let weights = alloc::vec![1.0; wanted.len()];
            let mut given = weights.clone();
            divide(capacity, &wanted, &weights, &mut given);
            let sum: f64 = given.iter().sum();
            let all: f64 = wanted.iter().sum();
            prop_assert!((sum - capacity.min(all)).abs() < 1e-9, "{sum}");
            prop_assert!(given.iter().zip(&wanted).all(|(given, wanted)| *given <= wanted + 1e-9));
        }
    }
}
