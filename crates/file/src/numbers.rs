//! The numbers in a factor's values, for the axis of a chart.

use sojourn_core::{Bytes, Rate, Span};

/// The values of a factor as numbers: `pfifo limit 50` and `pfifo limit 1000` differ in one number,
/// and so do `20ms` and `1s`. Of a single value it is the only number in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Numbers {
    /// In the order of the values, in [`Numbers::unit`].
    pub values: Vec<f64>,
    /// `ms`, `Mbit/s`, `bytes`, or the text after the number; empty for a plain number.
    pub unit: String,
    /// The text around the number, the same in every value: `pfifo limit …`; empty if there is
    /// none.
    pub around: String,
}

impl Numbers {
    /// `None` unless the values differ in one number and nothing else, or a single value has one number.
    pub fn of(values: &[String]) -> Option<Self> {
        let words: Vec<Vec<&str>> =
            values.iter().map(|value| value.split_whitespace().collect()).collect();
        let (first, others) = words.split_first()?;
        if others.iter().any(|other| other.len() != first.len()) {
            return None;
        }
        let differs = |at: usize| match others {
            [] => number(first[at]).is_some(),
            _ => others.iter().any(|other| other[at] != first[at]),
        };
        let mut places = (0..first.len()).filter(|at| differs(*at));
        let (place, None) = (places.next()?, places.next()) else { return None };
        let read: Vec<(f64, String)> =
            words.iter().map(|words| number(words[place])).collect::<Option<_>>()?;
        let unit = read[0].1.clone();
        if read.iter().any(|(_, other)| *other != unit) {
            return None;
        }
        let around: Vec<&str> =
            (0..first.len()).map(|at| if at == place { "…" } else { first[at] }).collect();
        Some(Self {
            values: read.into_iter().map(|(value, _)| value).collect(),
            unit,
            around: if around.len() > 1 { around.join(" ") } else { String::new() },
        })
    }
}

/// A word as a number in the unit of its kind.
fn number(word: &str) -> Option<(f64, String)> {
    let end = word.find(|c: char| !(c.is_ascii_digit() || ".-+".contains(c)));
    let (digits, unit) = word.split_at(end.unwrap_or(word.len()));
    let value: f64 = digits.parse().ok().filter(|value: &f64| value.is_finite())?;
    if unit.is_empty() {
        return Some((value, String::new()));
    }
    if let Ok(span) = word.parse::<Span>() {
        return Some((span.as_millis_f64(), "ms".into()));
    }
    if let Ok(rate) = word.parse::<Rate>() {
        return Some((rate.as_mbps(), "Mbit/s".into()));
    }
    if let Ok(bytes) = word.parse::<Bytes>() {
        return Some((bytes.as_u64() as f64, "bytes".into()));
    }
    let plain = unit.chars().all(|c| c.is_ascii_alphabetic() || c == '%');
    plain.then(|| (value, unit.to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(values: &[&str]) -> Option<Numbers> {
        Numbers::of(&values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn values_of_one_kind_are_numbers_in_one_unit() {
        for (values, numbers, unit, around) in [
            (&["500us", "20ms", "1s"][..], &[0.5, 20.0, 1000.0][..], "ms", ""),
            (&["10mbit", "1gbit"], &[10.0, 1000.0], "Mbit/s", ""),
            (&["pfifo limit 50", "pfifo limit 1000"], &[50.0, 1000.0], "", "pfifo limit …"),
            (&["0.5bdp", "8bdp"], &[0.5, 8.0], "bdp", ""),
            (&["loss 0.1%", "loss 1%"], &[0.1, 1.0], "%", "loss …"),
            (&["1", "2", "4"], &[1.0, 2.0, 4.0], "", ""),
            (&["1s"], &[1000.0], "ms", ""),
            (&["pfifo limit 50"], &[50.0], "", "pfifo limit …"),
        ] {
            let found = of(values).unwrap_or_else(|| panic!("{values:?}"));
            assert_eq!((&found.values[..], &found.unit[..]), (numbers, unit), "{values:?}");
            assert_eq!(found.around, around);
        }
    }

    #[test]
    fn what_differs_in_more_than_a_number_is_none() {
        for values in [
            &["fq_codel", "pfifo limit 50"][..],
            &["bbr", "bbr3"],
            &["20ms", "10mbit"],
            &["a 1 b 2", "a 2 b 3"],
            &["fq_codel"],
            &["a 1 b 2"],
            &[],
        ] {
            assert_eq!(of(values), None, "{values:?}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(values in prop::collection::vec(".{0,20}", 0..4)) {
            if let Some(numbers) = Numbers::of(&values) {
                prop_assert!(numbers.values.iter().all(|value| value.is_finite()));
            }
        }
    }
}
