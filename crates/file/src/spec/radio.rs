//! A radio cell: an access point, and stations that share its channel.

use schemars::JsonSchema;
use serde::Deserialize;
use sojourn_core::{Param, Params, Span};
use sojourn_wifi::mac::edca::WrittenParameters;
use sojourn_wifi::ofdma::Ofdma;
use sojourn_wifi::phy::Mode;
use sojourn_wifi::rate::{ControlSpec, Fading, MinstrelConfig, Place, Presence, SignalConfig};

use super::{OfdmaSpec, ProtectionSpec, QueueSpec, Retries, RtsThreshold, Text, Truth};

/// What of a radio has parameters: name, what it is, parameters.
pub const RADIO: [(&str, &str, &[Param]); 4] =
    [entry::<Ofdma>(), entry::<SignalConfig>(), entry::<Fading>(), entry::<MinstrelConfig>()];

const fn entry<P: Params>() -> (&'static str, &'static str, &'static [Param]) {
    (P::NAME, P::DOC, P::PARAMS)
}

/// A radio cell of a free topology. Its stations are nodes. Each has two ports, whose queues are
/// NAME.STATION-down and NAME.STATION-up.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RadioSpec {
    /// How factors and claims refer to it: letters, digits, `-` and `_`.
    pub name: String,
    /// The node that is the access point.
    pub ap: String,
    /// How packets wait in the access point. `fifo`: 1 000 packets above a driver that manages
    /// nothing. `fq_codel`: that discipline there. `qdisc`: what `queue` says. `fq-mac`: queueing in the
    /// MAC, stations in turn. `airtime`: the same, stations by airtime. `airtime-no-sparse`: without
    /// its preference for stations that have little to send. `mac80211`: as Linux 6.18.
    #[schemars(extend("default" = "mac80211"))]
    pub queueing: Option<Queueing>,
    /// The discipline above the driver, as `tc` writes it; for `queueing = "qdisc"`.
    pub queue: Option<Text<QueueSpec>>,
    /// Longest time of an aggregate on the air.
    #[schemars(extend("default" = "5.484ms"))]
    pub aggregate_time: Option<Text<Span>>,
    /// Most frames in an aggregate; 1 for no aggregation. The block ack window stays that of the mode.
    #[schemars(extend("default" = "64, for a mode of 802.11ax 256, for one of 802.11a 1"))]
    pub aggregate_frames: Option<u16>,
    /// Most bytes of an A-MSDU; 0 for none. 802.11n allows 4065 inside aggregates and 7935 without, 802.11ax 11398. Packets
    /// share a frame as far as they fit: two of 1500 bytes need 3046.
    #[schemars(extend("default" = "0"))]
    pub amsdu: Option<u32>,
    /// Longer frames and aggregates are sent behind an RTS; `never` for none.
    #[schemars(extend("default" = "never"))]
    pub rts_threshold: Option<Text<RtsThreshold>>,
    /// An RTS and a CTS in this mode go before every frame of 802.11n and 802.11ax, as the standard asks in cells with
    /// older stations: `dsss 11`, `ofdm 24`, or `off`.
    #[schemars(extend("default" = "off"))]
    pub protection: Option<Text<ProtectionSpec>>,
    /// How stations and access point contend. `edca`: by access categories (QoS). `dcf`: all traffic in one category, with
    /// the parameters `be`; counters step after idle slots, and frames have no QoS Control. It is 802.11a's, without aggregates.
    #[schemars(extend("default" = "edca"))]
    pub access: Option<Access>,
    /// What a transmitter does that has received no BlockAck. `repeat`: sends the frames again. `request`: asks for it with a
    /// BlockAckReq, and repeats what the answer leaves open.
    #[schemars(extend("default" = "repeat"))]
    pub lost_block_ack: Option<LostBlockAck>,
    /// Whether a CF-End gives back what is left of a TXOP.
    #[schemars(extend("default" = "off"))]
    pub cf_end: Option<Truth>,
    /// Whether bystanders take a collision for a frame that they can't read, and so wait for EIFS after it.
    #[schemars(extend("default" = "off"))]
    pub eifs_after_collisions: Option<Truth>,
    /// Attempts before a frame is given up, 1 to 255; `never` for as many as it takes.
    #[schemars(extend("default" = "7"))]
    pub retries: Option<Retries>,
    /// Access parameters of the access category BK: `cw 15 1023 aifsn 7 txop 0us`. Which category a packet
    /// is of follows from the `dscp` of its flow (RFC 8325). What is left out is as in BE.
    #[schemars(extend("default" = "cw 15 1023 aifsn 7"))]
    pub bk: Option<Text<WrittenParameters>>,
    /// Those of BE, or with `access = "dcf"` those of all traffic, for which `aifsn 2` is DIFS.
    #[schemars(extend("default" = "cw 15 1023 aifsn 3, with DCF aifsn 2"))]
    pub be: Option<Text<WrittenParameters>>,
    /// Those of VI.
    #[schemars(extend("default" = "cw 7 15 aifsn 2"))]
    pub vi: Option<Text<WrittenParameters>>,
    /// Those of VO.
    #[schemars(extend("default" = "cw 3 7 aifsn 2"))]
    pub vo: Option<Text<WrittenParameters>>,
    /// Those with which the access point contends, where they are not those of its stations. Access points of
    /// 802.11 have `be` with a window of at most 63, and `vi` and `vo` with `aifsn 1`.
    #[schemars(extend("default" = "as bk"))]
    pub ap_bk: Option<Text<WrittenParameters>>,
    /// Those of BE.
    #[schemars(extend("default" = "as be"))]
    pub ap_be: Option<Text<WrittenParameters>>,
    /// Those of VI.
    #[schemars(extend("default" = "as vi"))]
    pub ap_vi: Option<Text<WrittenParameters>>,
    /// Those of VO.
    #[schemars(extend("default" = "as vo"))]
    pub ap_vo: Option<Text<WrittenParameters>>,
    /// Several stations in one PPDU: `off`, or `on` with parameters of `ofdma`. All stations of 802.11ax then have
    /// one width.
    #[schemars(extend("default" = "off"))]
    pub ofdma: Option<Text<OfdmaSpec>>,
    /// Transmit power, path loss and receivers, for stations that have a `distance`: parameters of
    /// `signal`.
    #[schemars(extend("default" = "power 20 loss 46.7 exponent 3 noise_figure 7 slope 1"))]
    pub signal: Option<Text<SignalConfig>>,
    /// Its stations.
    #[serde(default)]
    pub station: Vec<StationSpec>,
}

