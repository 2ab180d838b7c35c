//! Tables with a head, whose columns are found by name: G-NetTrack's (the Irish 5G measurements),
//! those of the Lumos5G data set, and tables with units in their heads.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

use sojourn_core::{Rate, Span, SpecError};

use super::samples::{MAX_TIME_S, Samples};
use super::text::{BYTE_ORDER_MARK, Decimal, excerpt, number, place};
use super::{MAX_RATE, MAX_STEP, MAX_STEPS, Step, Trace, too_many};

/// Names of columns of rates, the preferred one first, and how many bit/s their unit is.
const RATES: &[(&str, f64)] = &[
    ("rate_mbps", 1e6),
    ("rate_kbps", 1e3),
    ("rate_bps", 1.0),
    ("mbps", 1e6),
    ("throughput_mbps", 1e6),
    ("bandwidth_mbps", 1e6),
    ("capacity_mbps", 1e6),
    // Lumos5G.
    ("throughput", 1e6),
    // G-NetTrack.
    ("dl_bitrate", 1e3),
    ("ul_bitrate", 1e3),
];

/// Names of columns of durations, and how many nanoseconds their unit is.
const INTERVALS: &[(&str, f64)] =
    &[("interval_s", 1e9), ("duration_s", 1e9), ("interval_ms", 1e6), ("duration_ms", 1e6)];

/// Names of columns of times of measurement.
const TIMES: &[(&str, f64)] = &[
    ("time_s", 1e9),
    ("t_s", 1e9),
    ("time_ms", 1e6),
    ("timestamp", 1e9),
    ("time", 1e9),
    ("seconds", 1e9),
    // Lumos5G: seconds of a run.
    ("seq_num", 1e9),
];

/// Lumos5G: when this changes, times begin again.
const RUN: &str = "run_num";

/// Whether a line names known columns.
pub(super) fn is_head(line: &str) -> bool {
    let names: Vec<_> = cells(line, cut_of(line)).collect();
    names.len() > 1
        && [RATES, INTERVALS, TIMES]
            .into_iter()
            .flatten()
            .any(|(name, _)| names.iter().any(|cell| cell.eq_ignore_ascii_case(name)))
}

/// Reads rows under a head. `column` names the rate if it is not the preferred one.
pub(super) fn parse(text: &str, column: Option<&str>) -> Result<Trace, SpecError> {
    let mut rows = rows(text);
    let (line, head) = rows.next().ok_or_else(no_lines)?;
    let cut = cut_of(head);
    let columns = Columns::find(head, column).map_err(|error| error.within(&place(line)))?;
    let mut steps = Vec::new();
    let mut samples = Samples::default();
    let mut run: Option<&str> = None;
    for (line, row) in rows {
        let cells: Vec<_> = cells(row, cut).collect();
        let mut read = || -> Result<(), SpecError> {
            let cell = |column: &Column| {
                cells.get(column.index).copied().ok_or_else(|| {
                    SpecError::new(format!("there is no column {}", column.index + 1))
                        .allow([format!("{} columns, as the head has", columns.count)])
                })
            };
            let rate = columns.rate.number(cell(&columns.rate)?, 0, MAX_RATE.as_bps())?;
            let rate = Rate::from_bps(rate);
            match &columns.when {
                When::Interval(interval) => {
                    if steps.len() == MAX_STEPS {
                        return Err(too_many("lines"));
                    }
                    let ns = interval.number(cell(interval)?, 1, MAX_STEP.as_nanos())?;
                    steps.push(Step { rate, duration: Span::from_nanos(ns) });
                }
                When::Time(time) => {
                    if let Some(column) = &columns.run {
                        let now = cell(column)?;
                        if run.replace(now).is_some_and(|before| before != now) {
                            samples.end_run();
                        }
                    }
                    samples.push(time.time(cell(time)?)?, rate)?;
                }
            }
            Ok(())
        };
        read().map_err(|error| error.within(&place(line)))?;
    }
    match columns.when {
        When::Interval(_) if steps.is_empty() => Err(no_lines()),
        When::Time(_) if samples.is_empty() => Err(no_lines()),
        When::Interval(_) => Trace::new(steps),
        When::Time(_) => samples.finish(),
    }
}

