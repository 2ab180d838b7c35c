//! `sojourn export`: results for other tools.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use sojourn_core::SpecError;
use sojourn_report::export::{MahimahiLog, flent, iperf3, runs_csv, series_csv};
use sojourn_report::pcap::{PcapConfig, PcapObserver, Taps};
use sojourn_study::Study;
use sojourn_study::results::{Folder, Plan, Results};

use super::find_run;
use super::resimulate::{resimulate, study_of};
use crate::args::{ExportArgs, ExportFormat, Tapped};
use crate::failure::Failure;
use crate::output::Output;

pub(super) fn export(args: &ExportArgs, output: Output) -> Result<(), Failure> {
    let results = Folder::open(&args.folder)?;
    let out = args.out.as_deref();
    let run = match &args.run {
        Some(name) => find_run(&results, name)?,
        None if args.format == ExportFormat::Csv => {
            return output.to(out, runs_csv(&results).as_bytes());
        }
        None if results.plan.runs.len() == 1 => 0,
        None => {
            return Err(Failure::Input(format!(
                "which run? This format holds one (allowed: 0 to {})",
                results.plan.runs.len().saturating_sub(1)
            )));
        }
    };
    if results.missing.contains(&run) {
        return Err(Failure::Input(format!("run {run} is not done yet")));
    }
    let bytes = match args.format {
        ExportFormat::Csv => series_csv(&results.series(run)?).into_bytes(),
        ExportFormat::Flent => flent(&results, run, &results.series(run)?),
        ExportFormat::Iperf3Json => iperf3(&results, run, &results.series(run)?).into_bytes(),
        ExportFormat::Mahimahi => mahimahi_log(&results, run, &args.link)?,
        ExportFormat::Pcap => packets(&results, run, args.taps)?,
    };
    output.to(out, &bytes)
}

/// Writes the packets of every run into a result folder.
pub(super) fn all_packets(study: &Study, plan: &Plan, folder: &Path) -> Result<(), Failure> {
    for run in 0..plan.runs.len() as u32 {
        let path = folder.join(format!("{run}.pcapng"));
        let failure = |error| Failure::writing(&path, &error);
        let file = BufWriter::new(File::create(&path).map_err(failure)?);
        let mut observer =
            PcapObserver::new(file, config(plan, run, Taps::default())).map_err(failure)?;
        resimulate(study, plan, run, None, &mut observer)?;
        observer.finish().map_err(failure)?;
    }
    Ok(())
}

fn packets(results: &Results, run: u32, taps: Tapped) -> Result<Vec<u8>, Failure> {
    let taps = match taps {
        Tapped::Senders => Taps::default(),
        Tapped::All => Taps::ALL,
    };
    let plan = &results.plan;
    let mut observer = PcapObserver::new(Vec::new(), config(plan, run, taps))
        .map_err(|error| Failure::Machine(error.to_string()))?;
    resimulate(&study_of(results)?, plan, run, digest(results, run), &mut observer)?;
    observer.finish().map_err(|error| Failure::Machine(error.to_string()))
}

fn config(plan: &Plan, run: u32, taps: Taps) -> PcapConfig {
    let scenario = &plan.scenarios[plan.runs[run as usize].scenario as usize];
    PcapConfig {
        flows: scenario.flows.iter().map(|flow| flow.name.clone()).collect(),
        links: scenario.queues.iter().map(|queue| queue.name.clone()).collect(),
        taps,
    }
}

fn mahimahi_log(results: &Results, run: u32, link: &str) -> Result<Vec<u8>, Failure> {
    let plan = &results.plan;
    let queues = &plan.scenarios[plan.runs[run as usize].scenario as usize].queues;
    let names = || queues.iter().map(|queue| &queue.name[..]);
    let Some(number) = names().position(|name| name == link) else {
        let error = SpecError::new(format!("--link {link}: is not in this run"));
        return Err(Failure::input(error.near(link, names()).allow(names())));
    };
    let mut observer = MahimahiLog::new(Vec::new(), number as u16, &queues[number].queue)
        .map_err(|error| Failure::Machine(error.to_string()))?;
    resimulate(&study_of(results)?, plan, run, digest(results, run), &mut observer)?;
    observer.finish().map_err(|error| Failure::Machine(error.to_string()))
}

fn digest(results: &Results, run: u32) -> Option<&str> {
    results.table.run(run).first().map(|row| &row.digest[..])
}
