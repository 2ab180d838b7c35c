//! What every shape's lines have: a queue and a wire for each direction.

use schemars::JsonSchema;
use serde::Deserialize;
use sojourn_core::Span;
use sojourn_link::{JitterConfig, LossConfig, PolicerConfig, RateSpec, ReorderConfig};

use super::{Buffer, QueueSpec, Text};

/// The keys of a line, whatever shape it is part of.
#[derive(Clone, Debug)]
pub struct LineParts<'a> {
    pub rtt: Option<&'a Text<Span>>,
    pub delay: Option<&'a Text<Span>>,
    pub reverse_delay: Option<&'a Text<Span>>,
    pub forward: DirectionParts<'a>,
    pub reverse: DirectionParts<'a>,
}

/// The keys of one direction; those left out have the values of the other direction.
#[derive(Clone, Debug)]
pub struct DirectionParts<'a> {
    pub rate: &'a Text<RateSpec>,
    /// The name of the key with the rate.
    pub rate_key: &'static str,
    pub queue: &'a Text<QueueSpec>,
    /// The key that determines the queue's size: that of the size, or that of the queue.
    pub queue_key: &'static str,
    pub buffer: Option<Buffer>,
    pub entry_loss: LossConfig,
    pub loss: LossConfig,
    pub jitter: JitterConfig,
    pub reorder: ReorderConfig,
    pub policer: PolicerConfig,
}

/// The direction whose keys have no prefix, of any table that has them.
macro_rules! direction {
    ($table:expr) => {
        DirectionParts {
            rate: &$table.rate,
            rate_key: "rate",
            queue: &$table.queue,
            queue_key: if $table.buffer.is_some() { "buffer" } else { "queue" },
            buffer: $table.buffer.as_ref().map(|buffer| buffer.value),
            entry_loss: Text::value_or_default(&$table.entry_loss),
            loss: Text::value_or_default(&$table.loss),
            jitter: Text::value_or_default(&$table.jitter),
            reorder: Text::value_or_default(&$table.reorder),
            policer: Text::value_or_default(&$table.policer),
        }
    };
}

pub(super) use direction;

