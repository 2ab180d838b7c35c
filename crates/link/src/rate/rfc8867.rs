//! The capacity of a test case of RFC 8867, by its section: `rfc8867 5.1`.

use core::fmt;

use sojourn_core::param::{Maybe, Style};
use sojourn_core::{Params, Rate, SpecError, Words};

use super::serving::{FRAMING_AS_THERE, OnLink, SHAPER_AS_THERE, Serving, Shaper};
use crate::OnEnd;
use crate::trace::{RFC8867_REFERENCES, Rfc8867};

sojourn_core::params! {
    /// What may follow the section.
    pub(super) struct Written: "rfc8867",
        "The capacity of a test case of RFC 8867, by its section: rfc8867 5.1; holds its last rate"
    {
        way: Option<&'static str> as Maybe<Way> = "", "Which of the ways that the test case limits";
        reference: Option<Rate> as Maybe<Rate> = "the test case's", RFC8867_REFERENCES,
            "The reference capacity, of which the schedule is a multiple";
        shaper: Shaper = SHAPER_AS_THERE;
        framing: OnLink = FRAMING_AS_THERE;
    }
}

sojourn_core::keywords! {
    /// A way that must be named.
    Way for &'static str {
        "backward" = "backward",
            "The direction of the feedback, where the test case limits it: 5.3";
        "A-B" = "A-B", "The link that is meant, in 6.3";
        "B-C" = "B-C", "The link that is meant, in 6.3";
        "C-D" = "C-D", "The link that is meant, in 6.3";
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Rfc8867Spec {
    pub case: Rfc8867,
    pub serving: Serving,
}

impl Rfc8867Spec {
    /// Reads what follows the word `rfc8867`.
    pub(super) fn parse(words: &mut Words<'_>) -> Result<Self, SpecError> {
        let section = words.next().ok_or_else(|| {
            SpecError::new("rfc8867 needs the section of a test case").allow(Rfc8867::sections())
        })?;
        let case = Rfc8867::new(section).map_err(|error| error.within(Written::NAME))?;
        let Written { way, reference, shaper, framing } = Written::parse(words)?;
        let case = case.over(way)?;
        let case = reference.map_or(Ok(case), |reference| case.with_reference(reference))?;
        let serving = Serving { on_end: OnEnd::Hold, shaper, framing: framing.framing()? };
        Ok(Self { case, serving })
    }
}

impl fmt::Display for Rfc8867Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { case, serving: Serving { on_end: _, shaper, framing } } = self;
        write!(f, "{} {}", Written::NAME, case.section())?;
        let way = case.way();
        let reference = Some(case.reference());
        Written { way, reference, shaper: *shaper, framing: (*framing).into() }
            .write(Style::Blank, f)
    }
}
