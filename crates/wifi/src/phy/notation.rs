//! Modes as a study writes them, close to what `iw` prints: `ht mcs 15 sgi`,
//! `he mcs 9 nss 1 width 40MHz gi 0.8us`, `ofdm 54`.

use core::fmt;

use sojourn_core::param::{whole, words};
use sojourn_core::{Param, ParamKind, SpecError, Words};

use super::{Format, GuardInterval, HeLtf, Mode, Width, dsss};

const GUARDS: [(&str, GuardInterval); 7] = [
    ("0.4us", GuardInterval::Ns400),
    ("0.8us", GuardInterval::Ns800),
    ("1.6us", GuardInterval::Ns1600),
    ("3.2us", GuardInterval::Ns3200),
    ("800ns", GuardInterval::Ns800),
    ("1600ns", GuardInterval::Ns1600),
    ("3200ns", GuardInterval::Ns3200),
];

const WIDTHS: [(&str, Width); 4] = [
    ("20MHz", Width::Mhz20),
    ("40MHz", Width::Mhz40),
    ("80MHz", Width::Mhz80),
    ("160MHz", Width::Mhz160),
];

const LTFS: [(&str, HeLtf); 4] = [
    ("8us", HeLtf::EightMicros),
    ("1x", HeLtf::Once),
    ("2x", HeLtf::Twice),
    ("4x", HeLtf::FourTimes),
];

const MCS: Param = Param::new("mcs", ParamKind::Count, "", "Modulation and coding");
const WIDTH: Param = Param::new("width", ParamKind::Choice, "20MHz", "Width of the channel");
const GI: Param = Param::new("gi", ParamKind::Choice, "0.8us", "Guard interval");
const SGI: Param = Param::new("sgi", ParamKind::Flag, "", "The same as gi 0.4us");
const NSS: Param = Param::new("nss", ParamKind::Count, "1", "Spatial streams");
const LTF: Param = Param::new(
    "ltf",
    ParamKind::Choice,
    "8us, with gi 3.2us 4x",
    "Length of the HE-LTF: a time, or 1x, 2x or 4x the basic one",
);

/// The families of modes: their names, what they are, and what may follow the name.
pub const MODES: [(&str, &str, &[Param]); 4] = [
    ("dsss", "802.11b: a rate in Mbit/s, 1, 2, 5.5 or 11; 'dsss 11'", &[]),
    ("ofdm", "802.11a and g: a rate in Mbit/s, 6, 9, 12, 18, 24, 36, 48 or 54; 'ofdm 54'", &[]),
    (
        "ht",
        "802.11n: streams are in the MCS; 'ht mcs 15 sgi'",
        &[
            needed(MCS.within(whole(0, 31))),
            WIDTH.within(words(&["20MHz", "40MHz"])),
            GI.within(words(&["0.4us", "0.8us"])),
            SGI,
        ],
    ),
    (
        "he",
        "802.11ax; 'he mcs 11 nss 2 width 80MHz'",
        &[
            needed(MCS.within(whole(0, 11))),
            NSS.within(whole(1, 8)),
            WIDTH.within(words(&["20MHz", "40MHz", "80MHz", "160MHz"])),
            GI.within(words(&["0.8us", "1.6us", "3.2us"])),
            LTF.within(words(&["8us", "1x", "2x", "4x"])),
        ],
    ),
];

const fn needed(param: Param) -> Param {
    Param { is_needed: true, ..param }
}

impl Mode {
    /// Reads a mode for one station.
    ///
    /// # Errors
    /// An unknown word or a combination that the standard does not have; names what is allowed.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        let words = &mut Words::new(text);
        let family = words.next().ok_or_else(|| {
            SpecError::new("no mode is named").allow(["dsss", "ofdm", "ht", "he"])
        })?;
        match family {
            "dsss" => ends_here(Self::dsss(words.value(family)?), words),
            "ofdm" => ends_here(Self::non_ht(words.count(family, 6, 54)? as u32), words),
            "ht" | "he" => Self::parse_mcs(family, words),
            _ => Err(SpecError::new(alloc::format!("unknown mode '{family}'"))
                .near(family, ["dsss", "ofdm", "ht", "he"])
                .allow(["dsss", "ofdm", "ht", "he"])),
        }
    }

    fn parse_mcs(family: &str, words: &mut Words<'_>) -> Result<Self, SpecError> {
        let is_ht = family == "ht";
        let (mut mcs, mut streams, mut width) = (None, 1, Width::Mhz20);
        let (mut guard, mut ltf) = (GuardInterval::Ns800, None);
        while let Some(word) = words.next() {
            match word {
                "mcs" => mcs = Some(words.count(word, 0, if is_ht { 31 } else { 11 })? as u8),
                "width" => width = words.choice(word, &WIDTHS)?,
                "gi" => guard = words.choice(word, &GUARDS)?,
                "sgi" if is_ht => guard = GuardInterval::Ns400,
                "nss" if !is_ht => streams = words.count(word, 1, 8)? as u8,
                "ltf" if !is_ht => ltf = Some(words.choice(word, &LTFS)?),
                _ => {
                    let allowed: &[&str] = match is_ht {
                        true => &["mcs", "width", "gi", "sgi"],
                        false => &["mcs", "nss", "width", "gi", "ltf"],
                    };
                    return Err(SpecError::new(alloc::format!("'{family}' has no '{word}'"))
                        .near(word, allowed.iter().copied())
                        .allow(allowed.iter().copied()));
                }
            }
        }
        let mcs = mcs.ok_or_else(|| SpecError::new(alloc::format!("'{family}' needs an mcs")))?;
        match is_ht {
            true => Self::ht(mcs, width, guard),
            false => {
                let ltf = ltf.unwrap_or(HeLtf::usual(guard));
                ltf.check_written(guard)?;
                Self::he_su(mcs, streams, width, guard, ltf)
            }
        }
    }
}

fn ends_here(mode: Result<Mode, SpecError>, words: &mut Words<'_>) -> Result<Mode, SpecError> {
    match words.next() {
        Some(word) => Err(SpecError::new(alloc::format!("'{word}' after the rate"))
            .allow(["nothing: these channels have 20MHz"])),
        None => mode,
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let guard = self.guard.span().as_nanos();
        let (micros, tenths) = (guard / 1000, guard % 1000 / 100);
        match self.format {
            Format::Dsss => write!(f, "dsss {}", dsss::RATES[usize::from(self.mcs)].mbps),
            Format::NonHt => write!(f, "ofdm {}", self.rate().as_bps() / 1_000_000),
            Format::HtMixed => {
                let mcs = self.mcs + 8 * (self.streams - 1);
                write!(f, "ht mcs {mcs} width {} gi {micros}.{tenths}us", self.width)
            }
            _ => write!(
                f,
                "he mcs {} nss {} width {} gi {micros}.{tenths}us",
                self.mcs, self.streams, self.width
            ),
        }
    }
}
