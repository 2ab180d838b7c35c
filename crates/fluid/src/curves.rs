//! What an integration tells of itself at the end of a step.
//!
//! Curves are cumulative and count bytes on the wire, or are times in seconds.

use crate::cca::Shown;
use crate::world::World;

/// Columns of a flow: sent; known to be delivered, lost, marked; in flight; when what is acknowledged
/// was sent; received.
pub(crate) const SENT: usize = 0;
pub(crate) const ACKED: usize = 1;
pub(crate) const LOST: usize = 2;
pub(crate) const MARKED: usize = 3;
pub(crate) const FLIGHT: usize = 4;
pub(crate) const SENT_AT: usize = 5;
pub(crate) const RECEIVED: usize = 6;
pub(crate) const OF_FLOW: usize = 7;

/// Columns of a flow at a queue: let in, lost and marked on arrival; departed; of that dropped and
/// marked; when what departs came.
pub(crate) const IN: usize = 0;
pub(crate) const REFUSED: usize = 1;
pub(crate) const MARKED_IN: usize = 2;
pub(crate) const OUT: usize = 3;
pub(crate) const DROPPED: usize = 4;
pub(crate) const MARKED_OUT: usize = 5;
pub(crate) const CAME: usize = 6;
pub(crate) const OF_HOP: usize = 7;

/// An integration of a world, at the end of its last step.
pub(crate) trait Curves {
    fn world(&self) -> &World;

    fn now(&self) -> f64;

    fn of_flow(&self, flow: usize) -> &[f64];

    /// Of a flow at the queue of this place on its way.
    fn of_hop(&self, flow: usize, hop: usize) -> &[f64];

    /// `None` for flows that are no TCP or have not begun.
    fn sender(&self, flow: usize) -> Option<Sending>;

    /// Bytes that wait at a link.
    fn backlog(&self, link: usize) -> f64;

    /// Longest wait of what leaves a link.
    fn sojourn(&self, link: usize) -> f64;

    /// How long sparse packets wait in these links' queues now.
    fn waits(&self, links: &[usize]) -> f64;

    /// Whether the arrivals that a link lost in the last step met a full queue.
    fn is_overflow(&self, link: usize) -> bool;
}

/// What a TCP sender would show.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sending {
    pub(crate) window: f64,
    pub(crate) pacing: Option<f64>,
    pub(crate) rtt: f64,
    /// Infinite before the first acknowledgement.
    pub(crate) least_rtt: f64,
    pub(crate) bw: f64,
    pub(crate) phase: &'static str,
    pub(crate) shown: Shown,
}
