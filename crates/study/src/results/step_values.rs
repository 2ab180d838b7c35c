//! A number for each step of a time series.

use std::fmt;
use std::ops::Range;

use serde::{Serialize, Serializer};

/// A number for each step; those of steps in which nothing was measured are missing. They have the precision of `f32`, as
/// in `series.parquet`, and take four bytes each, because an hour at a step of 10 ms has millions of them.
#[derive(Clone, Default)]
pub struct StepValues(Vec<f32>);

impl StepValues {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// `None` behind the last step, too.
    pub fn get(&self, step: usize) -> Option<f64> {
        self.0.get(step).copied().and_then(known)
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Option<f64>> + ExactSizeIterator + Clone {
        self.0.iter().copied().map(known)
    }

    /// Those of some steps that are not missing.
    ///
    /// # Panics
    /// There are not so many steps.
    pub fn known_in(&self, steps: Range<usize>) -> impl Iterator<Item = f64> + Clone {
        self.0[steps].iter().copied().filter_map(known)
    }

    /// Those that are not missing.
    pub fn known(&self) -> impl Iterator<Item = f64> + Clone {
        self.0.iter().copied().filter_map(known)
    }

    pub(super) fn singles(&self) -> &[f32] {
        &self.0
    }

    /// Of some steps.
    pub(super) fn part(&self, steps: Range<usize>) -> Self {
        Self(self.0[steps].to_vec())
    }

    pub(super) fn append(&mut self, mut next: Self) {
        self.0.append(&mut next.0);
    }

    /// With missing ones up to so many steps.
    pub(super) fn fill(&mut self, steps: usize) {
        self.0.resize(steps, f32::NAN);
    }
}

fn known(value: f32) -> Option<f64> {
    (!value.is_nan()).then_some(f64::from(value))
}

/// With NaN for what is missing.
impl From<Vec<f32>> for StepValues {
    fn from(values: Vec<f32>) -> Self {
        Self(values)
    }
}

impl FromIterator<Option<f64>> for StepValues {
    fn from_iter<I: IntoIterator<Item = Option<f64>>>(values: I) -> Self {
        Self(values.into_iter().map(|value| value.map_or(f32::NAN, |value| value as f32)).collect())
    }
}

impl PartialEq for StepValues {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl fmt::Debug for StepValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// As a list, with `null` for what is missing.
impl Serialize for StepValues {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_stays_missing() {
        let mut values: StepValues = [Some(1.5), None, Some(-2.0)].into_iter().collect();
        values.append([None, Some(7.0)].into_iter().collect());
        values.fill(6);
        let expected = [Some(1.5), None, Some(-2.0), None, Some(7.0), None];
        assert!(values.iter().eq(expected));
        assert_eq!((values.get(1), values.get(4), values.get(9)), (None, Some(7.0), None));
        assert_eq!(values.known().sum::<f64>(), 6.5);
        assert_eq!(values.known_in(2..5).collect::<Vec<_>>(), [-2.0, 7.0]);
        assert_eq!(values, expected.into_iter().collect());
        assert_eq!(serde_json::to_string(&values).unwrap(), "[1.5,null,-2.0,null,7.0,null]");
        assert_eq!(format!("{values:?}").matches("None").count(), 3);
    }
}
