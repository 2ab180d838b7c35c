//! Time, span, rate and size: integers with a unit, exact arithmetic, parsed from and printed in
//! the notation that users of `tc` and `iperf3` write.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::vec::Vec;
use core::fmt;
use core::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};
use core::str::FromStr;

use crate::error::SpecError;

/// A moment of a run, in nanoseconds since the run began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    pub const ZERO: Self = Self(0);
    /// Later than any moment of a run: the answer of a machine that has no wake time.
    pub const NEVER: Self = Self(u64::MAX);

    pub const fn from_nanos(ns: u64) -> Self {
        Self(ns)
    }

    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The span since `earlier`, or zero when `earlier` lies ahead.
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// The span since `earlier`, which must not lie ahead. It costs one instruction, where
    /// [`Time::since`] costs three.
    #[inline]
    pub const fn after(self, earlier: Self) -> Span {
        debug_assert!(earlier.0 <= self.0, "time goes on");
        Span(self.0.wrapping_sub(earlier.0))
    }

    /// The moment `span` later, which must not be beyond all time. It costs one instruction instead
    /// of three.
    #[inline]
    pub const fn later(self, span: Span) -> Self {
        debug_assert!(self.0.checked_add(span.0).is_some(), "no run is so long");
        Self(self.0.wrapping_add(span.0))
    }

    pub const fn is_never(self) -> bool {
        self.0 == u64::MAX
    }
}

impl Add<Span> for Time {
    type Output = Self;
    #[inline]
    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Sub<Span> for Time {
    type Output = Self;
    /// Stops at the beginning of the run.
    fn sub(self, span: Span) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6}s", self.as_secs_f64())
    }
}

/// A length of time, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(u64);

impl Span {
    pub const ZERO: Self = Self(0);
    pub const MAX: Self = Self(u64::MAX);

    pub const fn from_nanos(ns: u64) -> Self {
        Self(ns)
    }

    pub const fn from_micros(us: u64) -> Self {
        Self(us * 1_000)
    }

    pub const fn from_millis(ms: u64) -> Self {
        Self(ms * 1_000_000)
    }

    pub const fn from_secs(s: u64) -> Self {
        Self(s * 1_000_000_000)
    }

