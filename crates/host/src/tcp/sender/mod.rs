//! The sending end of a connection: its state, what acknowledgements do to it, and its timers.

mod burst;
mod pacer;
mod persist;
mod rack;
mod recovery;
mod transmit;
mod undo;
mod window_use;

use sojourn_cca::{Ack, Config as CcaConfig, EcnFeedback, Memo, RecoveryState, Restart, Setup};
use sojourn_core::{
    AckBody, AckFlags, AckKind, Body, Ecn, Event, FlowSample, MAX_SACK_BLOCKS, Observer, Packet,
    Rate, SackBlock, Span, Stream, TcpEcn, Time, Who,
};

use super::control::Control;
use super::ecn::{EcnOffer, SenderEcn};
use super::prr::Prr;
use super::rate::RateSampler;
use super::rtt::RttEstimator;
use super::scoreboard::{Record, Scoreboard};
use super::timer_wheel::{KernelTimer, TimerWheel};
use super::window::ReceiveWindow;
use super::write_queue::WriteQueue;
use super::{Config, Endpoints};
use crate::source::Source;
use burst::Burst;
use pacer::Pacer;
use persist::Persist;
use rack::Rack;
use undo::{Undoing, answers_older};
use window_use::WindowUse;

/// Sends a source's bytes under a congestion controller.
pub struct Sender {
    pub(super) config: Config,
    pub(super) ends: Endpoints,
    pub(super) cca: Control,
    pub(super) source: Source,
    pub(super) board: Scoreboard,
    pub(super) rate: RateSampler,
    pub(super) rtt: RttEstimator,
    connection: Connection,
    /// Byte position of the first segment outstanding, and of the next one to be sent.
    pub(super) una_byte: u64,
    pub(super) nxt_byte: u64,
    /// Byte position up to which the receiver will take data.
    pub(super) window_end: u64,
    pub(super) queue: WriteQueue,
    /// Segments of a window for which the send buffer has been made large enough.
    buffer_serves: u32,
    /// The window had room beside a burst since the application last looked for memory.
    window_had_room: bool,
    /// Bursts of new data so far.
    bursts: u32,
    /// How many of the outstanding segments are selectively acknowledged, deemed lost,
    /// retransmitted.
    pub(super) sacked_out: u32,
    pub(super) lost_out: u32,
    pub(super) retrans_out: u32,
    pub(super) total_lost: u64,
    pub(super) state: RecoveryState,
    /// Recovery ends when everything before this segment is acknowledged.
    pub(super) high_seq: u32,
    pub(super) prr: Option<Prr>,
    rack: Rack,
    undo: Undoing,
    /// Segments from here on may have to be retransmitted.
    pub(super) retransmit_hint: u32,
    /// After a timeout: new data may show whether it was spurious (RFC 5682).
    pub(super) frto: bool,
    /// Since the last segment was acknowledged cumulatively.
    pub(super) timeouts_in_a_row: u32,
    pub(super) prefers_new_data: bool,
    /// A tail loss probe is out: recovery point, and whether it repeated old data.
    pub(super) probe: Option<Probe>,
    pub(super) timer: Timer,
    wheel: TimerWheel,
    persist: Persist,
    /// A probe timer must be set as soon as nothing more can leave at the moment.
    pub(super) probe_due: bool,
    pub(super) pacer: Pacer,
    usage: WindowUse,
    burst: Option<Burst>,
    pub(super) ecn: SenderEcn,
    /// The blocks of the acknowledgement before.
    sack_cache: [SackBlock; 3],
    pub(super) highest_sacked: u32,
    /// Where the newest segment ends that was not full.
    small_end: u64,
    /// Departure of the newest packet of the receiver, echoed to it.
    pub(super) echo: Time,
    phase: &'static str,
    pub(super) totals: Totals,
    started: Time,
    random: Stream,
    cca_config: CcaConfig,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Connection {
    /// The request leaves at the time given; its timer doubles.
    Requesting {
        at: Time,
        wait: Span,
        repeats: u32,
    },
    /// The answer has come, and its acknowledgement leaves before anything else.
    Answered,
    Established,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    pub(super) high: u32,
    pub(super) repeats: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimerKind {
    Retransmit,
    LossProbe,
    Reorder,
    /// The receiver's window is closed.
    Persist,
}

/// One timer that has one meaning at a time, as in the kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timer {
    pub(super) kind: TimerKind,
    set: KernelTimer,
}

impl Timer {
    pub(super) const OFF: Self = Self { kind: TimerKind::Retransmit, set: KernelTimer::OFF };

