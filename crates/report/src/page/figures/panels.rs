//! The frame around a figure's drawings: caption, key, and panels as wide as the page allows.

use std::fmt::Write;

use crate::markup::Esc;

/// Further panels are counted, not drawn.
pub(super) const MOST_PANELS: usize = 12;
/// The most categories that are readable in one figure.
pub(super) const MOST_ROWS: usize = 24;

/// A figure's title and caption.
pub(super) struct Head<'a> {
    pub(super) id: &'a str,
    pub(super) title: &'a str,
    /// Escaped already.
    pub(super) caption: &'a str,
}

impl Head<'_> {
    pub(super) fn open(&self) -> String {
        format!(
            "<figure id=\"{}\"><figcaption><b>{}</b>{}{}</figcaption>",
            self.id,
            Esc(self.title),
            if self.caption.is_empty() { "" } else { " " },
            self.caption
        )
    }
}

/// Drawing widths: a figure alone, one of two in a row, one of three, and alone on a phone.
const ALONE: f64 = 880.0;
const HALF: f64 = 460.0;
const THIRD: f64 = 360.0;
const PHONE: f64 = 380.0;

/// One figure: panels side by side under a caption. `draw` gets a panel and the width; it returns
/// nothing if there is nothing to see.
pub(super) fn figure<T>(
    head: &Head<'_>,
    legend: &str,
    panels: &[(String, T)],
    draw: impl Fn(&T, f64) -> String,
) -> String {
    let drawn: Vec<(&str, &T)> = panels
        .iter()
        .filter(|(_, panel)| !draw(panel, HALF).is_empty())
        .map(|(name, panel)| (&name[..], panel))
        .collect();
    let (class, width) = match drawn.len() {
        0 => return String::new(),
        1 => ("one", ALONE),
        2 | 4 => ("two", HALF),
        _ => ("three", THIRD),
    };
    let mut out = head.open() + legend;
    let _ = write!(out, "<div class=\"panels {class}\">");
    for (name, panel) in drawn.iter().take(MOST_PANELS) {
        let heading = if name.is_empty() {
            String::new()
        } else {
            format!("<p class=\"name\">{}</p>", Esc(name))
        };
        let _ = write!(out, "<div class=\"panel\">{heading}");
        if width == ALONE {
            let _ = write!(
                out,
                "<div class=\"broad\">{}</div><div class=\"narrow\">{}</div>",
                draw(panel, ALONE),
                draw(panel, PHONE)
            );
        } else {
            out += &draw(panel, width);
        }
        out += "</div>";
    }
    if drawn.len() > MOST_PANELS {
        let _ = write!(
            out,
            "<p class=\"note\">{} panels more are not drawn.</p>",
            drawn.len() - MOST_PANELS
        );
    }
    out + "</div></figure>"
}