/// How packets wait in an access point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Queueing {
    Fifo,
    #[serde(rename = "fq_codel")]
    FqCodel,
    Qdisc,
    FqMac,
    Airtime,
    AirtimeNoSparse,
    #[default]
    Mac80211,
}

/// How nodes of a cell contend for the medium.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    #[default]
    Edca,
    Dcf,
}

/// What a transmitter does if a BlockAck does not come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LostBlockAck {
    #[default]
    Repeat,
    Request,
}

/// A station of a radio cell, and a node of that name.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StationSpec {
    /// Of the node.
    pub name: String,
    /// This many stations of this kind, named NAME.1, NAME.2 …
    #[schemars(range(min = 1, max = 2000), extend("default" = 1))]
    pub count: Option<u16>,
    /// How the access point sends to it: `ht mcs 15 sgi`, `he mcs 11 nss 2 width 80MHz`, `ofdm 54`.
    pub mode: Text<Mode>,
    /// How it sends to the access point.
    #[schemars(extend("default" = "as mode"))]
    pub up_mode: Option<Text<Mode>>,
    /// The slowest mode to which the access point falls back for a repetition, of the same standard and not faster than `mode`; its aggregates keep
    /// `aggregate_time` in that mode too.
    #[schemars(extend("default" = "as mode"))]
    pub fallback: Option<Text<Mode>>,
    /// How much of the air it has in proportion to others, where `queueing` is `airtime` or `mac80211`: 512 is twice
    /// as much as 256 (`airtime_sta_weight` of hostapd).
    #[schemars(extend("default" = "256"))]
    pub airtime_weight: Option<u16>,
    /// Share of data frames that are lost, in both directions, besides those that a weak signal loses.
    #[schemars(extend("default" = "0"))]
    pub error: Option<f64>,
    /// How far it is from the access point: `8m`, or where it is when, in straight lines: `8m at 0s 40m at
    /// 30s`. It decides which frames arrive; without it, no signal is too weak.
    pub distance: Option<Text<Vec<Place>>>,
    /// A signal that is weaker at times, for both directions at once: parameters of `fading`.
    pub fading: Option<Text<Fading>>,
    /// Who chooses the modes of both directions. `fixed`: they are `mode` and `up_mode`. The others choose
    /// among these and slower ones. `ideal`: what most gets through with. `minstrel`: by what was
    /// acknowledged, with parameters of `minstrel`. `trace FILE`: a line for each step, as
    /// `0s 1.5s he mcs 11`; the last one stays.
    #[schemars(extend("default" = "fixed"))]
    pub rate_control: Option<Text<ControlSpec>>,
    /// When the station is there: `0s to 20s 40s to end`. At other times it sends nothing, and what is
    /// sent to it is lost.
    #[schemars(extend("default" = "always"))]
    pub present: Option<Text<Vec<Presence>>>,
    /// Its own queue, above a driver that manages nothing.
    #[schemars(extend("default" = "pfifo limit 1000"))]
    pub queue: Option<Text<QueueSpec>>,
}