macro_rules! line {
    (
        $(#[$meta:meta])*
        pub struct $name:ident { $($(#[$own_meta:meta])* pub $own:ident: $own_type:ty,)* }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $($(#[$own_meta])* pub $own: $own_type,)*
            /// Capacity. An Ethernet packet of 1 514 bytes counts as such; `overhead N` adds to
            /// each packet what the medium needs beyond that, and `cake`'s words (`pppoe-llcsnap`,
            /// `ethernet` …) say what its framing makes of it.
            pub rate: Text<RateSpec>,
            /// Queue in front of it, as `tc` writes it. Its `limit` may be a time at this rate or a
            /// share of the bandwidth-delay product: `pfifo limit 50ms`, `pfifo limit 0.5bdp`.
            /// A queue that counts packets gets as many of 1 514 bytes as that is; a super-packet of a flow with
            /// `offload` counts as one of them, so there `bfifo` is what holds no more.
            pub queue: Text<QueueSpec>,
            /// Size of the queue, instead of its `limit`: a time at this rate (`50ms`), a share of the
            /// mean rate times the round-trip time (`0.5bdp`), a size (`64kB`) or packets (`100`).
            #[schemars(extend("default" = "the limit of queue"))]
            pub buffer: Option<Text<Buffer>>,
            /// Propagation there and back, half of it each way. Either this or `delay`.
            pub rtt: Option<Text<Span>>,
            /// Propagation in the forward direction.
            pub delay: Option<Text<Span>>,
            /// Propagation in the reverse direction.
            #[schemars(extend("default" = "as delay"))]
            pub reverse_delay: Option<Text<Span>>,
            /// Loss on the medium, after the queue.
            #[schemars(extend("default" = "none"))]
            pub loss: Option<Text<LossConfig>>,
            /// Loss before the queue, as an emulator in front of it causes.
            #[schemars(extend("default" = "none"))]
            pub entry_loss: Option<Text<LossConfig>>,
            /// Delay on the medium that varies, at random or at stated times, without reordering.
            #[schemars(extend("default" = "none"))]
            pub jitter: Option<Text<JitterConfig>>,
            /// Share of the packets that overtake others, as `netem` writes it: `25% 50% gap 5`.
            #[schemars(extend("default" = "none"))]
            pub reorder: Option<Text<ReorderConfig>>,
            /// Drops packets that exceed a rate, before the queue and before `entry_loss`: `rate
            /// 8mbit burst 64kb`.
            #[schemars(extend("default" = "none"))]
            pub policer: Option<Text<PolicerConfig>>,
            /// Capacity of the reverse direction.
            #[schemars(extend("default" = "as rate"))]
            pub reverse_rate: Option<Text<RateSpec>>,
            /// Queue of the reverse direction.
            #[schemars(extend("default" = "as queue"))]
            pub reverse_queue: Option<Text<QueueSpec>>,
            /// Size of the queue of the reverse direction.
            #[schemars(extend("default" = "as buffer, or the limit of reverse_queue where that is given"))]
            pub reverse_buffer: Option<Text<Buffer>>,
            /// Loss on the medium in the reverse direction.
            #[schemars(extend("default" = "none"))]
            pub reverse_loss: Option<Text<LossConfig>>,
            /// Loss before the reverse queue.
            #[schemars(extend("default" = "none"))]
            pub reverse_entry_loss: Option<Text<LossConfig>>,
            /// Random delay in the reverse direction.
            #[schemars(extend("default" = "none"))]
            pub reverse_jitter: Option<Text<JitterConfig>>,
            /// Share of the packets that overtake others in the reverse direction.
            #[schemars(extend("default" = "none"))]
            pub reverse_reorder: Option<Text<ReorderConfig>>,
            /// Drops packets that exceed a rate, before the queue of the reverse direction.
            #[schemars(extend("default" = "none"))]
            pub reverse_policer: Option<Text<PolicerConfig>>,
        }

        impl $name {
            pub fn line(&self) -> LineParts<'_> {
                LineParts {
                    rtt: self.rtt.as_ref(),
                    delay: self.delay.as_ref(),
                    reverse_delay: self.reverse_delay.as_ref(),
                    forward: direction!(self),
                    reverse: DirectionParts {
                        rate: self.reverse_rate.as_ref().unwrap_or(&self.rate),
                        rate_key: if self.reverse_rate.is_some() { "reverse_rate" } else { "rate" },
                        queue: self.reverse_queue.as_ref().unwrap_or(&self.queue),
                        queue_key: match (&self.reverse_buffer, &self.reverse_queue, &self.buffer) {
                            (Some(_), ..) => "reverse_buffer",
                            (None, Some(_), _) => "reverse_queue",
                            (None, None, Some(_)) => "buffer",
                            (None, None, None) => "queue",
                        },
                        buffer: match (&self.reverse_buffer, &self.reverse_queue) {
                            (Some(buffer), _) => Some(buffer.value),
                            (None, Some(_)) => None,
                            (None, None) => self.buffer.as_ref().map(|buffer| buffer.value),
                        },
                        entry_loss: Text::value_or_default(&self.reverse_entry_loss),
                        loss: Text::value_or_default(&self.reverse_loss),
                        jitter: Text::value_or_default(&self.reverse_jitter),
                        reorder: Text::value_or_default(&self.reverse_reorder),
                        policer: Text::value_or_default(&self.reverse_policer),
                    },
                }
            }
        }
    };
}

line! {
    /// One bottleneck. Its queues are called `queue` and `reverse_queue`; hosts on the near side
    /// send through the first and hosts on the far side through the second.
    pub struct PathSpec {}
}

line! {
    /// Equal bottlenecks in a row. Their queues are called `queue1`, `queue2` … and
    /// `reverse_queue1`, `reverse_queue2` …; `rtt` and `delay` are of the whole row.
    pub struct ParkingLotSpec {
        /// How many bottlenecks.
        #[schemars(range(min = 1, max = 64))]
        pub hops: u32,
    }
}

line! {
    /// A link between two nodes. Its queues are called NAME and `reverse_`NAME.
    pub struct LinkSpec {
        /// How factors and claims refer to it.
        pub name: String,
        /// Node at the near end.
        pub from: String,
        /// Node at the far end.
        pub to: String,
    }
}
