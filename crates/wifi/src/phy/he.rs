//! High efficiency, 802.11ax (clause 27).
//!
//! Durations follow section 27.4.3 with a packet extension of zero and the binary convolutional
//! code's tail on every unit; the extra symbol that LDPC may add is left out.

use sojourn_core::{Span, SpecError};

use super::{
    Format, GuardInterval, MODULATIONS, Mode, Modulation, NON_HT_PREAMBLE, Ru, SERVICE_BITS,
    TAIL_BITS, Width, impossible,
};

const RL_SIG: Span = Span::from_micros(4);
const HE_SIG_A: Span = Span::from_micros(8);
const HE_SIG_B_SYMBOL: Span = Span::from_micros(4);
const HE_STF: Span = Span::from_micros(4);
/// Of a trigger-based PPDU.
const HE_STF_TB: Span = Span::from_micros(8);
/// A symbol of data without its guard interval.
const SYMBOL: Span = Span::from_nanos(12_800);

/// Length of a training symbol (table 27-13).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HeLtf {
    /// 8 µs whatever the guard interval, as ns-3 has it: exact for twice the basic length with 1.6 µs, and a stand-in for what
    /// the standard has with the others.
    #[default]
    EightMicros,
    /// 3.2 µs and the guard interval.
    Once,
    /// 6.4 µs and the guard interval.
    Twice,
    /// 12.8 µs and the guard interval.
    FourTimes,
}

impl HeLtf {
    /// What is usual with a guard interval: with 3.2 µs the standard has four times the basic length only.
    pub const fn usual(guard: GuardInterval) -> Self {
        match guard {
            GuardInterval::Ns3200 => Self::FourTimes,
            _ => Self::EightMicros,
        }
    }

    /// Training and guard interval of a PPDU for several stations, of which each asks for its own: the longest of both
    /// that are there. Such a PPDU has twice the basic length with 0.8 or 1.6 µs, or four times with 0.8 or 3.2 µs
    /// (section 27.3.12), or 8 µs.
    pub(crate) fn of_all(modes: impl Iterator<Item = Mode>) -> (Self, GuardInterval) {
        let all = modes.fold((Self::Twice, GuardInterval::Ns800, false), |so_far, mode| {
            let (ltf, guard, is_usual) = so_far;
            let is_longer = mode.ltf == Self::FourTimes;
            let ltf = if is_longer { Self::FourTimes } else { ltf };
            (ltf, guard.max(mode.guard), is_usual || mode.ltf == Self::EightMicros)
        });
        match all {
            (_, GuardInterval::Ns3200, _) => (Self::FourTimes, GuardInterval::Ns3200),
            (Self::FourTimes, GuardInterval::Ns1600, _) => (Self::FourTimes, GuardInterval::Ns3200),
            (Self::FourTimes, guard, _) => (Self::FourTimes, guard),
            (_, guard, true) => (Self::EightMicros, guard),
            (ltf, guard, false) => (ltf, guard),
        }
    }

    /// The combinations of each format (what HE-SIG-A can say, section 27.3.11.7.2, and a Trigger frame,
    /// section 9.3.1.22).
    fn span(self, format: Format, guard: GuardInterval) -> Result<Span, SpecError> {
        use GuardInterval::{Ns800, Ns1600, Ns3200};
        let training = match (self, format, guard) {
            (Self::EightMicros, ..) => return Ok(Span::from_micros(8)),
            (Self::Once, Format::HeSu, Ns800) | (Self::Once, Format::HeTb, Ns1600) => 3200,
            (Self::Twice, Format::HeSu | Format::HeMu, Ns800) | (Self::Twice, _, Ns1600) => 6400,
            (Self::FourTimes, Format::HeSu | Format::HeMu, Ns800)
            | (Self::FourTimes, _, Ns3200) => 12_800,
            _ => return Err(Self::impossible(format)),
        };
        Ok(Span::from_nanos(training) + guard.span())
    }

    /// A guard interval that PPDUs of this format don't have with the HE-LTF.
    fn impossible(format: Format) -> SpecError {
        let allowed: &[&str] = match format {
            Format::HeTb => &["1x or 2x with 1.6us", "4x with 3.2us"],
            Format::HeMu => &["2x with 0.8us or 1.6us", "4x with 0.8us or 3.2us"],
            _ => &[
                "1x with 0.8us",
                "2x with 0.8us or 1.6us",
                "4x with 0.8us or 3.2us",
                "8us with 0.8us or 1.6us",
            ],
        };
        impossible("HE-LTF of that length with this guard interval", allowed)
    }

    /// Checks a length that a study asks for. The 8 µs of other simulators stand for what is nearest to them; with 3.2 µs
    /// that is none.
    ///
    /// # Errors
    /// 8 µs with a guard interval of 3.2 µs.
    pub(super) fn check_written(self, guard: GuardInterval) -> Result<(), SpecError> {
        match (self, guard) {
            (Self::EightMicros, GuardInterval::Ns3200) => Err(Self::impossible(Format::HeSu)),
            _ => Ok(()),
        }
    }
}

/// What HE-SIG-B of a downlink PPDU for several stations describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheduled {
    /// Stations in the PPDU.
    pub stations: u32,
    /// Modulation of HE-SIG-B, 0 to 5.
    pub sig_b_mcs: u8,
}

impl Mode {
    /// A PPDU for one station on the whole channel.
    ///
    /// # Errors
    /// An MCS above 11, more than 8 streams, or a guard interval that HE does not have.
    pub fn he_su(
        mcs: u8,
        streams: u8,
        width: Width,
        guard: GuardInterval,
        ltf: HeLtf,
    ) -> Result<Self, SpecError> {
        let front = NON_HT_PREAMBLE + RL_SIG + HE_SIG_A + HE_STF;
        Self::he(Format::HeSu, mcs, streams, width, Ru::whole(width), guard, ltf, front)
    }

