//! The parts of `tc`'s notation that several disciplines share. What is printed reads back.

use alloc::format;
use alloc::string::ToString;
use core::fmt::{self, Display};

use sojourn_core::param::{self, Bounds, Form, TcRate, TcSize};
use sojourn_core::{Bytes, Param, ParamKind, Rate, Span, SpecError};

/// Sizes of at least one byte.
pub(crate) const fn at_most(most: u32) -> Bounds {
    param::size(1, most as u64)
}

/// A number of packets: `1000`, or `1000p` as `tc` prints it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packets;

impl Form for Packets {
    type Value = u32;
    const KIND: ParamKind = ParamKind::Count;
    const BOUNDS: Bounds = Bounds::Said("a number of packets from 1 to 4294967295");

    fn read(text: &str, param: &Param) -> Result<u32, SpecError> {
        match text.strip_suffix('p').unwrap_or(text).parse::<u32>() {
            Ok(count) if count > 0 => Ok(count),
            _ => Err(SpecError::new(format!("'{}' is '{text}'", param.name))
                .allow(param.bounds.allowed())),
        }
    }

    fn check(value: &u32, param: &Param) -> Result<(), SpecError> {
        Self::read(&value.to_string(), param).map(|_| ())
    }

    fn show(value: &u32, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{value}p")
    }
}

/// A size as `tc` reads it, in powers of 1024, and prints it by `$show`.
macro_rules! size {
    ($(#[$outer:meta])* $form:ident, $show:expr) => {
        $(#[$outer])*
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $form;

        impl Form for $form {
            type Value = Bytes;
            const KIND: ParamKind = ParamKind::Size;
            const BOUNDS: Bounds = at_most(u32::MAX);
            const EXAMPLES: &'static [&'static str] = TcSize::EXAMPLES;

            fn read(text: &str, param: &Param) -> Result<Bytes, SpecError> {
                TcSize::read(text, param)
            }

            fn check(value: &Bytes, param: &Param) -> Result<(), SpecError> {
                TcSize::check(value, param)
            }

            fn show(value: &Bytes, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let show: fn(Bytes, &mut fmt::Formatter<'_>) -> fmt::Result = $show;
                show(*value, f)
            }
        }
    };
}

size!(
    /// Printed as `32Mb`.
    Size,
    |size, f| ShownSize(size).fmt(f)
);
size!(
    /// Printed as `1514b`, however large.
    Length,
    |size, f| write!(f, "{}b", size.as_u64())
);

/// A time as `tc` reads it: a bare number counts microseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lapse;

/// Times from `least` to what the kernel's interface holds: 2³² − 1 microseconds.
pub(crate) const fn from(least: Span) -> Bounds {
    param::time(least, Span::from_micros(u32::MAX as u64))
}

/// At least a microsecond.
pub(crate) const SOME: Bounds = from(Span::from_micros(1));

impl Form for Lapse {
    type Value = Span;
    const KIND: ParamKind = ParamKind::Span;
    const BOUNDS: Bounds = from(Span::ZERO);

    fn read(text: &str, param: &Param) -> Result<Span, SpecError> {
        let span = Span::parse_tc(text).map_err(|error| error.within(param.name))?;
        Span::check(&span, param)?;
        Ok(span)
    }

    fn check(value: &Span, param: &Param) -> Result<(), SpecError> {
        Span::check(value, param)
    }

    fn show(value: &Span, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        value.fmt(f)
    }
}

/// A rate as `tc` reads and prints it: `10Mbit`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Speed;

/// Rates from `least` on.
pub(crate) const fn at_least(least: Rate) -> Bounds {
    param::rate(least, Rate::UNLIMITED)
}

impl Form for Speed {
    type Value = Rate;
    const KIND: ParamKind = ParamKind::Rate;
    const EXAMPLES: &'static [&'static str] = TcRate::EXAMPLES;

    fn read(text: &str, param: &Param) -> Result<Rate, SpecError> {
        TcRate::read(text, param)
    }

    fn check(value: &Rate, param: &Param) -> Result<(), SpecError> {
        Rate::check(value, param)
    }

    fn show(value: &Rate, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        ShownRate(*value).fmt(f)
    }
}

/// A whole number of per cent: `10%`, or `10`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Percent;

impl Form for Percent {
    type Value = u32;
    const KIND: ParamKind = ParamKind::Share;
    const BOUNDS: Bounds = param::whole(0, 100);

    fn read(text: &str, param: &Param) -> Result<u32, SpecError> {
        u32::read(text.strip_suffix('%').unwrap_or(text), param)
    }

    fn check(value: &u32, param: &Param) -> Result<(), SpecError> {
        u32::check(value, param)
    }

    fn show(value: &u32, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{value}%")
    }
}

/// A rate as `tc` prints it: `10Mbit`.
pub(crate) struct ShownRate(pub(crate) Rate);

impl fmt::Display for ShownRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut number = self.0.as_bps();
        let mut units = ["", "K", "M", "G", "T"].into_iter();
        let mut unit = units.next().unwrap_or_default();
        while number >= 1000 && number.is_multiple_of(1000) {
            let Some(larger) = units.next() else { break };
            (number, unit) = (number / 1000, larger);
        }
        write!(f, "{number}{unit}bit")
    }
}

/// A size as `tc` prints it: `32Mb`, in powers of 1024.
pub(crate) struct ShownSize(pub(crate) Bytes);

impl fmt::Display for ShownSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_u64() {
            bytes if bytes > 0 && bytes.is_multiple_of(1 << 20) => write!(f, "{}Mb", bytes >> 20),
            bytes if bytes > 0 && bytes.is_multiple_of(1 << 10) => write!(f, "{}Kb", bytes >> 10),
            bytes => write!(f, "{bytes}b"),
        }
    }
}
