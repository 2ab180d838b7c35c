//! `pfifo` and `bfifo`: Paper "TCP BBR Performance over Wi-Fi 6", equations (18) and (19), with
//! service by order of arrival in place of fixed shares.

use alloc::vec::Vec;

use sojourn_qdisc::{Config, fifo};

use super::{Due, Fate, Member, Seen, Step, one_class, serve_fifo};

#[derive(Clone, Debug)]
pub(crate) struct DropTail {
    limit: f64,
}

impl DropTail {
    pub(super) fn new(config: &Config, packet: f64) -> Self {
        let limit = match config {
            Config::Fifo(fifo::Config::Packets(packets)) => f64::from(*packets) * packet,
            Config::Fifo(fifo::Config::Bytes(bytes)) => bytes.as_u64() as f64,
            _ => f64::INFINITY,
        };
        Self { limit }
    }

    pub(super) fn classes(&self, members: &[Member]) -> Vec<usize> {
        one_class(members)
    }

    pub(super) fn advance(&self, step: &Step<'_>, fate: &mut Fate) {
        serve_fifo(step, fate, self.limit);
    }

    pub(super) fn observe(&mut self, _: &Seen<'_>, _: &mut Vec<Due>) {}

    pub(super) fn timer(&self) -> f64 {
        f64::INFINITY
    }
}
