//! The lines of a recording: JSON, one object each. `docs/replay.md` describes them.

use serde::{Deserialize, Serialize};

/// The version that is written, and those that are read. Of the first one captures are not known.
pub(crate) const VERSION: u32 = 2;
pub(crate) const VERSIONS: core::ops::RangeInclusive<u32> = 1..=VERSION;

#[derive(Debug, Deserialize, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Line {
    Call(Head),
    Sent {
        at_ns: u64,
        number: u64,
        bytes: u32,
        #[serde(default, skip_serializing_if = "is_video")]
        purpose: Use,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        probe: Option<u32>,
        #[serde(default)]
        in_flight_bytes: u64,
        #[serde(default)]
        queued_bytes: u64,
        #[serde(default)]
        queue_delay_ns: u64,
    },
    Frame {
        at_ns: u64,
        bytes: u32,
    },
    Capture {
        at_ns: u64,
    },
    Feedback {
        at_ns: u64,
        /// Number of the packet, time of arrival or null, mark.
        packets: Vec<(u64, Option<u64>, Mark)>,
        #[serde(default)]
        prior_in_flight_bytes: u64,
        #[serde(default)]
        in_flight_bytes: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        held_ns: Option<u64>,
    },
    ReceiverReport {
        at_ns: u64,
        fraction_lost: f64,
        cumulative_lost: i64,
        expected: u64,
        jitter_ns: u64,
        rtt_ns: Option<u64>,
    },
    Remb {
        at_ns: u64,
        rate_bps: u64,
    },
    Backlog {
        at_ns: u64,
        has_backlog: bool,
    },
    Wake {
        at_ns: u64,
    },
    Decision {
        at_ns: u64,
        target_bps: u64,
        #[serde(default)]
        pacing_bps: Option<u64>,
        #[serde(default)]
        padding_bps: u64,
        #[serde(default)]
        window_bytes: Option<u64>,
    },
}

/// The call that was recorded.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Head {
    pub version: u32,
    pub flow: String,
    /// The controller that decided, with its parameters.
    pub control: String,
    pub feedback: Format,
    pub start_ns: u64,
    pub start_rate_bps: Option<u64>,
    pub min_rate_bps: u64,
    pub max_rate_bps: u64,
    pub mtu_bytes: u32,
    pub fps: f64,
    /// Where the random numbers of the controller came from.
    #[serde(default)]
    pub seed: u64,
    #[serde(default)]
    pub run: u64,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Format {
    Twcc,
    Ccfb,
    Remb,
    Rr,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Use {
    #[default]
    Video,
    Audio,
    Repair,
    Fec,
    Padding,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Mark {
    NotEct,
    Ect1,
    Ect0,
    Ce,
}

/// A pair of enumerations with the same values.
macro_rules! same {
    ($here:ident, $there:ty { $($a:ident = $b:ident),+ }) => {
        impl From<$here> for $there {
            fn from(value: $here) -> Self {
                match value { $($here::$a => Self::$b),+ }
            }
        }

        impl From<$there> for $here {
            fn from(value: $there) -> Self {
                match value { $(<$there>::$b => Self::$a),+ }
            }
        }
    };
}

same!(Format, sojourn_media::control::FeedbackKind {
    Twcc = Twcc, Ccfb = Ccfb, Remb = Remb, Rr = ReceiverReports
});
same!(Use, sojourn_media::control::Purpose {
    Video = Video, Audio = Audio, Repair = Repair, Fec = Fec, Padding = Padding
});
same!(Mark, sojourn_core::Ecn { NotEct = NotEct, Ect1 = Ect1, Ect0 = Ect0, Ce = Ce });

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_video(purpose: &Use) -> bool {
    *purpose == Use::Video
}
