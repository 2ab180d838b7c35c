//! Rates, places and times as a study writes them.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use sojourn_core::{Params, Span, SpecError, Words};

use super::signal::{check_places, check_presence};
use super::{Control, MinstrelConfig, Place, Presence, Step, check_steps};
use crate::phy::Mode;

/// Who chooses the mode, as it is written; a trace is in a file.
#[derive(Clone, Debug, PartialEq)]
pub enum ControlSpec {
    Fixed,
    Ideal,
    Minstrel(MinstrelConfig),
    /// The path of the file.
    Trace(String),
}

impl ControlSpec {
    /// Reads `fixed`, `ideal`, `minstrel interval 100ms` or `trace FILE`.
    ///
    /// # Errors
    /// Another word, or a parameter that there is not.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        const ALLOWED: [&str; 4] = ["fixed", "ideal", "minstrel", "trace"];
        if let Some(path) = text.trim().strip_prefix("trace ") {
            return Ok(Self::Trace(path.trim().to_owned()));
        }
        let mut words = Words::new(text);
        let name = words.next().unwrap_or_default();
        match name {
            "minstrel" => return MinstrelConfig::parse(&mut words).map(Self::Minstrel),
            "trace" => return Err(SpecError::new("'trace' needs a file").allow(["trace FILE"])),
            _ => {}
        }
        match (name, words.next()) {
            ("fixed", None) => Ok(Self::Fixed),
            ("ideal", None) => Ok(Self::Ideal),
            ("fixed" | "ideal", Some(word)) => {
                Err(SpecError::new(format!("'{word}' after '{name}'")).allow(["nothing"]))
            }
            _ => Err(SpecError::new(format!("nobody chooses rates as '{name}'"))
                .near(name, ALLOWED)
                .allow(ALLOWED)),
        }
    }

    /// The file that it needs.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Trace(path) => Some(path),
            _ => None,
        }
    }

    /// With what its file says, if it needs one.
    ///
    /// # Errors
    /// A line that is no step, or steps with gaps.
    pub fn complete(&self, file: &str) -> Result<Control, SpecError> {
        Ok(match self {
            Self::Fixed => Control::Fixed,
            Self::Ideal => Control::Ideal,
            Self::Minstrel(minstrel) => Control::Minstrel(minstrel.clone()),
            Self::Trace(_) => Control::Trace(Step::parse_all(file)?),
        })
    }
}

impl Step {
    /// Reads a line for each step: when it begins, when it ends, its mode (`0s 1.5s he mcs 11`). Empty
    /// lines and what follows a `#` are skipped.
    ///
    /// # Errors
    /// The number of the line that is no step, or steps that do not follow one another from 0s on.
    pub fn parse_all(text: &str) -> Result<Vec<Self>, SpecError> {
        let mut steps = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.split('#').next().unwrap_or_default().trim();
            if !line.is_empty() {
                let step = Self::parse(line);
                steps.push(step.map_err(|error| error.within(&format!("line {number}")))?);
            }
        }
        check_steps(&steps)?;
        Ok(steps)
    }

    fn parse(line: &str) -> Result<Self, SpecError> {
        let mut rest = line;
        let mut next = || {
            let (word, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            rest = after.trim_start();
            word
        };
        let [from, to] = [next(), next()];
        let wanted = |error: SpecError| error.allow(["BEGIN END MODE, such as 0s 1.5s he mcs 11"]);
        Ok(Self {
            from: from.parse().map_err(wanted)?,
            to: to.parse().map_err(wanted)?,
            mode: Mode::parse(rest)?,
        })
    }
}

impl Place {
    /// Reads a distance that stays, `8m`, or where a station is at which time: `8m at 0s 40m at 30s`.
    ///
    /// # Errors
    /// No distance, no time, or times out of order.
    pub fn parse_all(text: &str) -> Result<Vec<Self>, SpecError> {
        let wanted = |error: SpecError| error.allow(["8m, or 8m at 0s 40m at 30s"]);
        let mut words = Words::new(text);
        let mut places = Vec::new();
        while let Some(word) = words.next() {
            let metres = metres(word).ok_or_else(|| {
                wanted(SpecError::new(format!("'{word}' is no distance in metres")))
            })?;
            let at = match words.next() {
                None if places.is_empty() => Span::ZERO,
                None => {
                    let problem = format!("no time stands after '{word}'");
                    return Err(wanted(SpecError::new(problem)));
                }
                Some("at") => words.parse("at", str::parse)?,
                Some(other) => {
                    let problem = format!("'{other}' stands after '{word}'");
                    return Err(wanted(SpecError::new(problem)));
                }
            };
            places.push(Self { at, metres });
        }
        if places.is_empty() {
            return Err(wanted(SpecError::new("no distance")));
        }
        check_places(&places)?;
        Ok(places)
    }
}

