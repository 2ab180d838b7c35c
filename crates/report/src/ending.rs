//! When and why runs ended, where a run lasts until its transfers are done.

use sojourn_study::results::{Kind, Results, Row};

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
    let mut endings = Endings::default();
    runs.filter_map(|(_, at)| Ending::of(results, at)).for_each(|ending| endings.add(&ending));
    endings.sentence()
}

/// How the runs of a scenario ended, together.
#[derive(Default)]
pub(crate) struct Endings {
    runs: usize,
    /// Of those whose transfers all ended: how many they are, and when the first and the last ended.
    done: usize,
    least_ms: Option<f64>,
    most_ms: f64,
    /// The others: how many they are, the end of the first, and their transfers together.
    capped: usize,
    open: Option<Ending>,
}

impl Endings {
    pub(crate) fn add(&mut self, ending: &Ending) {
        self.runs += 1;
        if ending.is_done() {
            self.done += 1;
            self.least_ms = Some(self.least_ms.map_or(ending.end_ms, |ms| ms.min(ending.end_ms)));
            self.most_ms = self.most_ms.max(ending.end_ms);
            return;
        }
        self.capped += 1;
        let open = self.open.get_or_insert(Ending { end_ms: ending.end_ms, begun: 0.0, done: 0.0 });
        open.begun += ending.begun;
        open.done += ending.done;
    }

    /// `None` without runs.
    pub(crate) fn sentence(&self) -> Option<String> {
        let runs_of = |some: usize| {
            let word = if self.runs == 1 { "run" } else { "runs" };
            format!("{some} of {} {word}", self.runs)
        };
        let mut parts = Vec::new();
        if let Some(least) = self.least_ms {
            let when = match (time(least), time(self.most_ms)) {
                (least, most) if least == most => format!("at {least}"),
                (least, most) => format!("at {least} to {most}"),
            };
            parts.push(format!("{} ended with the last transfer, {when}", runs_of(self.done)));
        }
        if let Some(open) = &self.open {
            let at = time(open.end_ms);
            parts.push(format!(
                "{} ended at {at}, the longest, {}",
                runs_of(self.capped),
                open.open()
            ));
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

pub(crate) struct Ending {
    end_ms: f64,
    begun: f64,
    done: f64,
}

impl Ending {
    fn of(results: &Results, run: u32) -> Option<Self> {
        Self::of_rows(&results.table.metrics, results.table.run(run))
    }

    /// Of a run, by its rows with these metrics.
    pub(crate) fn of_rows(metrics: &[String], rows: &[Row]) -> Option<Self> {
        let row = rows.iter().find(|row| row.kind == Kind::Run)?;
        let [end_ms, begun, done] = METRICS.map(|metric| {
            let column = metrics.iter().position(|name| name == metric)?;
            row.values.get(column)
        });
        Some(Self { end_ms: end_ms?, begun: begun.unwrap_or(0.0), done: done.unwrap_or(0.0) })
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
