//! Tools for the tests of all controllers: a small transport that turns test operations into legal
//! calls, and a path that acknowledges what is sent on it.
//!
//! [`play`] puts a controller through random [`Op`]s; [`Path`] gives it a steady network.

use std::collections::VecDeque;

use proptest::prelude::*;
use sojourn_core::{Purpose, Rate, Span, StreamAddress, Time};

use crate::{
    Ack, Congestion, CongestionKind, Controller, EcnFeedback, Lost, Memo, RateSample,
    RecoveryState, Restart, Sent, Setup, Undo,
};

pub(crate) const MTU: u32 = 1_500;

pub(crate) fn setup() -> Setup {
    Setup {
        mss: 1_448,
        mtu: MTU,
        initial_cwnd: 10,
        now: Time::ZERO,
        handshake_rtt: None,
        tick: Span::ZERO,
        ecn: EcnFeedback::Classic,
        is_paced: false,
        random: StreamAddress { seed: 1, run: 0 }.stream(0, Purpose::Controller),
    }
}

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

/// Something that can happen to a connection.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    /// Sends what the window allows.
    Send,
    /// Sends at most this many segments, and has no more.
    SendFew(u32),
    Wait(Span),
    /// This many of the oldest segments arrive.
    Deliver(u32),
    /// This many of the oldest segments arrive, and ECN-Echo with them.
    Mark(u32),
    /// This many of the oldest segments are lost, and the one after them arrives.
    Lose(u32),
    Timeout,
    /// The reduction was spurious.
    Undo,
    /// Everything arrives, then nothing is sent for this long.
    Idle(Span),
    /// The window was not fully used for a retransmission timeout.
    Unused,
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
        let controller = &connection.controller;
        assert!(controller.cwnd() >= 1, "window of zero after {op:?}");
        assert!(controller.cwnd() <= 1 << 31, "window of {} after {op:?}", controller.cwnd());
        assert!(controller.pacing_rate() != Some(Rate::ZERO), "no pace after {op:?}");
        assert!(!controller.phase().is_empty());
        check(&connection);
    }
}

/// A sender with the bookkeeping that a controller relies on, and no timers.
pub(crate) struct Connection<C> {
    pub(crate) controller: C,
    pub(crate) now: Time,
    pub(crate) state: RecoveryState,
    pub(crate) snd_una: u32,
    pub(crate) snd_nxt: u32,
    pub(crate) delivered: u64,
    pub(crate) lost: u64,
    pub(crate) in_flight: u32,
    pub(crate) srtt: Option<Span>,
    pub(crate) min_rtt: Option<Span>,
    pub(crate) is_cwnd_limited: bool,
    /// When pacing lets the next segment go.
    pub(crate) earliest_departure: Time,
    /// Segments sent and not cumulatively acknowledged, by sequence number.
    flight: VecDeque<Segment>,
    /// Nothing before this in `flight` is lost.
    lost_from: usize,
    sacked: u32,
    high_seq: u32,
    delivered_ce: u64,
    delivered_time: Time,
    first_sent_time: Time,
    app_limited_until: u64,
    last_sent: Time,
    max_in_flight: u32,
    may_undo: bool,
}

#[derive(Clone, Debug)]
struct Segment {
    place: Place,
    sent: Time,
    memo: Memo,
    is_retransmission: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Network,
    Lost,
    Received,
}

impl<C: Controller> Connection<C> {
    pub(crate) fn new(controller: C, setup: &Setup) -> Self {
        Self {
            controller,
            now: setup.now,
            state: RecoveryState::Open,
            // Close to the largest number, so that sequence numbers wrap.
            snd_una: u32::MAX - 100,
            snd_nxt: u32::MAX - 100,
            delivered: 0,
            lost: 0,
            in_flight: 0,
            srtt: None,
            min_rtt: None,
            is_cwnd_limited: false,
            earliest_departure: setup.now,
            flight: VecDeque::new(),
            lost_from: 0,
            sacked: 0,
            high_seq: 0,
            delivered_ce: 0,
            delivered_time: setup.now,
            first_sent_time: setup.now,
            app_limited_until: 0,
            last_sent: setup.now,
            max_in_flight: 0,
            may_undo: false,
        }
    }

