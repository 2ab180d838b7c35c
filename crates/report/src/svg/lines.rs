//! A metric against a number that was varied: a line through the means, a band for their 95 %
//! intervals, and every run as a point.

use std::fmt::Write;

use super::parts::{class, dash, fitted, open, text_width, ticks_below, ticks_beside, visible};
use super::scale::Scale;
use super::symbol::symbol;
use crate::data::{Mean, Points};
use crate::markup::Esc;
use crate::number::{number, shown_with_unit};

pub(crate) struct Line {
    pub(crate) colour: usize,
    pub(crate) label: String,
    /// In ascending order of the number that was varied.
    pub(crate) spots: Vec<Spot>,
}

/// The runs at one value.
pub(crate) struct Spot {
    pub(crate) x: f64,
    /// The value as the study writes it.
    pub(crate) named: String,
    pub(crate) points: Points,
}

/// What all lines of a figure have in common.
pub(crate) struct Spots<'a> {
    pub(crate) x_title: &'a str,
    pub(crate) y_title: &'a str,
    pub(crate) unit: &'a str,
    pub(crate) log_x: bool,
    pub(crate) log_y: bool,
    /// Values that the axes of all panels cover.
    pub(crate) xs: &'a [f64],
    pub(crate) ys: &'a [f64],
}

const HEIGHT: f64 = 320.0;

/// With more spots than these, lines are drawn without bands and points.
pub(crate) const MOST_SPOTS: usize = 1_000;

/// The most lines whose names have room at their ends.
const MOST_NAMED: usize = 20;

pub(crate) fn lines(lines: &[Line], of: &Spots<'_>, width: f64) -> String {
    if lines.iter().all(|line| line.spots.is_empty()) {
        return String::new();
    }
    let (left, top, bottom) = (58.0, 12.0, HEIGHT - 44.0);
    // Names at the ends of the lines, where there is room for them.
    let widest = lines.iter().map(|line| text_width(&line.label)).fold(0.0, f64::max);
    let named = (2..=MOST_NAMED).contains(&lines.len()) && widest < width * 0.3;
    let right = if named { width - widest - 16.0 } else { width - 18.0 };
    let x = if of.log_x {
        Scale::log(of.xs.iter().copied(), left, right)
    } else {
        Scale::linear(of.xs.iter().copied(), left, right)
    };
    let y = if of.log_y {
        Scale::log(of.ys.iter().copied(), bottom, top)
    } else {
        Scale::linear(of.ys.iter().copied().chain([0.0]), bottom, top)
    };
    let mut out = open("chart", width, HEIGHT, &format!("{} by {}", of.y_title, of.x_title));
    ticks_below(&mut out, &x, top, bottom);
    let marks = y.ticks().into_iter().map(|(tick, text)| (y.at(tick), text));
    ticks_beside(&mut out, marks, left, right);
    let _ = write!(
        out,
        "<text class=\"axis\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}{}</text><text \
         class=\"axis\" transform=\"translate(13 {:.1}) rotate(-90)\" text-anchor=\"middle\">{}{}</text>",
        f64::midpoint(left, right),
        HEIGHT - 9.0,
        Esc(of.x_title),
        if of.log_x { ", log scale" } else { "" },
        f64::midpoint(top, bottom),
        Esc(of.y_title),
        if of.log_y { ", log scale" } else { "" }
    );
    let is_dense = lines.iter().map(|line| line.spots.len()).sum::<usize>() > MOST_SPOTS;
    for line in lines.iter().filter(|_| !is_dense) {
        band(&mut out, line, &x, &y);
    }
    for line in lines {
        stroke(&mut out, line, of.unit, &x, &y, is_dense);
    }
    if named {
        let mut taken: Vec<f64> = Vec::new();
        for (line, at) in ends(lines, &y) {
            let at = clear_of(&taken, at, top + 4.0, bottom);
            taken.push(at);
            let _ = write!(
                out,
                "<text class=\"end {}\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                class(line.colour),
                right + 8.0,
                at + 4.0,
                Esc(&fitted(&line.label, widest + 2.0))
            );
        }
    }
    out + "</svg>"
}

/// Lines sorted by the height at which they end, the highest first.
fn ends<'a>(lines: &'a [Line], y: &Scale) -> Vec<(&'a Line, f64)> {
    let end = |line: &Line| Some(y.clamped(Mean::of(&line.spots.last()?.points)?.mean));
    let mut ends: Vec<(&Line, f64)> =
        lines.iter().filter_map(|line| Some((line, end(line)?))).collect();
    ends.sort_by(|a, b| a.1.total_cmp(&b.1));
    ends
}

/// A free place for a text near `at`, below texts that are already placed.
fn clear_of(taken: &[f64], at: f64, top: f64, bottom: f64) -> f64 {
    let below = taken.last().map_or(top, |last| last + 14.0);
    at.max(below).min(bottom.max(below))
}

