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
    // Each bucket has three numbers, and each number has one last byte.
    let numbers = bytes.iter().filter(|byte| **byte < MORE).count();
    let mut buckets = Vec::with_capacity(numbers.div_ceil(3));
    let (mut next, mut width) = (0u64, 0);
    while let Some(gap) = read_varint(&mut bytes) {
        let (Some(change), Some(samples)) = (read_varint(&mut bytes), read_varint(&mut bytes))
        else {
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

/// The bit that says that a number goes on in the next byte.
const MORE: u8 = 0x80;

/// Takes a number from the beginning of the bytes; `None`, and nothing is taken, if none ends there.
#[inline(always)]
fn read_varint(bytes: &mut &[u8]) -> Option<u64> {
    match bytes.split_first() {
        // Most are small.
        Some((first, rest)) if *first < MORE => {
            *bytes = rest;
            Some(u64::from(*first))
        }
        _ => read_long_varint(bytes),
    }
}

fn read_long_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for (at, byte) in bytes.iter().take(10).enumerate() {
        number |= u64::from(byte & !MORE) << (7 * at);
        if *byte < MORE {
            *bytes = &bytes[at + 1..];
            return Some(number);
        }
    }
    None
}
