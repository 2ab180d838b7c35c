//! Loss detection by time (RACK-TLP, RFC 8985) and the states that Linux goes through while it
//! repairs: Disorder, Cwr, Recovery, Loss. A reduction is undone when it proves to be spurious.

use sojourn_cca::{Congestion, CongestionKind, EcnFeedback, Lost, RecoveryState, Undo};
use sojourn_core::{AckBody, AckFlags, SackBlock, Span, Time};

use super::super::prr::Prr;
use super::{AckOutcome, Probe, Sender, TimerKind};

impl Sender {
    /// Processes an acknowledgement that is more than plain progress. True if it armed a reordering
    /// timer; then no other may be armed.
    pub(super) fn on_dubious_ack(
        &mut self,
        now: Time,
        prior_una: u32,
        outcome: &AckOutcome,
    ) -> bool {
        let una = self.board.first();
        self.undo.is_congested |= outcome.ece;
        if self.state == RecoveryState::Open {
            if self.retrans_out == 0 {
                self.undo.first_retransmission = None;
            }
        } else if una >= self.high_seq {
            match self.state {
                RecoveryState::Cwr if una != self.high_seq => {
                    self.end_reduction(now);
                    self.state = RecoveryState::Open;
                }
                RecoveryState::Recovery => {
                    if self.is_refuted(outcome) {
                        self.undo_reduction(now, false);
                    } else {
                        self.undo.disarm();
                        self.end_reduction(now);
                        self.narrow_reordering_window();
                    }
                    self.leave_recovery();
                }
                _ => {}
            }
        }

        let mut has_reorder_timer;
        match self.state {
            RecoveryState::Recovery => {
                if una > prior_una && self.undo.is_refuted_by_timestamp(outcome.echo) {
                    self.learn_of_reordering(prior_una);
                    if self.retrans_out > 0 {
                        return false;
                    }
                    self.forget_retransmissions();
                    self.undo_reduction(now, true);
                    self.keep_open();
                }
                if self.undo.is_refuted_by_dsack() {
                    self.undo_reduction(now, false);
                    self.forget_retransmissions();
                    self.keep_open();
                }
                has_reorder_timer = self.find_losses(now);
                if self.state != RecoveryState::Recovery && self.lost_out > 0 {
                    self.enter_recovery(now, outcome.ece);
                }
            }
            RecoveryState::Loss => {
                self.on_ack_in_loss(now, outcome);
                has_reorder_timer = self.find_losses(now);
                if self.state != RecoveryState::Loss {
                    has_reorder_timer |= self.enter_recovery_if_lost(now, outcome);
                }
            }
            _ => {
                if self.undo.is_refuted_by_dsack() {
                    self.undo_reduction(now, false);
                }
                has_reorder_timer = self.find_losses(now);
                self.enter_recovery_if_lost(now, outcome);
            }
        }
        has_reorder_timer
    }

    fn enter_recovery_if_lost(&mut self, now: Time, outcome: &AckOutcome) -> bool {
        if self.lost_out > 0 {
            self.enter_recovery(now, outcome.ece);
        } else {
            self.forget_retransmissions();
            if outcome.ece {
                self.enter_cwr(now);
            }
            if self.state != RecoveryState::Cwr {
                self.keep_open();
            }
        }
        false
    }

    fn keep_open(&mut self) {
        let has_holes = self.sacked_out + self.lost_out > 0;
        self.state = if has_holes { RecoveryState::Disorder } else { RecoveryState::Open };
        if has_holes {
            self.high_seq = self.board.end();
        }
    }

    /// Marks what RACK deems lost (RFC 8985 section 6.2 step 5). True if it armed a timer for
    /// segments that soon may be lost.
    fn find_losses(&mut self, now: Time) -> bool {
        if !core::mem::take(&mut self.rack.has_advanced) || self.board.is_empty() {
            return false;
        }
        let wait = self.mark_losses(now);
        if wait > Span::ZERO {
            self.arm(TimerKind::Reorder, now, wait + self.least_timeout());
        }
        wait > Span::ZERO
    }

