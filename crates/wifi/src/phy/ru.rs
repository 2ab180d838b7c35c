//! Resource units of OFDMA (802.11ax-2021 section 27.3.2).

use core::fmt;

use sojourn_core::SpecError;

use super::{Width, impossible};

/// A resource unit by the number of its tones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ru {
    Tones26,
    Tones52,
    Tones106,
    Tones242,
    Tones484,
    Tones996,
    Tones2x996,
}

impl Ru {
    pub const ALL: [Self; 7] = [
        Self::Tones26,
        Self::Tones52,
        Self::Tones106,
        Self::Tones242,
        Self::Tones484,
        Self::Tones996,
        Self::Tones2x996,
    ];

    /// The unit that takes a whole channel.
    pub const fn whole(width: Width) -> Self {
        match width {
            Width::Mhz20 => Self::Tones242,
            Width::Mhz40 => Self::Tones484,
            Width::Mhz80 => Self::Tones996,
            Width::Mhz160 => Self::Tones2x996,
        }
    }

    /// Tones that carry data (N_SD, table 27-14).
    pub const fn data_tones(self) -> u32 {
        match self {
            Self::Tones26 => 24,
            Self::Tones52 => 48,
            Self::Tones106 => 102,
            Self::Tones242 => 234,
            Self::Tones484 => 468,
            Self::Tones996 => 980,
            Self::Tones2x996 => 1960,
        }
    }

    /// How many of this size a channel has (table 27-8).
    pub const fn per_channel(self, width: Width) -> u32 {
        let row: [u32; 4] = match self {
            Self::Tones26 => [9, 18, 37, 74],
            Self::Tones52 => [4, 8, 16, 32],
            Self::Tones106 => [2, 4, 8, 16],
            Self::Tones242 => [1, 2, 4, 8],
            Self::Tones484 => [0, 1, 2, 4],
            Self::Tones996 => [0, 0, 1, 2],
            Self::Tones2x996 => [0, 0, 0, 1],
        };
        row[width as usize]
    }

    /// The next smaller size, of which two are in its place.
    pub(crate) const fn half(self) -> Option<Self> {
        Some(match self {
            Self::Tones26 => return None,
            Self::Tones52 => Self::Tones26,
            Self::Tones106 => Self::Tones52,
            Self::Tones242 => Self::Tones106,
            Self::Tones484 => Self::Tones242,
            Self::Tones996 => Self::Tones484,
            Self::Tones2x996 => Self::Tones996,
        })
    }

    /// How many others a channel has room for beside one of this size.
    pub(crate) const fn others(self, width: Width) -> u32 {
        let takes = match self {
            Self::Tones26 => 1,
            Self::Tones52 => 2,
            Self::Tones106 => 4,
            Self::Tones242 => 9,
            Self::Tones484 => 18,
            Self::Tones996 => 37,
            Self::Tones2x996 => 74,
        };
        Self::Tones26.per_channel(width) - takes
    }

    /// The largest size of which the channel has at least `stations`.
    ///
    /// # Errors
    /// No station, or more than the channel has units of 26 tones.
    pub fn equal_shares(width: Width, stations: u32) -> Result<Self, SpecError> {
        if stations == 0 {
            return Err(impossible("resource unit for nobody", &["at least one station"]));
        }
        Self::ALL.into_iter().rev().find(|ru| ru.per_channel(width) >= stations).ok_or_else(|| {
            let most = Self::Tones26.per_channel(width);
            impossible(format_args!("place for {stations} stations in {width}"), &[])
                .allow([alloc::format!("1 to {most} stations")])
        })
    }

    pub const fn tones(self) -> u32 {
        match self {
            Self::Tones26 => 26,
            Self::Tones52 => 52,
            Self::Tones106 => 106,
            Self::Tones242 => 242,
            Self::Tones484 => 484,
            Self::Tones996 => 996,
            Self::Tones2x996 => 1992,
        }
    }
}

impl fmt::Display for Ru {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tones2x996 => f.write_str("2x996"),
            ru => write!(f, "{}", ru.tones()),
        }
    }
}
