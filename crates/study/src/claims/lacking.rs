//! Claims on metrics that what they name can't have, whatever happens in the runs.

use sojourn_core::SpecError;
use sojourn_metrics::Metric;

use super::over_time::What;
use super::resolve::{Expectation, Value};
use crate::metrics;
use crate::possible::{Possible, applications, holds_at};
use crate::results::{Kind, Plan};

/// A value of an expression that some scenarios can't have.
pub(crate) struct Lack {
    /// Where the metric stands in the expression.
    pub(crate) at: usize,
    /// What is wrong, if no scenario can have it.
    pub(crate) everywhere: Option<SpecError>,
    /// The metric and its flow or queue, as a claim writes them.
    pub(crate) what: String,
    /// How many scenarios can't have it.
    pub(crate) scenarios: usize,
}

/// The values of an expression that can't be measured in some of the scenarios that its claim covers.
pub(crate) fn lacks(
    expectation: &Expectation,
    covered: &[u32],
    plan: &Plan,
    possible: &Possible,
) -> Vec<Lack> {
    let values = expectation.values();
    values.into_iter().filter_map(|value| lack(value, covered, plan, possible)).collect()
}

fn lack(value: &Value, covered: &[u32], plan: &Plan, possible: &Possible) -> Option<Lack> {
    let changes = of_any(value, possible);
    if changes.iter().all(|(_, has)| *has) && !changes.is_empty() && changes[0].0 == 0 {
        return None;
    }
    let is_there = |scenario: &u32| {
        let factors = &plan.scenarios[*scenario as usize].factors;
        value.elsewhere.iter().all(|(factor, chosen)| *factors[*factor] == **chosen)
    };
    // A value from elsewhere may be from a scenario that the claim does not cover.
    let scenarios: Vec<u32> = match value.elsewhere.is_empty() {
        true => covered.to_vec(),
        false => (0..plan.scenarios.len() as u32).filter(is_there).collect(),
    };
    let without = scenarios.iter().filter(|scenario| !holds_at(&changes, **scenario)).count();
    let is_everywhere = without == scenarios.len();
    if without == 0 || (!is_everywhere && !value.elsewhere.is_empty()) {
        return None;
    }
    let what = match value.kind {
        Kind::Run => format!("{}()", named(value)),
        Kind::Flow | Kind::Queue => format!("{}({})", named(value), value.of),
    };
    let everywhere = is_everywhere.then(|| problem(value, &scenarios, plan, possible));
    Some(Lack { at: value.at, everywhere, what, scenarios: without })
}

/// The metric or column as it is named.
fn named(value: &Value) -> &'static str {
    match &value.over_time {
        Some(over_time) => match &over_time.what {
            What::Column(name, _) => name,
            What::Phase(..) | What::Entry(..) => value.metric,
        },
        None => value.metric,
    }
}

/// As [`Possible::changes`], of the metric of a value or of one that goes with its column.
fn of_any(value: &Value, possible: &Possible) -> Vec<(u32, bool)> {
    let all: Vec<_> = metrics_of(value).map(|metric| possible.changes(&value.of, metric)).collect();
    // Each has the same scenarios.
    let mut any = all.first().cloned().unwrap_or_default();
    for other in &all {
        any.iter_mut().zip(other).for_each(|((_, has), (_, other))| *has |= other);
    }
    any
}

/// The metric of a value; of a column of the time series those of which something has at least one if it has the column.
fn metrics_of(value: &Value) -> impl Iterator<Item = &'static Metric> {
    let names: Vec<&'static str> = match (&value.over_time, value.kind) {
        (None, _) => vec![value.metric],
        (Some(_), Kind::Queue | Kind::Run) => vec!["sent_packets"],
        (Some(_), Kind::Flow) => of_column(named(value)).to_vec(),
    };
    let kind = value.kind;
    names.into_iter().filter_map(move |name| metrics::known(name, &[kind]))
}

/// Metrics of which a flow has one if it has the column of the time series.
fn of_column(name: &str) -> &'static [&'static str] {
    let begins = |words: &[&str]| words.iter().any(|word| name.starts_with(word));
    let of_calls =
        ["target", "sent", "received", "delay_based", "loss_based", "acknowledged", "frames"];
    match () {
        () if begins(&["goodput"]) => &["goodput_mbps"],
        () if begins(&["rtt_"]) => &["rtt_p50_ms", "ping_p50_ms"],
        () if begins(&["owd_"]) => &["owd_p50_ms"],
        () if begins(&["frame_delay"]) => &["frame_delay_p50_ms"],
        () if begins(&["av_offset"]) => &["av_offset_p50_ms"],
        () if begins(&["dropped_"]) => &["sent_packets"],
        () if begins(&of_calls) => &["frames_encoded"],
        () => &["cwnd_p50_pkts"],
    }
}

fn problem(value: &Value, scenarios: &[u32], plan: &Plan, possible: &Possible) -> SpecError {
    let (name, of) = (named(value), &value.of);
    let scope = match value.kind {
        Kind::Run => sojourn_metrics::Scope::Run,
        Kind::Flow => sojourn_metrics::Scope::Flow,
        Kind::Queue => sojourn_metrics::Scope::Link,
    };
    let mut families: Vec<String> = Vec::new();
    for metric in possible.all(of, scope) {
        let family = family(metric.name);
        if !families.contains(&family) {
            families.push(family);
        }
    }
    let problem = match value.kind {
        Kind::Run => format!("no run of these scenarios has '{name}'"),
        Kind::Queue => format!("'{of}' is a queue that never has '{name}'"),
        Kind::Flow => {
            let own = own_applications(of, scenarios, plan);
            if own.is_empty() {
                return SpecError::new(format!("no scenario that the claim covers has '{of}'"));
            }
            let others: Vec<&str> = {
                let mut all: Vec<&str> = metrics_of(value).flat_map(applications).collect();
                all.dedup();
                all
            };
            let own = own.join(", ");
            match others.is_empty() || others.contains(&&own[..]) {
                true => format!("'{of}' ({own}) never has '{name}' with this engine"),
                false => {
                    let (last, others) = others.split_last().expect("there are some");
                    let and = if others.is_empty() { "" } else { " and " };
                    let others = others.join(", ");
                    format!("'{of}' ({own}) never has '{name}'; flows of {others}{and}{last} do")
                }
            }
        }
    };
    SpecError::new(problem).allow(families)
}

/// The applications of the flows of this name in some scenarios, each once.
fn own_applications(name: &str, scenarios: &[u32], plan: &Plan) -> Vec<String> {
    let mut all = Vec::new();
    for scenario in scenarios {
        let flows = plan.scenarios[*scenario as usize].flows.iter();
        for flow in flows.filter(|flow| flow.name == name || flow.group == name) {
            let with = if flow.bytes.is_some() { " with bytes" } else { "" };
            let app = format!("{}{with}", flow.app);
            if !all.contains(&app) {
                all.push(app);
            }
        }
    }
    all
}

/// The name of a metric with a `*` in place of its summary: `rtt_*_ms`.
fn family(name: &str) -> String {
    let is_summary = |part: &str| {
        let is_quantile =
            |digits: &str| !digits.is_empty() && digits.bytes().all(|c| c.is_ascii_digit());
        matches!(part, "min" | "mean" | "max") || part.strip_prefix('p').is_some_and(is_quantile)
    };
    let parts = name.split('_').map(|part| if is_summary(part) { "*" } else { part });
    parts.collect::<Vec<_>>().join("_")
}