    pub(crate) fn apply(&mut self, op: &Op) {
        match *op {
            Op::Send => {
                // More segments would only take time.
                for _ in 0..1_000 {
                    if !self.may_send() {
                        break;
                    }
                    self.send();
                }
            }
            Op::SendFew(most) => {
                for _ in 0..most {
                    if !self.may_send() {
                        return;
                    }
                    self.send();
                }
                self.run_dry();
            }
            Op::Wait(span) => self.now += span,
            Op::Deliver(count) | Op::Mark(count) => {
                let seqs = self.oldest_in_network(count);
                let is_marked = matches!(op, Op::Mark(_));
                if !seqs.is_empty() {
                    self.acknowledge(&seqs, &[], is_marked);
                }
            }
            Op::Lose(count) => {
                let seqs = self.oldest_in_network(count + 1);
                if seqs.len() > 1 {
                    let (lost, delivered) = seqs.split_at(seqs.len() - 1);
                    self.acknowledge(delivered, lost, false);
                }
            }
            Op::Timeout => {
                if !self.flight.is_empty() {
                    self.time_out();
                }
            }
            Op::Undo => {
                if self.may_undo {
                    self.undo();
                }
            }
            Op::Idle(span) => {
                while !self.flight.is_empty() {
                    while self.in_flight < self.flight.len() as u32 - self.sacked {
                        self.send();
                    }
                    let seqs = self.oldest_in_network(u32::MAX);
                    self.acknowledge(&seqs, &[], false);
                }
                self.run_dry();
                self.now += span;
                self.send();
            }
            Op::Unused => self.controller.on_unused_window(self.max_in_flight),
        }
    }

    pub(crate) fn may_send(&self) -> bool {
        self.in_flight < self.controller.cwnd()
    }

    /// The application has nothing more to send.
    pub(crate) fn run_dry(&mut self) {
        self.app_limited_until = (self.delivered + u64::from(self.in_flight)).max(1);
        self.is_cwnd_limited = false;
    }

    /// Sends a lost segment again, or else a new one; returns its sequence number.
    pub(crate) fn send(&mut self) -> u32 {
        if self.in_flight == 0 {
            let idle = self.now.since(self.last_sent);
            let rto = self.rto();
            let is_app_limited = self.app_limited_until > 0;
            self.controller.on_restart(&Restart { now: self.now, idle, rto, is_app_limited });
            self.first_sent_time = self.now;
            self.delivered_time = self.now;
        }
        let lost = self.first_lost();
        let retransmission = lost.is_some();
        self.controller.on_sent(&Sent {
            now: self.now,
            segments: 1,
            in_flight: self.in_flight,
            retransmission,
        });
        self.in_flight += 1;
        self.max_in_flight = self.max_in_flight.max(self.in_flight);
        self.last_sent = self.now;
        let segment = Segment {
            place: Place::Network,
            sent: self.now,
            memo: Memo {
                delivered: self.delivered,
                delivered_ce: self.delivered_ce,
                lost: self.lost,
                delivered_time: self.delivered_time,
                first_sent_time: self.first_sent_time,
                in_flight: self.in_flight,
                is_app_limited: self.app_limited_until > 0,
                is_rwnd_limited: false,
            },
            is_retransmission: retransmission,
        };
        if let Some(rate) = self.controller.pacing_rate() {
            self.earliest_departure =
                self.earliest_departure.max(self.now) + rate.time_for(u64::from(MTU));
        }
        if !self.may_send() {
            self.is_cwnd_limited = true;
        }
        match lost {
            Some(index) => {
                self.flight[index] = segment;
                self.snd_una.wrapping_add(index as u32)
            }
            None => {
                self.flight.push_back(segment);
                self.snd_nxt = self.snd_nxt.wrapping_add(1);
                self.snd_nxt.wrapping_sub(1)
            }
        }
    }

