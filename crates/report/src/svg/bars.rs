//! A bar, box or point row for each value of a factor, with every run as a point.

use std::fmt::Write;

use sojourn_metrics::stats;

use super::parts::{beside_each_other, class, open, text_width, visible};
use super::scale::Scale;
use super::symbol::symbol;
use crate::data::{Mean, Points};
use crate::markup::Esc;
use crate::number::{estimate, number, shown, shown_with_unit};

/// What a row of the figure shows.
pub(crate) struct Category {
    pub(crate) label: String,
    pub(crate) groups: Vec<Group>,
}

/// The points of one colour.
pub(crate) struct Group {
    pub(crate) colour: usize,
    pub(crate) label: String,
    pub(crate) points: Points,
}

/// How the points of a row are summarised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// A bar to the mean, with its 95 % interval.
    Bars,
    /// Quartiles and median, whiskers to the ends.
    Boxes,
}

const ROW: f64 = 18.0;
const GAP: f64 = 12.0;
/// Intervals are drawn up to this multiple of the highest value.
const INTERVALS: f64 = 1.15;

/// Rows of bars or boxes with all points shown. `axis` names the quantity, with its unit; its scale
/// covers `also`, so that panels of one figure have the same.
pub(crate) fn bars(
    categories: &[Category],
    layout: Layout,
    axis: &str,
    unit: &str,
    also: &[f64],
    width: f64,
) -> String {
    if categories.is_empty() {
        return String::new();
    }
    let mut values: Vec<f64> = categories
        .iter()
        .flat_map(|category| &category.groups)
        .flat_map(|group| group.points.iter().map(|point| point.value))
        .chain(also.iter().copied())
        .collect();
    if values.is_empty() {
        return String::new();
    }
    let (left, top, height) = frame(categories, width);
    let spread = values.iter().copied().fold(0.0, f64::max)
        / values.iter().copied().filter(|v| *v > 0.0).fold(f64::INFINITY, f64::min);
    let means = categories
        .iter()
        .flat_map(|category| &category.groups)
        .filter_map(|group| Mean::of(&group.points));
    // Room for what stands at the end of the longest row.
    let texts = means.map(|mean| text_width(&at_row(&mean, layout, unit)) * SMALL);
    let right = match layout {
        Layout::Bars => width - texts.fold(40.0, f64::max).min(width / 4.0) - 6.0,
        Layout::Boxes => width - texts.fold(10.0, f64::max).min(width / 4.0) - 6.0,
    };
    let scale = if layout == Layout::Boxes && spread > 8.0 && values.iter().all(|v| *v > 0.0) {
        Scale::log(values, left, right)
    } else if layout == Layout::Bars {
        // An interval over two seeds may be ten times as wide as all values, so it is cut.
        let highest = values.iter().copied().fold(0.0, f64::max);
        values.extend([0.0, highest * INTERVALS]);
        Scale::linear(values, left, right)
    } else {
        Scale::linear(values, left, right)
    };
    let mut out = open("chart bars", width, height, axis);
    x_axis(&mut out, &scale, axis, left, width, top, height);
    let labels = labels(categories, left);
    let mut y = top;
    for (category, lines) in categories.iter().zip(&labels) {
        let middle = y + category.groups.len() as f64 * ROW / 2.0;
        label(&mut out, &category.label, lines, left, middle);
        for group in &category.groups {
            row(&mut out, group, layout, &scale, unit, y + ROW / 2.0, &category.label);
            y += ROW;
        }
        y += GAP;
    }
    out + "</svg>"
}

