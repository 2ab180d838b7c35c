//! The receiver's estimate of the rate (draft-alvestrand-rmcat-remb-03 section 2.2).

use alloc::vec::Vec;

use sojourn_core::Rate;

use super::{PAYLOAD_FEEDBACK, RECEIVER, SENDER, begin, finish, put_u32, u32_at};

pub(super) const FORMAT: u8 = 15;

const NAME: u32 = u32::from_be_bytes(*b"REMB");
const MANTISSA_BITS: u32 = 18;

/// A receiver's estimate for one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remb {
    pub rate: Rate,
}

impl Remb {
    /// The message; the rate is cut to 18 significant bits.
    pub fn write(&self) -> Vec<u8> {
        let mut message = begin(FORMAT, PAYLOAD_FEEDBACK);
        put_u32(&mut message, RECEIVER);
        put_u32(&mut message, 0);
        put_u32(&mut message, NAME);
        let bits = self.rate.as_bps();
        let exponent = (u64::BITS - bits.leading_zeros()).saturating_sub(MANTISSA_BITS);
        let mantissa = (bits >> exponent) as u32;
        put_u32(&mut message, 1 << 24 | exponent << MANTISSA_BITS | mantissa);
        put_u32(&mut message, SENDER);
        finish(message)
    }

    pub(super) fn read(body: &[u8]) -> Option<Self> {
        if u32_at(body, 8)? != NAME {
            return None;
        }
        let word = u32_at(body, 12)?;
        let exponent = word >> MANTISSA_BITS & 0x3f;
        let mantissa = u64::from(word & ((1 << MANTISSA_BITS) - 1));
        let bits = mantissa.checked_shl(exponent)?;
        (bits >> exponent == mantissa).then(|| Self { rate: Rate::from_bps(bits) })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_estimate_is_24_bytes_and_exact_to_18_bits() {
        let remb = Remb { rate: Rate::from_bps(255_000) };
        assert_eq!(remb.write().len(), 24);
        assert_eq!(Remb::read(&remb.write()[4..]), Some(remb));
        let large = Remb { rate: Rate::from_bps(40_000_001) };
        assert_eq!(Remb::read(&large.write()[4..]).map(|r| r.rate.as_bps()), Some(40_000_000));
    }

    proptest! {
        #[test]
        fn a_rate_is_read_as_no_more_than_it_was_and_nearly_as_much(bps: u64) {
            let read = Remb::read(&Remb { rate: Rate::from_bps(bps) }.write()[4..]);
            let read = read.expect("just written").rate.as_bps();
            prop_assert!(read <= bps && bps - read <= bps >> 17);
        }

        #[test]
        fn anything_else_is_refused_or_read(body in prop::collection::vec(any::<u8>(), 0..32)) {
            Remb::read(&body);
        }
    }
}