/// Writes a table that [`parse`] reads back.
pub(super) fn written(trace: &Trace) -> String {
    let mut text = "rate_mbps,interval_s\n".to_owned();
    for Step { rate, duration } in trace.steps() {
        let (rate, interval) = (Decimal(rate.as_bps(), 6), Decimal(duration.as_nanos(), 9));
        let _ = writeln!(text, "{rate},{interval}");
    }
    text
}

fn no_lines() -> SpecError {
    SpecError::new("the trace has no lines").allow(["a head such as Timestamp,DL_bitrate and rows"])
}

/// Numbered lines that are not blank. A `#` inside a line begins no comment here.
fn rows(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.trim_start_matches(BYTE_ORDER_MARK)
        .lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line.trim()))
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

/// The separator of a table with this head.
fn cut_of(head: &str) -> char {
    [',', ';', '\t'].into_iter().find(|cut| head.contains(*cut)).unwrap_or(' ')
}

/// The cells of a row. A cell in double quotes may contain the separator.
fn cells(row: &str, cut: char) -> impl Iterator<Item = &str> {
    let mut rest = Some(row);
    core::iter::from_fn(move || {
        let text = rest?.trim_start_matches(' ');
        let (cell, after) = match text.strip_prefix('"').and_then(|text| text.split_once('"')) {
            Some((cell, after)) => (cell, after.find(cut).map(|at| &after[at + 1..])),
            None => match text.split_once(cut) {
                Some((cell, after)) => (cell, Some(after)),
                None => (text, None),
            },
        };
        rest = after;
        Some(cell.trim())
    })
}

struct Columns {
    rate: Column,
    when: When,
    run: Option<Column>,
    count: usize,
}

enum When {
    Interval(Column),
    Time(Column),
}

/// A column's position, its name, and the scale of its numbers.
struct Column {
    index: usize,
    name: String,
    scale: f64,
}

impl Columns {
    fn find(head: &str, wanted: Option<&str>) -> Result<Self, SpecError> {
        let names: Vec<_> = cells(head, cut_of(head)).collect();
        let known = |list: &[(&str, f64)]| {
            list.iter().find_map(|(name, scale)| Column::named(&names, name, *scale))
        };
        let rate = match wanted {
            None => known(RATES).ok_or_else(|| {
                SpecError::new("no column is a rate that is known; name it with 'column'")
                    .allow(names.iter().map(|name| excerpt(name)))
            })?,
            Some(wanted) => Column::named(&names, wanted, scale_of(wanted)).ok_or_else(|| {
                SpecError::new(format!("there is no column '{}'", excerpt(wanted)))
                    .near(wanted, names.iter().copied())
                    .allow(names.iter().map(|name| excerpt(name)))
            })?,
        };
        let when = match (known(INTERVALS), known(TIMES)) {
            (Some(interval), _) => When::Interval(interval),
            (None, Some(time)) => When::Time(time),
            (None, None) => {
                return Err(SpecError::new("no column is a time that is known")
                    .allow(TIMES.iter().chain(INTERVALS).map(|(name, _)| *name)));
            }
        };
        let run = Column::named(&names, RUN, 1.0);
        Ok(Self { rate, when, run, count: names.len() })
    }
}

impl Column {
    fn named(names: &[&str], name: &str, scale: f64) -> Option<Self> {
        let index = names.iter().position(|cell| cell.eq_ignore_ascii_case(name))?;
        Some(Self { index, name: excerpt(names[index]), scale })
    }

