//! The congestion controller and its present answers.

use sojourn_cca::{
    Ack, Cca, Congestion, Controller, Lost, Outputs, Quantum, Restart, Sent, Setup, Undo,
};
use sojourn_core::{Rate, Span, Time};

/// The controller is asked once after everything that may change its answers, because the transport
/// reads its window and rate several times for every packet.
pub(super) struct Control {
    cca: Cca,
    says: Outputs,
    heeds_losses: bool,
}

impl Control {
    pub(super) fn new(config: &sojourn_cca::Config, setup: Setup) -> Self {
        let cca = config.build(setup);
        Self { says: cca.outputs(), heeds_losses: cca.heeds_losses(), cca }
    }

    #[inline]
    pub(super) fn cwnd(&self) -> u32 {
        self.says.cwnd
    }

    #[inline]
    pub(super) fn ssthresh(&self) -> Option<u32> {
        self.says.ssthresh
    }

    #[inline]
    pub(super) fn pacing_rate(&self) -> Option<Rate> {
        self.says.pacing_rate
    }

    #[inline]
    pub(super) fn send_quantum(&self) -> Quantum {
        self.says.send_quantum
    }

    #[inline]
    pub(super) fn phase(&self) -> &'static str {
        self.says.phase
    }

    pub(super) fn uses_prr(&self) -> bool {
        self.cca.uses_prr()
    }

    pub(super) fn send_buffer_windows(&self) -> u32 {
        self.cca.send_buffer_windows()
    }

    pub(super) fn reads_rate(&self) -> bool {
        self.cca.reads_rate()
    }

    pub(super) fn bandwidth(&self) -> Option<Rate> {
        self.cca.bandwidth()
    }

    pub(super) fn model_min_rtt(&self) -> Option<Span> {
        self.cca.model_min_rtt()
    }

    pub(super) fn extra_acked(&self) -> Option<u32> {
        self.cca.extra_acked()
    }

    pub(super) fn inflight_longterm(&self) -> Option<u32> {
        self.cca.inflight_longterm()
    }

    pub(super) fn round_count(&self) -> Option<u64> {
        self.cca.round_count()
    }

    /// Sending changes none of the controller's answers.
    #[inline]
    pub(super) fn on_sent(&mut self, sent: &Sent) {
        self.cca.on_sent(sent);
    }

    #[inline(always)]
    pub(super) fn on_ack(&mut self, ack: &Ack) {
        self.cca.answer(ack, &mut self.says);
    }

    #[inline]
    pub(super) fn on_lost(&mut self, lost: impl FnOnce() -> Lost) {
        if self.heeds_losses {
            self.tell(|cca| cca.on_lost(&lost()));
        }
    }

    pub(super) fn on_congestion(&mut self, congestion: &Congestion) {
        self.tell(|cca| cca.on_congestion(congestion));
    }

    pub(super) fn on_recovered(&mut self, now: Time) {
        self.tell(|cca| cca.on_recovered(now));
    }

    pub(super) fn on_undo(&mut self, undo: &Undo) {
        self.tell(|cca| cca.on_undo(undo));
    }

    pub(super) fn on_restart(&mut self, restart: &Restart) {
        self.tell(|cca| cca.on_restart(restart));
    }

    pub(super) fn on_unused_window(&mut self, used: u32) {
        self.tell(|cca| cca.on_unused_window(used));
    }

    fn tell(&mut self, what: impl FnOnce(&mut Cca)) {
        what(&mut self.cca);
        self.says = self.cca.outputs();
    }
}
