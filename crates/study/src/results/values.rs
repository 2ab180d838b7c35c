//! The metrics of a row.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::numbers::{Lump, from_bytes, to_bytes};

/// A value for each metric of a table, of which most rows have few; only these take memory.
///
/// To people it is written as a list with a value or null for each metric; otherwise as its parts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values {
    len: usize,
    /// Of each metric, whether its value is known, from the lowest bit of the first word on. The last
    /// word is not zero.
    is_known: Vec<u64>,
    /// The values that are known, in the order of the metrics.
    known: Vec<f64>,
}

impl Values {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The value of a metric by its position; `None` also behind the last.
    pub fn get(&self, position: usize) -> Option<f64> {
        self.is_known(position).then(|| self.known[self.known_before(position)])
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
        let (was_known, place) = (self.is_known(position), self.known_before(position));
        match value {
            Some(value) if was_known => self.known[place] = value,
            Some(value) => self.known.insert(place, value),
            None if was_known => drop(self.known.remove(place)),
            None => {}
        }
        if was_known != value.is_some() {
            self.flip(position);
        }
    }

    fn is_known(&self, position: usize) -> bool {
        let word = self.is_known.get(position / 64);
        word.is_some_and(|word| word >> (position % 64) & 1 == 1)
    }

    fn flip(&mut self, position: usize) {
        let words = self.is_known.len().max(position / 64 + 1);
        self.is_known.resize(words, 0);
        self.is_known[position / 64] ^= 1 << (position % 64);
        while self.is_known.last() == Some(&0) {
            self.is_known.pop();
        }
    }

    /// How many of the metrics before this position are known.
    pub(super) fn known_before(&self, position: usize) -> usize {
        let (words, bits) = (position / 64, position % 64);
        let whole = self.is_known.iter().take(words).map(|word| word.count_ones());
        let part = self.is_known.get(words).map_or(0, |word| (word & !(!0 << bits)).count_ones());
        (whole.sum::<u32>() + part) as usize
    }

    /// All, in the order of the metrics.
    pub fn iter(&self) -> impl Iterator<Item = Option<f64>> {
        let mut known = self.known.iter();
        (0..self.len).map(move |at| self.is_known(at).then(|| known.next().copied()).flatten())
    }

    /// Those that are known, with their positions.
    pub fn known(&self) -> impl Iterator<Item = (usize, f64)> {
        let positions = self
            .is_known
            .iter()
            .enumerate()
            .flat_map(|(at, word)| ones(*word).map(move |bit| at * 64 + bit));
        positions.zip(self.known.iter().copied())
    }

    /// Those that are known of 64 metrics, from a multiple of 64 on, with their positions among these.
    pub(super) fn of_word(&self, word: usize) -> impl Iterator<Item = (usize, f64)> {
        let bits = self.is_known.get(word).copied().unwrap_or(0);
        let before = if bits == 0 { self.known.len() } else { self.known_before(word * 64) };
        ones(bits).zip(self.known[before..].iter().copied())
    }

    /// Of so many metrics those that are known, by their positions in ascending order.
    pub(crate) fn of_known(len: usize, values: impl Iterator<Item = (usize, f64)>) -> Self {
        let (_, most) = values.size_hint();
        let mut known = Vec::with_capacity(most.unwrap_or(0));
        let mut is_known = Vec::with_capacity(len.div_ceil(64));
        let (mut at, mut word) = (0, 0);
        for (position, value) in values {
            while at < position / 64 {
                is_known.push(std::mem::take(&mut word));
                at += 1;
            }
            word |= 1 << (position % 64);
            known.push(value);
        }
        if word != 0 {
            is_known.push(word);
        }
        // Tables have many rows, which are not changed any more.
        known.shrink_to_fit();
        is_known.shrink_to_fit();
        Self { len, is_known, known }
    }
}

/// The positions of the bits of a word that are 1, from the lowest on.
fn ones(word: u64) -> impl Iterator<Item = usize> {
    // A word without its lowest bit has one bit less.
    let next = |word: &u64| Some(word & (word - 1)).filter(|word| *word != 0);
    let words = std::iter::successors(Some(word).filter(|word| *word != 0), next);
    words.map(|word| word.trailing_zeros() as usize)
}

