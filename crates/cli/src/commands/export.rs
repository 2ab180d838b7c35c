//! `sojourn export`: results for other tools.

use std::path::Path;
use std::sync::Arc;

use sojourn_core::{NoObserver, SpecError};
use sojourn_host::offer;
use sojourn_media::call::{CallConfig, TapedCall};
use sojourn_replay::{Call as RecordedCall, Writer};
use sojourn_report::export::{MahimahiLog, flent, iperf3, runs_csv, series_csv};
use sojourn_report::pcap::{Offer, PcapConfig, PcapObserver, Taps};
use sojourn_scenario::{App, ExternalApp, Flow};
use sojourn_study::results::{FailedRun, Plan, Results};
use sojourn_study::{Registry, Study, engine, runner};

use super::resimulate::{again, resimulate, scenario_of, study_of};
use super::{find_run, open};
use crate::args::{ExportArgs, ExportFormat, Tapped};
use crate::failure::Failure;
use crate::output::{Output, Sink};

pub(super) fn export(
    args: &ExportArgs,
    registry: &Registry,
    output: Output,
) -> Result<(), Failure> {
    let results = open(&args.folder, output)?;
    let out = args.out.as_deref();
    let run = match &args.run {
        Some(name) => find_run(&results, name)?,
        None if args.format == ExportFormat::Csv => {
            return output.to(out, runs_csv(&results).as_bytes());
        }
        None if results.plan.runs.len() == 1 => find_run(&results, "0")?,
        None => {
            return Err(Failure::Input(format!(
                "which run? This format holds one (allowed: 0 to {})",
                results.plan.runs.len().saturating_sub(1)
            )));
        }
    };
    let series = || results.series(run);
    match args.format {
        ExportFormat::Csv => output.to(out, series_csv(&series()?).as_bytes()),
        ExportFormat::Flent => output.to(out, &flent(&results, run, &series()?)),
        ExportFormat::Iperf3Json => output.to(out, iperf3(&results, run, &series()?).as_bytes()),
        ExportFormat::Mahimahi => mahimahi_log(registry, &results, run, &args.link, out),
        ExportFormat::Pcap => {
            let taps = match args.taps {
                Tapped::Senders => Taps::default(),
                Tapped::All => Taps::ALL,
            };
            let study = study_of(registry, &results)?;
            packets(&study, &results.plan, run, digest(&results, run), taps, out)
        }
        ExportFormat::Call => call(registry, &results, run, args.flow.as_deref(), out),
    }
}

/// Writes the packets of every run that has a result into the folder.
pub(super) fn all_packets(
    study: &Study,
    plan: &Plan,
    failed: &[FailedRun],
    folder: &Path,
) -> Result<(), Failure> {
    let has_failed = |run: u32| failed.iter().any(|failed| failed.run == run);
    for run in (0..plan.runs.len() as u32).filter(|run| !has_failed(*run)) {
        let path = folder.join(format!("{run}.pcapng"));
        packets(study, plan, run, None, Taps::default(), Some(&path))?;
    }
    Ok(())
}

fn packets(
    study: &Study,
    plan: &Plan,
    run: u32,
    digest: Option<&str>,
    taps: Taps,
    out: Option<&Path>,
) -> Result<(), Failure> {
    let config = config(study, plan, run, taps)?;
    let mut sink = Sink::create(out)?;
    let mut observer = match PcapObserver::new(&mut sink, config) {
        Ok(observer) => observer,
        Err(error) => return sink.finish(Err(error)),
    };
    resimulate(study, plan, run, digest, &mut observer)?;
    let written = observer.finish().map(|_| ());
    sink.finish(written)
}

