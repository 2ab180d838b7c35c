//! A radio cell against another implementation's: ns-3 3.44, measured for this project
//! (`data/wifi.json`, `data/wifi-more.json`, `data/wifi-kinds.json`).

mod cell;
mod departures;
mod situation;
mod sources;
mod tcp;

pub use cell::{Waits, simulate};
pub use departures::departure;
pub use situation::{Situation, Tolerance, read, situations};

use std::fmt;

/// A number of a situation.
#[derive(Clone, Debug)]
pub struct Row {
    pub what: String,
    pub measured: f64,
    pub simulated: f64,
    /// How far apart they may be.
    pub slack: f64,
}

impl Row {
    pub fn is_inside(&self) -> bool {
        (self.simulated - self.measured).abs() <= self.slack
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let difference = self.simulated - self.measured;
        let percent = if self.measured == 0.0 { 0.0 } else { 100.0 * difference / self.measured };
        let verdict = if self.is_inside() { "" } else { "OUT" };
        write!(
            f,
            "{:<28} {:>10.3} {:>10.3} {:>+9.3} {:>+7.1}%  {:>9.3}  {verdict}",
            self.what, self.measured, self.simulated, difference, percent, self.slack
        )
    }
}

/// Every number that the situation has a tolerance for.
///
/// # Errors
/// What the situation needs and this model does not have.
pub fn compare(situation: &Situation, seeds: u64) -> Result<Vec<Row>, Waits> {
    let simulated = simulate(situation, seeds)?;
    Ok(situation
        .tolerances
        .iter()
        .filter_map(|(what, tolerance)| {
            let measured = *situation.results.get(what)?;
            let simulated = simulated.get(what).copied().unwrap_or(f64::NAN);
            let slack = tolerance.slack(measured);
            Some(Row { what: what.clone(), measured, simulated, slack })
        })
        .collect())
}
