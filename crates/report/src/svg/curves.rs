//! Distributions of delay with their tails: the share of samples above a delay, on a log axis.

use std::fmt::Write;

use super::{Scale, class};
use crate::markup::Esc;

pub(crate) struct Curve {
    pub(crate) colour: usize,
    pub(crate) label: String,
    /// Delay, and the share of samples above it.
    pub(crate) points: Vec<(f64, f64)>,
    pub(crate) run: Option<u32>,
    /// Drawn thin, behind the others: one run where the thick line is their mean.
    pub(crate) thin: bool,
}

const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 300.0;
/// The rarest share that is drawn; the largest value of a run stands on it.
pub(crate) const RAREST: f64 = 1e-4;

pub(crate) fn tails(
    curves: &[Curve],
    x_title: &str,
    y_title: &str,
    log_tail: bool,
    also: &[f64],
) -> String {
    let xs: Vec<f64> = curves
        .iter()
        .flat_map(|curve| curve.points.iter().map(|point| point.0))
        .chain(also.iter().copied())
        .collect();
    if curves.is_empty() {
        return String::new();
    }
    let (left, right, top, bottom) = (58.0, WIDTH - 14.0, 10.0, HEIGHT - 42.0);
    let x = Scale::fitting(&xs, 8.0, left, right);
    let y = if log_tail {
        Scale::log([RAREST, 1.0], bottom, top)
    } else {
        Scale::exact(0.0, 1.0, bottom, top)
    };
    let mut out = format!(
        "<svg class=\"chart\" role=\"img\" aria-label=\"{}\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         width=\"{WIDTH}\" height=\"{HEIGHT}\">",
        Esc(&format!("{y_title}, by {x_title}"))
    );
    for (tick, text) in x.ticks() {
        let at = x.at(tick);
        let _ = write!(
            out,
            "<path class=\"grid\" d=\"M{at:.1} {top}V{bottom}\"/><text class=\"tick\" x=\"{at:.1}\" \
             y=\"{:.1}\" text-anchor=\"middle\">{text}</text>",
            bottom + 15.0
        );
    }
    let shares: &[(f64, &str)] = if log_tail {
        &[
            (1.0, "100 %"),
            (0.5, "50 %"),
            (0.1, "10 %"),
            (0.01, "1 %"),
            (0.001, "0.1 %"),
            (RAREST, "largest"),
        ]
    } else {
        &[(0.0, "0 %"), (0.25, "25 %"), (0.5, "50 %"), (0.75, "75 %"), (1.0, "100 %")]
    };
    for (share, text) in shares {
        let at = y.at(*share);
        let _ = write!(
            out,
            "<path class=\"grid\" d=\"M{left} {at:.1}H{right}\"/><text class=\"tick\" x=\"{:.1}\" \
             y=\"{:.1}\" text-anchor=\"end\">{text}</text>",
            left - 6.0,
            at + 4.0
        );
    }
    let _ = write!(
        out,
        "<text class=\"axis\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
        f64::midpoint(left, right),
        HEIGHT - 8.0,
        Esc(x_title)
    );
    for curve in curves.iter().filter(|c| c.thin).chain(curves.iter().filter(|c| !c.thin)) {
        let mut path = String::new();
        for (at, (value, share)) in curve.points.iter().enumerate() {
            let _ = write!(
                path,
                "{}{:.1} {:.1}",
                if at == 0 { 'M' } else { 'L' },
                x.clamped(*value),
                y.clamped(share.max(if log_tail { RAREST } else { 0.0 }))
            );
        }
        let run = curve.run.map_or(String::new(), |run| format!(" data-run=\"{run}\""));
        let _ = write!(
            out,
            "<g class=\"{} dash{}\"{run}><path class=\"{}\" d=\"{path}\"/><title>{}</title></g>",
            class(curve.colour),
            curve.colour % 4,
            if curve.thin { "line thin" } else { "line" },
            Esc(&curve.label)
        );
    }
    out + "</svg>"
}