fn band(out: &mut String, line: &Line, x: &Scale, y: &Scale) {
    let edges: Vec<(f64, f64, f64)> = line
        .spots
        .iter()
        .filter_map(|spot| {
            let mean = Mean::of(&spot.points)?;
            let half = mean.half_width.unwrap_or(0.0);
            Some((x.at(spot.x), y.clamped(mean.mean - half), y.clamped(mean.mean + half)))
        })
        .collect();
    if edges.len() < 2 || edges.iter().all(|(_, low, high)| (low - high).abs() < 0.5) {
        return;
    }
    let mut points = String::new();
    for (x, _, high) in &edges {
        let _ = write!(points, "{x:.1},{high:.1} ");
    }
    for (x, low, _) in edges.iter().rev() {
        let _ = write!(points, "{x:.1},{low:.1} ");
    }
    let _ = write!(
        out,
        "<polygon class=\"band {}\" points=\"{}\"/>",
        class(line.colour),
        points.trim_end()
    );
}

fn stroke(out: &mut String, line: &Line, unit: &str, x: &Scale, y: &Scale, is_dense: bool) {
    let means: Vec<(&Spot, Mean)> =
        line.spots.iter().filter_map(|spot| Some((spot, Mean::of(&spot.points)?))).collect();
    let _ = write!(
        out,
        "<g class=\"{} {}\"><path class=\"line\" d=\"",
        class(line.colour),
        dash(line.colour)
    );
    // The line has a gap where there is no mean.
    let mut pen = 'M';
    for spot in &line.spots {
        match Mean::of(&spot.points) {
            Some(mean) => {
                let _ = write!(out, "{pen}{:.1} {:.1}", x.at(spot.x), y.clamped(mean.mean));
                pen = 'L';
            }
            None => pen = 'M',
        }
    }
    *out += "\"/>";
    for (spot, mean) in means.into_iter().filter(|_| !is_dense) {
        for point in visible(&spot.points, |point| (0.0, y.clamped(point.value))) {
            let _ = write!(
                out,
                "<g class=\"pt\" data-run=\"{}\">{}<title>{}, {}, seed {}: {} {}</title></g>",
                point.run,
                symbol(line.colour, x.at(spot.x), y.clamped(point.value), 2.2),
                Esc(&line.label),
                Esc(&spot.named),
                point.seed,
                number(point.value),
                Esc(unit)
            );
        }
        let lacking = mean.lacking().map_or(String::new(), |n| format!(", over {n}"));
        let _ = write!(
            out,
            "<g class=\"mean{}\">{}<title>{}, {}: {}{}</title></g>",
            if lacking.is_empty() { "" } else { " part" },
            symbol(line.colour, x.at(spot.x), y.clamped(mean.mean), 4.6),
            Esc(&line.label),
            Esc(&spot.named),
            Esc(&shown_with_unit(mean.mean, mean.half_width, unit)),
            Esc(&lacking)
        );
    }
    *out += "</g>";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Counted, Point};

    fn line(values: &[(f64, f64)]) -> Line {
        let spots = values
            .iter()
            .map(|(x, y)| Spot {
                x: *x,
                named: format!("{x} ms"),
                points: [-1.0, 1.0]
                    .into_iter()
                    .zip(0..)
                    .map(|(off, run)| Point {
                        run,
                        seed: run.into(),
                        value: y + off,
                        counted: Counted::ONE,
                    })
                    .collect::<Vec<_>>()
                    .into(),
            })
            .collect();
        Line { colour: 0, label: "cubic".into(), spots }
    }

    fn draw(line: Line, log_x: bool) -> String {
        let xs: Vec<f64> = line.spots.iter().map(|spot| spot.x).collect();
        let of = Spots {
            x_title: "rtt (ms)",
            y_title: "goodput (Mbit/s)",
            unit: "Mbit/s",
            log_x,
            log_y: false,
            xs: &xs,
            ys: &[0.0, 40.0],
        };
        lines(&[line], &of, 440.0)
    }

    #[test]
    fn a_line_has_a_band_and_every_run() {
        let svg = draw(line(&[(10.0, 20.0), (100.0, 10.0), (1000.0, 5.0)]), true);
        assert_eq!(svg.matches("data-run").count(), 6);
        assert_eq!(svg.matches("class=\"band").count(), 1);
        assert_eq!(svg.matches("class=\"mean\"").count(), 3);
        assert!(svg.contains("log scale"));
    }

    #[test]
    fn equal_ratios_are_equally_far_apart_on_a_log_axis() {
        let svg = draw(line(&[(10.0, 20.0), (100.0, 20.0), (1000.0, 20.0)]), true);
        let path = svg.split("class=\"line\" d=\"M").nth(1).expect("there is a line");
        let xs: Vec<f64> = path
            .split('"')
            .next()
            .expect("it ends")
            .split('L')
            .map(|point| point.split(' ').next().unwrap_or("").parse().expect("a number"))
            .collect();
        assert!((xs[1] - xs[0] - (xs[2] - xs[1])).abs() < 0.3, "{xs:?}");
    }

    #[test]
    fn names_at_the_ends_do_not_lie_on_each_other() {
        let mut taken = Vec::new();
        for at in [50.0, 51.0, 52.0, 200.0] {
            let place = clear_of(&taken, at, 10.0, 270.0);
            assert!(taken.iter().all(|other: &f64| (place - other).abs() >= 13.9));
            taken.push(place);
        }
    }
}
