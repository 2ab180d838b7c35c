//! What a page needs to know of each run, read once and kept small.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;
use sojourn_study::results::{Kind, Series, View, ViewKind};

use super::calls;
use super::options::Options;
use super::sample::Sample;
use super::still::{OverlaidRun, Overlay, still};
use crate::batches::in_batches;
use crate::data::Data;
use crate::packed::{self, Density, values_in};
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
    /// Run and figure, of the first scenarios that it selects.
    pub(crate) runs: Vec<(u32, String)>,
    /// How many scenarios it selects.
    pub(crate) scenarios: usize,
    /// In place of these, if the view asks for one quantity of one flow or queue.
    pub(crate) overlay: Option<Overlay>,
}

impl SeriesView {
    /// Without figures yet, each with some of the first runs of scenarios that it shows.
    fn all(data: &Data<'_>, firsts: &[u32]) -> Vec<Self> {
        let views = data.plan.views.iter().enumerate();
        let over_time = views.filter(|(_, view)| view.kind == ViewKind::Series);
        let of_view = |(at, view): (usize, &View)| {
            let runs = firsts.iter().filter(|run| {
                let scenario = data.plan.runs[**run as usize].scenario as usize;
                data.plan.is_selected(&data.plan.scenarios[scenario], &view.filter)
            });
            let scenarios = runs.clone().count();
            let runs = runs.take(MOST_VIEWED).map(|run| (*run, String::new())).collect();
            let is_one = view.y.len() == 1 && view.of.len() == 1;
            let overlay = is_one.then(|| Overlay { runs: Vec::new() });
            Self { view: at, runs, scenarios, overlay }
        };
        over_time.map(of_view).collect()
    }

    fn add(&mut self, run: u32, InView { svg, overlaid, .. }: InView) {
        if let Some(own) = self.runs.iter_mut().find(|own| own.0 == run) {
            own.1 = svg;
        }
        if let Some(overlay) = &mut self.overlay {
            overlay.runs.extend(overlaid);
        }
    }

    /// Factors of which all runs of the figure have the same value.
    fn shared(&self, data: &Data<'_>) -> Vec<usize> {
        let scenario = |run: u32| data.plan.runs[run as usize].scenario as usize;
        let mut shared = data.varying.clone();
        shared.retain(|factor| {
            let mut values = self.runs.iter().map(|(run, _)| data.value(scenario(*run), *factor));
            let first = values.next();
            values.all(|value| Some(value) == first)
        });
        shared
    }

