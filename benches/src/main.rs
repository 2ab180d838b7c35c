//! Runs yardsticks and prints their figures.
#![expect(clippy::print_stdout, reason = "this is what it is for")]

use std::collections::BTreeMap;
use std::io;
use std::num::NonZero;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use sojourn_benches::{Ceilings, Guarded, YARDSTICKS, Yardstick, count, measure, read_ceilings};
use sojourn_core::Span;

const USAGE: &str = "\
usage: yardstick [--seconds S] [--count | --guard FILE] [NAME...]
  NAME         a yardstick, or the beginning of its name; all of them without one
  --seconds S  simulated seconds; each yardstick has its own without it
  --count      print delivered segments, or packets of a call, only, for a tool that counts instructions
  --guard FILE have valgrind count instructions per segment, and hold them to FILE's ceilings";

/// Columns, with their units below.
const HEADING: &str = "\
yardstick           simulated   segments   goodput   retrans      cpu  wakes     peak    series      speed  of ns-3  digest
                            s               Mbit/s                  s   /seg      MiB       MiB  seg/cpu-s    times";

fn main() -> ExitCode {
    let arguments = match Arguments::parse(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(problem) => {
            let names: Vec<&str> = YARDSTICKS.iter().map(|yardstick| yardstick.name).collect();
            eprintln!("{problem}\n{USAGE}\nyardsticks: {}", names.join(", "));
            return ExitCode::from(2);
        }
    };
    if let Some(file) = &arguments.guard {
        return guard(file, &arguments.chosen).unwrap_or_else(|problem| {
            eprintln!("{file}: {problem}");
            ExitCode::from(3)
        });
    }
    if !arguments.counts {
        println!("{HEADING}");
    }
    for yardstick in &arguments.chosen {
        let duration = arguments.duration.unwrap_or(yardstick.duration);
        if arguments.counts {
            println!("{} {}", yardstick.name, count(yardstick, duration));
            continue;
        }
        let figures = match measure(yardstick, duration) {
            Ok(figures) => figures,
            Err(error) => {
                eprintln!("this system does not tell what a process uses: {error}");
                return ExitCode::from(3);
            }
        };
        let segments = figures.segments as f64;
        let speed = segments / figures.processor_s;
        let ratio = yardstick.ns3.map_or("-".to_owned(), |ns3| format!("{:.0}", speed / ns3));
        println!(
            "{:<19} {:>9.1} {:>10} {:>9.1} {:>9} {:>8.3} {:>6.2} {:>8.1} {:>9.2} {:>10.0} {:>8}  {:016x}",
            yardstick.name,
            duration.as_secs_f64(),
            figures.segments,
            figures.goodput_mbps,
            figures.retransmits,
            figures.processor_s,
            figures.wakes as f64 / segments,
            figures.peak_mib,
            figures.series_mib,
            speed,
            ratio,
            figures.digest,
        );
    }
    ExitCode::SUCCESS
}

/// Counts and compares; ends with 1 when a ceiling is exceeded.
fn guard(file: &str, chosen: &[&'static Yardstick]) -> Result<ExitCode, String> {
    let text = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
    let ceilings = read_ceilings(&text)?;
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut ends = ExitCode::SUCCESS;
    println!("{:<16} {:>12} {:>9} {:>9}", "yardstick", "instructions", "ceiling", "goal");
    count_all(&program, &ceilings, chosen, |yardstick, counted| {
        let guarded = counted.map_err(|error| format!("valgrind: {error}"))?;
        let Guarded { instructions, ceiling, goal } = guarded;
        let verdict = guarded.verdict();
        println!("{:<16} {instructions:>12} {ceiling:>9} {goal:>9}  {verdict}", yardstick.name);
        if guarded.is_too_many() {
            ends = ExitCode::from(1);
        }
        Ok(())
    })?;
    Ok(ends)
}

/// Counts on all cores, since a count does not depend on who else is at work, and tells `then` in the order of `chosen`.
fn count_all(
    program: &Path,
    ceilings: &Ceilings,
    chosen: &[&'static Yardstick],
    mut then: impl FnMut(&Yardstick, io::Result<Guarded>) -> Result<(), String>,
) -> Result<(), String> {
    let next = &AtomicUsize::new(0);
    let (counted, ready) = mpsc::channel();
    // Owns `ready`, so that nobody counts on once one count has failed.
    std::thread::scope(move |scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, NonZero::get) {
            let counted = counted.clone();
            scope.spawn(move || {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(yardstick) = chosen.get(index) else { return };
                    let held = &ceilings[yardstick.name];
                    let figures = Guarded::count(program, yardstick.name, held);
                    if counted.send((index, figures)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(counted);
        let mut early = BTreeMap::new();
        for (index, yardstick) in chosen.iter().enumerate() {
            let figures = loop {
                if let Some(figures) = early.remove(&index) {
                    break figures;
                }
                let (index, figures) = ready.recv().map_err(|error| error.to_string())?;
                early.insert(index, figures);
            };
            then(yardstick, figures)?;
        }
        Ok(())
    })
}

struct Arguments {
    chosen: Vec<&'static Yardstick>,
    duration: Option<Span>,
    counts: bool,
    guard: Option<String>,
}

impl Arguments {
    fn parse(words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut arguments = Self { chosen: Vec::new(), duration: None, counts: false, guard: None };
        let mut words = words;
        while let Some(word) = words.next() {
            match word.as_str() {
                "--count" => arguments.counts = true,
                "--guard" => {
                    let file = words.next().ok_or("--guard takes the file of the ceilings")?;
                    arguments.guard = Some(file);
                }
                "--seconds" => {
                    let seconds = words.next().and_then(|text| text.parse::<f64>().ok());
                    let seconds = seconds
                        .filter(|seconds| (0.1..=1e6).contains(seconds))
                        .ok_or("--seconds takes a number from 0.1 to 1000000")?;
                    arguments.duration = Some(Span::from_secs_f64(seconds));
                }
                name => {
                    let before = arguments.chosen.len();
                    let found = YARDSTICKS.iter().filter(|known| known.name.starts_with(name));
                    arguments.chosen.extend(found);
                    if arguments.chosen.len() == before {
                        return Err(format!("no yardstick is called '{name}'"));
                    }
                }
            }
        }
        if arguments.chosen.is_empty() {
            arguments.chosen.extend(YARDSTICKS);
        }
        Ok(arguments)
    }
}
