//! Distributions, of a metric over runs and of a delay over its samples.

use sojourn_metrics::stats::Ecdf;

use super::frame::{Frame, grouped};
use super::panels::{Body, Figure, Head, figure};
use crate::data::{Point, Subject};
use crate::markup::Esc;
use crate::names::{self, capital};
use crate::number::number;
use crate::spread::{MOST_APART, Pooled, Shares, Spread, Spreads, quantile};
use crate::svg::{Axis, Curve, Key, curves, ends};

/// How a metric is spread over runs.
pub(super) fn cdf_figure(frame: &Frame<'_>, head: &Head<'_>, metric: &str) -> Option<Figure> {
    let measure = frame.measure(metric);
    let all = ends(frame.values(&measure));
    let keys = frame.keys(frame.colour);
    let mut panels = Vec::new();
    for (name, members) in frame.panels() {
        let mut drawn = Vec::new();
        for key in &keys {
            let here: Vec<&(usize, &Subject)> = members
                .iter()
                .filter(|(scenario, subject)| frame.key(frame.colour, *scenario, subject) == *key)
                .collect();
            let points: Vec<Point> = here
                .iter()
                .flat_map(|(scenario, subject)| frame.points(*scenario, subject, &measure).points)
                .collect();
            let (Some(first), false) = (here.first(), points.is_empty()) else { continue };
            let values: Vec<f64> = points.iter().map(|point| point.value).collect();
            let mut steps = Vec::new();
            let mut below = 0.0;
            for (value, share) in Ecdf::new(&values).points() {
                steps.extend([(value, below), (value, share)]);
                below = share;
            }
            drawn.push(Curve {
                colour: frame.colour(first.0, first.1, &keys),
                label: format!("{key}: {} runs", points.len()),
                key: key.clone(),
                points: steps,
                run: None,
                thin: false,
            });
        }
        panels.push((name, drawn));
    }
    let caption = frame.with_missing(head.caption, metric);
    let head = &Head { caption: &caption, ..*head };
    figure(head, frame.legend(None), &panels, |drawn, width| {
        curves(drawn, &measure.axis, "runs up to here", Axis::Even, &all, width)
    })
}

/// With more curves than this, single runs are left out.
const MOST_THIN: usize = 200;

/// The distribution of a delay, with a panel for each subject: a thick line for all samples of a
/// scenario, a thin one for each run.
pub(super) fn delay_figure(
    frame: &Frame<'_>,
    spreads: &Spreads,
    metric: &str,
    head: &Head<'_>,
) -> Option<Figure> {
    if let Some(pooled) = spreads.pooled() {
        return pooled_figure(frame, spreads, pooled, metric, head);
    }
    let data = frame.data;
    let keys = frame.keys(frame.colour);
    let key = |name: &str, subject: &Subject| match (frame.subjects.len() > 1, name.is_empty()) {
        (false, _) => name.to_owned(),
        (true, true) => subject.label().to_owned(),
        (true, false) => format!("{} · {name}", subject.label()),
    };
    let all = frame.panels().into_iter().flat_map(|(name, members)| {
        members.into_iter().map(move |(scenario, subject)| (name.clone(), scenario, subject))
    });
    let panels: Vec<(String, Vec<(usize, &Subject)>)> =
        grouped(all.map(|(name, scenario, subject)| (key(&name, subject), (scenario, subject))));
    let runs: usize = frame.scenarios.iter().map(|s| data.done[*s].len()).sum();
    let single = runs * frame.subjects.len() <= MOST_THIN;
    let mut drawn = Vec::new();
    let mut some_open = false;
    for (name, members) in panels {
        let mut here = Vec::new();
        for (scenario, subject) in members {
            let Some(spread) = spreads.of(scenario, subject, metric) else { continue };
            let colour = frame.colour(scenario, subject, &keys);
            let label = format!("{}, {}", subject.label(), data.label(scenario));
            for (run, points) in spread.runs.iter().filter(|_| single && spread.runs.len() > 1) {
                here.push(Curve {
                    colour,
                    label: format!("{label}, seed {}", data.plan.runs[*run as usize].seed),
                    key: String::new(),
                    points: points.clone(),
                    run: Some(*run),
                    thin: true,
                });
            }
            some_open |= spread.open() > 0;
            let points = spread.pooled();
            if points.is_empty() {
                continue;
            }
            here.push(Curve {
                colour,
                label: format!("{label}: {}", told(spread, &points)),
                key: frame.key(frame.colour, scenario, subject),
                points,
                run: None,
                thin: false,
            });
        }
        drawn.push((name, here));
    }
    let curves_of_all = drawn.iter().flat_map(|(_, curves)| curves);
    let all = ends(curves_of_all.flat_map(|curve| &curve.points).map(|point| point.0));
    let x = format!("{} (ms)", capital(&names::title(&format!("{metric}_ms"))));
    let explained = if single {
        "Share of samples up to a delay; the axis is stretched towards its ends, where tails are. \
         Thick: all runs of a scenario; thin: single runs."
    } else {
        "Share of samples up to a delay, over all runs of a scenario; the axis is stretched towards \
         its ends, where tails are."
    };
    let explained = match some_open {
        true => format!(
            "{explained} Some had not ended: shares are by Kaplan and Meier’s estimate, and a curve ends \
             below 100 % where the slowest are unknown."
        ),
        false => explained.to_owned(),
    };
    let explained = match fewest(frame, metric) {
        Some(lost) if !some_open => format!("{explained} {lost}"),
        Some(_) if has_refused(frame) => {
            format!("{explained} Refused transfers are in no curve.")
        }
        _ => explained,
    };
    let caption = format!("{} {explained}", head.caption);
    let caption = frame.with_missing(caption.trim_start(), &median(metric));
    if drawn.iter().all(|(_, curves)| curves.is_empty()) && some_open {
        let none = "Nothing of it had ended, so there is no curve.".to_owned();
        return Some(Head { caption: &caption, ..*head }.figure(Body::Sentence(none)));
    }
    figure(&Head { caption: &caption, ..*head }, frame.legend(None), &drawn, |here, width| {
        curves(here, &x, "samples up to here", Axis::Tails, &all, width)
    })
}