    /// Rounds to the nearest nanosecond; negative and not-a-number give zero.
    pub fn from_secs_f64(s: f64) -> Self {
        Self((s * 1e9 + 0.5) as u64)
    }

    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add for Span {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Span {
    type Output = Self;
    /// Stops at zero.
    fn sub(self, other: Self) -> Self {
        self.saturating_sub(other)
    }
}

impl Mul<u64> for Span {
    type Output = Self;
    fn mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

impl Div<u64> for Span {
    type Output = Self;
    fn div(self, divisor: u64) -> Self {
        Self(self.0 / divisor)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0;
        match ns {
            0 => f.write_str("0s"),
            _ if ns.is_multiple_of(1_000_000_000) => write!(f, "{}s", ns / 1_000_000_000),
            _ if ns.is_multiple_of(1_000_000) => write!(f, "{}ms", ns / 1_000_000),
            _ if ns.is_multiple_of(1_000) => write!(f, "{}us", ns / 1_000),
            _ => write!(f, "{ns}ns"),
        }
    }
}

/// Bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

impl Rate {
    pub const ZERO: Self = Self(0);
    /// Above every rate: there is no serialisation delay.
    pub const UNLIMITED: Self = Self(u64::MAX);

    pub const fn from_bps(bps: u64) -> Self {
        Self(bps)
    }

    pub const fn from_bytes_per_sec(bytes: u64) -> Self {
        Self(bytes.saturating_mul(8))
    }

    pub const fn as_bps(self) -> u64 {
        self.0
    }

    pub const fn as_bytes_per_sec(self) -> u64 {
        self.0 / 8
    }

    pub fn as_mbps(self) -> f64 {
        self.0 as f64 / 1e6
    }

    pub const fn is_unlimited(self) -> bool {
        self.0 == u64::MAX
    }

    /// The time that `bytes` take at this rate, rounded down; zero when unlimited and
    /// [`Span::MAX`] at rate zero.
    #[inline]
    pub const fn time_for(self, bytes: u64) -> Span {
        if self.is_unlimited() {
            return Span::ZERO;
        }
        if self.0 == 0 {
            return Span::MAX;
        }
        // 2^64 / (8 · 10^9) bytes fit into 64 bits; every packet and most buffers are smaller.
        if bytes < 2_305_843_009 {
            Span(bytes * 8_000_000_000 / self.0)
        } else {
            Span((bytes as u128 * 8_000_000_000 / self.0 as u128) as u64)
        }
    }

    /// The whole bytes that pass in `span`.
    pub const fn bytes_in(self, span: Span) -> u64 {
        (self.0 as u128 * span.0 as u128 / 8_000_000_000) as u64
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bps = self.0;
        match bps {
            u64::MAX => f.write_str("unlimited"),
            0 => f.write_str("0bit"),
            _ if bps.is_multiple_of(1_000_000_000) => write!(f, "{}gbit", bps / 1_000_000_000),
            _ if bps.is_multiple_of(1_000_000) => write!(f, "{}mbit", bps / 1_000_000),
            _ if bps.is_multiple_of(1_000) => write!(f, "{}kbit", bps / 1_000),
            _ => write!(f, "{bps}bit"),
        }
    }
}

/// A size in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(u64);

impl Bytes {
    pub const ZERO: Self = Self(0);

    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    pub const fn as_u64(self) -> u64 {
        self.0
    }
}

impl Add for Bytes {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Bytes {
    type Output = Self;
    /// Stops at zero.
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl SubAssign for Bytes {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let b = self.0;
        match b {
            _ if b != 0 && b.is_multiple_of(1_000_000) => write!(f, "{}MB", b / 1_000_000),
            _ if b != 0 && b.is_multiple_of(1_000) => write!(f, "{}kB", b / 1_000),
            _ => write!(f, "{b}B"),
        }
    }
}

const SPAN_UNITS: &[(&str, f64)] =
    &[("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9), ("min", 60e9), ("h", 3600e9)];

/// As `iperf3`, `ip` and papers write rates, and `tc`'s `bit` forms; all are powers of ten bits.
const RATE_UNITS: &[(&str, f64)] = &[
    ("bps", 1.0),
    ("kbps", 1e3),
    ("mbps", 1e6),
    ("gbps", 1e9),
    ("bit", 1.0),
    ("kbit", 1e3),
    ("mbit", 1e6),
    ("gbit", 1e9),
    ("bit/s", 1.0),
    ("kbit/s", 1e3),
    ("mbit/s", 1e6),
    ("gbit/s", 1e9),
];

/// `tc` reads `bps`, `kbps`, `mbps` as *bytes* per second, most others as bits. So that notation is
/// refused.
const TC_RATE_UNITS: &[(&str, f64)] = &[
    ("bit", 1.0),
    ("kbit", 1e3),
    ("mbit", 1e6),
    ("gbit", 1e9),
    ("tbit", 1e12),
    ("kibit", 1024.0),
    ("mibit", 1_048_576.0),
    ("gibit", 1_073_741_824.0),
];

const SIZE_UNITS: &[(&str, f64)] = &[
    ("b", 1.0),
    ("kb", 1e3),
    ("mb", 1e6),
    ("gb", 1e9),
    ("kib", 1024.0),
    ("mib", 1_048_576.0),
    ("gib", 1_073_741_824.0),
];

/// In `tc` a bare number and `b` are bytes and every prefix is a power of 1024.
const TC_SIZE_UNITS: &[(&str, f64)] = &[
    ("b", 1.0),
    ("k", 1024.0),
    ("kb", 1024.0),
    ("m", 1_048_576.0),
    ("mb", 1_048_576.0),
    ("g", 1_073_741_824.0),
    ("gb", 1_073_741_824.0),
];

impl FromStr for Span {
    type Err = SpecError;
    fn from_str(text: &str) -> Result<Self, SpecError> {
        scaled(text, SPAN_UNITS, None, "a time such as 20ms").map(Self)
    }
}

impl Span {
    /// As [`str::parse`], but a bare number counts microseconds, as in `tc`.
    pub fn parse_tc(text: &str) -> Result<Self, SpecError> {
        scaled(text, SPAN_UNITS, Some(1e3), "a time such as 5ms").map(Self)
    }
}

impl FromStr for Rate {
    type Err = SpecError;
    fn from_str(text: &str) -> Result<Self, SpecError> {
        if text.trim().eq_ignore_ascii_case("unlimited") {
            return Ok(Self::UNLIMITED);
        }
        let unit = unit_of(text);
        if unit.contains('B') && RATE_UNITS.iter().any(|(name, _)| *name == unit.to_lowercase()) {
            let bits = text.trim().replace('B', "b");
            return Err(SpecError::new(format!(
                "'{text}' is ambiguous: a capital B stands for bytes, and rates are in bits; write {bits}, or eight \
                 times as much"
            )));
        }
        scaled(text, RATE_UNITS, None, "a rate such as 10Mbps").map(Self)
    }
}

impl Rate {
    /// As `tc` writes rates: `10mbit`, `500kbit`.
    ///
    /// # Errors
    /// Refuses `bps` and its multiples, which `tc` reads as bytes per second.
    pub fn parse_tc(text: &str) -> Result<Self, SpecError> {
        let lower = text.trim().to_ascii_lowercase();
        if lower.ends_with("bps") {
            return Err(SpecError::new(format!(
                "'{text}' is ambiguous: tc reads bps as bytes per second; write {} or {}",
                lower.replace("bps", "bit"),
                "a rate in bit, kbit, mbit, gbit"
            )));
        }
        scaled(text, TC_RATE_UNITS, Some(1.0), "a rate such as 10mbit").map(Self)
    }
}

impl FromStr for Bytes {
    type Err = SpecError;
    fn from_str(text: &str) -> Result<Self, SpecError> {
        let unit = unit_of(text);
        if unit.starts_with(|c: char| c.is_ascii_uppercase()) && unit.ends_with('b') {
            return Err(SpecError::new(format!(
                "'{text}' is ambiguous: a lower-case b after a capital letter stands for bits, and sizes are in bytes; \
                 write {}, or an eighth of it",
                text.trim().replace('b', "B")
            )));
        }
        scaled(text, SIZE_UNITS, None, "a size such as 7.5MB").map(Self)
    }
}

impl Bytes {
    /// As `tc` writes sizes: a bare number is bytes, `k`, `m` and `g` are powers of 1024.
    pub fn parse_tc(text: &str) -> Result<Self, SpecError> {
        scaled(text, TC_SIZE_UNITS, Some(1.0), "a size such as 32Mb").map(Self)
    }
}

/// What follows the number.
fn unit_of(text: &str) -> &str {
    text.trim().trim_start_matches(|c: char| !c.is_alphabetic())
}

/// Reads a non-negative decimal number and a unit; `bare` is the scale of a number without one.
fn scaled(
    text: &str,
    units: &[(&str, f64)],
    bare: Option<f64>,
    wanted: &str,
) -> Result<u64, SpecError> {
    let trimmed = text.trim();
    let split = trimmed
        .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-' || c == '+' || c == '_'))
        .unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(split);
    let unit = unit.trim().to_lowercase();
    let names = || units.iter().map(|(name, _)| (*name).to_owned()).collect::<Vec<_>>();
    let value: f64 = number
        .replace('_', "")
        .parse()
        .map_err(|_| SpecError::new(format!("'{text}' is not {wanted}")).allow(names()))?;
    if value < 0.0 || number.starts_with('-') {
        return Err(SpecError::new(format!("'{text}' is negative")).allow(["zero or more"]));
    }
    if unit.starts_with(',') {
        let pointed = trimmed.replacen(',', ".", 1);
        let said = format!("'{text}' has a comma; want a decimal point, as in '{pointed}'");
        return Err(SpecError::new(said));
    }
    let scale = if unit.is_empty() {
        match (bare, value == 0.0) {
            (Some(scale), _) => scale,
            (None, true) => 1.0,
            (None, false) => {
                return Err(
                    SpecError::new(format!("'{text}' has no unit; want {wanted}")).allow(names())
                );
            }
        }
    } else {
        units.iter().find(|(name, _)| *name == unit).map(|(_, scale)| *scale).ok_or_else(|| {
            SpecError::new(format!("unknown unit '{unit}' in '{text}'"))
                .near(&unit, units.iter().map(|(name, _)| *name))
                .allow(names())
        })?
    };
    let scaled = value * scale;
    // Sums of values above 2^63 could overflow in a run.
    if scaled >= 9.2e18 {
        return Err(SpecError::new(format!("'{text}' is too large"))
            .allow([format!("less than 9.2e18 {}", units[0].0)]));
    }
    Ok((scaled + 0.5) as u64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn spans_are_read_in_every_unit_and_printed_back() {
        for (text, ns) in [
            ("20ms", 20_000_000),
            ("1.5s", 1_500_000_000),
            ("250us", 250_000),
            ("0.2ms", 200_000),
            ("2min", 120_000_000_000),
            ("0", 0),
        ] {
            assert_eq!(text.parse::<Span>(), Ok(Span::from_nanos(ns)), "{text}");
        }
        assert_eq!(Span::from_millis(20).to_string(), "20ms");
    }

    #[test]
    fn a_decimal_comma_is_named() {
        let error = "1,5 s".parse::<Span>().unwrap_err().to_string();
        assert_eq!(error, "'1,5 s' has a comma; want a decimal point, as in '1.5 s'");
    }

    #[test]
    fn bad_quantities_say_what_is_allowed() {
        assert!("20".parse::<Span>().unwrap_err().to_string().contains("no unit"));
        assert!("-3ms".parse::<Span>().unwrap_err().to_string().contains("negative"));
        let error = "10mbot".parse::<Rate>().unwrap_err().to_string();
        assert!(error.contains("mbit"), "{error}");
        assert!("nan s".parse::<Span>().is_err());
        assert!("1e400s".parse::<Span>().is_err());
    }

    #[test]
    fn bits_and_bytes_are_not_taken_for_each_other() {
        for text in ["10MBps", "10mBps", "1KBps"] {
            let error = text.parse::<Rate>().unwrap_err().to_string();
            assert!(error.contains("ambiguous"), "{error}");
        }
        for text in ["1Mb", "1 Gb", "1.5Kb"] {
            let error = text.parse::<Bytes>().unwrap_err().to_string();
            assert!(error.contains("ambiguous"), "{error}");
        }
        assert_eq!("10Mbps".parse(), Ok(Rate::from_bps(10_000_000)));
        assert_eq!("1MB".parse(), Ok(Bytes::new(1_000_000)));
        assert_eq!("1mb".parse(), Ok(Bytes::new(1_000_000)));
    }

    #[test]
    fn tc_sizes_are_binary_and_tc_rates_refuse_bps() {
        assert_eq!(Bytes::parse_tc("32Mb"), Ok(Bytes::new(32 << 20)));
        assert_eq!(Bytes::parse_tc("1500"), Ok(Bytes::new(1500)));
        assert_eq!(Rate::parse_tc("10mbit"), Ok(Rate::from_bps(10_000_000)));
        assert!(Rate::parse_tc("10mbps").is_err());
    }

    #[test]
    fn a_full_packet_takes_its_time() {
        assert_eq!(Rate::from_bps(10_000_000).time_for(1514), Span::from_nanos(1_211_200));
        assert_eq!(Rate::UNLIMITED.time_for(1514), Span::ZERO);
    }

    proptest! {
        #[test]
        fn no_text_makes_a_parser_panic(text in ".{0,24}") {
            let _ = text.parse::<Span>();
            let _ = text.parse::<Rate>();
            let _ = text.parse::<Bytes>();
            let _ = Span::parse_tc(&text);
            let _ = Rate::parse_tc(&text);
            let _ = Bytes::parse_tc(&text);
        }

        #[test]
        fn what_is_printed_reads_back(ns in 0u64..1_000_000_000_000, bps in 0u64..1_000_000_000_000) {
            prop_assert_eq!(Span::from_nanos(ns).to_string().parse::<Span>(), Ok(Span::from_nanos(ns)));
            prop_assert_eq!(Rate::from_bps(bps).to_string().parse::<Rate>(), Ok(Rate::from_bps(bps)));
            prop_assert_eq!(Bytes::new(bps).to_string().parse::<Bytes>(), Ok(Bytes::new(bps)));
        }
    }
}
