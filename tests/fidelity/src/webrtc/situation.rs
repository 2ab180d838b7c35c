//! The measured situations as they are in `data/webrtc.json`.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Calls, and a TCP flow beside them or none, over a bottleneck.
#[derive(Clone, Debug, Deserialize)]
pub struct Situation {
    pub id: String,
    /// From which second on the bottleneck has how many kbit/s.
    pub rate: Vec<(f64, f64)>,
    pub queue_bytes: u32,
    pub fq_codel: bool,
    pub rtt_ms: f64,
    pub duration_s: f64,
    pub calls: Vec<Call>,
    pub tcp: Vec<Tcp>,
    /// From which second on which share of packets is lost before the queue.
    pub loss: Vec<(f64, f64)>,
    /// From second to second.
    pub windows: BTreeMap<String, (f64, f64)>,
    pub rows: Vec<Bounded>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Call {
    pub kind: Kind,
    pub start: f64,
    pub max_kbps: f64,
}

/// What the call's ends are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Chromium,
    Aiortc,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Tcp {
    pub cc: String,
    pub start: f64,
    pub dur: f64,
}

/// A number that was measured, and what it may be in simulation.
#[derive(Clone, Debug, Deserialize)]
pub struct Bounded {
    pub what: String,
    /// Of which window, or of the step at which second.
    pub window: String,
    pub measured: Vec<f64>,
    pub least: f64,
    pub most: f64,
}

impl Bounded {
    pub fn name(&self) -> String {
        format!("{} {}", self.what, self.window)
    }
}

#[derive(Deserialize)]
struct File {
    situations: Vec<Situation>,
}

/// All of them.
pub fn situations() -> Vec<Situation> {
    let file: File =
        serde_json::from_str(include_str!("../../data/webrtc.json")).expect("the file is sound");
    file.situations
}