impl FromIterator<Option<f64>> for Values {
    fn from_iter<T: IntoIterator<Item = Option<f64>>>(values: T) -> Self {
        let mut len = 0;
        let values = values.into_iter().enumerate().inspect(|(at, _)| len = at + 1);
        let all = Self::of_known(0, values.filter_map(|(at, value)| Some((at, value?))));
        Self { len, ..all }
    }
}

impl Serialize for Values {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match serializer.is_human_readable() {
            true => serializer.collect_seq(self.iter()),
            false => {
                let is_known = Lump(to_bytes(&self.is_known, u64::to_le_bytes));
                let known = Lump(to_bytes(&self.known, f64::to_le_bytes));
                (self.len, is_known, known).serialize(serializer)
            }
        }
    }
}

impl<'de> Deserialize<'de> for Values {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            return Ok(Vec::<Option<f64>>::deserialize(deserializer)?.into_iter().collect());
        }
        let (len, is_known, known) = <(usize, &[u8], &[u8])>::deserialize(deserializer)?;
        let part = || D::Error::custom("a part of a number");
        let is_known = from_bytes(is_known, u64::from_le_bytes).ok_or_else(part)?;
        let known = from_bytes(known, f64::from_le_bytes).ok_or_else(part)?;
        let all = Self { len, is_known, known };
        let last = all.is_known.last();
        let end = last.map_or(0, |last| all.is_known.len() * 64 - last.leading_zeros() as usize);
        let is_whole = last != Some(&0) && end <= len && all.known_before(end) == all.known.len();
        match is_whole {
            true => Ok(all),
            false => Err(D::Error::custom("metrics without values, or values without metrics")),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn values_are_those_of_a_list(
            mut list in prop::collection::vec(prop::option::of(-1e9..1e9f64), 0..150),
            sets in prop::collection::vec((0usize..150, prop::option::of(-1e9..1e9f64)), 0..20),
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
            prop_assert_eq!(values.iter().collect::<Vec<_>>(), list.clone());
            for (at, value) in list.iter().enumerate() {
                prop_assert_eq!(values.get(at), *value);
            }
            prop_assert_eq!(values.get(list.len()), None);
            let known = values.known().map(|(at, value)| (at, Some(value)));
            let exact = list.iter().copied().enumerate().filter(|(_, value)| value.is_some());
            prop_assert!(known.eq(exact.clone()));
            let words = (0..4).flat_map(|word| {
                values.of_word(word).map(move |(bit, value)| (word * 64 + bit, Some(value)))
            });
            prop_assert!(words.eq(exact));
            prop_assert_eq!(&values, &list.iter().copied().collect::<Values>());
            let text = serde_json::to_string(&values).unwrap();
            prop_assert_eq!(&serde_json::from_str::<Vec<Option<f64>>>(&text).unwrap(), &list);
            prop_assert_eq!(&serde_json::from_str::<Values>(&text).unwrap(), &values);
            let bytes = postcard::to_stdvec(&values).unwrap();
            prop_assert_eq!(postcard::from_bytes::<Values>(&bytes).unwrap(), values);
        }

        /// Whatever is read can be used.
        #[test]
        fn bytes_that_are_no_values_are_refused(
            len in 0usize..200,
            is_known in prop::collection::vec(any::<u64>(), 0..4),
            known in 0usize..260,
            rest in 0usize..2,
        ) {
            let words: Vec<u8> = is_known.iter().flat_map(|word| word.to_le_bytes()).collect();
            let bytes = postcard::to_stdvec(&(len, words, vec![1u8; known * 8 + rest])).unwrap();
            let end = (0..is_known.len() * 64).rev().find(|at| is_known[at / 64] >> (at % 64) & 1 == 1);
            let bits = is_known.iter().map(|word| word.count_ones() as usize).sum::<usize>();
            let is_good = rest == 0 && bits == known && end.is_none_or(|end| end < len) && is_known.last() != Some(&0);
            let values = postcard::from_bytes::<Values>(&bytes);
            prop_assert_eq!(values.is_ok(), is_good);
            if let Ok(values) = values {
                prop_assert_eq!(values.iter().flatten().count(), known);
            }
        }
    }
}
