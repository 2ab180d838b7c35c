//! How long frames are on the air (IEEE Std 802.11-2020 clauses 17 and 19, 802.11ax-2021
//! clause 27).
//!
//! A [`Mode`] is one way to send a PSDU, checked when it is made: a combination that the standard
//! does not have can't be built. Its [`Mode::txtime`] is the standard's TXTIME.

mod dsss;
mod he;
mod ht;
mod notation;
mod ofdm;
mod ru;
#[cfg(test)]
mod tests;

pub use he::{HeLtf, Scheduled};
pub use notation::MODES;
pub use ru::Ru;

use alloc::vec::Vec;
use core::fmt;
use core::num::NonZeroU32;

use sojourn_core::{Rate, Span, SpecError, Time};

/// Channel bandwidth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Width {
    #[default]
    Mhz20,
    Mhz40,
    Mhz80,
    Mhz160,
}

impl Width {
    pub const ALL: [Self; 4] = [Self::Mhz20, Self::Mhz40, Self::Mhz80, Self::Mhz160];

    pub const fn mhz(self) -> u32 {
        20 << self as u32
    }
}

/// Guard interval of the data symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GuardInterval {
    Ns400,
    Ns800,
    Ns1600,
    Ns3200,
}

impl GuardInterval {
    pub const fn span(self) -> Span {
        Span::from_nanos(400 << self as u64)
    }
}

/// The format of a PPDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// Clauses 15 and 16, with the long preamble.
    Dsss,
    /// Clause 17, also what control frames are sent in.
    NonHt,
    /// Clause 19, with the preamble that older stations understand.
    HtMixed,
    HeSu,
    /// Downlink OFDMA: one PSDU on each resource unit.
    HeMu,
    /// Uplink OFDMA, asked for by a Trigger frame.
    HeTb,
}

impl Format {
    /// From the end of a frame until the PHY has detected the beginning of a response that is sent in this format
    /// (aRxPHYStartDelay): its preamble, the long one of DSSS.
    pub(crate) const fn start_delay(self) -> Span {
        match self {
            Self::Dsss => dsss::PREAMBLE,
            _ => NON_HT_PREAMBLE,
        }
    }

    /// Octets of the longest PSDU (aPSDUMaxLength; aMPDUMaxLength in clause 15).
    pub const fn longest_psdu(self) -> u32 {
        match self {
            Self::Dsss => 8191,
            Self::NonHt => 4095,
            Self::HtMixed => 65_535,
            Self::HeSu | Self::HeMu | Self::HeTb => 6_500_631,
        }
    }

    /// Frames of the largest block ack window, where there are block acks (sections 9.4.1.13 and 10.25.2).
    pub const fn largest_window(self) -> Option<u16> {
        match self {
            Self::Dsss | Self::NonHt => None,
            Self::HtMixed => Some(64),
            Self::HeSu | Self::HeMu | Self::HeTb => Some(256),
        }
    }

    /// Octets of the longest A-MSDU (table 9-25): 7935 in HT. In an A-MPDU its MPDU must fit the length field of the
    /// delimiter in HT. In HE, whose PSDUs are A-MPDUs always, it must fit the largest MPDU, 11 454 octets (section 10.11).
    pub const fn longest_amsdu(self, is_in_ampdu: bool) -> u32 {
        match self {
            Self::Dsss | Self::NonHt => 0,
            Self::HtMixed if is_in_ampdu => 4065,
            Self::HtMixed => 7935,
            Self::HeSu | Self::HeMu | Self::HeTb => 11_398,
        }
    }
}

/// Constellation and coding rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Modulation {
    /// Coded bits of one subcarrier and stream (N_BPSCS).
    bits: u32,
    /// The coding rate R.
    numerator: u32,
    denominator: u32,
}

/// By MCS index of one spatial stream; HT has the first eight, HE all twelve (tables 19-27 and
/// 27-55).
const MODULATIONS: [Modulation; 12] = [
    Modulation::new(1, 1, 2),
    Modulation::new(2, 1, 2),
    Modulation::new(2, 3, 4),
    Modulation::new(4, 1, 2),
    Modulation::new(4, 3, 4),
    Modulation::new(6, 2, 3),
    Modulation::new(6, 3, 4),
    Modulation::new(6, 5, 6),
    Modulation::new(8, 3, 4),
    Modulation::new(8, 5, 6),
    Modulation::new(10, 3, 4),
    Modulation::new(10, 5, 6),
];

