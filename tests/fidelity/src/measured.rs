//! The measurements, as the file has them.

use std::collections::BTreeMap;

use serde::Deserialize;

const DATA: &str = include_str!("../data/linux.json");

/// Every situation of the file, in its order.
pub fn situations() -> Vec<Situation> {
    let file: File = serde_json::from_str(DATA).expect("the file is part of the source");
    file.scenarios
}

#[derive(Debug, Deserialize)]
struct File {
    scenarios: Vec<Situation>,
}

/// One situation: the settings and the results.
#[derive(Clone, Debug, Deserialize)]
pub struct Situation {
    pub id: String,
    pub platform: String,
    pub params: Params,
    pub summary: Summary,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Params {
    pub rate_bps: f64,
    pub base_rtt_ms: f64,
    pub bottleneck: String,
    pub limit_packets: Option<u32>,
    pub random_loss_forward: Option<f64>,
    pub duration_s: f64,
    pub warm_s: f64,
    pub ping_hz: f64,
    pub ecn: Option<String>,
    pub offloads: Option<String>,
    pub flows: Vec<FlowParams>,
    pub udp: Option<UdpParams>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct FlowParams {
    pub cc: String,
    pub n: Option<u32>,
    pub src: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct UdpParams {
    pub bps: f64,
    pub fps: f64,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Summary {
    pub by_cc: BTreeMap<String, Group>,
    pub ping_rtt_ms: Option<BTreeMap<String, Statistic>>,
    pub udp_owd_ms: Option<BTreeMap<String, Statistic>>,
}

/// The flows of one congestion control together.
#[derive(Clone, Debug, Deserialize)]
pub struct Group {
    pub flows: u32,
    pub goodput_mbps_sum: Statistic,
    pub retransmits_sum: Statistic,
    pub srtt_p50_ms: Option<Statistic>,
    pub cwnd_p50_pkts: Option<Statistic>,
}

/// Over the repeats of a situation.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Statistic {
    pub mean: f64,
    pub min: f64,
    pub max: f64,
    pub n: u32,
}
