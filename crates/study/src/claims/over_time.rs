//! Values that claims take from time series: a column over a part of the run, and what a congestion
//! controller's phases did.

use std::ops::RangeInclusive;

use sojourn_core::{SpecError, is_phase};
use sojourn_metrics::{Column, FLOW_COLUMNS, LINK_COLUMNS};

use crate::metrics::short;
use crate::results::{Kind, Series};

/// What is taken from a time series, over which part of the run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct OverTime {
    pub(super) what: What,
    /// The part of the run, in seconds since it began. A step counts if it ends in it and does not end with its beginning.
    pub(super) during: RangeInclusive<f64>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum What {
    Column(&'static str, Fold),
    Phase(OfPhase, String),
    /// When a phase began for the n-th time, from 1.
    Entry(usize, String),
}

/// How the steps' values of a column become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fold {
    Mean,
    Sum,
    Largest,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OfPhase {
    /// The share of the steps that ended in the phase, of those in which the flow was in one.
    Share,
    /// The end of the first step that ended in the phase.
    Begins,
    /// How often the phase was entered.
    Entries,
}

impl OfPhase {
    pub(super) const NAMES: [(&'static str, Self, &'static str); 3] = [
        ("phase_share", Self::Share, ""),
        ("phase_begins", Self::Begins, "s"),
        ("phase_entries", Self::Entries, ""),
    ];

    pub(super) fn named(name: &str) -> Option<(&'static str, Self, &'static str)> {
        Self::NAMES.into_iter().find(|(own, ..)| *own == name || short(own) == name)
    }
}

/// A column of the time series by its name, with or without the unit: its name, its unit, how its
/// steps become one value.
///
/// # Errors
/// There is none, or several.
pub(super) fn column(
    name: &str,
    kind: Kind,
) -> Result<(&'static str, &'static str, Fold), SpecError> {
    let all: Vec<(&'static str, &'static str)> = match kind {
        Kind::Run => Vec::new(),
        Kind::Flow => names_of(FLOW_COLUMNS),
        Kind::Queue => names_of(LINK_COLUMNS),
    };
    let all = || all.iter().copied().filter(|(own, _)| *own != "phase");
    let exact = all().find(|(own, _)| *own == name);
    let matching: Vec<_> = all().filter(|(own, _)| short(own) == name).collect();
    match (exact, &matching[..]) {
        (Some((name, unit)), _) | (None, &[(name, unit)]) => Ok((name, unit, Fold::of(name))),
        (None, []) => {
            let error = SpecError::new(format!("no column of the time series is named '{name}'"));
            let error = error.near(name, all().flat_map(|(own, _)| [short(own), own]));
            Err(error.allow(all().map(|(own, _)| own)))
        }
        (None, several) => Err(SpecError::new(format!("'{name}' is one of several columns"))
            .allow(several.iter().map(|(own, _)| *own))),
    }
}

fn names_of<S>(columns: &[Column<S>]) -> Vec<(&'static str, &'static str)> {
    columns.iter().map(|column| (column.name, column.unit)).collect()
}

impl Fold {
    fn of(column: &str) -> Self {
        let last = short(column).rsplit('_').next();
        match column {
            "retransmits" | "dropped_pkts" | "drops" | "marks" | "frames_encoded"
            | "frames_rendered" | "frames_dropped" => Self::Sum,
            _ if matches!(last, Some("max" | "peak")) => Self::Largest,
            _ => Self::Mean,
        }
    }
}

impl OverTime {
    /// Its value in one series; `None` if no step has one.
    pub(super) fn of(&self, series: &Series) -> Option<f64> {
        match &self.what {
            What::Column(name, fold) => {
                let column = series.column(name)?;
                let steps = series.t_s.iter().zip(column.iter());
                let within = steps.filter(|(end, _)| self.has(**end));
                let values: Vec<f64> = within.filter_map(|(_, value)| value).collect();
                fold.apply(&values)
            }
            What::Phase(of, wanted) => self.of_phase(*of, wanted, series),
            What::Entry(n, wanted) => {
                let is_in = is_in(wanted, series);
                let entry = self.entries(&is_in, series).nth(n - 1);
                entry.map(|step| series.t_s[step])
            }
        }
    }

    fn of_phase(&self, of: OfPhase, wanted: &str, series: &Series) -> Option<f64> {
        let is_in = is_in(wanted, series);
        let steps = self.steps(series).count();
        if steps == 0 {
            return None;
        }
        let mut inside = self.steps(series).filter(|step| is_in[*step]);
        match of {
            OfPhase::Share => {
                let known =
                    self.steps(series).filter(|step| !series.phase[*step].is_empty()).count();
                (known > 0).then(|| inside.count() as f64 / known as f64)
            }
            OfPhase::Begins => inside.next().map(|step| series.t_s[step]),
            OfPhase::Entries => Some(self.entries(&is_in, series).count() as f64),
        }
    }

    fn has(&self, end: f64) -> bool {
        *self.during.start() < end && end <= *self.during.end()
    }

    /// The steps that count.
    fn steps(&self, series: &Series) -> impl Iterator<Item = usize> {
        let steps = 0..series.phase.len().min(series.t_s.len());
        steps.filter(|step| self.has(series.t_s[*step]))
    }

    /// Those in which a phase is entered.
    fn entries(&self, is_in: &[bool], series: &Series) -> impl Iterator<Item = usize> {
        self.steps(series).filter(|step| is_in[*step] && (*step == 0 || !is_in[*step - 1]))
    }
}

/// Whether each step ended in the phase.
fn is_in(wanted: &str, series: &Series) -> Vec<bool> {
    series.phase.iter().map(|phase| is_phase(phase, wanted)).collect()
}

impl Fold {
    fn apply(self, values: &[f64]) -> Option<f64> {
        let sum: f64 = values.iter().sum();
        match self {
            _ if values.is_empty() => None,
            Self::Sum => Some(sum),
            Self::Mean => Some(sum / values.len() as f64),
            Self::Largest => values.iter().copied().reduce(f64::max),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::results::SeriesColumn;

    fn series() -> Series {
        let phases = ["STARTUP", "STARTUP", "DRAIN", "PROBE_BW:UP", "PROBE_BW:DOWN", "PROBE_BW:UP"];
        let column = |name: &str, values: [f64; 6]| SeriesColumn {
            name: name.into(),
            values: values.into_iter().map(|value| (!value.is_nan()).then_some(value)).collect(),
        };
        Series {
            run: 0,
            kind: Kind::Flow,
            name: "a".into(),
            t_s: vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
            columns: vec![
                column("cwnd_pkts", [10.0, 20.0, f64::NAN, 40.0, 50.0, 60.0]),
                column("retransmits", [0.0, 1.0, 2.0, 0.0, 0.0, 4.0]),
                column("owd_max_ms", [9.0, 1.0, 7.0, 3.0, 2.0, 1.0]),
            ],
            phase: phases.map(Arc::from).into(),
        }
    }

    fn value(name: &str, during: RangeInclusive<f64>) -> Option<f64> {
        let (name, _, fold) = column(name, Kind::Flow).expect("a column");
        OverTime { what: What::Column(name, fold), during }.of(&series())
    }

    #[test]
    fn states_are_averaged_counts_added_up_and_of_maxima_the_largest_is_taken() {
        assert_eq!(value("cwnd", 0.0..=4.0), Some(70.0 / 3.0));
        assert_eq!(value("cwnd_pkts", 2.0..=3.0), None);
        assert_eq!(value("retransmits", 1.0..=6.0), Some(7.0));
        assert_eq!(value("owd_max", 2.0..=5.0), Some(7.0));
        assert_eq!(value("owd_max", 7.0..=9.0), None);
    }

    #[test]
    fn parts_that_follow_each_other_share_no_step() {
        let whole = value("retransmits", 0.0..=6.0).expect("a sum");
        let parts =
            [0.0..=2.0, 2.0..=3.5, 3.5..=6.0].map(|part| value("retransmits", part).unwrap_or(0.0));
        assert_eq!(parts.iter().sum::<f64>(), whole);
    }

    #[test]
    fn phases_have_a_share_a_beginning_and_entries() {
        let of = |of, phase: &str, during| {
            OverTime { what: What::Phase(of, phase.into()), during }.of(&series())
        };
        assert_eq!(of(OfPhase::Share, "STARTUP", 0.0..=4.0), Some(0.5));
        assert_eq!(of(OfPhase::Share, "PROBE_BW", 3.0..=6.0), Some(1.0));
        assert_eq!(of(OfPhase::Begins, "PROBE_BW:UP", 0.0..=6.0), Some(4.0));
        assert_eq!(of(OfPhase::Begins, "PROBE_RTT", 0.0..=6.0), None);
        let entry = |n, during| {
            OverTime { what: What::Entry(n, "PROBE_BW:UP".into()), during }.of(&series())
        };
        assert_eq!([1, 2, 3].map(|n| entry(n, 0.0..=6.0)), [Some(4.0), Some(6.0), None]);
        assert_eq!(entry(1, 4.0..=6.0), Some(6.0), "from the beginning of the part");
        assert_eq!(of(OfPhase::Entries, "PROBE_BW:UP", 0.0..=6.0), Some(2.0));
        assert_eq!(of(OfPhase::Entries, "PROBE_BW", 0.0..=6.0), Some(1.0));
        assert_eq!(of(OfPhase::Share, "DRAIN", 8.0..=9.0), None);
        let mut late = series();
        late.phase[..2].fill(Arc::default());
        let share =
            OverTime { what: What::Phase(OfPhase::Share, "DRAIN".into()), during: 0.0..=4.0 };
        assert_eq!(share.of(&late), Some(0.5), "of the steps in which it is there");
        assert!(!is_phase("PROBE_BW_X", "PROBE_BW"));
    }

    #[test]
    fn a_column_that_is_not_there_is_named_with_its_neighbours() {
        let error = column("cwmd", Kind::Flow).unwrap_err().to_string();
        assert!(error.contains("did you mean 'cwnd'"), "{error}");
    }
}
