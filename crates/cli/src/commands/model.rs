//! `sojourn model`: what closed forms predict.

use serde_json::{Value, json};
use sojourn_core::{Param, SpecError};
use sojourn_model::anomaly;
use sojourn_model::bianchi::{self, Refinement, Slots};
use sojourn_model::ofdma::{Cell, Cycle, Form};
use sojourn_model::uora::Uora;
use sojourn_wifi::mac::frames;
use sojourn_wifi::mac::response::control_mode;
use sojourn_wifi::phy::Mode;

use crate::args::{Format, ModelArgs};
use crate::failure::Failure;
use crate::output::Output;
use crate::table::{Grid, Records};

/// The formula that has a table only: its stations are a list of their own.
const ANOMALY: &str = "anomaly";

/// The most combinations of values in one table.
const MOST_ROWS: usize = 100_000;

pub(super) fn model(args: &ModelArgs, output: Output) -> Result<(), Failure> {
    let table = match (&args.formula[..], args.params.is_empty()) {
        ("bianchi", true) => saturation(),
        (ANOMALY, true) => unequal_rates(),
        ("uora", true) => random_access(),
        ("ofdma", true) => triggered_uplink(),
        (ANOMALY, false) => {
            let error = SpecError::new("'anomaly' is the table of a paper and has no parameters");
            return Err(Failure::input(error.allow(["sojourn model anomaly"])));
        }
        (name, _) => {
            let points = points(name, &args.params).map_err(Failure::input)?;
            return show(&points, args.format, output);
        }
    };
    match args.format {
        Format::Table => output.text(&table.text()),
        Format::Json => output.json(&table.records().json()),
        Format::Csv => output.data(&table.records().csv()),
    }
}

/// The closed forms as `sojourn list model` shows them, the table of a paper among them.
pub(super) fn listed() -> Vec<(&'static str, &'static str, &'static [Param])> {
    let anomaly =
        "Airtime and rates of stations that send aggregates (Ending the Anomaly, table 1)";
    let formulas = sojourn_model::formulas();
    let all = formulas.iter().map(|kind| (kind.name, kind.doc, kind.params));
    all.chain([(ANOMALY, anomaly, &[][..])]).collect()
}

/// A formula at each combination of values.
struct Points {
    outputs: &'static [sojourn_model::Output],
    /// Parameters with several values.
    varied: Vec<String>,
    rows: Vec<(Vec<String>, Vec<f64>)>,
}

fn points(name: &str, params: &[String]) -> Result<Points, SpecError> {
    let formulas = sojourn_model::formulas();
    if formulas.named(name).is_none() {
        let names = || listed().into_iter().map(|(name, ..)| name);
        let problem = SpecError::new(format!("unknown closed form '{name}'"));
        return Err(problem.near(name, names()).allow(names()));
    }
    let mut given: Vec<(&str, Vec<&str>)> = Vec::new();
    for param in params {
        let (key, values) =
            param.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or_else(|| {
                SpecError::new(format!("'{param}' is no parameter")).allow(["KEY=VALUE"])
            })?;
        if given.iter().any(|(other, _)| *other == key) {
            let problem = format!("'{key}' is given twice");
            return Err(SpecError::new(problem).allow([format!("{key}=VALUE,VALUE,…")]));
        }
        given.push((key, values.split(',').collect()));
    }
    let count = given.iter().try_fold(1usize, |count, (_, values)| count.checked_mul(values.len()));
    let count = count.filter(|count| *count <= MOST_ROWS).ok_or_else(|| {
        SpecError::new("these values have too many combinations")
            .allow([format!("at most {MOST_ROWS}")])
    })?;
    let varied: Vec<usize> = (0..given.len()).filter(|at| given[*at].1.len() > 1).collect();
    let mut outputs: &[sojourn_model::Output] = &[];
    let mut rows = Vec::with_capacity(count);
    for row in 0..count {
        // The last parameter changes fastest.
        let mut rest = row;
        let mut chosen = vec![""; given.len()];
        for (at, (_, values)) in given.iter().enumerate().rev() {
            chosen[at] = values[rest % values.len()];
            rest /= values.len();
        }
        let words = given.iter().zip(&chosen).map(|((key, _), value)| format!(" {key}={value}"));
        let answer = formulas.parse(&format!("{name}{}", words.collect::<String>()))?;
        outputs = answer.outputs;
        let place = varied.iter().map(|at| chosen[*at].to_owned()).collect();
        rows.push((place, answer.values));
    }
    let varied = varied.iter().map(|at| given[*at].0.to_owned()).collect();
    Ok(Points { outputs, varied, rows })
}

