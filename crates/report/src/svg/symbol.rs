//! Shapes beside colours, so that a figure can be read without colour.

use std::fmt::Write;

use super::parts::{COLOURS, class, text_width};
use crate::markup::Esc;

/// A point's shape: eight shapes that can be told apart when small. Where a colour repeats, it has another shape than before.
pub(crate) fn symbol(which: usize, x: f64, y: f64, r: f64) -> String {
    match (which + which / COLOURS) % 8 {
        0 => format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{r:.1}\"/>"),
        1 => format!(
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{2:.1}\" height=\"{2:.1}\"/>",
            x - r * 0.9,
            y - r * 0.9,
            r * 1.8
        ),
        2 => polygon(x, y, r * 1.25, &[(0.0, -1.0), (0.95, 0.75), (-0.95, 0.75)]),
        3 => polygon(x, y, r * 1.3, &[(0.0, -1.0), (1.0, 0.0), (0.0, 1.0), (-1.0, 0.0)]),
        4 => polygon(x, y, r * 1.25, &[(0.0, 1.0), (0.95, -0.75), (-0.95, -0.75)]),
        5 => polygon(
            x,
            y,
            r * 1.2,
            &[
                (-0.35, -1.0),
                (0.35, -1.0),
                (0.35, -0.35),
                (1.0, -0.35),
                (1.0, 0.35),
                (0.35, 0.35),
                (0.35, 1.0),
                (-0.35, 1.0),
                (-0.35, 0.35),
                (-1.0, 0.35),
                (-1.0, -0.35),
                (-0.35, -0.35),
            ],
        ),
        6 => polygon(
            x,
            y,
            r * 1.4,
            &[
                (0.0, -1.0),
                (0.24, -0.32),
                (0.95, -0.31),
                (0.38, 0.12),
                (0.59, 0.81),
                (0.0, 0.4),
                (-0.59, 0.81),
                (-0.38, 0.12),
                (-0.95, -0.31),
                (-0.24, -0.32),
            ],
        ),
        _ => polygon(
            x,
            y,
            r * 1.15,
            &[(-0.5, -0.9), (0.5, -0.9), (1.0, 0.0), (0.5, 0.9), (-0.5, 0.9), (-1.0, 0.0)],
        ),
    }
}

/// The key of a figure: what a colour, `None` being grey, and a shape stand for.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Key(pub(crate) Vec<(Option<usize>, usize, String)>);

/// The most entries of a key; there are fewer colours, and nobody reads on.
const MOST_NAMED: usize = 40;

/// Height of a row of a key in a drawing.
const KEY_ROW: f64 = 20.0;

impl Key {
    /// As a list of a page; nothing where there is nothing to tell apart.
    pub(crate) fn html(&self) -> String {
        if self.0.len() < 2 {
            return String::new();
        }
        let mut out = String::from("<ul class=\"legend\">");
        for (colour, shape, text) in self.0.iter().take(MOST_NAMED) {
            let class = colour.map_or("kx".to_owned(), class);
            let _ = write!(
                out,
                "<li><svg class=\"{class}\" width=\"14\" height=\"14\" aria-hidden=\"true\">{}</svg>{}</li>",
                symbol(*shape, 7.0, 7.0, 4.6),
                Esc(text)
            );
        }
        out + "</ul>"
    }

    /// As a part of a drawing that begins at `top`, and its height.
    pub(crate) fn drawn(&self, top: f64, width: f64) -> (String, f64) {
        if self.0.len() < 2 {
            return (String::new(), 0.0);
        }
        let (mut x, mut y) = (0.0, top);
        let mut out = String::new();
        for (colour, shape, text) in self.0.iter().take(MOST_NAMED) {
            let length = 18.0 + text_width(text) + 14.0;
            if x > 0.0 && x + length > width {
                (x, y) = (0.0, y + KEY_ROW);
            }
            let _ = write!(
                out,
                "<g class=\"key {}\">{}</g><text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                colour.map_or("kx".to_owned(), class),
                symbol(*shape, x + 6.0, y + 9.0, 4.6),
                x + 16.0,
                y + 13.5,
                Esc(text)
            );
            x += length;
        }
        (out, y + KEY_ROW - top)
    }
}

fn polygon(x: f64, y: f64, r: f64, corners: &[(f64, f64)]) -> String {
    let mut points = String::new();
    for (dx, dy) in corners {
        let _ = write!(points, "{:.1},{:.1} ", x + dx * r, y + dy * r);
    }
    format!("<polygon points=\"{}\"/>", points.trim_end())
}
