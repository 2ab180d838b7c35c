//! Which metrics flows, queues and runs can have, whatever happens: of a claim on any other it is known that
//! it can't be tested before anything runs.

use std::collections::{BTreeMap, BTreeSet};

use sojourn_file::StudyScenario;
use sojourn_file::plan::PlannedFlow;
use sojourn_metrics::{Doing, FlowKind, METRICS, Metric, Of, RunMetrics, Scope, fullest, metrics};
use sojourn_scenario::{App, Flow, Traffic};

use crate::engine;

/// A set of metrics, by their places in [`METRICS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetricSet([u64; MetricSet::WORDS]);

impl MetricSet {
    const WORDS: usize = METRICS.len().div_ceil(64);

    fn of(run: &RunMetrics) -> Self {
        let mut set = Self::default();
        for (place, metric) in METRICS.iter().enumerate() {
            let has = match metric.of {
                Of::Flow(of) => run.flows.iter().any(|flow| of(flow).is_some()),
                Of::Link(of) => run.links.iter().any(|link| of(link).is_some()),
                Of::Run(of) => of(run).is_some(),
            };
            set.0[place / 64] |= u64::from(has) << (place % 64);
        }
        set
    }

    fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(own, other)| *own |= other);
    }

    pub fn has(&self, metric: &Metric) -> bool {
        let is_it = |known: &Metric| known.scope == metric.scope && known.name == metric.name;
        let place = METRICS.iter().position(is_it);
        place.is_some_and(|place| self.0[place / 64] >> (place % 64) & 1 == 1)
    }
}

/// What each flow, group and queue, and under the empty name the run, can have in each scenario.
#[derive(Clone, Debug, Default)]
pub struct Possible {
    /// By name: the scenarios from which on something else holds, and what does.
    of: BTreeMap<String, Vec<(u32, MetricSet)>>,
    /// What was found out already: by engine as it is written, what a flow does, and whether there is a radio.
    known: BTreeMap<String, BTreeMap<(Doing, bool), MetricSet>>,
}

impl Possible {
    /// Takes in the next scenario. `engine` is its engine as it is written; empty for the usual one.
    pub(crate) fn add(&mut self, number: u32, scenario: &StudyScenario, engine: &str) {
        let is_radio = !scenario.scenario.carriers.is_empty();
        let mut of_names: BTreeMap<&str, MetricSet> = BTreeMap::new();
        for (flow, planned) in scenario.scenario.flows.iter().zip(&scenario.flows) {
            for doing in doings(flow, planned, engine) {
                let set = self.set(scenario, engine, doing, is_radio);
                for name in BTreeSet::from(["", &planned.name[..], &planned.group[..]]) {
                    of_names.entry(name).or_default().add(&set);
                }
            }
        }
        // What is measured of a queue depends on no flow.
        let set = self.set(scenario, engine, ONLY_ECHOES, is_radio);
        for queue in &scenario.queues {
            of_names.entry(&queue.name).or_default().add(&set);
        }
        for (name, changes) in &mut self.of {
            let set = of_names.remove(&name[..]).unwrap_or_default();
            if changes.last().is_none_or(|(_, last)| *last != set) {
                changes.push((number, set));
            }
        }
        for (name, set) in of_names {
            self.of.insert(name.to_owned(), vec![(number, set)]);
        }
    }

    /// Whether what has this name can have the metric: the scenarios from which on something else holds, and what does.
    pub(crate) fn changes(&self, name: &str, metric: &Metric) -> Vec<(u32, bool)> {
        let changes = self.of.get(name).into_iter().flatten();
        changes.map(|(first, set)| (*first, set.has(metric))).collect()
    }

    /// Whether it can have the metric in a scenario.
    pub fn has(&self, name: &str, metric: &Metric, scenario: u32) -> bool {
        holds_at(&self.changes(name, metric), scenario)
    }

