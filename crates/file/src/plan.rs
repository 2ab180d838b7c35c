//! What results keep of a study file, as plain data.

use serde::{Deserialize, Serialize};

/// What a study varies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Factor {
    /// The address that it varies: `path.queue`, `flow.bbr.cca`.
    pub name: String,
    /// In the order of the study.
    pub values: Vec<String>,
    /// Positions of the factors that change together with this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub together: Vec<usize>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedFlow {
    pub name: String,
    /// The flow of the study file that this one belongs to; with `count` above 1 several do.
    pub group: String,
    pub app: String,
    /// As written; `None` for applications without one.
    pub cca: Option<String>,
    /// Two-way propagation delay.
    pub base_rtt_ms: f64,
    /// Bytes that it transfers, if they are limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Whether its data go from the client to the server.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_up: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedQueue {
    pub name: String,
    /// As written: `fq_codel limit 1000`.
    pub queue: String,
    /// As written: `10Mbps`, `trace:FILE`.
    pub rate: String,
}
