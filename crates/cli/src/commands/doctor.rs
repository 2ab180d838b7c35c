//! `sojourn doctor`: what this build and this machine can do.

use std::num::NonZero;
use std::path::Path;
use std::time::Instant;

use serde_json::json;
use sojourn_file::spec::AppKind;
use sojourn_metrics::METRICS;
use sojourn_study::engine::{Engine, Sim};
use sojourn_study::study::model_version;
use sojourn_study::{Overrides, Registry, Study};

use super::new::TEMPLATE;
use crate::args::DoctorArgs;
use crate::failure::Failure;
use crate::output::Output;
use crate::table::{Fact, print_facts};

pub(super) fn doctor(
    args: &DoctorArgs,
    registry: &Registry,
    output: Output,
) -> Result<(), Failure> {
    let mut facts = machine();
    facts.extend(build(registry));
    facts.push(Fact::plain("guest kernel", json!(super::kernel::state())));
    facts.extend(trial()?);
    let (live, problem) = live();
    facts.extend(live);
    print_facts(output, args.format, &facts)?;
    match problem {
        Some(problem) if args.live => Err(Failure::Machine(problem)),
        _ => Ok(()),
    }
}

/// What live runs need of this machine, and why they can't run if they can't.
fn live() -> (Vec<Fact>, Option<String>) {
    #[cfg(target_os = "linux")]
    {
        sojourn_live::machine::become_root();
        let capabilities = sojourn_live::machine::capabilities();
        let lack = capabilities.iter().filter(|own| own.is_needed);
        let problem = lack.clone().find_map(|own| own.found.as_ref().err().cloned());
        let can = Fact::plain("live", json!(if problem.is_none() { "yes" } else { "no" }));
        let each = capabilities.iter().map(|own| {
            let (Ok(text) | Err(text)) = &own.found;
            let key = format!("live_{}", own.name.replace([' ', '-'], "_"));
            Fact::new(&format!("live: {}", own.name), text, &key, json!(text))
        });
        (std::iter::once(can).chain(each).collect(), problem)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let problem = "live runs need Linux".to_owned();
        (vec![Fact::plain("live", json!(problem))], Some(problem))
    }
}

fn machine() -> Vec<Fact> {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let mut facts = vec![
        Fact::plain(
            "system",
            json!(format!("{} on {}", std::env::consts::OS, std::env::consts::ARCH)),
        ),
        Fact::plain("cores", json!(cores)),
    ];
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease");
    facts.extend(kernel.ok().map(|kernel| Fact::plain("kernel", json!(kernel.trim()))));
    facts.extend(memory("MemTotal:").map(|mib| memory_fact("memory", mib)));
    facts.extend(memory("MemAvailable:").map(|mib| memory_fact("free memory", mib)));
    facts
}

fn memory_fact(name: &str, mib: u64) -> Fact {
    let key = format!("{}_mib", name.replace(' ', "_"));
    Fact::new(name, format!("{mib} MiB"), &key, json!(mib))
}

/// A line of `/proc/meminfo`, in MiB.
fn memory(name: &str) -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib / 1024)
}

fn build(registry: &Registry) -> Vec<Fact> {
    let engines = registry.engines().iter().map(|engine| engine.name);
    let ccas = registry.controllers().iter().map(|algorithm| algorithm.name);
    let queues = registry.queues().iter().map(|discipline| discipline.name);
    let apps = AppKind::ALL.iter().map(|app| app.name());
    let apps = apps.chain(registry.applications().iter().map(|app| app.name));
    let rates = sojourn_link::rates().iter().map(|model| model.name);
    let list =
        |names: &mut dyn Iterator<Item = &'static str>| json!(names.collect::<Vec<_>>().join(", "));
    let checks = match cfg!(debug_assertions) {
        true => "slow (a debug build: use cargo run --release)",
        false => "release",
    };
    vec![
        Fact::plain("sojourn", json!(env!("CARGO_PKG_VERSION"))),
        Fact::plain("models", json!(model_version())),
        Fact::plain("build", json!(checks)),
        Fact::plain("engines", list(&mut { engines })),
        Fact::plain("congestion controls", list(&mut { ccas })),
        Fact::plain("queues", list(&mut { queues })),
        Fact::plain("applications", list(&mut { apps })),
        Fact::plain("link rates", list(&mut { rates })),
        Fact::plain("metrics", json!(METRICS.len())),
    ]
}

/// A run whose digest is the same on every machine with these models.
fn trial() -> Result<Vec<Fact>, Failure> {
    let study = Study::parse("trial", TEMPLATE, Path::new(""), &Overrides::default())?;
    let Some(first) = study.scenarios.first() else { return Ok(Vec::new()) };
    let began = Instant::now();
    let measured = Sim::default()
        .run(&first.scenario, study.address(1))
        .map_err(|problem| Failure::Machine(format!("the trial run broke: {problem}")))?;
    let seconds = began.elapsed().as_secs_f64();
    let metrics = measured.metrics;
    let packets: f64 = metrics.flows.iter().filter_map(|flow| flow.value("sent_packets")).sum();
    Ok(vec![
        Fact::plain("trial digest", json!(format!("{:016x}", metrics.digest))),
        Fact::plain(
            "trial packets per second",
            json!((packets / seconds.max(1e-9)).round() as u64),
        ),
    ])
}
