//! A home behind an access line.

use schemars::JsonSchema;
use serde::Deserialize;
use sojourn_core::Span;
use sojourn_link::{JitterConfig, LossConfig, RateSpec};

use super::{QueueSpec, Text};

/// A home behind an access line: hosts, a router, a modem in front of the line, and the provider's
/// end of it.
///
/// Data downwards waits at the provider (queue `provider`), crosses the line, and then the router
/// (`ingress`). Data upwards waits in the router (`router`), then in the modem (`modem`), and crosses
/// the line. The modem and the provider have plain buffers of their own, so the router's queues decide
/// only if they shape below the rate of the line. Hosts at home are clients.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GatewaySpec {
    /// Capacity of the line towards the home, with its framing: `50Mbps pppoe-ptm` (VDSL2), `16Mbps
    /// pppoe-llcsnap` (ADSL), `100Mbps docsis` (cable).
    pub down: Text<RateSpec>,
    /// Capacity of the line from the home.
    pub up: Text<RateSpec>,
    /// Propagation between home and servers, there and back, half of it each way.
    pub rtt: Text<Span>,
    /// Queue of the router towards the modem, as `tc` writes it. A shaper here, such as `cake
    /// bandwidth 9mbit`, keeps the modem's buffer empty.
    #[schemars(extend("default" = "pfifo limit 1000"))]
    pub queue: Option<Text<QueueSpec>>,
    /// Queue of the router towards the home, behind the line. A shaper here, such as `cake bandwidth
    /// 45mbit ingress`, keeps the provider's buffer empty.
    #[schemars(extend("default" = "pfifo limit 1000"))]
    pub ingress: Option<Text<QueueSpec>>,
    /// What the router's queue towards the modem sends at: `htb rate 9mbit` is a class of `htb` with
    /// `queue` in it, as the scripts called SQM set it up.
    #[schemars(extend("default" = "lan: no shaper"))]
    pub shaper: Option<Text<RateSpec>>,
    /// The same of the queue towards the home.
    #[schemars(extend("default" = "lan: no shaper"))]
    pub ingress_shaper: Option<Text<RateSpec>>,
    /// Buffer of the modem, in front of the line. Its size may be a time: `bfifo limit 250ms`.
    #[schemars(extend("default" = "bfifo limit 250ms"))]
    pub modem_queue: Option<Text<QueueSpec>>,
    /// Buffer of the provider, in front of the line.
    #[schemars(extend("default" = "bfifo limit 250ms"))]
    pub provider_queue: Option<Text<QueueSpec>>,
    /// Wires between the router and the modem, and within the home.
    #[schemars(extend("default" = "1Gbps"))]
    pub lan: Option<Text<RateSpec>>,
    /// Loss on the line, towards the home.
    #[schemars(extend("default" = "none"))]
    pub loss: Option<Text<LossConfig>>,
    /// Loss on the line, from the home.
    #[schemars(extend("default" = "none"))]
    pub up_loss: Option<Text<LossConfig>>,
    /// Random delay on the line, towards the home.
    #[schemars(extend("default" = "none"))]
    pub jitter: Option<Text<JitterConfig>>,
    /// Random delay on the line, from the home.
    #[schemars(extend("default" = "none"))]
    pub up_jitter: Option<Text<JitterConfig>>,
}
