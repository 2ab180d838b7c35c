//! Distributions: the share of samples, or of runs, up to a value.

use std::fmt::Write;

use super::parts::{class, dash, fitted, open, text_width, ticks_below, ticks_beside};
use super::scale::Scale;
use crate::markup::Esc;

pub(crate) struct Curve {
    pub(crate) colour: usize,
    pub(crate) label: String,
    /// Its name in the key of the figure; may be empty.
    pub(crate) key: String,
    /// Value, and the share up to it.
    pub(crate) points: Vec<(f64, f64)>,
    pub(crate) run: Option<u32>,
    /// Drawn thin behind the others: a single run, where the thick line is all runs.
    pub(crate) thin: bool,
}

const HEIGHT: f64 = 300.0;

/// How shares are spread over the vertical axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Axis {
    Even,
    /// By log odds: 99 and 99.9 % are as far apart as 99.9 and 99.99 %, so that tails are readable.
    Tails,
}

impl Axis {
    /// Shares that are marked.
    const fn ticks(self) -> &'static [(f64, &'static str)] {
        match self {
            Self::Even => {
                &[(0.0, "0 %"), (0.25, "25 %"), (0.5, "50 %"), (0.75, "75 %"), (1.0, "100 %")]
            }
            Self::Tails => &[
                (0.01, "1 %"),
                (0.1, "10 %"),
                (0.5, "50 %"),
                (0.9, "90 %"),
                (0.99, "99 %"),
                (0.999, "99.9 %"),
                (0.9999, "99.99 %"),
            ],
        }
    }

    /// Converts a share to its position on the axis.
    fn place(self, share: f64) -> f64 {
        match self {
            Self::Even => share,
            Self::Tails => {
                // The least and largest sample lie on the edges.
                let share = share.clamp(0.01, 0.9999);
                (share / (1.0 - share)).ln()
            }
        }
    }
}

/// Curves over one axis of values, which covers `ends`, so that panels of a figure have the same.
pub(crate) fn curves(
    curves: &[Curve],
    x_title: &str,
    y_title: &str,
    axis: Axis,
    ends: &[f64],
    width: f64,
) -> String {
    if curves.is_empty() {
        return String::new();
    }
    let (left, right, top, bottom) = (70.0, width - 14.0, 10.0, HEIGHT - 42.0);
    let x = Scale::fitting(ends, 8.0, left, right);
    let ticks = axis.ticks();
    let (least, most) = (ticks[0].0, ticks[ticks.len() - 1].0);
    let y = Scale::exact(axis.place(least), axis.place(most), bottom, top);
    let mut out = open("chart", width, HEIGHT, &format!("{y_title}, by {x_title}"));
    ticks_below(&mut out, &x, top, bottom);
    let marks = ticks.iter().map(|(share, text)| (y.at(axis.place(*share)), *text));
    ticks_beside(&mut out, marks, left, right);
    let _ = write!(
        out,
        "<text class=\"axis\" transform=\"translate(13 {:.1}) rotate(-90)\" \
         text-anchor=\"middle\">{}</text>",
        f64::midpoint(top, bottom),
        Esc(y_title)
    );
    let _ = write!(
        out,
        "<text class=\"axis\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
        f64::midpoint(left, right),
        HEIGHT - 8.0,
        Esc(x_title)
    );
    let mut drawn: Vec<(&str, String)> = Vec::new();
    for curve in curves.iter().filter(|c| c.thin).chain(curves.iter().filter(|c| !c.thin)) {
        let path = path(curve, |value| x.clamped(value), |share| y.at(axis.place(share)));
        let run = curve.run.map_or(String::new(), |run| format!(" data-run=\"{run}\""));
        let _ = write!(
            out,
            "<g class=\"{} {}\"{run}><path class=\"{}\" d=\"{path}\"/><title>{}</title></g>",
            class(curve.colour),
            dash(curve.colour),
            if curve.thin { "line thin" } else { "line" },
            Esc(&curve.label)
        );
        if !curve.thin {
            drawn.push((&curve.key, path));
        }
    }
    let notes: Vec<String> = (alike(&drawn).iter().take(3))
        .map(|alike| fitted(&format!("one curve: {}", alike.join(" = ")), right - left - 12.0))
        .collect();
    let widest = notes.iter().map(|note| text_width(note)).fold(0.0, f64::max);
    let tall = notes.len() as f64 * 14.0 + 8.0;
    // Curves rise from the lower left to the upper right, so one of the other corners is free.
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let place = |(value, share): &(f64, f64)| (x.clamped(*value), y.at(axis.place(*share)));
    let is_crossed = points()
        .any(|point| matches!(place(point), (px, py) if px > right - widest - 14.0 && py > bottom - tall));
    for (at, note) in notes.iter().enumerate() {
        let (px, py, anchor) = match is_crossed {
            false => (right - 6.0, bottom - 8.0 - at as f64 * 14.0, "end"),
            true => (left + 6.0, top + 14.0 + at as f64 * 14.0, "start"),
        };
        let _ = write!(
            out,
            "<text class=\"near\" x=\"{px:.1}\" y=\"{py:.1}\" text-anchor=\"{anchor}\">{}</text>",
            Esc(note)
        );
    }
    out + "</svg>"
}

