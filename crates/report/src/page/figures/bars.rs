//! Bars and boxes, one for each value of a factor.

use super::frame::Frame;
use super::panels::{Figure, Head, MOST_ROWS, figure};
use crate::svg::{Layout, bars, shares};

pub(super) fn bar_figure(
    frame: &Frame<'_>,
    head: &Head<'_>,
    metric: &str,
    layout: Layout,
) -> Option<Figure> {
    let measure = frame.measure(metric);
    let all = frame.values(&measure);
    let mut panels = Vec::new();
    for (name, members) in frame.panels() {
        let mut categories = frame.categories(&members, &measure);
        categories.truncate(MOST_ROWS);
        panels.push((name, categories));
    }
    figure(head, frame.legend(None), &panels, |categories, width| {
        bars(categories, layout, &measure.axis, &measure.unit, &all, width)
    })
}

pub(super) fn share_figure(frame: &Frame<'_>, head: &Head<'_>) -> Option<Figure> {
    let measure = frame.part("share");
    let mut panels = Vec::new();
    for (name, members) in frame.panels() {
        let mut categories = frame.categories(&members, &measure);
        categories.truncate(MOST_ROWS);
        panels.push((name, categories));
    }
    figure(head, frame.legend(None), &panels, |categories, width| {
        if categories.is_empty() {
            return String::new();
        }
        shares(categories, "share of goodput", width)
    })
}
