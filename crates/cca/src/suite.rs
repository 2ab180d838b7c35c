//! What every controller must do. Built-in controllers and controllers from elsewhere are tested by the
//! same suite: a small transport that turns operations into legal calls, and what must hold after each.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use sojourn_core::{Purpose, Rate, Span, Stream, StreamAddress, Time};

use crate::{
    Ack, Config, Congestion, CongestionKind, Controller, EcnFeedback, Lost, Memo, Outputs,
    RateSample, RecoveryState, Restart, Sent, Setup, Undo,
};

/// Connections that [`check`] puts a controller through.
const CONNECTIONS: u64 = 40;

/// Runs the whole suite on what `config` makes: random connections, each twice.
///
/// # Errors
/// What it does that a controller must not do.
pub fn check(config: &Config) -> Result<(), String> {
    for seed in 0..CONNECTIONS {
        let ops = operations(seed);
        let first = answers(config, &ops)?;
        if first != answers(config, &ops)? {
            return Err("the same calls are answered otherwise the second time".into());
        }
    }
    Ok(())
}

/// What a controller answers after each of `ops`.
fn answers(config: &Config, ops: &[Op]) -> Result<Vec<Outputs>, String> {
    let setup = setup();
    let mut connection = Connection::new(config.build(setup.clone()), &setup);
    let answer = |op| {
        connection.apply(op);
        sound(&connection.controller).map_err(|problem| format!("{problem} after {op:?}"))?;
        Ok(connection.controller.outputs())
    };
    ops.iter().map(answer).collect()
}

/// What must hold of every controller at every moment.
///
/// # Errors
/// What does not hold.
pub(crate) fn sound(controller: &impl Controller) -> Result<(), String> {
    let window = controller.cwnd();
    if !(1..=1 << 31).contains(&window) {
        return Err(format!("a window of {window} segments"));
    }
    if controller.pacing_rate() == Some(Rate::ZERO) {
        return Err("a pacing rate of zero".into());
    }
    if controller.phase().is_empty() {
        return Err("a phase without a name".into());
    }
    Ok(())
}

fn operations(seed: u64) -> Vec<Op> {
    let mut random = StreamAddress { seed, run: 0 }.stream(0, Purpose::Application);
    (0..1 + random.below(300)).map(|_| Op::random(&mut random)).collect()
}

pub(crate) const MTU: u32 = 1_500;

pub(crate) fn setup() -> Setup {
    Setup {
        mss: 1_448,
        mtu: MTU,
        initial_cwnd: 10,
        now: Time::ZERO,
        handshake_rtt: None,
        tick: Span::ZERO,
        tick_phase: Span::ZERO,
        ecn: EcnFeedback::Classic,
        is_paced: false,
        random: StreamAddress { seed: 1, run: 0 }.stream(0, Purpose::Controller),
    }
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

impl Op {
    /// Mostly sending, waiting and delivering.
    fn random(random: &mut Stream) -> Self {
        match random.below(26) {
            0..6 => Self::Send,
            6 => Self::SendFew(1 + random.below(19) as u32),
            7..11 => Self::Wait(Span::from_micros(random.below(200_000))),
            11..19 => Self::Deliver(1 + random.below(199) as u32),
            19 => Self::Mark(1 + random.below(9) as u32),
            20..22 => Self::Lose(1 + random.below(9) as u32),
            22 => Self::Timeout,
            23 => Self::Undo,
            24 => Self::Idle(Span::from_millis(random.below(100_000))),
            _ => Self::Unused,
        }
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

/// The rate of delivery when a segment is acknowledged that left at `sent`, when the counters stood at `prior`. `counters` are
/// now: segments delivered, marked ones among them, and lost.
pub(crate) fn rate_sample(
    prior: Memo,
    sent: Time,
    now: Time,
    [delivered, delivered_ce, lost]: [u64; 3],
    min_rtt: Option<Span>,
) -> RateSample {
    let ack_elapsed = now.since(prior.delivered_time);
    let send_elapsed = sent.since(prior.first_sent_time);
    let interval = ack_elapsed.max(send_elapsed);
    RateSample {
        delivered: (delivered - prior.delivered) as u32,
        delivered_ce: (delivered_ce - prior.delivered_ce) as u32,
        interval,
        lost: (lost - prior.lost) as u32,
        prior,
        sent_time: sent,
        is_too_short: min_rtt.is_some_and(|least| interval < least),
    }
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
        let counters = [self.delivered, self.delivered_ce, self.lost];
        let rate = rate_sample(newest.memo, newest.sent, self.now, counters, self.min_rtt);
        let ack = Ack {
            now: self.now,
            delivered: delivered.len() as u32,
            cumulative,
            lost: lost.len() as u32,
            ce: marked,
            ece: is_marked,
            rtt,
            is_delayed: false,
            rate: (!rate.interval.is_zero()).then_some(rate),
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
            was_cwnd_full: self.is_cwnd_limited,
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

    pub(crate) fn rto(&self) -> Span {
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
