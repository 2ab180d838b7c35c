//! What a packet's length becomes on the link: overhead, smallest unit, ATM or PTM cells.

use core::fmt;

use sojourn_core::Queued;

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
    /// Length on the link, all segments together. Segments of an unsplit super packet are taken
    /// to be even but for the last.
    pub(crate) fn length_of<P: Queued>(&self, packet: &P) -> u32 {
        let len = if self.from_ip { packet.ip_len() } else { packet.wire_len() };
        let segments = packet.segments();
        if segments <= 1 {
            return self.length(len);
        }
        let full = len.div_ceil(segments);
        let last = len.saturating_sub(full * (segments - 1));
        self.length(full) * (segments - 1) + self.length(last)
    }

    #[inline]
    pub(crate) fn length(&self, len: u32) -> u32 {
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
