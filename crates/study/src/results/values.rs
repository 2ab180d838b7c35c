//! The metrics of a row.

use std::ops::Index;

use serde::{Deserialize, Serialize};

/// A value for each metric of a table, of which most rows have few; only these take memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Vec<Option<f64>>", into = "Vec<Option<f64>>")]
pub struct Values {
    len: usize,
    /// The positions of those that are known, in ascending order, and what they are.
    at: Vec<u32>,
    known: Vec<Option<f64>>,
}

const UNKNOWN: &Option<f64> = &None;

impl Values {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The value of a metric by its position; `None` behind the last.
    pub fn get(&self, position: usize) -> Option<&Option<f64>> {
        (position < self.len).then(|| {
            let found = self.at.binary_search_by_key(&position, |at| *at as usize);
            found.map_or(UNKNOWN, |found| &self.known[found])
        })
    }

    /// The value of a further metric.
    pub fn push(&mut self, value: Option<f64>) {
        self.len += 1;
        self.set(self.len - 1, value);
    }

    /// # Panics
    /// There is no such metric.
    pub fn set(&mut self, position: usize, value: Option<f64>) {
        assert!(position < self.len, "{position} of {} metrics", self.len);
        match (self.at.binary_search(&(position as u32)), value) {
            (Ok(found), Some(_)) => self.known[found] = value,
            (Ok(found), None) => {
                self.at.remove(found);
                self.known.remove(found);
            }
            (Err(place), Some(_)) => {
                self.at.insert(place, position as u32);
                self.known.insert(place, value);
            }
            (Err(_), None) => {}
        }
    }

    /// All, in the order of the metrics.
    pub fn iter(&self) -> impl Iterator<Item = &Option<f64>> {
        self.into_iter()
    }

    /// Those that are known, with their positions.
    pub fn known(&self) -> impl Iterator<Item = (usize, f64)> {
        let pairs = self.at.iter().zip(&self.known);
        pairs.filter_map(|(at, value)| Some((*at as usize, (*value)?)))
    }
}

/// The values of a row, one after another.
#[derive(Clone, Debug)]
pub struct ValuesIter<'a> {
    values: &'a Values,
    next: usize,
    /// Of the known ones, the first that is not before `next`.
    next_known: usize,
}

impl<'a> Iterator for ValuesIter<'a> {
    type Item = &'a Option<f64>;

    fn next(&mut self) -> Option<&'a Option<f64>> {
        if self.next == self.values.len {
            return None;
        }
        let is_known = self.values.at.get(self.next_known) == Some(&(self.next as u32));
        self.next += 1;
        if !is_known {
            return Some(UNKNOWN);
        }
        self.next_known += 1;
        Some(&self.values.known[self.next_known - 1])
    }
}

impl<'a> IntoIterator for &'a Values {
    type Item = &'a Option<f64>;
    type IntoIter = ValuesIter<'a>;

    fn into_iter(self) -> ValuesIter<'a> {
        ValuesIter { values: self, next: 0, next_known: 0 }
    }
}

impl Index<usize> for Values {
    type Output = Option<f64>;

    /// # Panics
    /// There is no such metric.
    fn index(&self, position: usize) -> &Option<f64> {
        self.get(position).expect("a position of the table's metrics")
    }
}

impl FromIterator<Option<f64>> for Values {
    fn from_iter<T: IntoIterator<Item = Option<f64>>>(values: T) -> Self {
        let mut len = 0;
        let mut pairs: Vec<(u32, Option<f64>)> = Vec::new();
        for value in values {
            if value.is_some() {
                pairs.push((len as u32, value));
            }
            len += 1;
        }
        let at = pairs.iter().map(|(at, _)| *at).collect();
        let known = pairs.iter().map(|(_, value)| *value).collect();
        Self { len, at, known }
    }
}

impl From<Vec<Option<f64>>> for Values {
    fn from(values: Vec<Option<f64>>) -> Self {
        values.into_iter().collect()
    }
}

impl From<Values> for Vec<Option<f64>> {
    fn from(values: Values) -> Self {
        values.iter().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn values_are_those_of_a_list(
            mut list in prop::collection::vec(prop::option::of(-1e9..1e9f64), 0..50),
            sets in prop::collection::vec((0usize..50, prop::option::of(-1e9..1e9f64)), 0..20),
        ) {
            let mut values: Values = list.iter().copied().collect();
            for (at, value) in sets {
                if at < list.len() {
                    values.set(at, value);
                    list[at] = value;
                } else {
                    values.push(value);
                    list.push(value);
                }
            }
            prop_assert_eq!(values.len(), list.len());
            prop_assert_eq!(values.iter().copied().collect::<Vec<_>>(), list.clone());
            for at in 0..list.len() {
                prop_assert_eq!(values[at], list[at]);
            }
            prop_assert_eq!(values.get(list.len()), None);
            let known = values.known().map(|(at, value)| (at, Some(value)));
            let exact = list.iter().copied().enumerate().filter(|(_, value)| value.is_some());
            prop_assert!(known.eq(exact));
            prop_assert_eq!(Vec::from(values), list);
        }
    }
}
