//! A file of delivery opportunities: `mahimahi att-lte.up`.

use alloc::string::String;
use core::fmt;

use sojourn_core::param::Style;
use sojourn_core::{Params, SpecError, Words};

use super::path::{self, Quoted};
use crate::OpportunitySize;

sojourn_core::params! {
    /// What may follow the path.
    pub(super) struct Written: "mahimahi",
        "A file of delivery opportunities in milliseconds: mahimahi FILE"
    {
        opportunity: OpportunitySize = "1504",
            "Bytes of an opportunity: 1504 counts a TUN header as mm-link does, 1500 IP alone";
    }
}

sojourn_core::choice!(OpportunitySize {
    "1500" = OpportunitySize::Ip1500,
    "1504" = OpportunitySize::Tun1504,
});

#[derive(Clone, Debug, PartialEq)]
pub struct MahimahiSpec {
    pub path: String,
    pub size: OpportunitySize,
}

impl MahimahiSpec {
    /// Reads what follows the word `mahimahi`.
    pub(super) fn parse(rest: &str) -> Result<Self, SpecError> {
        let (path, rest) = path::split(Written::NAME, rest)?;
        let Written { opportunity } = Written::parse(&mut Words::new(rest))?;
        Ok(Self { path, size: opportunity })
    }
}

impl fmt::Display for MahimahiSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", Written::NAME, Quoted(&self.path))?;
        Written { opportunity: self.size }.write(Style::Blank, f)
    }
}