/// A bar of fixed length for each category, divided by mean share.
pub(crate) fn shares(categories: &[Category], axis: &str, width: f64) -> String {
    let (left, right) = (left_margin(categories, width), width - 16.0);
    let height = 6.0 + categories.len() as f64 * 30.0 + 34.0;
    let mut out = open("chart bars", width, height, axis);
    let scale = Scale::exact(0.0, 1.0, left, right);
    for tick in [0.0, 0.25, 0.5, 0.75, 1.0] {
        let x = scale.at(tick);
        let _ = write!(
            out,
            "<path class=\"grid\" d=\"M{x:.1} 4V{:.1}\"/><text class=\"tick\" x=\"{x:.1}\" y=\"{:.1}\" \
             text-anchor=\"middle\">{} %</text>",
            height - 34.0,
            height - 20.0,
            tick * 100.0
        );
    }
    let _ = write!(
        out,
        "<text class=\"axis\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
        f64::midpoint(left, right),
        height - 5.0,
        Esc(axis)
    );
    let labels = labels(categories, left);
    for (at, (category, lines)) in categories.iter().zip(&labels).enumerate() {
        let y = 6.0 + at as f64 * 30.0;
        label(&mut out, &category.label, lines, left, y + 11.0);
        let mut from = 0.0;
        for group in &category.groups {
            let Some(mean) = Mean::of(&group.points) else { continue };
            let (x, to) = (scale.clamped(from), scale.clamped(from + mean.mean));
            let _ = write!(
                out,
                "<g class=\"{}\" tabindex=\"-1\"><rect class=\"bar\" x=\"{x:.1}\" y=\"{y:.1}\" \
                 width=\"{:.1}\" height=\"22\"/><title>{}: {}</title></g>",
                class(group.colour),
                (to - x).max(0.0),
                Esc(&format!("{}, {}", category.label, group.label)),
                Esc(&estimate(mean.mean * 100.0, mean.half_width.map(|half| half * 100.0), "%"))
            );
            if to - x > 34.0 {
                let _ = write!(
                    out,
                    "<text class=\"on {}\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{:.0} %</text>",
                    class(group.colour),
                    f64::midpoint(x, to),
                    y + 15.5,
                    mean.mean * 100.0
                );
            }
            from += mean.mean;
        }
    }
    out + "</svg>"
}

fn lacking(mean: &Mean) -> String {
    mean.lacking().map_or(String::new(), |counted| format!(", over {counted}"))
}

/// What stands where a bar would begin.
fn no_value(points: &Points) -> String {
    let why = points.why_none().unwrap_or_default();
    if points.is_out_of_reach() { why } else { format!("no value ({why})") }
}

