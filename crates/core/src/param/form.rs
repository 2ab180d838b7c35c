//! The forms in which values are written.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use core::fmt;
use core::marker::PhantomData;

use super::{Bounds, Param, ParamKind, Style, number, time, whole};
use crate::words::{Words, number_in};
use crate::{Bytes, Rate, Span, SpecError};

/// How a value is read, checked and printed. A type is its own form, or uses another type as its
/// form, such as [`Maybe`] for a value that may be left out.
pub trait Form {
    type Value: Clone + fmt::Debug + PartialEq;

    const KIND: ParamKind;

    /// What is allowed if the parameter has no bounds of its own.
    const BOUNDS: Bounds = Bounds::Any;

    /// How values are written.
    const EXAMPLES: &'static [&'static str] = Self::KIND.examples();

    /// Whether a value must be given.
    const IS_NEEDED: bool = false;

    /// The words that stand for the values, where a word stands alone.
    const KEYWORDS: &'static [Keyword] = &[];

    /// Reads what stands after the parameter's name.
    ///
    /// # Errors
    /// It is no such value, or out of the parameter's bounds.
    fn read(text: &str, param: &Param) -> Result<Self::Value, SpecError>;

    /// Reads the parameter that `word` begins, and its value if one must follow.
    ///
    /// # Errors
    /// As [`Form::read`], or the value is missing.
    fn take(words: &mut Words<'_>, word: &str, param: &Param) -> Result<Self::Value, SpecError> {
        // An alias is named as it was written.
        let name = param.aliases.iter().find(|alias| **alias == word).unwrap_or(&param.name);
        Self::read(words.value(word)?, &Param { name, ..*param })
    }

    /// Takes in the parameter that `word` begins, after whatever was written of it before.
    ///
    /// # Errors
    /// As [`Form::take`].
    fn absorb(
        value: &mut Self::Value,
        words: &mut Words<'_>,
        word: &str,
        param: &Param,
    ) -> Result<(), SpecError> {
        *value = Self::take(words, word, param)?;
        Ok(())
    }

    /// The value where nothing is written.
    fn by_default(param: &Param) -> Self::Value {
        Self::read(param.default, param).expect("a default is written as its form wants it")
    }

    /// Refuses a value out of the parameter's bounds; code may have set it.
    ///
    /// # Errors
    /// Names the parameter, the value and what is allowed.
    fn check(_value: &Self::Value, _param: &Param) -> Result<(), SpecError> {
        Ok(())
    }

    /// The value as [`Form::read`] reads it.
    fn show(value: &Self::Value, f: &mut fmt::Formatter<'_>) -> fmt::Result;

    /// Whether it stands for a value that must be given and is not.
    fn is_missing(_value: &Self::Value) -> bool {
        false
    }

    /// Name and value as [`Form::take`] reads them, with a blank in front.
    fn write(
        value: &Self::Value,
        param: &Param,
        style: Style,
        f: &mut fmt::Formatter<'_>,
    ) -> fmt::Result {
        f.write_str(" ")?;
        if style != Style::InOrder {
            write!(f, "{}{}", param.name, style.sign())?;
        }
        Self::show(value, f)
    }
}

/// A word that stands for a value, alone or with one of its own after it.
#[derive(Clone, Copy, Debug)]
pub struct Keyword {
    pub word: &'static str,
    /// What follows it; a flag has nothing.
    pub kind: ParamKind,
    pub doc: &'static str,
}

impl Keyword {
    /// One that stands alone.
    pub const fn flag(word: &'static str, doc: &'static str) -> Self {
        Self { word, kind: ParamKind::Flag, doc }
    }
}

