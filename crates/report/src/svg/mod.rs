//! Static figures as SVG. Colours come from the page's style (`k0` … `k7`), so that a figure
//! follows dark, light and print without being drawn again.

mod bars;
mod bullet;
mod curves;
mod scale;
mod scatter;
mod symbol;
mod timeline;

pub(crate) use bars::{Category, Group, Layout, bars, shares};
pub(crate) use bullet::{Bounds, bullet};
pub(crate) use curves::{Axis, Curve, curves};
pub(crate) use scale::Scale;
pub(crate) use scatter::{Cloud, scatter};
pub(crate) use symbol::{legend, symbol};
pub(crate) use timeline::{Panel, Trace, timeline};

/// Colours that stay apart for every common kind of colour vision (Okabe and Ito).
pub(crate) const COLOURS: usize = 8;

/// A class that sets the colour, and from the ninth on repeats them.
pub(crate) fn class(colour: usize) -> String {
    format!("k{}", colour % COLOURS)
}

/// Width of a text in the 12-pixel font of figures; generous, since fonts differ.
pub(crate) fn text_width(text: &str) -> f64 {
    text.chars().count() as f64 * CHARACTER
}

const CHARACTER: f64 = 7.1;

/// Cut to a width in that font.
pub(crate) fn fitted(text: &str, width: f64) -> String {
    short(text, (width / CHARACTER) as usize)
}

/// Cut to a number of characters.
pub(crate) fn short(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let mut out: String = text.chars().take(most.saturating_sub(1)).collect();
    out.push('…');
    out
}
