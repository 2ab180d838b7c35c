//! `sojourn trace`: reads, draws, converts and makes capacity traces.

mod picture;

use std::path::Path;

use serde_json::json;
use sojourn_core::{Bytes, Purpose, Rate, Span, SpecError, Stream, StreamAddress};
use sojourn_file::text_file;
use sojourn_link::blockage::Preset;
use sojourn_link::brownian;
use sojourn_link::trace::{Dip, Format as LinkFormat, Playback, WITEST_STEP_OVERHEAD};
use sojourn_link::{BlockageSpec, RateSpec, Schedule, Trace};

use crate::args::{PlaybackName, TraceArgs, TraceCommand, TraceFormat, UnitArgs};
use crate::chart;
use crate::failure::Failure;
use crate::number::{number, percent};
use crate::output::Output;
use crate::table::{Fact, print_facts};

pub(super) fn trace(command: &TraceCommand, output: Output) -> Result<(), Failure> {
    match command {
        TraceCommand::Info { trace, below, format } => {
            let (capacity, read_as) = Capacity::read(trace)?;
            let mut facts = vec![Fact::plain("format", json!(read_as.name()))];
            let problem = |error: SpecError| said_of(&trace.file, error);
            facts.extend(match capacity {
                Capacity::Steps(trace) => steps_info(&trace, below),
                Capacity::Opportunities(schedule) => {
                    schedule_info(&schedule, below).map_err(problem)?
                }
            });
            print_facts(output, *format, &facts)
        }
        TraceCommand::Convert { trace, to, units, playback, out } => {
            let (mut capacity, _) = Capacity::read(trace)?;
            let problem = |error: SpecError| said_of(&trace.file, error);
            if let Some(name) = playback {
                let steps = capacity.into_steps(units).map_err(problem)?;
                capacity = Capacity::Steps(name.playback().apply(&steps).map_err(problem)?);
            }
            let text = capacity.written(*to, units).map_err(problem)?;
            output.to(out.as_deref(), text.as_bytes())
        }
        TraceCommand::Synth {
            model,
            duration,
            seed,
            study_seed,
            link,
            no_outages,
            to,
            units,
            out,
        } => {
            let model =
                model_of(&model.join(" "), *duration, *no_outages).map_err(Failure::input)?;
            let address = StreamAddress { seed: *study_seed, run: *seed };
            let mut random = address.stream_named(link, Purpose::Capacity);
            let (capacity, made_of) =
                Capacity::made(&model, &mut random).map_err(Failure::input)?;
            let text = capacity.written(to.unwrap_or(made_of), units).map_err(Failure::input)?;
            output.to(out.as_deref(), text.as_bytes())
        }
        TraceCommand::Plot { trace, width, height, svg, step } => {
            let units = UnitArgs { step: *step, ..UnitArgs::DEFAULT };
            let (capacity, _) = Capacity::read(trace)?;
            let steps = capacity.into_steps(&units).map_err(|error| said_of(&trace.file, error))?;
            match svg {
                Some(path) => output.to(Some(path), picture::svg(&steps).as_bytes()),
                None => output.text(&plot(&steps, usize::from(*width), usize::from(*height))),
            }
        }
    }
}

/// The model that a user asked for: a preset of the blockage process, or a rate as study files
/// write it.
fn model_of(text: &str, duration: Option<Span>, no_outages: bool) -> Result<RateSpec, SpecError> {
    let first = text.split_whitespace().next().unwrap_or_default();
    let is_preset = Preset::ALL.iter().any(|preset| preset.name() == first);
    let models = || Preset::ALL.map(Preset::name).into_iter().chain(MADE);
    let model = match is_preset {
        true => RateSpec::parse(&format!("blockage {text}"))?,
        false if MADE.contains(&first) => RateSpec::parse(text)?,
        false => {
            return Err(SpecError::new(format!("no trace can be made of '{first}'"))
                .near(first, models())
                .allow(models()));
        }
    };
    let within = |error: SpecError| error.within("--duration");
    match (model, duration) {
        (RateSpec::Blockage(BlockageSpec { process, serving }), duration) => {
            let process = if no_outages { process.without_outages() } else { process };
            let process = match duration {
                Some(duration) => process.lasting(duration).map_err(within)?,
                None => process,
            };
            Ok(RateSpec::Blockage(BlockageSpec { process, serving }))
        }
        (model, _) if no_outages => {
            Err(SpecError::new(format!("--no-outages: '{model}' has none")).allow(["a blockage"]))
        }
        (model, None) => Ok(model),
        (RateSpec::Brownian(process), Some(duration)) => {
            Ok(RateSpec::Brownian(process.lasting(duration).map_err(within)?))
        }
        (model, Some(_)) => {
            Err(SpecError::new(format!("--duration: '{model}' has a length of its own"))
                .allow(["with a blockage or brownian"]))
        }
    }
}

