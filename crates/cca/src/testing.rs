//! Tools for the tests of all controllers: [`play`] puts a controller through random [`Op`]s of the suite;
//! [`Path`] gives it a steady network.

use std::collections::VecDeque;

use proptest::prelude::*;
use sojourn_core::{Rate, Span, Time};

pub(crate) use crate::suite::{Connection, MTU, Op, setup, sound};
use crate::{Ack, Congestion, CongestionKind, Controller, RecoveryState, Setup};

/// An acknowledgement of `delivered` segments in an undisturbed connection whose window is the
/// limit, for tests that don't care about its other fields. The next one should be at a greater
/// `snd_una`.
pub(crate) fn plain_ack(now: Time, delivered: u32, snd_una: u32) -> Ack {
    Ack {
        now,
        delivered,
        cumulative: delivered,
        lost: 0,
        ce: 0,
        ece: false,
        rtt: None,
        is_delayed: false,
        rate: None,
        prior_in_flight: delivered,
        in_flight: 0,
        snd_una,
        snd_nxt: snd_una,
        total_delivered: 0,
        total_delivered_ce: 0,
        total_lost: 0,
        state: RecoveryState::Open,
        prior_state: RecoveryState::Open,
        srtt: None,
        min_rtt: None,
        is_cwnd_limited: true,
        was_cwnd_full: true,
        app_limited_until: 0,
        earliest_departure: now,
        packets_out: 0,
        receive_window: u64::MAX,
    }
}

/// A reduction that begins in an undisturbed connection with nothing in flight.
pub(crate) fn congestion(kind: CongestionKind) -> Congestion {
    Congestion { now: Time::ZERO, kind, in_flight: 0, snd_nxt: 0, prior_state: RecoveryState::Open }
}

/// Operations in any order; an operation that is impossible at the moment does nothing.
pub(crate) fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        6 => Just(Op::Send),
        1 => (1u32..20).prop_map(Op::SendFew),
        4 => (0u64..200_000).prop_map(|us| Op::Wait(Span::from_micros(us))),
        8 => (1u32..200).prop_map(Op::Deliver),
        1 => (1u32..10).prop_map(Op::Mark),
        2 => (1u32..10).prop_map(Op::Lose),
        1 => Just(Op::Timeout),
        1 => Just(Op::Undo),
        1 => (0u64..100_000).prop_map(|ms| Op::Idle(Span::from_millis(ms))),
        1 => Just(Op::Unused),
    ];
    prop::collection::vec(op, 1..300)
}

/// Applies `ops` one by one and checks after each what must hold for every controller, and what
/// `check` asserts besides.
pub(crate) fn play<C: Controller>(
    controller: C,
    setup: &Setup,
    ops: &[Op],
    mut check: impl FnMut(&Connection<C>),
) {
    let mut connection = Connection::new(controller, setup);
    for op in ops {
        connection.apply(op);
        assert_eq!(sound(&connection.controller), Ok(()), "after {op:?}");
        check(&connection);
    }
}

/// A bulk transfer over one link: round-trip time without queue, rate, buffer and periodic loss.
pub(crate) struct Path<C> {
    pub(crate) connection: Connection<C>,
    pub(crate) rtt: Span,
    /// Of the link; unlimited without a queue.
    pub(crate) rate: Rate,
    /// Segments that may wait.
    pub(crate) buffer: u32,
    /// One of this many segments is lost.
    pub(crate) loss_period: Option<u64>,
    /// Pace at 1.2 windows per round trip if the controller sets no rate.
    pub(crate) is_paced: bool,
    link_free_at: Time,
    sent: u64,
    /// In the order of sending.
    network: VecDeque<Carried>,
    dropped: Vec<u32>,
    /// Window integrated over time, segment seconds.
    cwnd_seconds: f64,
    measured_seconds: f64,
    measured_since: Time,
    measured_delivered: u64,
}

struct Carried {
    seq: u32,
    acknowledged_at: Time,
    is_dropped: bool,
}

