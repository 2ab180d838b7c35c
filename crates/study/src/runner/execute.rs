//! One run: from a scenario and a seed to rows and series.

use sojourn_core::{PortId, Rate, StreamAddress};
use sojourn_host::tcp;
use sojourn_metrics::{
    Collector, Distribution, FLOW_COLUMNS, FlowShape, LINK_COLUMNS, LinkShape, Metric, RunMetrics,
    Scope, Shape, qoe::EmptyPath,
};
use sojourn_scenario::{App, Checked, Flow, PortShape, Scenario, Traffic};
use sojourn_sim::Outcome;

use super::end_state;
use crate::results::{Bucket, Delays, Kind, MetricColumn, Row, RunResult, Series, SeriesColumn};

/// Which run it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named {
    /// Position in the plan.
    pub(super) run: u32,
    pub(super) scenario: u32,
    pub(super) seed: u64,
}

/// Simulates; an error is a fault of the model, not of the scenario.
pub(super) fn execute(
    scenario: &Checked,
    address: StreamAddress,
    named: Named,
    columns: &[MetricColumn],
) -> Result<RunResult, String> {
    let mut collector = Collector::new(shape(scenario));
    let outcome = sojourn_sim::run(scenario, address, &mut collector)
        .map_err(|violation| format!("an invariant was broken: {violation}"))?;
    let metrics = collector.finish(outcome.end);
    let mut rows = rows(&metrics, named, columns);
    let ends = end_states(scenario, &outcome, &metrics);
    // The first row is that of the run as a whole.
    for (row, end_state) in rows.iter_mut().skip(1).zip(ends) {
        row.end_state = end_state;
    }
    Ok(RunResult {
        run: named.run,
        rows,
        series: series(&metrics, named),
        delays: delays(&metrics, named.run),
    })
}

/// For every flow, then for every queue.
fn end_states(scenario: &Scenario, outcome: &Outcome, metrics: &RunMetrics) -> Vec<String> {
    let flows =
        scenario.flows.iter().zip(&outcome.flows).map(|(flow, sample)| match (&flow.app, sample) {
            (App::Tcp { transport, .. }, Some(sample)) => end_state::ss(sample, transport.mss),
            _ => String::new(),
        });
    let links = metrics.links.iter().zip(&outcome.links).zip(&outcome.queue_details);
    let links = links.map(|((link, sample), details)| end_state::tc(link, sample, details));
    flows.chain(links).collect()
}

/// For every flow, then for every queue.
fn delays(metrics: &RunMetrics, run: u32) -> Vec<Delays> {
    let of = |kind: Kind, name: &str, (metric, distribution): (&str, &Distribution)| Delays {
        run,
        kind,
        name: name.to_owned(),
        metric: metric.to_owned(),
        buckets: distribution
            .buckets()
            .map(|(low_ns, high_ns, samples)| Bucket { low_ns, high_ns, samples })
            .collect(),
    };
    let flows = metrics.flows.iter().flat_map(|flow| {
        let delays = flow.delays().into_iter().chain(flow.open());
        delays.map(|delay| of(Kind::Flow, &flow.name, delay))
    });
    let links = metrics
        .links
        .iter()
        .flat_map(|link| link.delays().map(|delay| of(Kind::Queue, &link.name, delay)));
    flows.chain(links).filter(|delays| !delays.buckets.is_empty()).collect()
}

/// What there is to observe in a scenario.
pub fn shape(scenario: &Scenario) -> Shape {
    let ports = scenario.ports();
    Shape {
        flows: scenario
            .flows
            .iter()
            .map(|flow| match &flow.app {
                App::Tcp { traffic, transport, .. } => FlowShape {
                    empty: Some(empty_path(&ports, flow, transport)),
                    transfer: match traffic {
                        Traffic::Bulk(config) => config.bytes,
                        Traffic::OnOff(_) | Traffic::Arrivals(_) => None,
                    },
                    ..match traffic {
                        Traffic::Arrivals(_) => FlowShape::arrivals(&flow.name),
                        Traffic::Bulk(_) | Traffic::OnOff(_) => FlowShape::tcp(&flow.name),
                    }
                },
                App::Ping(_) => FlowShape::ping(&flow.name),
                App::Udp(_) | App::External(_) => FlowShape::udp(&flow.name),
            })
            .collect(),
        links: ports.iter().map(|port| LinkShape { name: port.name.clone() }).collect(),
        duration: scenario.duration,
        warmup: scenario.warmup,
        step: scenario.step,
    }
}

