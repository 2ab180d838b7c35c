//! The figures that a study asks for, and those that suit what was measured. No figure repeats
//! another one.

mod bars;
mod frame;
mod harm;
mod heat;
mod line;
mod panels;
mod scatter;
mod spread;
mod table;
mod verdicts;

use std::collections::{BTreeMap, BTreeSet};

use sojourn_metrics::DELAYS;
use sojourn_study::results::{Kind, Numbers, View, ViewKind};

use self::bars::{bar_figure, share_figure};
use self::frame::Frame;
use self::harm::harm_figure;
use self::heat::heat_figure;
use self::line::line_figure;
use self::panels::Head;
pub(crate) use self::panels::{ALONE, Body, Drawing, Figure, PHONE, Table, row};
use self::scatter::scatter_figure;
use self::spread::{cdf_figure, delay_figure};
use self::table::table_figure;
use self::verdicts::verdict_figure;
use super::columns::resolve;
use crate::data::{Data, Subject};
use crate::markup::Esc;
use crate::names::{self, capital};
use crate::spread::Spreads;
use crate::svg::Layout;

/// The figure of the answer, and the sections with all others.
pub(crate) struct Figures {
    pub(crate) lead: String,
    pub(crate) section: String,
}

/// `lead` is the figure of the answer; if it is empty, the first one is.
pub(crate) fn figures(data: &Data<'_>, spreads: &Spreads, lead: String) -> Figures {
    let html = |figures: Vec<Figure>| figures.iter().map(Figure::html).collect::<String>();
    let views = data.plan.views.iter().filter(|view| view.kind != ViewKind::Series);
    let asked: Vec<String> = views.map(|view| html(of_view(data, spreads, view))).collect();
    let has_own = !asked.is_empty();
    let mut all = asked.into_iter();
    let mut others = standard(data, spreads).into_iter().map(|figure| figure.html());
    let lead = Some(lead).filter(|lead| !lead.is_empty()).or_else(|| all.next());
    let lead = lead.or_else(|| others.next()).unwrap_or_default();
    let (rest, mut others): (String, String) = (all.collect(), others.collect());
    let is_left_out = |kind: Kind| data.of_kind(kind).nth(MOST_SUBJECTS).is_some();
    if !others.is_empty() && [Kind::Flow, Kind::Queue].into_iter().any(is_left_out) {
        others += &format!(
            "<p class=\"caption\">Where more than {MOST_SUBJECTS} flows or queues have a value, these figures \
             have the first {MOST_SUBJECTS}; the tables have all.</p>"
        );
    }
    let mut html = String::new();
    let mut section = |id: &str, title: &str, figures: &str| {
        if !figures.is_empty() {
            html += &format!(
                "<section {id}><h2>{title}</h2><div class=\"figures\">{figures}</div></section>"
            );
        }
    };
    section("id=\"figures\"", "Figures", if has_own { &rest } else { &others });
    if has_own {
        // A study that says what it wants to show is printed with that.
        section("id=\"standard\" data-print=\"no\"", "Standard figures", &others);
    }
    Figures { lead, section: html }
}

