//! The figures that a study asks for, or those that fit what was measured.

use std::fmt::Write;

use sojourn_metrics::DELAYS;
use sojourn_metrics::stats::Ecdf;
use sojourn_study::results::{Kind, View, ViewKind, Where};

use super::matrix;
use crate::data::{Data, Point, Subject};
use crate::markup::Esc;
use crate::names;
use crate::number::number;
use crate::spread::{Spreads, quantile};
use crate::svg::{
    Axis, Category, Cloud, Curve, Group, Layout, bars, curves, legend, scatter, shares,
};

/// More panels than this are counted, not drawn.
const MOST_PANELS: usize = 12;
/// More scenarios than this in one figure are unreadable.
const MOST_ROWS: usize = 24;

pub(crate) fn figures(data: &Data<'_>, spreads: &Spreads) -> String {
    let mut out = String::new();
    for view in data.plan.views.iter().filter(|view| view.kind != ViewKind::Series) {
        out += &of_view(data, spreads, view);
    }
    let asked = out.len();
    let (defaults, heading) = if asked == 0 {
        (standard(data, spreads), "")
    } else {
        (standard(data, spreads), "<h3>Standard figures</h3>")
    };
    if !defaults.is_empty() {
        out += heading;
        out += &defaults;
    }
    if out.is_empty() {
        return out;
    }
    format!("<section id=\"figures\"><h2>Figures</h2><div class=\"figures\">{out}</div></section>")
}

/// Colours belong to flows first, so that a flow looks the same in every figure.
pub(crate) fn colour_of_flow(data: &Data<'_>, group: &str) -> usize {
    data.of_kind(Kind::Flow).position(|subject| subject.name == group).unwrap_or(0)
}

/// What a figure tells apart by position, colour or panel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Split {
    Subject,
    Factor(usize),
}

/// Which runs a figure shows, and how they are told apart.
struct Frame<'a> {
    data: &'a Data<'a>,
    scenarios: Vec<usize>,
    subjects: Vec<Subject>,
    x: Option<Split>,
    colour: Option<Split>,
}

impl<'a> Frame<'a> {
    fn new(
        data: &'a Data<'a>,
        subjects: Vec<Subject>,
        filter: &[Where],
        x: Option<&str>,
        split: Option<&str>,
    ) -> Self {
        let scenarios: Vec<usize> = (0..data.plan.scenarios.len())
            .filter(|scenario| !data.done[*scenario].is_empty())
            .filter(|scenario| data.plan.is_selected(&data.plan.scenarios[*scenario], filter))
            .collect();
        let named = |name: &str| match name {
            "flow" | "queue" => Some(Split::Subject),
            name => data.plan.factors.iter().position(|f| f.name == name).map(Split::Factor),
        };
        let mut frame = Self { data, scenarios, subjects, x: None, colour: None };
        let varying = frame.varying();
        let many = frame.subjects.len() > 1;
        frame.colour = split.and_then(named);
        frame.x = x.and_then(named);
        if frame.x.is_none() {
            let free = varying.iter().copied().map(Split::Factor);
            let mut free = free.filter(|factor| Some(*factor) != frame.colour);
            let with_most = |factor: &Split| match factor {
                Split::Factor(factor) => data.plan.factors[*factor].values.len(),
                Split::Subject => 0,
            };
            let best = free.clone().map(|f| with_most(&f)).max();
            frame.x = free.find(|factor| Some(with_most(factor)) == best);
        }
        if frame.colour.is_none() {
            frame.colour = if many && frame.x != Some(Split::Subject) {
                Some(Split::Subject)
            } else {
                let mut free = varying.iter().copied().map(Split::Factor);
                free.find(|factor| Some(*factor) != frame.x)
            };
        }
        frame
    }

    fn varying(&self) -> Vec<usize> {
        let mut varying = self.data.varying.clone();
        varying.retain(|factor| {
            self.scenarios.iter().any(|s| {
                self.data.value(*s, *factor) != self.data.value(self.scenarios[0], *factor)
            })
        });
        varying
    }

    fn key(&self, split: Option<Split>, scenario: usize, subject: &Subject) -> String {
        match split {
            None => String::new(),
            Some(Split::Subject) => subject.label().to_owned(),
            Some(Split::Factor(factor)) => self.data.value(scenario, factor).to_owned(),
        }
    }

