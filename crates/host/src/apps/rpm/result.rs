//! From times of probes and bytes of intervals to round trips a minute.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use sojourn_core::{Confidence, Responsiveness, Span};

use super::RpmConfig;

/// What a probe's time is of: `tcp_f`, `tls_f`, `http_f` and `http_l` in the draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Connect,
    Tls,
    Get,
    Loaded,
}

/// What an interval brought.
#[derive(Clone, Debug, Default)]
struct Interval {
    bytes: u64,
    /// By [`Step`].
    probes: [Vec<Span>; 4],
}

#[derive(Clone, Debug)]
pub(super) struct Results {
    length: Span,
    average: usize,
    kept: f64,
    tolerance: f64,
    tls: bool,
    now: Interval,
    /// The latest intervals, so many as a moving average is of.
    past: VecDeque<Interval>,
    /// The latest averages of the goodput, and values of the responsiveness since it is stable.
    goodputs: VecDeque<f64>,
    values: VecDeque<f64>,
    is_saturated: bool,
    is_stable: bool,
}

impl Results {
    pub(super) fn new(config: &RpmConfig) -> Self {
        Self {
            length: config.interval,
            average: config.average as usize,
            kept: config.kept,
            tolerance: config.tolerance,
            tls: config.tls,
            now: Interval::default(),
            past: VecDeque::new(),
            goodputs: VecDeque::new(),
            values: VecDeque::new(),
            is_saturated: false,
            is_stable: false,
        }
    }

    /// So many bytes arrived over connections that load.
    pub(super) fn on_delivered(&mut self, bytes: u64) {
        self.now.bytes += bytes;
    }

    pub(super) fn on_probe(&mut self, step: Step, took: Span) {
        self.now.probes[step as usize].push(took);
    }

    /// Moving average of the goodput, bytes a second; an interval before the test brought none.
    pub(super) fn goodput(&self) -> f64 {
        let bytes: u64 = self.past.iter().map(|interval| interval.bytes).sum();
        bytes as f64 / (self.average as f64 * self.length.as_secs_f64())
    }

    /// True if the responsiveness is stable now, which ends the test. An interval in which no probe of a kind ended has none: the average
    /// without it is the one before once more, which says nothing of how stable it is.
    pub(super) fn end_interval(&mut self) -> bool {
        let interval = core::mem::take(&mut self.now);
        let has_both = [Step::Get, Step::Loaded]
            .iter()
            .all(|step| !interval.probes[*step as usize].is_empty());
        push(&mut self.past, interval, self.average);
        if !self.is_saturated {
            let goodput = self.goodput();
            push(&mut self.goodputs, goodput, self.average);
            self.is_saturated = self.is_steady(&self.goodputs);
        } else if has_both && let Some([_, _, rpm]) = self.rpm() {
            push(&mut self.values, rpm, self.average);
            self.is_stable = self.is_steady(&self.values);
        }
        self.is_stable
    }

    /// The standard deviation of a whole moving average's values is within the tolerance of the latest.
    fn is_steady(&self, values: &VecDeque<f64>) -> bool {
        let Some(latest) = values.back() else { return false };
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let variance = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / count;
        values.len() == self.average && libm::sqrt(variance) < self.tolerance * latest
    }

    /// The mean in milliseconds of the fastest probes of the latest intervals.
    fn trimmed_mean(&self, step: Step) -> Option<f64> {
        let probes = self.past.iter().flat_map(|interval| &interval.probes[step as usize]);
        let mut all: Vec<Span> = probes.copied().collect();
        all.sort_unstable();
        let kept = libm::ceil(self.kept * all.len() as f64) as usize;
        let sum: f64 = all.iter().take(kept).map(|took| took.as_millis_f64()).sum();
        (kept > 0).then(|| sum / kept as f64)
    }

    /// Round trips a minute of foreign probes, of self probes, and the mean of the two.
    fn rpm(&self) -> Option<[f64; 3]> {
        const MINUTE: f64 = 60_000.0;
        let mean = |step| self.trimmed_mean(step);
        let foreign = match self.tls {
            true => (mean(Step::Connect)? + mean(Step::Tls)? + mean(Step::Get)?) / 3.0,
            false => (mean(Step::Connect)? + mean(Step::Get)?) / 2.0,
        };
        let (foreign, loaded) = (MINUTE / foreign, MINUTE / mean(Step::Loaded)?);
        Some([foreign, loaded, (foreign + loaded) / 2.0])
    }

    /// What the test would report now, with `connections` that load; `None` while probes of a kind are missing.
    pub(super) fn result(&self, connections: u32) -> Option<Responsiveness> {
        let [foreign, loaded, rpm] = self.rpm()?;
        Some(Responsiveness {
            rpm,
            foreign,
            loaded,
            connections,
            confidence: match () {
                () if self.is_stable => Confidence::High,
                () if self.values.len() >= self.average => Confidence::Medium,
                () => Confidence::Low,
            },
        })
    }
}

fn push<T>(latest: &mut VecDeque<T>, value: T, most: usize) {
    latest.push_back(value);
    if latest.len() > most {
        latest.pop_front();
    }
}
