//! Runs the first scenario of a study for one seed with every observer of this crate, for the tests
//! with other tools: `capture STUDY FOLDER`. Writes `sender.pcapng`, `all.pcapng`, `link.log`, and
//! `counts.json` with what the simulator itself counted.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use sojourn_core::Span;
use sojourn_metrics::Collector;
use sojourn_report::export::MahimahiLog;
use sojourn_report::pcap::{PcapConfig, PcapObserver, Taps};
use sojourn_study::{Overrides, Study, runner};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let study = args.next().ok_or("which study?")?;
    let folder = PathBuf::from(args.next().ok_or("which folder?")?);
    std::fs::create_dir_all(&folder)?;
    let overrides =
        Overrides { seeds: Some(1), shorten: Some(Span::from_secs(20)), ..Overrides::default() };
    let study = Study::load(Path::new(&study), &overrides)?;
    let first = study.scenarios.first().expect("it has one");
    let scenario = &first.scenario;
    let names = |taps| PcapConfig {
        flows: scenario.flows.iter().map(|flow| flow.name.clone()).collect(),
        links: scenario.links.iter().map(|link| link.name.clone()).collect(),
        taps,
        ..PcapConfig::default()
    };
    let create = |name: &str| File::create(folder.join(name)).map(BufWriter::new);
    let mut sender = PcapObserver::new(create("sender.pcapng")?, names(Taps::default()))?;
    let mut all = PcapObserver::new(create("all.pcapng")?, names(Taps::ALL))?;
    let mut log = MahimahiLog::new(create("link.log")?, sojourn_core::PortId(0), "droptail")?;
    let mut collector = Collector::new(runner::shape(scenario));
    let mut observer = (&mut collector, (&mut sender, (&mut all, &mut log)));
    let outcome = sojourn_sim::run(scenario, study.address(1), &mut observer)?;
    drop(outcome);
    sender.finish()?;
    all.finish()?;
    log.finish()?;
    let run = collector.finish(sojourn_core::Time::ZERO + scenario.duration);
    let flows: Vec<serde_json::Value> = run
        .flows
        .iter()
        .map(|flow| {
            serde_json::json!({
                "name": flow.name,
                "retransmits": flow.whole.retransmits,
                "sent_packets": flow.whole.sent_packets,
                "sent_bytes": flow.whole.sent_bytes,
                "dropped_packets": flow.whole.dropped_packets,
            })
        })
        .collect();
    std::fs::write(folder.join("counts.json"), serde_json::to_vec_pretty(&flows)?)?;
    Ok(())
}