    fn number(&self, cell: &str, least: u64, most: u64) -> Result<u64, SpecError> {
        let unit = match self.scale {
            1e6 if least == 0 => "Mbit/s",
            1e3 => "kbit/s",
            1.0 => "bit/s",
            1e9 => "seconds",
            _ => "milliseconds",
        };
        number(&self.name, cell, self.scale, least, most, unit)
    }

    /// Seconds, or a date and a time of day.
    fn time(&self, cell: &str) -> Result<u64, SpecError> {
        if cell.parse::<f64>().is_err()
            && let Some(seconds) = stamp(cell)
        {
            return Ok(seconds);
        }
        let unit = if self.scale == 1e6 { "milliseconds" } else { "seconds" };
        number(&self.name, cell, self.scale, 0, MAX_TIME_S * 1_000_000_000, unit).map_err(|error| {
            let dates = "a date such as 2019.12.16_13.40.04".to_owned();
            let allowed: Vec<_> = error.allowed().iter().cloned().chain([dates]).collect();
            error.allow(allowed)
        })
    }
}

/// How many bits per second the unit of a column is.
fn scale_of(name: &str) -> f64 {
    let known = RATES.iter().find(|(known, _)| name.eq_ignore_ascii_case(known));
    let lower = name.to_ascii_lowercase();
    match known {
        Some((_, scale)) => *scale,
        None if lower.ends_with("kbps") => 1e3,
        None if lower.ends_with("mbps") => 1e6,
        None if lower.ends_with("bps") => 1.0,
        None => 1e6,
    }
}

/// Nanoseconds from 1970 to a date and a time of day, whose six or seven numbers may have anything
/// between them: `2019.12.16_13.40.04`, `2019-12-16T13:40:04.250Z`.
fn stamp(text: &str) -> Option<u64> {
    let groups: Vec<&str> =
        text.split(|c: char| !c.is_ascii_digit()).filter(|group| !group.is_empty()).collect();
    let number = |index: usize| groups.get(index)?.parse::<u64>().ok();
    let (year, month, day) = (number(0)?, number(1)?, number(2)?);
    let (hour, minute, second) = (number(3)?, number(4)?, number(5)?);
    let in_range = (1970..=2285).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60;
    if !in_range || groups.len() > 7 {
        return None;
    }
    let nanos = match groups.get(6) {
        None => 0,
        Some(fraction) if fraction.len() <= 9 => {
            fraction.parse::<u64>().ok()? * 10u64.pow(9 - fraction.len() as u32)
        }
        Some(_) => return None,
    };
    // Years that begin in March end with the leap day.
    let (years, months) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = years * 365 + years / 4 - years / 100 + years / 400 + (153 * months + 2) / 5 + day;
    let days = days - DAYS_TO_1970;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1_000_000_000 + nanos)
}

/// What the count of days above gives for the first of January 1970.
const DAYS_TO_1970: u64 = 719_469;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_count_from_1970_with_leap_days() {
        let second = 1_000_000_000;
        for (text, seconds) in [
            ("1970.01.01_00.00.00", 0),
            ("2000-02-29 12:00:00", 951_825_600),
            ("2019.12.16_13.40.04", 1_576_503_604),
            ("2020-03-01T00:00:00Z", 1_583_020_800),
        ] {
            assert_eq!(stamp(text), Some(seconds * second), "{text}");
        }
        assert_eq!(stamp("1970-01-01T00:00:01.25Z"), Some(1_250_000_000));
        for text in ["", "2019.12.16", "2019.13.16_13.40.04", "1969.12.31_23.59.59", "12:00:00"] {
            assert_eq!(stamp(text), None, "{text}");
        }
    }

    #[test]
    fn cells_may_stand_in_quotation_marks() {
        let row = |text| cells(text, ',').collect::<Vec<_>>();
        assert_eq!(row("a, b,,c"), ["a", "b", "", "c"]);
        assert_eq!(row("\"a,b\",c"), ["a,b", "c"]);
        assert_eq!(row("\"a"), ["\"a"]);
        assert_eq!(row(""), [""]);
    }
}
