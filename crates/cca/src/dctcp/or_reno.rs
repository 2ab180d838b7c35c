//! A scalable controller where the feedback it lives on was agreed, and Reno where it was not.

use sojourn_core::{Rate, Span, Time};

use crate::reno::{self, Reno};
use crate::{Ack, Congestion, Controller, Lost, Outputs, Quantum, Restart, Sent, Setup, Undo};

/// What became of a connection that asked for `C`.
#[derive(Clone, Debug)]
pub enum OrReno<C> {
    Scalable(C),
    /// The other side cannot give the feedback.
    Reno(Reno),
}

impl<C> OrReno<C> {
    pub(crate) fn reno(setup: Setup) -> Self {
        Self::Reno(Reno::new(reno::Config::default(), setup))
    }
}

macro_rules! either {
    ($self:expr, $inner:ident => $call:expr) => {
        match $self {
            OrReno::Scalable($inner) => $call,
            OrReno::Reno($inner) => $call,
        }
    };
}

impl<C: Controller> Controller for OrReno<C> {
    #[inline]
    fn on_sent(&mut self, sent: &Sent) {
        either!(self, inner => inner.on_sent(sent));
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        either!(self, inner => inner.on_ack(ack));
    }

    fn on_lost(&mut self, lost: &Lost) {
        either!(self, inner => inner.on_lost(lost));
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        either!(self, inner => inner.on_congestion(congestion));
    }

    fn on_recovered(&mut self, now: Time) {
        either!(self, inner => inner.on_recovered(now));
    }

    fn on_undo(&mut self, undo: &Undo) {
        either!(self, inner => inner.on_undo(undo));
    }

    fn on_restart(&mut self, restart: &Restart) {
        either!(self, inner => inner.on_restart(restart));
    }

    fn on_unused_window(&mut self, used: u32) {
        either!(self, inner => inner.on_unused_window(used));
    }

    #[inline]
    fn cwnd(&self) -> u32 {
        either!(self, inner => inner.cwnd())
    }

    fn ssthresh(&self) -> Option<u32> {
        either!(self, inner => inner.ssthresh())
    }

    #[inline]
    fn pacing_rate(&self) -> Option<Rate> {
        either!(self, inner => inner.pacing_rate())
    }

    fn send_quantum(&self) -> Quantum {
        either!(self, inner => inner.send_quantum())
    }

    #[inline]
    fn uses_prr(&self) -> bool {
        either!(self, inner => inner.uses_prr())
    }

    #[inline]
    fn outputs(&self) -> Outputs {
        either!(self, inner => inner.outputs())
    }

    #[inline]
    fn phase(&self) -> &'static str {
        either!(self, inner => inner.phase())
    }

    fn bandwidth(&self) -> Option<Rate> {
        either!(self, inner => inner.bandwidth())
    }

    fn model_min_rtt(&self) -> Option<Span> {
        either!(self, inner => inner.model_min_rtt())
    }
}
