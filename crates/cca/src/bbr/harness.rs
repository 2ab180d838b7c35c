//! A sender on an ideal path, in which controllers run in their own tests: a rate, a round-trip
//! time and a buffer; one acknowledgement per segment. Every transmission has its own number, as in
//! QUIC.

use std::collections::VecDeque;

use sojourn_core::random::{Purpose, StreamAddress};
use sojourn_core::{Rate, Span, Time};

use crate::suite::rate_sample;
use crate::{
    Ack, Congestion, CongestionKind, Controller, EcnFeedback, Lost, Memo, RateSample,
    RecoveryState, Restart, Sent, Setup, Undo,
};

pub(crate) const MSS: u32 = 1448;
pub(crate) const SECOND: Span = Span::from_secs(1);
const RTO: Span = SECOND;

pub(crate) fn at(ms: u64) -> Time {
    Time::ZERO + Span::from_millis(ms)
}

pub(crate) fn mbps(rate: Option<Rate>) -> f64 {
    rate.expect("there is an estimate").as_mbps()
}

pub(crate) fn setup(seed: u64, rtt: Option<Span>) -> Setup {
    Setup {
        mss: MSS,
        mtu: 1500,
        initial_cwnd: 10,
        now: Time::ZERO,
        handshake_rtt: rtt,
        tick: Span::ZERO,
        tick_phase: Span::ZERO,
        ecn: EcnFeedback::Classic,
        is_paced: false,
        random: StreamAddress { seed, run: 0 }.stream(1, Purpose::Controller),
    }
}

/// What the network does. May be changed while running.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    pub(crate) rate: Rate,
    pub(crate) rtt: Span,
    /// Segments that may wait.
    pub(crate) buffer: u32,
    /// Acknowledgements come only at multiples of this.
    pub(crate) ack_slot: Span,
    /// One of this many segments is lost.
    pub(crate) drop_every: Option<u64>,
    /// A token bucket in front of the link, of a rate and a depth in segments.
    pub(crate) policer: Option<(Rate, f64)>,
}

impl Path {
    pub(crate) fn new(mbps: u64, rtt_ms: u64, buffer: u32) -> Self {
        Self {
            rate: Rate::from_bps(mbps * 1_000_000),
            rtt: Span::from_millis(rtt_ms),
            buffer,
            ack_slot: Span::ZERO,
            drop_every: None,
            policer: None,
        }
    }

    pub(crate) fn dropping_every(self, segments: u64) -> Self {
        Self { drop_every: Some(segments), ..self }
    }

    pub(crate) fn acking_every(self, ack_slot: Span) -> Self {
        Self { ack_slot, ..self }
    }

    pub(crate) fn policed(self, mbps: u64, depth: f64) -> Self {
        Self { policer: Some((Rate::from_bps(mbps * 1_000_000), depth)), ..self }
    }

    /// Segments that fill the pipe.
    pub(crate) fn bdp(&self) -> f64 {
        self.rate.as_bps() as f64 * self.rtt.as_secs_f64() / f64::from(8 * MSS)
    }
}

/// What was seen at one acknowledgement.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) at: Time,
    pub(crate) phase: &'static str,
    pub(crate) cwnd: u32,
    pub(crate) in_flight: u32,
    pub(crate) pacing: Rate,
    pub(crate) bandwidth: Option<Rate>,
    pub(crate) rtt: Span,
    pub(crate) delivered: u64,
}

struct Flying {
    number: u64,
    sent: Time,
    memo: Memo,
    /// When its acknowledgement comes; never, if the network dropped it.
    acked: Time,
}

pub(crate) struct Lab<C> {
    pub(crate) cc: C,
    pub(crate) path: Path,
    pub(crate) now: Time,
    /// The rate at which the application writes; without one it always has data.
    pub(crate) app_rate: Option<Rate>,
    pub(crate) paused: bool,
    /// Segments that the receiver allows in flight.
    pub(crate) rwnd: u32,
    pub(crate) rows: Vec<Row>,
    pub(crate) state: RecoveryState,
    pub(crate) delivered: u64,
    pub(crate) lost: u64,
    /// What the last acknowledgement reported.
    pub(crate) last_ack: Option<Ack>,

