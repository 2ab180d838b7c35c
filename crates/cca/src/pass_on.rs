//! Passes calls on to a controller that is one of several.

/// All methods of [`Controller`](crate::Controller), each passed on to the controller inside.
/// `$each!(self, inner => call)` is a match that names the controller inside `inner` and makes the
/// call.
macro_rules! pass_on {
    ($each:ident) => {
        #[inline]
        fn on_sent(&mut self, sent: &$crate::Sent) {
            $each!(self, inner => inner.on_sent(sent));
        }

        #[inline]
        fn on_ack(&mut self, ack: &$crate::Ack) {
            $each!(self, inner => inner.on_ack(ack));
        }

        #[inline(always)]
        fn answer(&mut self, ack: &$crate::Ack, says: &mut $crate::Outputs) {
            $each!(self, inner => inner.answer(ack, says));
        }

        fn on_lost(&mut self, lost: &$crate::Lost) {
            $each!(self, inner => inner.on_lost(lost));
        }

        fn on_congestion(&mut self, congestion: &$crate::Congestion) {
            $each!(self, inner => inner.on_congestion(congestion));
        }

        fn on_recovered(&mut self, now: sojourn_core::Time) {
            $each!(self, inner => inner.on_recovered(now));
        }

        fn on_undo(&mut self, undo: &$crate::Undo) {
            $each!(self, inner => inner.on_undo(undo));
        }

        fn on_restart(&mut self, restart: &$crate::Restart) {
            $each!(self, inner => inner.on_restart(restart));
        }

        fn on_unused_window(&mut self, used: u32) {
            $each!(self, inner => inner.on_unused_window(used));
        }

        #[inline]
        fn cwnd(&self) -> u32 {
            $each!(self, inner => inner.cwnd())
        }

        fn ssthresh(&self) -> Option<u32> {
            $each!(self, inner => inner.ssthresh())
        }

        #[inline]
        fn pacing_rate(&self) -> Option<sojourn_core::Rate> {
            $each!(self, inner => inner.pacing_rate())
        }

        fn send_quantum(&self) -> $crate::Quantum {
            $each!(self, inner => inner.send_quantum())
        }

        #[inline]
        fn uses_prr(&self) -> bool {
            $each!(self, inner => inner.uses_prr())
        }

        fn send_buffer_windows(&self) -> u32 {
            $each!(self, inner => inner.send_buffer_windows())
        }

        fn reads_rate(&self) -> bool {
            $each!(self, inner => inner.reads_rate())
        }

        fn heeds_losses(&self) -> bool {
            $each!(self, inner => inner.heeds_losses())
        }

        #[inline]
        fn outputs(&self) -> $crate::Outputs {
            $each!(self, inner => inner.outputs())
        }

        #[inline]
        fn phase(&self) -> &'static str {
            $each!(self, inner => inner.phase())
        }

        fn bandwidth(&self) -> Option<sojourn_core::Rate> {
            $each!(self, inner => inner.bandwidth())
        }

        fn model_min_rtt(&self) -> Option<sojourn_core::Span> {
            $each!(self, inner => inner.model_min_rtt())
        }

        fn extra_acked(&self) -> Option<u32> {
            $each!(self, inner => inner.extra_acked())
        }

        fn inflight_longterm(&self) -> Option<u32> {
            $each!(self, inner => inner.inflight_longterm())
        }

        fn round_count(&self) -> Option<u64> {
            $each!(self, inner => inner.round_count())
        }
    };
}

pub(crate) use pass_on;