    /// The metrics of a scope that it can have in any scenario.
    pub(crate) fn all(&self, name: &str, scope: Scope) -> impl Iterator<Item = &'static Metric> {
        let mut all = MetricSet::default();
        self.of.get(name).into_iter().flatten().for_each(|(_, set)| all.add(set));
        metrics(scope).filter(move |metric| all.has(metric))
    }

    fn set(
        &mut self,
        scenario: &StudyScenario,
        engine: &str,
        doing: Doing,
        is_radio: bool,
    ) -> MetricSet {
        let known = self.known.get(engine).and_then(|known| known.get(&(doing, is_radio)));
        if let Some(known) = known {
            return *known;
        }
        let mut run = fullest(doing, is_radio);
        engine::forget(scenario, &mut run);
        let set = MetricSet::of(&run);
        self.known.entry(engine.to_owned()).or_default().insert((doing, is_radio), set);
        set
    }
}

/// What holds in a scenario, of what [`Possible::changes`] gives.
pub(crate) fn holds_at(changes: &[(u32, bool)], scenario: u32) -> bool {
    let place = changes.partition_point(|(first, _)| *first <= scenario);
    place.checked_sub(1).is_some_and(|last| changes[last].1)
}

/// The applications whose flows can have a metric, as they are written.
pub(crate) fn applications(metric: &Metric) -> Vec<&'static str> {
    let of = |kind, has_transfers| Doing { kind, has_transfers, probes_rtt: true, is_call: false };
    let all = [
        ("bulk", of(FlowKind::Tcp, false)),
        ("bulk with bytes", of(FlowKind::Tcp, true)),
        ("on_off", of(FlowKind::Tcp, false)),
        ("arrivals", of(FlowKind::Arrivals, true)),
        ("page", of(FlowKind::Page, true)),
        ("requests", of(FlowKind::Requests, true)),
        ("rpm", of(FlowKind::Rpm, false)),
        ("udp", of(FlowKind::Udp, false)),
        ("frames", of(FlowKind::Udp, false)),
        ("call", Doing { is_call: true, ..of(FlowKind::Udp, false) }),
        ("ping", of(FlowKind::Ping, false)),
    ];
    let has = |doing| fullest(doing, true).flows.iter().any(|flow| metric.of_flow(flow).is_some());
    all.into_iter().filter(|(_, doing)| has(*doing)).map(|(name, _)| name).collect()
}

const ONLY_ECHOES: Doing =
    Doing { kind: FlowKind::Ping, has_transfers: false, is_call: false, probes_rtt: false };

/// What a flow does; of an application from outside all that it may do.
fn doings(flow: &Flow, planned: &PlannedFlow, engine: &str) -> Vec<Doing> {
    let of = |kind| Doing { kind, ..ONLY_ECHOES };
    // What runs under another engine need not be the simulator's controller.
    let connection = flow.lone_connection().filter(|_| engine.is_empty());
    let phases = connection.map(|(_, cca)| cca.phases()).filter(|all| !all.is_empty());
    let probes_rtt =
        phases.is_none_or(|phases| phases.iter().any(|phase| phase.starts_with("PROBE_")));
    let tcp = |kind, has_transfers| Doing { kind, has_transfers, is_call: false, probes_rtt };
    match &flow.app {
        App::Tcp { traffic, .. } => vec![match traffic {
            Traffic::Bulk(bulk) => tcp(FlowKind::Tcp, bulk.bytes.is_some()),
            Traffic::OnOff(_) => tcp(FlowKind::Tcp, false),
            Traffic::Arrivals(_) => tcp(FlowKind::Arrivals, true),
            Traffic::Page(_) => tcp(FlowKind::Page, true),
            Traffic::Requests(_) => tcp(FlowKind::Requests, true),
            Traffic::Rpm(_) => tcp(FlowKind::Rpm, false),
        }],
        App::Ping(_) => vec![ONLY_ECHOES],
        App::Udp(_) => vec![of(FlowKind::Udp)],
        App::External(app) if app.0.is_tcp() => {
            vec![tcp(FlowKind::Tcp, app.0.transfer().is_some())]
        }
        App::External(_) => {
            let call = Doing { is_call: true, ..of(FlowKind::Udp) };
            match &planned.app[..] {
                "call" => vec![call],
                _ => vec![call, of(FlowKind::Udp), ONLY_ECHOES],
            }
        }
    }
}