/// Defines a form in which a word stands alone for each value.
///
/// ```
/// sojourn_core::keywords! {
///     /// Whether to mark.
///     pub Ecn for bool {
///         "ecn" = true, "mark instead of dropping";
///         "noecn" = false, "drop only";
///     }
/// }
/// ```
#[macro_export]
macro_rules! keywords {
    (
        $(#[$outer:meta])*
        $vis:vis $form:ident for $value:ty { $($word:literal = $is:expr, $doc:expr;)+ }
    ) => {
        $(#[$outer])*
        #[derive(Clone, Copy, Debug)]
        $vis struct $form;

        impl $crate::param::Form for $form {
            type Value = $value;
            const KIND: $crate::ParamKind = $crate::ParamKind::Flag;
            const BOUNDS: $crate::param::Bounds = $crate::param::words(&[$($word),+]);
            const KEYWORDS: &'static [$crate::param::Keyword] =
                &[$($crate::param::Keyword::flag($word, $doc)),+];

            fn read(text: &str, param: &$crate::Param) -> Result<$value, $crate::SpecError> {
                match text {
                    $($word => Ok($is),)+
                    _ => Err($crate::param::unknown_value(text, param)),
                }
            }

            fn take(
                _words: &mut $crate::Words<'_>,
                word: &str,
                param: &$crate::Param,
            ) -> Result<$value, $crate::SpecError> {
                Self::read(word, param)
            }

            fn show(value: &$value, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                let words = [$(($word, $is)),+];
                let word = words.iter().find(|(_, is)| is == value);
                f.write_str(word.map_or("?", |(word, _)| word))
            }

            fn write(
                value: &$value,
                _param: &$crate::Param,
                _style: $crate::param::Style,
                f: &mut ::core::fmt::Formatter<'_>,
            ) -> ::core::fmt::Result {
                f.write_str(" ")?;
                Self::show(value, f)
            }
        }
    };
}

/// A parameter that is one of a few words after its name.
pub trait Choice: Copy + fmt::Debug + PartialEq + 'static {
    /// Every value's word.
    const WORDS: &'static [&'static str];

    /// The values, in the order of their words.
    const VALUES: &'static [Self];
}

/// Makes an enumeration a [`Choice`](crate::param::Choice) by naming the word of each value.
#[macro_export]
macro_rules! choice {
    ($choice:ty { $($word:literal = $value:expr),+ $(,)? }) => {
        impl $crate::param::Choice for $choice {
            const WORDS: &'static [&'static str] = &[$($word),+];
            const VALUES: &'static [Self] = &[$($value),+];
        }
    };
}

impl<T: Choice> Form for T {
    type Value = T;
    const KIND: ParamKind = ParamKind::Choice;
    const BOUNDS: Bounds = Bounds::Words(T::WORDS);

    fn read(text: &str, param: &Param) -> Result<T, SpecError> {
        match T::WORDS.iter().position(|word| *word == text) {
            Some(place) => Ok(T::VALUES[place]),
            None => Err(crate::param::unknown_value(text, param)),
        }
    }

    fn show(value: &T, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = T::VALUES.iter().position(|choice| choice == value);
        f.write_str(place.map_or("?", |place| T::WORDS[place]))
    }
}

impl Form for u32 {
    type Value = Self;
    const KIND: ParamKind = ParamKind::Count;
    /// A number of rounds, segments or events, at least one.
    const BOUNDS: Bounds = whole(1, 1_000_000);

    fn read(text: &str, param: &Param) -> Result<Self, SpecError> {
        let count =
            text.parse().ok().filter(|count: &Self| param.bounds.hold_whole((*count).into()));
        count.ok_or_else(|| not_allowed(text, param))
    }

    fn check(value: &Self, param: &Param) -> Result<(), SpecError> {
        check(param.bounds.hold_whole((*value).into()), value, param)
    }

    fn show(value: &Self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(value, f)
    }
}

impl Form for u64 {
    type Value = Self;
    const KIND: ParamKind = ParamKind::Count;
    const BOUNDS: Bounds = whole(1, 1_000_000_000_000);

    fn read(text: &str, param: &Param) -> Result<Self, SpecError> {
        let count = text.parse().ok().filter(|count| Self::check(count, param).is_ok());
        count.ok_or_else(|| not_allowed(text, param))
    }

    fn check(value: &Self, param: &Param) -> Result<(), SpecError> {
        // A value above i64::MAX is beyond all bounds, whose ends are of that type.
        let count = i64::try_from(*value).unwrap_or(i64::MAX);
        check(param.bounds.hold_whole(count), value, param)
    }

    fn show(value: &Self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(value, f)
    }
}

impl Form for i32 {
    type Value = Self;
    const KIND: ParamKind = ParamKind::Count;

    fn read(text: &str, param: &Param) -> Result<Self, SpecError> {
        let count =
            text.parse().ok().filter(|count: &Self| param.bounds.hold_whole((*count).into()));
        count.ok_or_else(|| not_allowed(text, param))
    }

    fn check(value: &Self, param: &Param) -> Result<(), SpecError> {
        check(param.bounds.hold_whole((*value).into()), value, param)
    }

    fn show(value: &Self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(value, f)
    }
}

impl Form for f64 {
    type Value = Self;
    const KIND: ParamKind = ParamKind::Number;
    const BOUNDS: Bounds = number(Self::MIN, Self::MAX);

