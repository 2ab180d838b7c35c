//! The formats of traces, and how to detect them.

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;

use sojourn_core::SpecError;

use super::text::{excerpt, fields, lines};
use super::{Trace, csv, gym, samples};

/// The format of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Lines of a rate in Mbit/s and how many seconds it lasts.
    Steps,
    /// Lines of a time in seconds and the rate in Mbit/s from then on.
    Samples,
    /// Columns under a head, as measurement tools write them.
    Csv,
    /// The JSON of `OpenNetLab/gym`.
    Gym,
    /// Delivery opportunities in milliseconds: a [`Schedule`](super::Schedule), not a [`Trace`].
    Mahimahi,
}

/// How many lines are inspected to distinguish samples from steps.
const LOOKED_AT: usize = 100;

impl Format {
    pub const ALL: [Self; 5] = [Self::Steps, Self::Samples, Self::Csv, Self::Gym, Self::Mahimahi];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Steps => "steps",
            Self::Samples => "samples",
            Self::Csv => "csv",
            Self::Gym => "gym",
            Self::Mahimahi => "mahimahi",
        }
    }

    /// # Errors
    /// An unknown name.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        let names = || Self::ALL.into_iter().map(Self::name);
        Self::ALL.into_iter().find(|format| format.name() == text).ok_or_else(|| {
            SpecError::new(format!("unknown format '{}'", excerpt(text)))
                .near(text, names())
                .allow(names())
        })
    }

    /// The format of a text, judging by its first lines.
    ///
    /// Two numbers separated by a comma are a step. Separated by blanks they are a step too, unless
    /// the first numbers are 0 and then something above, as times are, or there is a single line,
    /// which as a step would have no capacity.
    pub fn detect(text: &str) -> Self {
        let Some((_, first)) = lines(text).next() else {
            return Self::Steps;
        };
        if first.starts_with(['{', '[']) {
            return Self::Gym;
        }
        if csv::is_head(first) {
            return Self::Csv;
        }
        if fields(first).count() == 1 {
            return Self::Mahimahi;
        }
        if first.contains(',') {
            return Self::Steps;
        }
        let times = lines(text).take(LOOKED_AT).filter_map(|(_, content)| {
            fields(content).next().and_then(|field| field.parse::<f64>().ok())
        });
        let mut distinct = times.skip_while(|time| *time == 0.0);
        let begins_at_zero = fields(first).next().is_some_and(|field| field.parse() == Ok(0.0));
        match distinct.next() {
            Some(second) if begins_at_zero && second > 0.0 => Self::Samples,
            None if begins_at_zero && lines(text).nth(1).is_none() => Self::Samples,
            _ => Self::Steps,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Trace {
    /// Reads a trace in `format`. `column` names the rate if there are several: a column of
    /// [`Format::Csv`], or `uplink` or `downlink` of [`Format::Gym`].
    ///
    /// # Errors
    /// Names the line and what is allowed there; or what [`Trace::new`] refuses; or a `column` in
    /// a format without.
    pub fn parse_as(format: Format, column: Option<&str>, text: &str) -> Result<Self, SpecError> {
        match (format, column) {
            (Format::Csv, _) => csv::parse(text, column),
            (Format::Gym, _) => gym::parse(text, column),
            (_, Some(column)) => Err(SpecError::new(format!(
                "column '{}': the format {format} has no columns with names",
                excerpt(column)
            ))
            .allow([Format::Csv.name(), Format::Gym.name()])),
            (Format::Steps, None) => Self::parse(text),
            (Format::Samples, None) => samples::parse(text),
            (Format::Mahimahi, None) => {
                Err(SpecError::new("a line holds one number, as Mahimahi's delivery opportunities")
                    .allow(["a trace of rates; for opportunities write 'mahimahi FILE'"]))
            }
        }
    }

    /// Writes what [`Trace::parse_as`] reads back: exactly, except that [`Format::Samples`] can't
    /// express how long the last step is.
    ///
    /// # Errors
    /// [`Format::Mahimahi`], for which see [`Schedule::from_trace`](super::Schedule::from_trace).
    pub fn written_as(&self, format: Format) -> Result<String, SpecError> {
        match format {
            Format::Steps => Ok(self.to_string()),
            Format::Samples => Ok(samples::written(self)),
            Format::Csv => Ok(csv::written(self)),
            Format::Gym => Ok(gym::written(self)),
            Format::Mahimahi => Err(SpecError::new("opportunities are not rates")),
        }
    }
}
