//! What was on the air. Time on the air is counted once for the medium and once for each station,
//! so that the sums can be compared.

use sojourn_core::Span;

/// The medium since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AirCounts {
    /// Time in which no station sent, including interframe spaces before an exchange.
    pub idle: Span,
    /// Exchanges that one station had won, from the first frame to the end of the last.
    pub exchanges: Span,
    /// Overlapping frames, until the last one ended.
    pub collisions: Span,
    /// Time on the air by kind of frame; frames that overlap count each.
    pub data: Span,
    pub ack: Span,
    pub block_ack: Span,
    pub block_ack_req: Span,
    pub rts: Span,
    pub cts: Span,
    pub cf_end: Span,
    /// Trigger frames, and the buffer status reports that they ask for.
    pub trigger: Span,
    /// Attempts to send data, or an RTS before it, and those of them that overlapped.
    pub attempts: u64,
    pub collided: u64,
    /// Frames on units of random access, and those of them that were not alone there.
    pub random_attempts: u64,
    pub random_collided: u64,
}

/// One direction of a station's link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounts {
    /// Data PPDUs, with their preambles; of a PPDU for several stations an equal part.
    pub airtime: Span,
    /// The medium's `exchanges`, as far as they are this link's.
    pub exchanges: Span,
    /// Time on the air of its frames that overlapped with others, which count it too.
    pub collisions: Span,
    /// Attempts to send data, or an RTS before it, and those of them that overlapped; frames on units of
    /// random access among them.
    pub attempts: u64,
    pub collided: u64,
    pub ppdus: u64,
    pub mpdus: u64,
    /// MPDUs sent that did not arrive, and so were sent again or given up.
    pub failed: u64,
    pub psdu_octets: u64,
    pub delivered: u64,
    pub delivered_bytes: u64,
    /// Lost for good because the retry limit was reached.
    pub discarded: u64,
}