    fn first_lost(&mut self) -> Option<usize> {
        if self.in_flight + self.sacked == self.flight.len() as u32 {
            return None;
        }
        let index = (self.lost_from..self.flight.len())
            .find(|&index| self.flight[index].place == Place::Lost)?;
        self.lost_from = index;
        Some(index)
    }

    /// One acknowledgement: `delivered` arrived, which shows that `lost` did not. Both must be in
    /// the network.
    pub(crate) fn acknowledge(&mut self, delivered: &[u32], lost: &[u32], is_marked: bool) {
        let prior_in_flight = self.in_flight;
        let prior_state = self.state;
        let prior_una = self.snd_una;
        let newest = self.receive(delivered);
        let cumulative = self.pop_received();
        for &seq in lost {
            self.lose(seq.wrapping_sub(self.snd_una) as usize);
        }
        let marked = if is_marked { delivered.len() as u32 } else { 0 };
        self.delivered_ce += u64::from(marked);
        if self.delivered >= self.app_limited_until {
            self.app_limited_until = 0;
        }
        let rtt = (!newest.is_retransmission).then(|| self.now.since(newest.sent));
        if let Some(rtt) = rtt {
            self.min_rtt = Some(self.min_rtt.map_or(rtt, |least| least.min(rtt)));
            self.srtt = Some(self.srtt.map_or(rtt, |srtt| (srtt * 7 + rtt) / 8));
        }
        self.change_state(!lost.is_empty(), is_marked, prior_una);
        let ack_elapsed = self.now.since(newest.memo.delivered_time);
        let send_elapsed = newest.sent.since(newest.memo.first_sent_time);
        let interval = ack_elapsed.max(send_elapsed);
        let ack = Ack {
            now: self.now,
            delivered: delivered.len() as u32,
            cumulative,
            lost: lost.len() as u32,
            ce: marked,
            ece: is_marked,
            rtt,
            is_delayed: false,
            rate: (!interval.is_zero()).then(|| RateSample {
                delivered: (self.delivered - newest.memo.delivered) as u32,
                delivered_ce: (self.delivered_ce - newest.memo.delivered_ce) as u32,
                interval,
                lost: (self.lost - newest.memo.lost) as u32,
                prior: newest.memo,
                sent_time: newest.sent,
                is_too_short: self.min_rtt.is_some_and(|least| interval < least),
            }),
            prior_in_flight,
            in_flight: self.in_flight,
            snd_una: self.snd_una,
            snd_nxt: self.snd_nxt,
            total_delivered: self.delivered,
            total_delivered_ce: self.delivered_ce,
            total_lost: self.lost,
            state: self.state,
            prior_state,
            srtt: self.srtt,
            min_rtt: self.min_rtt,
            is_cwnd_limited: self.is_cwnd_limited,
            app_limited_until: self.app_limited_until,
            earliest_departure: self.earliest_departure,
            packets_out: self.flight.len() as u32,
            receive_window: u64::MAX,
        };
        self.controller.on_ack(&ack);
    }

    /// All that is in the network is deemed lost.
    pub(crate) fn time_out(&mut self) {
        for index in 0..self.flight.len() {
            if self.flight[index].place == Place::Network {
                self.lose(index);
            }
        }
        self.reduce(CongestionKind::Timeout);
    }

    /// What was deemed lost is still in the network.
    pub(crate) fn undo(&mut self) {
        for segment in &mut self.flight {
            if segment.place == Place::Lost {
                segment.place = Place::Network;
                self.in_flight += 1;
            }
        }
        self.may_undo = false;
        self.state = RecoveryState::Open;
        self.controller.on_undo(&Undo { now: self.now });
    }

    fn rto(&self) -> Span {
        self.srtt.map_or(Span::from_secs(1), |srtt| (srtt * 2).max(Span::from_millis(200)))
    }