fn config(study: &Study, plan: &Plan, run: u32, taps: Taps) -> Result<PcapConfig, Failure> {
    let position = plan.runs[run as usize].scenario;
    let names = &plan.scenarios[position as usize];
    let offer = |flow: &Flow| match &flow.app {
        App::Tcp { transport, .. } => {
            Offer { first: offer::first_window(transport), scale: offer::window_scale(transport) }
        }
        App::Ping(_) | App::Udp(_) | App::External(_) => Offer::default(),
    };
    Ok(PcapConfig {
        flows: names.flows.iter().map(|flow| flow.name.clone()).collect(),
        links: names.queues.iter().map(|queue| queue.name.clone()).collect(),
        taps,
        offers: scenario_of(study, position)?.scenario.flows.iter().map(offer).collect(),
    })
}

fn mahimahi_log(
    registry: &Registry,
    results: &Results,
    run: u32,
    link: &str,
    out: Option<&Path>,
) -> Result<(), Failure> {
    let plan = &results.plan;
    let queues = &plan.scenarios[plan.runs[run as usize].scenario as usize].queues;
    let names = || queues.iter().map(|queue| &queue.name[..]);
    let Some(number) = names().position(|name| name == link) else {
        let error = SpecError::new(format!("--link {link}: is not in this run"));
        return Err(Failure::input(error.near(link, names()).allow(names())));
    };
    let study = study_of(registry, results)?;
    let mut sink = Sink::create(out)?;
    let mut observer = match MahimahiLog::new(
        &mut sink,
        sojourn_core::PortId(number as u16),
        &queues[number].queue,
    ) {
        Ok(observer) => observer,
        Err(error) => return sink.finish(Err(error)),
    };
    resimulate(&study, plan, run, digest(results, run), &mut observer)?;
    let written = observer.finish().map(|_| ());
    sink.finish(written)
}

/// Records the rate controller of a call.
fn call(
    registry: &Registry,
    results: &Results,
    run: u32,
    flow: Option<&str>,
    out: Option<&Path>,
) -> Result<(), Failure> {
    let study = study_of(registry, results)?;
    let planned = &results.plan.runs[run as usize];
    let checked = scenario_of(&study, planned.scenario)?;
    let Some(world) = engine::simulated(&checked) else {
        let problem = format!("run {run}: its engine simulates no packets that could be recorded");
        return Err(Failure::Input(problem));
    };
    let mut scenario = world.into_inner();
    let address = study.address(planned.seed);
    let calls: Vec<(usize, CallConfig)> = scenario
        .flows
        .iter()
        .enumerate()
        .filter_map(|(place, flow)| {
            let App::External(app) = &flow.app else { return None };
            Some((place, app.0.as_any()?.downcast_ref::<CallConfig>()?.clone()))
        })
        .collect();
    let names = || calls.iter().map(|(place, _)| &scenario.flows[*place].name[..]);
    let Some((place, call)) =
        calls.iter().find(|(place, _)| flow.is_none_or(|flow| scenario.flows[*place].name == flow))
    else {
        let error = match flow {
            Some(flow) => SpecError::new(format!("--flow {flow}: is no call of this run"))
                .near(flow, names())
                .allow(names()),
            None => SpecError::new(format!("run {run} has no call")),
        };
        return Err(Failure::input(error));
    };
    let control = call.control().canonical();
    let flow = scenario.flows[*place].name.clone();
    let head = RecordedCall { flow: &flow, control: &control, feedback: call.feedback(), address };
    let writer = Arc::new(Writer::new(Sink::create(out)?, &head));
    let taped = TapedCall { call: call.clone(), tape: writer.clone() };
    scenario.flows[*place].app = App::External(ExternalApp(Arc::new(taped)));
    let scenario = scenario.checked().map_err(Failure::input)?;
    let shape = runner::shape(&checked.scenario);
    again(&scenario, shape, address, run, digest(results, run), &mut NoObserver)?;
    drop(scenario);
    let writer = Arc::into_inner(writer).expect("the world that had the other one is gone");
    let (sink, written) = writer.finish();
    sink.finish(written)
}

fn digest(results: &Results, run: u32) -> Option<&str> {
    results.table.run(run).first().map(|row| &row.digest[..])
}