    /// Whatever neither axis nor colour tells apart, nor goes with what they tell.
    fn panel(&self, scenario: usize, subject: &Subject) -> String {
        let mut used: Vec<usize> = [self.x, self.colour]
            .into_iter()
            .flatten()
            .filter_map(|split| match split {
                Split::Factor(factor) => Some(factor),
                Split::Subject => None,
            })
            .collect();
        let plan = self.data.plan;
        let goes_with = |factor: &usize| {
            let value = |used: usize| self.data.value(scenario, used);
            used.iter().any(|used| plan.companion(*used, value(*used), *factor).is_some())
        };
        let companions: Vec<usize> = (0..plan.factors.len()).filter(goes_with).collect();
        used.extend(companions);
        let mut parts = Vec::new();
        if self.subjects.len() > 1 && ![self.x, self.colour].contains(&Some(Split::Subject)) {
            parts.push(subject.label().to_owned());
        }
        let label = self.data.label_without(scenario, &used);
        if !label.is_empty() && !self.varying().iter().all(|factor| used.contains(factor)) {
            parts.push(label);
        }
        parts.join(" · ")
    }

    /// Everything there is to show, panel by panel.
    fn panels(&self) -> Vec<(String, Vec<(usize, &Subject)>)> {
        let mut panels: Vec<(String, Vec<(usize, &Subject)>)> = Vec::new();
        for scenario in &self.scenarios {
            for subject in &self.subjects {
                let key = self.panel(*scenario, subject);
                match panels.iter_mut().find(|(panel, _)| *panel == key) {
                    Some((_, members)) => members.push((*scenario, subject)),
                    None => panels.push((key, vec![(*scenario, subject)])),
                }
            }
        }
        panels
    }

    /// The colours of the figure, in the order of their keys.
    fn keys(&self, split: Option<Split>) -> Vec<String> {
        let mut keys = Vec::new();
        for scenario in &self.scenarios {
            for subject in &self.subjects {
                let key = self.key(split, *scenario, subject);
                if !keys.contains(&key) {
                    keys.push(key);
                }
            }
        }
        keys
    }

    fn colour(&self, scenario: usize, subject: &Subject, keys: &[String]) -> usize {
        match self.colour {
            Some(Split::Subject) if subject.kind == Kind::Flow => {
                colour_of_flow(self.data, &subject.name)
            }
            split => {
                let key = self.key(split, scenario, subject);
                keys.iter().position(|k| *k == key).unwrap_or(0)
            }
        }
    }

    fn legend(&self, symbols: Option<Split>) -> String {
        let keys = self.keys(self.colour);
        let mut entries: Vec<(Option<usize>, usize, String)> = Vec::new();
        for scenario in &self.scenarios {
            for subject in &self.subjects {
                let key = self.key(self.colour, *scenario, subject);
                if !entries.iter().any(|(_, _, text)| *text == key) {
                    let colour = self.colour(*scenario, subject, &keys);
                    entries.push((Some(colour), if symbols.is_some() { 0 } else { colour }, key));
                }
            }
        }
        let mut out = legend(&entries);
        if symbols.is_some() {
            let shapes = self.keys(symbols);
            let shapes: Vec<_> =
                shapes.into_iter().enumerate().map(|(at, key)| (None, at, key)).collect();
            out += &legend(&shapes);
        }
        out
    }

    /// Of all panels together.
    fn values(&self, metric: &str) -> Vec<f64> {
        let mut values = Vec::new();
        for scenario in &self.scenarios {
            for subject in &self.subjects {
                let points = self.data.points(*scenario, subject, metric);
                values.extend(points.iter().map(|point| point.value));
            }
        }
        values
    }

    fn categories(&self, members: &[(usize, &Subject)], metric: &str) -> Vec<Category> {
        let keys = self.keys(self.colour);
        let mut categories: Vec<Category> = Vec::new();
        for (scenario, subject) in members {
            let points = self.data.points(*scenario, subject, metric);
            if points.is_empty() {
                continue;
            }
            let label = match self.x {
                Some(split) => self.key(Some(split), *scenario, subject),
                None => self.data.label(*scenario),
            };
            let group = Group {
                colour: self.colour(*scenario, subject, &keys),
                label: match self.colour {
                    Some(split) => self.key(Some(split), *scenario, subject),
                    None => subject.label().to_owned(),
                },
                points,
            };
            match categories.iter_mut().find(|category| category.label == label) {
                Some(category) => category.groups.push(group),
                None => categories.push(Category { label, groups: vec![group] }),
            }
        }
        categories
    }
}