/// A figure for each metric of the view.
pub(crate) fn of_view(data: &Data<'_>, spreads: &Spreads, view: &View) -> Vec<Figure> {
    let id =
        super::shell::anchor("view", data.plan.views.iter().position(|v| v == view).unwrap_or(0));
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
    let mut out = Vec::new();
    if view.kind == ViewKind::Verdicts {
        let title = view.title.as_deref().unwrap_or("Which claim holds where");
        out.extend(verdict_figure(data, &Head { id: &id, title, caption: &caption }, view));
    }
    if view.kind == ViewKind::Table {
        out.extend(table_figure(
            data,
            &Head { id: &id, title: &title, caption: &caption },
            view,
            &metrics,
        ));
    }
    for (metric, only) in metrics.iter().filter(|_| view.kind != ViewKind::Table) {
        let wanted = |subject: &&Subject| data.is_shown(view, only.as_deref(), subject);
        if view.kind == ViewKind::Cdf && DELAYS.contains(&metric.as_str()) {
            let subjects = data.all().filter(|subject| spreads.has(subject, metric));
            let subjects: Vec<Subject> = subjects.filter(wanted).cloned().collect();
            let first = data.varying.first().map(|factor| &data.plan.factors[*factor].name[..]);
            let split = view.split.as_deref().or(first);
            let frame = Frame::new(data, subjects, &view.filter, Some("flow"), split);
            let head = Head { id: &id, title: &title, caption: &caption };
            out.extend(delay_figure(&frame, spreads, metric, &head));
            continue;
        }
        let measured = data.all().filter(|subject| data.has(subject, metric));
        let subjects: Vec<Subject> = measured.filter(wanted).cloned().collect();
        if view.kind == ViewKind::Harm {
            for subject in &subjects {
                let title = match metrics.len() > 1 || subjects.len() > 1 {
                    true => format!("{title}: {} of {}", names::title(metric), subject.label()),
                    false => title.clone(),
                };
                let head = Head { id: &id, title: &title, caption: &caption };
                out.extend(harm_figure(data, &head, view, subject, metric));
            }
            continue;
        }
        let is_named = only.is_some() || !view.of.is_empty();
        let subjects = if is_named { subjects } else { once_a_station(subjects, metric) };
        let (subjects, zeros) = without_zeros(data, subjects, metric, is_named);
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
        let caption = with_zeros(&caption, &zeros);
        let head = Head { id: &id, title: &title, caption: &caption };
        out.extend(match view.kind {
            ViewKind::Bars if metric == "share" => share_figure(&frame, &head),
            ViewKind::Bars => bar_figure(&frame, &head, metric, Layout::Bars),
            ViewKind::Boxes => {
                let caption = if caption.is_empty() { BOXES } else { &caption };
                let head = Head { id: &id, title: &title, caption };
                bar_figure(&frame, &head, metric, Layout::Boxes)
            }
            ViewKind::Cdf => cdf_figure(&frame, &head, metric),
            ViewKind::Scatter => {
                let x = x_metric.or_else(|| delay_of(data, &frame.subjects).map(str::to_owned));
                x.and_then(|x| scatter_figure(&frame, &head, &x, metric))
            }
            ViewKind::Heatmap => heat_figure(&frame, &head, metric),
            // A single value that is left of a factor need not be a number.
            ViewKind::Line => line_figure(&frame, &head, metric, view.log.as_deref())
                .or_else(|| bar_figure(&frame, &head, metric, Layout::Bars)),
            ViewKind::Series | ViewKind::Verdicts | ViewKind::Harm | ViewKind::Table => None,
        });
    }
    if out.is_empty() {
        let asked = if view.y.is_empty() { "verdicts".to_owned() } else { view.y.join(", ") };
        let nothing = match &view.x {
            Some(x) if view.kind == ViewKind::Scatter => format!(
                "Nothing has both {} and {}, so there is no point to draw.",
                Esc(x),
                Esc(&asked)
            ),
            _ => format!("Nothing that this view asks for ({}) was measured.", Esc(&asked)),
        };
        out.push(
            Head { id: &id, title: &title, caption: &caption }.figure(Body::Sentence(nothing)),
        );
    }
    out
}

/// Both ports of a station have its share of the air, and all ports of a radio its index: the first stands for the others.
fn once_a_station(mut subjects: Vec<Subject>, metric: &str) -> Vec<Subject> {
    let whose = |name: &str| match metric {
        "station_airtime_share" => {
            let station = name.strip_suffix("-down").or_else(|| name.strip_suffix("-up"));
            station.map(str::to_owned)
        }
        "jain_airtime" => name.split_once('.').map(|(radio, _)| radio.to_owned()),
        _ => None,
    };
    let mut seen = BTreeSet::new();
    subjects.retain(|subject| whose(&subject.name).is_none_or(|whose| seen.insert(whose)));
    subjects
}

/// What is shown, and what is left out because it is zero in every run, such as the losses of a flow beside
/// those of others; nothing is, if the view names what it shows, or all is zero.
fn without_zeros(
    data: &Data<'_>,
    subjects: Vec<Subject>,
    metric: &str,
    is_named: bool,
) -> (Vec<Subject>, Vec<Subject>) {
    let is_something = |subject: &Subject| {
        let mut scenarios = 0..data.plan.scenarios.len();
        scenarios.any(|s| data.points(s, subject, metric).iter().any(|point| point.value != 0.0))
    };
    if is_named || !subjects.iter().any(is_something) {
        return (subjects, Vec::new());
    }
    subjects.into_iter().partition(is_something)
}

