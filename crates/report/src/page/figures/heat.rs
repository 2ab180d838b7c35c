//! Two factors against each other, a table for each flow or queue.

use std::fmt::Write;

use super::frame::{Frame, Split};
use super::panels::{Body, Figure, Head, MOST_PANELS};
use crate::page::matrix;

pub(super) fn heat_figure(frame: &Frame<'_>, head: &Head<'_>, metric: &str) -> Option<Figure> {
    let columns = match frame.x {
        Some(Split::Factor(factor)) => Some(factor),
        _ => None,
    };
    if frame.scenarios.is_empty() {
        return None;
    }
    let mut out = String::from("<div class=\"tables\">");
    for subject in frame.subjects.iter().take(MOST_PANELS) {
        let table = matrix::table(frame.data, &frame.scenarios, subject, metric, columns, false);
        let _ = write!(out, "<div class=\"panel\">{table}</div>");
    }
    Some(head.figure(Body::Html(out + "</div>")))
}
