//! How the capacity of the path changes in the test cases of RFC 8867: a reference and multiples
//! of it over time.

use std::fmt;

use sojourn_core::{Rate, Span, SpecError, Words};

use super::text::excerpt;
use super::{MAX_RATE, Step, Trace};

/// The capacity of one direction in a test case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rfc8867 {
    case: &'static Case,
    reference: Rate,
    is_backward: bool,
}

#[derive(Debug, PartialEq, Eq)]
struct Case {
    section: &'static str,
    seconds: u64,
    reference_kbps: u64,
    /// From which second on, and which share of the reference in percent.
    forward: &'static [(u64, u64)],
    /// None where only the forward direction is limited.
    backward: &'static [(u64, u64)],
}

const CONSTANT: &[(u64, u64)] = &[(0, 100)];

#[rustfmt::skip]
const CASES: &[Case] = &[
    Case {
        section: "5.1", seconds: 100, reference_kbps: 1000,
        forward: &[(0, 100), (40, 250), (60, 60), (80, 100)], backward: &[],
    },
    Case {
        section: "5.2", seconds: 125, reference_kbps: 2000,
        forward: &[(0, 200), (25, 100), (50, 175), (75, 50), (100, 100)], backward: &[],
    },
    Case {
        section: "5.3", seconds: 100, reference_kbps: 1000,
        forward: &[(0, 200), (20, 100), (40, 50), (60, 200)],
        backward: &[(0, 200), (35, 80), (70, 200)],
    },
    Case { section: "5.4", seconds: 120, reference_kbps: 3500, forward: CONSTANT, backward: &[] },
    Case { section: "5.5", seconds: 300, reference_kbps: 4000, forward: CONSTANT, backward: &[] },
    Case { section: "5.6", seconds: 120, reference_kbps: 2000, forward: CONSTANT, backward: &[] },
    Case { section: "5.7", seconds: 300, reference_kbps: 2000, forward: CONSTANT, backward: &[] },
    Case { section: "5.8", seconds: 120, reference_kbps: 3500, forward: CONSTANT, backward: &[] },
    Case { section: "6.1", seconds: 120, reference_kbps: 3500, forward: CONSTANT, backward: &[] },
];

impl Rfc8867 {
    /// The sections whose capacity is known, in order.
    pub fn sections() -> impl Iterator<Item = &'static str> {
        CASES.iter().map(|case| case.section)
    }

    /// The forward direction of the test case of `section`, such as `5.1`.
    ///
    /// # Errors
    /// An unknown section.
    pub fn new(section: &str) -> Result<Self, SpecError> {
        let case = CASES.iter().find(|case| case.section == section).ok_or_else(|| {
            SpecError::new(format!("no test case '{}'", excerpt(section))).allow(Self::sections())
        })?;
        let reference = Rate::from_bps(case.reference_kbps * 1000);
        Ok(Self { case, reference, is_backward: false })
    }

    /// The direction of the feedback.
    ///
    /// # Errors
    /// The test case does not limit it.
    pub fn backward(self) -> Result<Self, SpecError> {
        if self.case.backward.is_empty() {
            let problem =
                format!("test case {} limits the forward direction alone", self.case.section);
            let both = CASES.iter().filter(|case| !case.backward.is_empty());
            return Err(SpecError::new(problem)
                .allow(both.map(|case| format!("'backward' of {}", case.section))));
        }
        Ok(Self { is_backward: true, ..self })
    }

    /// Scales the capacities, as section 4.2 allows.
    ///
    /// # Errors
    /// A capacity would be zero, or above 10 Tbit/s.
    pub fn with_reference(self, reference: Rate) -> Result<Self, SpecError> {
        // The multiples go from 0.5 to 2.5.
        let most = Rate::from_bps(MAX_RATE.as_bps() / 4);
        if reference.as_bps() < 100 || reference > most {
            return Err(SpecError::new(format!("reference {reference} is out of range"))
                .allow([format!("a rate from 100bit to {most}")]));
        }
        Ok(Self { reference, ..self })
    }

    /// How long the test case lasts.
    pub const fn duration(&self) -> Span {
        Span::from_secs(self.case.seconds)
    }

    /// Its capacity over that time.
    pub fn trace(&self) -> Trace {
        let changes = if self.is_backward { self.case.backward } else { self.case.forward };
        let ends = changes.iter().skip(1).map(|(start, _)| *start).chain([self.case.seconds]);
        let steps = changes.iter().zip(ends).map(|((start, percent), end)| Step {
            rate: Rate::from_bps(
                (u128::from(self.reference.as_bps()) * u128::from(*percent) / 100) as u64,
            ),
            duration: Span::from_secs(end - start),
        });
        Trace::new(steps).expect("every case has capacity, and its reference was checked")
    }

    /// Reads a section, then `backward` and `reference RATE`; anything else is left to `other`.
    pub(crate) fn parse<'a>(
        words: &mut Words<'a>,
        mut other: impl FnMut(&'a str, &mut Words<'a>) -> Result<(), SpecError>,
    ) -> Result<Self, SpecError> {
        let section = words.next().ok_or_else(|| {
            SpecError::new("rfc8867 needs the section of a test case").allow(Self::sections())
        })?;
        let mut this = Self::new(section).map_err(|error| error.within("rfc8867"))?;
        while let Some(word) = words.next() {
            match word {
                "backward" => this = this.backward()?,
                "reference" => {
                    this = words.parse("reference", |text| this.with_reference(text.parse()?))?;
                }
                _ => other(word, words)?,
            }
        }
        Ok(this)
    }
}

impl fmt::Display for Rfc8867 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.case.section)?;
        if self.is_backward {
            f.write_str(" backward")?;
        }
        write!(f, " reference {}", self.reference)
    }
}
