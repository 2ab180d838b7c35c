//! The time that a packet takes on the link, as the kernel computes it for its shapers
//! (`psched_ratecfg`): framing, then a multiplication and a shift.

use sojourn_core::Rate;

/// How the link frames packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Framing {
    /// Bytes added to the length on Ethernet.
    pub overhead: u32,
    /// Smallest length after that.
    pub mpu: u32,
    pub link_layer: LinkLayer,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LinkLayer {
    #[default]
    Ethernet,
    /// 48 bytes of payload in cells of 53.
    Atm,
}

impl Framing {
    #[inline]
    pub(super) fn length(self, bytes: u32) -> u64 {
        let bytes = (u64::from(bytes) + u64::from(self.overhead)).max(u64::from(self.mpu));
        match self.link_layer {
            LinkLayer::Ethernet => bytes,
            LinkLayer::Atm => bytes.div_ceil(48) * 53,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pace {
    framing: Framing,
    /// Nanoseconds a byte, in fractions of 2 to the power of `shift`.
    mult: u64,
    shift: u32,
}

impl Pace {
    /// The bits that `mult` has at least, if the rate allows.
    const PRECISION: u32 = 32;

    pub(super) fn new(rate: Rate, framing: Framing) -> Self {
        let bytes_per_second = rate.as_bytes_per_sec().max(1);
        let mut factor = 1_000_000_000u64;
        let mut shift = 0;
        while (factor / bytes_per_second) >> (Self::PRECISION - 1) == 0
            && factor.leading_zeros() > 0
        {
            factor <<= 1;
            shift += 1;
        }
        Self { framing, mult: factor / bytes_per_second, shift }
    }

    /// In nanoseconds.
    #[inline]
    pub(super) fn time_for(self, bytes: u32) -> i64 {
        let time = (u128::from(self.framing.length(bytes)) * u128::from(self.mult)) >> self.shift;
        i64::try_from(time).unwrap_or(i64::MAX / 4)
    }
}
