//! A metric against the numbers of a factor.

use std::collections::BTreeMap;

use sojourn_study::results::{Axis, Numbers};

use super::frame::{Frame, Split};
use super::panels::{Figure, Head, figure};
use crate::data::Mean;
use crate::number::stepped;
use crate::svg::{Line, MOST_SPOTS, Spot, Spots, lines};

/// From this ratio of largest to least value on, the axis is logarithmic, so that small values can
/// be seen.
const FAR_X: f64 = 8.0;
const FAR_Y: f64 = 100.0;

/// `log` names the axes that the study wants logarithmic; with `None` the values decide.
pub(super) fn line_figure(
    frame: &Frame<'_>,
    head: &Head<'_>,
    metric: &str,
    log: Option<&[Axis]>,
) -> Option<Figure> {
    let Some(Split::Factor(factor)) = frame.x else { return None };
    let varied = factor;
    let factor = &frame.data.plan.factors[factor];
    let numbers = Numbers::of(&factor.values)?;
    let largest = numbers.values.iter().copied().fold(0.0, f64::max);
    let (step, unit) = stepped(largest, &numbers.unit);
    let x_title = match (&numbers.around[..], unit) {
        ("", "") => factor.name.clone(),
        ("", unit) => format!("{} ({unit})", factor.name),
        (around, "") => around.to_owned(),
        (around, unit) => format!("{around} ({unit})"),
    };
    let measure = frame.measure(metric);
    let keys = frame.keys(frame.colour);
    let mut panels: Vec<(String, Vec<Line>)> = Vec::new();
    let mut xs = Vec::new();
    for (name, members) in frame.panels() {
        let mut here: Vec<Line> = Vec::new();
        let mut places: BTreeMap<String, usize> = BTreeMap::new();
        for (scenario, subject) in members {
            let named = frame.data.value(scenario, varied).to_owned();
            let Some(at) = factor.values.iter().position(|value| *value == named) else { continue };
            let points = frame.points(scenario, subject, &measure);
            if points.is_empty() {
                continue;
            }
            let key = frame.key(frame.colour, scenario, subject);
            let label = if key.is_empty() { subject.label().to_owned() } else { key };
            let x = numbers.values[at] * step;
            xs.push(x);
            let spot = Spot { x, named, points };
            let place = *places.entry(label).or_insert_with_key(|label| {
                let colour = frame.colour(scenario, subject, &keys);
                here.push(Line { colour, label: label.clone(), spots: Vec::new() });
                here.len() - 1
            });
            here[place].spots.push(spot);
        }
        for line in &mut here {
            line.spots.sort_by(|a, b| a.x.total_cmp(&b.x));
        }
        panels.push((name, here));
    }
    let ys = frame.values(&measure);
    let is_log = |axis: Axis, values: &[f64], far: f64| match log {
        Some(axes) => axes.contains(&axis) && values.iter().any(|value| *value > 0.0),
        None => {
            let (least, most) = values
                .iter()
                .fold((f64::INFINITY, 0.0f64), |(a, b), value| (a.min(*value), b.max(*value)));
            least > 0.0 && most / least >= far
        }
    };
    let of = Spots {
        x_title: &x_title,
        y_title: &measure.axis,
        unit: &measure.unit,
        log_x: is_log(Axis::X, &xs, FAR_X),
        log_y: is_log(Axis::Y, &ys, FAR_Y),
        xs: &xs,
        ys: &ys,
    };
    let spots = |lines: &[Line]| lines.iter().map(|line| line.spots.len()).sum::<usize>();
    let dense = "Here are too many for that: only means are drawn, and neither intervals nor runs.";
    let lacks = |line: &Line| {
        let mut means = line.spots.iter().filter_map(|spot| Mean::of(&spot.points));
        means.any(|mean| mean.lacking().is_some())
    };
    let part = "A hollow mean lacks runs or samples: point at it to see how many there are.";
    let mut caption = frame.with_missing(head.caption, metric);
    if panels.iter().any(|(_, lines)| spots(lines) > MOST_SPOTS) {
        caption = format!("{caption} {dense}");
    } else if panels.iter().flat_map(|(_, lines)| lines).any(lacks) {
        caption = format!("{caption} {part}");
    }
    let head = &Head { caption: &caption, ..*head };
    figure(head, frame.legend(None), &panels, |here, width| lines(here, &of, width))
}