    /// A shorter timer could fire too early, because the kernel's clock is coarse.
    fn least_timeout(&self) -> Span {
        self.config.tick * 2
    }

    /// Returns the longest wait of a segment that is not lost yet.
    fn mark_losses(&mut self, now: Time) -> Span {
        if self.board.is_out_of_order() {
            return self.mark_losses_out_of_order(now);
        }
        // The earlier they left, the earlier they are lost, so the first that is not ends it, and
        // the last one waits longest.
        let wait = self.rack.rtt + self.reordering_window();
        let newest = (self.rack.sent, self.rack.segment);
        loop {
            let Some(segment) = self.board.oldest_sent() else { return Span::ZERO };
            let sent = self.board.record(segment).sent;
            if (sent, segment) >= newest {
                return Span::ZERO;
            }
            if sent + wait > now {
                break;
            }
            self.mark_lost(now, segment, false);
        }
        let last = self.board.pass(|segment, record| (record.sent, segment) < newest);
        last.map_or(Span::ZERO, |last| (last.sent + wait).since(now))
    }

    /// The same after a reduction was undone, when what was deemed lost is listed behind what left
    /// later.
    #[cold]
    fn mark_losses_out_of_order(&mut self, now: Time) -> Span {
        let wait = self.rack.rtt + self.reordering_window();
        let newest = (self.rack.sent, self.rack.segment);
        let (lost, last) = self.board.pass_out_of_order(
            |segment, record| (record.sent, segment) < newest,
            |sent| sent + wait <= now,
        );
        for segment in lost {
            self.mark_lost(now, segment, false);
        }
        last.map_or(Span::ZERO, |last| (last + wait).since(now))
    }

    /// RFC 8985 section 6.2 step 4.
    fn reordering_window(&self) -> Span {
        let is_repairing = matches!(self.state, RecoveryState::Recovery | RecoveryState::Loss);
        if !self.rack.has_reordering && (is_repairing || self.sacked_out >= self.rack.reordering) {
            return Span::ZERO;
        }
        let quarter = self.rtt.min().unwrap_or_default() / 4;
        (quarter * self.rack.window_steps).min(Span::from_nanos(self.rtt.srtt_us_8() * 125))
    }

    fn mark_lost(&mut self, now: Time, segment: u32, by_tail_loss_probe: bool) {
        self.board.unlist(segment);
        let record = self.board.record_mut(segment);
        if record.is_sacked || (record.is_lost && !record.is_retransmitted) {
            return;
        }
        let retransmission = record.is_retransmitted;
        // A probe repeats a segment that was not deemed lost.
        self.lost_out += u32::from(!record.is_lost);
        self.board.set_lost(segment);
        self.retrans_out -= u32::from(retransmission);
        self.total_lost += 1;
        self.retransmit_hint = self.retransmit_hint.min(segment);
        let (total_lost, total_delivered) = (self.total_lost, self.rate.delivered);
        self.cca.on_lost(|| Lost {
            now,
            memo: self.board.record(segment).memo,
            total_lost,
            total_delivered,
            retransmission,
            by_tail_loss_probe,
        });
    }

    /// No retransmission is under way, so the next one counts as the first.
    fn forget_retransmissions(&mut self) {
        let may_be_under_way = self.retrans_out > 0
            || (!self.board.is_empty() && self.board.record(self.board.first()).was_retransmitted);
        if !may_be_under_way {
            self.undo.first_retransmission = None;
        }
    }

    fn enter_recovery(&mut self, now: Time, is_congested: bool) {
        let prior_state = self.state;
        self.forget_retransmissions();
        self.undo.disarm();
        self.undo.arm(self.board.first(), self.retrans_out);
        self.undo.is_congested = is_congested;
        if prior_state == RecoveryState::Cwr {
            self.deepen_reduction(now);
        } else if !prior_state.is_reducing() {
            self.begin_reduction(now, CongestionKind::Loss, prior_state);
        }
        self.state = RecoveryState::Recovery;
        self.high_seq = self.board.end();
    }

