//! What a packet's length becomes on the link: overhead, smallest unit, ATM or PTM cells. Its words
//! are those of `cake`, whose shaper counts so; the rates of links have the same ones.

use alloc::format;
use core::fmt::{self, Display};

use crate::param::{Form, Keyword, Style};
use crate::{Param, ParamKind, Queued, SpecError, Words};

/// How the link cuts packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cells {
    #[default]
    None,
    /// 48 bytes of payload in cells of 53.
    Atm,
    /// A byte of code for every 64 or part of it.
    Ptm,
}

/// The length compensation that `overhead`, `mpu`, `atm` and the link keywords ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Framing {
    /// Bytes added to a packet, -64 to 256.
    pub overhead: i32,
    /// Smallest length after that.
    pub mpu: u32,
    pub cells: Cells,
    /// Start from the IP packet's length; otherwise from the length on Ethernet (`raw`).
    pub from_ip: bool,
}

impl Framing {
    /// Bytes added to what a packet has on Ethernet.
    pub const fn on_ethernet(overhead: i32) -> Self {
        Self { overhead, mpu: 0, cells: Cells::None, from_ip: false }
    }

    /// # Errors
    /// An overhead or a smallest length out of range.
    pub fn check(&self) -> Result<(), SpecError> {
        let Self { overhead, mpu, .. } = *self;
        if !(OVERHEAD_LEAST..=OVERHEAD_MOST).contains(&overhead) {
            return Err(SpecError::new(format!("the overheads add up to {overhead} bytes"))
                .allow([format!("{OVERHEAD_LEAST} to {OVERHEAD_MOST} bytes")]));
        }
        if mpu > OVERHEAD_MOST as u32 {
            return Err(SpecError::new(format!("'mpu' is {mpu}"))
                .allow([format!("0 to {OVERHEAD_MOST} bytes")]));
        }
        Ok(())
    }

    /// Length on the link, all segments together. The segments of a packet that is not cut yet are taken
    /// to be equally long but for the last, which is shorter, or longer where that leaves it nothing.
    #[inline]
    pub fn length_of<P: Queued>(&self, packet: &P) -> u32 {
        let len = if self.from_ip { packet.ip_len() } else { packet.wire_len() };
        let segments = packet.segments();
        if segments <= 1 {
            return self.length(len);
        }
        let mut full = len.div_ceil(segments);
        if full * (segments - 1) >= len {
            full = len / segments;
        }
        let last = len - full * (segments - 1);
        self.length(full) * (segments - 1) + self.length(last)
    }

    /// Length on the link of a packet that has `len` bytes, on Ethernet or as [`Framing::from_ip`] says.
    #[inline]
    pub fn length(&self, len: u32) -> u32 {
        let len = len.saturating_add_signed(self.overhead).max(self.mpu);
        match self.cells {
            Cells::None => len,
            Cells::Atm => len.div_ceil(48) * 53,
            Cells::Ptm => len + len.div_ceil(64),
        }
    }
}

impl fmt::Display for Framing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.from_ip, self.cells) {
            (false, Cells::None) => "raw",
            (false, Cells::Atm) => "raw atm",
            (false, Cells::Ptm) => "raw ptm",
            (true, Cells::None) => "noatm",
            (true, Cells::Atm) => "atm",
            (true, Cells::Ptm) => "ptm",
        })?;
        write!(f, " overhead {}", self.overhead)?;
        match self.mpu {
            0 => Ok(()),
            mpu => write!(f, " mpu {mpu}"),
        }
    }
}

const OVERHEAD_LEAST: i32 = -64;
const OVERHEAD_MOST: i32 = 256;

/// Link encapsulations by name: the overhead each adds and the cells it implies. They add up,
/// with each other and with `overhead`.
const PRESETS: [(&str, i32, Cells); 10] = [
    ("ipoa-vcmux", 8, Cells::Atm),
    ("ipoa-llcsnap", 16, Cells::Atm),
    ("bridged-vcmux", 24, Cells::Atm),
    ("bridged-llcsnap", 32, Cells::Atm),
    ("pppoa-vcmux", 10, Cells::Atm),
    ("pppoa-llc", 14, Cells::Atm),
    ("pppoe-vcmux", 32, Cells::Atm),
    ("pppoe-llcsnap", 40, Cells::Atm),
    ("pppoe-ptm", 30, Cells::Ptm),
    ("bridged-ptm", 22, Cells::Ptm),
];

/// The words about framing, as they come.
#[derive(Clone, Copy, Debug, Default)]
pub struct FramingWords {
    framing: Framing,
    is_raw: bool,
    /// A word other than `overhead` stood among them.
    is_named: bool,
}

impl FramingWords {
    /// Takes in a word with its value; false if it is none of them.
    ///
    /// # Errors
    /// A value out of range.
    pub fn accept(&mut self, word: &str, words: &mut Words<'_>) -> Result<bool, SpecError> {
        if word == "overhead" {
            let overhead = words.parse(word, overhead)?;
            self.set_overhead(overhead);
            return Ok(true);
        }
        match word {
            "noatm" => self.framing.cells = Cells::None,
            "atm" => self.framing.cells = Cells::Atm,
            "ptm" => self.framing.cells = Cells::Ptm,
            "raw" => {
                self.framing.cells = Cells::None;
                self.framing.overhead = 0;
                self.is_raw = true;
            }
            "conservative" => {
                self.framing.cells = Cells::Atm;
                self.set_overhead(48);
            }
            "ethernet" => {
                self.add_overhead(38);
                self.framing.mpu = 84;
            }
            "ether-vlan" => self.add_overhead(4),
            "docsis" => {
                self.framing.cells = Cells::None;
                self.add_overhead(18);
                self.framing.mpu = 64;
            }
            "mpu" => self.framing.mpu = words.count(word, 0, OVERHEAD_MOST as u64)? as u32,
            _ => {
                let Some((_, overhead, cells)) =
                    PRESETS.into_iter().find(|(name, _, _)| *name == word)
                else {
                    return Ok(false);
                };
                self.framing.cells = cells;
                self.add_overhead(overhead);
            }
        }
        self.is_named = true;
        Ok(true)
    }