    /// What is not drawn; empty if all are.
    pub(crate) fn left_out(&self) -> String {
        match self.runs.len() {
            drawn if drawn < self.scenarios => {
                format!("The first {drawn} of {} scenarios.", self.scenarios)
            }
            _ => String::new(),
        }
    }

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

/// A run whose series are read.
struct Asked {
    run: u32,
    /// Of its scenario.
    is_first: bool,
    /// As a still figure.
    is_drawn: bool,
    is_worst: bool,
    problem: Option<String>,
}

/// What is made of the series of a run.
struct Made {
    details: RunDetails,
    density: Density,
    views: Vec<InView>,
}

/// A run in a view of the study.
struct InView {
    /// Among those over time.
    view: usize,
    svg: String,
    overlaid: Option<OverlaidRun>,
}

/// Characters for the time series of all runs.
struct Budget {
    left: usize,
    /// Runs that are to come.
    open: usize,
}

impl Budget {
    /// What each run of a batch may use: its share, or twice as much if it is the first of its scenario, but no more than
    /// leaves as much for the others of the batch.
    fn shares(&mut self, are_first: &[bool]) -> Vec<usize> {
        let mut left = self.left;
        let of_run = |(at, is_first): (usize, &bool)| {
            let fair = left / self.open.max(1);
            let wanted = if *is_first { fair * 2 } else { fair };
            let share = wanted.min(left / (are_first.len() - at));
            self.open = self.open.saturating_sub(1);
            left -= share;
            share
        };
        are_first.iter().enumerate().map(of_run).collect()
    }
}

impl Details {
    pub(super) fn read(data: &Data<'_>, read: &mut dyn ReadRuns, options: &Options) -> Self {
        let mut finished: Vec<u32> = data.done.iter().flatten().copied().collect();
        finished.sort_unstable();
        let firsts: Vec<u32> = data.done.iter().filter_map(|runs| runs.first().copied()).collect();
        let drawn: Vec<u32> = firsts.iter().copied().take(options.timelines).collect();
        let worst = calls::worst(data, &firsts);
        let mut views = SeriesView::all(data, &firsts);
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
        let (spreads, mut problems) = read_spreads(data, &finished, read);
        // First the run of each scenario that the reader sees first; the others share the rest of
        // the budget.
        let mut is_first = vec![false; data.plan.runs.len()];
        firsts.iter().for_each(|run| is_first[*run as usize] = true);
        let later = finished.iter().filter(|run| !is_first[**run as usize]);
        let order: Vec<Asked> = (firsts.iter().chain(later))
            .map(|run| Asked {
                run: *run,
                is_first: is_first[*run as usize],
                is_drawn: drawn.contains(run),
                is_worst: worst == Some(*run),
                problem: problems.remove(run),
            })
            .filter(|asked| !many || needed.contains(&asked.run) || asked.problem.is_some())
            .collect();
        let mut budget = Budget {
            left: options.series_budget,
            open: if many { needed.len() } else { finished.len() },
        };
        let mut runs: Vec<RunDetails> = Vec::new();
        let mut density = None;
        let mut order = order.into_iter();
        in_batches(
            || {
                let asked = order.next()?;
                let series = read_series(data, asked.run, read);
                let values = series.iter().flatten().map(values_in).sum();
                Some(((asked, series), values))
            },
            |batch| {
                let are_first: Vec<bool> = batch.iter().map(|(asked, _)| asked.is_first).collect();
                let shares = budget.shares(&are_first);
                let batch: Vec<_> = batch.into_iter().zip(shares).collect();
                let made = batch.into_par_iter().map(|((asked, series), share)| {
                    asked.made(data, &views, series, share, density)
                });
                let made: Vec<Made> = made.collect();
                for Made { details, density: of_run, views: in_views } in made {
                    let packed = details.packed.as_ref().map_or(0, |packed| packed.base64.len());
                    budget.left -= packed.min(budget.left);
                    density = of_run;
                    in_views.into_iter().for_each(|one| views[one.view].add(details.run, one));
                    runs.push(details);
                }
            },
        );
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

/// The distributions of all runs, and why those of some cannot be read.
fn read_spreads(
    data: &Data<'_>,
    finished: &[u32],
    read: &mut dyn ReadRuns,
) -> (Spreads, BTreeMap<u32, String>) {
    let mut spreads = Spreads::new(data);
    let mut problems = BTreeMap::new();
    // In the order of the plan, in which the table has them, so that each part of it is read once.
    let mut runs = finished.iter().copied();
    in_batches(
        || {
            let run = runs.next()?;
            let delays = read.delays(run);
            let buckets = delays.iter().flatten().map(|delays| delays.buckets.len()).sum();
            Some(((run, delays), buckets))
        },
        |batch| {
            for (run, delays) in batch {
                let scenario = data.plan.runs[run as usize].scenario as usize;
                match delays {
                    Ok(delays) => {
                        spreads.add(scenario, &data.plan.scenarios[scenario], run, &delays);
                    }
                    Err(problem) => {
                        problems.insert(run, problem);
                    }
                }
            }
        },
    );
    (spreads, problems)
}

/// The series of a run that the page may show.
fn read_series(data: &Data<'_>, run: u32, read: &mut dyn ReadRuns) -> Result<Vec<Series>, String> {
    let sample = sample(data, data.plan.runs[run as usize].scenario as usize);
    let calls = calls::drawn(data, run);
    read.series_of(run, &|kind: Kind, name: &str| {
        sample.has(kind, name) || calls.iter().any(|call| call.name == name)
    })
}

impl Asked {
    /// Packs the series into `share` characters, and draws the figures for which the run was chosen.
    fn made(
        self,
        data: &Data<'_>,
        views: &[SeriesView],
        series: Result<Vec<Series>, String>,
        share: usize,
        mut density: Density,
    ) -> Made {
        let Self { run, is_drawn, is_worst, problem, .. } = self;
        let (packed, timeline, calls) = (None, String::new(), String::new());
        let nothing = RunDetails { run, packed, timeline, calls, problem };
        let series = match series {
            Ok(series) => series,
            Err(problem) => {
                let details = RunDetails { problem: Some(problem), ..nothing };
                return Made { details, density, views: Vec::new() };
            }
        };
        let in_view = |(at, drawn): (usize, &SeriesView)| {
            drawn.runs.iter().find(|(of, _)| *of == run)?;
            let view = &data.plan.views[drawn.view];
            let svg = still(data, run, &series, &view.y, &view.of);
            let overlaid = match (&drawn.overlay, &view.y[..], &view.of[..]) {
                (Some(_), [column], [one]) => {
                    OverlaidRun::of(data, run, &series, column, one, &drawn.shared(data))
                }
                _ => None,
            };
            Some(InView { view: at, svg, overlaid })
        };
        let details = RunDetails {
            packed: packed::pack(&series, share, &mut density),
            timeline: match is_drawn {
                true => still(data, run, &series, &[], &[]),
                false => String::new(),
            },
            calls: match is_drawn || is_worst {
                true => calls::figures(data, run, &series),
                false => String::new(),
            },
            ..nothing
        };
        Made { details, density, views: views.iter().enumerate().filter_map(in_view).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_a_batch_may_use_no_more_than_is_left() {
        let mut budget = Budget { left: 1000, open: 10 };
        assert_eq!(budget.shares(&[true; 5]), [200, 176, 156, 132, 112]);
        budget.left -= 500;
        assert_eq!(budget.shares(&[false; 5]), [100; 5]);
        let mut budget = Budget { left: 1000, open: 2 };
        assert_eq!(budget.shares(&[true; 2]), [500; 2]);
    }
}
