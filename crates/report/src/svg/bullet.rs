//! A measured value with its interval beside the bounds of a claim.

use std::fmt::Write;

use super::scale::Scale;
use crate::markup::Esc;
use crate::number::number;

/// The allowed range; open ends are infinite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bounds {
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Bounds {
    /// Reads `6..8 Mbit/s`, `<= 30 ms`, `> 2` and the like; `None` for anything else.
    pub(crate) fn parse(wanted: &str) -> Option<Self> {
        let wanted = wanted.trim();
        let number =
            |text: &str| text.split_whitespace().next()?.trim_end_matches('%').parse::<f64>().ok();
        for (sign, upper) in
            [("<=", true), ("≤", true), ("<", true), (">=", false), ("≥", false), (">", false)]
        {
            if let Some(rest) = wanted.strip_prefix(sign) {
                return Some(Self::one_sided(number(rest)?, upper));
            }
        }
        let (low, high) = wanted.split_once("..")?;
        let bounds = Self { low: number(low)?, high: number(high)? };
        (bounds.low <= bounds.high).then_some(bounds)
    }

    /// The sign or tolerance in `wanted`, with a bound that was measured.
    pub(crate) fn measured(wanted: &str, bound: f64) -> Option<Self> {
        match wanted.trim().chars().next()? {
            '<' | '≤' => Some(Self::one_sided(bound, true)),
            '>' | '≥' => Some(Self::one_sided(bound, false)),
            '±' => Self::around(wanted.trim().trim_start_matches('±'), bound),
            _ => None,
        }
    }

    /// `15%` of the bound to both sides, or `2ms`, which is in the bound's unit.
    fn around(tolerance: &str, bound: f64) -> Option<Self> {
        let word = tolerance.split_whitespace().next()?;
        let end = word.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(word.len());
        let by: f64 = word[..end].parse().ok()?;
        let by = if word[end..] == *"%" { by / 100.0 * bound.abs() } else { by };
        Some(Self { low: bound - by, high: bound + by })
    }

    pub(crate) fn low_by(&self, value: f64) -> bool {
        value < self.low
    }

    fn one_sided(bound: f64, upper: bool) -> Self {
        if upper {
            Self { low: f64::NEG_INFINITY, high: bound }
        } else {
            Self { low: bound, high: f64::INFINITY }
        }
    }
}

pub(crate) fn bullet(
    bounds: Bounds,
    mean: f64,
    half_width: Option<f64>,
    unit: &str,
    failed: bool,
) -> String {
    let half = half_width.filter(|half| half.is_finite()).unwrap_or(0.0);
    let finite = [bounds.low, bounds.high].into_iter().filter(|bound| bound.is_finite());
    let values: Vec<f64> = finite.chain([mean - half, mean + half]).collect();
    let (mut min, mut max) =
        values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(*v), b.max(*v)));
    if min > 0.0 {
        min = 0.0;
    }
    if max < 0.0 {
        max = 0.0;
    }
    max += (max - min).max(f64::MIN_POSITIVE) * 0.12;
    let (left, right) = (6.0, 214.0);
    let scale = Scale::exact(min, max, left, right);
    let (from, to) = (
        if bounds.low.is_finite() { scale.clamped(bounds.low) } else { left },
        if bounds.high.is_finite() { scale.clamped(bounds.high) } else { right },
    );
    let mut out = format!(
        "<svg class=\"bullet{}\" role=\"img\" aria-label=\"measured {} {}\" viewBox=\"0 0 220 34\" \
         width=\"220\" height=\"34\"><path class=\"track\" d=\"M{left} 11H{right}\"/><rect \
         class=\"wanted\" x=\"{from:.1}\" y=\"4\" width=\"{:.1}\" height=\"14\"/>",
        if failed { " failed" } else { "" },
        number(mean),
        Esc(unit),
        (to - from).max(1.5)
    );
    let mut taken = f64::NEG_INFINITY;
    for bound in [bounds.low, bounds.high] {
        if bound.is_finite() {
            let x = scale.clamped(bound);
            let _ = write!(out, "<path class=\"edge\" d=\"M{x:.1} 2V20\"/>");
            if x - taken > 34.0 {
                let _ = write!(
                    out,
                    "<text class=\"tick\" x=\"{:.1}\" y=\"31\" text-anchor=\"middle\">{}</text>",
                    x.clamp(14.0, 204.0),
                    number(bound)
                );
                taken = x;
            }
        }
    }
    let x = scale.clamped(mean);
    if half > 0.0 {
        let (a, b) = (scale.clamped(mean - half), scale.clamped(mean + half));
        let _ = write!(
            out,
            "<path class=\"interval\" d=\"M{a:.1} 11H{b:.1}M{a:.1} 7V15M{b:.1} 7V15\"/>"
        );
    }
    let _ = write!(
        out,
        "<path class=\"measured\" d=\"M{x:.1} 5.2L{:.1} 11L{x:.1} 16.8L{:.1} 11Z\"/></svg>",
        x + 5.0,
        x - 5.0
    );
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bounds_are_read_as_claims_print_them() {
        assert_eq!(Bounds::parse("<= 5%").unwrap().high, 5.0);
        assert_eq!(Bounds::parse("6..8 Mbit/s"), Some(Bounds { low: 6.0, high: 8.0 }));
        assert_eq!(Bounds::parse("<= 30 ms").unwrap().high, 30.0);
        assert_eq!(Bounds::parse(">= 0.9").unwrap().low, 0.9);
        assert_eq!(Bounds::parse("> goodput(bbr)"), None);
        assert_eq!(Bounds::measured("> goodput(bbr)", 4.0).unwrap().low, 4.0);
        let around = |wanted| Bounds::measured(wanted, 20.0);
        assert_eq!(around("±25% rtt(bbr)"), Some(Bounds { low: 15.0, high: 25.0 }));
        assert_eq!(around("±2ms rtt(bbr)"), Some(Bounds { low: 18.0, high: 22.0 }));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".*") {
            let _ = Bounds::parse(&text);
            let _ = Bounds::measured(&text, 1.0);
        }
    }
}