fn has_refused(frame: &Frame<'_>) -> bool {
    let mut all =
        frame.scenarios.iter().flat_map(|s| frame.subjects.iter().map(move |one| (*s, one)));
    all.any(|(scenario, subject)| {
        let refused = frame.data.points(scenario, subject, "transfers_refused");
        refused.iter().any(|point| point.value > 0.0)
    })
}

/// The metric that is the median of a delay.
fn median(delay: &str) -> String {
    format!("{delay}_p50_ms")
}

/// What is in no curve because it was lost or refused, and where most was; `None` if nothing was.
fn fewest(frame: &Frame<'_>, metric: &str) -> Option<String> {
    let data = frame.data;
    let (verb, arrived) = match metric {
        "ping" | "owd" | "frame_delay" => ("lost", "arrived"),
        "fct" => ("refused", "were taken"),
        _ => return None,
    };
    let median = &median(metric)[..];
    let means = frame.scenarios.iter().flat_map(|scenario| {
        frame.subjects.iter().filter_map(move |subject| {
            let counted = data.points(*scenario, subject, median).counted();
            counted.lacking().map(|lacking| (*scenario, subject, counted, lacking))
        })
    });
    let (scenario, subject, _, lacking) =
        means.min_by(|a, b| a.2.share().total_cmp(&b.2.share()))?;
    let place = match data.label(scenario) {
        label if data.plan.scenarios.len() > 1 => format!("{}, {label}", subject.label()),
        _ => subject.label().to_owned(),
    };
    Some(format!(
        "What was {verb} is in no curve; most was {verb} of {}: {} {arrived}.",
        Esc(&place),
        Esc(&lacking)
    ))
}

/// A distribution in words.
fn told(spread: &Spread, points: &Shares) -> String {
    let open = match spread.open() {
        0 => String::new(),
        open => format!(", {} had not ended", number(open as f64)),
    };
    let runs = if spread.runs.len() == 1 { "run" } else { "runs" };
    let at = |share: f64| quantile(points, share).map_or("–".to_owned(), number);
    format!(
        "median {} ms, 95 % up to {} ms, 99 % up to {} ms; {} samples of {} {runs}{open}",
        at(0.5),
        at(0.95),
        at(0.99),
        number(spread.samples() as f64),
        spread.runs.len()
    )
}

/// The same where scenarios are pooled: a curve for each pool.
fn pooled_figure(
    frame: &Frame<'_>,
    spreads: &Spreads,
    pooled: &Pooled,
    metric: &str,
    head: &Head<'_>,
) -> Option<Figure> {
    let data = frame.data;
    if frame.scenarios.len() < data.plan.scenarios.len() {
        let note = format!(
            "Distributions of some scenarios are drawn in studies of at most {MOST_APART}."
        );
        return Some(head.figure(Body::Sentence(note)));
    }
    let mut names: Vec<String> = Vec::new();
    let mut panels: Vec<(String, Vec<Curve>)> = Vec::new();
    for subject in &frame.subjects {
        let mut here = Vec::new();
        for (colour, (scenario, scenarios)) in pooled.pools().into_iter().enumerate() {
            let name = pooled.factor.map_or_else(
                || "all scenarios".to_owned(),
                |factor| data.named(factor, data.value(scenario, factor)),
            );
            if names.len() == colour {
                names.push(name.clone());
            }
            let Some(spread) = spreads.of(scenario, subject, metric) else { continue };
            let points = spread.pooled();
            if points.is_empty() {
                continue;
            }
            here.push(Curve {
                colour,
                label: format!(
                    "{}, {name}, {scenarios} scenarios: {}",
                    subject.label(),
                    told(spread, &points)
                ),
                key: name,
                points,
                run: None,
                thin: false,
            });
        }
        panels.push((subject.label().to_owned(), here));
    }
    let curves_of_all = panels.iter().flat_map(|(_, curves)| curves);
    let all = ends(curves_of_all.flat_map(|curve| &curve.points).map(|point| point.0));
    let x = format!("{} (ms)", capital(&names::title(&format!("{metric}_ms"))));
    let caption = format!(
        "{} Share of samples up to a delay, over all runs of the scenarios that a curve names, which are \
         too many for a curve each; the axis is stretched towards its ends, where tails are.",
        head.caption
    );
    let key = names.into_iter().enumerate().map(|(at, name)| (Some(at), at, name)).collect();
    let head = Head { caption: caption.trim_start(), ..*head };
    figure(&head, vec![Key(key)], &panels, |here, width| {
        curves(here, &x, "samples up to here", Axis::Tails, &all, width)
    })
}
