//! `sojourn replay`: a recorded call through a rate controller.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use serde::Serialize;
use serde_json::{Value, json};
use sojourn_replay::{Replay, Step, replay as play};
use sojourn_study::Registry;

use crate::args::{Format, ReplayArgs};
use crate::failure::Failure;
use crate::output::Output;
use crate::table::{Grid, Rows};

pub(super) fn replay(
    args: &ReplayArgs,
    registry: &Registry,
    output: Output,
) -> Result<(), Failure> {
    let config = registry
        .rate_controller(&args.controller)
        .map_err(|error| Failure::Input(format!("--controller {}: {error}", args.controller)))?;
    let input: Box<dyn Read> = match args.file.as_os_str() == "-" {
        true => Box::new(std::io::stdin()),
        false => {
            Box::new(File::open(&args.file).map_err(|error| Failure::reading(&args.file, &error))?)
        }
    };
    let name = args.file.display();
    let found = play(BufReader::new(input), &config, args.step)
        .map_err(|error| Failure::Input(format!("{name}: {error}")))?;
    match args.format {
        Format::Table => {
            output.stream_text(&mut |out| write_text(&found, &args.file, &args.controller, out))
        }
        Format::Json => output.json(&whole(&found, &args.controller)),
        Format::Csv => rows(&found).print_csv(output),
    }
}

fn write_text(
    found: &Replay,
    file: &Path,
    controller: &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(
        out,
        "{}: {}, {} packets, {} arrived, decided by {}; rates in kbit/s",
        file.display(),
        found.flow,
        found.packets,
        found.arrived,
        found.original,
    )?;
    if found.is_laid_out {
        writeln!(
            out,
            "It has no packets: they are laid out evenly between its samples, so nothing shorter than those is seen."
        )?;
    }
    writeln!(out)?;
    let grid = Grid::new([
        ">time s",
        ">sent",
        ">arrived",
        ">lost %",
        ">original",
        ">replayed",
        ">ratio",
        ">by delay",
        ">by loss",
    ]);
    let kbit =
        |rate: Option<f64>| rate.map_or("–".to_owned(), |rate| format!("{:.0}", rate / 1000.0));
    let row = |step: &Step| {
        vec![
            format!("{:.1}", step.start),
            kbit(Some(step.sent)),
            kbit(Some(step.arrived)),
            step.lost.map_or("–".to_owned(), |lost| format!("{:.1}", 100.0 * lost)),
            kbit(step.original),
            kbit(Some(step.replayed)),
            ratio(step).map_or("–".to_owned(), |ratio| format!("{ratio:.2}")),
            kbit(step.delay_based),
            kbit(step.loss_based),
        ]
    };
    grid.write(&|| found.steps.iter().map(row), out)?;
    write!(out, "\n{}", summary(found, controller))
}

fn summary(found: &Replay, controller: &str) -> String {
    let mut text = match (found.means(), found.mean_ratio()) {
        (Some((original, replayed)), Some(mean)) => format!(
            "{controller} decides {:.0} kbit/s on average where {} decided {:.0}: mean ratio {mean:.3}.\n",
            replayed / 1000.0,
            found.original,
            original / 1000.0,
        ),
        _ => "What the original decided is not in the recording.\n".to_owned(),
    };
    if !found.is_laid_out {
        text += &match found.differs {
            None => {
                format!("All {} decisions are the same, at the same moments.\n", found.decisions)
            }
            Some(at) => format!(
                "{} decisions where the original made {}; they differ from {:.3} s on.\n",
                found.decisions,
                found.original_decisions,
                at.as_secs_f64()
            ),
        };
    }
    text
}

fn ratio(step: &Step) -> Option<f64> {
    step.original.filter(|original| *original > 0.0).map(|original| step.replayed / original)
}

/// A row for each step.
fn rows(found: &Replay) -> Rows<'_, impl Iterator<Item = Vec<Value>> + Clone + use<'_>> {
    let columns = vec![
        "time_s",
        "sent_bps",
        "arrived_bps",
        "lost_share",
        "original_target_bps",
        "replayed_target_bps",
        "ratio",
        "delay_based_bps",
        "loss_based_bps",
        "acknowledged_bps",
    ];
    let row = |step: &Step| {
        vec![
            json!(step.start),
            json!(step.sent),
            json!(step.arrived),
            json!(step.lost),
            json!(step.original),
            json!(step.replayed),
            json!(ratio(step)),
            json!(step.delay_based),
            json!(step.loss_based),
            json!(step.acknowledged),
        ]
    };
    Rows::new(columns, found.steps.iter().map(row))
}

/// A replay as JSON. An hour in steps of 10 ms has 360 000 rows, which are made as they are printed.
#[derive(Serialize)]
struct Whole<'a, R> {
    flow: &'a str,
    original: &'a str,
    replayed: &'a str,
    is_laid_out: bool,
    packets: u64,
    packets_arrived: u64,
    original_target_mean_bps: Option<f64>,
    replayed_target_mean_bps: Option<f64>,
    mean_ratio: Option<f64>,
    original_decisions: u64,
    replayed_decisions: u64,
    decisions_same: u64,
    differs_s: Option<f64>,
    steps: R,
}

fn whole<'a>(found: &'a Replay, controller: &'a str) -> Whole<'a, impl Serialize + use<'a>> {
    let means = found.means();
    Whole {
        flow: &found.flow,
        original: &found.original,
        replayed: controller,
        is_laid_out: found.is_laid_out,
        packets: found.packets,
        packets_arrived: found.arrived,
        original_target_mean_bps: means.map(|means| means.0),
        replayed_target_mean_bps: means.map(|means| means.1),
        mean_ratio: found.mean_ratio(),
        original_decisions: found.original_decisions,
        replayed_decisions: found.decisions,
        decisions_same: found.same,
        differs_s: found.differs.map(|at| at.as_secs_f64()),
        steps: rows(found),
    }
}
