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
            // Two digits of the interval, and at most one decimal more than two digits of the mean need.
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

/// A unit in which values as large as `largest` are easy to read, and the factor that converts to
/// it: 150 s rather than 150 000 ms.
pub(crate) fn stepped(largest: f64, unit: &str) -> (f64, &str) {
    let size = largest.abs();
    match unit {
        "ms" if size >= 1e4 => (1e-3, "s"),
        "ms" if size > 0.0 && size < 0.1 => (1e3, "µs"),
        "Mbit/s" if size >= 1e3 => (1e-3, "Gbit/s"),
        "Mbit/s" if size > 0.0 && size < 0.1 => (1e3, "kbit/s"),
        "bytes" if size >= 1e9 => (1e-9, "GB"),
        "bytes" if size >= 1e6 => (1e-6, "MB"),
        "bytes" if size >= 1e4 => (1e-3, "kB"),
        _ => (1.0, unit),
    }
}

/// An estimate in the unit in which it is easy to read: `1.25 ± 0.04 Gbit/s` for 1250 Mbit/s.
pub(crate) fn told(mean: f64, half_width: Option<f64>, unit: &str) -> String {
    let (factor, unit) = stepped(mean, unit);
    estimate(mean * factor, half_width.map(|half| half * factor), unit)
}

pub(crate) const PERCENT: &str = "%";

/// Percentages below this are all the same to a reader.
const LEAST_PERCENT: f64 = 0.01;

/// Clocks count nanoseconds, so times below one are all the same to a reader, too.
const LEAST_MILLISECONDS: f64 = 1e-6;

/// Whether the value is too small for its digits to tell anything.
fn is_tiny(value: f64, unit: &str) -> bool {
    match unit {
        PERCENT => value.abs() < LEAST_PERCENT,
        "ms" => value.abs() < LEAST_MILLISECONDS,
        _ => false,
    }
}

/// A value that stands beside others in a table or figure: like [`number`], but a tiny percentage is
/// `<0.01`, and a tiny time `<0.000001`.
pub(crate) fn shown(value: f64, unit: &str) -> String {
    match value {
        _ if unit == "ms" && value != 0.0 && is_tiny(value, unit) => {
            format!("<{LEAST_MILLISECONDS}")
        }
        _ if unit != PERCENT => number(value),
        _ if value != 0.0 && value.abs() < LEAST_PERCENT => format!("<{LEAST_PERCENT}"),
        // Not all of them, though three digits would say so.
        _ if value < 100.0 && number(value) == "100" => nearly_all(value),
        _ => number(value),
    }
}

/// The same with half the width of its interval, without the unit.
pub(crate) fn shown_beside(mean: f64, half_width: Option<f64>, unit: &str) -> String {
    let largest = mean.abs() + half_width.unwrap_or(0.0);
    match is_tiny(largest, unit) {
        true => shown(mean, unit),
        false => estimate(mean, half_width, ""),
    }
}

/// The same with its unit.
pub(crate) fn shown_with_unit(mean: f64, half_width: Option<f64>, unit: &str) -> String {
    let text = shown_beside(mean, half_width, unit);
    if unit.is_empty() { text } else { format!("{text} {unit}") }
}

/// The value as [`number`] prints it, so that values that are printed alike are equal.
pub(crate) fn as_printed(value: f64) -> f64 {
    let text = if value.abs() >= 100.0 { format!("{value:.0}") } else { format!("{value:.2e}") };
    text.parse().unwrap_or(value)
}

pub(crate) fn percent(share: f64) -> String {
    if !share.is_finite() {
        return "–".into();
    }
    let value = share * 100.0;
    let digits = if value.abs() < 10.0 { 1 } else { 0 };
    match format!("{value:.digits$}") {
        text if text == "100" && value < 100.0 => format!("{} %", nearly_all(value)),
        text if value > 0.0 && text == "0.0" => "<0.1 %".to_owned(),
        text => format!("{text} %"),
    }
}

/// A percentage below 100 that would be rounded to it.
fn nearly_all(value: f64) -> String {
    let hundredths = (value * 100.0).floor() / 100.0;
    match hundredths < value && hundredths >= 99.99 {
        true => ">99.99".to_owned(),
        false => trimmed(format!("{hundredths:.2}")),
    }
}

fn grouped(value: f64) -> String {
    grouped_decimals(value, 0)
}

/// Separates thousands from 10 000 on, with a space that does not break.
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
    use proptest::prelude::*;

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
    fn times_below_a_nanosecond_are_one_time() {
        assert_eq!(shown_beside(2.0e-24, None, "ms"), "<0.000001");
        assert_eq!(shown_beside(0.0, None, "ms"), "0");
        assert_eq!(shown_with_unit(2.0e-24, None, "ms"), "<0.000001 ms");
        assert_eq!(shown(2.0e-24, ""), "2.00e-24");
    }

    #[test]
    fn units_step_up_and_down() {
        assert_eq!(told(150_000.0, Some(2_000.0), "ms"), "150.0 ± 2.0 s");
        assert_eq!(told(0.0121, None, "ms"), "12.1 µs");
        assert_eq!(told(2_950.0, None, "Mbit/s"), "2.95 Gbit/s");
        assert_eq!(told(40.0, None, "ms"), "40 ms");
        assert_eq!(told(7.5e6, None, "bytes"), "7.5 MB");
        assert_eq!(told(150_000.0, None, "packets"), "150\u{202f}000 packets");
    }

    #[test]
    fn a_tiny_percentage_is_not_written_with_an_exponent() {
        assert_eq!(shown(0.006, "%"), "<0.01");
        assert_eq!(shown(6.08e-5, "%"), "<0.01");
        assert_eq!(shown(0.0, "%"), "0");
        assert_eq!(shown(0.0123, "%"), "0.0123");
        assert_eq!(shown(6.08e-5, "ms"), "6.08e-5");
        for (value, text) in [
            (100.0, "100"),
            (99.9999, ">99.99"),
            (99.99, "99.99"),
            (99.97, "99.97"),
            (99.5, "99.5"),
        ] {
            assert_eq!(shown(value, "%"), text);
        }
        assert_eq!((percent(0.9999), percent(1.0)), ("99.99 %".into(), "100 %".into()));
        assert_eq!((percent(1e-5), percent(0.0)), ("<0.1 %".into(), "0.0 %".into()));
        assert_eq!(shown_with_unit(6.08e-5, Some(1e-5), "%"), "<0.01 %");
        assert_eq!(shown_with_unit(0.0, None, "%"), "0 %");
        assert_eq!(shown_with_unit(12.3456, Some(0.456), "%"), "12.3 ± 0.5 %");
    }

    proptest! {
        #[test]
        fn numbers_that_read_alike_are_alike(value in 1e-3f64..1e6, apart in 0.0f64..1e-2) {
            let other = value * (1.0 + apart);
            if number(value) == number(other) {
                prop_assert_eq!(as_printed(value), as_printed(other));
            }
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