impl<C: Controller> Path<C> {
    pub(crate) fn new(controller: C, setup: &Setup, rtt: Span) -> Self {
        Self {
            connection: Connection::new(controller, setup),
            rtt,
            rate: Rate::UNLIMITED,
            buffer: u32::MAX,
            loss_period: None,
            is_paced: true,
            link_free_at: setup.now,
            sent: 0,
            network: VecDeque::new(),
            dropped: Vec::new(),
            cwnd_seconds: 0.0,
            measured_seconds: 0.0,
            measured_since: setup.now,
            measured_delivered: 0,
        }
    }

    pub(crate) fn controller(&self) -> &C {
        &self.connection.controller
    }

    pub(crate) fn run_until(&mut self, end: Time) {
        while self.connection.now < end {
            self.step();
        }
    }

    /// Starts averages anew.
    pub(crate) fn measure(&mut self) {
        self.cwnd_seconds = 0.0;
        self.measured_seconds = 0.0;
        self.measured_since = self.connection.now;
        self.measured_delivered = self.connection.delivered;
    }

    /// Segments, averaged over the time since [`Path::measure`] in which nothing was reduced.
    pub(crate) fn average_cwnd(&self) -> f64 {
        self.cwnd_seconds / self.measured_seconds
    }

    /// Segments per second since [`Path::measure`].
    pub(crate) fn delivery_rate(&self) -> f64 {
        (self.connection.delivered - self.measured_delivered) as f64
            / self.connection.now.since(self.measured_since).as_secs_f64()
    }

    /// Sends a segment or receives an acknowledgement, whichever comes first.
    pub(crate) fn step(&mut self) {
        let arrival = self.network.front().map(|carried| carried.acknowledged_at);
        let departure = (self.connection.may_send())
            .then(|| self.connection.earliest_departure.max(self.connection.now));
        match (arrival, departure) {
            (Some(arrival), Some(departure)) if departure < arrival => self.send(departure),
            (Some(arrival), _) => self.receive(arrival),
            (None, Some(departure)) => self.send(departure),
            (None, None) => {
                self.advance(self.connection.now + self.connection.rto());
                self.dropped.clear();
                self.connection.time_out();
            }
        }
    }

    fn advance(&mut self, to: Time) {
        if !self.connection.state.is_reducing() {
            let passed = to.since(self.connection.now).as_secs_f64();
            self.cwnd_seconds += f64::from(self.connection.controller.cwnd()) * passed;
            self.measured_seconds += passed;
        }
        self.connection.now = to;
    }

    fn send(&mut self, at: Time) {
        self.advance(at);
        let seq = self.connection.send();
        self.sent += 1;
        let service = self.rate.time_for(u64::from(MTU));
        let queued = self.link_free_at.since(at);
        let is_full = !service.is_zero()
            && queued.as_nanos() > u64::from(self.buffer).saturating_mul(service.as_nanos());
        let is_unlucky = self.loss_period.is_some_and(|period| self.sent.is_multiple_of(period));
        let is_dropped = is_full || is_unlucky;
        if !is_full {
            self.link_free_at = self.link_free_at.max(at) + service;
        }
        let acknowledged_at = self.link_free_at.max(at) + self.rtt;
        self.network.push_back(Carried { seq, acknowledged_at, is_dropped });
        if self.is_paced && self.connection.controller.pacing_rate().is_none() {
            let srtt = self.connection.srtt.unwrap_or(self.rtt);
            let gap = srtt * 5 / 6 / u64::from(self.connection.controller.cwnd());
            self.connection.earliest_departure = at + gap;
        }
    }

    fn receive(&mut self, at: Time) {
        self.advance(at);
        let carried = self.network.pop_front().expect("an arrival is in the network");
        if carried.is_dropped {
            // The next one that arrives reveals the loss.
            self.dropped.push(carried.seq);
            return;
        }
        let lost = std::mem::take(&mut self.dropped);
        self.connection.acknowledge(&[carried.seq], &lost, false);
        if !lost.is_empty() {
            // Fast retransmission does not wait for the window.
            self.send(at);
        }
    }
}