/// The caption, and what the figure does not show: a transfer that got nothing must not be missed.
fn with_zeros(caption: &str, zeros: &[Subject]) -> String {
    let names: Vec<String> = zeros.iter().map(|zero| Esc(zero.label()).to_string()).collect();
    let zeros = match names.len() {
        0 => return caption.to_owned(),
        1..=MOST_SUBJECTS => names.join(", "),
        more => format!("{} and {} more", names[..MOST_SUBJECTS].join(", "), more - MOST_SUBJECTS),
    };
    format!("{caption} Zero in every run, so not drawn: {zeros}.").trim_start().to_owned()
}

/// The most flows, or queues, in a figure that no view asks for: there are as many colours.
const MOST_SUBJECTS: usize = 8;

/// Figures for what was measured and no view shows; those asked for most come first.
pub(crate) fn standard(data: &Data<'_>, spreads: &Spreads) -> Vec<Figure> {
    let mut out: Vec<Figure> = Vec::new();
    let with = |kind: Kind, metric: &str| -> Vec<Subject> {
        let something = |subject: &&Subject| {
            let mut scenarios = 0..data.plan.scenarios.len();
            scenarios
                .any(|s| data.points(s, subject, metric).iter().any(|point| point.value != 0.0))
        };
        let subjects: Vec<&Subject> = data.of_kind(kind).filter(something).collect();
        let largest = |subject: &Subject| {
            (0..data.plan.scenarios.len())
                .flat_map(|s| data.points(s, subject, metric).points)
                .map(|point| point.value)
                .fold(0.0, f64::max)
        };
        let most = subjects.iter().map(|subject| largest(subject)).fold(0.0, f64::max);
        // If another queue has waits, a queue that only acknowledgements pass is not interesting.
        let quiet = |subject: &Subject| kind == Kind::Queue && largest(subject) < most * 0.02;
        subjects
            .into_iter()
            .filter(|subject| !quiet(subject))
            .take(MOST_SUBJECTS)
            .cloned()
            .collect()
    };
    // A view of a metric has shown it, whatever the view's kind.
    let asked = |metric: &str| {
        let mut views = data.plan.views.iter().filter(|view| view.kind != ViewKind::Series);
        views.any(|view| {
            view.y.iter().any(|y| {
                let (name, _) = resolve(data, y);
                name == metric || name == names::split_unit(metric).0
            })
        })
    };
    let asked_kind = |kind: ViewKind| data.plan.views.iter().any(|view| view.kind == kind);
    let frame = |subjects: Vec<Subject>| Frame::new(data, subjects, &[], None, None);

    let numeric = numeric_factor(data).filter(|_| !asked_kind(ViewKind::Line));
    if let Some(factor) = numeric {
        for (metric, title) in [
            ("goodput_mbps", "How goodput changes"),
            ("rtt_p95_ms", "How the round-trip time changes, 95th percentile"),
            ("fct_p95_ms", "How completion times change, 95th percentile"),
        ] {
            let subjects = with(Kind::Flow, metric);
            if !subjects.is_empty() && !asked(metric) {
                let frame = Frame::new(data, subjects, &[], Some(factor), None);
                let head = Head {
                    id: &format!("line-{metric}"),
                    title: &format!("{title} with {factor}"),
                    caption: "Mean over seeds; the band is its 95 % interval; every run is a point.",
                };
                out.extend(line_figure(&frame, &head, metric, None));
            }
        }
    }
    let flows = with(Kind::Flow, "goodput_mbps");
    if let Some(delay) = delay_of(data, &flows)
        && !asked_kind(ViewKind::Scatter)
    {
        let flows: Vec<Subject> =
            flows.iter().filter(|subject| data.has(subject, delay)).cloned().collect();
        let head = Head {
            id: "throughput-delay",
            title: "Who gets rate, and who pays for it with delay?",
            caption: "Up is more goodput, right is less delay. Every run is a small point; the large \
                      one is their mean with its 1-σ ellipse.",
        };
        out.extend(scatter_figure(&frame(flows), &head, delay, "goodput_mbps"));
    }
    let flows = with(Kind::Flow, "goodput_mbps");
    if numeric.is_none() && !flows.is_empty() && !asked("goodput_mbps") && !asked("share") {
        let head = Head {
            id: "goodput",
            title: "What rate does each flow get?",
            caption: "Goodput, mean over seeds with its 95 % interval, cut where it has no end; every \
                      run is a point.",
        };
        out.extend(bar_figure(&frame(flows), &head, "goodput_mbps", Layout::Bars));
    }
    // The delays of one flow under different factors are compared, so colours show a factor.
    let first = data.telling_factor().map(|factor| data.plan.factors[factor].name.as_str());
    for (kind, metric, title) in [
        (Kind::Flow, "rtt", "How bad do the worst round trips get?"),
        (Kind::Flow, "ping", "How long does a ping take, at worst?"),
        (Kind::Flow, "frame_delay", "How late are frames, at worst?"),
        (Kind::Flow, "fct", "How long do transfers take, at worst?"),
        (Kind::Queue, "sojourn", "How long do packets wait in the queue, at worst?"),
    ] {
        if asked(metric) {
            continue;
        }
        let subjects: Vec<Subject> = with(kind, &format!("{metric}_max_ms"))
            .into_iter()
            .filter(|subject| spreads.has(subject, metric))
            // A datagram of a flow without frames of its own counts as one.
            .filter(|subject| metric != "frame_delay" || !data.is_call(subject))
            .collect();
        if !subjects.is_empty() {
            let frame = Frame::new(data, subjects, &[], Some("flow"), first);
            let head = Head { id: &format!("{metric}-tails"), title, caption: "" };
            out.extend(delay_figure(&frame, spreads, metric, &head));
        }
    }
    for (kind, metric, title) in [
        (Kind::Flow, "stall100_ms", "How long did frames stay away?"),
        (Kind::Flow, "mos", "What would a caller say of the call?"),
    ] {
        let mut subjects = with(kind, metric);
        subjects.retain(|subject| (metric == "mos") == data.is_call(subject));
        if !subjects.is_empty() && !asked(metric) {
            // One or two runs have no quartiles.
            let (layout, caption) = match data.plan.seeds.len() {
                ..3 => (Layout::Bars, "Mean over seeds; every run is a point."),
                _ => (Layout::Boxes, BOXES),
            };
            let head = Head { id: &format!("boxes-{metric}"), title, caption };
            out.extend(bar_figure(&frame(subjects), &head, metric, layout));
        }
    }
    out
}