/// One point is a list of what it gives, several are a table.
fn show(points: &Points, format: Format, output: Output) -> Result<(), Failure> {
    let column = |output: &sojourn_model::Output| match output.unit {
        "" => output.name.to_owned(),
        "Mbit/s" => format!("{}_mbps", output.name),
        unit => format!("{}_{unit}", output.name),
    };
    if format == Format::Table && points.varied.is_empty() {
        let mut grid = Grid::new(["output", ">value", "unit", "what it is"]);
        let values = points.rows.first().map_or(&[][..], |(_, values)| values);
        for (one, value) in points.outputs.iter().zip(values) {
            grid.row([one.name, &short(*value), one.unit, one.doc].map(str::to_owned));
        }
        return output.text(&grid.fitted());
    }
    let heads: Vec<String> =
        points.varied.iter().cloned().chain(points.outputs.iter().map(column)).collect();
    match format {
        Format::Table => {
            let heads: Vec<String> = heads.iter().map(|head| format!(">{head}")).collect();
            let mut grid = Grid::new(heads.iter().map(String::as_str));
            for (place, values) in &points.rows {
                grid.row(place.iter().cloned().chain(values.iter().map(|value| short(*value))));
            }
            output.text(&grid.fitted())
        }
        Format::Json | Format::Csv => {
            let mut records = Records::new(heads.iter().map(String::as_str));
            for (place, values) in &points.rows {
                let place = place.iter().map(|value| Value::from(&value[..]));
                records.row(place.chain(values.iter().map(|value| json!(value))));
            }
            match format {
                Format::Json => output.json(&records.json()),
                _ => output.data(&records.csv()),
            }
        }
    }
}

/// Five digits.
fn short(value: f64) -> String {
    let size = if value == 0.0 { 0 } else { value.abs().log10().floor() as i32 };
    if !(-4..7).contains(&size) {
        return format!("{value:.4e}");
    }
    format!("{value:.*}", (4 - size).clamp(0, 8) as usize)
}

/// Columns of words, then columns of numbers with this many decimals.
struct Table {
    words: Vec<&'static str>,
    numbers: Vec<(&'static str, usize)>,
    rows: Vec<(Vec<String>, Vec<f64>)>,
}

impl Table {
    fn new(words: &[&'static str], numbers: &[(&'static str, usize)]) -> Self {
        Self { words: words.to_vec(), numbers: numbers.to_vec(), rows: Vec::new() }
    }

    fn row(&mut self, words: &[&str], numbers: &[f64]) {
        self.rows.push((words.iter().map(|&word| word.to_owned()).collect(), numbers.to_vec()));
    }

    fn text(&self) -> String {
        let heads: Vec<String> = self.numbers.iter().map(|(name, _)| format!(">{name}")).collect();
        let heads = self.words.iter().copied().chain(heads.iter().map(String::as_str));
        let mut grid = Grid::new(heads);
        for (words, numbers) in &self.rows {
            let numbers = numbers
                .iter()
                .zip(&self.numbers)
                .map(|(number, (_, decimals))| format!("{number:.decimals$}"));
            grid.row(words.iter().cloned().chain(numbers));
        }
        grid.fitted()
    }

    fn records(&self) -> Records {
        let numbers = self.numbers.iter().map(|(name, _)| *name);
        let mut records = Records::new(self.words.iter().copied().chain(numbers));
        for (words, numbers) in &self.rows {
            let words = words.iter().map(|word| Value::from(word.as_str()));
            records.row(words.chain(numbers.iter().map(|number| json!(number))));
        }
        records
    }
}

/// Payload of the published tables, in octets.
const PAYLOAD: u32 = 1500;

/// Bianchi's saturation throughput, with bystanders that wait for DIFS or EIFS after a collision.
fn saturation() -> Table {
    let mut table = Table::new(
        &["mode"],
        &[("stations", 0), ("tau", 4), ("p", 4), ("difs_mbps", 4), ("eifs_mbps", 4)],
    );
    for text in [
        "ofdm 6",
        "ofdm 24",
        "ofdm 54",
        "he mcs 0",
        "he mcs 5",
        "he mcs 11",
        "he mcs 11 width 80MHz",
    ] {
        let mode = Mode::parse(text).expect("a mode of the table");
        for stations in [5, 10, 15, 20, 25, 30, 35, 40, 45, 50] {
            let point = bianchi::fixed_point(stations, bianchi::DCF);
            let mbps = |is_eifs| {
                let (slots, refinement) = basic_access(&mode, text.starts_with("he"), is_eifs);
                let payload = 8.0 * f64::from(PAYLOAD);
                let backoff = bianchi::DCF;
                bianchi::saturation_throughput(stations, payload, backoff, slots, refinement)
            };
            table.row(&[text], &[f64::from(stations), point.tau, point.p, mbps(false), mbps(true)]);
        }
    }
    table
}

