//! `sojourn validate`: whether this machine's kernel does what the simulation says, number by number. A guest kernel's
//! random worlds are in `kernel.rs`.

use std::path::{Path, PathBuf};

use serde_json::json;
use sojourn_study::results::{Folder, Kind, Results, Row};
use sojourn_study::runner::{self, Options, Shard, default_folder};
use sojourn_study::{Overrides, Registry, Study};

use super::run::{amount, become_root_if_live};
use crate::args::{Format, ValidateArgs};
use crate::failure::{Failure, Outcome};
use crate::number;
use crate::output::Output;
use crate::progress::Bar;
use crate::table::{Grid, Records};

/// A situation: what it is called, the bottleneck, and the congestion controls of its two flows, of which
/// the second may be missing.
struct Situation {
    name: &'static str,
    mbps: u32,
    rtt: &'static str,
    queue: &'static str,
    loss: &'static str,
    first: &'static str,
    second: &'static str,
}

const fn situation(
    name: &'static str,
    (mbps, rtt, queue): (u32, &'static str, &'static str),
    first: &'static str,
    second: &'static str,
) -> Situation {
    Situation { name, mbps, rtt, queue, loss: "0%", first, second }
}

const SITUATIONS: [Situation; 14] = [
    situation("cubic, FIFO of 1 BDP", (10, "40ms", "pfifo limit 33"), "cubic-linux", ""),
    situation("cubic, FIFO of 5 BDP", (20, "20ms", "pfifo limit 165"), "cubic-linux", ""),
    situation("cubic, fq_codel", (20, "20ms", "fq_codel"), "cubic-linux", ""),
    situation("cubic, codel", (20, "20ms", "codel"), "cubic-linux", ""),
    situation("cubic, cake", (20, "20ms", "cake bandwidth 18mbit"), "cubic-linux", ""),
    situation("two cubic", (20, "20ms", "pfifo limit 100"), "cubic-linux", "cubic-linux"),
    situation("reno", (10, "20ms", "pfifo limit 50"), "reno", ""),
    situation("bbr, deep FIFO", (20, "40ms", "pfifo limit 500"), "bbr", ""),
    situation("bbr and cubic, fq_codel", (20, "20ms", "fq_codel"), "bbr", "cubic-linux"),
    Situation {
        loss: "1%",
        ..situation("bbr, 1 % loss", (10, "20ms", "pfifo limit 100"), "bbr", "")
    },
    situation("bbr3, deep FIFO", (20, "40ms", "pfifo limit 500"), OWN, ""),
    situation("two bbr3, FIFO of 1 BDP", (20, "40ms", "pfifo limit 66"), OWN, OWN),
    situation("bbr3 and cubic, fq_codel", (20, "20ms", "fq_codel"), OWN, "cubic-linux"),
    Situation {
        loss: "1%",
        ..situation("bbr3, 1 % loss", (10, "20ms", "pfifo limit 100"), OWN, "")
    },
];

/// A control of this project, which no kernel has unless it was loaded.
const OWN: &str = "bbr3";

/// Bounds of tests/fidelity/README.md.
const GOODPUT_SUM: f64 = 0.015;
const GOODPUT: (f64, f64) = (0.10, 0.02);
const DELAY: (f64, f64) = (0.07, 1.0);
const RETRANSMITS: f64 = 0.20;
const FEW_RETRANSMITS: f64 = 250.0;