/// The path of a flow's transfers without other traffic.
fn empty_path(ports: &[PortShape], flow: &Flow, transport: &tcp::Config) -> EmptyPath {
    let port = |id: &PortId| &ports[id.index()];
    let of_links = flow.forward.iter().chain(&flow.reverse).map(|id| port(id).delay);
    EmptyPath {
        rtt: of_links.fold(flow.forward_delay + flow.reverse_delay, |sum, delay| sum + delay),
        rate: flow.forward.iter().map(|id| port(id).rate).min().unwrap_or(Rate::UNLIMITED),
        initial_window: u64::from(transport.initial_cwnd) * u64::from(transport.mss),
    }
}

fn rows(metrics: &RunMetrics, named: Named, columns: &[MetricColumn]) -> Vec<Row> {
    let digest = format!("{:016x}", metrics.digest);
    let row = |kind: Kind, name: &str, scope: Scope, value: &dyn Fn(&Metric) -> Option<f64>| {
        let values = columns
            .iter()
            .map(|column| sojourn_metrics::metric(scope, &column.name).and_then(value))
            .map(|value| value.filter(|value| value.is_finite()))
            .collect();
        Row {
            run: named.run,
            scenario: named.scenario,
            seed: named.seed,
            kind,
            name: name.to_owned(),
            digest: digest.clone(),
            end_state: String::new(),
            values,
        }
    };
    let mut rows = vec![row(Kind::Run, "", Scope::Run, &|metric| metric.of_run(metrics))];
    for flow in &metrics.flows {
        rows.push(row(Kind::Flow, &flow.name, Scope::Flow, &|metric| metric.of_flow(flow)));
    }
    for link in &metrics.links {
        rows.push(row(Kind::Queue, &link.name, Scope::Link, &|metric| metric.of_link(link)));
    }
    rows
}

fn series(metrics: &RunMetrics, named: Named) -> Vec<Series> {
    let all = &metrics.series;
    let mut series = Vec::new();
    for (flow, columns) in metrics.flows.iter().zip(&all.flows) {
        let measured = FLOW_COLUMNS.iter().filter(|column| column.name != "phase");
        let phase: Vec<String> = columns
            .phase
            .iter()
            .map(|number| match number.is_nan() {
                true => String::new(),
                // The position was found in this list.
                false => all.phases[*number as usize].to_owned(),
            })
            .collect();
        series.push(Series {
            run: named.run,
            kind: Kind::Flow,
            name: flow.name.clone(),
            t_s: all.t_s.clone(),
            columns: measured
                .filter_map(|column| measured_column(column.name, (column.of)(columns)))
                .collect(),
            phase: if phase.iter().all(String::is_empty) { Vec::new() } else { phase },
        });
    }
    for (link, columns) in metrics.links.iter().zip(&all.links) {
        series.push(Series {
            run: named.run,
            kind: Kind::Queue,
            name: link.name.clone(),
            t_s: all.t_s.clone(),
            columns: LINK_COLUMNS
                .iter()
                .filter_map(|column| measured_column(column.name, (column.of)(columns)))
                .collect(),
            phase: Vec::new(),
        });
    }
    series
}

/// `None` if nothing was measured.
fn measured_column(name: &str, values: &[f32]) -> Option<SeriesColumn> {
    let values: Vec<Option<f64>> =
        values.iter().map(|value| value.is_finite().then(|| f64::from(*value))).collect();
    values.iter().any(Option::is_some).then(|| SeriesColumn { name: name.to_owned(), values })
}
