//! A column written as a dictionary of its values, and for each row the place of its value there.

use super::hybrid::{Hybrid, width};

/// What columns with dictionaries hold.
pub(super) trait Value: Copy + PartialEq {
    /// Spread over all bits, most of all over the high ones.
    fn hash(self) -> u64;

    /// Appends it as Parquet stores it without a dictionary.
    fn write(self, bytes: &mut Vec<u8>);

    /// How many bytes that takes.
    fn size(self) -> usize;
}

/// An odd number whose bits are those of the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

impl Value for u32 {
    fn hash(self) -> u64 {
        u64::from(self).hash()
    }

    fn write(self, bytes: &mut Vec<u8>) {
        bytes.extend(self.to_le_bytes());
    }

    fn size(self) -> usize {
        size_of::<Self>()
    }
}

impl Value for u64 {
    fn hash(self) -> u64 {
        self.wrapping_mul(SPREAD)
    }

    fn write(self, bytes: &mut Vec<u8>) {
        bytes.extend(self.to_le_bytes());
    }

    fn size(self) -> usize {
        size_of::<Self>()
    }
}

impl Value for &str {
    fn hash(self) -> u64 {
        let add = |hash: u64, word: u64| (hash.rotate_left(23) ^ word).wrapping_mul(SPREAD);
        let (words, rest) = self.as_bytes().as_chunks::<8>();
        let hash =
            words.iter().fold(self.len() as u64, |hash, word| add(hash, u64::from_le_bytes(*word)));
        rest.iter().fold(hash, |hash, byte| add(hash, u64::from(*byte)))
    }

    fn write(self, bytes: &mut Vec<u8>) {
        bytes.extend((self.len() as u32).to_le_bytes());
        bytes.extend(self.as_bytes());
    }

    fn size(self) -> usize {
        size_of::<u32>() + self.len()
    }
}

/// A column with a dictionary.
pub(super) struct Dictionary {
    /// The values, each as it is written without a dictionary.
    pub(super) values: Vec<u8>,
    pub(super) count: u32,
    /// For each row that has a value, its place.
    pub(super) places: Vec<u8>,
}

impl Dictionary {
    /// Of values that come so many times each. `None` if that is no shorter than the values themselves.
    pub(super) fn of<T: Value>(runs: impl Iterator<Item = (T, u32)>) -> Option<Self> {
        let mut distinct = Distinct::new();
        let mut plain = 0;
        let mut places: Vec<(u32, u32)> = Vec::with_capacity(runs.size_hint().0);
        let mut before = None;
        for (value, times) in runs {
            plain += value.size() * times as usize;
            match places.last_mut() {
                Some((_, more)) if before == Some(value) => *more += times,
                _ => places.push((distinct.place(value), times)),
            }
            before = Some(value);
        }
        let count = distinct.values.len() as u32;
        let largest = count.checked_sub(1)?;
        let mut hybrid = Hybrid::new(largest, vec![width(largest) as u8]);
        places.iter().for_each(|(place, times)| hybrid.put(*place, *times));
        let places = hybrid.finish();
        let mut values = Vec::new();
        distinct.values.iter().for_each(|value| value.write(&mut values));
        (values.len() + places.len() < plain).then_some(Self { values, count, places })
    }
}

/// Different values in the order in which they came.
struct Distinct<T> {
    values: Vec<T>,
    /// One more than the place of a value, or 0, from the slot on that its hash says. At most half are taken, and how
    /// many there are is a power of two.
    slots: Vec<u32>,
    /// How many bits of a hash are more than the number of a slot has.
    shift: u32,
}

impl<T: Value> Distinct<T> {
    fn new() -> Self {
        Self { values: Vec::new(), slots: vec![0; 64], shift: u64::BITS - 6 }
    }

    /// The place of a value, which may be new.
    #[inline(always)]
    fn place(&mut self, value: T) -> u32 {
        let mut slot = self.slot(value);
        while let Some(place) = self.slots[slot].checked_sub(1) {
            if self.values[place as usize] == value {
                return place;
            }
            slot = self.after(slot);
        }
        self.add(value, slot)
    }

    /// A new value, for which a slot is free.
    #[inline(never)]
    fn add(&mut self, value: T, slot: usize) -> u32 {
        let place = self.values.len() as u32;
        self.values.push(value);
        self.slots[slot] = place + 1;
        if self.values.len() * 2 > self.slots.len() {
            self.grow();
        }
        place
    }

    fn slot(&self, value: T) -> usize {
        (value.hash() >> self.shift) as usize
    }

    fn after(&self, slot: usize) -> usize {
        (slot + 1) & (self.slots.len() - 1)
    }

    fn grow(&mut self) {
        self.slots = vec![0; self.slots.len() * 4];
        self.shift -= 2;
        for place in 0..self.values.len() {
            let mut slot = self.slot(self.values[place]);
            while self.slots[slot] > 0 {
                slot = self.after(slot);
            }
            self.slots[slot] = place as u32 + 1;
        }
    }
}
