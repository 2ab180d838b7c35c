//! `sojourn trace`: capacity traces, read, drawn, converted and made.

use std::io::Read;
use std::path::Path;

use serde_json::json;
use sojourn_core::{Bytes, Purpose, Rate, Span, SpecError, StreamAddress};
use sojourn_link::blockage::Blockage;
use sojourn_link::trace::{Playback, WITEST_STEP_OVERHEAD};
use sojourn_link::{Schedule, Trace};

use crate::args::{PlaybackName, TraceArgs, TraceCommand, TraceFormat, UnitArgs};
use crate::chart::{self, Range};
use crate::failure::Failure;
use crate::number::{number, percent};
use crate::output::Output;
use crate::table::{Fact, print_facts};

/// Longer files are no capacity traces.
const MAX_BYTES: u64 = 256 << 20;

pub(super) fn trace(command: &TraceCommand, output: Output) -> Result<(), Failure> {
    match command {
        TraceCommand::Info { trace, below, format } => {
            let facts = match Capacity::read(trace)? {
                Capacity::Steps(trace) => steps_info(&trace, below),
                Capacity::Opportunities(schedule) => schedule_info(&schedule),
            };
            print_facts(output, *format, &facts)
        }
        TraceCommand::Convert { trace, to, units, playback, out } => {
            let mut capacity = Capacity::read(trace)?;
            let problem = |error: SpecError| said_of(&trace.file, error);
            if let Some(name) = playback {
                let steps = capacity.into_steps(units).map_err(problem)?;
                capacity = Capacity::Steps(name.playback().apply(&steps).map_err(problem)?);
            }
            let text = capacity.written(*to, units).map_err(problem)?;
            output.to(out.as_deref(), text.as_bytes())
        }
        TraceCommand::Synth {
            preset,
            duration,
            seed,
            study_seed,
            link,
            no_outages,
            to,
            units,
            out,
        } => {
            let blockage = Blockage::new(preset.0)
                .lasting(*duration)
                .map_err(|error| Failure::input(error.within("--duration")))?;
            let blockage = if *no_outages { blockage.without_outages() } else { blockage };
            let address = StreamAddress { seed: *study_seed, run: *seed };
            let mut random = address.stream_named(link, Purpose::Capacity);
            let capacity = Capacity::Steps(blockage.generate(&mut random));
            let text = capacity.written(*to, units).map_err(Failure::input)?;
            output.to(out.as_deref(), text.as_bytes())
        }
        TraceCommand::Plot { trace, width, height } => {
            let units = UnitArgs::DEFAULT;
            let steps = Capacity::read(trace)?
                .into_steps(&units)
                .map_err(|error| said_of(&trace.file, error))?;
            output.data(&plot(&steps, usize::from(*width), usize::from(*height)))
        }
    }
}

impl UnitArgs {
    const DEFAULT: Self = Self { opportunity: Bytes::new(1500), step: Span::from_millis(100) };

    fn opportunity_bytes(&self) -> Result<u32, SpecError> {
        match self.opportunity.as_u64() {
            bytes @ 1..=65_535 => Ok(bytes as u32),
            bytes => Err(SpecError::new(format!("--opportunity {bytes}B is out of range"))
                .allow(["1B to 65535B"])),
        }
    }
}

impl PlaybackName {
    fn playback(self) -> Playback {
        match self {
            Self::Nominal => Playback::Nominal,
            Self::Witest2020 => Playback::Witest2020 { step_overhead: WITEST_STEP_OVERHEAD },
        }
    }
}

/// A trace in the format in which it was written.
enum Capacity {
    Steps(Trace),
    Opportunities(Schedule),
}

impl Capacity {
    fn read(args: &TraceArgs) -> Result<Self, Failure> {
        let text = read_text(&args.file)?;
        let format = args.from.unwrap_or_else(|| TraceFormat::of(&text));
        let read = match format {
            TraceFormat::Steps => Trace::parse(&text).map(Self::Steps),
            TraceFormat::Mahimahi => Schedule::parse(&text).map(Self::Opportunities),
        };
        read.map_err(|error| said_of(&args.file, error))
    }

    fn into_steps(self, units: &UnitArgs) -> Result<Trace, SpecError> {
        match self {
            Self::Steps(trace) => Ok(trace),
            Self::Opportunities(schedule) => {
                schedule.to_trace(units.step, units.opportunity_bytes()?)
            }
        }
    }

