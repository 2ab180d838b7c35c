//! What is said of all lines of a table that lists only the first of them.

use sojourn_study::results::Plan;

use crate::data::{Data, Subject};
use crate::lines::{aligned, counted, counted_subjects};
use crate::markup::plain_text;
use crate::names;
use crate::number::shown_with_unit;

/// A line of a table, however its table counts them.
pub(crate) type Place = usize;

/// Of a table with a line for each of these subjects, which are of one kind, in each of these scenarios. Lines are counted scenario by
/// scenario.
pub(crate) fn of_scenarios<'a>(
    data: &Data<'_>,
    subjects: &[&Subject],
    scenarios: &[u32],
    metrics: impl Iterator<Item = (&'a str, Vec<(f64, Place)>)>,
) -> String {
    let of_subjects = counted_subjects(subjects, data.plan);
    let of_scenarios = counted(scenarios.len(), "scenario");
    let all = match (subjects.len(), scenarios.len()) {
        (1, _) => of_scenarios,
        (_, 1) => of_subjects,
        _ => format!("{of_subjects} in {of_scenarios}"),
    };
    extremes(data.plan, &all, metrics, &|place| {
        let subject = plain_text(subjects[place % subjects.len()].label());
        let label = || plain_text(&data.label(scenarios[place / subjects.len()] as usize));
        match (subjects.len(), scenarios.len()) {
            (1, _) => label(),
            (_, 1) => subject,
            _ => format!("{subject}, {}", label()),
        }
    })
}

/// After an empty line a line for each metric: the least value, the median and the largest of all lines, and which lines have the least and the
/// largest. `all` says of what, as `1000 flows`. Of each metric there are the values that lines have, which may be none.
pub(crate) fn extremes<'a>(
    plan: &Plan,
    all: &str,
    metrics: impl Iterator<Item = (&'a str, Vec<(f64, Place)>)>,
    name: &dyn Fn(Place) -> String,
) -> String {
    let mut table = vec![
        [&format!("of {all}"), "least is of", "largest is of", "least", "median", "largest"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for (metric, mut values) in metrics {
        values.retain(|(value, _)| value.is_finite());
        // Of equal values that of the first line counts, as lines are in their order.
        let (Some(least), Some(largest)) = (
            values.iter().copied().reduce(|least, one| if one.0 < least.0 { one } else { least }),
            values.iter().copied().reduce(|most, one| if one.0 > most.0 { one } else { most }),
        ) else {
            continue;
        };
        let shown = |value: f64| match names::percentage(plan, metric) {
            Some((factor, unit)) => shown_with_unit(value * factor, None, unit),
            None => shown_with_unit(value, None, ""),
        };
        let differ = least.0 < largest.0;
        let of = |place: Place| if differ { name(place) } else { String::new() };
        table.push(vec![
            metric.to_owned(),
            of(least.1),
            of(largest.1),
            shown(least.0),
            shown(median(&mut values)),
            shown(largest.0),
        ]);
    }
    if table.len() > 1 { format!("\n{}", aligned(&table, 3)) } else { String::new() }
}

/// There is a value.
fn median(values: &mut [(f64, Place)]) -> f64 {
    let middle = values.len() / 2;
    let is_even = values.len().is_multiple_of(2);
    let (below, at, _) =
        values.select_nth_unstable_by(middle, |one, other| one.0.total_cmp(&other.0));
    let upper = at.0;
    match below.iter().map(|value| value.0).reduce(f64::max) {
        Some(lower) if is_even => lower.midpoint(upper),
        _ => upper,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_in_the_middle() {
        let of = |values: &[f64]| {
            median(&mut values.iter().map(|value| (*value, 0)).collect::<Vec<_>>())
        };
        assert_eq!([of(&[3.0]), of(&[4.0, 1.0]), of(&[9.0, 1.0, 2.0])], [3.0, 2.5, 2.0]);
    }
}