fn row(
    out: &mut String,
    group: &Group,
    layout: Layout,
    scale: &Scale,
    unit: &str,
    y: f64,
    category: &str,
) {
    let Some(mean) = Mean::of(&group.points) else {
        let _ = write!(
            out,
            "<text class=\"none\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            scale.ticks().first().map_or(0.0, |(tick, _)| scale.at(*tick)) + 4.0,
            y + 4.0,
            Esc(&no_value(&group.points))
        );
        return;
    };
    let _ = write!(out, "<g class=\"{}\">", class(group.colour));
    let values: Vec<f64> = group.points.iter().map(|point| point.value).collect();
    let who = format!("{category}, {}", group.label);
    let mut right = f64::MIN;
    match layout {
        Layout::Bars => {
            let (zero, end) = (scale.at(0.0), scale.at(mean.mean));
            let _ = write!(
                out,
                "<g><rect class=\"bar\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"12\"/>\
                 <title>{}: {}</title></g>",
                zero.min(end),
                y - 6.0,
                (end - zero).abs().max(0.5),
                Esc(&who),
                Esc(&(shown_with_unit(mean.mean, mean.half_width, unit) + &lacking(&mean)))
            );
            right = end.max(zero);
            if let Some(half) = mean.half_width.filter(|half| *half > 0.0) {
                let (low, high) = (mean.mean - half, mean.mean + half);
                let (a, b) = (scale.clamped(low), scale.clamped(high));
                right = right.max(b);
                let _ = write!(out, "<path class=\"whisker\" d=\"M{a:.1} {y:.1}H{b:.1}");
                // An interval that was cut has no end mark.
                for end in
                    [low, high].map(|end| scale.at(end)).into_iter().filter(|x| (a..=b).contains(x))
                {
                    let _ = write!(out, "M{end:.1} {:.1}V{:.1}", y - 4.0, y + 4.0);
                }
                *out += "\"/>";
            }
        }
        Layout::Boxes => {
            let at = |q: f64| scale.at(stats::quantile(&values, q).unwrap_or(mean.mean));
            let (low, q1, q2, q3, high) = (at(0.0), at(0.25), at(0.5), at(0.75), at(1.0));
            let _ = write!(
                out,
                "<g><path class=\"whisker\" d=\"M{low:.1} {y:.1}H{high:.1}\"/><rect class=\"box\" \
                 x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"12\"/><path class=\"median\" \
                 d=\"M{q2:.1} {:.1}V{:.1}\"/><title>{}: median {} {}, quartiles {} to {}{}</title></g>",
                q1.min(q3),
                y - 6.0,
                (q3 - q1).abs().max(0.8),
                y - 7.0,
                y + 7.0,
                Esc(&who),
                number(stats::quantile(&values, 0.5).unwrap_or(mean.mean)),
                Esc(unit),
                number(stats::quantile(&values, 0.25).unwrap_or(mean.mean)),
                number(stats::quantile(&values, 0.75).unwrap_or(mean.mean)),
                Esc(&lacking(&mean))
            );
        }
    }
    let right = values.iter().map(|value| scale.at(*value)).fold(right, f64::max);
    let text = at_row(&mean, layout, unit);
    if !text.is_empty() {
        let _ = write!(
            out,
            "<text class=\"value\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            right + 6.0,
            y + 4.0,
            Esc(&text)
        );
    }
    let points = visible(&group.points, |point| (scale.at(point.value), 0.0));
    for (at, point) in points.iter().enumerate() {
        // Points of one row are offset by their order, so that equal ones stay visible.
        let dy = ((at * 2 + 1) as f64 / points.len() as f64 - 1.0) * 4.0;
        let _ = write!(
            out,
            "<g class=\"pt\" data-run=\"{}\">{}<title>{}, seed {}: {} {}</title></g>",
            point.run,
            symbol(group.colour, scale.at(point.value), y + dy, 2.4),
            Esc(&who),
            point.seed,
            number(point.value),
            Esc(unit)
        );
    }
    *out += "</g>";
}

/// What stands at the end of a row: at a bar its number, and at either of how many samples it is if some
/// are missing.
fn at_row(mean: &Mean, layout: Layout, unit: &str) -> String {
    let counted = mean.lacking().map(|counted| format!("({counted})"));
    let number = (layout == Layout::Bars).then(|| shown(mean.mean, unit));
    number.into_iter().chain(counted).collect::<Vec<_>>().join(" ")
}

/// How wide the texts at the ends of rows are, beside other text.
const SMALL: f64 = 0.92;

fn labels(categories: &[Category], left: f64) -> Vec<Vec<String>> {
    let names: Vec<String> = categories.iter().map(|category| category.label.clone()).collect();
    beside_each_other(&names, left - 10.0)
}

/// The category's name in one or two lines around `middle`.
fn label(out: &mut String, name: &str, lines: &[String], left: f64, middle: f64) {
    const LINE: f64 = 13.5;
    let first = middle + 4.0 - (lines.len() as f64 - 1.0) * LINE / 2.0;
    *out += "<g>";
    for (at, line) in lines.iter().enumerate() {
        let _ = write!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            left - 8.0,
            first + at as f64 * LINE,
            Esc(line)
        );
    }
    let _ = write!(out, "<title>{}</title></g>", Esc(name));
}

