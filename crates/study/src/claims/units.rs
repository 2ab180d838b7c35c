//! Units of claims. Inside, everything is in seconds, bits and plain numbers.

use sojourn_core::SpecError;

/// Powers of time and data: a rate is data 1, time −1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Dimension {
    pub time: i8,
    pub data: i8,
}

impl Dimension {
    pub(super) const NONE: Self = Self { time: 0, data: 0 };
    pub(super) const TIME: Self = Self { time: 1, data: 0 };
    pub(super) const DATA: Self = Self { time: 0, data: 1 };
    pub(super) const RATE: Self = Self { time: -1, data: 1 };

    pub(super) fn times(self, other: Self) -> Self {
        Self {
            time: self.time.saturating_add(other.time),
            data: self.data.saturating_add(other.data),
        }
    }

    pub(super) fn over(self, other: Self) -> Self {
        Self {
            time: self.time.saturating_sub(other.time),
            data: self.data.saturating_sub(other.data),
        }
    }

    /// How an error describes it, with an example.
    pub(super) fn describe(self) -> String {
        match self {
            Self::NONE => "a plain number".into(),
            Self::TIME => "a time, such as 30ms".into(),
            Self::DATA => "a size, such as 30kB".into(),
            Self::RATE => "a rate, such as 5Mbps".into(),
            Self { time, data } => format!("data to the power {data} by time to the power {time}"),
        }
    }
}

/// A unit as results show it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Unit {
    /// Empty for plain numbers.
    pub name: &'static str,
    /// The size of the unit in seconds, bits and plain numbers.
    pub scale: f64,
    pub dimension: Dimension,
}

impl Unit {
    pub(super) const PLAIN: Self = Self { name: "", scale: 1.0, dimension: Dimension::NONE };

    /// The unit of a metric's column. Counts (packets, frames) are plain numbers that keep the name
    /// of what they count.
    pub(super) fn of_metric(name: &'static str) -> Self {
        let known = UNITS.iter().find(|(_, unit)| unit.name == name).map(|(_, unit)| *unit);
        known.unwrap_or(Self { name, ..Self::PLAIN })
    }

    /// The unit in which results of this dimension are shown if nothing else decides.
    pub(super) fn usual(dimension: Dimension) -> Self {
        let usual = ["Mbit/s", "ms", "kB"].into_iter().map(Self::of_metric);
        usual
            .into_iter()
            .find(|unit| unit.dimension == dimension)
            .unwrap_or(Self { dimension, ..Self::PLAIN })
    }

    /// # Errors
    /// An unknown unit.
    pub(super) fn parse(text: &str) -> Result<Self, SpecError> {
        let lower = text.to_lowercase();
        let names = || UNITS.iter().flat_map(|(names, _)| names.iter().copied());
        let known = UNITS.iter().find(|(names, _)| names.iter().any(|name| *name == lower));
        known.map(|(_, unit)| *unit).ok_or_else(|| {
            SpecError::new(format!("unknown unit '{text}'"))
                .near(&lower, names())
                .allow(["ms", "s", "Mbps", "kbps", "B", "kB", "MB", "packets", "%"])
        })
    }
}

const fn unit(name: &'static str, scale: f64, dimension: Dimension) -> Unit {
    Unit { name, scale, dimension }
}

const UNITS: &[(&[&str], Unit)] = &[
    (&["ms"], unit("ms", 1e-3, Dimension::TIME)),
    (&["s", "sec"], unit("s", 1.0, Dimension::TIME)),
    (&["us", "µs"], unit("us", 1e-6, Dimension::TIME)),
    (&["ns"], unit("ns", 1e-9, Dimension::TIME)),
    (&["min"], unit("min", 60.0, Dimension::TIME)),
    (&["h"], unit("h", 3600.0, Dimension::TIME)),
    (&["mbps", "mbit/s", "mbit"], unit("Mbit/s", 1e6, Dimension::RATE)),
    (&["kbps", "kbit/s", "kbit"], unit("kbit/s", 1e3, Dimension::RATE)),
    (&["gbps", "gbit/s", "gbit"], unit("Gbit/s", 1e9, Dimension::RATE)),
    (&["bps", "bit/s", "bit"], unit("bit/s", 1.0, Dimension::RATE)),
    (&["kb"], unit("kB", 8e3, Dimension::DATA)),
    (&["b", "bytes", "byte"], unit("bytes", 8.0, Dimension::DATA)),
    (&["mb"], unit("MB", 8e6, Dimension::DATA)),
    (&["gb"], unit("GB", 8e9, Dimension::DATA)),
    (&["kib"], unit("KiB", 8.0 * 1024.0, Dimension::DATA)),
    (&["mib"], unit("MiB", 8.0 * 1_048_576.0, Dimension::DATA)),
    (&["gib"], unit("GiB", 8.0 * 1_073_741_824.0, Dimension::DATA)),
    (&["%"], unit("%", 0.01, Dimension::NONE)),
    (&["packets", "packet", "pkts"], unit("packets", 1.0, Dimension::NONE)),
    (&["frames/s", "fps"], unit("frames/s", 1.0, Dimension::NONE)),
];

#[cfg(test)]
mod tests {
    use sojourn_core::{Bytes, Rate, Span};

    use super::*;

    #[test]
    fn claims_read_every_unit_that_the_rest_of_a_study_file_has() {
        let one = |unit: &str| Unit::parse(unit).map(|unit| (unit.scale, unit.dimension));
        for unit in ["ns", "us", "µs", "ms", "s", "min", "h"] {
            let span: Span = format!("1{unit}").parse().expect("a time");
            assert_eq!(one(unit), Ok((span.as_secs_f64(), Dimension::TIME)), "{unit}");
        }
        let rates = ["bit", "kbit", "mbit", "gbit", "bps", "kbps", "mbps", "gbps"];
        for unit in rates.into_iter().chain(["bit/s", "kbit/s", "mbit/s", "gbit/s"]) {
            let rate: Rate = format!("1{unit}").parse().expect("a rate");
            assert_eq!(one(unit), Ok((rate.as_bps() as f64, Dimension::RATE)), "{unit}");
        }
        for unit in ["B", "kB", "MB", "GB", "KiB", "MiB", "GiB"] {
            let size: Bytes = format!("1{unit}").parse().expect("a size");
            assert_eq!(one(unit), Ok((size.as_u64() as f64 * 8.0, Dimension::DATA)), "{unit}");
        }
    }
}