/// One figure: panels side by side under a caption.
fn figure(
    id: &str,
    title: &str,
    caption: &str,
    legend: &str,
    panels: &[(String, String)],
) -> String {
    let drawn: Vec<&(String, String)> = panels.iter().filter(|(_, svg)| !svg.is_empty()).collect();
    if drawn.is_empty() {
        return String::new();
    }
    let mut out = format!(
        "<figure id=\"{id}\"><figcaption><b>{}</b>{}{}</figcaption>{legend}<div class=\"panels\">",
        Esc(title),
        if caption.is_empty() { "" } else { " " },
        caption
    );
    for (name, svg) in drawn.iter().take(MOST_PANELS) {
        let heading = if name.is_empty() {
            String::new()
        } else {
            format!("<p class=\"name\">{}</p>", Esc(name))
        };
        let _ = write!(out, "<div class=\"panel\">{heading}{svg}</div>");
    }
    if drawn.len() > MOST_PANELS {
        let _ = write!(
            out,
            "<p class=\"note\">{} panels more are not drawn.</p>",
            drawn.len() - MOST_PANELS
        );
    }
    out + "</div></figure>"
}

fn of_view(data: &Data<'_>, spreads: &Spreads, view: &View) -> String {
    let id = super::anchor("view", data.plan.views.iter().position(|v| v == view).unwrap_or(0));
    let metrics: Vec<(String, Option<String>)> = view.y.iter().map(|y| resolve(data, y)).collect();
    let title = view.title.clone().unwrap_or_else(|| {
        if metrics.is_empty() {
            view.name.clone()
        } else {
            let titles = metrics.iter().map(|(metric, _)| names::title(metric));
            capital(&titles.collect::<Vec<_>>().join(", "))
        }
    });
    let caption = view.caption.as_deref().map_or(String::new(), |text| Esc(text).to_string());
    let mut out = String::new();
    for (metric, only) in &metrics {
        let wanted = |subject: &&Subject| match only {
            Some(name) => subject.name == *name,
            None => view.of.is_empty() || shown(data, subject, &view.of),
        };
        if view.kind == ViewKind::Cdf && DELAYS.contains(&metric.as_str()) {
            let subjects = data.subjects.iter().filter(|subject| spreads.has(subject, metric));
            let subjects: Vec<Subject> = subjects.filter(wanted).cloned().collect();
            let first = data.varying.first().map(|factor| &data.plan.factors[*factor].name[..]);
            let split = view.split.as_deref().or(first);
            let frame = Frame::new(data, subjects, &view.filter, Some("flow"), split);
            out += &delay_figure(&frame, spreads, metric, &id, &title, &caption);
            continue;
        }
        let subjects: Vec<Subject> = data
            .subjects
            .iter()
            .filter(|subject| data.has(subject, metric))
            .filter(wanted)
            .cloned()
            .collect();
        if subjects.is_empty() {
            continue;
        }
        let x_metric = view.x.as_deref().map(|x| resolve(data, x).0);
        let x_metric = x_metric.filter(|x| data.table.metrics.contains(x));
        let x_factor = if x_metric.is_some() { None } else { view.x.as_deref() };
        let frame = Frame::new(data, subjects, &view.filter, x_factor, view.split.as_deref());
        let title = if metrics.len() > 1 {
            format!("{title}: {}", names::title(metric))
        } else {
            title.clone()
        };
        out += &match view.kind {
            ViewKind::Bars if metric == "share" => share_figure(&frame, &id, &title, &caption),
            ViewKind::Bars => bar_figure(&frame, &id, &title, &caption, metric, Layout::Bars),
            ViewKind::Cdf => cdf_figure(&frame, &id, &title, &caption, metric),
            ViewKind::Scatter => {
                let x = x_metric.or_else(|| delay_of(data, &frame.subjects).map(str::to_owned));
                match x {
                    Some(x) => scatter_figure(&frame, &id, &title, &caption, &x, metric),
                    None => String::new(),
                }
            }
            ViewKind::Heatmap => heat_figure(&frame, &id, &title, &caption, metric),
            ViewKind::Series => String::new(),
        };
    }
    if out.is_empty() {
        let _ = write!(
            out,
            "<figure id=\"{id}\"><figcaption><b>{}</b> {caption}</figcaption><p class=\"note\">Nothing \
             that this view asks for ({}) was measured.</p></figure>",
            Esc(&title),
            Esc(&view.y.join(", "))
        );
    }
    out
}

