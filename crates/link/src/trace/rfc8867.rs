//! How the capacity of the path changes in the test cases of RFC 8867: a reference rate and
//! multiples of it over time.

use alloc::format;

use sojourn_core::param::{self, Bounds};
use sojourn_core::{Rate, Span, SpecError};

use super::text::excerpt;
use super::{MAX_RATE, Step, Trace};

/// The capacity of one way in a test case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rfc8867 {
    case: &'static Case,
    reference: Rate,
    way: &'static Way,
}

#[derive(Debug, PartialEq, Eq)]
struct Case {
    section: &'static str,
    seconds: u64,
    reference_kbps: u64,
    /// The ways that are limited. If the user names none, it is the first, if that is forward.
    ways: &'static [Way],
}

#[derive(Debug, PartialEq, Eq)]
struct Way {
    name: &'static str,
    /// Each second from which a share of the reference holds, and that share in percent.
    schedule: &'static [(u64, u64)],
}

/// What the reference rate may be: its multiples go from 0.5 to 4.
pub const REFERENCES: Bounds =
    param::rate(Rate::from_bps(100), Rate::from_bps(MAX_RATE.as_bps() / 4));

const FORWARD: &str = "forward";
const CONSTANT: &[Way] = &[way(FORWARD, &[(0, 100)])];

#[rustfmt::skip]
const CASES: &[Case] = &[
    Case {
        section: "5.1", seconds: 100, reference_kbps: 1000,
        ways: &[way(FORWARD, &[(0, 100), (40, 250), (60, 60), (80, 100)])],
    },
    Case {
        section: "5.2", seconds: 125, reference_kbps: 2000,
        ways: &[way(FORWARD, &[(0, 200), (25, 100), (50, 175), (75, 50), (100, 100)])],
    },
    Case {
        section: "5.3", seconds: 100, reference_kbps: 1000,
        ways: &[
            way(FORWARD, &[(0, 200), (20, 100), (40, 50), (60, 200)]),
            way("backward", &[(0, 200), (35, 80), (70, 200)]),
        ],
    },
    Case { section: "5.4", seconds: 120, reference_kbps: 3500, ways: CONSTANT },
    Case { section: "5.5", seconds: 300, reference_kbps: 4000, ways: CONSTANT },
    Case { section: "5.6", seconds: 120, reference_kbps: 2000, ways: CONSTANT },
    Case { section: "5.7", seconds: 300, reference_kbps: 2000, ways: CONSTANT },
    Case { section: "5.8", seconds: 120, reference_kbps: 3500, ways: CONSTANT },
    Case { section: "6.1", seconds: 120, reference_kbps: 3500, ways: CONSTANT },
    Case {
        section: "6.3", seconds: 300, reference_kbps: 2000,
        ways: &[way("A-B", &[(0, 100)]), way("B-C", &[(0, 400)]), way("C-D", &[(0, 75)])],
    },
];

const fn way(name: &'static str, schedule: &'static [(u64, u64)]) -> Way {
    Way { name, schedule }
}

impl Rfc8867 {
    /// The sections that have a capacity of their own, in order.
    pub fn sections() -> impl Iterator<Item = &'static str> {
        CASES.iter().map(|case| case.section)
    }

    /// The forward direction of the test case of `section`, such as `5.1`, or the first of its links.
    ///
    /// # Errors
    /// An unknown section, or 6.2, which has no capacity of its own.
    pub fn new(section: &str) -> Result<Self, SpecError> {
        let case = CASES.iter().find(|case| case.section == section).ok_or_else(|| {
            let problem = match section {
                "6.2" => "test case 6.2 repeats those of section 5 with ECN, over their capacities"
                    .into(),
                _ => format!("no test case '{}'", excerpt(section)),
            };
            SpecError::new(problem).allow(Self::sections())
        })?;
        let reference = Rate::from_bps(case.reference_kbps * 1000);
        Ok(Self { case, reference, way: &case.ways[0] })
    }

    /// Another way of the test case: `backward` in 5.3; `A-B`, `B-C` or `C-D` in 6.3.
    ///
    /// # Errors
    /// The test case has no such way, or limits several and none is named.
    pub fn over(self, way: Option<&str>) -> Result<Self, SpecError> {
        let ways = self.case.ways;
        let Some(name) = way else {
            if ways[0].name == FORWARD {
                return Ok(self);
            }
            let problem = format!("test case {} needs a link", self.case.section);
            return Err(SpecError::new(problem).allow(ways.iter().map(|way| way.name)));
        };
        let Some(way) = ways.iter().find(|known| known.name == name) else {
            let problem =
                format!("test case {} has no limit '{}'", self.case.section, excerpt(name));
            let known = CASES.iter().flat_map(|case| {
                let named = case.ways.iter().filter(|way| way.name != FORWARD);
                named.map(|way| format!("'{}' of {}", way.name, case.section))
            });
            return Err(SpecError::new(problem).allow(known));
        };
        Ok(Self { way, ..self })
    }

    /// Scales the capacities, as section 4.2 allows.
    ///
    /// # Errors
    /// A capacity would be zero, or above 10 Tbit/s.
    pub fn with_reference(self, reference: Rate) -> Result<Self, SpecError> {
        if !REFERENCES.hold_rate(reference) {
            return Err(SpecError::new(format!("reference {reference} is out of range"))
                .allow(REFERENCES.allowed()));
        }
        Ok(Self { reference, ..self })
    }

    /// How long the test case lasts.
    pub const fn duration(&self) -> Span {
        Span::from_secs(self.case.seconds)
    }

    /// Its capacity over that time.
    pub fn trace(&self) -> Trace {
        let changes = self.way.schedule;
        let ends = changes.iter().skip(1).map(|(start, _)| *start).chain([self.case.seconds]);
        let steps = changes.iter().zip(ends).map(|((start, percent), end)| Step {
            rate: Rate::from_bps(
                (u128::from(self.reference.as_bps()) * u128::from(*percent) / 100) as u64,
            ),
            duration: Span::from_secs(end - start),
        });
        Trace::new(steps).expect("every case has capacity, and its reference was checked")
    }

    pub const fn section(&self) -> &'static str {
        self.case.section
    }

    /// The word that names the way; `None` for forward, which needs no word.
    pub fn way(&self) -> Option<&'static str> {
        (self.way.name != FORWARD).then_some(self.way.name)
    }

    pub const fn reference(&self) -> Rate {
        self.reference
    }
}
