//! How a link serves capacity that changes in steps, and what the medium makes of a packet.

use alloc::sync::Arc;
use core::fmt::{self, Display};

use sojourn_core::param::{Form, Keyword, Style};
use sojourn_core::{Framing, FramingWords, Param, ParamKind, SpecError, Words};

use crate::{OnEnd, ShapedTrace, Trace, TraceDriven, Transmitter};

/// How a link serves capacity that changes in steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Serving {
    pub on_end: OnEnd,
    pub shaper: Shaper,
    /// What the medium makes of a packet.
    pub framing: Framing,
}

/// How the capacity is imposed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shaper {
    /// The link itself serialises packets at that capacity.
    #[default]
    None,
    /// A class of Linux's `htb` in front of a fast wire; a script changes the class's rate.
    Htb,
}

sojourn_core::choice!(Shaper { "none" = Shaper::None, "htb" = Shaper::Htb });

/// What follows the end of a trace.
pub(super) const END: Param = Param::of::<OnEnd>(
    "end",
    "wrap",
    "What follows the end: 'wrap' begins again, 'hold' keeps the last rate",
);

pub(super) const SHAPER: Param = Param::of::<Shaper>(
    "shaper",
    "none",
    "What imposes the capacity: 'none' is a link that takes that long for a packet, 'htb' a class \
     of Linux's htb in front of a fast wire, where a packet leaves at once and the next one waits",
);

pub(super) const SHAPER_AS_THERE: Param = SHAPER.saying("As for blockage");

/// All words of framing.
pub(super) const FRAMING: Param = Param::of::<OnLink>("overhead", "raw", "").quiet();

/// The same in the list of a rate that refers to another rate's list.
pub(super) const FRAMING_AS_THERE: Param = FRAMING
    .by_default("0")
    .saying("Bytes added to each packet, or any other word of framing, as for a fixed rate")
    .known();

/// The words of framing, as the rate of a link means them: packets count as they are on Ethernet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OnLink(FramingWords);

impl OnLink {
    /// # Errors
    /// Overheads that add up to too much.
    pub(super) fn framing(self) -> Result<Framing, SpecError> {
        self.0.of_link()
    }
}

impl From<Framing> for OnLink {
    fn from(framing: Framing) -> Self {
        Self(FramingWords::of_link_with(framing))
    }
}

/// Two that have the same effect on a link are equal, however they are written.
impl PartialEq for OnLink {
    fn eq(&self, other: &Self) -> bool {
        self.framing() == other.framing()
    }
}

/// The words are `cake`'s. Only `overhead` means something else when it stands alone: bytes beyond the
/// length on Ethernet.
impl Form for OnLink {
    type Value = Self;
    const KIND: ParamKind = ParamKind::Count;
    const KEYWORDS: &'static [Keyword] = &{
        const WORDS: &[Keyword] = <FramingWords as Form>::KEYWORDS;
        let mut words = [WORDS[0]; WORDS.len()];
        let mut at = 0;
        while at < words.len() {
            words[at] = WORDS[at];
            at += 1;
        }
        words[1].doc = "Bytes added to each packet, -64 to 256: alone, to its length on Ethernet (IP and 14); \
                        beside another word of framing, to that of the IP packet, as cake counts";
        words
    };

    fn read(text: &str, param: &Param) -> Result<Self, SpecError> {
        FramingWords::read(text, param).map(Self)
    }

    fn absorb(
        value: &mut Self,
        words: &mut Words<'_>,
        word: &str,
        _param: &Param,
    ) -> Result<(), SpecError> {
        value.0.accept(word, words).map(|_| ())
    }

    fn check(value: &Self, _param: &Param) -> Result<(), SpecError> {
        value.framing().map(|_| ())
    }

    fn show(value: &Self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Framed(value.framing().unwrap_or_default()).fmt(f)
    }

    fn write(
        value: &Self,
        _param: &Param,
        _style: Style,
        f: &mut fmt::Formatter<'_>,
    ) -> fmt::Result {
        Self::show(value, f)
    }
}

/// Printed as the rate of a link reads it: bytes beyond Ethernet as an `overhead` alone, and nothing if
/// there are none.
pub(super) struct Framed(pub(super) Framing);

impl fmt::Display for Framed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let framing = self.0;
        if framing == Framing::default() {
            Ok(())
        } else if framing == Framing::on_ethernet(framing.overhead) {
            write!(f, " overhead {}", framing.overhead)
        } else {
            write!(f, " {framing}")
        }
    }
}

impl Serving {
    pub(super) fn build(self, trace: Arc<Trace>) -> Transmitter {
        let Self { on_end, shaper, framing } = self;
        match shaper {
            Shaper::None => Transmitter::Trace(TraceDriven::new(trace, on_end, framing)),
            Shaper::Htb => Transmitter::Shaped(ShapedTrace::new(trace, on_end, framing)),
        }
    }
}

impl fmt::Display for Serving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { on_end, shaper, framing } = self;
        write!(f, " end {on_end} shaper ")?;
        Shaper::show(shaper, f)?;
        Framed(*framing).fmt(f)
    }
}

impl fmt::Display for OnEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Self::show(self, f)
    }
}