/// A column by its name, with or without unit, or as claims write it: `goodput(cubic)`.
fn resolve(data: &Data<'_>, name: &str) -> (String, Option<String>) {
    let (name, of) = match name.split_once('(') {
        Some((name, of)) => (name.trim(), Some(of.trim_end_matches(')').trim().to_owned())),
        None => (name, None),
    };
    let columns = &data.table.metrics;
    let known = columns
        .iter()
        .find(|column| *column == name)
        .or_else(|| columns.iter().find(|column| names::split_unit(column).0 == name));
    (known.map_or(name, String::as_str).to_owned(), of)
}

fn shown(data: &Data<'_>, subject: &Subject, of: &[String]) -> bool {
    of.contains(&subject.name)
        || subject.kind == Kind::Flow
            && data.plan.scenarios.iter().any(|scenario| {
                scenario
                    .flows
                    .iter()
                    .any(|flow| flow.group == subject.name && of.contains(&flow.name))
            })
}

/// Figures for whatever was measured, most asked for first.
fn standard(data: &Data<'_>, spreads: &Spreads) -> String {
    let mut out = String::new();
    let with = |kind: Kind, metric: &str| -> Vec<Subject> {
        let something = |subject: &&Subject| {
            let mut scenarios = 0..data.plan.scenarios.len();
            scenarios
                .any(|s| data.points(s, subject, metric).iter().any(|point| point.value != 0.0))
        };
        let subjects: Vec<&Subject> = data.of_kind(kind).filter(something).collect();
        let largest = |subject: &Subject| {
            (0..data.plan.scenarios.len())
                .flat_map(|s| data.points(s, subject, metric))
                .map(|point| point.value)
                .fold(0.0, f64::max)
        };
        let most = subjects.iter().map(|subject| largest(subject)).fold(0.0, f64::max);
        // Beside a queue that is waited in, one that only acknowledgements pass says nothing.
        let quiet = |subject: &Subject| kind == Kind::Queue && largest(subject) < most * 0.02;
        subjects.into_iter().filter(|subject| !quiet(subject)).take(8).cloned().collect()
    };
    let asked = |kind: ViewKind, metric: &str| {
        data.plan
            .views
            .iter()
            .any(|view| view.kind == kind && view.y.iter().any(|y| resolve(data, y).0 == metric))
    };
    let frame = |subjects: Vec<Subject>| Frame::new(data, subjects, &[], None, None);

    let flows = with(Kind::Flow, "goodput_mbps");
    if let Some(delay) = delay_of(data, &flows) {
        let flows: Vec<Subject> =
            flows.iter().filter(|subject| data.has(subject, delay)).cloned().collect();
        out += &scatter_figure(
            &frame(flows),
            "throughput-delay",
            "Throughput against delay",
            "Every run is a small point; the large one is their mean with its 1-σ ellipse.",
            delay,
            "goodput_mbps",
        );
    }
    let sharing = with(Kind::Flow, "share");
    if sharing.len() > 1 {
        out += &share_figure(
            &frame(sharing),
            "shares",
            "Who gets how much",
            "Part of each flow in the goodput of all TCP flows, mean over seeds.",
        );
    }
    let flows = with(Kind::Flow, "goodput_mbps");
    if !flows.is_empty() && !asked(ViewKind::Bars, "goodput_mbps") {
        out += &bar_figure(
            &frame(flows),
            "goodput",
            "Goodput",
            "Mean over seeds with its 95 % interval, cut where it has no end; every run is a point.",
            "goodput_mbps",
            Layout::Bars,
        );
    }
    // The delays of one flow under different factors are compared, so factors have the colours.
    let first = data.varying.first().map(|factor| data.plan.factors[*factor].name.as_str());
    for (kind, metric, title) in [
        (Kind::Flow, "rtt", "Round-trip time and its tail"),
        (Kind::Flow, "ping", "Ping and its tail"),
        (Kind::Flow, "frame_delay", "Delay of frames and its tail"),
        (Kind::Flow, "fct", "Completion time of transfers and its tail"),
        (Kind::Queue, "sojourn", "Wait in the queue and its tail"),
    ] {
        let subjects: Vec<Subject> = with(kind, &format!("{metric}_max_ms"))
            .into_iter()
            .filter(|subject| spreads.has(subject, metric))
            .collect();
        if !subjects.is_empty() {
            let frame = Frame::new(data, subjects, &[], Some("flow"), first);
            out += &delay_figure(&frame, spreads, metric, &format!("{metric}-tails"), title, "");
        }
    }
    for (kind, metric, title) in [
        (Kind::Queue, "sojourn_p95_ms", "Wait in the queue, 95th percentile"),
        (Kind::Flow, "rtt_p95_ms", "Round-trip time, 95th percentile"),
        (Kind::Flow, "ping_p95_ms", "Ping, 95th percentile"),
        (Kind::Flow, "frame_delay_p95_ms", "Delay of frames, 95th percentile"),
        (Kind::Flow, "stall100_ms", "Gaps between frames above 100 ms"),
        (Kind::Flow, "mos", "Opinion score of a call"),
    ] {
        let subjects = with(kind, metric);
        if !subjects.is_empty() {
            out += &bar_figure(
                &frame(subjects),
                &format!("boxes-{metric}"),
                title,
                "Box: quartiles and median over runs; whiskers: all of them; every run is a point.",
                metric,
                Layout::Boxes,
            );
        }
    }
    out
}

