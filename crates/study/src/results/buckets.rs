//! Buckets of delays, and how the journal has them: of each how far it is from the one before, how wide it is, and how
//! many samples it has. Buckets are in ascending order, so these are small, and small numbers take few bytes: seven bits in each.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::hybrid::write_varint;
use super::numbers::Lump;

/// How many samples were between two values, both included. A bucket is at most 0.4 % wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    pub low_ns: u64,
    pub high_ns: u64,
    pub samples: u64,
}

pub(super) fn serialize<S: Serializer>(
    buckets: &[Bucket],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut bytes = Vec::with_capacity(8 * buckets.len());
    let mut before = 0;
    for Bucket { low_ns, high_ns, samples } in buckets {
        write_varint(low_ns.wrapping_sub(before), &mut bytes);
        write_varint(high_ns.wrapping_sub(*low_ns), &mut bytes);
        write_varint(*samples, &mut bytes);
        before = *high_ns;
    }
    Lump(bytes).serialize(serializer)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<Bucket>, D::Error> {
    let mut bytes = <&[u8]>::deserialize(deserializer)?;
    let mut next = || read_varint(&mut bytes);
    let (mut buckets, mut before) = (Vec::new(), 0u64);
    while let Some(gap) = next() {
        let (Some(width), Some(samples)) = (next(), next()) else {
            return Err(D::Error::custom("a part of a bucket"));
        };
        let low_ns = before.wrapping_add(gap);
        let high_ns = low_ns.wrapping_add(width);
        buckets.push(Bucket { low_ns, high_ns, samples });
        before = high_ns;
    }
    match bytes.is_empty() {
        true => Ok(buckets),
        false => Err(D::Error::custom("a number that does not end")),
    }
}

/// Takes a number from the beginning of the bytes; `None`, and nothing is taken, if none ends there.
fn read_varint(bytes: &mut &[u8]) -> Option<u64> {
    let length = bytes.iter().take(10).position(|byte| *byte < 0x80)? + 1;
    let (number, rest) = bytes.split_at(length);
    *bytes = rest;
    Some(number.iter().rev().fold(0, |sum, byte| sum << 7 | u64::from(byte & 0x7f)))
}
