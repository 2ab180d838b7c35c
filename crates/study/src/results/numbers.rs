//! Lists of numbers as the journal has them: bytes that are handed over all at once, where serde would take each
//! number alone.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Bytes that are written as one piece.
pub(super) struct Lump(pub(super) Vec<u8>);

impl Serialize for Lump {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

/// Numbers one behind the other.
pub(super) fn to_bytes<T: Copy, const N: usize>(
    values: &[T],
    of_one: impl Fn(T) -> [u8; N],
) -> Vec<u8> {
    let mut bytes = vec![0; values.len() * N];
    let (places, _) = bytes.as_chunks_mut();
    for (place, value) in places.iter_mut().zip(values) {
        *place = of_one(*value);
    }
    bytes
}

/// Series are in single precision, with not-a-number for missing values.
pub(super) mod single {
    use serde::de::Error as _;

    use super::*;

    pub(in crate::results) fn serialize<S: Serializer>(
        values: &[Option<f64>],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let of_one = |value: Option<f64>| value.map_or(f32::NAN, |v| v as f32).to_le_bytes();
        Lump(to_bytes(values, of_one)).serialize(serializer)
    }

    pub(in crate::results) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<Option<f64>>, D::Error> {
        let (values, rest) = <&[u8]>::deserialize(deserializer)?.as_chunks();
        if !rest.is_empty() {
            return Err(D::Error::custom("a part of a number"));
        }
        let there = |value: f32| Some(f64::from(value)).filter(|value| !value.is_nan());
        Ok(values.iter().map(|bytes| there(f32::from_le_bytes(*bytes))).collect())
    }
}