fn delay_of(data: &Data<'_>, flows: &[Subject]) -> Option<&'static str> {
    ["owd_p95_ms", "rtt_p95_ms", "ping_p95_ms"]
        .into_iter()
        .find(|metric| flows.iter().any(|flow| data.has(flow, metric)))
}

fn bar_figure(
    frame: &Frame<'_>,
    id: &str,
    title: &str,
    caption: &str,
    metric: &str,
    layout: Layout,
) -> String {
    let plan = frame.data.plan;
    let all = frame.values(metric);
    let mut panels = Vec::new();
    for (name, members) in frame.panels() {
        let mut categories = frame.categories(&members, metric);
        categories.truncate(MOST_ROWS);
        let (axis, unit) = (names::axis(plan, metric), names::unit(plan, metric));
        panels.push((name, bars(&categories, layout, &axis, unit, &all)));
    }
    figure(id, title, caption, &frame.legend(None), &panels)
}

fn share_figure(frame: &Frame<'_>, id: &str, title: &str, caption: &str) -> String {
    let mut panels = Vec::new();
    for (name, members) in frame.panels() {
        let mut categories = frame.categories(&members, "share");
        categories.truncate(MOST_ROWS);
        panels.push((name, shares(&categories, "share of goodput")));
    }
    figure(id, title, caption, &frame.legend(None), &panels)
}

fn scatter_figure(
    frame: &Frame<'_>,
    id: &str,
    title: &str,
    caption: &str,
    x: &str,
    y: &str,
) -> String {
    let plan = frame.data.plan;
    let keys = frame.keys(frame.colour);
    let shapes = frame.keys(frame.x);
    let mut drawn = Vec::new();
    for (name, members) in frame.panels() {
        let mut clouds = Vec::new();
        for (scenario, subject) in members {
            let xs = frame.data.points(scenario, subject, x);
            let ys = frame.data.points(scenario, subject, y);
            let points: Vec<(u32, u64, f64, f64)> = ys
                .iter()
                .filter_map(|y| {
                    let x = xs.iter().find(|x| x.run == y.run)?;
                    Some((y.run, y.seed, x.value, y.value))
                })
                .collect();
            if points.is_empty() {
                continue;
            }
            let shape = frame.key(frame.x, scenario, subject);
            clouds.push(Cloud {
                colour: frame.colour(scenario, subject, &keys),
                symbol: shapes.iter().position(|key| *key == shape).unwrap_or(0),
                label: format!("{}, {}", subject.label(), frame.data.label(scenario)),
                short: shape,
                points,
            });
        }
        if clouds.len() > 14 {
            for cloud in &mut clouds {
                cloud.short.clear();
            }
        }
        drawn.push((name, clouds));
    }
    let reversed = names::more_is_better(x) == Some(false);
    let all: Vec<(f64, f64)> = drawn
        .iter()
        .flat_map(|(_, clouds)| clouds.iter().flat_map(|cloud| &cloud.points))
        .map(|point| (point.2, point.3))
        .collect();
    let (x, y) = (names::axis(plan, x), names::axis(plan, y));
    let panels: Vec<(String, String)> = drawn
        .into_iter()
        .map(|(name, clouds)| (name, scatter(&clouds, &x, &y, reversed, &all)))
        .collect();
    figure(id, title, caption, &frame.legend(frame.x), &panels)
}

fn cdf_figure(frame: &Frame<'_>, id: &str, title: &str, caption: &str, metric: &str) -> String {
    let plan = frame.data.plan;
    let all = frame.values(metric);
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
                .flat_map(|(scenario, subject)| frame.data.points(*scenario, subject, metric))
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
                points: steps,
                run: None,
                thin: false,
            });
        }
        let axis = names::axis(plan, metric);
        panels.push((name, curves(&drawn, &axis, "runs up to here", Axis::Even, &all)));
    }
    figure(id, title, caption, &frame.legend(None), &panels)
}