    pub(super) fn is_off(&self) -> bool {
        self.set.at.is_never()
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    pub(super) segments_sent: u64,
    pub(super) bytes_sent: u64,
    pub(super) retransmitted: u64,
    pub(super) bytes_retransmitted: u64,
    pub(super) timeouts: u64,
    pub(super) spurious: u64,
    pub(super) is_complete: bool,
}

/// What one acknowledgement means.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AckOutcome {
    /// The cumulative acknowledgement advanced.
    pub(super) advanced: bool,
    /// Segments acknowledged cumulatively, and those delivered for the first time in any way.
    pub(super) cumulative: u32,
    pub(super) delivered: u32,
    pub(super) newly_sacked: bool,
    /// A segment before the recovery point that was sent only once is delivered.
    pub(super) original_delivered: bool,
    pub(super) retransmission_acked: bool,
    pub(super) dsack: bool,
    pub(super) prior_highest_sacked: u32,
    /// Segments newly reported as marked, and whether that is congestion.
    ce: u32,
    pub(super) ece: bool,
    pub(super) echo: Time,
    /// Send times of the first and last segment acknowledged cumulatively, never retransmitted.
    first_acked: Option<Time>,
    last_acked: Option<Time>,
    first_sacked: Option<Time>,
    last_sacked: Option<Time>,
    last_acked_payload: u32,
}

impl Sender {
    pub fn new(
        config: Config,
        cca_config: CcaConfig,
        ends: Endpoints,
        source: Source,
        start: Time,
        random: Stream,
    ) -> Self {
        let setup = Setup {
            mss: config.mss,
            mtu: config.mss + config.header,
            initial_cwnd: config.initial_cwnd,
            now: start,
            handshake_rtt: None,
            tick: config.tick,
            tick_phase: config.tick_phase.unwrap_or_default(),
            ecn: EcnFeedback::Off,
            is_paced: config.pacing,
            random: random.clone(),
        };
        let cca = Control::new(&cca_config, setup);
        let phase = cca.phase();
        let queue = config.write_queue(cca.send_buffer_windows());
        Self {
            rtt: RttEstimator::new(config.rto_min),
            ends,
            cca,
            source,
            board: Scoreboard::new(),
            rate: RateSampler::default(),
            connection: Connection::Requesting {
                at: start + config.address_resolution,
                wait: Span::from_secs(1),
                repeats: 0,
            },
            una_byte: 0,
            nxt_byte: 0,
            small_end: 0,
            window_end: 0,
            queue,
            buffer_serves: 0,
            window_had_room: false,
            bursts: 0,
            sacked_out: 0,
            lost_out: 0,
            retrans_out: 0,
            total_lost: 0,
            state: RecoveryState::Open,
            high_seq: 0,
            prr: None,
            rack: Rack::default(),
            undo: Undoing::default(),
            retransmit_hint: 0,
            frto: false,
            timeouts_in_a_row: 0,
            prefers_new_data: false,
            probe: None,
            timer: Timer::OFF,
            wheel: config.timer_wheel(),
            persist: Persist::default(),
            probe_due: false,
            pacer: Pacer::new(config.pacing_slack, random.clone().next_u64()),
            usage: WindowUse::default(),
            burst: None,
            ecn: SenderEcn::off(),
            sack_cache: [SackBlock::default(); 3],
            highest_sacked: 0,
            echo: Time::ZERO,
            phase,
            totals: Totals::default(),
            started: start,
            random,
            cca_config,
            config,
        }
    }

    /// A packet from the receiver arrived.
    #[inline(always)]
    pub fn on_packet<O: Observer>(&mut self, now: Time, packet: &Packet, observer: &mut O) {
        if let Body::Ack(ack) = &packet.body {
            self.on_ack(now, packet, ack, observer);
            self.echo = packet.sent;
        } else if let Body::Handshake { asked, ecn } = &packet.body {
            self.on_established(now, now.since(*asked), *ecn);
            self.echo = packet.sent;
        }
    }

