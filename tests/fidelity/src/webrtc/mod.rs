//! Calls against those of Chromium, aiortc and str0m, measured over known bottlenecks for this project
//! (`data/webrtc.json`, `data/webrtc-str0m.json`).

mod situation;
mod watch;
mod world;

pub use situation::{Call, Kind, Situation, read, situations, situations_of_str0m};
pub use world::{model_of, simulate};

use std::fmt;
use std::sync::Arc;

use sojourn_host::AppModel;

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

/// What makes the two ends of a call.
pub type Ends<'a> = &'a dyn Fn(&Call) -> Arc<dyn AppModel>;

/// Every number that the situation has bounds for.
pub fn compare(situation: &Situation, seeds: u64, ends: Ends<'_>) -> Vec<Row> {
    let simulated = simulate(situation, seeds, ends);
    let row = |row: &situation::Bounded| Row {
        what: row.name(),
        measured: row.measured.clone(),
        simulated: simulated.get(&row.name()).copied().unwrap_or(f64::NAN),
        least: row.least,
        most: row.most,
    };
    situation.rows.iter().map(row).collect()
}

/// Prints every number of the situations whose names have one of the `wanted` parts, or of all; then how many are inside.
#[expect(clippy::print_stdout, reason = "this is what it is for")]
pub fn print_table(situations: &[Situation], wanted: &[String], seeds: u64, ends: Ends<'_>) {
    let (mut inside, mut all) = (0, 0);
    let is_wanted = |situation: &&Situation| {
        wanted.is_empty() || wanted.iter().any(|part| situation.id.contains(part.as_str()))
    };
    for situation in situations.iter().filter(is_wanted) {
        println!("{}", situation.id);
        for row in compare(situation, seeds, ends) {
            println!("    {row}");
            all += 1;
            inside += u32::from(row.is_inside());
        }
    }
    println!("{inside} of {all} numbers inside their bounds");
}