/// More curves than this and single runs are left out.
const MOST_THIN: usize = 200;

/// The distribution of a delay, with a panel for each subject: a thick line for all samples of a
/// scenario, a thin one for each run.
fn delay_figure(
    frame: &Frame<'_>,
    spreads: &Spreads,
    metric: &str,
    id: &str,
    title: &str,
    caption: &str,
) -> String {
    let data = frame.data;
    let keys = frame.keys(frame.colour);
    let mut panels: Vec<(String, Vec<(usize, &Subject)>)> = Vec::new();
    for (name, members) in frame.panels() {
        for (scenario, subject) in members {
            let key = match (frame.subjects.len() > 1, name.is_empty()) {
                (false, _) => name.clone(),
                (true, true) => subject.label().to_owned(),
                (true, false) => format!("{} · {name}", subject.label()),
            };
            match panels.iter_mut().find(|(panel, _)| *panel == key) {
                Some((_, members)) => members.push((scenario, subject)),
                None => panels.push((key, vec![(scenario, subject)])),
            }
        }
    }
    let runs: usize = frame.scenarios.iter().map(|s| data.done[*s].len()).sum();
    let single = runs * frame.subjects.len() <= MOST_THIN;
    let mut drawn = Vec::new();
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
                    points: points.clone(),
                    run: Some(*run),
                    thin: true,
                });
            }
            let points = spread.pooled();
            let at = |share: f64| quantile(&points, share).map_or("–".to_owned(), number);
            here.push(Curve {
                colour,
                label: format!(
                    "{label}: median {} ms, 95 % up to {} ms, 99 % up to {} ms; {} samples of {} runs",
                    at(0.5),
                    at(0.95),
                    at(0.99),
                    number(spread.samples() as f64),
                    spread.runs.len()
                ),
                points,
                run: None,
                thin: false,
            });
        }
        drawn.push((name, here));
    }
    let all: Vec<f64> = drawn
        .iter()
        .flat_map(|(_, curves)| curves.iter().flat_map(|curve| &curve.points))
        .map(|point| point.0)
        .collect();
    let x = format!("{} (ms)", capital(&names::title(&format!("{metric}_ms"))));
    let drawn: Vec<(String, String)> = drawn
        .into_iter()
        .map(|(name, here)| (name, curves(&here, &x, "samples up to here", Axis::Tails, &all)))
        .collect();
    let explained = if single {
        "Share of samples up to a delay, every one counted; the axis is stretched towards its ends. \
         Thick: all runs of a scenario; thin: single runs."
    } else {
        "Share of samples up to a delay, over all runs of a scenario; the axis is stretched towards \
         its ends."
    };
    let caption = if caption.is_empty() { explained } else { caption };
    figure(id, title, caption, &frame.legend(None), &drawn)
}

fn heat_figure(frame: &Frame<'_>, id: &str, title: &str, caption: &str, metric: &str) -> String {
    let columns = match frame.x {
        Some(Split::Factor(factor)) => Some(factor),
        _ => None,
    };
    let mut out = format!(
        "<figure id=\"{id}\"><figcaption><b>{}</b> {caption}</figcaption><div class=\"panels\">",
        Esc(title)
    );
    if frame.scenarios.is_empty() {
        return String::new();
    }
    for subject in frame.subjects.iter().take(MOST_PANELS) {
        let table = matrix::table(frame.data, &frame.scenarios, subject, metric, columns, false);
        let _ = write!(out, "<div class=\"panel\">{table}</div>");
    }
    out + "</div></figure>"
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}
