//! A table of parameters and the struct that is made from it.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use super::{Param, Style, missing_param, unknown_param};
use crate::SpecError;
use crate::words::Words;

/// Parameters with their values: what [`params!`](crate::params) makes.
pub trait Params: Clone + fmt::Debug + Default + PartialEq {
    /// The name by which a user calls it.
    const NAME: &'static str;

    /// What it is, in a line.
    const DOC: &'static str;

    /// The parameters, in the order in which they are printed.
    const PARAMS: &'static [Param];

    /// Reads the parameter that `word` begins, with its value from `words`; false if `word` begins
    /// none.
    ///
    /// # Errors
    /// Its value is missing or out of bounds.
    fn accept(&mut self, word: &str, words: &mut Words<'_>) -> Result<bool, SpecError>;

    /// Refuses values out of bounds and values that do not fit each other.
    ///
    /// # Errors
    /// Names the parameter, its value and what is allowed.
    fn check(&self) -> Result<(), SpecError>;

    /// Refuses, with a reason, a word that is known elsewhere.
    ///
    /// # Errors
    /// It is such a word.
    fn refuse(_word: &str) -> Result<(), SpecError> {
        Ok(())
    }

    /// The parameters with their values, each after a blank, as [`Params::parse`] reads them.
    fn write(&self, style: Style, f: &mut fmt::Formatter<'_>) -> fmt::Result;

    /// The name and the parameters with their values.
    fn written(&self, style: Style) -> String {
        struct Written<'a, P>(&'a P, Style);

        impl<P: Params> fmt::Display for Written<'_, P> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(P::NAME)?;
                self.0.write(self.1, f)
            }
        }

        Written(self, style).to_string()
    }

    /// The parameters with their values, without the name.
    fn values(&self, style: Style) -> String {
        let written = self.written(style);
        written[Self::NAME.len()..].trim_start().to_owned()
    }

    /// Reads parameters up to the end of `words`; what is not named keeps its default.
    ///
    /// # Errors
    /// An unknown parameter, or a value missing or out of bounds.
    fn parse(words: &mut Words<'_>) -> Result<Self, SpecError> {
        let mut reading = Reading::<Self>::default();
        while let Some(word) = words.next() {
            if !reading.accept(word, words)? {
                Self::refuse(word)?;
                return Err(unknown_param(Self::NAME, word, Self::PARAMS));
            }
        }
        reading.complete()
    }

    /// Reads values in the order of the parameters, up to the end of `words`. Any of them may have its
    /// name before it.
    ///
    /// # Errors
    /// A value that is missing, out of bounds, or more than there are parameters.
    fn parse_in_order(words: &mut Words<'_>) -> Result<Self, SpecError> {
        let mut reading = Reading::<Self>::default();
        let mut unnamed = Self::PARAMS.iter();
        while let Some(word) = words.next() {
            if reading.accept(word, words)? {
                continue;
            }
            let Some(param) = unnamed.next() else {
                let problem = format!("'{word}' follows a complete {}", Self::NAME);
                return Err(SpecError::new(problem).allow(Self::PARAMS.iter().map(|p| p.name)));
            };
            reading.accept(param.name, &mut Words::one(word))?;
        }
        reading.complete()
    }

    /// The same with parameter `name` set to the value in `text`; both as in a file.
    ///
    /// # Errors
    /// As [`Params::parse`].
    fn with(mut self, name: &str, text: &str) -> Result<Self, SpecError> {
        if !self.accept(name, &mut Words::one(text))? {
            return Err(unknown_param(Self::NAME, name, Self::PARAMS));
        }
        self.check()?;
        Ok(self)
    }
}

/// Parameters that are being read.
struct Reading<P: Params> {
    params: P,
    /// Which of them were written, by their places in the table.
    written: Vec<usize>,
}

impl<P: Params> Default for Reading<P> {
    fn default() -> Self {
        Self { params: P::default(), written: Vec::new() }
    }
}

impl<P: Params> Reading<P> {
    fn accept(&mut self, word: &str, words: &mut Words<'_>) -> Result<bool, SpecError> {
        self.written.extend(P::PARAMS.iter().position(|param| param.is_meant_by(word)));
        self.params.accept(word, words)
    }

    fn complete(self) -> Result<P, SpecError> {
        let Self { params, written } = self;
        let mut needed = P::PARAMS.iter().enumerate().filter(|(_, param)| param.is_needed);
        if let Some((_, param)) = needed.find(|(place, _)| !written.contains(place)) {
            return Err(missing_param(P::NAME, param).allow(param.bounds.allowed()));
        }
        params.check()?;
        Ok(params)
    }
}

/// Two tables as one, `N` parameters together: for what has the parameters of something else besides
/// its own.
pub const fn join<const N: usize>(first: &[Param], second: &[Param]) -> [Param; N] {
    assert!(first.len() + second.len() == N, "N must be the sum of both");
    let mut all = [if first.is_empty() { second[0] } else { first[0] }; N];
    let mut i = 0;
    while i < N {
        all[i] = if i < first.len() { first[i] } else { second[i - first.len()] };
        i += 1;
    }
    all
}