    pub(super) fn enter_cwr(&mut self, now: Time) {
        if !matches!(self.state, RecoveryState::Open | RecoveryState::Disorder) {
            return;
        }
        self.undo.disarm();
        self.begin_reduction(now, CongestionKind::Ecn, self.state);
        self.state = RecoveryState::Cwr;
        self.high_seq = self.board.end();
    }

    fn begin_reduction(&mut self, now: Time, kind: CongestionKind, prior_state: RecoveryState) {
        let cwnd = self.cwnd();
        self.owe_cwr();
        self.probe = None;
        self.tell_congestion(now, kind, prior_state);
        if self.cca.uses_prr() && kind != CongestionKind::Timeout {
            let ssthresh = self.cca.ssthresh().unwrap_or(cwnd);
            self.prr = Some(Prr::begin(cwnd, ssthresh));
        }
    }

    /// A loss while the window is being reduced for marks. Most controllers make no further
    /// reduction; if one lowers its threshold again, the reduction continues to the new threshold.
    fn deepen_reduction(&mut self, now: Time) {
        let cwnd = self.cwnd();
        self.tell_congestion(now, CongestionKind::Loss, RecoveryState::Cwr);
        if !self.cca.uses_prr() {
            self.prr = None;
            return;
        }
        let ssthresh = self.cca.ssthresh().unwrap_or(cwnd);
        match &mut self.prr {
            Some(prr) => prr.lower(ssthresh),
            None => self.prr = Some(Prr::begin(cwnd, ssthresh)),
        }
    }

    fn tell_congestion(&mut self, now: Time, kind: CongestionKind, prior_state: RecoveryState) {
        self.cca.on_congestion(&Congestion {
            now,
            kind,
            in_flight: self.in_flight(),
            snd_nxt: self.board.end(),
            prior_state,
        });
    }

    fn owe_cwr(&mut self) {
        self.ecn.owes_cwr = self.ecn.feedback == EcnFeedback::Classic;
    }

    fn end_reduction(&mut self, now: Time) {
        self.prr = None;
        self.cca.on_recovered(now);
    }

    fn leave_recovery(&mut self) {
        self.state = RecoveryState::Open;
        self.keep_open();
    }

    /// A recovery has ended that was needed.
    fn narrow_reordering_window(&mut self) {
        if self.rack.recoveries_left > 0 {
            self.rack.recoveries_left -= 1;
            if self.rack.recoveries_left == 0 {
                self.rack.window_steps = 1;
            }
        }
    }

    fn is_refuted(&self, outcome: &AckOutcome) -> bool {
        self.undo.is_refuted_by_dsack() || self.undo.is_refuted_by_timestamp(outcome.echo)
    }

    /// Undoes the reduction; with `unmark` the segments no longer count as lost, either.
    fn undo_reduction(&mut self, now: Time, unmark: bool) {
        if unmark {
            let mut segment = self.board.first();
            while self.lost_out > 0 {
                if self.board.record(segment).is_lost {
                    self.lost_out -= 1;
                    self.board.clear_lost(segment);
                }
                segment += 1;
            }
        }
        self.prr = None;
        if self.undo.is_congested {
            self.cca.on_recovered(now);
        } else {
            self.cca.on_undo(&Undo { now });
        }
        self.undo.disarm();
        self.totals.spurious += 1;
    }

    /// The first of the segments deemed lost was only late.
    fn learn_of_reordering(&mut self, first: u32) {
        let highest =
            if self.sacked_out > 0 { self.highest_sacked } else { self.board.first() - 1 };
        if first <= highest {
            self.rack.on_reordering(highest - first);
        }
    }

