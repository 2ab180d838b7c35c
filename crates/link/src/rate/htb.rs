//! A single class of Linux's `htb`, as `tc` writes one.

use alloc::format;
use core::fmt;

use sojourn_core::param::{Maybe, Needed, Style, TcRate, TcSize, size, whole};
use sojourn_core::{Bytes, Param, Params, Rate, SpecError, Words};

use crate::TokenBucket;
use crate::notation::POSITIVE;

sojourn_core::params! {
    /// A class as it is written.
    pub(super) struct Written: "htb", "A single class of Linux's htb", check nobody_to_borrow_from {
        rate: Rate as Needed<TcRate> = "", POSITIVE, "Rate of the class";
        ceil: Option<Rate> as Maybe<TcRate> = "rate", POSITIVE,
            "Must equal the rate: a single class has nobody to borrow from";
        burst: Option<Bytes> as Maybe<TcSize> = Param::of::<Maybe<TcSize>>(
            "burst",
            "1600",
            "Bytes that leave at once after idleness; tc derives rate/HZ + mtu with HZ = 10^9",
        ).or(&["buffer", "maxburst"]);
        cburst: Option<Bytes> as Maybe<TcSize> = Param::of::<Maybe<TcSize>>(
            "cburst",
            "1600",
            "The same at the ceil; the smaller of both counts, so raise both",
        ).or(&["cbuffer", "cmaxburst"]);
        mtu: Bytes as TcSize = Param::of::<TcSize>(
            "mtu", "1600", "What the bursts are derived from if they are not given",
        ).quiet();
        quantum: Option<Bytes> as Maybe<TcSize> = "rate/10", size(1, u32::MAX as u64),
            "Bytes of a turn among siblings, derived and cut as Linux does; a single class has none";
        r2q: u32 = Param::of::<u32>(
            "r2q", "10", "What the rate in bytes is divided by to derive the quantum",
        ).within(whole(1, u32::MAX as i64)).quiet();
        overhead: u32 = "0", whole(0, 65_535), "Bytes added to each packet of the queue";
    }
}

fn nobody_to_borrow_from(written: &Written) -> Result<(), SpecError> {
    let Written { rate, ceil, .. } = written;
    match ceil {
        Some(ceil) if ceil != rate => {
            Err(SpecError::new(format!("htb: ceil {ceil} differs from rate {rate}"))
                .allow([format!("ceil {rate}: a single class has nobody to borrow from")]))
        }
        _ => Ok(()),
    }
}

/// A class with everything that `tc` and Linux derive.
#[derive(Clone, Debug, PartialEq)]
pub struct HtbSpec {
    pub rate: Rate,
    pub burst: Bytes,
    pub cburst: Bytes,
    pub quantum: u32,
    pub overhead: u32,
}

/// What a class does to packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HtbClass {
    pub rate: Rate,
    pub burst: Bytes,
    /// Bytes added to each packet of the queue.
    pub overhead: u32,
}

impl HtbSpec {
    pub(super) fn parse(words: &mut Words<'_>) -> Result<Self, SpecError> {
        let Written { rate, burst, cburst, mtu, quantum, r2q, overhead, .. } =
            Written::parse(words)?;
        let derived = TokenBucket::default_burst(rate, mtu);
        let quantum = quantum.map(|quantum| quantum.as_u64() as u32);
        Ok(Self {
            rate,
            burst: burst.unwrap_or(derived),
            cburst: cburst.unwrap_or(derived),
            quantum: quantum.unwrap_or_else(|| TokenBucket::default_quantum(rate, r2q)),
            overhead,
        })
    }

    pub(super) fn class(&self) -> HtbClass {
        let Self { rate, burst, cburst, quantum: _, overhead } = *self;
        // Both buckets fill at one rate and pay the same, so the smaller one decides.
        HtbClass { rate, burst: burst.min(cburst), overhead }
    }
}

impl HtbClass {
    pub(super) fn check(&self) -> Result<(), SpecError> {
        self.written().check()
    }

    pub(super) fn build(&self) -> TokenBucket {
        TokenBucket::new(self.rate, self.burst, self.overhead)
    }

    fn written(&self) -> Written {
        let Self { rate, burst, overhead } = *self;
        Written { rate, burst: Some(burst), overhead, ..Written::default() }
    }
}

impl fmt::Display for HtbSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rate, burst, cburst, quantum, overhead } = *self;
        let written = Written {
            rate,
            burst: Some(burst),
            cburst: Some(cburst),
            quantum: Some(Bytes::new(quantum.into())),
            overhead,
            ..Written::default()
        };
        f.write_str(&written.written(Style::Blank))
    }
}

impl fmt::Display for HtbClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written().written(Style::Blank))
    }
}
