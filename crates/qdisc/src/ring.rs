//! A first-in-first-out queue that counts its packets and bytes, for disciplines with one or two
//! queues.

use alloc::collections::VecDeque;

use sojourn_core::{Queued, Time};

use crate::Backlog;

/// Packets, each with a note made when it arrived: by default the time.
#[derive(Debug)]
pub(crate) struct Ring<P, N = Time> {
    waiting: VecDeque<(N, P)>,
    backlog: Backlog,
}

impl<P: Queued, N: Copy> Ring<P, N> {
    pub(crate) fn new() -> Self {
        Self { waiting: VecDeque::new(), backlog: Backlog::default() }
    }

    #[inline]
    pub(crate) fn push(&mut self, note: N, packet: P) {
        self.backlog.add(packet.wire_len());
        self.waiting.push_back((note, packet));
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(N, P)> {
        let (_, packet) = self.waiting.front()?;
        self.backlog.remove(packet.wire_len());
        self.waiting.pop_front()
    }

    #[inline]
    pub(crate) fn head(&self) -> Option<(&P, N)> {
        self.waiting.front().map(|(note, packet)| (packet, *note))
    }

    #[inline]
    pub(crate) fn head_mut(&mut self) -> Option<&mut P> {
        self.waiting.front_mut().map(|(_, packet)| packet)
    }

    #[inline]
    pub(crate) fn backlog(&self) -> Backlog {
        self.backlog
    }
}

impl<P: Queued> Ring<P> {
    /// When the head arrived.
    pub(crate) fn oldest(&self) -> Option<Time> {
        self.head().map(|(_, arrived)| arrived)
    }
}
