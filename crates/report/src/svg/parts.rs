//! What all figures share: colours, lengths of texts, the first tag, grids.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Display, Write};

use super::scale::Scale;
use crate::markup::Esc;

/// Colours that stay apart for every common kind of colour vision (Okabe and Ito).
pub(crate) const COLOURS: usize = 8;

/// The class that sets the colour; from the ninth on colours repeat, and bars are paler with an edge.
pub(crate) fn class(colour: usize) -> String {
    let again = if colour < COLOURS { "" } else { " again" };
    format!("k{}{again}", colour % COLOURS)
}

/// The class that sets how a line is dashed: where a colour repeats, not as before.
pub(super) fn dash(colour: usize) -> String {
    format!("dash{}", (colour + colour / COLOURS) % 4)
}

/// Points of many colours, so dense that those at one place are one dot.
pub(super) fn dots(points: impl Iterator<Item = (usize, (f64, f64))>) -> String {
    let mut places: BTreeMap<usize, BTreeSet<(i32, i32)>> = BTreeMap::new();
    for (colour, (x, y)) in points {
        // Half the width of a dot.
        let place = ((x / 1.5).round() as i32, (y / 1.5).round() as i32);
        places.entry(colour % COLOURS).or_default().insert(place);
    }
    let mut out = String::new();
    for (colour, places) in places {
        let _ = write!(out, "<path class=\"dots {}\" d=\"", class(colour));
        for (x, y) in places {
            let _ = write!(out, "M{:.1} {:.1}h0", f64::from(x) * 1.5, f64::from(y) * 1.5);
        }
        out += "\"/>";
    }
    out
}

/// So many runs of one mark are drawn; of more, those that others hide are left out.
pub(crate) const MOST_POINTS: usize = 200;

/// The points of a mark that are drawn: all, or of those in each small square the first, with squares as large as it takes.
pub(super) fn visible<T>(points: &[T], place: impl Fn(&T) -> (f64, f64)) -> Vec<&T> {
    let mut side = 0.5;
    let mut shown: Vec<&T> = points.iter().collect();
    while shown.len() > MOST_POINTS {
        let mut squares: BTreeSet<(i64, i64)> = BTreeSet::new();
        shown.retain(|point| {
            let (x, y) = place(point);
            squares.insert(((x / side).floor() as i64, (y / side).floor() as i64))
        });
        side *= 2.0;
    }
    shown
}

/// Width of a text in the 12-pixel font of figures; an upper estimate, because fonts differ.
pub(crate) fn text_width(text: &str) -> f64 {
    let usual = text.chars().count() as f64 * CHARACTER;
    // Few texts are wider than so many usual characters: `mac80211` is.
    usual.max(text.chars().map(wide).sum())
}

const CHARACTER: f64 = 7.1;

/// Width of a character in DejaVu Sans, the widest of the usual fonts, rounded up within its group.
fn wide(character: char) -> f64 {
    match character {
        'm' | 'w' | 'M' | 'W' | '%' | '@' | '…' => 12.1,
        'i' | 'j' | 'l' | 'f' | 'r' | 't' | ' ' | '.' | ',' | ':' | '-' | '/' | '(' | ')' => 5.0,
        'A'..='Z' | '±' | '+' | '=' | '<' | '>' | '×' => 10.1,
        _ => 7.7,
    }
}

/// Labels side by side, each in at most two lines of `width`. If one is too long, words at its
/// beginning that another label shares are dropped first, because the differences must stay.
pub(crate) fn beside_each_other(labels: &[String], width: f64) -> Vec<Vec<String>> {
    let most = ((width / CHARACTER) as usize).max(6);
    labels.iter().map(|label| in_two_lines(label, labels, most)).collect()
}

fn in_two_lines(label: &str, all: &[String], most: usize) -> Vec<String> {
    let length = |text: &str| text.chars().count();
    if length(label) <= most {
        return vec![label.to_owned()];
    }
    let words: Vec<&str> = label.split(' ').collect();
    if let Some(lines) = broken(&words, most) {
        return lines;
    }
    let shared = all
        .iter()
        .filter(|other| *other != label)
        .map(|other| words.iter().zip(other.split(' ')).take_while(|(a, b)| *a == b).count())
        .max()
        .unwrap_or(0);
    if shared > 1 {
        let mut left = vec![words[0], "…"];
        left.extend(&words[shared..]);
        if let Some(lines) = broken(&left, most) {
            return lines;
        }
    }
    // Both ends are kept, because names may differ at either.
    let room = most - 1;
    let tail: String = label.chars().skip(length(label) - room).collect();
    vec![short(label, most), format!("…{tail}")]
}

/// The words in one or two lines, if they fit.
fn broken(words: &[&str], most: usize) -> Option<Vec<String>> {
    let fits = |text: &String| text.chars().count() <= most;
    let whole = words.join(" ");
    if fits(&whole) {
        return Some(vec![whole]);
    }
    (1..words.len())
        .map(|at| vec![words[..at].join(" "), words[at..].join(" ")])
        .filter(|lines| lines.iter().all(fits))
        .min_by_key(|lines| lines[0].len().abs_diff(lines[1].len()))
}

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