    flying: VecDeque<Flying>,
    next_number: u64,
    next_departure: Time,
    next_data: Time,
    delivered_time: Time,
    first_sent_time: Time,
    app_limited_until: u64,
    rwnd_limited_until: u64,
    cwnd_limited_until: u64,
    /// Recovery began in the flight that ended here; it ends when this is acknowledged.
    recovery_point: u64,
    recovery_until: u64,
    srtt: Option<Span>,
    min_rtt: Option<Span>,
    busy_until: Time,
    tokens: f64,
    tokens_at: Time,
}

impl<C: Controller> Lab<C> {
    pub(crate) fn new(cc: C, path: Path) -> Self {
        Self {
            cc,
            path,
            now: Time::ZERO,
            app_rate: None,
            paused: false,
            rwnd: u32::MAX,
            rows: Vec::new(),
            state: RecoveryState::Open,
            delivered: 0,
            lost: 0,
            last_ack: None,
            flying: VecDeque::new(),
            next_number: 0,
            next_departure: Time::ZERO,
            next_data: Time::ZERO,
            delivered_time: Time::ZERO,
            first_sent_time: Time::ZERO,
            app_limited_until: 0,
            rwnd_limited_until: 0,
            cwnd_limited_until: 0,
            recovery_point: 0,
            recovery_until: 0,
            srtt: None,
            min_rtt: None,
            busy_until: Time::ZERO,
            tokens: f64::INFINITY,
            tokens_at: Time::ZERO,
        }
    }

    pub(crate) fn in_flight(&self) -> u32 {
        self.flying.len() as u32
    }

    pub(crate) fn run(&mut self, span: Span) {
        let end = self.now + span;
        while self.step(end) {}
        self.now = end;
    }

    /// Runs until the phase is one of `phases`, or panics after a minute.
    pub(crate) fn run_to(&mut self, phases: &[&str]) {
        self.run_while(|lab| !phases.contains(&lab.cc.phase()));
    }

    pub(crate) fn run_while(&mut self, condition: impl Fn(&Self) -> bool) {
        let end = self.now + Span::from_secs(60);
        while condition(self) {
            assert!(self.step(end), "still {} at {}", self.cc.phase(), self.now);
        }
    }

