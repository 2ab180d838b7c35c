//! Direct sequence spread spectrum, the rates of 802.11 and 802.11b (clauses 15 and 16).

use sojourn_core::{Span, SpecError};

use super::{Format, GuardInterval, HeLtf, Mode, Width, impossible};

/// The long preamble of 144 µs and the header of 48 µs, both at 1 Mbit/s (sections 15.2.2 and 16.2.2.2).
pub(super) const PREAMBLE: Span = Span::from_micros(192);
/// Frames last whole microseconds (section 16.3.4).
const MICROSECOND: Span = Span::from_micros(1);

pub(super) struct DsssRate {
    /// Mbit/s, as a study writes them.
    pub(super) mbps: &'static str,
    /// In a microsecond.
    half_bits: u32,
    /// Signal-to-noise ratio in dB at the minimum sensitivity. The standard has −80 dBm at 2 Mbit/s (section 15.4.6.2)
    /// and −76 dBm at 11 Mbit/s (section 16.3.8.2), 21 and 25 dB above the noise of 20 MHz, of which the noise figure and
    /// the margin take 15. Half as many bits in as many chips have twice the processing gain, so 1 and 5.5 Mbit/s do with
    /// 3 dB less.
    pub(super) required_snr: f64,
}

pub(super) const RATES: [DsssRate; 4] = [
    DsssRate { mbps: "1", half_bits: 2, required_snr: 3.0 },
    DsssRate { mbps: "2", half_bits: 4, required_snr: 6.0 },
    DsssRate { mbps: "5.5", half_bits: 11, required_snr: 7.0 },
    DsssRate { mbps: "11", half_bits: 22, required_snr: 10.0 },
];

impl Mode {
    /// The mode of clause 15 or 16 with this rate in Mbit/s: `1`, `2`, `5.5` or `11`.
    ///
    /// # Errors
    /// Another rate.
    pub fn dsss(mbps: &str) -> Result<Self, SpecError> {
        let index = RATES.iter().position(|rate| rate.mbps == mbps).ok_or_else(|| {
            let rates = RATES.map(|rate| rate.mbps);
            impossible(format_args!("DSSS rate of {mbps} Mbit/s"), &rates)
        })?;
        let half_bits = RATES[index].half_bits;
        Ok(Self {
            format: Format::Dsss,
            mcs: index as u8,
            streams: 1,
            width: Width::Mhz20,
            guard: GuardInterval::Ns800,
            ltf: HeLtf::default(),
            ru: None,
            modulation: None,
            per_octet: 16,
            data_bits: half_bits,
            other_bits: 0,
            preamble: PREAMBLE,
            symbol: MICROSECOND,
            grid: MICROSECOND,
        })
    }
}
