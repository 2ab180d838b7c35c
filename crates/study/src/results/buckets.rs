//! Buckets of delays, and how the journal has them: of each how many values are left out since the one before, what its width
//! has other than that one's, and how many samples it has. Buckets are in ascending order and most of an octave are as wide, so
//! these are small, and small numbers take few bytes: seven bits in each.

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
    let (mut next, mut width) = (0u64, 0);
    for Bucket { low_ns, high_ns, samples } in buckets {
        let own = high_ns.wrapping_sub(*low_ns);
        write_varint(low_ns.wrapping_sub(next), &mut bytes);
        write_varint(own ^ width, &mut bytes);
        write_varint(*samples, &mut bytes);
        (next, width) = (high_ns.wrapping_add(1), own);
    }
    Lump(bytes).serialize(serializer)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<Bucket>, D::Error> {
    let mut bytes = <&[u8]>::deserialize(deserializer)?;
    let mut number = || read_varint(&mut bytes);
    let (mut buckets, mut next, mut width) = (Vec::new(), 0u64, 0);
    while let Some(gap) = number() {
        let (Some(change), Some(samples)) = (number(), number()) else {
            return Err(D::Error::custom("a part of a bucket"));
        };
        width ^= change;
        let low_ns = next.wrapping_add(gap);
        let high_ns = low_ns.wrapping_add(width);
        buckets.push(Bucket { low_ns, high_ns, samples });
        next = high_ns.wrapping_add(1);
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
