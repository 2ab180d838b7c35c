use sojourn_core::{Framing, Queued};

/// The length of packets on the medium.
#[derive(Clone, Copy, Debug)]
pub(super) struct Medium {
    framing: Framing,
    /// Packets have the same length as on Ethernet.
    is_plain: bool,
    /// Bytes that all packets took so far, unless they are plain.
    taken: u64,
}

impl Medium {
    pub(super) fn new(framing: Framing) -> Self {
        Self { framing, is_plain: framing == Framing::default(), taken: 0 }
    }

    /// The bytes that a packet takes; it counts as sent.
    #[inline(always)]
    pub(super) fn take(&mut self, packet: &impl Queued) -> u32 {
        if self.is_plain { packet.wire_len() } else { self.take_framed(packet) }
    }

    #[inline(never)]
    fn take_framed(&mut self, packet: &impl Queued) -> u32 {
        let bytes = self.framing.length_of(packet);
        self.taken += u64::from(bytes);
        bytes
    }

    /// The bytes that all packets took; on Ethernet they had `wire_bytes`.
    pub(super) fn taken(&self, wire_bytes: u64) -> u64 {
        if self.is_plain { wire_bytes } else { self.taken }
    }
}
