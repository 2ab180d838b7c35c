//! Bars and boxes, one for each value of a factor.

use super::frame::{Frame, Measure};
use super::panels::{Figure, Head, MOST_ROWS, figure};
use crate::svg::{Category, Layout, bars, shares};

pub(super) fn bar_figure(
    frame: &Frame<'_>,
    head: &Head<'_>,
    metric: &str,
    layout: Layout,
) -> Option<Figure> {
    let measure = frame.measure(metric);
    let all = frame.values(&measure);
    let (panels, caption) = panels(frame, head, &measure);
    let head = &Head { caption: &caption, ..*head };
    figure(head, frame.legend(None), &panels, |categories, width| {
        bars(categories, layout, &measure.axis, &measure.unit, &all, width)
    })
}

pub(super) fn share_figure(frame: &Frame<'_>, head: &Head<'_>) -> Option<Figure> {
    let measure = frame.part("share");
    let (panels, caption) = panels(frame, head, &measure);
    let head = &Head { caption: &caption, ..*head };
    figure(head, frame.legend(None), &panels, |categories, width| {
        if categories.is_empty() {
            return String::new();
        }
        shares(categories, "share of goodput", width)
    })
}

/// What each panel shows, and the caption, which says what is left out.
fn panels(
    frame: &Frame<'_>,
    head: &Head<'_>,
    measure: &Measure,
) -> (Vec<(String, Vec<Category>)>, String) {
    let mut most = 0;
    let mut panels = Vec::new();
    for (name, members) in frame.panels() {
        let mut categories = frame.categories(&members, measure);
        most = most.max(categories.len());
        categories.truncate(MOST_ROWS);
        panels.push((name, categories));
    }
    let caption = match most > MOST_ROWS {
        true => format!("{} The first {MOST_ROWS} of {most} rows are drawn.", head.caption),
        false => head.caption.to_owned(),
    };
    (panels, caption.trim_start().to_owned())
}
