//! What changes when a sender enters a phase.

use schemars::JsonSchema;
use serde::Deserialize;
use sojourn_core::Span;
use sojourn_link::{LossConfig, RateSpec};

use super::{Text, Truth, WhenSpec};

/// What changes in the world when a sender enters a phase of its congestion control: the link of a
/// `queue`, or a `flow`. What the sender sends at that very moment is not concerned yet.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeSpec {
    /// How factors refer to it: letters, digits, `-` and `_`.
    pub name: String,
    /// `FLOW enters PHASE`, with a flow of one TCP connection and a phase of its congestion control as
    /// figures and claims call it. `PROBE_BW` means `PROBE_BW:UP` as well. A phase that begins and
    /// ends with one acknowledgement is not entered.
    pub when: Text<WhenSpec>,
    /// At which of its entries into the phase; 1 is the first.
    #[schemars(range(min = 1), extend("default" = 1))]
    pub occurrence: Option<u32>,
    /// How long after that the change comes.
    #[schemars(extend("default" = "0s"))]
    pub after: Option<Text<Span>>,
    /// The queue whose link changes. Either this or `flow`.
    pub queue: Option<String>,
    /// The flow or the group of flows that changes.
    pub flow: Option<String>,
    /// Of a queue: the new rate of its link, which must have had a fixed one; a packet that is being
    /// sent ends at the old rate. Of a bulk flow without `bytes`: what its application writes a second
    /// from then on, or `unlimited`.
    pub rate: Option<Text<RateSpec>>,
    /// Of a queue: the new loss on the medium of its link.
    pub loss: Option<Text<LossConfig>>,
    /// Of a queue: the new propagation of its link. Packets that are under way are not overtaken.
    pub delay: Option<Text<Span>>,
    /// Of a flow: it starts, and not before.
    #[schemars(extend("default" = false))]
    pub start: Option<Truth>,
    /// Of a flow with `app` bulk, without `bytes`, or on_off: its application writes nothing more; what it has written is still sent.
    #[schemars(extend("default" = false))]
    pub stop: Option<Truth>,
    /// Of a bulk flow without `bytes`: its application writes nothing for so long.
    pub pause: Option<Text<Span>>,
}
