//! Numbers as people read them.

/// About three significant digits, without exponent between 0.001 and ten million.
pub(crate) fn number(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        return "–".into();
    }
    if size == 0.0 {
        return "0".into();
    }
    if !(1e-3..1e7).contains(&size) {
        return format!("{value:.2e}");
    }
    if value.fract() == 0.0 && size >= 1.0 {
        return grouped(value);
    }
    let digits = (2.0 - size.log10().floor()).clamp(0.0, 5.0) as usize;
    trimmed(grouped_decimals(value, digits))
}

/// `12.3 ± 0.4 Mbit/s`.
pub(crate) fn estimate(mean: f64, half_width: Option<f64>, unit: &str) -> String {
    let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
    match half_width {
        Some(half) if half > 0.0 && half.is_finite() => {
            let digits = |size: f64| (1.0 - size.log10().floor()).clamp(0.0, 5.0) as usize;
            // One digit of the interval more than it deserves, never more than the mean shows.
            let places = digits(half).min(digits(mean.abs().max(half)) + 1);
            let least = 0.1f64.powi(places as i32);
            let (sign, half) = if half < least / 2.0 { ("<", least) } else { ("", half) };
            format!(
                "{} ± {sign}{}{unit}",
                grouped_decimals(mean, places),
                grouped_decimals(half, places)
            )
        }
        _ => format!("{}{unit}", number(mean)),
    }
}

pub(crate) fn percent(share: f64) -> String {
    if !share.is_finite() {
        return "–".into();
    }
    let value = share * 100.0;
    let digits = if value.abs() < 10.0 { 1 } else { 0 };
    format!("{value:.digits$} %")
}

fn grouped(value: f64) -> String {
    grouped_decimals(value, 0)
}

/// Thousands apart from 10 000 on, with a space that does not break.
fn grouped_decimals(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let digits = whole.trim_start_matches('-').len();
    if digits < 5 {
        return text;
    }
    let mut out = String::new();
    for (at, c) in whole.chars().enumerate() {
        let left = whole.len() - at;
        if c != '-' && left % 3 == 0 && at > 0 && !out.ends_with('-') {
            out.push('\u{202f}');
        }
        out.push(c);
    }
    out + rest
}

fn trimmed(text: String) -> String {
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_are_enough() {
        for (value, text) in [
            (0.0, "0"),
            (0.012345, "0.0123"),
            (1.0, "1"),
            (9.876, "9.88"),
            (123.456, "123"),
            (-1234.5, "-1234"),
            (123_456.0, "123\u{202f}456"),
            (-123_456.7, "-123\u{202f}457"),
            (1e-6, "1.00e-6"),
            (f64::NAN, "–"),
        ] {
            assert_eq!(number(value), text, "{value}");
        }
    }

    #[test]
    fn an_interval_decides_the_decimals() {
        assert_eq!(estimate(12.3456, Some(0.456), "ms"), "12.3 ± 0.5 ms");
        assert_eq!(estimate(3.12, Some(0.24), "ms"), "3.12 ± 0.24 ms");
        assert_eq!(estimate(312.3, Some(42.0), "ms"), "312 ± 42 ms");
        assert_eq!(estimate(12.0, None, ""), "12");
        assert_eq!(estimate(0.992, Some(0.0001), ""), "0.992 ± <0.001");
        assert_eq!(estimate(8.5, Some(0.0), "Mbit/s"), "8.5 Mbit/s");
    }
}
