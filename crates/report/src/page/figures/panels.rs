//! The frame around a figure's drawings: caption, key, and panels as wide as the page allows.

use std::cell::Cell;
use std::fmt::Write;

use crate::grid::Grid;
use crate::markup::Esc;
use crate::svg::Key;

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
    pub(super) fn figure(&self, body: Body) -> Figure {
        Figure {
            id: self.id.to_owned(),
            title: self.title.to_owned(),
            caption: self.caption.to_owned(),
            body,
        }
    }
}

/// A figure of the page.
pub(crate) struct Figure {
    pub(crate) id: String,
    pub(crate) title: String,
    /// Escaped already.
    pub(crate) caption: String,
    pub(crate) body: Body,
}

pub(crate) enum Body {
    Drawings {
        keys: Vec<Key>,
        drawings: Vec<Drawing>,
        /// Panels that are not drawn.
        more: usize,
    },
    Tables(Vec<Table>),
    /// Why there is nothing to see. Escaped already.
    Sentence(String),
}

/// A panel that is a table.
pub(crate) struct Table {
    /// May be empty.
    pub(crate) name: String,
    pub(crate) grid: Grid,
    /// Below it; escaped already.
    pub(crate) below: String,
}

/// A panel of a figure.
pub(crate) struct Drawing {
    /// Escaped already; may be empty.
    pub(crate) name: String,
    pub(crate) svg: String,
    /// In place of it on a phone.
    pub(crate) narrow: Option<String>,
}

/// Drawing widths: a figure alone, one of two in a row, one of three, and alone on a phone.
pub(crate) const ALONE: f64 = 880.0;
pub(crate) const HALF: f64 = 460.0;
pub(crate) const THIRD: f64 = 360.0;
pub(crate) const PHONE: f64 = 380.0;

/// How many panels stand in a row, and how wide each is.
pub(crate) fn row(panels: usize) -> (usize, f64) {
    match panels {
        0 | 1 => (1, ALONE),
        2 | 4 => (2, HALF),
        _ => (3, THIRD),
    }
}

impl Figure {
    pub(crate) fn html(&self) -> String {
        let mut out = format!(
            "<figure id=\"{}\"><figcaption><b>{}</b>{}{}</figcaption>",
            self.id,
            Esc(&self.title),
            if self.caption.is_empty() { "" } else { " " },
            self.caption
        );
        match &self.body {
            Body::Sentence(text) => {
                let _ = write!(out, "<p class=\"note\">{text}</p>");
            }
            Body::Tables(tables) => {
                out += "<div class=\"tables\">";
                for Table { name, grid, below } in tables {
                    out += "<div class=\"panel\">";
                    if !name.is_empty() {
                        let _ = write!(out, "<p class=\"name\">{}</p>", Esc(name));
                    }
                    let _ = write!(out, "{}{below}</div>", grid.html());
                }
                out += "</div>";
            }
            Body::Drawings { keys, drawings, more } => {
                keys.iter().for_each(|key| out += &key.html());
                let class = match row(drawings.len() + more) {
                    (1, _) => "one",
                    (2, _) => "two",
                    _ => "three",
                };
                let _ = write!(out, "<div class=\"panels {class}\">");
                drawings.iter().for_each(|drawing| drawing.write(&mut out));
                if *more > 0 {
                    let _ = write!(out, "<p class=\"note\">{more} panels more are not drawn.</p>");
                }
                out += "</div>";
            }
        }
        out + "</figure>"
    }
}

impl Drawing {
    pub(crate) fn write(&self, out: &mut String) {
        *out += "<div class=\"panel\">";
        if !self.name.is_empty() {
            let _ = write!(out, "<p class=\"name\">{}</p>", self.name);
        }
        match &self.narrow {
            Some(narrow) => {
                let _ = write!(
                    out,
                    "<div class=\"broad\">{}</div><div class=\"narrow\">{narrow}</div>",
                    self.svg
                );
            }
            None => *out += &self.svg,
        }
        *out += "</div>";
    }
}

/// One figure: panels side by side under a caption. `draw` gets a panel and the width; it returns
/// nothing if there is nothing to see.
pub(super) fn figure<T>(
    head: &Head<'_>,
    keys: Vec<Key>,
    panels: &[(String, T)],
    draw: impl Fn(&T, f64) -> String,
) -> Option<Figure> {
    let drawn = Cell::new(0);
    // Those beyond the most that are drawn are only counted, with what is likely in them.
    let has_something = |panel: &T| {
        let is_drawn = drawn.get() >= MOST_PANELS || !draw(panel, HALF).is_empty();
        drawn.set(drawn.get() + usize::from(is_drawn));
        is_drawn
    };
    let drawn: Vec<(&str, &T)> = panels
        .iter()
        .filter(|(_, panel)| has_something(panel))
        .map(|(name, panel)| (&name[..], panel))
        .collect();
    if drawn.is_empty() {
        return None;
    }
    let (_, width) = row(drawn.len());
    let drawings = drawn.iter().take(MOST_PANELS).map(|(name, panel)| Drawing {
        name: Esc(name).to_string(),
        svg: draw(panel, width),
        narrow: (width == ALONE).then(|| draw(panel, PHONE)),
    });
    let more = drawn.len().saturating_sub(MOST_PANELS);
    Some(head.figure(Body::Drawings { keys, drawings: drawings.collect(), more }))
}