    fn written(self, format: TraceFormat, units: &UnitArgs) -> Result<String, SpecError> {
        match (self, format) {
            (Self::Opportunities(schedule), TraceFormat::Mahimahi) => Ok(schedule.to_string()),
            (Self::Steps(trace), TraceFormat::Mahimahi) => {
                Schedule::from_trace(&trace, units.opportunity_bytes()?)
                    .map(|schedule| schedule.to_string())
            }
            (capacity, TraceFormat::Steps) => {
                capacity.into_steps(units).map(|trace| trace.to_string())
            }
        }
    }
}

impl TraceFormat {
    /// Lines of one number are opportunities; lines of two are steps.
    fn of(text: &str) -> Self {
        let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
        let is_cut = |c: char| c == ',' || c.is_whitespace();
        match lines.into_iter().find(|line| !line.is_empty()) {
            Some(line) if !line.contains(is_cut) => Self::Mahimahi,
            _ => Self::Steps,
        }
    }
}

fn steps_info(trace: &Trace, below: &[Rate]) -> Vec<Fact> {
    let info = trace.info();
    let rate = |name: &str, rate: Rate| rate_fact(name, &name.replace(' ', "_"), rate);
    let mut facts = vec![
        Fact::plain("format", json!("steps")),
        Fact::plain("steps", json!(info.steps)),
        span_fact("duration", info.duration),
        rate("mean", info.mean),
        rate("least", info.min),
        rate("least above zero", info.min_above_zero),
        rate("median", info.median),
        rate("largest", info.max),
        span_fact("outage", info.outage),
    ];
    for threshold in below {
        let share = trace.share_below(*threshold);
        let key = format!("below_{}_mbps_share", threshold.as_mbps());
        facts.push(Fact::new(&format!("below {threshold}"), percent(share), &key, json!(share)));
    }
    facts
}

fn schedule_info(schedule: &Schedule) -> Vec<Fact> {
    let bytes = UnitArgs::DEFAULT.opportunity.as_u64() as u32;
    vec![
        Fact::plain("format", json!("mahimahi")),
        Fact::plain("opportunities", json!(schedule.millis().len())),
        span_fact("period", schedule.period()),
        rate_fact(&format!("mean at {bytes} B"), "mean", schedule.mean(bytes)),
    ]
}

fn rate_fact(name: &str, key: &str, rate: Rate) -> Fact {
    let text = format!("{} Mbit/s", number(rate.as_mbps()));
    Fact::new(name, text, &format!("{key}_mbps"), json!(rate.as_mbps()))
}

fn span_fact(name: &str, span: Span) -> Fact {
    Fact::new(name, span.to_string(), &format!("{name}_s"), json!(span.as_secs_f64()))
}

/// Rates over time; each column shows the least and the largest rate of its stretch.
fn plot(trace: &Trace, width: usize, height: usize) -> String {
    let width = width.saturating_sub(chart::MARGIN);
    let duration = trace.duration();
    let column =
        |nanos: u64| (u128::from(nanos) * width as u128 / u128::from(duration.as_nanos())) as usize;
    let mut columns: Vec<Option<Range>> = vec![None; width];
    let mut start = 0;
    for step in trace.steps() {
        let end = start + step.duration.as_nanos();
        // The end belongs to the next step.
        for range in &mut columns[column(start)..=column(end - 1)] {
            *range = Some(Range::joined(*range, step.rate.as_mbps()));
        }
        start = end;
    }
    chart::area(&columns, height, "Mbit/s") + &chart::axis(width, "0", &duration.to_string())
}

fn read_text(path: &Path) -> Result<String, Failure> {
    let failure = |error: std::io::Error| Failure::reading(path, &error);
    let mut text = String::new();
    if path == Path::new("-") {
        std::io::stdin().take(MAX_BYTES).read_to_string(&mut text).map_err(failure)?;
        return Ok(text);
    }
    let file = std::fs::File::open(path).map_err(failure)?;
    if file.metadata().map_err(failure)?.len() > MAX_BYTES {
        return Err(Failure::Input(format!(
            "{}: is longer than {} MiB and so no capacity trace",
            path.display(),
            MAX_BYTES >> 20
        )));
    }
    file.take(MAX_BYTES).read_to_string(&mut text).map_err(failure)?;
    Ok(text)
}

fn said_of(path: &Path, error: SpecError) -> Failure {
    Failure::input(error.within(&path.display().to_string()))
}