    /// One resource unit of a downlink PPDU for several stations.
    ///
    /// # Errors
    /// As [`Mode::he_su`], or more stations than the channel has room for beside this unit.
    pub fn he_mu(
        mcs: u8,
        streams: u8,
        width: Width,
        ru: Ru,
        guard: GuardInterval,
        ltf: HeLtf,
        scheduled: Scheduled,
    ) -> Result<Self, SpecError> {
        if ru.per_channel(width) > 0 && scheduled.stations > 1 + ru.others(width) {
            return Err(impossible(
                format_args!(
                    "room for {} stations in {width}, one of them on {ru} tones",
                    scheduled.stations
                ),
                &[],
            )
            .allow([alloc::format!("1 to {}", 1 + ru.others(width))]));
        }
        let sig_b = HE_SIG_B_SYMBOL * u64::from(sig_b_symbols(width, scheduled)?);
        let front = NON_HT_PREAMBLE + RL_SIG + HE_SIG_A + sig_b + HE_STF;
        Self::he(Format::HeMu, mcs, streams, width, ru, guard, ltf, front)
    }

    /// One resource unit of an uplink PPDU that a Trigger frame asked for.
    ///
    /// # Errors
    /// As [`Mode::he_mu`], or a guard interval of 0.8 µs, which these never have.
    pub fn he_tb(
        mcs: u8,
        streams: u8,
        width: Width,
        ru: Ru,
        guard: GuardInterval,
        ltf: HeLtf,
    ) -> Result<Self, SpecError> {
        if guard < GuardInterval::Ns1600 {
            return Err(impossible(
                "trigger-based PPDU with that guard interval",
                &["1600ns", "3200ns"],
            ));
        }
        let front = NON_HT_PREAMBLE + RL_SIG + HE_SIG_A + HE_STF_TB;
        Self::he(Format::HeTb, mcs, streams, width, ru, guard, ltf, front)
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of one TXVECTOR")]
    fn he(
        format: Format,
        mcs: u8,
        streams: u8,
        width: Width,
        ru: Ru,
        guard: GuardInterval,
        ltf: HeLtf,
        front: Span,
    ) -> Result<Self, SpecError> {
        let Some(&modulation) = MODULATIONS.get(usize::from(mcs)) else {
            return Err(impossible(format_args!("HE MCS {mcs}"), &["0 to 11"]));
        };
        if !(1..=8).contains(&streams) {
            return Err(impossible(format_args!("HE PPDU of {streams} streams"), &["1 to 8"]));
        }
        if guard == GuardInterval::Ns400 {
            return Err(impossible("HE guard interval of 400ns", &["800ns", "1600ns", "3200ns"]));
        }
        if ru.per_channel(width) == 0 {
            return Err(impossible(format_args!("unit of {ru} tones in {width}"), &[]).allow(
                Ru::ALL
                    .into_iter()
                    .filter(|ru| ru.per_channel(width) > 0)
                    .map(|ru| alloc::format!("{ru}")),
            ));
        }
        let symbol = SYMBOL + guard.span();
        Ok(Self {
            format,
            mcs,
            streams,
            width,
            guard,
            ltf,
            ru: Some(ru),
            modulation: Some(modulation),
            per_octet: 8,
            data_bits: modulation.data_bits(ru.data_tones(), u32::from(streams)),
            other_bits: SERVICE_BITS + TAIL_BITS,
            preamble: front + ltf.span(format, guard)? * training_symbols(streams),
            symbol,
            grid: symbol,
        })
    }
}

impl Mode {
    /// The same with another MCS and number of streams.
    pub(super) fn sibling(&self, mcs: u8, streams: u8) -> Option<Self> {
        let front = NON_HT_PREAMBLE + RL_SIG + HE_SIG_A + HE_STF;
        let training = self.preamble.saturating_sub(front) / training_symbols(self.streams);
        let modulation = *MODULATIONS.get(usize::from(mcs))?;
        Some(Self {
            mcs,
            streams,
            modulation: Some(modulation),
            data_bits: modulation.data_bits(self.ru?.data_tones(), u32::from(streams)),
            preamble: front + training * training_symbols(streams),
            ..*self
        })
    }
}

/// N_HE-LTF by the number of streams (table 27-12).
fn training_symbols(streams: u8) -> u64 {
    match streams {
        1 => 1,
        2 => 2,
        3 | 4 => 4,
        5 | 6 => 6,
        _ => 8,
    }
}

/// Symbols of HE-SIG-B (section 27.3.11.8): each 20 MHz channel in turn belongs to one of two
/// content channels. A content channel describes its resource units, then its users in pairs.
fn sig_b_symbols(width: Width, scheduled: Scheduled) -> Result<u32, SpecError> {
    const CRC_AND_TAIL: u32 = 10;
    const USER: u32 = 21;
    let mcs = usize::from(scheduled.sig_b_mcs);
    if mcs > 5 {
        return Err(impossible(format_args!("HE-SIG-B of MCS {mcs}"), &["0 to 5"]));
    }
    let (allocations, channels) = match width {
        Width::Mhz20 => (1, 1),
        Width::Mhz40 => (1, 2),
        Width::Mhz80 => (2, 2),
        Width::Mhz160 => (4, 2),
    };
    let center = u32::from(width >= Width::Mhz80);
    let users = scheduled.stations.div_ceil(channels);
    let common = 8 * allocations + center + CRC_AND_TAIL;
    let bits = common + users * USER + users.div_ceil(2) * CRC_AND_TAIL;
    let per_symbol = Modulation::data_bits(MODULATIONS[mcs], 52, 1);
    Ok(bits.div_ceil(per_symbol))
}