pub(super) fn validate(
    args: &ValidateArgs,
    registry: &Registry,
    output: Output,
) -> Result<Outcome, Failure> {
    if let Some(kernel) = &args.kernel {
        return super::kernel::validate(kernel, args, output);
    }
    let known = known_controls().map_err(Failure::Machine)?;
    let has = |name: &str| {
        let name = name.strip_suffix("-linux").unwrap_or(name);
        name.is_empty() || known.iter().any(|known| known == name)
    };
    let (situations, missing): (Vec<&Situation>, Vec<&Situation>) =
        SITUATIONS.iter().partition(|own| has(own.first) && has(own.second));
    if missing.iter().any(|own| own.first == OWN) {
        output.log(&format_args!(
            "left out: those of {OWN}, for which: sudo sojourn live cca load {OWN}"
        ));
    }
    for own in missing.into_iter().filter(|own| own.first != OWN) {
        output.log(&format_args!(
            "left out: {}: the kernel has {} only",
            own.name,
            known.join(", ")
        ));
    }
    let seeds = Some(u64::from(args.seeds));
    let overrides = Overrides { shorten: args.shorten, seeds, ..Overrides::default() };
    let study =
        Study::parse_with(registry, "validate", &text(&situations), Path::new(""), &overrides)?;
    let plan = study.plan();
    let folder: PathBuf = args.out.clone().unwrap_or_else(|| default_folder(&plan, Shard::WHOLE));
    output.log(&format_args!("{} into {}", amount(&plan), folder.display()));
    become_root_if_live(&plan);
    let bar = Bar::new(output);
    let summary = runner::run(&study, &Options::new(&folder), &|progress| bar.show(progress));
    bar.finish();
    if let Some(failed) = summary?.failed.first() {
        return Err(Failure::Machine(failed.problem.clone()));
    }
    let results = Folder::open(&folder)?;
    let compared: Vec<Compared> =
        situations.iter().flat_map(|own| compare(&results, own)).collect();
    print(&compared, args.format, output)?;
    Ok(match compared.iter().all(Compared::is_within) {
        true => Outcome::Fine,
        false => Outcome::Failed,
    })
}

#[cfg(target_os = "linux")]
fn known_controls() -> Result<Vec<String>, String> {
    sojourn_live::machine::congestion_controls()
}

#[cfg(not(target_os = "linux"))]
fn known_controls() -> Result<Vec<String>, String> {
    Err("live runs need Linux".to_owned())
}

/// The study of these situations, each with both engines.
fn text(situations: &[&Situation]) -> String {
    let list = |value: &dyn Fn(&Situation) -> String| {
        situations.iter().map(|own| value(own)).collect::<Vec<_>>().join(", ")
    };
    let quoted = |value: fn(&Situation) -> &'static str| list(&|own| format!("\"{}\"", value(own)));
    let or_first = quoted(|own| if own.second.is_empty() { own.first } else { own.second });
    format!(
        r#"schema = 1
title = "This machine's kernel beside the simulation"
[scenario]
duration = "20s"
warmup = "5s"
case = ""
path = {{ rate = "10Mbps", rtt = "20ms", queue = "pfifo", loss = "0%" }}
[[scenario.flow]]
name = "first"
app = "bulk"
[[scenario.flow]]
name = "second"
app = "bulk"
count = 0
[[scenario.flow]]
name = "ping"
app = "ping"
[[factors.zip]]
case = [{}]
"path.rate" = [{}]
"path.rtt" = [{}]
"path.queue" = [{}]
"path.loss" = [{}]
"flow.first.cca" = [{}]
"flow.second.cca" = [{or_first}]
"flow.second.count" = [{}]
[factors]
engine = ["sim", "live"]
"#,
        quoted(|own| own.name),
        list(&|own| format!("\"{}Mbps\"", own.mbps)),
        quoted(|own| own.rtt),
        quoted(|own| own.queue),
        quoted(|own| own.loss),
        quoted(|own| own.first),
        list(&|own| u8::from(!own.second.is_empty()).to_string()),
    )
}

/// How far a simulated number may be from the measured one.
#[derive(Clone, Copy)]
enum Bound {
    /// A share of the measured number, and at least so much.
    Share(f64, f64),
    /// Of retransmissions.
    Count,
}

/// A number of a situation, simulated and live: means over the seeds.
struct Compared {
    situation: &'static str,
    what: String,
    simulated: f64,
    live: f64,
    /// Where the simulated number may be.
    bounds: (f64, f64),
    is_late: bool,
}

impl Compared {
    fn is_within(&self) -> bool {
        (self.bounds.0..=self.bounds.1).contains(&self.simulated)
    }

    fn verdict(&self) -> &'static str {
        match (self.is_within(), self.is_late) {
            (true, _) => "agrees",
            (false, false) => "differs",
            (false, true) => "differs; the live run was late",
        }
    }
}

