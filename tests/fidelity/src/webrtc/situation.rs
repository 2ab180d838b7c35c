//! The measured situations as they are in `data/webrtc.json` and `data/webrtc-str0m.json`.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Calls, and a TCP flow beside them or none, over a bottleneck.
#[derive(Clone, Debug, Deserialize)]
pub struct Situation {
    pub id: String,
    /// From which second on the bottleneck has how many kbit/s.
    pub rate: Vec<(f64, f64)>,
    /// As a study writes it.
    pub queue: String,
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
    /// After so many seconds it sends its first packets, if that was measured.
    pub connects_s: Option<f64>,
    pub max_kbps: f64,
    /// Both ends offer parity (`red` and `ulpfec`), as Chromium does by default for VP8.
    #[serde(default)]
    pub fec: bool,
    /// Which part of the announced estimate the application uses, if it decides that itself.
    pub share: Option<f64>,
}

impl Call {
    /// The parameters of `app = "str0m"` that make this call.
    pub fn str0m_words(&self) -> String {
        format!("max_rate={}kbit share={}", self.max_kbps, self.share.unwrap_or(1.0))
    }
}

/// What the call's ends are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Chromium,
    Aiortc,
    /// Simulated by itself: `crates/str0m` has its ends.
    Str0m,
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

/// Those of Chromium and aiortc, and after them those that were measured when the model stood.
pub fn situations() -> Vec<Situation> {
    let mut all = read(include_str!("../../data/webrtc.json"));
    all.extend(read(include_str!("../../data/webrtc-more.json")));
    all
}

/// Those of str0m.
pub fn situations_of_str0m() -> Vec<Situation> {
    read(include_str!("../../data/webrtc-str0m.json"))
}

/// Those of a file as `data/webrtc.json` is.
///
/// # Panics
///
/// If it is none.
pub fn read(text: &str) -> Vec<Situation> {
    let file: File = serde_json::from_str(text).expect("the file is sound");
    file.situations
}
