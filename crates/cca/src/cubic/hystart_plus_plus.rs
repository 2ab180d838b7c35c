//! HyStart++ ends the initial slow start before loss does (RFC 9406 section 4).

use sojourn_core::Span;

use crate::Ack;
use crate::reno::window::is_after;

/// The constants of section 4.3.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct HyStartConfig {
    pub(super) min_rtt_thresh: Span,
    pub(super) max_rtt_thresh: Span,
    pub(super) min_rtt_divisor: u32,
    pub(super) n_rtt_sample: u32,
    pub(super) css_growth_divisor: u32,
    pub(super) css_rounds: u32,
    /// Most segments that one acknowledgement may add; `None` where packets are paced.
    pub(super) l: Option<u32>,
}

#[derive(Clone, Debug)]
pub(super) struct HyStartPlusPlus {
    config: HyStartConfig,
    /// `None` before the first acknowledgement.
    window_end: Option<u32>,
    last_round_min_rtt: Option<Span>,
    current_round_min_rtt: Option<Span>,
    rtt_sample_count: u32,
    /// Conservative slow start, entered when a rise of the delay suggests a queue.
    css: Option<Css>,
}

#[derive(Clone, Debug)]
struct Css {
    baseline_min_rtt: Span,
    /// Rounds that have ended, including the one in which it began.
    rounds: u32,
}

impl HyStartPlusPlus {
    pub(super) fn new(config: HyStartConfig) -> Self {
        Self {
            config,
            window_end: None,
            last_round_min_rtt: None,
            current_round_min_rtt: None,
            rtt_sample_count: 0,
            css: None,
        }
    }

    /// Segments that the window grows by when `delivered` are acknowledged.
    pub(super) fn growth(&self, delivered: f64) -> f64 {
        let limited = self.config.l.map_or(delivered, |l| delivered.min(f64::from(l)));
        match self.css {
            Some(_) => limited / f64::from(self.config.css_growth_divisor),
            None => limited,
        }
    }

    /// Processes an acknowledgement, after the window grew by it; true when slow start is over.
    pub(super) fn is_over_after(&mut self, ack: &Ack) -> bool {
        let window_end = *self.window_end.get_or_insert(ack.snd_nxt);
        if let Some(rtt) = ack.rtt {
            let least = self.current_round_min_rtt.map_or(rtt, |least| least.min(rtt));
            self.current_round_min_rtt = Some(least);
            self.rtt_sample_count += 1;
            if self.rtt_sample_count >= self.config.n_rtt_sample {
                self.compare(least);
            }
        }
        // The acknowledgement that ends the round still belongs to it.
        !is_after(window_end, ack.snd_una) && self.end_round(ack.snd_nxt)
    }

    pub(super) fn is_conservative(&self) -> bool {
        self.css.is_some()
    }

    fn compare(&mut self, current: Span) {
        match (&self.css, self.last_round_min_rtt) {
            // The rise of the delay was temporary: slow start goes on.
            (Some(css), _) if current < css.baseline_min_rtt => self.css = None,
            (None, Some(last)) if current >= last + self.rtt_thresh(last) => {
                self.css = Some(Css { baseline_min_rtt: current, rounds: 0 });
            }
            _ => {}
        }
    }

    fn rtt_thresh(&self, last_round_min_rtt: Span) -> Span {
        let share = last_round_min_rtt / u64::from(self.config.min_rtt_divisor);
        share.min(self.config.max_rtt_thresh).max(self.config.min_rtt_thresh)
    }

    fn end_round(&mut self, snd_nxt: u32) -> bool {
        self.window_end = Some(snd_nxt);
        self.last_round_min_rtt = self.current_round_min_rtt.take();
        self.rtt_sample_count = 0;
        match &mut self.css {
            Some(css) => {
                css.rounds += 1;
                css.rounds >= self.config.css_rounds
            }
            None => false,
        }
    }
}