fn basic_access(mode: &Mode, is_qos: bool, is_eifs: bool) -> (Slots, Refinement) {
    const SIFS: f64 = 16.0;
    const SLOT: f64 = 9.0;
    const DIFS: f64 = SIFS + 2.0 * SLOT;
    let header = if is_qos { frames::QOS_DATA_HEADER } else { frames::DATA_HEADER };
    let micros = |span: sojourn_core::Span| span.as_nanos() as f64 / 1000.0;
    let data = micros(mode.txtime(PAYLOAD + header + frames::FCS + frames::LLC_SNAP));
    let ack = micros(control_mode(mode).txtime(frames::ACK));
    let eifs = if is_eifs { SIFS + ack } else { 0.0 };
    // Best effort waits a slot longer than DIFS.
    let aifs = if is_qos { DIFS + SLOT } else { DIFS };
    let slots =
        Slots { idle: SLOT, success: data + SIFS + ack + aifs, collision: data + DIFS + eifs };
    (slots, if is_qos { Refinement::None } else { Refinement::FrozenCounters })
}

/// Table 1 of "Ending the Anomaly".
fn unequal_rates() -> Table {
    let mut table = Table::new(
        &["queue", "station"],
        &[
            ("aggregate_octets", 0),
            ("airtime_percent", 1),
            ("phy_mbps", 1),
            ("base_mbps", 1),
            ("rate_mbps", 1),
        ],
    );
    for (is_fair, queue) in [(false, "fifo"), (true, "airtime")] {
        let stations = anomaly::table_1(is_fair);
        let names = ["fast 1", "fast 2", "slow"];
        let predictions = anomaly::predict(&stations, is_fair);
        for ((name, station), prediction) in names.iter().zip(stations).zip(predictions) {
            table.row(
                &[queue, name],
                &[
                    station.aggregate,
                    100.0 * prediction.airtime,
                    station.rate,
                    prediction.base,
                    prediction.rate,
                ],
            );
        }
    }
    table
}

fn uora(stations: u32, units: u32) -> Uora {
    Uora { stations, units, ocw_min: 7, doublings: 2, retries_at_most: 0, error: 0.0 }
}

/// Random access on resource units, OCW 7 to 31.
fn random_access() -> Table {
    let mut table = Table::new(
        &[],
        &[("stations", 0), ("units", 0), ("gamma", 4), ("beta", 4), ("successes", 3)],
    );
    for (stations, units) in [(5, 1), (5, 2), (10, 2), (10, 4), (10, 9), (20, 4), (20, 9), (50, 9)]
    {
        let solution = uora(stations, units).solve();
        let numbers = [
            f64::from(stations),
            f64::from(units),
            solution.gamma,
            solution.beta,
            solution.successes(stations),
        ];
        table.row(&[], &numbers);
    }
    table
}

/// Equations 1 to 8 of "TCP BBR Performance over Wi-Fi 6": four scheduled stations on 52 tones of
/// 40 MHz beside stations that contend for other units.
fn triggered_uplink() -> Table {
    let mut table = Table::new(
        &["form"],
        &[
            ("contending", 0),
            ("units", 0),
            ("cycle_us", 1),
            ("total_mbps", 2),
            ("scheduled_mbps", 2),
            ("contending_mbps", 2),
        ],
    );
    let cycle = Cycle {
        trigger_random: 96.0,
        buffer_status: 76.8,
        trigger: 96.0,
        ppdu: 5484.0,
        multi_block_ack: 80.0,
        sifs: 16.0,
        access: 110.5,
    };
    for (form, name) in [(Form::Corrected, "corrected"), (Form::Printed, "printed")] {
        for (stations, units) in [(5, 1), (5, 2), (10, 4), (20, 4)] {
            let uora = uora(stations, units);
            let (scheduled, payload) = (4, 12_000.0);
            let packets = 7.0;
            let cell = Cell { cycle, scheduled, schedulable: 4, uora, payload, packets };
            let throughput = cell.throughput(form);
            let time = sojourn_model::ofdma::cycle_time(&cycle);
            table.row(
                &[name],
                &[
                    f64::from(stations),
                    f64::from(units),
                    time + if form == Form::Corrected { cycle.access } else { 0.0 },
                    throughput.total,
                    throughput.scheduled,
                    throughput.random,
                ],
            );
        }
    }
    table
}