fn metres(word: &str) -> Option<f64> {
    let number = word.strip_suffix('m')?;
    number.parse().ok().filter(|metres: &f64| metres.is_finite())
}

impl Presence {
    /// Reads when a station is there: `0s to 20s 40s to end`. `always` gives no times, as [`Rates::present`](super::Rates::present)
    /// has it.
    ///
    /// # Errors
    /// No time, or times out of order.
    pub fn parse_all(text: &str) -> Result<Vec<Self>, SpecError> {
        let wanted = |error: SpecError| error.allow(["always", "0s to 20s 40s to end"]);
        if text.trim() == "always" {
            return Ok(Vec::new());
        }
        let mut words = Words::new(text);
        let mut present = Vec::new();
        while let Some(word) = words.next() {
            let from = word.parse().map_err(wanted)?;
            if words.next() != Some("to") {
                let problem = format!("'to' does not stand after '{word}'");
                return Err(wanted(SpecError::new(problem)));
            }
            let to = match words.value("to")? {
                "end" => Span::MAX,
                word => word.parse().map_err(wanted)?,
            };
            present.push(Self { from, to });
        }
        if present.is_empty() {
            return Err(wanted(SpecError::new("no time at which the station is there")));
        }
        check_presence(&present)?;
        Ok(present)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn seconds(seconds: u64) -> Span {
        Span::from_secs(seconds)
    }

    #[test]
    fn who_chooses_is_read_or_refused() {
        let read = |text| ControlSpec::parse(text);
        assert_eq!(read("ideal"), Ok(ControlSpec::Ideal));
        assert_eq!(read("trace my rates.txt"), Ok(ControlSpec::Trace("my rates.txt".into())));
        let minstrel = MinstrelConfig { interval: Span::from_millis(100), ..Default::default() };
        assert_eq!(read("minstrel interval 100ms"), Ok(ControlSpec::Minstrel(minstrel)));
        for wrong in ["", "idal", "ideal 5", "minstrel intervall 1s", "trace", "fixed fixed"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn places_are_read_or_refused() {
        let place = |at, metres| Place { at: seconds(at), metres };
        assert_eq!(Place::parse_all("8m"), Ok(alloc::vec![place(0, 8.0)]));
        let moves = alloc::vec![place(0, 8.0), place(30, 40.5)];
        assert_eq!(Place::parse_all("8m at 0s 40.5m at 30s"), Ok(moves));
        for wrong in ["", "8", "8m 9m", "8m at", "-1m", "NaNm", "8m at 2s 9m at 1s", "8m at 0s 9m"]
        {
            assert!(Place::parse_all(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn times_of_presence_are_read_or_refused() {
        let there = |from, to| Presence { from: seconds(from), to };
        let both = alloc::vec![there(0, seconds(20)), there(40, Span::MAX)];
        assert_eq!(Presence::parse_all("0s to 20s 40s to end"), Ok(both));
        assert_eq!(Presence::parse_all("always"), Ok(Vec::new()));
        for wrong in
            ["", "0s", "0s 20s", "0s to", "20s to 10s", "0s to end 30s to 40s", "0s to 9s 8s to 9s"]
        {
            assert!(Presence::parse_all(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_trace_with_gaps_names_them() {
        let read = |text| Step::parse_all(text).map_err(|error| error.to_string());
        let steps = read("# a walk\n0s 1.5s he mcs 11\n\n1.5s 3s he mcs 4 # farther\n").unwrap();
        assert_eq!((steps.len(), steps[1].mode.mcs()), (2, 4));
        for (text, says) in [
            ("0s 1s he mcs 11\n2s 3s he mcs 4\n", "a gap from 1s to 2s before step 2"),
            ("1s 2s he mcs 11\n", "a gap from 0s to 1s"),
            ("0s 2s he mcs 11\n1s 3s he mcs 4\n", "before the one before it ends"),
            ("0s 1s he mcs 12\n", "line 1"),
            ("0s 1s he mcs 11\n1s he mcs 4\n", "line 2"),
            ("# nothing\n", "without steps"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_is_too_strange(text in "[ 0-9a-z.#=\n-]{0,60}") {
            let _ = (ControlSpec::parse(&text), Place::parse_all(&text));
            let _ = (Presence::parse_all(&text), Step::parse_all(&text));
        }
    }
}
