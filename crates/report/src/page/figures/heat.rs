//! Two factors against each other, a table for each flow or queue.

use super::frame::{Frame, Split};
use super::panels::{Body, Figure, Head, MOST_PANELS, Table};
use crate::page::matrix;

pub(super) fn heat_figure(frame: &Frame<'_>, head: &Head<'_>, metric: &str) -> Option<Figure> {
    let columns = match frame.x {
        Some(Split::Factor(factor)) => Some(factor),
        _ => None,
    };
    if frame.scenarios.is_empty() {
        return None;
    }
    let table = |subject| {
        let (grid, below) =
            matrix::table(frame.data, &frame.scenarios, subject, metric, columns, "matrix");
        Table { name: String::new(), grid, below }
    };
    let tables = frame.subjects.iter().take(MOST_PANELS).map(table).collect();
    let caption = match frame.subjects.len() {
        all if all > MOST_PANELS => {
            format!("{} The first {MOST_PANELS} of {all} tables.", head.caption)
        }
        _ => head.caption.to_owned(),
    };
    Some(Head { caption: caption.trim_start(), ..*head }.figure(Body::Tables(tables)))
}