/// Names of curves that lie on each other, so that the reader does not look for the hidden one.
fn alike<'a>(drawn: &[(&'a str, String)]) -> Vec<Vec<&'a str>> {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for (key, path) in drawn.iter().filter(|(key, _)| !key.is_empty()) {
        match groups.iter_mut().find(|(other, _)| other == path) {
            Some((_, names)) => names.push(key),
            None => groups.push((path, vec![key])),
        }
    }
    groups.into_iter().map(|(_, names)| names).filter(|names| names.len() > 1).collect()
}

/// Leaves out points that are too near the last one to be told apart.
fn path(curve: &Curve, x: impl Fn(f64) -> f64, y: impl Fn(f64) -> f64) -> String {
    let apart = if curve.thin { 4.0 } else { 1.5 };
    // In tenths of a pixel and as differences, which makes the path short.
    let tenths = |(value, share): (f64, f64)| {
        ((x(value) * 10.0).round() as i64, (y(share) * 10.0).round() as i64)
    };
    let mut out = String::new();
    let mut pen: Option<(i64, i64)> = None;
    for (at, point) in curve.points.iter().enumerate() {
        let (px, py) = tenths(*point);
        let decimal = |tenths: i64| {
            let (sign, tenths) = (if tenths < 0 { "-" } else { "" }, tenths.unsigned_abs());
            match (tenths / 10, tenths % 10) {
                (whole, 0) => format!("{sign}{whole}"),
                (0, part) => format!("{sign}.{part}"),
                (whole, part) => format!("{sign}{whole}.{part}"),
            }
        };
        match pen {
            None => {
                let _ = write!(out, "M{} {}", decimal(px), decimal(py));
            }
            Some((x0, y0)) => {
                let (dx, dy) = (px - x0, py - y0);
                let near = (dx.abs() + dy.abs()) as f64 <= apart * 10.0;
                if (dx, dy) == (0, 0) || near && at + 1 < curve.points.len() {
                    continue;
                }
                let gap = if dy < 0 { "" } else { " " };
                let _ = write!(out, "l{}{gap}{}", decimal(dx), decimal(dy));
            }
        }
        pen = Some((px, py));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_that_lie_on_each_other_are_named() {
        let curve = |key: &str, to: f64| Curve {
            colour: 0,
            label: key.into(),
            key: key.into(),
            points: vec![(1.0, 0.0), (to, 1.0)],
            run: None,
            thin: false,
        };
        let svg = |curves: &[Curve]| {
            super::curves(curves, "RTT (ms)", "samples", Axis::Even, &[1.0, 9.0], 480.0)
        };
        let same = svg(&[curve("fq_codel", 9.0), curve("cake", 9.0), curve("pie", 5.0)]);
        assert!(same.contains("one curve: fq_codel = cake<"), "{same}");
        assert!(!svg(&[curve("fq_codel", 9.0), curve("cake", 7.0)]).contains("one curve"));
    }

    #[test]
    fn a_path_keeps_its_ends_and_is_short() {
        let points: Vec<(f64, f64)> =
            (0..=10_000).map(|at| (f64::from(at) / 100.0, f64::from(at) / 1e4)).collect();
        let curve = Curve {
            colour: 0,
            label: String::new(),
            key: String::new(),
            points,
            run: None,
            thin: true,
        };
        let path = path(&curve, |value| value, |share| 100.0 - 100.0 * share);
        assert!(path.starts_with("M0 100l"), "{path}");
        assert!(path.len() < 400, "{}", path.len());
        let parts = path.split('l').skip(1).map(|part| part.split_once('-').expect("it rises"));
        let sum = parts.fold((0.0, 0.0), |sum, (dx, dy)| {
            let number = |text: &str| text.trim().parse::<f64>().expect("a number");
            (sum.0 + number(dx), sum.1 + number(dy))
        });
        assert!((sum.0 - 100.0).abs() < 0.01 && (sum.1 - 100.0).abs() < 0.01, "{sum:?}");
    }
}
