//! Numbers as a terminal shows them.

/// Three significant digits.
pub(crate) fn number(value: f64) -> String {
    match value.abs() {
        _ if !value.is_finite() => "-".to_owned(),
        0.0 => "0".to_owned(),
        size if !(1e-3..1e7).contains(&size) => format!("{value:.2e}"),
        size if value.fract() == 0.0 || size >= 1000.0 => format!("{value:.0}"),
        size => format!("{value:.*}", decimals(size, 3)),
    }
}

/// `4.31 ± 0.20 Mbit/s`.
pub(crate) fn estimate(mean: f64, half_width: Option<f64>, unit: &str) -> String {
    let half = half_width.filter(|half| *half > 0.0 && half.is_finite()).unwrap_or(0.0);
    // Two digits of the interval, but few more than the mean needs.
    let places = decimals(half, 2).min(decimals(mean.abs().max(half), 3) + 1);
    let shown = format!("{half:.places$}");
    let text = match shown.chars().any(|digit| ('1'..='9').contains(&digit)) {
        true => format!("{mean:.places$} ± {shown}"),
        false => number(mean),
    };
    match unit.is_empty() {
        true => text,
        false => format!("{text} {unit}"),
    }
}

pub(crate) fn percent(share: f64) -> String {
    format!("{} %", number(share * 100.0))
}

/// Decimals that show `digits` significant digits.
fn decimals(size: f64, digits: i32) -> usize {
    if size <= 0.0 {
        return 0;
    }
    let before_the_point = size.log10().floor() as i32 + 1;
    (digits - before_the_point).clamp(0, 6) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_are_shown() {
        for (value, text) in [
            (0.0, "0"),
            (4.2877, "4.29"),
            (72.177, "72.2"),
            (951.2, "951"),
            (12345.6, "12346"),
            (0.04321, "0.0432"),
            (37.0, "37"),
            (1e-9, "1.00e-9"),
            (f64::NAN, "-"),
        ] {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn an_interval_decides_the_decimals() {
        assert_eq!(estimate(4.2877, Some(0.201), "Mbit/s"), "4.29 ± 0.20 Mbit/s");
        assert_eq!(estimate(312.34, Some(42.1), "ms"), "312 ± 42 ms");
        assert_eq!(estimate(11.318, Some(0.0412), "ms"), "11.32 ± 0.04 ms");
        assert_eq!(estimate(11.318, Some(0.0001), "ms"), "11.3 ms");
        assert_eq!(estimate(5.0, Some(0.0), ""), "5");
        assert_eq!(estimate(5.0, None, ""), "5");
    }
}
