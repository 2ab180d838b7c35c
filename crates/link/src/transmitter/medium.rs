use sojourn_core::{Framing, Queued};

/// What packets become on the medium.
#[derive(Clone, Copy, Debug)]
pub(super) struct Medium {
    framing: Framing,
    /// A packet is as long as on Ethernet.
    is_plain: bool,
    /// Bytes that all packets have taken, if they are not plain.
    taken: u64,
}

impl Medium {
    pub(super) fn new(framing: Framing) -> Self {
        Self { framing, is_plain: framing == Framing::default(), taken: 0 }
    }

    /// Bytes that a packet takes which is sent now.
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

    /// Bytes that all packets have taken, which have `wire_bytes` on Ethernet.
    pub(super) fn taken(&self, wire_bytes: u64) -> u64 {
        if self.is_plain { wire_bytes } else { self.taken }
    }
}
