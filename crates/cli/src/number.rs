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

/// Percentages below this are all the same to a reader.
const LEAST_PERCENT: f64 = 0.01;

/// `4.31 Mbit/s`; a tiny percentage is `<0.01 %`.
pub(crate) fn with_unit(value: f64, unit: &str) -> String {
    let text = match value {
        _ if unit != "%" => number(value),
        _ if value != 0.0 && value.abs() < LEAST_PERCENT => format!("<{LEAST_PERCENT}"),
        _ if value < 100.0 && value > 99.99 => ">99.99".to_owned(),
        _ if (99.9..100.0).contains(&value) => format!("{value:.2}"),
        _ => number(value),
    };
    if unit.is_empty() { text } else { format!("{text} {unit}") }
}

/// `4.31 ± 0.20 Mbit/s`.
pub(crate) fn estimate(mean: f64, half_width: Option<f64>, unit: &str) -> String {
    let half = half_width.filter(|half| *half > 0.0 && half.is_finite()).unwrap_or(0.0);
    if unit == "%" && mean.abs() + half < LEAST_PERCENT {
        return with_unit(mean, unit);
    }
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
    with_unit(share * 100.0, "%")
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
    fn a_tiny_percentage_is_not_written_with_an_exponent() {
        assert_eq!(percent(6.1e-6), "<0.01 %");
        assert_eq!(percent(0.0), "0 %");
        assert_eq!(percent(0.99999), ">99.99 %");
        assert_eq!(percent(0.9996), "99.96 %");
        assert_eq!(percent(1.0), "100 %");
        assert_eq!(percent(0.0123), "1.23 %");
        assert_eq!(with_unit(6.1e-4, "%"), "<0.01 %");
        assert_eq!(with_unit(6.1e-4, "ms"), "6.10e-4 ms");
        assert_eq!(estimate(6e-5, Some(1e-5), "%"), "<0.01 %");
        assert_eq!(estimate(0.006, Some(0.03), "%"), "0.006 ± 0.030 %");
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