    fn read(text: &str, param: &Param) -> Result<Self, SpecError> {
        let (least, most) = match param.bounds {
            Bounds::Number { least, most } => (least, most),
            _ => (Self::MIN, Self::MAX),
        };
        // What lies between 0 and 1 is a share, which is also written with %.
        let percent = text.trim().strip_suffix('%').filter(|_| least >= 0.0 && most <= 1.0);
        let number = match percent {
            Some(percent) => number_in(percent, 0.01, least, most),
            None => number_in(text, 1.0, least, most),
        };
        number.map_err(|error| error.within(param.name))
    }

    fn check(value: &Self, param: &Param) -> Result<(), SpecError> {
        check(param.bounds.hold_number(*value), value, param)
    }

    fn show(value: &Self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(value, f)
    }
}

/// A value with a unit that is read and printed as itself.
macro_rules! quantity {
    ($type:ty, $kind:expr, $hold:ident $(, $bounds:item)?) => {
        impl Form for $type {
            type Value = Self;
            const KIND: ParamKind = $kind;
            $($bounds)?

            fn read(text: &str, param: &Param) -> Result<Self, SpecError> {
                let value = text.parse().map_err(|error: SpecError| error.within(param.name))?;
                Self::check(&value, param)?;
                Ok(value)
            }

            fn check(value: &Self, param: &Param) -> Result<(), SpecError> {
                check(param.bounds.$hold(*value), value, param)
            }

            fn show(value: &Self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(value, f)
            }
        }
    };
}

quantity!(
    Span,
    ParamKind::Span,
    hold_time,
    /// Longer than any run, and small enough that sums do not overflow.
    const BOUNDS: Bounds = time(Self::from_nanos(0), Self::from_secs(1_000_000));
);
quantity!(Rate, ParamKind::Rate, hold_rate);
quantity!(Bytes, ParamKind::Size, hold_size);

/// Text as it is written, for whoever knows its notation.
impl Form for String {
    type Value = Self;
    const KIND: ParamKind = ParamKind::Text;

    fn read(text: &str, _param: &Param) -> Result<Self, SpecError> {
        Ok(text.to_owned())
    }

    fn show(value: &Self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(value)
    }
}

/// A switch whose name stands alone for on, and is left out for off.
#[derive(Clone, Copy, Debug)]
pub struct Flag;

impl Form for Flag {
    type Value = bool;
    const KIND: ParamKind = ParamKind::Flag;

    fn read(text: &str, param: &Param) -> Result<bool, SpecError> {
        Switch::read(text, param)
    }

    fn take(_words: &mut Words<'_>, _word: &str, _param: &Param) -> Result<bool, SpecError> {
        Ok(true)
    }

    fn by_default(_param: &Param) -> bool {
        false
    }

    fn show(value: &bool, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Switch::show(value, f)
    }

    fn write(
        value: &bool,
        param: &Param,
        _style: Style,
        f: &mut fmt::Formatter<'_>,
    ) -> fmt::Result {
        if *value { write!(f, " {}", param.name) } else { Ok(()) }
    }
}

/// `on` or `off` after the name, or `true` or `false`, or `1` or `0` as module parameters are written.
#[derive(Clone, Copy, Debug)]
pub struct Switch;

impl Switch {
    /// How an error describes it.
    pub const WANTED: &'static str = "on or off, true or false";
    /// The words that a study may have for it.
    pub const WORDS: &'static [&'static str] = &["on", "off", "true", "false"];

    /// Whether a text stands for on; `None` if it stands for neither.
    pub fn of(text: &str) -> Option<bool> {
        match text {
            "on" | "1" | "true" => Some(true),
            "off" | "0" | "false" => Some(false),
            _ => None,
        }
    }
}

impl Form for Switch {
    type Value = bool;
    const KIND: ParamKind = ParamKind::Switch;
    const BOUNDS: Bounds = Bounds::Words(Self::WORDS);

    fn read(text: &str, param: &Param) -> Result<bool, SpecError> {
        Self::of(text).ok_or_else(|| crate::param::unknown_value(text, param))
    }

    fn show(value: &bool, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *value { "on" } else { "off" })
    }
}

/// The same, printed as `true` or `false`.
#[derive(Clone, Copy, Debug)]
pub struct Truth;

impl Form for Truth {
    type Value = bool;
    const KIND: ParamKind = ParamKind::Switch;
    const BOUNDS: Bounds = Switch::BOUNDS;