    /// Phases in order, with the time each began.
    pub(crate) fn phases(&self) -> Vec<(Time, &'static str)> {
        let mut phases: Vec<(Time, &'static str)> = Vec::new();
        for row in &self.rows {
            if phases.last().is_none_or(|(_, phase)| *phase != row.phase) {
                phases.push((row.at, row.phase));
            }
        }
        phases
    }

    /// Share of the link's rate that was delivered from `from` until now.
    pub(crate) fn utilisation(&self, from: Time) -> f64 {
        let first = self.rows.iter().find(|row| row.at >= from).expect("there are rows since then");
        let last = self.rows.last().expect("there are rows");
        let bits = (last.delivered - first.delivered) * u64::from(8 * MSS);
        bits as f64 / last.at.since(first.at).as_secs_f64() / self.path.rate.as_bps() as f64
    }

    /// Drops single segments, `count` of them, each reported by an acknowledgement of its own.
    pub(crate) fn drop_one_by_one(&mut self, count: u32) {
        for _ in 0..count {
            self.path.drop_every = Some(1);
            let before = self.next_number;
            self.run_while(|lab| lab.next_number == before);
            self.path.drop_every = None;
            let before = self.next_number;
            self.run_while(|lab| lab.next_number < before + 2);
        }
    }

    pub(crate) fn undo(&mut self) {
        self.cc.on_undo(&Undo { now: self.now });
        if self.state != RecoveryState::Open {
            self.state = RecoveryState::Open;
            self.cc.on_recovered(self.now);
        }
    }

    /// Declares everything in flight lost, as a timeout does.
    pub(crate) fn time_out(&mut self) {
        while let Some(flying) = self.flying.pop_front() {
            self.lose(&flying);
        }
        let prior_state = self.state;
        self.state = RecoveryState::Loss;
        self.recovery_point = self.next_number;
        self.recovery_until = self.next_number + 1;
        self.congest(CongestionKind::Timeout, prior_state);
    }

    /// One event, if there is one before `end`.
    fn step(&mut self, end: Time) -> bool {
        let ack_at = self
            .flying
            .iter()
            .find(|flying| !flying.acked.is_never())
            .map_or(Time::NEVER, |flying| flying.acked);
        let send_at = self.send_time(ack_at);
        let at = ack_at.min(send_at);
        if at.is_never() && !self.flying.is_empty() && self.now + RTO <= end {
            self.now += RTO;
            self.time_out();
            return true;
        }
        if at > end {
            return false;
        }
        self.now = self.now.max(at);
        if send_at <= ack_at {
            self.send()
        } else {
            self.receive()
        }
        true
    }

    /// When the next segment leaves, if the acknowledgement at `ack_at` changes nothing.
    fn send_time(&mut self, ack_at: Time) -> Time {
        if self.in_flight() >= self.cc.cwnd() {
            return Time::NEVER;
        }
        let may = self.now.max(self.next_departure);
        let has_data = if self.paused { Time::NEVER } else { self.next_data };
        if has_data > may {
            self.app_limited_until = (self.delivered + u64::from(self.in_flight())).max(1);
        }
        let at = may.max(has_data);
        if self.in_flight() < self.rwnd {
            return at;
        }
        if at <= ack_at && !at.is_never() {
            self.rwnd_limited_until = (self.delivered + u64::from(self.in_flight())).max(1);
        }
        Time::NEVER
    }

    fn send(&mut self) {
        if self.flying.is_empty() {
            if self.next_number > 0 {
                self.cc.on_restart(&Restart {
                    now: self.now,
                    idle: self.now.since(self.next_departure),
                    rto: RTO,
                    is_app_limited: self.app_limited_until > 0,
                });
            }
            self.first_sent_time = self.now;
            self.delivered_time = self.now;
        }
        let in_flight = self.in_flight();
        let sent = Sent { now: self.now, segments: 1, in_flight, retransmission: false };
        self.cc.on_sent(&sent);
        let memo = Memo {
            delivered: self.delivered,
            delivered_ce: 0,
            lost: self.lost,
            delivered_time: self.delivered_time,
            first_sent_time: self.first_sent_time,
            in_flight: in_flight + 1,
            is_app_limited: self.app_limited_until > 0,
            is_rwnd_limited: self.rwnd_limited_until > 0,
        };
        let acked = self.cross();
        self.flying.push_back(Flying { number: self.next_number, sent: self.now, memo, acked });
        self.next_number += 1;
        if self.in_flight() >= self.cc.cwnd() {
            self.cwnd_limited_until = self.next_number;
        }
        if let Some(rate) = self.cc.pacing_rate() {
            let departure = self.now.max(self.next_departure);
            self.next_departure = departure + rate.time_for(u64::from(MSS));
        }
        if let Some(rate) = self.app_rate {
            self.next_data = self.next_data.max(self.now) + rate.time_for(u64::from(MSS));
        }
    }

    /// When the acknowledgement of a segment sent now comes back.
    fn cross(&mut self) -> Time {
        let serialisation = self.path.rate.time_for(u64::from(MSS));
        let waiting = self.busy_until.since(self.now).as_nanos() / serialisation.as_nanos().max(1);
        if waiting > u64::from(self.path.buffer) || !self.conforms() {
            return Time::NEVER;
        }
        if self.path.drop_every.is_some_and(|n| self.next_number % n == n - 1) {
            return Time::NEVER;
        }
        self.busy_until = self.busy_until.max(self.now) + serialisation;
        let arrival = (self.busy_until + self.path.rtt).as_nanos();
        let slot = self.path.ack_slot.as_nanos().max(1);
        Time::from_nanos(arrival.div_ceil(slot) * slot)
    }

    fn conforms(&mut self) -> bool {
        let Some((rate, depth)) = self.path.policer else { return true };
        let earned = rate.bytes_in(self.now.since(self.tokens_at)) as f64 / f64::from(MSS);
        self.tokens = (self.tokens + earned).min(depth);
        self.tokens_at = self.now;
        if self.tokens < 1.0 {
            return false;
        }
        self.tokens -= 1.0;
        true
    }

    fn receive(&mut self) {
        let prior_in_flight = self.in_flight();
        let prior_state = self.state;
        let mut newest: Option<Flying> = None;
        let (mut delivered, mut lost) = (0, Vec::new());
        while let Some(front) = self.flying.front() {
            let is_dropped = front.acked.is_never();
            let later = self.flying.iter().find(|flying| !flying.acked.is_never());
            if later.is_none_or(|later| later.acked > self.now) {
                break;
            }
            let flying = self.flying.pop_front().expect("it has a front");
            if is_dropped {
                lost.push(flying);
            } else {
                delivered += 1;
                newest = Some(flying);
            }
        }
        let newest = newest.expect("an acknowledgement was due");
        self.delivered += u64::from(delivered);
        self.delivered_time = self.now;
        self.first_sent_time = newest.sent;
        if self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        if self.delivered > self.rwnd_limited_until {
            self.rwnd_limited_until = 0;
        }
        for flying in &lost {
            self.lose(flying);
        }
        self.follow_state(prior_state, lost.last().map(|flying| flying.number));
        let rtt = self.now.since(newest.sent);
        self.min_rtt = Some(self.min_rtt.map_or(rtt, |min| min.min(rtt)));
        self.srtt = Some(self.srtt.map_or(rtt, |srtt| (srtt * 7 + rtt) / 8));
        let counters = [self.delivered, 0, self.lost];
        let rate = rate_sample(newest.memo, newest.sent, self.now, counters, self.min_rtt);
        let ack = Ack {
            now: self.now,
            delivered,
            cumulative: delivered,
            lost: lost.len() as u32,
            ce: 0,
            ece: false,
            rtt: Some(rtt),
            is_delayed: false,
            rate: Some(rate),
            prior_in_flight,
            in_flight: self.in_flight(),
            snd_una: (newest.number + 1) as u32,
            snd_nxt: self.next_number as u32,
            total_delivered: self.delivered,
            total_delivered_ce: 0,
            total_lost: self.lost,
            state: self.state,
            prior_state,
            srtt: self.srtt,
            min_rtt: self.min_rtt,
            is_cwnd_limited: newest.number < self.cwnd_limited_until,
            was_cwnd_full: newest.number < self.cwnd_limited_until,
            app_limited_until: self.app_limited_until,
            earliest_departure: self.next_departure.max(self.now),
            packets_out: self.in_flight(),
            receive_window: u64::from(self.rwnd) * u64::from(MSS),
        };
        self.cc.on_ack(&ack);
        self.last_ack = Some(ack);
        self.rows.push(Row {
            at: self.now,
            phase: self.cc.phase(),
            cwnd: self.cc.cwnd(),
            in_flight: self.in_flight(),
            pacing: self.cc.pacing_rate().expect("BBR paces"),
            bandwidth: self.cc.bandwidth(),
            rtt,
            delivered: self.delivered,
        });
    }

    /// Recovery ends when the replacement of the last loss of its flight is acknowledged.
    fn follow_state(&mut self, prior_state: RecoveryState, lost: Option<u64>) {
        if lost.is_some_and(|number| number < self.recovery_point) {
            self.recovery_until = self.next_number + 1;
        }
        let una = self.flying.front().map_or(self.next_number, |flying| flying.number);
        if self.state != RecoveryState::Open && una >= self.recovery_until {
            self.state = RecoveryState::Open;
            self.cc.on_recovered(self.now);
        }
        if lost.is_some() && self.state == RecoveryState::Open {
            self.state = RecoveryState::Recovery;
            self.recovery_point = self.next_number;
            self.recovery_until = self.next_number + 1;
            self.congest(CongestionKind::Loss, prior_state);
        }
    }

    fn congest(&mut self, kind: CongestionKind, prior_state: RecoveryState) {
        self.cc.on_congestion(&Congestion {
            now: self.now,
            kind,
            in_flight: self.in_flight(),
            snd_nxt: self.next_number as u32,
            prior_state,
        });
    }

    fn lose(&mut self, flying: &Flying) {
        self.lost += 1;
        self.cc.on_lost(&Lost {
            now: self.now,
            memo: flying.memo,
            total_lost: self.lost,
            total_delivered: self.delivered,
            retransmission: false,
            by_tail_loss_probe: false,
        });
    }
}

/// Rounds of 20 segments that fill the window, each acknowledged at once. Tests use them to feed
/// marks to a controller.
pub(crate) struct Rounds<C> {
    pub(crate) cc: C,
    pub(crate) now: Time,
    delivered: u64,
    ce: u64,
}

impl<C: Controller> Rounds<C> {
    pub(crate) fn new(cc: C) -> Self {
        Self { cc, now: Time::ZERO + SECOND, delivered: 0, ce: 0 }
    }