    fn oldest_in_network(&self, most: u32) -> Vec<u32> {
        (self.flight.iter().enumerate())
            .filter(|(_, segment)| segment.place == Place::Network)
            .take(most as usize)
            .map(|(index, _)| self.snd_una.wrapping_add(index as u32))
            .collect()
    }

    /// Returns the one of the delivered segments that was sent last.
    fn receive(&mut self, delivered: &[u32]) -> Segment {
        for &seq in delivered {
            let segment = &mut self.flight[seq.wrapping_sub(self.snd_una) as usize];
            assert_eq!(segment.place, Place::Network, "a test delivers what is not on its way");
            segment.place = Place::Received;
        }
        let count = delivered.len() as u32;
        self.sacked += count;
        self.in_flight -= count;
        self.delivered += u64::from(count);
        self.delivered_time = self.now;
        let newest = (delivered.iter())
            .map(|seq| &self.flight[seq.wrapping_sub(self.snd_una) as usize])
            .max_by_key(|segment| segment.sent)
            .expect("an acknowledgement delivers something")
            .clone();
        self.first_sent_time = newest.sent;
        newest
    }

    fn pop_received(&mut self) -> u32 {
        let mut popped = 0;
        while self.flight.front().is_some_and(|segment| segment.place == Place::Received) {
            self.flight.pop_front();
            popped += 1;
        }
        self.lost_from = self.lost_from.saturating_sub(popped as usize);
        self.sacked -= popped;
        self.snd_una = self.snd_una.wrapping_add(popped);
        popped
    }

    fn lose(&mut self, index: usize) {
        let segment = &mut self.flight[index];
        assert_eq!(segment.place, Place::Network, "a test loses what is not on its way");
        segment.place = Place::Lost;
        self.lost_from = self.lost_from.min(index);
        self.in_flight -= 1;
        self.lost += 1;
        self.controller.on_lost(&Lost {
            now: self.now,
            memo: segment.memo,
            total_lost: self.lost,
            total_delivered: self.delivered,
            retransmission: segment.is_retransmission,
            by_tail_loss_probe: false,
        });
    }

    fn change_state(&mut self, has_losses: bool, is_marked: bool, prior_una: u32) {
        let is_undisturbed = matches!(self.state, RecoveryState::Open | RecoveryState::Disorder);
        // A reduction for marks lasts until what was sent after it is acknowledged.
        let left = self.high_seq.wrapping_sub(self.snd_una) as i32;
        let is_over = if self.state == RecoveryState::Cwr { left < 0 } else { left <= 0 };
        if !is_undisturbed && self.snd_una != prior_una && is_over {
            self.state = RecoveryState::Open;
            self.may_undo = false;
            self.controller.on_recovered(self.now);
        }
        match self.state {
            RecoveryState::Open | RecoveryState::Disorder | RecoveryState::Cwr if has_losses => {
                self.reduce(CongestionKind::Loss);
            }
            RecoveryState::Open | RecoveryState::Disorder if is_marked => {
                self.reduce(CongestionKind::Ecn);
            }
            RecoveryState::Open | RecoveryState::Disorder => {
                self.state =
                    if self.sacked > 0 { RecoveryState::Disorder } else { RecoveryState::Open };
            }
            _ => {}
        }
    }

    fn reduce(&mut self, kind: CongestionKind) {
        self.controller.on_congestion(&Congestion {
            now: self.now,
            kind,
            in_flight: self.in_flight,
            snd_nxt: self.snd_nxt,
            prior_state: self.state,
        });
        self.may_undo = kind != CongestionKind::Ecn && self.state != RecoveryState::Cwr;
        self.high_seq = self.snd_nxt;
        self.state = match kind {
            CongestionKind::Loss => RecoveryState::Recovery,
            CongestionKind::Ecn => RecoveryState::Cwr,
            CongestionKind::Timeout => RecoveryState::Loss,
        };
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