impl Modulation {
    const fn new(bits: u32, numerator: u32, denominator: u32) -> Self {
        Self { bits, numerator, denominator }
    }

    /// Data bits of a symbol (N_DBPS) of `tones` subcarriers and `streams`.
    const fn data_bits(self, tones: u32, streams: u32) -> u32 {
        tones * self.bits * streams * self.numerator / self.denominator
    }
}

/// What every PPDU but one of DSSS begins with: training 16 µs and SIGNAL 4 µs (table 17-5).
const NON_HT_PREAMBLE: Span = Span::from_micros(20);
/// Bits of the SERVICE field before the PSDU.
const SERVICE_BITS: u64 = 16;
/// Tail bits of one binary convolutional encoder.
const TAIL_BITS: u64 = 6;

/// A PPDU of an HT or HE format lasts no longer (aPPDUMaxTime, tables 19-25 and 27-54).
pub const PPDU_MAX_TIME: Span = Span::from_micros(5484);

/// One way to send a PSDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode {
    format: Format,
    mcs: u8,
    streams: u8,
    width: Width,
    guard: GuardInterval,
    /// Of an HE format.
    ltf: HeLtf,
    ru: Option<Ru>,
    /// Of the subcarriers; DSSS has none.
    modulation: Option<Modulation>,
    /// Units in an octet: bits, or half bits where a symbol has no whole number of bits.
    per_octet: u32,
    /// Data units of a symbol (N_DBPS).
    data_bits: u32,
    /// Bits of SERVICE before the PSDU and of the tails behind it, all encoders together.
    other_bits: u64,
    /// Before the first data symbol.
    preamble: Span,
    symbol: Span,
    /// The data part lasts a multiple of this.
    grid: Span,
}

impl Mode {
    /// How long a PPDU is on the air whose PSDU has this many octets (TXTIME).
    #[inline]
    pub fn txtime(&self, psdu_octets: u32) -> Span {
        let bits = u64::from(self.per_octet) * u64::from(psdu_octets) + self.other_bits;
        self.preamble + self.data_time(bits.div_ceil(u64::from(self.data_bits)))
    }

    /// What a PPDU that begins at `start` has sent, as time passes.
    pub(crate) fn progress(&self, start: Time) -> Progress {
        Progress {
            data_from: start + self.preamble,
            per_octet: self.per_octet,
            before_last: self.other_bits as u32 + self.data_bits - 1,
            data_bits: NonZeroU32::new(self.data_bits).expect("a symbol carries bits"),
            symbol: self.symbol.as_nanos() as u32,
            grid: NonZeroU32::new(self.grid.as_nanos() as u32).expect("a grid has a width"),
        }
    }

    /// How long a PPDU without a data field lasts: its preamble.
    pub fn preamble(&self) -> Span {
        self.preamble
    }

    /// The largest PSDU whose PPDU takes no longer than `limit`, in octets.
    #[inline]
    pub fn largest_psdu(&self, limit: Span) -> u32 {
        let mut data = limit.saturating_sub(self.preamble).as_nanos();
        if self.symbol != self.grid {
            data -= data % self.grid.as_nanos();
        }
        let bits = (data / self.symbol.as_nanos()) * u64::from(self.data_bits);
        let octets = bits.saturating_sub(self.other_bits) / u64::from(self.per_octet);
        u32::try_from(octets).unwrap_or(u32::MAX)
    }

    /// The longest PPDU of whole symbols behind `training`, or this mode's own preamble if that is longer, that takes no longer
    /// than `limit`.
    pub(crate) fn whole_symbols(&self, training: Span, limit: Span) -> Span {
        let preamble = training.max(self.preamble);
        let data = limit.saturating_sub(preamble).as_nanos();
        preamble + Span::from_nanos(data - data % self.grid.as_nanos())
    }