/// Rates of study files from which a trace can be made.
const MADE: [&str; 4] = ["blockage", "brownian", "rfc8867", "steps"];

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

/// A trace as rates or as opportunities.
enum Capacity {
    Steps(Trace),
    Opportunities(Schedule),
}

impl Capacity {
    /// The capacity in a file, and the file's format.
    fn read(args: &TraceArgs) -> Result<(Self, LinkFormat), Failure> {
        let text = read_text(&args.file)?;
        let format = args.from.map_or_else(|| LinkFormat::detect(&text), TraceFormat::of_link);
        let read = match (format, &args.column) {
            (LinkFormat::Mahimahi, None) => Schedule::parse(&text).map(Self::Opportunities),
            (_, column) => Trace::parse_as(format, column.as_deref(), &text).map(Self::Steps),
        };
        Ok((read.map_err(|error| said_of(&args.file, error))?, format))
    }

    /// The capacity that a model draws, and the format that loses nothing of it.
    fn made(model: &RateSpec, random: &mut Stream) -> Result<(Self, TraceFormat), SpecError> {
        match model {
            RateSpec::Blockage(BlockageSpec { process, .. }) => {
                Ok((Self::Steps(process.generate(random)), TraceFormat::Steps))
            }
            RateSpec::Brownian(process) => {
                Ok((Self::Opportunities(process.generate(random)), TraceFormat::Mahimahi))
            }
            RateSpec::Rfc8867(spec) => Ok((Self::Steps(spec.case.trace()), TraceFormat::Steps)),
            RateSpec::Steps(spec) => Ok((Self::Steps(spec.trace.clone()), TraceFormat::Steps)),
            other => Err(SpecError::new(format!("no trace can be made of '{other}'")).allow(MADE)),
        }
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
            (capacity, format) => capacity.into_steps(units)?.written_as(format.of_link()),
        }
    }
}

impl TraceFormat {
    const fn of_link(self) -> LinkFormat {
        match self {
            Self::Steps => LinkFormat::Steps,
            Self::Samples => LinkFormat::Samples,
            Self::Csv => LinkFormat::Csv,
            Self::Gym => LinkFormat::Gym,
            Self::Mahimahi => LinkFormat::Mahimahi,
        }
    }
}

fn steps_info(trace: &Trace, below: &[Rate]) -> Vec<Fact> {
    let mut facts = vec![Fact::plain("steps", json!(trace.len()))];
    facts.extend(rates_info(trace, below));
    facts
}

fn schedule_info(schedule: &Schedule, below: &[Rate]) -> Result<Vec<Fact>, SpecError> {
    let bytes = brownian::OPPORTUNITY_BYTES;
    let mut facts = vec![
        Fact::plain("opportunities", json!(schedule.millis().len())),
        rate_fact(&format!("mean at {bytes} B"), "mean_exact", schedule.mean(bytes)),
    ];
    // Rates of opportunities are averaged over 100 ms.
    let steps = schedule.to_trace(UnitArgs::DEFAULT.step, bytes)?;
    facts.extend(rates_info(&steps, below));
    Ok(facts)
}

/// Shares of the time. For each, the rate is shown that is not exceeded during that share.
const PERCENTILES: [u32; 9] = [1, 5, 10, 25, 50, 75, 90, 95, 99];

/// The most onsets that are listed for people.
const MOST_ONSETS: usize = 40;