/// Left margin, top margin and height.
fn frame(categories: &[Category], width: f64) -> (f64, f64, f64) {
    let rows: usize = categories.iter().map(|category| category.groups.len()).sum();
    let height = 8.0 + rows as f64 * ROW + categories.len() as f64 * GAP + 34.0;
    (left_margin(categories, width), 8.0, height)
}

fn left_margin(categories: &[Category], width: f64) -> f64 {
    let widest = categories.iter().map(|c| text_width(&c.label)).fold(40.0, f64::max);
    (widest + 12.0).min(width * 0.36)
}

fn x_axis(
    out: &mut String,
    scale: &Scale,
    title: &str,
    left: f64,
    width: f64,
    top: f64,
    height: f64,
) {
    for (tick, text) in scale.ticks() {
        let x = scale.at(tick);
        let _ = write!(
            out,
            "<path class=\"grid\" d=\"M{x:.1} {:.1}V{:.1}\"/><text class=\"tick\" x=\"{x:.1}\" \
             y=\"{:.1}\" text-anchor=\"middle\">{text}</text>",
            top - 2.0,
            height - 34.0,
            height - 20.0
        );
    }
    let _ = write!(
        out,
        "<text class=\"axis\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
        f64::midpoint(left, width - 16.0),
        height - 5.0,
        Esc(title)
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Counted, Point};

    /// The drawing of one group, which has these values, each counted like this.
    fn drawn(values: &[f64], counted: Counted, layout: Layout, title: &str, unit: &str) -> String {
        let point =
            |(run, value): (u32, &f64)| Point { run, seed: run.into(), value: *value, counted };
        let points = (0..).zip(values).map(point).collect::<Vec<_>>().into();
        let group = Group { colour: 0, label: "bbr".into(), points };
        let categories = [Category { label: "fq".into(), groups: vec![group] }];
        bars(&categories, layout, title, unit, &[], 480.0)
    }

    #[test]
    fn the_interval_of_two_seeds_does_not_stretch_the_axis() {
        // A mean of 11 with 12.7 to both sides.
        let svg = drawn(&[10.0, 12.0], Counted::ONE, Layout::Bars, "delay (ms)", "ms");
        assert!(svg.contains(">10</text>") && !svg.contains(">20</text>"), "{svg}");
        let whisker = svg.split("class=\"whisker\"").nth(1).expect("there is one");
        let path = whisker.split('>').next().expect("it ends");
        assert!(!path.contains('V'), "both ends lie outside: {path}");
    }

    /// A drawing stands in files of its own, too, which are XML.
    #[test]
    fn less_than_a_number_is_written_as_xml_has_it() {
        let svg = drawn(&[0.0071], Counted::ONE, Layout::Bars, "loss (%)", "%");
        assert!(svg.contains(">&lt;0.01</text>"), "{svg}");
    }

    #[test]
    fn a_box_over_some_of_the_samples_says_of_how_many() {
        let of = |counted| drawn(&[143.0], counted, Layout::Boxes, "delay (ms)", "ms");
        let some = of(Counted { known: 147, of: 401 });
        assert!(some.contains(">(147 of 401)</text>"), "{some}");
        assert!(some.contains("over 147 of 401</title>"), "{some}");
        assert!(!of(Counted::ONE).contains("class=\"value\""));
    }

    #[test]
    fn a_long_number_at_the_longest_bar_has_room() {
        let of = |counted: Counted| {
            let svg = drawn(&[143.0], counted, Layout::Bars, "delay (ms)", "ms");
            let at = svg.split("class=\"value\" x=\"").nth(1).expect("the number is there");
            let (x, rest) = at.split_once('"').expect("the place ends");
            let text = rest.split(['>', '<']).nth(1).expect("the text is there").to_owned();
            (x.parse::<f64>().expect("a number") + SMALL * text_width(&text), text)
        };
        for counted in [Counted::ONE, Counted { known: 9_970, of: 10_000 }] {
            let (end, text) = of(counted);
            assert!(end <= 480.0, "'{text}' ends at {end}");
        }
    }
}