    /// This mode and those of the same format, width and guard interval with no higher MCS and no more
    /// streams.
    pub(crate) fn not_above(&self) -> Vec<Self> {
        let all =
            (1..=self.streams).flat_map(|streams| (0..=self.mcs).map(move |mcs| (mcs, streams)));
        all.filter_map(|(mcs, streams)| match self.format {
            Format::Dsss => Self::dsss(dsss::RATES[usize::from(mcs)].mbps).ok(),
            Format::NonHt => Self::non_ht(ofdm::RATES[usize::from(mcs)].0).ok(),
            Format::HtMixed => Self::ht(mcs + 8 * (streams - 1), self.width, self.guard).ok(),
            _ => self.sibling(mcs, streams),
        })
        .collect()
    }

    /// Signal-to-noise ratio in dB at which one in ten frames of 4096 octets is lost.
    pub(crate) fn required_snr(&self) -> f64 {
        let Some(Modulation { bits, numerator, denominator }) = self.modulation else {
            return dsss::RATES[usize::from(self.mcs)].required_snr;
        };
        match (bits, numerator, denominator) {
            (1, 1, 2) => 4.0,
            (1, ..) => 5.0,
            (2, 1, 2) => 7.0,
            (2, ..) => 9.0,
            (4, 1, 2) => 12.0,
            (4, ..) => 16.0,
            (6, 2, 3) => 20.0,
            (6, 3, 4) => 21.0,
            (6, ..) => 22.0,
            (8, 3, 4) => 27.0,
            (8, ..) => 29.0,
            (_, 3, 4) => 32.0,
            _ => 34.0,
        }
    }

    /// Bits a second of the data symbols.
    pub fn rate(&self) -> Rate {
        let bits = u64::from(self.data_bits) * 8_000_000_000 / u64::from(self.per_octet);
        Rate::from_bps(bits / self.symbol.as_nanos())
    }

    pub fn format(&self) -> Format {
        self.format
    }

    /// Of one stream, whatever the number of streams.
    pub fn mcs(&self) -> u8 {
        self.mcs
    }

    pub fn streams(&self) -> u8 {
        self.streams
    }

    pub fn width(&self) -> Width {
        self.width
    }

    pub fn guard(&self) -> GuardInterval {
        self.guard
    }

    pub fn ru(&self) -> Option<Ru> {
        self.ru
    }

    pub(crate) fn modulation(&self) -> Option<Modulation> {
        self.modulation
    }

    fn data_time(&self, symbols: u64) -> Span {
        let data = self.symbol.as_nanos() * symbols;
        match self.symbol == self.grid {
            true => Span::from_nanos(data),
            false => Span::from_nanos(data.next_multiple_of(self.grid.as_nanos())),
        }
    }
}

/// A PPDU on the air.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    data_from: Time,
    per_octet: u32,
    /// What is sent beside the PSDU, and all units of a symbol but one: a symbol that has begun is sent as a whole.
    before_last: u32,
    data_bits: NonZeroU32,
    /// In nanoseconds, like `grid`: a PPDU lasts less than the four seconds that 32 bits hold.
    symbol: u32,
    grid: NonZeroU32,
}

impl Progress {
    /// When it would end if its PSDU had so many octets: its start and [`Mode::txtime`].
    #[inline]
    pub(crate) fn end(&self, psdu_octets: u32) -> Time {
        let symbols = (self.per_octet * psdu_octets + self.before_last) / self.data_bits;
        let data = self.symbol * symbols;
        // Symbols as long as the steps of the grid end on it.
        let past = if self.symbol == self.grid.get() { 0 } else { data % self.grid };
        let data = if past > 0 { data + self.grid.get() - past } else { data };
        self.data_from + Span::from_nanos(data.into())
    }
}

impl Modulation {
    /// The non-HT reference rate of 802.11-2020 table 10-10, in Mbit/s.
    pub(crate) fn reference_rate(self) -> u32 {
        match (self.bits, self.numerator, self.denominator) {
            (1, 1, 2) => 6,
            (1, ..) => 9,
            (2, 1, 2) => 12,
            (2, ..) => 18,
            (4, 1, 2) => 24,
            (4, ..) => 36,
            (6, 2, 3) => 48,
            _ => 54,
        }
    }
}

impl fmt::Display for Width {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}MHz", self.mhz())
    }
}

/// A combination that the standard does not have.
fn impossible(what: impl fmt::Display, allowed: &[&str]) -> SpecError {
    SpecError::new(alloc::format!("there is no {what}")).allow(allowed.iter().copied())
}
