/// Turns bytes into nanoseconds at a rate, without losing the remainder.
///
/// Most packets have the same size as the one before, so the last division is cached.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    /// Bits per second, not zero.
    rate: u64,
    bytes: u32,
    taken: Taken,
}

/// `ns` whole nanoseconds and `rest / rate` of another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) ns: u64,
    pub(super) rest: u64,
}

/// Sums of two remainders must fit in 64 bits.
const MAX_RATE: u64 = 1 << 62;

impl Clock {
    /// `rate` in bits per second; must not be zero.
    pub(super) fn new(rate: u64) -> Self {
        assert!(rate > 0, "a clock needs a rate above zero");
        Self { rate: rate.min(MAX_RATE), bytes: 0, taken: Taken::default() }
    }

    #[inline]
    pub(super) fn rate(&self) -> u64 {
        self.rate
    }

    pub(super) fn set_rate(&mut self, rate: u64) {
        if rate != self.rate {
            *self = Self::new(rate);
        }
    }

    #[inline]
    pub(super) fn time_for(&mut self, bytes: u32) -> Taken {
        if bytes != self.bytes {
            let work = work(bytes);
            self.bytes = bytes;
            self.taken = Taken { ns: work / self.rate, rest: work % self.rate };
        }
        self.taken
    }
}

/// The bytes whose transmission takes this [`work`].
pub(super) fn bytes_of(work: u128) -> f64 {
    work as f64 / 8e9
}

/// Bits times 10⁹; a link does `rate` of it in a nanosecond.
#[inline]
pub(super) fn work(bytes: u32) -> u64 {
    // Saturates above 2.3 GB, which no packet has.
    u64::from(bytes).saturating_mul(8_000_000_000)
}
