//! Names for content: the first half of its SHA-256.

use std::fmt;
use std::io::{self, BufWriter};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

/// 128 bits; printed as 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 16]);

impl Digest {
    pub fn of(bytes: &[u8]) -> Self {
        let whole: [u8; 32] = Sha256::digest(bytes).into();
        Self::half(whole)
    }

    fn half(whole: [u8; 32]) -> Self {
        let mut half = [0; 16];
        half.copy_from_slice(&whole[..16]);
        Self(half)
    }

    /// Of a value's JSON, which is never in memory as a whole.
    pub fn of_json(value: &impl Serialize) -> Self {
        let mut hashing = BufWriter::new(Sha(Sha256::new()));
        // What is named so is texts and numbers, so printing can't fail.
        let _ = serde_json::to_writer(&mut hashing, value);
        let Ok(Sha(hasher)) = hashing.into_inner() else { unreachable!("hashing does not fail") };
        Self::half(hasher.finalize().into())
    }

    fn parse(text: &str) -> Option<Self> {
        let is_printed = |digit: u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
        let is_one = text.len() == 32 && text.bytes().all(is_printed);
        is_one
            .then(|| u128::from_str_radix(text, 16).ok().map(|number| Self(number.to_be_bytes())))?
    }
}

struct Sha(Sha256);

impl io::Write for Sha {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'_, str>>::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
            D::Error::custom(format!("'{text}' is no name: 32 hexadecimal digits are"))
        })
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FIPS 180-2, appendix B.1.
    #[test]
    fn the_name_of_abc_is_the_first_half_of_its_published_sha_256() {
        assert_eq!(Digest::of(b"abc").to_string(), "ba7816bf8f01cfea414140de5dae2223");
    }

    #[test]
    fn a_name_is_read_as_it_is_printed_and_nothing_else_is_one() {
        let name = Digest::of(b"abc");
        let text = serde_json::to_string(&name).unwrap();
        assert_eq!(serde_json::from_str::<Digest>(&text).unwrap(), name);
        assert_eq!(Digest::of_json(&[name]), Digest::of(format!("[{text}]").as_bytes()));
        for wrong in
            ["", "ba78", "BA7816BF8F01CFEA414140DE5DAE2223", "+a7816bf8f01cfea414140de5dae2223"]
        {
            assert!(serde_json::from_str::<Digest>(&format!("\"{wrong}\"")).is_err(), "{wrong}");
        }
    }
}
