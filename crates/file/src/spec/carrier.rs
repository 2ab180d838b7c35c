//! What joins more than two nodes.

use schemars::JsonSchema;
use serde::Deserialize;
use sojourn_core::Span;
use sojourn_link::{JitterConfig, LossConfig, PolicerConfig, RateSpec, ReorderConfig};

use super::line::{DirectionParts, direction};
use super::text::CarrierName;
use super::{Buffer, OneOrMany, QueueSpec, Text};

/// What joins several nodes of a free topology: a switch, or a medium that they share. Where packets
/// enter it and wait is a port, and its queue is called NAME.PORT.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CarrierSpec {
    /// How factors and claims refer to it: letters, digits, `-` and `_`.
    pub name: String,
    /// What it is, with its parameters: `switch buffer 1MB alpha 1`.
    pub kind: Text<CarrierName>,
    /// The nodes that it joins, if its kind makes the ports by itself.
    #[serde(default)]
    pub nodes: Vec<String>,
    /// Its ports, one by one, if its kind does not make them.
    #[serde(default)]
    pub port: Vec<PortSpec>,
}

/// A port of a carrier: a queue, and a line to a node.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PortSpec {
    /// How factors refer to it.
    pub name: String,
    /// Node where packets come out.
    pub to: String,
    /// Node or nodes whose packets enter here.
    #[schemars(extend("default" = "the nodes at the other ports"))]
    pub from: Option<OneOrMany>,
    /// Capacity.
    pub rate: Text<RateSpec>,
    /// Queue in front of it, as `tc` writes it. Its `limit` may be a time at this rate or a share of
    /// the bandwidth-delay product.
    pub queue: Text<QueueSpec>,
    /// Size of the queue, instead of its `limit`, as that of a link. A round trip is twice `delay`.
    #[schemars(extend("default" = "the limit of queue"))]
    pub buffer: Option<Text<Buffer>>,
    /// Propagation.
    #[schemars(extend("default" = "0s"))]
    pub delay: Option<Text<Span>>,
    /// Loss on the line, after the queue.
    #[schemars(extend("default" = "none"))]
    pub loss: Option<Text<LossConfig>>,
    /// Loss before the queue.
    #[schemars(extend("default" = "none"))]
    pub entry_loss: Option<Text<LossConfig>>,
    /// Delay on the line that varies, without reordering.
    #[schemars(extend("default" = "none"))]
    pub jitter: Option<Text<JitterConfig>>,
    /// Share of the packets that overtake others.
    #[schemars(extend("default" = "none"))]
    pub reorder: Option<Text<ReorderConfig>>,
    /// What drops packets before the queue where they exceed a rate.
    #[schemars(extend("default" = "none"))]
    pub policer: Option<Text<PolicerConfig>>,
}

impl PortSpec {
    pub fn parts(&self) -> DirectionParts<'_> {
        direction!(self)
    }
}
