//! What a page needs to know of each run, read once and kept small.

use std::collections::{BTreeMap, BTreeSet};

use sojourn_study::results::{Kind, ViewKind};

use super::calls;
use super::options::Options;
use super::sample::Sample;
use super::still::{OverlaidRun, Overlay, still};
use crate::data::Data;
use crate::packed;
use crate::read::ReadRuns;
use crate::spread::Spreads;

/// Runs that a view over time shows as still figures.
const MOST_VIEWED: usize = 4;

/// Where there are so many times the runs that have sections, only the series of these are read.
const MANY: usize = 4;

/// What the page needs of the time series of each run.
pub(crate) struct Details {
    /// Finished runs, in the order of the plan.
    pub(crate) runs: Vec<RunDetails>,
    pub(crate) views: Vec<SeriesView>,
    pub(crate) spreads: Spreads,
    /// The run in which the pictures of calls stood still longest, or the first one.
    pub(crate) worst: Option<u32>,
}

/// A figure over time that the study asks for.
pub(crate) struct SeriesView {
    /// Position in the plan.
    pub(crate) view: usize,
    /// Run and figure.
    pub(crate) runs: Vec<(u32, String)>,
    /// In place of these, if the view asks for one quantity of one flow or queue.
    pub(crate) overlay: Option<Overlay>,
}

impl SeriesView {
    /// Whether it is the study's first view, and so the figure of the answer.
    pub(crate) fn leads(&self) -> bool {
        self.view == 0 && self.runs.iter().any(|(_, svg)| !svg.is_empty())
    }
}

pub(crate) struct RunDetails {
    pub(crate) run: u32,
    pub(crate) packed: Option<packed::Packed>,
    /// A still figure, for the first finished run of its scenario only; and one for each of its calls.
    pub(crate) timeline: String,
    pub(crate) calls: String,
    pub(crate) problem: Option<String>,
}

/// The flows of a scenario that can be zoomed into.
pub(super) fn sample<'a>(data: &'a Data<'_>, scenario: usize) -> Sample<'a> {
    let views = &data.plan.views;
    let is_named = |name: &str| views.iter().any(|view| view.of.iter().any(|of| of == name));
    Sample::of(&data.plan.scenarios[scenario], is_named)
}

impl Details {
    pub(super) fn read(data: &Data<'_>, read: &mut dyn ReadRuns, options: &Options) -> Self {
        let mut finished: Vec<u32> = data.done.iter().flatten().copied().collect();
        finished.sort_unstable();
        let firsts: Vec<u32> = data.done.iter().filter_map(|runs| runs.first().copied()).collect();
        let drawn: Vec<u32> = firsts.iter().copied().take(options.timelines).collect();
        let worst = calls::worst(data, &firsts);
        let mut views: Vec<SeriesView> = Vec::new();
        for (at, view) in data.plan.views.iter().enumerate() {
            if view.kind == ViewKind::Series {
                let runs = firsts.iter().filter(|run| {
                    let scenario = data.plan.runs[**run as usize].scenario as usize;
                    data.plan.is_selected(&data.plan.scenarios[scenario], &view.filter)
                });
                let runs = runs.take(MOST_VIEWED).map(|run| (*run, String::new())).collect();
                let is_one = view.y.len() == 1 && view.of.len() == 1;
                let overlay = is_one.then(|| Overlay { runs: Vec::new() });
                views.push(SeriesView { view: at, runs, overlay });
            }
        }
        // In a large study the series of a run can be opened only from its section.
        let many = finished.len() > options.runs * MANY;
        let mut in_sections: Vec<u32> = Vec::new();
        if many {
            in_sections.extend(data.sections.iter().flat_map(|scenario| &data.done[*scenario]));
            in_sections.truncate(options.runs);
            in_sections.sort_unstable();
        }
        let mut needed: BTreeSet<u32> = in_sections.iter().copied().chain(worst).collect();
        needed.extend(views.iter().flat_map(|view| &view.runs).map(|(run, _)| *run));
        needed.extend(&drawn);
        let needs_series = |run: u32| !many || needed.contains(&run);
        let mut left = options.series_budget;
        let mut open = if many { needed.len() } else { finished.len() };
        let mut runs: Vec<RunDetails> = Vec::new();
        // In the order of the plan, in which the table has them, so that each part of it is read once.
        let mut spreads = Spreads::new(data);
        let mut problems = BTreeMap::new();
        for run in &finished {
            let scenario = data.plan.runs[*run as usize].scenario as usize;
            match read.delays(*run) {
                Ok(delays) => {
                    spreads.add(scenario, &data.plan.scenarios[scenario], *run, &delays);
                }
                Err(problem) => {
                    problems.insert(*run, problem);
                }
            }
        }
        // First the run of each scenario that the reader sees first; the others share the rest of
        // the budget.
        let mut is_first = vec![false; data.plan.runs.len()];
        firsts.iter().for_each(|run| is_first[*run as usize] = true);
        let later = finished.iter().filter(|run| !is_first[**run as usize]);
        let order = firsts.iter().chain(later);
        for run in order {
            let scenario = data.plan.runs[*run as usize].scenario as usize;
            let problem = problems.remove(run);
            if !needs_series(*run) && problem.is_none() {
                continue;
            }
            let fair = left / open.max(1);
            let share = if is_first[*run as usize] { (fair * 2).min(left) } else { fair };
            open -= 1;
            let sample = sample(data, scenario);
            let calls = calls::drawn(data, *run);
            let is_wanted = |kind: Kind, name: &str| {
                sample.has(kind, name) || calls.iter().any(|call| call.name == name)
            };
            let details = match read.series_of(*run, &is_wanted) {
                Ok(series) => {
                    let packed = packed::pack(&series, share);
                    left -= packed.as_ref().map_or(0, |packed| packed.base64.len()).min(left);
                    for drawn in &mut views {
                        let view = &data.plan.views[drawn.view];
                        for (of, svg) in drawn.runs.iter_mut().filter(|(of, _)| of == run) {
                            *svg = still(data, *of, &series, &view.y, &view.of);
                            if let (Some(overlay), [column], [one]) =
                                (&mut drawn.overlay, &view.y[..], &view.of[..])
                            {
                                let run = OverlaidRun::of(data, *of, &series, column, one);
                                overlay.runs.extend(run);
                            }
                        }
                    }
                    let is_drawn = drawn.contains(run);
                    let timeline = match is_drawn {
                        true => still(data, *run, &series, &[], &[]),
                        false => String::new(),
                    };
                    let calls = match is_drawn || worst == Some(*run) {
                        true => calls::figures(data, *run, &series),
                        false => String::new(),
                    };
                    RunDetails { run: *run, packed, timeline, calls, problem }
                }
                Err(problem) => RunDetails {
                    run: *run,
                    packed: None,
                    timeline: String::new(),
                    calls: String::new(),
                    problem: Some(problem),
                },
            };
            runs.push(details);
        }
        runs.sort_by_key(|run| run.run);
        for view in &mut views {
            // With a single run, its own figure has the same.
            view.overlay.take_if(|overlay| overlay.runs.len() < view.runs.len().max(2));
        }
        Self { runs, views, spreads, worst }
    }

    /// The run in which pictures stood still longest, or the first one, if it has calls.
    pub(crate) fn worst_call(&self) -> Option<&RunDetails> {
        self.worst.and_then(|run| self.of(run)).filter(|run| !run.calls.is_empty())
    }

    pub(crate) fn of(&self, run: u32) -> Option<&RunDetails> {
        let at = self.runs.binary_search_by_key(&run, |details| details.run).ok()?;
        Some(&self.runs[at])
    }
}