    /// The words that ask a link for `framing`.
    pub const fn of_link_with(framing: Framing) -> Self {
        Self { framing, is_raw: !framing.from_ip, is_named: true }
    }

    fn set_overhead(&mut self, overhead: i32) {
        self.framing.overhead = overhead;
        self.framing.from_ip = true;
    }

    fn add_overhead(&mut self, overhead: i32) {
        self.set_overhead(self.framing.overhead.saturating_add(overhead));
    }

    /// What the words mean to a shaper, as in `cake`: an overhead is added to the IP packet's length,
    /// or with `raw`, wherever that stands, to the length on Ethernet.
    ///
    /// # Errors
    /// Overheads that add up to too much.
    pub fn framing(mut self) -> Result<Framing, SpecError> {
        self.framing.check()?;
        self.framing.from_ip &= !self.is_raw;
        Ok(self.framing)
    }

    /// What the words mean to the rate of a link, which counts packets as they are on Ethernet. So an
    /// `overhead` that stands alone is added to that length; beside any other word it means what it
    /// means to a shaper.
    ///
    /// # Errors
    /// Overheads that add up to too much.
    pub fn of_link(self) -> Result<Framing, SpecError> {
        let framing = self.framing()?;
        Ok(Framing { from_ip: framing.from_ip && self.is_named, ..framing })
    }
}

fn overhead(text: &str) -> Result<i32, SpecError> {
    match text.parse::<i32>() {
        Ok(overhead) if (OVERHEAD_LEAST..=OVERHEAD_MOST).contains(&overhead) => Ok(overhead),
        _ => Err(SpecError::new(format!("'{text}' is out of range"))
            .allow([format!("{OVERHEAD_LEAST} to {OVERHEAD_MOST} bytes")])),
    }
}

const fn flag(name: &'static str, default: &'static str, doc: &'static str) -> Param {
    Param::new(name, ParamKind::Flag, default, doc)
}

/// Two that have the same effect on a shaper are equal, however they are written.
impl PartialEq for FramingWords {
    fn eq(&self, other: &Self) -> bool {
        self.framing() == other.framing()
    }
}

impl Form for FramingWords {
    type Value = Self;
    const KIND: ParamKind = ParamKind::Text;
    const KEYWORDS: &'static [Keyword] = &KEYWORDS;

    fn read(_text: &str, _param: &Param) -> Result<Self, SpecError> {
        Ok(Self::default())
    }

    fn absorb(
        value: &mut Self,
        words: &mut Words<'_>,
        word: &str,
        _param: &Param,
    ) -> Result<(), SpecError> {
        value.accept(word, words).map(|_| ())
    }

    fn check(value: &Self, _param: &Param) -> Result<(), SpecError> {
        value.framing().map(|_| ())
    }

    fn show(value: &Self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        value.framing().unwrap_or_default().fmt(f)
    }

    fn write(
        value: &Self,
        _param: &Param,
        _style: Style,
        f: &mut fmt::Formatter<'_>,
    ) -> fmt::Result {
        f.write_str(" ")?;
        Self::show(value, f)
    }
}

const KEYWORDS: [Keyword; PARAMS.len()] = {
    let mut all = [Keyword::flag("", ""); PARAMS.len()];
    let mut at = 0;
    while at < all.len() {
        let Param { name, kind, doc, .. } = PARAMS[at];
        all[at] = Keyword { word: name, kind, doc };
        at += 1;
    }
    all
};

/// The words, for lists and documents.
pub const PARAMS: &[Param] = &[
    flag("raw", "on", "count packets as they are, Ethernet header included"),
    Param::new(
        "overhead",
        ParamKind::Count,
        "",
        "bytes that the link adds to an IP packet, -64 to 256",
    ),
    Param::new("mpu", ParamKind::Count, "", "smallest length on the link, overhead included"),
    flag("noatm", "on", "the link has no cells"),
    flag("atm", "", "the link cuts packets into ATM cells: 48 bytes take 53"),
    flag("ptm", "", "the link codes 64 bytes in 65"),
    flag("conservative", "", "atm overhead 48: more than any link needs"),
    flag("ethernet", "", "overhead 38 more, mpu 84"),
    flag("ether-vlan", "", "overhead 4 more; may be repeated"),
    flag("docsis", "", "overhead 18 more, mpu 64, noatm"),
    flag("pppoe-ptm", "", "overhead 30 more, ptm"),
    flag("bridged-ptm", "", "overhead 22 more, ptm"),
    flag("pppoe-llcsnap", "", "overhead 40 more, atm"),
    flag("pppoe-vcmux", "", "overhead 32 more, atm"),
    flag("pppoa-llc", "", "overhead 14 more, atm"),
    flag("pppoa-vcmux", "", "overhead 10 more, atm"),
    flag("bridged-llcsnap", "", "overhead 32 more, atm"),
    flag("bridged-vcmux", "", "overhead 24 more, atm"),
    flag("ipoa-llcsnap", "", "overhead 16 more, atm"),
    flag("ipoa-vcmux", "", "overhead 8 more, atm"),
];