/// Makes a struct, and all that is derived from it, from a table of parameters.
///
/// A line reads `field: Type = "default", "what it does";`, with bounds of its own `field: Type =
/// "default", BOUNDS, "what it does";`, in another form than the type's own `field: Type as Form =
/// …`, and with a parameter that is defined elsewhere, or has another name than the field, `field:
/// Type = PARAM;`. The default is written as a user would write it.
///
/// `check FUNCTION` after the description checks values that must fit each other. `refuse FUNCTION`
/// says why words that are known elsewhere are refused here.
///
/// ```
/// use sojourn_core::param::{Params, number, whole};
///
/// sojourn_core::params! {
///     /// The parameters of an example.
///     pub struct Config: "example", "shows how it is done" {
///         rounds: u32 = "3", whole(1, 10), "rounds to wait";
///         gain: f64 = "1.25", number(1.0, 4.0), "how much faster then";
///     }
/// }
///
/// let mut words = sojourn_core::Words::new("rounds=5");
/// assert_eq!(Config::parse(&mut words).map(|config| config.rounds), Ok(5));
/// assert!(Config { rounds: 0, ..Config::default() }.check().is_err());
/// ```
#[macro_export]
macro_rules! params {
    (
        $(#[$outer:meta])*
        $vis:vis struct $config:ident: $name:literal, $about:literal
        $(, check $check:path)? $(, refuse $refuse:path)? $(,)?
        {
            $(
                $(#[$inner:meta])*
                $field_vis:vis $field:ident: $value:ty $(as $form:ty)? = $($part:expr),+;
            )*
        }
    ) => {
        $(#[$outer])*
        #[derive(Clone, Debug, PartialEq)]
        $vis struct $config {
            $($(#[$inner])* $field_vis $field: $value,)*
        }

        impl Default for $config {
            fn default() -> Self {
                Self {
                    $($field: {
                        const PARAM: $crate::Param =
                            $crate::params!(@param $field, [$value $(, $form)?], $($part),+);
                        $crate::param::field::by_default::<$crate::params!(@form $value $(, $form)?)>(
                            &PARAM,
                        )
                    },)*
                }
            }
        }

        impl $crate::Params for $config {
            const NAME: &'static str = $name;
            const DOC: &'static str = $about;
            const PARAMS: &'static [$crate::Param] =
                &[$($crate::params!(@param $field, [$value $(, $form)?], $($part),+),)*];

            #[allow(unused_variables)]
            fn accept(
                &mut self,
                word: &str,
                words: &mut $crate::Words<'_>,
            ) -> Result<bool, $crate::SpecError> {
                $({
                    const PARAM: $crate::Param =
                        $crate::params!(@param $field, [$value $(, $form)?], $($part),+);
                    if $crate::param::field::accept::<$crate::params!(@form $value $(, $form)?)>(
                        &mut self.$field,
                        words,
                        word,
                        &PARAM,
                    )? {
                        return Ok(true);
                    }
                })*
                Ok(false)
            }

            fn check(&self) -> Result<(), $crate::SpecError> {
                $({
                    const PARAM: $crate::Param =
                        $crate::params!(@param $field, [$value $(, $form)?], $($part),+);
                    $crate::param::field::check::<$crate::params!(@form $value $(, $form)?)>(
                        &self.$field,
                        $name,
                        &PARAM,
                    )?;
                })*
                $($check(self)?;)?
                Ok(())
            }

            $(fn refuse(word: &str) -> Result<(), $crate::SpecError> {
                $refuse(word)
            })?

            #[allow(unused_variables)]
            fn write(
                &self,
                style: $crate::param::Style,
                f: &mut ::core::fmt::Formatter<'_>,
            ) -> ::core::fmt::Result {
                $({
                    const PARAM: $crate::Param =
                        $crate::params!(@param $field, [$value $(, $form)?], $($part),+);
                    $crate::param::field::write::<$crate::params!(@form $value $(, $form)?)>(
                        &self.$field,
                        &PARAM,
                        style,
                        f,
                    )?;
                })*
                Ok(())
            }
        }
    };

    (@form $value:ty) => { $value };
    (@form $value:ty, $form:ty) => { $form };

    (@param $field:ident, [$($form:ty),+], $param:expr) => { $param };
    (@param $field:ident, [$($form:ty),+], $default:expr, $doc:expr) => {
        $crate::Param::of::<$crate::params!(@form $($form),+)>(stringify!($field), $default, $doc)
    };
    (@param $field:ident, [$($form:ty),+], $default:expr, $bounds:expr, $doc:expr) => {
        $crate::Param::of::<$crate::params!(@form $($form),+)>(stringify!($field), $default, $doc)
            .within($bounds)
    };
}