/// A figure's first tag, with a description for readers who can't see it.
pub(crate) fn open(class: &str, width: f64, height: f64, name: &str) -> String {
    format!(
        "<svg class=\"{class}\" role=\"img\" aria-label=\"{}\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         width=\"{width:.0}\" height=\"{height:.0}\">",
        Esc(name)
    )
}

/// A drawing at a place in another one, and its height.
pub(crate) fn placed(svg: &str, x: f64, y: f64) -> (String, f64) {
    let height = svg
        .split_once(" height=\"")
        .and_then(|(_, rest)| rest.split('"').next())
        .and_then(|height| height.parse().ok())
        .unwrap_or(0.0);
    (svg.replacen("<svg ", &format!("<svg x=\"{x:.0}\" y=\"{y:.0}\" "), 1), height)
}

/// Lines of a grid from `top` to `bottom`, with their values below.
pub(crate) fn ticks_below(out: &mut String, x: &Scale, top: f64, bottom: f64) {
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
pub(crate) fn ticks_beside<T: Display>(
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::svg::symbol::symbol;

    #[test]
    fn where_a_colour_repeats_something_else_differs() {
        let bar = |which: usize| class(which);
        let line = |which: usize| (which % COLOURS, dash(which));
        let point = |which: usize| (which % COLOURS, symbol(which, 0.0, 0.0, 1.0));
        for one in 0..COLOURS {
            assert_ne!(bar(one), bar(one + COLOURS));
            for again in (one + COLOURS..4 * COLOURS).step_by(COLOURS) {
                assert_ne!(line(one), line(again));
                assert_ne!(point(one), point(again));
            }
        }
    }

    fn shown(labels: &[&str], characters: usize) -> Vec<String> {
        let labels: Vec<String> = labels.iter().map(|label| (*label).to_owned()).collect();
        let width = characters as f64 * CHARACTER + 1.0;
        beside_each_other(&labels, width).into_iter().map(|lines| lines.join(" / ")).collect()
    }

    /// As Chromium measures them in DejaVu Sans.
    #[test]
    fn no_text_is_wider_than_its_estimate() {
        let texts = [
            ("mac80211", 63.81),
            ("fq_codel", 50.12),
            ("MAC 802.11ax", 86.99),
            ("10Mbps 20ms", 84.13),
            ("100 %", 38.12),
            ("14.6 ± 5.4", 63.49),
            ("mmwave", 55.03),
            ("0123456789", 76.35),
            ("abcdeghknopqsuvxyz", 130.38),
            ("ABCDEFGHIJKLMNOPQRSTUVWXYZ", 209.66),
            ("iljftr .,:-/()", 56.88),
            ("±+=<>×…@%", 95.73),
        ];
        for (text, measured) in texts {
            let estimate = text_width(text);
            assert!(estimate >= measured, "{text}: {estimate} and not {measured}");
        }
    }

    #[test]
    fn labels_keep_what_differs() {
        let long = ["cake bandwidth 9mbit overhead 30", "cake bandwidth 9mbit pppoe-ptm"];
        assert_eq!(shown(&long, 40), long);
        assert_eq!(
            shown(&long, 18),
            ["cake bandwidth / 9mbit overhead 30", "cake bandwidth / 9mbit pppoe-ptm"]
        );
        assert_eq!(shown(&long, 14), ["cake … / overhead 30", "cake … / pppoe-ptm"]);
        let one_word = ["averyveryverylongname-1", "averyveryverylongname-2"];
        assert_eq!(shown(&one_word, 10), ["averyvery… / …ongname-1", "averyvery… / …ongname-2"]);
    }

    proptest! {
        #[test]
        fn no_line_is_wider_than_its_place(
            labels in prop::collection::vec(".{0,60}", 1..6), most in 6usize..40,
        ) {
            for lines in beside_each_other(&labels, most as f64 * CHARACTER + 1.0) {
                prop_assert!(lines.len() <= 2);
                for line in lines {
                    prop_assert!(line.chars().count() <= most, "{line}");
                }
            }
        }
    }

    /// Two thousand runs between 100 and 400 pixels, at even distances; and as many at one place.
    #[test]
    fn of_many_points_those_that_hide_others_are_drawn() {
        let points: Vec<f64> = (0..2000).map(|at| 100.0 + 0.15 * f64::from(at)).collect();
        let shown = visible(&points, |x| (*x, 0.0));
        assert!((100..=MOST_POINTS).contains(&shown.len()), "{}", shown.len());
        assert_eq!(*shown[0], 100.0);
        let gaps: Vec<f64> = shown.windows(2).map(|two| two[1] - two[0]).collect();
        assert!(gaps.iter().all(|gap| *gap <= 4.5), "{gaps:?}");
        assert_eq!(visible(&points[..MOST_POINTS], |x| (*x, 0.0)).len(), MOST_POINTS);
        assert_eq!(visible(&points, |_| (f64::NAN, f64::INFINITY)).len(), 1);
    }
}
