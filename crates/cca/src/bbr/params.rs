//! One table per controller from which its `Config`, its defaults, its parser, its printer and its
//! documented parameters are made, so that they cannot disagree.

use alloc::format;
use core::fmt;

use sojourn_core::{ParamKind, Rate, Span, SpecError, Words};

use super::fixed::Gain;

/// Defines `Config` and `PARAMS` for the controller named `$algorithm`.
///
/// A line reads: `field: Type = default, "default as users write it", "documentation";`
macro_rules! parameters {
    (
        $(#[$outer:meta])*
        $algorithm:literal {
            $($name:ident: $kind:ty = $default:expr, $written:literal, $doc:literal;)+
        }
    ) => {
        $(#[$outer])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct Config {
            $(#[doc = $doc] pub(crate) $name: $kind,)+
        }

        impl Default for Config {
            fn default() -> Self {
                Self { $($name: $default,)+ }
            }
        }

        /// The parameters, their defaults and what they do.
        pub const PARAMS: &[sojourn_core::Param] = &[
            $(sojourn_core::Param {
                name: stringify!($name),
                kind: <$kind as $crate::bbr::params::Value>::KIND,
                default: $written,
                doc: $doc,
            },)+
        ];

        impl Config {
            /// Reads parameters up to the end of `words`; what is not named keeps its default.
            ///
            /// # Errors
            /// An unknown parameter, or a value missing or out of range.
            pub fn parse(words: &mut sojourn_core::Words<'_>) -> Result<Self, sojourn_core::SpecError> {
                let mut config = Self::default();
                while let Some(word) = words.next() {
                    match word {
                        $(stringify!($name) => {
                            config.$name = $crate::bbr::params::Value::read(words, word)?;
                        })+
                        _ => return Err(sojourn_core::words::unknown_param($algorithm, word, PARAMS)),
                    }
                }
                Ok(config)
            }
        }

        impl core::fmt::Display for Config {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str($algorithm)?;
                $($crate::bbr::params::Value::write(&self.$name, stringify!($name), f)?;)+
                Ok(())
            }
        }
    };
}

pub(crate) use parameters;

/// What a parameter can hold.
pub(crate) trait Value: Sized {
    const KIND: ParamKind;

    /// Reads the value after the word `name`.
    fn read(words: &mut Words<'_>, name: &str) -> Result<Self, SpecError>;

    /// Writes ` name=value`, so that [`Value::read`] gives the same.
    fn write(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

/// A parameter that is one of a few words.
pub(crate) trait Choice: Copy + PartialEq + 'static {
    /// Every value, after its word.
    const CHOICES: &'static [(&'static str, Self)];
}

/// A share between 0 and 1, in 1/256.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share(pub(crate) Gain);

/// A share between 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ratio(pub(crate) f64);

/// A share between 0 and 1, in whole percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Percent(pub(crate) u32);

/// A number of rounds, segments or events, at least one.
pub(crate) type Count = u32;

impl<T: Choice> Value for T {
    const KIND: ParamKind = ParamKind::Choice;

    fn read(words: &mut Words<'_>, name: &str) -> Result<Self, SpecError> {
        words.choice(name, T::CHOICES)
    }

    fn write(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let choice = T::CHOICES.iter().find(|(_, value)| value == self);
        let (word, _) = choice.expect("every value has a word");
        write!(f, " {name}={word}")
    }
}

impl Value for Gain {
    const KIND: ParamKind = ParamKind::Number;

    fn read(words: &mut Words<'_>, name: &str) -> Result<Self, SpecError> {
        words.number(name, 1.0 / 256.0, 16.0).map(Self::nearest)
    }

    fn write(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, " {name}={self}")
    }
}

impl Value for Share {
    const KIND: ParamKind = ParamKind::Share;

    fn read(words: &mut Words<'_>, name: &str) -> Result<Self, SpecError> {
        words.share(name).map(|share| Self(Gain::nearest(share)))
    }

    fn write(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, " {name}={}", self.0)
    }
}

impl Value for Ratio {
    const KIND: ParamKind = ParamKind::Share;

    fn read(words: &mut Words<'_>, name: &str) -> Result<Self, SpecError> {
        words.share(name).map(Self)
    }

    fn write(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, " {name}={}", self.0)
    }
}

impl Value for Percent {
    const KIND: ParamKind = ParamKind::Share;

    fn read(words: &mut Words<'_>, name: &str) -> Result<Self, SpecError> {
        words.share(name).map(|share| Self((share * 100.0 + 0.5) as u32))
    }

    fn write(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, " {name}={}%", self.0)
    }
}

impl Value for Span {
    const KIND: ParamKind = ParamKind::Span;

    fn read(words: &mut Words<'_>, name: &str) -> Result<Self, SpecError> {
        let span: Self = words.parse(name, str::parse)?;
        if span > LONGEST {
            let error = SpecError::new(format!("'{name}' is {span}"));
            return Err(error.allow([format!("a time up to {LONGEST}")]));
        }
        Ok(span)
    }

    fn write(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, " {name}={self}")
    }
}

/// Longer than any run, and far from overflow.
const LONGEST: Span = Span::from_secs(1_000_000);

impl Value for Rate {
    const KIND: ParamKind = ParamKind::Rate;

    fn read(words: &mut Words<'_>, name: &str) -> Result<Self, SpecError> {
        words.parse(name, str::parse)
    }

    fn write(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, " {name}={self}")
    }
}

impl Value for Count {
    const KIND: ParamKind = ParamKind::Count;

    fn read(words: &mut Words<'_>, name: &str) -> Result<Self, SpecError> {
        words.count(name, 1, 1_000_000).map(|count| count as Self)
    }

    fn write(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, " {name}={self}")
    }
}

impl Value for f64 {
    const KIND: ParamKind = ParamKind::Number;

    fn read(words: &mut Words<'_>, name: &str) -> Result<Self, SpecError> {
        words.number(name, 1.0 / 256.0, 16.0)
    }

    fn write(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, " {name}={self}")
    }
}

impl Value for bool {
    const KIND: ParamKind = ParamKind::Flag;

    fn read(_words: &mut Words<'_>, _name: &str) -> Result<Self, SpecError> {
        Ok(true)
    }

    fn write(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self { write!(f, " {name}") } else { Ok(()) }
    }
}
