//! What a scenario needs beside its keys: files, and the kinds that it may name.

use sojourn_core::Span;
use sojourn_link::{RateConfig, RateSpec};
use sojourn_scenario::Link;

use super::{Traces, Wrong};
use crate::document::Document;
use crate::registry::Registry;
use crate::spec::{DirectionParts, Text};

/// Where the scenario is written, the kinds that it may name, and the files that it names.
pub(super) struct Sources<'a> {
    pub(super) document: &'a Document,
    pub(super) registry: &'a Registry,
    pub(super) traces: &'a mut Traces,
}

impl Sources<'_> {
    /// Completes the rate that stands under `key` of the scenario.
    pub(super) fn rate(&mut self, rate: &Text<RateSpec>, key: &str) -> Result<RateConfig, Wrong> {
        self.traces.complete(rate, key, self.document)
    }

    /// One direction of a line that is written under `key`: a link, or a port that is made like one.
    /// The size of its queue may follow from `rtt`.
    pub(super) fn link(
        &mut self,
        name: String,
        key: &str,
        parts: &DirectionParts<'_>,
        delay: Span,
        rtt: Span,
    ) -> Result<Link, Wrong> {
        let rate = self.rate(parts.rate, &format!("{key}.{}", parts.rate_key))?;
        let kinds = self.registry.queues();
        let queue = parts.queue.value.complete(kinds, parts.buffer, rate.mean(), rtt);
        let queue = queue.and_then(|queue| queue.check_on(rate.constant()).map(|()| queue));
        let queue =
            queue.map_err(|problem| Wrong::new(format!("{key}.{}", parts.queue_key), problem))?;
        Ok(Link {
            name,
            queue,
            rate,
            delay,
            policer: parts.policer.clone(),
            entry_loss: parts.entry_loss.clone(),
            loss: parts.loss.clone(),
            jitter: parts.jitter.clone(),
            reorder: parts.reorder.clone(),
        })
    }
}