const BOXES: &str =
    "Box: quartiles and median over runs; whiskers: all of them; every run is a point.";

/// The factor with the most values, at least three, that are numbers and that scenarios differ in which
/// are otherwise alike.
fn numeric_factor<'a>(data: &Data<'a>) -> Option<&'a str> {
    let is_numeric = |factor: &usize| {
        let values = &data.plan.factors[*factor].values;
        values.len() >= 3 && Numbers::of(values).is_some() && values_alone(data, *factor) >= 3
    };
    let numeric = data.varying.iter().filter(|factor| is_numeric(factor));
    let longest = numeric.max_by_key(|factor| data.plan.factors[**factor].values.len())?;
    Some(&data.plan.factors[*longest].name)
}

/// The most values that a factor takes while all other factors keep theirs.
fn values_alone(data: &Data<'_>, factor: usize) -> usize {
    let others = |scenario: usize| -> Vec<&str> {
        let others = data.varying.iter().filter(|other| **other != factor);
        others.map(|other| data.value(scenario, *other)).collect()
    };
    let mut alike: BTreeMap<Vec<&str>, BTreeSet<&str>> = BTreeMap::new();
    for scenario in 0..data.plan.scenarios.len() {
        alike.entry(others(scenario)).or_default().insert(data.value(scenario, factor));
    }
    alike.values().map(BTreeSet::len).max().unwrap_or(0)
}

fn delay_of(data: &Data<'_>, flows: &[Subject]) -> Option<&'static str> {
    ["owd_p95_ms", "rtt_p95_ms", "ping_p95_ms"]
        .into_iter()
        .find(|metric| flows.iter().any(|flow| data.has(flow, metric)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_both_ports_of_a_station_have_is_drawn_once() {
        let names = ["wifi.a-down", "wifi.a-up", "wifi.b-down", "wifi.b-up", "queue"];
        let subjects =
            || names.map(|name| Subject { kind: Kind::Queue, name: name.to_owned() }).to_vec();
        let shown = |metric: &str| -> Vec<String> {
            once_a_station(subjects(), metric).into_iter().map(|subject| subject.name).collect()
        };
        assert_eq!(shown("station_airtime_share"), ["wifi.a-down", "wifi.b-down", "queue"]);
        assert_eq!(shown("jain_airtime"), ["wifi.a-down", "queue"]);
        assert_eq!(shown("airtime_share"), names);
    }
}
