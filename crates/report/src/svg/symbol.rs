//! Shapes beside colours, so that a figure can be read without colour.

use std::fmt::Write;

use super::parts::class;
use crate::markup::Esc;

/// A point's shape: eight shapes that can be told apart when small.
pub(crate) fn symbol(which: usize, x: f64, y: f64, r: f64) -> String {
    match which % 8 {
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

/// The key of a figure: colour and shape with what they stand for. `entries` are colour, symbol
/// and text; a colour of `None` is grey.
pub(crate) fn legend(entries: &[(Option<usize>, usize, String)]) -> String {
    if entries.len() < 2 {
        return String::new();
    }
    let mut out = String::from("<ul class=\"legend\">");
    for (colour, shape, text) in entries {
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

fn polygon(x: f64, y: f64, r: f64, corners: &[(f64, f64)]) -> String {
    let mut points = String::new();
    for (dx, dy) in corners {
        let _ = write!(points, "{:.1},{:.1} ", x + dx * r, y + dy * r);
    }
    format!("<polygon points=\"{}\"/>", points.trim_end())
}
