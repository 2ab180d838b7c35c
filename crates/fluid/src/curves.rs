//! What an integration tells of itself at the end of a step.
//!
//! Curves are cumulative and count bytes on the wire, or are times in seconds.

use sojourn_core::DropReason;

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

    /// What a link's queue does to packets that add nothing to it, such as pings.
    fn sparse(&self, link: usize) -> Sparse;

    /// What of a flow was lost at the queue of this place on its way.
    fn drops(&self, flow: usize, hop: usize) -> Drops;
}

/// Bytes of a flow that were lost at a link, by [`AT_TAIL`] and [`AT_HEAD`]: together what [`REFUSED`] and [`DROPPED`] say.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Drops {
    pub(crate) tail: [f64; 3],
    pub(crate) head: [f64; 3],
}

/// For what reasons a queue drops what comes, and what leaves.
pub(crate) const AT_TAIL: [DropReason; 3] = [DropReason::Full, DropReason::Aqm, DropReason::Medium];
pub(crate) const AT_HEAD: [DropReason; 3] =
    [DropReason::Overflow, DropReason::Aqm, DropReason::Medium];
pub(crate) const MEDIUM: usize = 2;

impl Drops {
    pub(crate) fn add(&mut self, other: &Self) {
        let [mine, more] = [(&mut self.tail, other.tail), (&mut self.head, other.head)];
        for (sum, more) in [mine, more] {
            sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        }
    }

    /// Dropped by the queue, and not lost on the medium.
    pub(crate) fn at_queue(&self) -> f64 {
        self.tail[..MEDIUM].iter().chain(&self.head[..MEDIUM]).sum()
    }
}

/// Of the packets among which sparse ones wait: when what leaves came, and bytes at both ends of their queue.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sparse {
    pub(crate) came_at: f64,
    pub(crate) tail: Passed,
    pub(crate) head: Passed,
}

/// What came to one end of a queue, and what of it was dropped, or would have been without ECN.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Passed {
    pub(crate) came: f64,
    pub(crate) lost: [f64; 3],
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
