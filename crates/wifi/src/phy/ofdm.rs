//! Orthogonal frequency division multiplexing, 802.11a (clause 17).

use sojourn_core::{Span, SpecError};

use super::{
    Format, GuardInterval, HeLtf, Mode, Modulation, NON_HT_PREAMBLE, SERVICE_BITS, TAIL_BITS,
    Width, impossible,
};

/// Data rate in Mbit/s with its modulation (table 17-4).
pub(super) const RATES: [(u32, Modulation); 8] = [
    (6, Modulation::new(1, 1, 2)),
    (9, Modulation::new(1, 3, 4)),
    (12, Modulation::new(2, 1, 2)),
    (18, Modulation::new(2, 3, 4)),
    (24, Modulation::new(4, 1, 2)),
    (36, Modulation::new(4, 3, 4)),
    (48, Modulation::new(6, 2, 3)),
    (54, Modulation::new(6, 3, 4)),
];

const SYMBOL: Span = Span::from_micros(4);
const DATA_TONES: u32 = 48;

impl Mode {
    /// The clause 17 mode of `mbps`.
    ///
    /// # Errors
    /// Another rate than 6, 9, 12, 18, 24, 36, 48 or 54.
    pub fn non_ht(mbps: u32) -> Result<Self, SpecError> {
        let (index, (_, modulation)) =
            RATES.iter().enumerate().find(|(_, (rate, _))| *rate == mbps).ok_or_else(|| {
                impossible(
                    format_args!("rate of {mbps} Mbit/s in 802.11a"),
                    &["6", "9", "12", "18", "24", "36", "48", "54"],
                )
            })?;
        Ok(Self {
            format: Format::NonHt,
            mcs: index as u8,
            streams: 1,
            width: Width::Mhz20,
            guard: GuardInterval::Ns800,
            ltf: HeLtf::default(),
            ru: None,
            modulation: Some(*modulation),
            per_octet: 8,
            data_bits: modulation.data_bits(DATA_TONES, 1),
            other_bits: SERVICE_BITS + TAIL_BITS,
            preamble: NON_HT_PREAMBLE,
            symbol: SYMBOL,
            grid: SYMBOL,
        })
    }
}