    /// A round of a millisecond, in which `marked` segments are marked.
    pub(crate) fn feed(&mut self, marked: u32) {
        self.feed_at(marked, Span::from_millis(1));
    }

    pub(crate) fn feed_at(&mut self, marked: u32, rtt: Span) {
        let prior = Memo { delivered: self.delivered, in_flight: 20, ..Memo::default() };
        self.delivered += 20;
        self.ce += u64::from(marked);
        self.now += rtt;
        self.cc.on_ack(&Ack {
            now: self.now,
            delivered: 20,
            cumulative: 20,
            lost: 0,
            ce: marked,
            ece: marked > 0,
            rtt: Some(rtt),
            is_delayed: false,
            rate: Some(RateSample {
                delivered: 20,
                delivered_ce: marked,
                interval: rtt,
                lost: 0,
                prior,
                sent_time: self.now - rtt,
                is_too_short: false,
            }),
            prior_in_flight: 20,
            in_flight: 20,
            snd_una: self.delivered as u32,
            snd_nxt: self.delivered as u32 + 20,
            total_delivered: self.delivered,
            total_delivered_ce: self.ce,
            total_lost: 0,
            state: RecoveryState::Open,
            prior_state: RecoveryState::Open,
            srtt: Some(rtt),
            min_rtt: Some(rtt),
            is_cwnd_limited: true,
            was_cwnd_full: true,
            app_limited_until: 0,
            earliest_departure: self.now,
            packets_out: 20,
            receive_window: u64::MAX,
        });
    }
}

/// Feeds random but legal reports to a controller, and checks after each that its answers make
/// sense. `bytes` select the reports.
pub(crate) fn torment(mut cc: impl Controller, bytes: &[u8]) {
    let mut choices = bytes.iter().copied();
    let mut now = Time::ZERO;
    let (mut delivered, mut lost, mut in_flight) = (0_u64, 0_u64, 0_u32);
    let mut state = RecoveryState::Open;
    let mut memos: VecDeque<(Time, Memo)> = VecDeque::new();
    while let Some(choice) = choices.next() {
        let amount = u32::from(choices.next().unwrap_or(1));
        now += Span::from_micros(u64::from(amount) * 977 * u64::from(choice >> 5));
        let prior_state = state;
        match choice % 8 {
            0..=2 => {
                for _ in 0..=amount % 32 {
                    if in_flight >= cc.cwnd() {
                        break;
                    }
                    in_flight += 1;
                    let memo = Memo {
                        delivered,
                        lost,
                        delivered_time: now,
                        first_sent_time: now,
                        in_flight,
                        is_app_limited: choice & 16 != 0,
                        is_rwnd_limited: amount & 8 != 0,
                        ..Memo::default()
                    };
                    memos.push_back((now, memo));
                }
            }
            3 | 4 => {
                let n = (amount % 16).min(in_flight);
                let newest = memos.drain(..n as usize).next_back();
                in_flight -= n;
                delivered += u64::from(n);
                if choice & 8 != 0 && state != RecoveryState::Open {
                    state = RecoveryState::Open;
                    cc.on_recovered(now);
                }
                let rate = newest.map(|(sent, prior)| RateSample {
                    delivered: (delivered - prior.delivered) as u32,
                    delivered_ce: amount % (n + 1),
                    interval: now.since(sent),
                    lost: (lost - prior.lost) as u32,
                    prior,
                    sent_time: sent,
                    is_too_short: amount % 7 == 0,
                });
                cc.on_ack(&Ack {
                    now,
                    delivered: n,
                    cumulative: n,
                    lost: 0,
                    ce: amount % (n + 1),
                    ece: amount & 64 != 0,
                    rtt: newest.map(|(sent, _)| now.since(sent)),
                    is_delayed: amount & 32 != 0,
                    rate,
                    prior_in_flight: in_flight + n,
                    in_flight,
                    snd_una: delivered as u32,
                    snd_nxt: delivered as u32 + in_flight,
                    total_delivered: delivered,
                    total_delivered_ce: delivered / 3,
                    total_lost: lost,
                    state,
                    prior_state,
                    srtt: Some(Span::from_millis(u64::from(amount))),
                    min_rtt: Some(Span::from_millis(1)),
                    is_cwnd_limited: amount & 16 != 0,
                    was_cwnd_full: amount & 48 == 48,
                    app_limited_until: 0,
                    earliest_departure: now + Span::from_micros(u64::from(amount) * 10),
                    packets_out: in_flight,
                    receive_window: u64::from(amount % 40) * u64::from(MSS),
                });
                if n > 0 && state == RecoveryState::Open {
                    assert!(cc.cwnd() >= 4, "window {} in {}", cc.cwnd(), cc.phase());
                }
            }
            5 => {
                for _ in 0..(amount % 8).min(in_flight) {
                    let (_, memo) = memos.pop_front().expect("as many as in flight");
                    in_flight -= 1;
                    lost += 1;
                    cc.on_lost(&Lost {
                        now,
                        memo,
                        total_lost: lost,
                        total_delivered: delivered,
                        retransmission: false,
                        by_tail_loss_probe: amount & 128 != 0,
                    });
                }
                let (kind, next) = match amount % 3 {
                    0 => (CongestionKind::Loss, RecoveryState::Recovery),
                    1 => (CongestionKind::Timeout, RecoveryState::Loss),
                    _ => (CongestionKind::Ecn, RecoveryState::Cwr),
                };
                state = next;
                let snd_nxt = delivered as u32 + in_flight;
                cc.on_congestion(&Congestion { now, kind, in_flight, snd_nxt, prior_state });
            }
            6 => {
                cc.on_undo(&Undo { now });
                if state != RecoveryState::Open {
                    state = RecoveryState::Open;
                    cc.on_recovered(now);
                }
            }
            _ => {
                now += Span::from_secs(u64::from(amount) % 12);
                cc.on_restart(&Restart {
                    now,
                    idle: Span::from_millis(u64::from(amount)),
                    rto: RTO,
                    is_app_limited: choice & 16 != 0,
                });
            }
        }
        assert!(cc.cwnd() >= 1, "no window in {}", cc.phase());
        assert!(cc.pacing_rate().is_some());
        assert!(!cc.phase().is_empty());
    }
}