    /// A time that [`Sender::next_wake`] named has come.
    pub fn on_wake<O: Observer>(&mut self, now: Time, observer: &mut O) {
        if now >= self.source.next_wake() {
            self.source.on_wake(now);
        }
        if self.timer.set.is_over(now, &self.wheel) {
            let kind = self.timer.kind;
            self.timer = Timer::OFF;
            match kind {
                TimerKind::Retransmit => self.on_retransmission_timeout(now),
                TimerKind::LossProbe => self.on_probe_timeout(now),
                TimerKind::Reorder => self.on_reorder_timeout(now),
                TimerKind::Persist => self.on_persist_timeout(now),
            }
            self.tell_phase(now, observer);
        }
    }

    /// The application writes so many bytes more; its source is [`Source::when_told`].
    pub fn write(&mut self, bytes: u64) {
        self.source.write(bytes);
    }

    /// Its application offers nothing more from `now` on, or pauses, or writes at another rate: as
    /// [`Source::stop`], [`Source::pause`] and [`Source::set_rate`].
    pub fn stop(&mut self, now: Time) {
        self.source.stop(now);
    }

    pub fn pause(&mut self, now: Time, length: Span) {
        self.source.pause(now, length);
    }

    pub fn set_rate(&mut self, now: Time, rate: Rate) {
        if !self.config.send_buffer.is_limited() {
            self.queue.take_back(self.nxt_byte);
        }
        self.source.set_rate(now, rate, self.config.mss, self.queue.end());
    }

    /// The phase of its congestion controller.
    pub fn phase(&self) -> &'static str {
        self.cca.phase()
    }

    /// Bytes that the application has written and that have not been sent, if its source is
    /// [`Source::when_told`].
    pub fn unsent(&self) -> u64 {
        match self.source {
            Source::Paced { written, .. } => written.saturating_sub(self.nxt_byte),
            Source::Bulk { .. } | Source::OnOff { .. } => 0,
        }
    }

