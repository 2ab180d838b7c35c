//! A metric against another: every run a point, and for each cloud its mean and 1-σ ellipse.

use std::fmt::Write;

use sojourn_metrics::stats;

use super::parts::{class, dots, open, short, text_width, ticks_below, ticks_beside, visible};
use super::scale::Scale;
use super::symbol::symbol;
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

const HEIGHT: f64 = 360.0;

/// With more clouds than these, only their means are drawn, and those at one place once.
pub(crate) const MOST_CLOUDS: usize = 300;

/// `reversed` puts small x to the right, because little delay is good. The scales cover `ends` (of x
/// and of y), so that panels of one figure have the same.
pub(crate) fn scatter(
    clouds: &[Cloud],
    x_title: &str,
    y_title: &str,
    reversed: bool,
    ends: (&[f64], &[f64]),
    width: f64,
) -> String {
    if clouds.is_empty() {
        return String::new();
    }
    let (left, right, top, bottom) = (56.0, width - 18.0, 14.0, HEIGHT - 46.0);
    let x = if reversed {
        Scale::fitting(ends.0, 3.0, right, left)
    } else {
        Scale::fitting(ends.0, 30.0, left, right)
    };
    let y = Scale::linear(ends.1.iter().copied(), bottom, top);
    let mut out = open("chart", width, HEIGHT, &format!("{y_title} against {x_title}"));
    ticks_below(&mut out, &x, top, bottom);
    let marks = y.ticks().into_iter().map(|(tick, text)| (y.at(tick), text));
    ticks_beside(&mut out, marks, left, right);
    // In a narrow panel the figure's caption has to do.
    let arrow = if reversed && width > 420.0 { " — better to the right" } else { "" };
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
    // Two runs give a line, not an ellipse. What reaches beyond the axes is cut off.
    let (wide, high) = (right - left, bottom - top);
    let _ = write!(
        out,
        "<svg x=\"{left}\" y=\"{top}\" width=\"{wide}\" height=\"{high}\" viewBox=\"{left} {top} {wide} {high}\">"
    );
    let is_dense = clouds.len() > MOST_CLOUDS;
    for cloud in clouds.iter().filter(|cloud| cloud.points.len() > 2 && !is_dense) {
        ellipse(&mut out, cloud, &x, &y);
    }
    out += "</svg>";
    if is_dense {
        let means = clouds.iter().map(|cloud| (cloud.colour, mean(cloud, &x, &y)));
        return out + &dots(means) + "</svg>";
    }
    let mut labels = Vec::new();
    for cloud in clouds {
        let _ = write!(out, "<g class=\"{}\">", class(cloud.colour));
        for (run, seed, px, py) in visible(&cloud.points, |p| (x.at(p.2), y.at(p.3))) {
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
    let drawn: Vec<(f64, f64)> = clouds
        .iter()
        .flat_map(|cloud| cloud.points.iter().map(|p| (x.at(p.2), y.at(p.3))))
        .collect();
    let frame = Box { left, right, top, bottom };
    for label in placed(labels, &drawn, &frame) {
        let _ = write!(
            out,
            "<text class=\"near\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            label.place.left,
            label.place.bottom - 3.0,
            Esc(&label.text)
        );
    }
    out + "</svg>"
}

#[derive(Clone, Copy, Debug)]
struct Box {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Box {
    fn meets(&self, other: &Self) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }

    fn around((x, y): (f64, f64), half: f64) -> Self {
        Self { left: x - half, right: x + half, top: y - half, bottom: y + half }
    }
}

struct Label {
    text: String,
    place: Box,
}

/// Places each text beside its mean, where it covers no other mean or text and few points. A text
/// that fits nowhere is left to the key.
fn placed(wanted: Vec<(f64, f64, String)>, dots: &[(f64, f64)], frame: &Box) -> Vec<Label> {
    let means: Vec<Box> = wanted.iter().map(|(x, y, _)| Box::around((*x, *y), 6.0)).collect();
    let mut labels: Vec<Label> = Vec::new();
    for (mx, my, text) in wanted {
        let (width, height) = (text_width(&text) * 0.9, 13.0);
        let at = |left: f64, top: f64| Box { left, right: left + width, top, bottom: top + height };
        let middle = mx - width / 2.0;
        let places = [
            at(mx + 9.0, my - 6.5),
            at(mx - 9.0 - width, my - 6.5),
            at(middle, my - 21.0),
            at(middle, my + 8.0),
            at(mx + 7.0, my - 19.0),
            at(mx - 7.0 - width, my - 19.0),
            at(mx + 7.0, my + 6.0),
            at(mx - 7.0 - width, my + 6.0),
        ];
        let fits = |place: &Box| {
            place.left >= frame.left
                && place.right <= frame.right
                && place.top >= frame.top - 8.0
                && place.bottom <= frame.bottom
                && !means.iter().any(|mean| mean.meets(place))
                && !labels.iter().any(|label| label.place.meets(place))
        };
        let covered =
            |place: &Box| dots.iter().filter(|dot| Box::around(**dot, 2.5).meets(place)).count();
        let best = places.into_iter().filter(fits).min_by_key(covered);
        labels.extend(best.map(|place| Label { text, place }));
    }
    labels
}

fn mean(cloud: &Cloud, x: &Scale, y: &Scale) -> (f64, f64) {
    let n = cloud.points.len() as f64;
    let sum = cloud.points.iter().fold((0.0, 0.0), |(a, b), p| (a + x.at(p.2), b + y.at(p.3)));
    (sum.0 / n, sum.1 / n)
}

/// Mean and ellipse are computed from the values if the axis is linear, and from their logarithms
/// if it is logarithmic, so that the drawn ellipse is the true one.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_label_covers_another_or_a_mean(
            means in prop::collection::vec((60.0f64..500.0, 20.0f64..330.0), 1..15),
        ) {
            let wanted = |at: &(f64, f64)| (at.0, at.1, "cake bandwidth 10mbit".to_owned());
            let frame = Box { left: 56.0, right: 502.0, top: 14.0, bottom: 334.0 };
            let labels = placed(means.iter().map(wanted).collect(), &means, &frame);
            prop_assert!(!labels.is_empty() || means.len() > 1);
            for (at, label) in labels.iter().enumerate() {
                prop_assert!(label.place.left >= frame.left && label.place.right <= frame.right);
                prop_assert!(!labels[..at].iter().any(|other| other.place.meets(&label.place)));
                let hidden = |mean: &(f64, f64)| Box::around(*mean, 6.0).meets(&label.place);
                prop_assert!(!means.iter().any(hidden));
            }
        }
    }
}
