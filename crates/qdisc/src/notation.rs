//! The parts of `tc`'s notation that several disciplines share. What is printed reads back.

use alloc::format;
use alloc::string::ToString;
use core::fmt;

use sojourn_core::param::{self, Bounds, Form, unknown_param};
use sojourn_core::{Bytes, Param, ParamKind, Rate, Span, SpecError, Words};

/// A row of a table of parameters.
pub(crate) const fn param(
    name: &'static str,
    kind: ParamKind,
    default: &'static str,
    doc: &'static str,
) -> Param {
    Param::new(name, kind, default, doc)
}

/// The same for a word that stands alone.
pub(crate) const fn flag(name: &'static str, default: &'static str, doc: &'static str) -> Param {
    param(name, ParamKind::Flag, default, doc)
}

/// Reads the parameters of `discipline` to the end. `accept` takes in a word with its value, unless
/// it is none of them.
pub(crate) fn read_params<'a>(
    words: &mut Words<'a>,
    discipline: &str,
    params: &[Param],
    mut accept: impl FnMut(&'a str, &mut Words<'a>) -> Result<bool, SpecError>,
) -> Result<(), SpecError> {
    while let Some(word) = words.next() {
        if !accept(word, words)? {
            return Err(unknown_param(discipline, word, params));
        }
    }
    Ok(())
}

/// A limit in packets: `1000`, or `1000p` as `tc` prints it.
pub(crate) fn packets(words: &mut Words<'_>, name: &str) -> Result<u32, SpecError> {
    let text = words.value(name)?;
    match text.strip_suffix('p').unwrap_or(text).parse::<u32>() {
        Ok(count) if count > 0 => Ok(count),
        _ => Err(SpecError::new(format!("'{name}' is '{text}'"))
            .allow([format!("a number of packets from 1 to {}", u32::MAX)])),
    }
}

/// A size of at least one byte and at most `most`.
pub(crate) fn size(words: &mut Words<'_>, name: &str, most: u64) -> Result<Bytes, SpecError> {
    let size = words.parse(name, Bytes::parse_tc)?;
    if (1..=most).contains(&size.as_u64()) {
        Ok(size)
    } else {
        Err(SpecError::new(format!("'{name}' is {} bytes", size.as_u64()))
            .allow([format!("1 to {most} bytes")]))
    }
}

/// A time from `least` up to what the kernel's interface holds: 2³² − 1 microseconds.
pub(crate) fn span(words: &mut Words<'_>, name: &str, least: Span) -> Result<Span, SpecError> {
    let most = Span::from_micros(u64::from(u32::MAX));
    let span = words.parse(name, Span::parse_tc)?;
    if (least..=most).contains(&span) {
        Ok(span)
    } else {
        Err(SpecError::new(format!("'{name}' is {span}"))
            .allow([format!("a time from {least} to {most}")]))
    }
}

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

/// A size as `tc` reads and prints it, in powers of 1024.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size;

impl Form for Size {
    type Value = Bytes;
    const KIND: ParamKind = ParamKind::Size;

    fn read(text: &str, param: &Param) -> Result<Bytes, SpecError> {
        let size = Bytes::parse_tc(text).map_err(|error| error.within(param.name))?;
        Self::check(&size, param)?;
        Ok(size)
    }

    fn check(value: &Bytes, param: &Param) -> Result<(), SpecError> {
        if param.bounds.hold_size(*value) {
            return Ok(());
        }
        Err(SpecError::new(format!("'{}' is {} bytes", param.name, value.as_u64()))
            .allow(param.bounds.allowed()))
    }

    fn show(value: &Bytes, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", TcSize(*value))
    }
}

/// A rate as `tc` prints it: `10Mbit`.
pub(crate) struct TcRate(pub(crate) Rate);

impl fmt::Display for TcRate {
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
pub(crate) struct TcSize(pub(crate) Bytes);

impl fmt::Display for TcSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_u64() {
            bytes if bytes > 0 && bytes.is_multiple_of(1 << 20) => write!(f, "{}Mb", bytes >> 20),
            bytes if bytes > 0 && bytes.is_multiple_of(1 << 10) => write!(f, "{}Kb", bytes >> 10),
            bytes => write!(f, "{bytes}b"),
        }
    }
}
