//! An area drawn with characters. Each column covers a stretch of time and shows its least and its
//! largest value, because gaps in capacity matter most.

use std::fmt::Write;

use sojourn_link::Trace;

use crate::number::number;

/// The least and the largest value of a stretch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Range {
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Range {
    /// Includes one more value.
    pub(crate) fn joined(range: Option<Self>, value: f64) -> Self {
        let Self { low, high } = range.unwrap_or(Self { low: value, high: value });
        Self { low: low.min(value), high: high.max(value) }
    }
}

/// The least and the largest rate, in Mbit/s, of each of `width` equal stretches of a trace.
pub(crate) fn ranges(trace: &Trace, width: usize) -> Vec<Option<Range>> {
    let duration = u128::from(trace.duration().as_nanos());
    let column = |nanos: u64| (u128::from(nanos) * width as u128 / duration) as usize;
    let mut columns: Vec<Option<Range>> = vec![None; width];
    let mut start = 0;
    for step in trace.steps() {
        let end = start + step.duration.as_nanos();
        // The end belongs to the next step.
        for range in &mut columns[column(start)..=column(end - 1)] {
            *range = Some(Range::joined(*range, step.rate.as_mbps()));
        }
        start = end;
    }
    columns
}

/// Columns to the left of an area.
pub(crate) const MARGIN: usize = 11;

/// Several lines, from 0 to the largest value: solid up to the least of each stretch, shaded up to
/// its largest.
pub(crate) fn area(stretches: &[Option<Range>], height: usize, unit: &str) -> String {
    let top = stretches.iter().flatten().fold(f64::MIN_POSITIVE, |top, range| top.max(range.high));
    let mut text = String::new();
    for line in (0..height).rev() {
        let middle = (line as f64 + 0.5) / height as f64 * top;
        let label = match line {
            _ if line + 1 == height => number(top),
            0 => "0".to_owned(),
            _ if line == height / 2 => unit.to_owned(),
            _ => String::new(),
        };
        let cell = |range: &Option<Range>| match range {
            Some(range) if range.low >= middle => '█',
            Some(range) if range.high >= middle => '░',
            _ => ' ',
        };
        let cells: String = stretches.iter().map(cell).collect();
        let _ = writeln!(text, "{label:>9} ┤{}", cells.trim_end());
    }
    text
}

/// The line under an area.
pub(crate) fn axis(width: usize, first: &str, last: &str) -> String {
    let room = width.saturating_sub(first.chars().count());
    format!("{:MARGIN$}{first}{last:>room$}\n", "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_area_is_solid_up_to_the_least_and_shaded_to_the_largest() {
        let stretches = [Some(Range { low: 2.0, high: 4.0 }), Some(Range { low: 4.0, high: 4.0 })];
        let text = area(&stretches, 4, "Mbit/s");
        let columns: Vec<&str> = text.lines().map(|line| line.split('┤').nth(1).unwrap()).collect();
        assert_eq!(columns, ["░█", "░█", "██", "██"]);
    }
}
