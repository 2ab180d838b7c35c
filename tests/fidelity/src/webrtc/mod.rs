//! Calls against Chromium's, measured over known bottlenecks for this project
//! (`data/webrtc.json`).

mod situation;
mod watch;
mod world;

pub use situation::{Situation, situations};
pub use world::simulate;

use std::fmt;

/// A number of a situation.
#[derive(Clone, Debug)]
pub struct Row {
    pub what: String,
    /// Of each repeat.
    pub measured: Vec<f64>,
    pub simulated: f64,
    pub least: f64,
    pub most: f64,
}

impl Row {
    pub fn is_inside(&self) -> bool {
        (self.least..=self.most).contains(&self.simulated)
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let measured: Vec<String> = self.measured.iter().map(|value| short(*value)).collect();
        let mean = self.measured.iter().sum::<f64>() / self.measured.len() as f64;
        let verdict = if self.is_inside() { "" } else { "OUT" };
        write!(
            f,
            "{:<24} {:>24} {:>9} {:>+10.3}   {} to {}  {verdict}",
            self.what,
            measured.join(" "),
            short(self.simulated),
            self.simulated - mean,
            short(self.least),
            short(self.most),
        )
    }
}

fn short(value: f64) -> String {
    if value.abs() < 10.0 { format!("{value:.3}") } else { format!("{value:.0}") }
}

/// Every number that the situation has bounds for.
pub fn compare(situation: &Situation, seeds: u64) -> Vec<Row> {
    let simulated = simulate(situation, seeds);
    let row = |row: &situation::Bounded| Row {
        what: row.name(),
        measured: row.measured.clone(),
        simulated: simulated.get(&row.name()).copied().unwrap_or(f64::NAN),
        least: row.least,
        most: row.most,
    };
    situation.rows.iter().map(row).collect()
}