    /// RFC 8985 section 6.2 step 4 and RFC 3708: a report of a duplicate accounts for a
    /// retransmission of this episode. As on Linux, it widens the window if reordering was seen
    /// before, unless it reports the tail loss probe.
    pub(super) fn on_dsack(&mut self, duplicate: SackBlock) {
        let una = self.board.first();
        let segments = duplicate.end - duplicate.start;
        if let Some(open) = &mut self.undo.open_retransmissions
            && duplicate.end > self.undo.marker
        {
            *open = open.saturating_sub(segments);
        }
        if self.rack.has_reordering
            && !self.is_of_probe(duplicate)
            && self.rack.dsack_round.is_none_or(|end| una > end)
        {
            self.rack.dsack_round = Some(self.board.end());
            self.rack.window_steps = (self.rack.window_steps + 1).min(255);
            self.rack.recoveries_left = 16;
        }
    }

    pub(in crate::tcp) fn on_retransmission_timeout(&mut self, now: Time) {
        if self.board.is_empty() {
            return;
        }
        self.enter_loss(now);
        self.totals.timeouts += 1;
        self.timeouts_in_a_row += 1;
        // The timeout's retransmission replaces the rest of the burst.
        self.burst = None;
        let first = self.board.first();
        self.undo.on_retransmission(now, 1);
        self.retransmit(now, first, first + 1);
        self.rtt.back_off();
        self.arm(TimerKind::Retransmit, now, self.rtt.rto());
    }

    /// RFC 6298 section 5.4 and RFC 8985 section 7.5: everything sent long enough ago is lost.
    fn enter_loss(&mut self, now: Time) {
        let prior_state = self.state;
        self.forget_retransmissions();
        let is_undisturbed = matches!(self.state, RecoveryState::Open | RecoveryState::Disorder);
        let first = self.board.first();
        // The receiver dropped what it had acknowledged selectively (reneging, RFC 2018).
        let has_reneged = self.board.record(first).is_sacked;
        for segment in first..self.board.end() {
            let record = *self.board.record(segment);
            if has_reneged && record.is_sacked {
                self.board.clear_sacked(segment);
                self.sacked_out -= 1;
            }
            let is_recent = now.since(record.sent) < self.rack.rtt;
            if segment == first || has_reneged || !is_recent {
                self.mark_lost(now, segment, false);
            }
        }
        let is_new = is_undisturbed || self.high_seq <= first;
        // If segments were acknowledged after the last timeout, this one reduces the window again.
        let got_on = prior_state == RecoveryState::Loss && self.timeouts_in_a_row == 0;
        if is_new || got_on {
            self.undo.disarm();
            self.begin_reduction(now, CongestionKind::Timeout, prior_state);
            self.undo.arm(first, self.retrans_out);
        } else {
            self.owe_cwr();
            self.tell_congestion(now, CongestionKind::Timeout, prior_state);
        }
        self.prr = None;
        self.probe = None;
        self.state = RecoveryState::Loss;
        self.high_seq = self.board.end();
        // RFC 5682 section 2.1, and Linux: F-RTO is not used if the timeout interrupts a recovery.
        let is_repairing = matches!(prior_state, RecoveryState::Recovery | RecoveryState::Loss);
        self.frto = !is_repairing || self.timeouts_in_a_row > 0;
        self.prefers_new_data = false;
    }

    /// RFC 5682 section 3: checks whether what arrives after a timeout shows that nothing was lost.
    fn on_ack_in_loss(&mut self, now: Time, outcome: &AckOutcome) {
        let una = self.board.first();
        let has_recovered = una >= self.high_seq;
        self.prefers_new_data = false;
        if outcome.advanced && self.is_refuted(outcome) {
            self.undo_reduction(now, true);
            self.leave_recovery();
            return;
        }
        if self.frto {
            if outcome.original_delivered && outcome.newly_sacked {
                self.undo_reduction(now, true);
                self.leave_recovery();
                return;
            }
            if self.board.end() > self.high_seq {
                if outcome.newly_sacked || !outcome.advanced {
                    self.frto = false;
                }
            } else if outcome.advanced && !has_recovered {
                // Step 2b: send new data instead of repairing, and wait for its acknowledgements.
                self.high_seq = self.board.end();
                self.prefers_new_data = true;
                return;
            }
        }
        if has_recovered {
            self.undo.disarm();
            self.cca.on_recovered(now);
            self.narrow_reordering_window();
            self.leave_recovery();
        }
    }

