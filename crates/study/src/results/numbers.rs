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

/// Takes them from bytes; `None` if these end within a number.
pub(super) fn from_bytes<T, const N: usize>(
    bytes: &[u8],
    of_one: impl Fn([u8; N]) -> T,
) -> Option<Vec<T>> {
    let (numbers, rest) = bytes.as_chunks();
    rest.is_empty().then(|| numbers.iter().map(|bytes| of_one(*bytes)).collect())
}

/// For serde: numbers of a type as bytes.
macro_rules! as_bytes {
    ($module:ident $number:ty) => {
        pub(super) mod $module {
            use std::borrow::Cow;

            use serde::de::Error as _;

            use super::*;

            pub(in crate::results) fn serialize<S: Serializer>(
                values: &[$number],
                serializer: S,
            ) -> Result<S::Ok, S::Error> {
                Lump(to_bytes(values, <$number>::to_le_bytes)).serialize(serializer)
            }

            pub(in crate::results) fn deserialize<'de, D: Deserializer<'de>>(
                deserializer: D,
            ) -> Result<Cow<'static, [$number]>, D::Error> {
                let values =
                    from_bytes(<&[u8]>::deserialize(deserializer)?, <$number>::from_le_bytes);
                values.map(Cow::Owned).ok_or_else(|| D::Error::custom("a part of a number"))
            }
        }
    };
}

as_bytes!(single f32);
as_bytes!(double f64);
