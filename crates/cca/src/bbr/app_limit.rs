//! How BBR marks its own samples as application-limited.
//!
//! In ProbeRTT BBR holds data back itself, and tells the connection to mark what it sends meanwhile
//! as application-limited. A controller here cannot write to the connection. But a segment's
//! [`Memo`](crate::Memo) says how much had been delivered when it left, which tells whether it left
//! under the mark.

/// The delivered counts between which a segment leaves under the mark.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OwnAppLimit {
    span: Option<(u64, u64)>,
}

impl OwnAppLimit {
    /// Marks everything that is sent until the present flight is delivered.
    pub(crate) fn mark(&mut self, delivered: u64, in_flight: u32) {
        let until = delivered + u64::from(in_flight);
        self.span = match self.span {
            Some((from, last)) if delivered <= last => Some((from, until)),
            _ => Some((delivered, until)),
        };
    }

    /// Whether a segment is marked that left when `delivered` segments had been delivered.
    pub(crate) fn covers(&self, delivered: u64) -> bool {
        self.span.is_some_and(|(from, until)| (from..=until).contains(&delivered))
    }
}
