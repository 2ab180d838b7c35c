//! What values a parameter may have.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use crate::{Bytes, Rate, Span};

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bounds {
    /// Everything that its form can hold.
    Any,
    Whole {
        least: i64,
        most: i64,
    },
    Number {
        least: f64,
        most: f64,
    },
    Time {
        least: Span,
        most: Span,
    },
    Rate {
        least: Rate,
        most: Rate,
    },
    Size {
        least: Bytes,
        most: Bytes,
    },
    /// One of these words.
    Words(&'static [&'static str]),
    /// A restriction that is no range, in words.
    Said(&'static str),
}

/// Whole numbers, both ends included.
pub const fn whole(least: i64, most: i64) -> Bounds {
    Bounds::Whole { least, most }
}

/// Numbers, both ends included.
pub const fn number(least: f64, most: f64) -> Bounds {
    Bounds::Number { least, most }
}

/// Times, both ends included.
pub const fn time(least: Span, most: Span) -> Bounds {
    Bounds::Time { least, most }
}

/// Rates, both ends included.
pub const fn rate(least: Rate, most: Rate) -> Bounds {
    Bounds::Rate { least, most }
}

/// Sizes in bytes, both ends included.
pub const fn size(least: u64, most: u64) -> Bounds {
    Bounds::Size { least: Bytes::new(least), most: Bytes::new(most) }
}

/// One of these words.
pub const fn words(words: &'static [&'static str]) -> Bounds {
    Bounds::Words(words)
}

impl Bounds {
    pub fn hold_whole(&self, value: i64) -> bool {
        match self {
            Self::Whole { least, most } => (*least..=*most).contains(&value),
            _ => true,
        }
    }

    pub fn hold_number(&self, value: f64) -> bool {
        match self {
            Self::Number { least, most } => (*least..=*most).contains(&value),
            _ => value.is_finite(),
        }
    }

    pub fn hold_time(&self, value: Span) -> bool {
        match self {
            Self::Time { least, most } => (*least..=*most).contains(&value),
            _ => true,
        }
    }

    pub fn hold_rate(&self, value: Rate) -> bool {
        match self {
            Self::Rate { least, most } => (*least..=*most).contains(&value),
            _ => true,
        }
    }

    pub fn hold_size(&self, value: Bytes) -> bool {
        match self {
            Self::Size { least, most } => (*least..=*most).contains(&value),
            _ => true,
        }
    }

    /// What an error names as allowed, an entry for each word.
    pub fn allowed(&self) -> Vec<String> {
        match self {
            Self::Any => Vec::new(),
            Self::Words(words) => words.iter().map(|&word| word.to_owned()).collect(),
            _ => vec![self.to_string()],
        }
    }
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => Ok(()),
            Self::Whole { least, most } => write!(f, "a whole number from {least} to {most}"),
            Self::Number { least, most } => write!(f, "a number from {least} to {most}"),
            Self::Time { least, most } if least.is_zero() => write!(f, "a time up to {most}"),
            Self::Time { least, most } => write!(f, "a time from {least} to {most}"),
            Self::Rate { least, most } => write!(f, "a rate from {least} to {most}"),
            Self::Size { least, most } => {
                write!(f, "{} to {} bytes", least.as_u64(), most.as_u64())
            }
            Self::Words(words) => f.write_str(&words.join(", ")),
            Self::Said(text) => f.write_str(text),
        }
    }
}
