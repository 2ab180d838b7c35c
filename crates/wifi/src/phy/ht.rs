//! High throughput, 802.11n (clause 19), in the mixed format.

use sojourn_core::{Span, SpecError};

use super::{
    Format, GuardInterval, HeLtf, MODULATIONS, Mode, NON_HT_PREAMBLE, SERVICE_BITS, TAIL_BITS,
    Width, impossible,
};

const HT_SIG: Span = Span::from_micros(8);
const HT_STF: Span = Span::from_micros(4);
const HT_LTF: Span = Span::from_micros(4);
const SYMBOL: Span = Span::from_micros(4);
const SHORT_SYMBOL: Span = Span::from_nanos(3600);

/// Above this data rate two encoders share the bits, and each adds its tail (section 19.3.11.4).
const ONE_ENCODER_MOST_MBPS: u64 = 300;

impl Mode {
    /// The clause 19 mode of an MCS index, 0 to 31: eight for each number of spatial streams.
    ///
    /// # Errors
    /// An MCS, width or guard interval that HT does not have.
    pub fn ht(mcs: u8, width: Width, guard: GuardInterval) -> Result<Self, SpecError> {
        if mcs > 31 {
            return Err(impossible(format_args!("HT MCS {mcs}"), &["0 to 31"]));
        }
        let data_tones = match width {
            Width::Mhz20 => 52,
            Width::Mhz40 => 108,
            _ => {
                return Err(impossible(format_args!("HT channel of {width}"), &["20MHz", "40MHz"]));
            }
        };
        let symbol = match guard {
            GuardInterval::Ns800 => SYMBOL,
            GuardInterval::Ns400 => SHORT_SYMBOL,
            _ => return Err(impossible("HT guard interval of that length", &["400ns", "800ns"])),
        };
        let streams = u32::from(mcs / 8) + 1;
        let modulation = MODULATIONS[usize::from(mcs % 8)];
        let data_bits = modulation.data_bits(data_tones, streams);
        let mbps = u64::from(data_bits) * 1000 / symbol.as_nanos();
        let encoders = if mbps <= ONE_ENCODER_MOST_MBPS { 1 } else { 2 };
        // Three streams are trained by four symbols (table 19-13).
        let training = match streams {
            3 => 4,
            streams => u64::from(streams),
        };
        Ok(Self {
            format: Format::HtMixed,
            mcs: mcs % 8,
            streams: streams as u8,
            width,
            guard,
            ltf: HeLtf::default(),
            ru: None,
            modulation: Some(modulation),
            per_octet: 8,
            data_bits,
            other_bits: SERVICE_BITS + TAIL_BITS * encoders,
            preamble: NON_HT_PREAMBLE + HT_SIG + HT_STF + HT_LTF * training,
            symbol,
            // With the short guard interval the end is moved to a whole symbol of 4 µs, for
            // stations that know the length from L-SIG (equation 19-91).
            grid: SYMBOL,
        })
    }
}
