//! Accurate ECN (RFC 9768): the counters at both ends, and how the sender reconstructs them from
//! the three bits and the option that it receives.

use sojourn_core::{CeBytes, Ecn, TcpEcn};

/// Both ends count marked packets from here (section 3.2.1).
const FIRST_CEP: u8 = 5;
pub(super) const FIRST_ACE: TcpEcn = TcpEcn::from_bits(FIRST_CEP);
/// The field wraps after this many.
const DIVACE: u32 = 8;
/// The receiver acknowledges at the latest after this many marks (section 3.2.2.5.1).
const MOST_UNTOLD: u32 = 2;

/// What the receiver counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counters {
    /// Marked packets, modulo 2⁸.
    cep: u8,
    /// Marked bytes, modulo 2³².
    pub(super) ceb: u32,
    /// Marks since the last acknowledgement.
    untold: u32,
    last: Ecn,
}

impl Default for Counters {
    fn default() -> Self {
        Self { cep: FIRST_CEP, ceb: 0, untold: 0, last: Ecn::NotEct }
    }
}

impl Counters {
    /// Data arrived. True if it must be acknowledged at once: because the codepoint changed (as on
    /// Linux, in either direction), or because there are enough marks (section 3.2.2.5.1).
    pub(super) fn on_data(&mut self, ecn: Ecn, segments: u32, bytes: u32) -> bool {
        let has_changed = ecn != core::mem::replace(&mut self.last, ecn);
        if ecn == Ecn::Ce {
            self.cep = self.cep.wrapping_add(segments as u8);
            self.ceb = self.ceb.wrapping_add(bytes);
            self.untold = self.untold.saturating_add(segments);
        }
        has_changed || self.untold >= MOST_UNTOLD
    }

    /// What an acknowledgement reports.
    pub(super) fn tell(&mut self) -> TcpEcn {
        self.untold = 0;
        TcpEcn::from_bits(self.cep)
    }
}

/// What the sender knows of the receiver's counters.
#[derive(Clone, Debug)]
pub(super) struct Marks {
    /// `s.cep`, modulo 256.
    cep: u8,
    /// `s.ceb` as the last option reported it, and marked packets counted without an option since.
    ceb: CeBytes,
    counted_since: u32,
    /// Moving average of the segments that an acknowledgement covers, in 1/64.
    coverage: u32,
}

/// What an acknowledgement reported of marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) marked: u32,
    /// More bytes are marked but no packet: a device on the path changes one of the counters
    /// (section 3.2.3.2.5).
    pub(super) is_inconsistent: bool,
}

impl Default for Marks {
    fn default() -> Self {
        Self { cep: FIRST_CEP, ceb: CeBytes::new(0), counted_since: 0, coverage: 0 }
    }
}

impl Marks {
    /// An acknowledgement newly delivers `delivered` segments of `mss` bytes.
    pub(super) fn on_ack(
        &mut self,
        ace: TcpEcn,
        ce_bytes: Option<CeBytes>,
        delivered: u32,
        mss: u32,
    ) -> Told {
        self.average(delivered);
        let d_cep = u32::from(ace.bits().wrapping_sub(self.cep)) % DIVACE;
        let d_ceb = ce_bytes.map(|bytes| {
            let since_option = bytes.since(core::mem::replace(&mut self.ceb, bytes));
            let counted = core::mem::take(&mut self.counted_since);
            since_option.saturating_sub(counted.saturating_mul(mss))
        });
        let can_wrap = delivered >= DIVACE;
        let marked = if can_wrap { self.resolve(d_cep, d_ceb, delivered, mss) } else { d_cep };
        self.cep = self.cep.wrapping_add(marked as u8);
        if d_ceb.is_none() {
            self.counted_since = self.counted_since.saturating_add(marked);
        }
        let bytes = d_ceb.unwrap_or(0);
        let is_inconsistent = !can_wrap && d_cep == 0 && bytes > 0 && bytes < DIVACE * mss;
        Told { marked, is_inconsistent }
    }

    /// How many of `delivered` segments were marked, if it is `d_cep` modulo eight (section
    /// 3.2.2.5.2 and appendix A.2).
    fn resolve(&self, d_cep: u32, d_ceb: Option<u32>, delivered: u32, mss: u32) -> u32 {
        let safer = delivered - (delivered - d_cep) % DIVACE;
        match d_ceb {
            Some(0) => d_cep,
            // The bytes of that many packets show how often the field wrapped, as on Linux.
            Some(d_ceb) if delivered >= 2 * DIVACE => {
                let packets = d_ceb.div_ceil(mss);
                (d_cep + packets / DIVACE * DIVACE).min(safer)
            }
            // Appendix A.2.2: the smaller count, unless its segments would be larger than possible,
            // or those of the greater count would not be too small.
            Some(d_ceb) if d_ceb <= mss * d_cep && d_ceb < safer * mss / 2 => d_cep,
            Some(_) => safer,
            // Where acknowledgements are always that rare, none of them is missing (appendix
            // A.2.1).
            None if self.coverage > USUAL_COVERAGE => d_cep,
            None => safer,
        }
    }

    fn average(&mut self, delivered: u32) {
        if delivered == 0 {
            return;
        }
        let delivered = delivered.min(1 << 10);
        self.coverage = match self.coverage {
            0 => delivered << COVERAGE_BITS,
            coverage => coverage - (coverage >> COVERAGE_BITS) + delivered,
        };
    }
}

/// The average moves by 1/64; up to four segments count as well below a wrap of the field (Linux).
const COVERAGE_BITS: u32 = 6;
const USUAL_COVERAGE: u32 = 4 << COVERAGE_BITS;