    pub(super) fn on_reorder_timeout(&mut self, now: Time) {
        if self.board.is_empty() {
            return;
        }
        let before = self.in_flight();
        self.mark_losses(now);
        if before != self.in_flight() {
            if self.state != RecoveryState::Recovery {
                self.enter_recovery(now, false);
            }
            let in_flight = self.in_flight();
            if let Some(prr) = &mut self.prr {
                prr.on_ack(1, in_flight, false);
            }
        }
        if self.timer.is_off() {
            self.rearm_retransmission(now);
        }
    }

    /// Requests a tail loss probe (RFC 8985 section 7.2) unless repair is under way. Several bursts
    /// and acknowledgements of one moment set the timer once, at their end.
    #[inline(always)]
    pub(super) fn schedule_probe(&mut self) -> bool {
        let is_quiet = matches!(self.state, RecoveryState::Open | RecoveryState::Cwr);
        self.probe_due =
            is_quiet && !self.board.is_empty() && self.sacked_out == 0 && self.rtt.srtt().is_some();
        self.probe_due
    }

    /// Sets the timer of the requested probe.
    #[inline]
    pub(super) fn set_probe_timer(&mut self, now: Time) {
        if !core::mem::take(&mut self.probe_due) {
            return;
        }
        let two_srtt = Span::from_nanos(self.rtt.srtt_us_8() * 250);
        // The receiver may delay the acknowledgement of a lone segment.
        let margin =
            if self.packets_out() == 1 { self.config.rto_min } else { self.least_timeout() };
        let wait = (two_srtt + margin).min(self.until_timeout(now).max(Span::from_micros(1)));
        self.arm(TimerKind::LossProbe, now, wait);
    }

    pub(in crate::tcp) fn on_probe_timeout(&mut self, now: Time) {
        if self.board.is_empty() {
            return;
        }
        if self.probe.is_none() && self.burst.is_none() {
            let repeats = !self.send_probe_of_new_data(now);
            if repeats {
                // The probe is no repair, so it does not count for an undo.
                let last = self.board.end() - 1;
                self.retransmit(now, last, last + 1);
            }
            self.probe = Some(Probe { high: self.board.end(), repeats });
            // RFC 8985 section 7.3: the timeout counts from the probe.
            self.arm(TimerKind::Retransmit, now, self.rtt.rto());
            return;
        }
        self.arm(TimerKind::Retransmit, now, self.until_timeout(now).max(Span::from_micros(1)));
    }

    /// Both the original and the probe that repeated it arrived.
    fn is_of_probe(&self, duplicate: SackBlock) -> bool {
        duplicate.end - duplicate.start == 1
            && self.probe.is_some_and(|probe| probe.high == duplicate.end)
    }

    /// RFC 8985 section 7.4: was the probe needed?
    pub(super) fn on_probe_acked(&mut self, now: Time, ack: &AckBody, outcome: &AckOutcome) {
        let Some(probe) = self.probe else {
            return;
        };
        if ack.ack < probe.high {
            return;
        }
        if !probe.repeats || (ack.flags.contains(AckFlags::DSACK) && self.is_of_probe(ack.sack[0]))
        {
            self.probe = None;
        } else if ack.ack > probe.high {
            // More than the probe is acknowledged and no duplicate was reported, so it repaired a
            // loss.
            self.probe = None;
            self.begin_reduction(now, CongestionKind::Loss, self.state);
            self.end_reduction(now);
            self.keep_open();
        } else if !(outcome.advanced || outcome.newly_sacked) {
            self.probe = None;
        }
    }
}
