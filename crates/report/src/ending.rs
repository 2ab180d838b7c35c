//! When and why runs ended, where a run lasts until its transfers are done.

use sojourn_study::results::{Kind, Results};

use crate::number::told;

/// What is read here.
pub(crate) const METRICS: [&str; 3] = ["end_ms", "transfers_begun", "transfers_done"];

/// How a run ended, unless its duration is fixed: `ended at 4.2 s with the last of 20 transfers`.
pub(crate) fn of_run(results: &Results, run: u32) -> Option<String> {
    let scenario = results.plan.runs.get(run as usize)?.scenario;
    results.plan.scenarios.get(scenario as usize)?.until.as_ref()?;
    let ending = Ending::of(results, run)?;
    let at = time(ending.end_ms);
    Some(if ending.is_done() {
        match ending.begun {
            1.0 => format!("ended at {at} with its transfer"),
            begun => format!("ended at {at} with the last of {begun} transfers"),
        }
    } else {
        format!("ended at {at}, its longest, {}", ending.open())
    })
}

/// How the runs of a scenario ended, in a sentence.
pub(crate) fn of_scenario(results: &Results, scenario: u32) -> Option<String> {
    results.plan.scenarios.get(scenario as usize)?.until.as_ref()?;
    let runs = results.plan.runs.iter().zip(0u32..).filter(|(run, _)| run.scenario == scenario);
    let endings: Vec<Ending> = runs.filter_map(|(_, at)| Ending::of(results, at)).collect();
    let done: Vec<f64> = endings.iter().filter(|one| one.is_done()).map(|one| one.end_ms).collect();
    let capped: Vec<&Ending> = endings.iter().filter(|one| !one.is_done()).collect();
    let mut parts = Vec::new();
    if !done.is_empty() {
        let least = done.iter().copied().fold(f64::INFINITY, f64::min);
        let most = done.iter().copied().fold(0.0, f64::max);
        let when = match (time(least), time(most)) {
            (least, most) if least == most => format!("at {least}"),
            (least, most) => format!("at {least} to {most}"),
        };
        parts.push(format!(
            "{} ended with the last transfer, {when}",
            runs_of(done.len(), &endings)
        ));
    }
    if let Some(first) = capped.first() {
        let sum = Ending {
            end_ms: first.end_ms,
            begun: capped.iter().map(|one| one.begun).sum(),
            done: capped.iter().map(|one| one.done).sum(),
        };
        let at = time(first.end_ms);
        parts.push(format!(
            "{} ended at {at}, the longest, {}",
            runs_of(capped.len(), &endings),
            sum.open()
        ));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

struct Ending {
    end_ms: f64,
    begun: f64,
    done: f64,
}

impl Ending {
    fn of(results: &Results, run: u32) -> Option<Self> {
        let row = results.table.run(run).iter().find(|row| row.kind == Kind::Run)?;
        let value = |metric| results.table.value(row, metric);
        Some(Self {
            end_ms: value("end_ms")?,
            begun: value("transfers_begun").unwrap_or(0.0),
            done: value("transfers_done").unwrap_or(0.0),
        })
    }

    fn is_done(&self) -> bool {
        self.begun > 0.0 && self.begun == self.done
    }

    fn open(&self) -> String {
        match self.begun {
            0.0 => "before any transfer began".to_owned(),
            begun => format!("with {} of {begun} transfers open", begun - self.done),
        }
    }
}

fn runs_of(some: usize, all: &[Ending]) -> String {
    let word = if all.len() == 1 { "run" } else { "runs" };
    format!("{some} of {} {word}", all.len())
}

fn time(ms: f64) -> String {
    if ms >= 1e3 { told(ms / 1e3, None, "s") } else { told(ms, None, "ms") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_told_in_seconds_from_one_second_on() {
        assert_eq!(time(345.6), "346 ms");
        assert_eq!(time(12_345.0), "12.3 s");
    }
}