fn rates_info(trace: &Trace, below: &[Rate]) -> Vec<Fact> {
    let info = trace.info();
    let rate = |name: &str, rate: Rate| rate_fact(name, &name.replace(' ', "_"), rate);
    let mut facts = vec![
        span_fact("duration", info.duration),
        rate("mean", info.mean),
        rate("least", info.min),
        rate("least above zero", info.min_above_zero),
        rate("median", info.median),
        rate("largest", info.max),
    ];
    let quantiles = trace.quantiles(PERCENTILES.map(|percent| f64::from(percent) / 100.0));
    for (percent, value) in PERCENTILES.into_iter().zip(quantiles) {
        facts.push(rate_fact(&format!("{percent} % up to"), &format!("p{percent}"), value));
    }
    facts.push(span_fact("outage", info.outage));
    let outages = trace.dips(Rate::from_bps(1));
    facts.push(Fact::plain("outages", json!(outages.len())));
    facts.push(span_fact("longest outage", longest(&outages)));
    // Papers call a link blocked when its rate is below half of its usual one.
    let half = Rate::from_bps(info.median.as_bps() / 2);
    let blocked = [("below_half".to_owned(), half)];
    let asked = below.iter().map(|rate| (format!("below_{}_mbps", rate.as_mbps()), *rate));
    let thresholds: Vec<_> =
        if below.is_empty() { blocked.into() } else { blocked.into_iter().chain(asked).collect() };
    for (key, threshold) in thresholds {
        let share = trace.share_below(threshold);
        let name = format!("below {} Mbit/s", number(threshold.as_mbps()));
        facts.push(Fact::new(&name, percent(share), &format!("{key}_share"), json!(share)));
        let dips = trace.dips(threshold);
        let onsets: Vec<f64> = dips.iter().map(|dip| dip.onset.as_secs_f64()).collect();
        let shown: Vec<String> =
            onsets.iter().take(MOST_ONSETS).map(|onset| format!("{onset:.1}")).collect();
        let rest = match onsets.len().checked_sub(MOST_ONSETS) {
            None | Some(0) => String::new(),
            Some(more) => format!(" and {more} more"),
        };
        let text = format!("{} times, for up to {}", dips.len(), longest(&dips));
        facts.push(Fact::new("", text, &format!("{key}_times"), json!(dips.len())));
        let longest = longest(&dips).as_secs_f64();
        facts.push(Fact::hidden(&format!("{key}_longest_s"), json!(longest)));
        if !onsets.is_empty() {
            let text = format!("from {} s{rest}", shown.join(", "));
            facts.push(Fact::new("", text, &format!("{key}_onsets_s"), json!(onsets)));
        }
    }
    facts
}

fn longest(dips: &[Dip]) -> Span {
    dips.iter().map(|dip| dip.length).max().unwrap_or(Span::ZERO)
}

fn rate_fact(name: &str, key: &str, rate: Rate) -> Fact {
    let text = format!("{} Mbit/s", number(rate.as_mbps()));
    Fact::new(name, text, &format!("{key}_mbps"), json!(rate.as_mbps()))
}

fn span_fact(name: &str, span: Span) -> Fact {
    let key = format!("{}_s", name.replace(' ', "_"));
    Fact::new(name, span.to_string(), &key, json!(span.as_secs_f64()))
}

/// Rates over time; each column shows the least and the largest rate of its stretch.
fn plot(trace: &Trace, width: usize, height: usize) -> String {
    let width = width.saturating_sub(chart::MARGIN);
    chart::area(&chart::ranges(trace, width), height, "Mbit/s")
        + &chart::axis(width, "0", &trace.duration().to_string())
}

fn read_text(path: &Path) -> Result<String, Failure> {
    let read = match path == Path::new("-") {
        true => text_file::read_from(std::io::stdin()),
        false => text_file::read(path).map_err(|error| {
            match path.exists() && !path.is_file() && !path.is_dir() {
                true => error.allow(["a regular file", "- for standard input"]),
                false => error,
            }
        }),
    };
    read.map_err(|error| said_of(path, error))
}

fn said_of(path: &Path, error: SpecError) -> Failure {
    Failure::input(error.within(&path.display().to_string()))
}
