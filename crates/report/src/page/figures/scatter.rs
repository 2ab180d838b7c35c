//! A metric against another, a point for each run.

use sojourn_study::metrics::more_is_better;

use super::frame::Frame;
use super::panels::{Figure, Head, figure};
use crate::svg::{Cloud, MOST_CLOUDS, ends, scatter};

pub(super) fn scatter_figure(
    frame: &Frame<'_>,
    head: &Head<'_>,
    x: &str,
    y: &str,
) -> Option<Figure> {
    let reversed = more_is_better(x) == Some(false);
    let caption = frame.with_missing(&frame.with_missing(head.caption, x), y);
    let (x, y) = (frame.measure(x), frame.measure(y));
    let keys = frame.keys(frame.colour);
    let shapes = frame.keys(frame.x);
    let mut drawn = Vec::new();
    for (name, members) in frame.panels() {
        let mut clouds = Vec::new();
        for (scenario, subject) in members {
            let xs = frame.points(scenario, subject, &x);
            let ys = frame.points(scenario, subject, &y);
            let points: Vec<(u32, u64, f64, f64)> = ys
                .iter()
                .filter_map(|y| {
                    let x = xs.iter().find(|x| x.run == y.run)?;
                    Some((y.run, y.seed, x.value, y.value))
                })
                .collect();
            if points.is_empty() {
                continue;
            }
            let shape = frame.key(frame.x, scenario, subject);
            clouds.push(Cloud {
                colour: frame.colour(scenario, subject, &keys),
                symbol: shapes.iter().position(|key| *key == shape).unwrap_or(0),
                label: format!("{}, {}", subject.label(), frame.data.label(scenario)),
                short: shape,
                points,
            });
        }
        if clouds.len() > 14 {
            for cloud in &mut clouds {
                cloud.short.clear();
            }
        }
        drawn.push((name, clouds));
    }
    let points = || drawn.iter().flat_map(|(_, clouds)| clouds.iter().flat_map(|c| &c.points));
    let (xs, ys) = (ends(points().map(|point| point.2)), ends(points().map(|point| point.3)));
    let is_dense = drawn.iter().any(|(_, clouds)| clouds.len() > MOST_CLOUDS);
    let dense = "Here are too many for that: only means are drawn, those at one place as one dot.";
    let caption = match is_dense {
        true => format!("{caption} {dense}"),
        false => caption,
    };
    let head = &Head { caption: &caption, ..*head };
    figure(head, frame.legend(frame.x), &drawn, |clouds, width| {
        scatter(clouds, &x.axis, &y.axis, reversed, (&xs, &ys), width)
    })
}
