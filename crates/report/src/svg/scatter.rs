//! A metric against another: every run a point, and for each cloud its mean and 1-σ ellipse.

use std::fmt::Write;

use sojourn_metrics::stats;

use super::{Scale, class, short, symbol, text_width};
use crate::markup::Esc;
use crate::number::number;

/// Runs of one scenario and subject.
pub(crate) struct Cloud {
    pub(crate) colour: usize,
    pub(crate) symbol: usize,
    pub(crate) label: String,
    /// Shown beside the mean; may be empty.
    pub(crate) short: String,
    /// Run, seed, x, y.
    pub(crate) points: Vec<(u32, u64, f64, f64)>,
}

const WIDTH: f64 = 520.0;
const HEIGHT: f64 = 380.0;

/// `reversed` puts small x to the right, where delay is good. The scales cover `also`, so that panels
/// of one figure have the same.
pub(crate) fn scatter(
    clouds: &[Cloud],
    x_title: &str,
    y_title: &str,
    reversed: bool,
    also: &[(f64, f64)],
) -> String {
    let xs: Vec<f64> = clouds
        .iter()
        .flat_map(|c| c.points.iter().map(|p| p.2))
        .chain(also.iter().map(|p| p.0))
        .collect();
    let ys: Vec<f64> = clouds
        .iter()
        .flat_map(|c| c.points.iter().map(|p| p.3))
        .chain(also.iter().map(|p| p.1))
        .collect();
    if clouds.is_empty() {
        return String::new();
    }
    let (left, right, top, bottom) = (56.0, WIDTH - 18.0, 14.0, HEIGHT - 46.0);
    let x = if reversed {
        Scale::fitting(&xs, 3.0, right, left)
    } else {
        Scale::fitting(&xs, 30.0, left, right)
    };
    let y = Scale::linear(ys.iter().copied(), bottom, top);
    let mut out = format!(
        "<svg class=\"chart\" role=\"img\" aria-label=\"{}\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         width=\"{WIDTH}\" height=\"{HEIGHT}\">",
        Esc(&format!("{y_title} against {x_title}"))
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
    for (tick, text) in y.ticks() {
        let at = y.at(tick);
        let _ = write!(
            out,
            "<path class=\"grid\" d=\"M{left} {at:.1}H{right}\"/><text class=\"tick\" x=\"{:.1}\" \
             y=\"{:.1}\" text-anchor=\"end\">{text}</text>",
            left - 6.0,
            at + 4.0
        );
    }
    let arrow = if reversed { " — better to the right" } else { "" };
    let _ = write!(
        out,
        "<text class=\"axis\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}{arrow}</text><text \
         class=\"axis\" transform=\"translate(14 {:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
        f64::midpoint(left, right),
        HEIGHT - 10.0,
        Esc(x_title),
        f64::midpoint(top, bottom),
        Esc(y_title)
    );
    for cloud in clouds {
        ellipse(&mut out, cloud, &x, &y);
    }
    let mut labels = Vec::new();
    for cloud in clouds {
        let _ = write!(out, "<g class=\"{}\">", class(cloud.colour));
        for (run, seed, px, py) in &cloud.points {
            let _ = write!(
                out,
                "<g class=\"pt\" data-run=\"{run}\">{}<title>{}, seed {seed}: {} at {}</title></g>",
                symbol(cloud.symbol, x.at(*px), y.at(*py), 2.8),
                Esc(&cloud.label),
                number(*py),
                number(*px)
            );
        }
        let (mx, my) = mean(cloud, &x, &y);
        let _ = write!(
            out,
            "<g class=\"mean\">{}<title>{}: mean</title></g></g>",
            symbol(cloud.symbol, mx, my, 5.5),
            Esc(&cloud.label)
        );
        if !cloud.short.is_empty() {
            labels.push((mx, my, short(&cloud.short, 26)));
        }
    }
    let means: Vec<(f64, f64)> = labels.iter().map(|(mx, my, _)| (*mx, *my)).collect();
    let mut taken: Vec<(f64, f64, f64)> = Vec::new();
    for (mx, my, text) in labels {
        let end = mx > f64::midpoint(left, right);
        let length = text_width(&text);
        let from = if end { mx - 9.0 - length } else { mx + 9.0 };
        let hides =
            |x: f64, y: f64| x > from - 4.0 && x < from + length + 4.0 && (y - my).abs() < 9.0;
        let covers = taken
            .iter()
            .any(|(x, y, to)| (y - my).abs() < 13.0 && *x < from + length && from < *to);
        // The key has what does not fit here.
        if covers || means.iter().any(|(x, y)| hides(*x, *y)) {
            continue;
        }
        taken.push((from, my, from + length));
        let _ = write!(
            out,
            "<text class=\"near\" x=\"{:.1}\" y=\"{:.1}\"{}>{}</text>",
            if end { mx - 9.0 } else { mx + 9.0 },
            my + 4.0,
            if end { " text-anchor=\"end\"" } else { "" },
            Esc(&text)
        );
    }
    out + "</svg>"
}

fn mean(cloud: &Cloud, x: &Scale, y: &Scale) -> (f64, f64) {
    let n = cloud.points.len() as f64;
    let sum = cloud.points.iter().fold((0.0, 0.0), |(a, b), p| (a + x.at(p.2), b + y.at(p.3)));
    (sum.0 / n, sum.1 / n)
}

/// Mean and ellipse are of the values where the axis is linear, of their logarithms where it is
/// not, so that an ellipse on the page is what it says.
fn ellipse(out: &mut String, cloud: &Cloud, x: &Scale, y: &Scale) {
    let points: Vec<(f64, f64)> = cloud.points.iter().map(|p| (x.at(p.2), y.at(p.3))).collect();
    let Some(ellipse) = stats::ellipse(&points) else { return };
    let (cx, cy) = ellipse.centre;
    let (rx, ry) = (ellipse.axes.0.max(0.5), ellipse.axes.1.max(0.5));
    let _ = write!(
        out,
        "<ellipse class=\"sigma {}\" cx=\"{cx:.1}\" cy=\"{cy:.1}\" rx=\"{rx:.1}\" ry=\"{ry:.1}\" \
         transform=\"rotate({:.1} {cx:.1} {cy:.1})\"/>",
        class(cloud.colour),
        ellipse.angle.to_degrees()
    );
}
