//! Static figures as SVG. Colours come from the page's style (`k0` … `k7`), so that a figure
//! follows dark, light and print without being drawn again.

mod bars;
mod bullet;
mod curves;
mod scale;
mod scatter;
mod symbol;
mod timeline;

use std::fmt::{Display, Write};

use crate::markup::Esc;

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

/// A figure's first tag, with what it is for who does not see it.
fn open(class: &str, width: f64, height: f64, name: &str) -> String {
    format!(
        "<svg class=\"{class}\" role=\"img\" aria-label=\"{}\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         width=\"{width:.0}\" height=\"{height:.0}\">",
        Esc(name)
    )
}

/// Lines of a grid from `top` to `bottom`, with their values below.
fn ticks_below(out: &mut String, x: &Scale, top: f64, bottom: f64) {
    for (tick, text) in x.ticks() {
        let at = x.at(tick);
        let _ = write!(
            out,
            "<path class=\"grid\" d=\"M{at:.1} {top}V{bottom}\"/><text class=\"tick\" x=\"{at:.1}\" \
             y=\"{:.1}\" text-anchor=\"middle\">{text}</text>",
            bottom + 15.0
        );
    }
}

/// Lines of a grid from `left` to `right` at the places given, with their texts on the left.
fn ticks_beside<T: Display>(
    out: &mut String,
    marks: impl Iterator<Item = (f64, T)>,
    left: f64,
    right: f64,
) {
    for (at, text) in marks {
        let _ = write!(
            out,
            "<path class=\"grid\" d=\"M{left} {at:.1}H{right}\"/><text class=\"tick\" x=\"{:.1}\" \
             y=\"{:.1}\" text-anchor=\"end\">{text}</text>",
            left - 6.0,
            at + 4.0
        );
    }
}