    /// The next packet that may leave now.
    #[inline(always)]
    pub fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        if !matches!(self.connection, Connection::Established) {
            return self.connect(now);
        }
        self.next_segment(now)
    }

    /// The next packet of the handshake.
    #[cold]
    #[inline(never)]
    fn connect(&mut self, now: Time) -> Option<Packet> {
        let Connection::Requesting { at, wait, repeats } = self.connection else {
            return Some(self.confirm(now));
        };
        if now < at {
            return None;
        }
        self.connection =
            Connection::Requesting { at: now + wait, wait: wait * 2, repeats: repeats + 1 };
        // Only the first request waited for the address.
        let waited = if repeats == 0 { self.config.address_resolution } else { Span::ZERO };
        let asked = now - waited;
        let ecn = self.offer().flags(repeats);
        Some(self.ends.packet(now, 60, Body::Handshake { asked, ecn }))
    }

    /// The third packet of the handshake (RFC 9293 section 3.5).
    fn confirm(&mut self, now: Time) -> Packet {
        self.connection = Connection::Established;
        let body = Body::Ack(AckBody {
            ack: 0,
            window: u32::try_from(self.first_window()).unwrap_or(u32::MAX),
            echo: self.echo,
            sack: [SackBlock::default(); MAX_SACK_BLOCKS],
            sack_count: 0,
            flags: AckFlags::HANDSHAKE,
            ecn: self.ecn.flags,
            ce_bytes: None,
            kind: AckKind::Ack,
        });
        self.ends.packet(now, self.config.header, body)
    }

    /// What either end offers before it has received anything.
    fn first_window(&self) -> u64 {
        ReceiveWindow::new(self.config.window(), self.config.mss, self.config.adv_win_scale)
            .at_first()
    }

    #[inline(always)]
    pub fn next_wake(&self) -> Time {
        match self.connection {
            // If the application writes meanwhile, its data counts from the moment of writing.
            Connection::Requesting { at, .. } => at.min(self.source.next_wake()),
            Connection::Answered | Connection::Established => {
                let others = self.pacer.wake.min(self.source.next_wake());
                self.timer.set.fires_or(others, &self.wheel)
            }
        }
    }

    /// A time that [`Sender::next_wake`] doesn't come before, which takes less to find.
    #[inline(always)]
    pub fn least_wake(&self) -> Time {
        match self.connection {
            Connection::Requesting { .. } => Time::ZERO,
            Connection::Answered | Connection::Established => {
                self.timer.set.at.min(self.pacer.wake).min(self.source.next_wake())
            }
        }
    }

    /// What `ss -tin` would show.
    pub fn sample(&self, now: Time) -> FlowSample {
        FlowSample {
            cwnd: self.cwnd(),
            ssthresh: self.cca.ssthresh(),
            pacing_rate: Some(self.pacer.rate).filter(|rate| !rate.is_unlimited()),
            delivery_rate: self.rate.delivery_rate(self.config.mss),
            delivery_rate_app_limited: self.rate.is_rate_app_limited(),
            srtt: self.rtt.srtt().unwrap_or_default(),
            rttvar: self.rtt.rttvar(),
            min_rtt: self.rtt.min(),
            rto: self.rtt.rto(),
            unacked: self.packets_out(),
            sacked: self.sacked_out,
            lost: self.lost_out,
            retrans: self.retrans_out,
            retrans_total: self.totals.retransmitted,
            lost_total: Some(self.total_lost),
            timeouts_total: self.totals.timeouts,
            spurious_total: Some(self.totals.spurious),
            delivered: self.rate.delivered,
            delivered_ce: self.rate.delivered_ce,
            bytes_sent: self.totals.bytes_sent,
            bytes_retrans: self.totals.bytes_retransmitted,
            bytes_acked: self.una_byte,
            not_sent: self.not_sent(now),
            rwnd: self.window_end - self.una_byte,
            busy: self.usage.busy(now),
            rwnd_limited: self.usage.rwnd_limited(now),
            sndbuf_limited: self.usage.sndbuf_limited(now),
            ecn: self.ecn.mode(),
            ecn_seen: self.ecn.saw_capable,
            phase: self.cca.phase(),
            bw: self.cca.bandwidth(),
            model_min_rtt: self.cca.model_min_rtt(),
            extra_acked: self.cca.extra_acked(),
            inflight_longterm: self.cca.inflight_longterm(),
            rounds: self.cca.round_count(),
        }
    }

    /// A transfer of a limited size is acknowledged whole.
    pub fn is_complete(&self) -> bool {
        self.totals.is_complete
    }

    /// The first segment not acknowledged, and the first one not sent.
    pub fn outstanding(&self) -> (u32, u32) {
        (self.board.first(), self.board.end())
    }

    /// Whether the counts of selectively acknowledged, lost and retransmitted segments match the
    /// scoreboard, and its bits its records.
    pub fn has_counted_right(&self) -> bool {
        let mut counted = (0, 0, 0);
        let mut open = 0;
        self.board.records().for_each(|record| {
            counted.0 += u32::from(record.is_sacked);
            counted.1 += u32::from(record.is_lost);
            counted.2 += u32::from(record.is_retransmitted);
            open += u32::from(record.is_lost & !record.is_retransmitted);
        });
        counted == (self.sacked_out, self.lost_out, self.retrans_out)
            && self.board.count_bits() == (self.sacked_out, open)
    }

    pub(super) fn packets_out(&self) -> u32 {
        self.board.end() - self.board.first()
    }

    #[inline]
    pub(super) fn in_flight(&self) -> u32 {
        self.packets_out() + self.retrans_out - self.sacked_out - self.lost_out
    }

    /// Segments that may be in flight now.
    #[inline]
    pub(super) fn cwnd(&self) -> u32 {
        match &self.prr {
            Some(prr) => prr.cwnd(),
            None => self.cca.cwnd(),
        }
    }

    fn offer(&self) -> EcnOffer {
        let request = self.cca_config.ecn_request();
        self.config.ecn_offer(request)
    }

    fn on_established(&mut self, now: Time, rtt: Span, answer: TcpEcn) {
        if !matches!(self.connection, Connection::Requesting { .. }) {
            return;
        }
        self.connection = Connection::Answered;
        self.rtt.on_sample(rtt, 0, 0);
        self.rtt.on_min_sample(now, rtt);
        self.ecn = SenderEcn::agree(self.offer(), self.cca_config.ecn_request(), answer);
        let setup = Setup {
            mss: self.config.mss,
            mtu: self.config.mss + self.config.header,
            initial_cwnd: self.config.initial_cwnd,
            now,
            handshake_rtt: Some(rtt),
            tick: self.config.tick,
            tick_phase: self.config.tick_phase.unwrap_or_default(),
            ecn: self.ecn.feedback,
            is_paced: self.config.pacing,
            random: self.random.clone(),
        };
        self.cca = Control::new(&self.cca_config, setup);
        self.rate.is_told = self.cca.reads_rate();
        // The answer shows the window without scaling (RFC 7323 section 2.2).
        self.window_end = self.first_window().min(65_535);
        self.queue.on_window(self.window_end);
        if self.ecn.is_request_marked(answer) {
            self.enter_cwr(now);
        }
        self.update_pacing_rate();
    }

    #[inline(always)]
    fn on_ack<O: Observer>(&mut self, now: Time, packet: &Packet, ack: &AckBody, observer: &mut O) {
        if ack.ack < self.board.first() || self.connection != Connection::Established {
            return;
        }
        let prior_in_flight = self.in_flight();
        let prior_una = self.board.first();
        let prior_lost = self.total_lost;
        let prior_state = self.state;
        let had_sacked = self.sacked_out > 0;

        let mut outcome = AckOutcome {
            echo: ack.echo,
            dsack: ack.flags.contains(AckFlags::DSACK),
            prior_highest_sacked: self.highest_sacked,
            ..AckOutcome::default()
        };
        if ack.sack_count > 0 {
            self.on_sack(now, ack, &mut outcome);
        }
        self.on_cumulative(now, ack.ack, &mut outcome);
        outcome.advanced = self.board.first() > prior_una;
        // A window may shrink (RFC 9293 section 3.8.6); what is older than the last word of it says nothing.
        let window_end = self.una_byte + u64::from(ack.window);
        if outcome.advanced || window_end > self.window_end {
            self.window_end = window_end;
            self.queue.on_window(u64::from(ack.window));
        }
        if outcome.advanced {
            self.timeouts_in_a_row = 0;
        }
        if self.ecn.feedback != EcnFeedback::Off {
            self.on_ecn(packet, ack, &mut outcome);
        }

        let (rtt, is_delayed) = self.take_rtt(now, &outcome, had_sacked, observer);
        if outcome.dsack {
            self.on_dsack(ack.sack[0]);
        }
        if self.probe.is_some() {
            self.on_probe_acked(now, ack, &outcome);
        }
        let mut set_timer = outcome.advanced;
        let is_dubious = !(outcome.advanced && self.state == RecoveryState::Open)
            || outcome.newly_sacked
            || outcome.ece
            || outcome.dsack;
        if is_dubious {
            // Linux concludes nothing else from it, with nothing outstanding.
            if self.timer.kind == TimerKind::Persist && self.board.is_empty() && !outcome.advanced {
                self.on_persist_answer(now);
                return;
            }
            set_timer &= !self.on_dubious_ack(now, prior_una, &outcome);
        }
        if set_timer {
            self.set_timer(now);
        }

        let lost = (self.total_lost - prior_lost) as u32;
        let min_rtt = self.rtt.min();
        self.rate.on_ack(now, outcome.delivered);
        let in_flight = self.in_flight();
        if let Some(prr) = &mut self.prr {
            prr.on_ack(outcome.delivered, in_flight, outcome.advanced && lost == 0);
        }
        let mut told = Ack {
            now,
            delivered: outcome.delivered,
            cumulative: outcome.cumulative,
            lost,
            ce: outcome.ce,
            ece: outcome.ece,
            rtt,
            is_delayed,
            rate: None,
            prior_in_flight,
            in_flight,
            snd_una: self.board.first(),
            snd_nxt: self.board.end(),
            total_delivered: self.rate.delivered,
            total_delivered_ce: self.rate.delivered_ce,
            total_lost: self.total_lost,
            state: self.state,
            prior_state,
            srtt: self.rtt.srtt(),
            min_rtt,
            is_cwnd_limited: self.usage.is_limited(&self.cca),
            was_cwnd_full: self.usage.was_full,
            app_limited_until: self.rate.app_limited,
            earliest_departure: self.pacer.stamp,
            packets_out: self.packets_out(),
            receive_window: self.window_end - self.una_byte,
        };
        self.rate.sample(now, self.total_lost, min_rtt, &self.board, &mut told.rate);
        self.cca.on_ack(&told);
        self.update_pacing_rate();
        self.tell_phase(now, observer);
        // A transfer is complete when everything sent has arrived.
        if self.board.is_empty() && outcome.advanced {
            self.check_completion(now, observer);
        }
    }

    /// Counts the marks that the acknowledgement reports, before anything is concluded from it.
    #[inline(never)]
    fn on_ecn(&mut self, packet: &Packet, ack: &AckBody, outcome: &mut AckOutcome) {
        self.ecn.saw_capable |= packet.ecn != Ecn::NotEct;
        if packet.ecn == Ecn::Ce {
            self.ecn.on_marked_ack();
        }
        let is_news = outcome.delivered > 0 || packet.sent > self.echo;
        (outcome.ce, outcome.ece) =
            self.ecn.on_ack(ack, outcome.delivered, is_news, self.config.mss);
        self.rate.delivered_ce += u64::from(outcome.ce);
    }

    /// Processes what the blocks report, except what the acknowledgement before already reported.
    /// The oldest block comes first, because segments that one acknowledgement reports show no
    /// reordering.
    #[inline(always)]
    fn on_sack(&mut self, now: Time, ack: &AckBody, outcome: &mut AckOutcome) {
        let mut cache = [SackBlock::default(); 3];
        let mut sack = ack.sack;
        let blocks = &mut sack
            [usize::from(ack.flags.contains(AckFlags::DSACK))..usize::from(ack.sack_count)];
        // They are at most three, which these comparisons sort.
        for place in [0, 1, 0] {
            if place + 1 < blocks.len() && blocks[place].start > blocks[place + 1].start {
                blocks.swap(place, place + 1);
            }
        }
        for (slot, block) in cache.iter_mut().zip(blocks) {
            *slot = *block;
            let end = block.end.min(self.board.end());
            let mut segment = block.start.max(ack.ack).max(self.board.first());
            while segment < end {
                let known =
                    self.sack_cache.iter().find(|old| old.start <= segment && segment < old.end);
                if let Some(old) = known {
                    segment = old.end;
                    continue;
                }
                segment = self.board.next_not_sacked(segment, end);
                if segment < end {
                    self.on_segment_sacked(now, segment, outcome);
                    segment += 1;
                }
            }
        }
        self.sack_cache = cache;
    }

    fn on_segment_sacked(&mut self, now: Time, segment: u32, outcome: &mut AckOutcome) {
        let record = self.board.record_mut(segment);
        self.lost_out -= u32::from(record.is_lost);
        self.retrans_out -= u32::from(record.is_retransmitted);
        self.rate.on_delivered(segment, record);
        record.is_sampled = true;
        let Record { sent, was_retransmitted, .. } = *record;
        self.rack.advance(now, segment, record, self.rtt.min());
        self.board.set_sacked(segment);
        self.sacked_out += 1;
        outcome.newly_sacked = true;
        outcome.delivered += 1;
        self.rate.delivered += 1;
        if was_retransmitted {
            outcome.retransmission_acked = true;
        } else {
            if outcome.first_sacked.is_none() {
                outcome.first_sacked = Some(sent);
            }
            outcome.last_sacked = Some(sent);
            if segment < self.high_seq {
                outcome.original_delivered = true;
            }
            if segment < self.highest_sacked {
                self.rack.on_reordering(self.highest_sacked - segment);
            }
        }
        self.highest_sacked = self.highest_sacked.max(segment);
    }

    #[inline(always)]
    fn on_cumulative(&mut self, now: Time, ack: u32, outcome: &mut AckOutcome) {
        let end = ack.min(self.board.end());
        outcome.cumulative = end.saturating_sub(self.board.first());
        while self.board.first() < end {
            let record = self.board.record(self.board.first());
            if !record.has_history {
                self.on_plain_acked(now, end, outcome);
            } else if record.is_sacked {
                self.on_sacked_acked(end, outcome);
            } else {
                self.on_repaired_acked(now, outcome);
            }
        }
    }

    /// Removes the first outstanding segments that were sent once and have no history. They left in
    /// order, so the estimators need only the last one.
    #[inline(always)]
    fn on_plain_acked(&mut self, now: Time, end: u32, outcome: &mut AckOutcome) {
        let first = self.board.first();
        let mut record = self.board.record(first);
        outcome.first_acked = outcome.first_acked.or(Some(record.sent));
        outcome.original_delivered |= first < self.high_seq;
        if first < outcome.prior_highest_sacked {
            self.rack.on_reordering(self.highest_sacked - first);
        }
        let mut last = first;
        while last + 1 < end {
            let next = self.board.record(last + 1);
            if next.has_history {
                break;
            }
            record = next;
            last += 1;
        }
        self.una_byte = record.byte + u64::from(record.payload);
        outcome.last_acked_payload = record.payload;
        outcome.last_acked = Some(record.sent);
        self.rate.on_delivered(last, record);
        self.rack.advance(now, last, record, self.rtt.min());
        self.board.drop_untouched(last);
        let count = last + 1 - first;
        outcome.delivered += count;
        self.rate.delivered += u64::from(count);
    }

    /// Removes the first outstanding segments up to `end` that were selectively acknowledged before, which was all that there is
    /// to learn from them.
    #[inline(never)]
    fn on_sacked_acked(&mut self, end: u32, outcome: &mut AckOutcome) {
        let first = self.board.first();
        outcome.retransmission_acked |= self.board.drop_sacked(end);
        self.sacked_out -= self.board.first() - first;
        let last = self.board.covered(self.board.first() - 1);
        self.una_byte = last.byte + u64::from(last.payload);
        outcome.last_acked_payload = last.payload;
    }

    /// Removes the first outstanding segment, which was retransmitted or lost before.
    #[inline(never)]
    fn on_repaired_acked(&mut self, now: Time, outcome: &mut AckOutcome) {
        let segment = self.board.first();
        let record = self.board.record(segment);
        self.una_byte += u64::from(record.payload);
        outcome.last_acked_payload = record.payload;
        self.lost_out -= u32::from(record.is_lost);
        self.retrans_out -= u32::from(record.is_retransmitted);
        self.rate.on_delivered(segment, record);
        if record.was_retransmitted {
            outcome.retransmission_acked = true;
        } else {
            outcome.first_acked = outcome.first_acked.or(Some(record.sent));
            outcome.last_acked = Some(record.sent);
            if segment < self.high_seq {
                outcome.original_delivered = true;
            }
            if segment < outcome.prior_highest_sacked {
                self.rack.on_reordering(self.highest_sacked - segment);
            }
        }
        outcome.delivered += 1;
        self.rate.delivered += 1;
        // If the echo is older than the repetition, the original arrived. Linux checks this for
        // cumulative acknowledgements; a selective one echoes another segment's timestamp.
        if !(record.was_retransmitted && answers_older(outcome.echo, record.sent)) {
            self.rack.advance(now, segment, record, self.rtt.min());
        }
        self.board.drop_first();
    }

    /// Updates the estimators; returns the sample for the controller, and whether the receiver may
    /// have delayed the acknowledgement.
    #[inline(always)]
    fn take_rtt<O: Observer>(
        &mut self,
        now: Time,
        outcome: &AckOutcome,
        had_sacked: bool,
        observer: &mut O,
    ) -> (Option<Span>, bool) {
        let acked = if outcome.retransmission_acked { None } else { outcome.first_acked };
        let is_delayed = acked.is_some()
            && outcome.cumulative == 1
            && outcome.delivered == 1
            && !had_sacked
            && outcome.last_acked_payload < self.config.mss;
        let for_controller = match (outcome.last_sacked, acked) {
            (Some(sacked), _) => Some(now.after(sacked)),
            (None, Some(_)) => outcome.last_acked.map(|sent| now.after(sent)),
            (None, None) => None,
        };
        let estimate = acked.or(outcome.first_sacked).map(|sent| now.after(sent)).or_else(|| {
            // The timestamp shows even for a retransmitted segment which copy arrived.
            (outcome.advanced && outcome.echo > Time::ZERO).then(|| now.since(outcome.echo))
        });
        if let Some(rtt) = estimate {
            if !is_delayed {
                self.rtt.on_min_sample(now, for_controller.unwrap_or(rtt));
            }
            self.rtt.on_sample(rtt, self.board.first(), self.board.end());
            observer.record(now, Who::Flow(self.ends.flow), &Event::Rtt { rtt });
        }
        (for_controller, is_delayed)
    }

    #[inline(never)]
    fn check_completion<O: Observer>(&mut self, now: Time, observer: &mut O) {
        if let Some(bytes) = self.source.transfer()
            && self.una_byte >= bytes
            && !self.totals.is_complete
        {
            self.totals.is_complete = true;
            let event = Event::Completed { bytes, took: now.since(self.started) };
            observer.record(now, Who::Flow(self.ends.flow), &event);
        }
    }

    #[inline(always)]
    fn tell_phase<O: Observer>(&mut self, now: Time, observer: &mut O) {
        let phase = self.cca.phase();
        // Phase names are constants, so comparing addresses usually suffices; the texts are
        // compared if these differ.
        if core::ptr::eq(phase, self.phase) {
            return;
        }
        if phase != self.phase {
            let event = Event::Phase { from: self.phase, to: phase };
            observer.record(now, Who::Flow(self.ends.flow), &event);
        }
        self.phase = phase;
    }

    /// The rate for pacing and burst sizes: the controller's own, or twice the window per round
    /// trip in early slow start and 1.2 times the window later.
    #[inline(always)]
    pub(super) fn update_pacing_rate(&mut self) {
        if let Some(rate) = self.cca.pacing_rate() {
            self.pacer.rate = rate;
            self.pacer.is_on = true;
            return;
        }
        self.pacer.is_on = self.config.pacing;
        let srtt = self.rtt.srtt_us_8();
        if srtt == 0 {
            return;
        }
        let cwnd = self.cwnd();
        let is_early = self.cca.ssthresh().is_none_or(|ssthresh| cwnd < ssthresh / 2);
        let percent = if is_early { 200 } else { 120 };
        let window = u64::from(cwnd.max(self.packets_out()));
        let bytes_per_sec = u64::from(self.config.mss) * window * percent * 80_000 / srtt;
        self.pacer.rate = Rate::from_bytes_per_sec(bytes_per_sec);
    }

    /// Arms the timer after an acknowledgement: for a tail loss probe if one is possible, otherwise
    /// for the retransmission timeout.
    #[inline(always)]
    fn set_timer(&mut self, now: Time) {
        if !self.schedule_probe() {
            self.rearm_retransmission(now);
        }
    }

    #[inline(never)]
    pub(super) fn rearm_retransmission(&mut self, now: Time) {
        if self.board.is_empty() {
            self.timer = Timer::OFF;
            return;
        }
        // A probe or reordering timer was running instead. The timeout still counts from the
        // transmission of the first outstanding segment.
        let wait = if self.timer.kind == TimerKind::Retransmit || self.timer.is_off() {
            self.rtt.rto()
        } else {
            self.until_timeout(now).max(Span::from_micros(1))
        };
        self.arm(TimerKind::Retransmit, now, wait);
    }

    /// Time left until the first segment outstanding times out.
    pub(super) fn until_timeout(&self, now: Time) -> Span {
        let sent = self.board.record(self.board.first()).sent;
        (sent + self.rtt.rto()).since(now)
    }

    pub(super) fn arm(&mut self, kind: TimerKind, now: Time, wait: Span) {
        self.timer = Timer { kind, set: KernelTimer::new(now, wait) };
        self.probe_due = false;
    }

    pub(super) fn restart(&mut self, now: Time, last_sent: Time) {
        self.cca.on_restart(&Restart {
            now,
            idle: now.since(last_sent),
            rto: if self.config.slow_start_after_idle { self.rtt.rto() } else { Span::MAX },
            is_app_limited: self.rate.app_limited != 0,
        });
        self.update_pacing_rate();
    }

    /// What the records of a burst keep; `in_flight` has its segments, too.
    pub(super) fn memo(&mut self, now: Time, in_flight: u32) -> Memo {
        let is_first = self.board.is_empty();
        self.rate.on_sent(now, is_first, in_flight, self.total_lost)
    }
}