/// Every number of a situation; none if one of its runs is missing.
fn compare(results: &Results, situation: &Situation) -> Vec<Compared> {
    let plan = &results.plan;
    // Of each seed.
    let rows_of = |engine: &str| -> Option<Vec<&[Row]>> {
        let position = |name: &str| plan.factors.iter().position(|factor| factor.name == name);
        let (case, by) = (position("case")?, position("engine")?);
        let scenario = plan
            .scenarios
            .iter()
            .position(|own| *own.factors[case] == *situation.name && *own.factors[by] == *engine)?;
        let runs = (0..).zip(plan.runs.iter()).filter(|(_, run)| run.scenario as usize == scenario);
        Some(runs.map(|(number, _)| results.table.run(number)).collect())
    };
    let (Some(simulated), Some(live)) = (rows_of("sim"), rows_of("live")) else {
        return Vec::new();
    };
    let value = |runs: &[&[Row]], kind: Kind, name: &str, metric: &str| {
        let is_it = |row: &&Row| {
            row.kind == kind && (row.name == name || row.name.strip_suffix(".1") == Some(name))
        };
        let of_run = |rows: &&[Row]| results.table.value(rows.iter().find(is_it)?, metric);
        let values: Vec<f64> = runs.iter().filter_map(of_run).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let is_late = value(&live, Kind::Run, "", "is_late").is_some_and(|late| late > 0.0);
    let mut compared = Vec::new();
    let mut add = |what: &str, kind, name: &str, metric: &str, bound: Bound| {
        let both = (value(&simulated, kind, name, metric), value(&live, kind, name, metric));
        if let (Some(simulated), Some(live)) = both {
            let what = if name.is_empty() { what.to_owned() } else { format!("{what} of {name}") };
            let bounds = match bound {
                Bound::Share(share, least) => {
                    let bound = (share * live).max(least);
                    (live - bound, live + bound)
                }
                Bound::Count if live < FEW_RETRANSMITS => (live / 2.0, live * 2.0),
                Bound::Count => (live * (1.0 - RETRANSMITS), live * (1.0 + RETRANSMITS)),
            };
            let situation = situation.name;
            compared.push(Compared { situation, what, simulated, live, bounds, is_late });
        }
    };
    let rate = f64::from(situation.mbps);
    let delay = Bound::Share(DELAY.0, DELAY.1);
    let sum = Bound::Share(GOODPUT_SUM, 0.0);
    add("tcp_goodput_sum_mbps", Kind::Run, "", "tcp_goodput_sum_mbps", sum);
    for name in ["first", "second"] {
        let goodput = Bound::Share(GOODPUT.0, GOODPUT.1 * rate);
        // The bound is that of a congestion control; how two flows of one share is another every time.
        if situation.first != situation.second {
            add("goodput_mbps", Kind::Flow, name, "goodput_mbps", goodput);
        }
        add("srtt_p50_ms", Kind::Flow, name, "srtt_p50_ms", delay);
        add("retransmits", Kind::Flow, name, "retransmits", Bound::Count);
    }
    add("ping_p50_ms", Kind::Flow, "ping", "ping_p50_ms", delay);
    compared
}

fn print(compared: &[Compared], format: Format, output: Output) -> Result<(), Failure> {
    let mut records =
        Records::new(["situation", "number", "simulated", "live", "least", "most", "verdict"]);
    for own in compared {
        records.row([
            json!(own.situation),
            json!(own.what),
            json!(own.simulated),
            json!(own.live),
            json!(own.bounds.0),
            json!(own.bounds.1),
            json!(own.verdict()),
        ]);
    }
    match format {
        Format::Json => return output.json(&records.json()),
        Format::Csv => return output.data(&records.csv()),
        Format::Table => {}
    }
    let mut grid =
        Grid::new(["situation", "number", ">simulated", ">live", ">simulated may be", "verdict"]);
    for own in compared {
        grid.row([
            own.situation.to_owned(),
            own.what.clone(),
            number::number(own.simulated),
            number::number(own.live),
            format!("{} to {}", number::number(own.bounds.0), number::number(own.bounds.1)),
            own.verdict().to_owned(),
        ]);
    }
    let within = compared.iter().filter(|own| own.is_within()).count();
    output.text(&format!("{grid}\n{within} of {} numbers agree\n", compared.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_situations_are_a_study() {
        let registry = crate::registry_of(&Registry::default());
        let all: Vec<&Situation> = SITUATIONS.iter().collect();
        let text = text(&all);
        let overrides = Overrides::default();
        let study = Study::parse_with(&registry, "validate", &text, Path::new(""), &overrides);
        let study = study.unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(study.scenarios.len(), 2 * SITUATIONS.len());
    }
}