    fn read(text: &str, param: &Param) -> Result<bool, SpecError> {
        Switch::read(text, param)
    }

    fn show(value: &bool, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(value, f)
    }
}

/// A number of bytes: a size such as `64kB`, or a bare number, as it is printed.
#[derive(Clone, Copy, Debug)]
pub struct Octets;

impl Form for Octets {
    type Value = u64;
    const KIND: ParamKind = ParamKind::Size;

    fn read(text: &str, param: &Param) -> Result<u64, SpecError> {
        let bytes = match text.parse() {
            Ok(bytes) => bytes,
            Err(_) => {
                let size = text.parse::<Bytes>().map_err(|error| error.within(param.name))?;
                size.as_u64()
            }
        };
        Self::check(&bytes, param)?;
        Ok(bytes)
    }

    fn check(value: &u64, param: &Param) -> Result<(), SpecError> {
        let size = Bytes::new(*value);
        check(param.bounds.hold_size(size), &format_args!("{value} bytes"), param)
    }

    fn show(value: &u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(value, f)
    }
}

/// A value that may be left out, in form `F` where it is not.
#[derive(Clone, Copy, Debug)]
pub struct Maybe<F>(PhantomData<F>);

impl<F: Form> Form for Maybe<F> {
    type Value = Option<F::Value>;
    const KIND: ParamKind = F::KIND;
    const BOUNDS: Bounds = F::BOUNDS;
    const EXAMPLES: &'static [&'static str] = F::EXAMPLES;
    const KEYWORDS: &'static [Keyword] = F::KEYWORDS;

    fn read(text: &str, param: &Param) -> Result<Self::Value, SpecError> {
        F::read(text, param).map(Some)
    }

    fn take(words: &mut Words<'_>, word: &str, param: &Param) -> Result<Self::Value, SpecError> {
        F::take(words, word, param).map(Some)
    }

    fn by_default(_param: &Param) -> Self::Value {
        None
    }

    fn check(value: &Self::Value, param: &Param) -> Result<(), SpecError> {
        value.as_ref().map_or(Ok(()), |value| F::check(value, param))
    }

    fn show(value: &Self::Value, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        value.as_ref().map_or(Ok(()), |value| F::show(value, f))
    }

    fn write(
        value: &Self::Value,
        param: &Param,
        style: Style,
        f: &mut fmt::Formatter<'_>,
    ) -> fmt::Result {
        value.as_ref().map_or(Ok(()), |value| F::write(value, param, style, f))
    }
}

/// A form whose values must be given. The default of the type stands in until they are.
macro_rules! needed {
    ($(#[$outer:meta])* $form:ident, $is_missing:expr) => {
        $(#[$outer])*
        #[derive(Clone, Copy, Debug)]
        pub struct $form<F>(PhantomData<F>);

        impl<F: Form> Form for $form<F>
        where
            F::Value: Default,
        {
            type Value = F::Value;
            const KIND: ParamKind = F::KIND;
            const BOUNDS: Bounds = F::BOUNDS;
            const EXAMPLES: &'static [&'static str] = F::EXAMPLES;
            const IS_NEEDED: bool = true;

            fn read(text: &str, param: &Param) -> Result<Self::Value, SpecError> {
                F::read(text, param)
            }

            fn by_default(_param: &Param) -> Self::Value {
                F::Value::default()
            }

            fn check(value: &Self::Value, param: &Param) -> Result<(), SpecError> {
                F::check(value, param)
            }

            fn show(value: &Self::Value, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                F::show(value, f)
            }

            fn is_missing(value: &Self::Value) -> bool {
                let is_missing: fn(&F::Value) -> bool = $is_missing;
                is_missing(value)
            }
        }
    };
}

needed!(
    /// A value that must be given, in form `F`. The default of its type counts as not given, also where
    /// code set it.
    Needed,
    |value| *value == F::Value::default()
);
needed!(
    /// A value that must be written, in form `F`. It may be the default of its type, as 0 % is.
    Given,
    |_| false
);

/// The error for a text that is no value in the parameter's bounds.
pub(crate) fn not_allowed(text: &str, param: &Param) -> SpecError {
    SpecError::new(format!("'{}' is '{text}'", param.name)).allow(param.bounds.allowed())
}

fn check(holds: bool, value: &dyn fmt::Display, param: &Param) -> Result<(), SpecError> {
    if holds {
        return Ok(());
    }
    Err(SpecError::new(format!("'{}' is {value}", param.name)).allow(param.bounds.allowed()))
}
