//! A measured cell, simulated.

use std::collections::BTreeMap;
use std::num::NonZeroU8;

use serde_json::Value;
use sojourn_core::{DropReason, Purpose, Span, Stream, StreamAddress, Time};
use sojourn_wifi::mac::aggregation::Limits;
use sojourn_wifi::mac::edca::{AccessCategory, Parameters};
use sojourn_wifi::medium::{AirCounts, Config, LinkCounts, LostBlockAck, Medium, Radio, Station};
use sojourn_wifi::ofdma::{Acknowledgement, Ofdma};
use sojourn_wifi::phy::{GuardInterval, HeLtf, Mode, Width};
use sojourn_wifi::queueing::{DriverConfig, Order};
use sojourn_wifi::{Listener, Port};

use super::sources::{Datagram, Kind, Source};
use super::{Situation, tcp};

/// What a situation needs and this model does not have.
#[derive(Clone, Debug)]
pub struct Waits(pub String);

/// Means over `seeds` runs, by the names of the measured results.
///
/// # Errors
/// What the situation needs and this model does not have.
pub fn simulate(situation: &Situation, seeds: u64) -> Result<BTreeMap<String, f64>, Waits> {
    let config = cell(&situation.setup)?;
    let mut sums: BTreeMap<String, f64> = BTreeMap::new();
    for seed in 1..=seeds {
        let run = if is_tcp(&situation.setup) { tcp::run } else { run };
        for (name, value) in run(&situation.setup, &config, seed) {
            let value = value + triggers(&config, &name);
            *sums.entry(name).or_default() += value / seeds as f64;
        }
    }
    Ok(sums)
}

/// The measuring program counts the Trigger frame in each PSDU as one of its frames.
fn triggers(config: &Config, name: &str) -> f64 {
    let is_aggregated = |ofdma: &Ofdma| ofdma.acknowledgement == Acknowledgement::Aggregated;
    let has_triggers = config.ofdma.as_ref().is_some_and(is_aggregated);
    if has_triggers && name == "mpdus_per_ppdu_down" { 1.0 } else { 0.0 }
}

fn is_tcp(setup: &Value) -> bool {
    let mut kinds = traffic(setup).filter_map(|flow| flow["kind"].as_str());
    kinds.any(|kind| kind.starts_with("TCP"))
}

fn cell(setup: &Value) -> Result<Config, Waits> {
    let count = setup["stations"].as_u64().expect("a count") as usize;
    let (down, up) = (modes(setup, "rate_down", count), modes(setup, "rate_up", count));
    let error = setup["data_mpdu_loss"].as_f64().unwrap_or(0.0);
    let queue = queue(setup);
    let stations = down
        .into_iter()
        .zip(up)
        .map(|(down, up)| Station {
            down: Radio { error, ..Radio::new(down) },
            up: Radio { error, ..Radio::new(up) },
            queue: DriverConfig { upper: None, ..queue.clone() },
            weight: Station::WEIGHT,
        })
        .collect();
    let mut config = Config::new(stations, limits(setup), queue);
    config.lost_block_ack = LostBlockAck::Request;
    config.cf_end = true;
    config.is_qos = setup["edca"]["DCF"].is_null();
    config.access_point = parameters(setup, &["ap", "access_point", "access point"]);
    config.station = parameters(setup, &["stations", "station"]);
    let retry_limit = setup["frame_retry_limit"].as_u64().expect("a count");
    // Limits above the standard's 255 were set in order not to be reached.
    config.retry_limit = u8::try_from(retry_limit).ok().and_then(NonZeroU8::new);
    if setup["rts_cts"]["used"] == true {
        config.rts_threshold = 0;
    }
    config.ofdma = ofdma(&setup["ofdma"]);
    config
        .check()
        .map_err(|refused| Waits(format!("what the standard does not allow: {refused}")))?;
    Ok(config)
}

/// What the measuring program's scheduler does where the standard leaves it open: it polls, without a backoff of its own for a
/// Trigger frame, and sends these at the lowest rate.
fn ofdma(setup: &Value) -> Option<Ofdma> {
    let is_used = |direction: &str| setup[direction] == true;
    if !is_used("downlink") && !is_used("uplink") {
        return None;
    }
    let acknowledgement = match setup["dl_ack"].as_str().unwrap_or_default() {
        text if text.starts_with("MU-BAR trigger") => Acknowledgement::MuBar,
        text if text.starts_with("MU-BAR aggregated") => Acknowledgement::Aggregated,
        _ => Acknowledgement::InTurn,
    };
    let interval = setup["ap_asks_for_access_every_ms"].as_f64().unwrap_or(2.0) / 1000.0;
    // With an AIFSN of zero stations that were asked leave the medium to the access point, for the longest time that there is.
    let stations_retreat = setup["stations_edca"].as_str().is_some_and(|edca| edca != "normal");
    Some(Ofdma {
        downlink: is_used("downlink"),
        uplink: is_used("uplink"),
        acknowledgement,
        status: setup["bsrp_before_basic_trigger"] != false,
        interval: Span::from_secs_f64(interval),
        poll: true,
        trigger_backoff: false,
        slow_triggers: true,
        all_ack: true,
        guard: match setup["guard_interval_tb_ns"].as_u64() {
            Some(3200) => GuardInterval::Ns3200,
            _ => GuardInterval::Ns1600,
        },
        mu_edca_time: Span::from_micros(if stations_retreat { 255 * 8192 } else { 0 }),
        ..Ofdma::default()
    })
}

pub(super) fn traffic(setup: &Value) -> impl Iterator<Item = &Value> {
    setup["traffic"].as_array().into_iter().flatten()
}

fn queue(setup: &Value) -> DriverConfig {
    let above = setup["queue"]["above"].as_str().map(|above| {
        let text = match above {
            "FIFO of 1000" => "pfifo limit 1000",
            _ => "fq_codel quantum 1500 noecn",
        };
        sojourn_qdisc::Config::parse(text).expect("a discipline")
    });
    DriverConfig {
        limit: setup["queue"]["packets"].as_u64().expect("a limit") as u32,
        order: Order::OldestFirst,
        upper: above,
    }
}

fn limits(setup: &Value) -> Limits {
    let aggregation = &setup["aggregation"];
    let number = |key: &str| aggregation[key].as_u64().unwrap_or(0) as u32;
    if aggregation["enabled"] != true {
        return Limits::NONE;
    }
    let window = number("block_ack_window") as u16;
    Limits {
        ampdu_octets: number("a_mpdu_max_octets"),
        window,
        mpdus: window,
        amsdu_octets: number("a_msdu_max_octets"),
        ppdu_time: Span::from_micros(u64::from(number("ppdu_max_us"))),
    }
}

/// Those of the access point or of the stations, which stand under one of `names` where the two differ.
fn parameters(setup: &Value, names: &[&str]) -> [Parameters; AccessCategory::COUNT] {
    let mut parameters = Parameters::EDCA;
    if !setup["edca"]["DCF"].is_null() {
        return [Parameters::DCF; AccessCategory::COUNT];
    }
    let own = names.iter().map(|name| &setup["edca"][name]).find(|edca| edca.is_object());
    for (category, name) in ["BK", "BE", "VI", "VO"].iter().enumerate() {
        let edca = &own.unwrap_or(&setup["edca"])[name];
        let number = |key: &str| edca[key].as_u64().expect("a number");
        if !edca.is_null() {
            parameters[category] = Parameters {
                cw_min: number("cw_min") as u16,
                cw_max: number("cw_max") as u16,
                aifsn: number("aifsn") as u8,
                txop_limit: Span::from_micros(number("txop_limit_us")),
            };
        }
    }
    parameters
}

/// The modes of all stations: one for all, one each, or one for ranges of stations.
fn modes(setup: &Value, key: &str, count: usize) -> Vec<Mode> {
    let one = |rate: &Value| mode(setup, rate["mode"].as_str().expect("a mode"));
    match &setup[key] {
        Value::Array(rates) if rates.iter().all(|rate| rate["stations"].is_null()) => {
            rates.iter().map(one).collect()
        }
        Value::Array(rates) => (0..count)
            .map(|station| {
                let holds = |rate: &&Value| {
                    range(rate["stations"].as_str().expect("a range")).contains(&station)
                };
                one(rates.iter().find(holds).expect("a rate for every station"))
            })
            .collect(),
        rate => vec![one(rate); count],
    }
}

/// `0-28`, `29`, or the whole of a sentence that ends so.
fn range(text: &str) -> std::ops::RangeInclusive<usize> {
    let text = text.rsplit(' ').next().unwrap_or(text);
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let number = |text: &str| text.parse::<usize>().expect("a number of a station");
    number(first)..=number(last)
}

fn mode(setup: &Value, text: &str) -> Mode {
    let width = match setup["width_mhz"].as_u64() {
        Some(40) => Width::Mhz40,
        Some(80) => Width::Mhz80,
        _ => Width::Mhz20,
    };
    let guard = match setup["guard_interval_ns"].as_u64() {
        Some(400) => GuardInterval::Ns400,
        Some(1600) => GuardInterval::Ns1600,
        Some(3200) => GuardInterval::Ns3200,
        _ => GuardInterval::Ns800,
    };
    let number = |prefix: &str| text.strip_prefix(prefix).and_then(|rest| rest.parse().ok());
    if let Some(mcs) = number("HT MCS ") {
        return Mode::ht(mcs, width, guard).expect("a mode of HT");
    }
    if let Some(mcs) = number("HE MCS ") {
        return Mode::he_su(mcs, 1, width, guard, HeLtf::EightMicros).expect("a mode of HE");
    }
    let mbps = text.strip_prefix("OFDM ").and_then(|rest| rest.strip_suffix("Mbps"));
    Mode::non_ht(mbps.and_then(|mbps| mbps.parse().ok()).expect("a rate")).expect("a mode")
}

struct Ignore;

impl Listener<Datagram> for Ignore {
    fn entered(&mut self, _: Time, _: Port, _: &Datagram) {}
    fn refused(&mut self, _: Time, _: Port, _: &Datagram, _: DropReason) {}
    fn framed(&mut self, _: Time, _: Port, _: &Datagram, _: Span) {}
    fn marked(&mut self, _: Time, _: Port, _: &Datagram) {}
    fn dropped(&mut self, _: Time, _: Port, _: &Datagram, _: DropReason) {}
    fn given_up(&mut self, _: Time, _: Port, _: &Datagram) {}
}

fn sources(setup: &Value, stations: usize, random: &mut Stream) -> Vec<Source> {
    let seconds = |key: &str| Span::from_secs_f64(setup[key].as_f64().expect("seconds"));
    let start = Time::ZERO + seconds("start_of_traffic_s");
    let mut sources = Vec::new();
    for flow in traffic(setup) {
        let text = |key: &str| flow[key].as_str().unwrap_or_default();
        let category = ["BK", "BE", "VI", "VO"]
            .iter()
            .position(|name| text("access_category").starts_with(name))
            .expect("a category");
        let is_up = text("direction").starts_with("up");
        let payload = flow["payload_octets"].as_u64().expect("a length") as u32;
        for station in members(flow, stations) {
            let station = station as u16;
            let port = if is_up { Port::up(station) } else { Port::down(station) };
            let random = random.fork();
            sources.push(match flow["period_ms"].as_f64() {
                Some(period) => {
                    let is_echo = text("kind") == "UDP echo";
                    let gap = period / 1000.0;
                    Source::periodic(port, start, category, payload, gap, is_echo, random)
                }
                None => {
                    let mbps = flow["offered_mbps_each"].as_f64().expect("a rate");
                    Source::bulk(port, start, category, payload, mbps, random)
                }
            });
        }
    }
    sources
}

/// What arrived in the window.
#[derive(Default)]
pub(super) struct Arrived {
    /// By port, payload of bulk datagrams.
    bulk: Vec<u64>,
    by_category: [u64; 4],
    voice_ms: [Vec<f64>; 2],
    ping_ms: Vec<f64>,
}

fn run(setup: &Value, config: &Config, seed: u64) -> BTreeMap<String, f64> {
    let address = StreamAddress { seed, run: 0 };
    let mut medium = Medium::new(config.clone(), address, 1).expect("a checked cell");
    let mut random = address.stream(2, Purpose::Application);
    let stations = config.stations.len();
    let mut sources = sources(setup, stations, &mut random);
    let has_bulk: Vec<bool> = (0..2 * stations as u16)
        .map(|port| sources.iter().any(|source| source.port.index() == port && source.is_bulk()))
        .collect();
    let seconds = |key: &str| setup[key].as_f64().expect("seconds");
    let from = Time::ZERO + Span::from_secs_f64(seconds("measured_from_s"));
    let to = Time::ZERO + Span::from_secs_f64(seconds("measured_to_s"));
    let mut arrived = Arrived::of(vec![0; 2 * stations]);
    let mut before: Option<(AirCounts, Vec<LinkCounts>)> = None;
    let ports = || (0..2 * stations as u16).map(Port::new);
    loop {
        let (index, send) = sources
            .iter()
            .enumerate()
            .map(|(index, source)| (index, source.next))
            .min_by_key(|(_, next)| *next)
            .expect("a source");
        let now = send.min(medium.next_wake());
        if before.is_none() && now >= from {
            before = Some((medium.air(), ports().map(|port| medium.counts(port)).collect()));
        }
        if now >= to {
            break;
        }
        if medium.next_wake() <= now {
            medium.on_wake(now, &mut Ignore);
        }
        while let Some((port, datagram)) = medium.poll_deliver(now) {
            if let Kind::Echo { .. } = datagram.kind
                && port.index() % 2 == 0
            {
                let back = Port::new(port.index() + 1);
                medium.offer(now, back, &datagram, &mut Ignore);
                continue;
            }
            if now >= from {
                arrived.note(now, port, &datagram);
            }
        }
        if send <= now {
            let datagram = sources[index].send();
            let port = sources[index].port;
            medium.offer(now, port, &datagram, &mut Ignore);
        }
    }
    let (air, counts) = before.expect("the window begins before the end");
    let spent = |port: Port| difference(medium.counts(port), counts[usize::from(port.index())]);
    let counts: Vec<LinkCounts> = ports().map(spent).collect();
    let attempts = medium.air().attempts - air.attempts;
    let collided = medium.air().collided - air.collided;
    let window = to.since(from).as_secs_f64();
    results(&arrived, &counts, &has_bulk, attempts, collided, window)
}

impl Arrived {
    pub(super) fn of(bulk: Vec<u64>) -> Self {
        Self { bulk, ..Self::default() }
    }

    fn note(&mut self, now: Time, port: Port, datagram: &Datagram) {
        let index = usize::from(port.index());
        let ms = |since: Time| now.since(since).as_millis_f64();
        match datagram.kind {
            Kind::Bulk => {
                self.bulk[index] += u64::from(datagram.payload);
                self.by_category[datagram.category()] += u64::from(datagram.payload);
            }
            Kind::Voice => self.voice_ms[index % 2].push(ms(datagram.sent)),
            Kind::Echo { asked } => self.ping_ms.push(ms(asked)),
        }
    }
}

pub(super) fn difference(after: LinkCounts, before: LinkCounts) -> LinkCounts {
    LinkCounts {
        airtime: after.airtime - before.airtime,
        attempts: after.attempts - before.attempts,
        collided: after.collided - before.collided,
        ppdus: after.ppdus - before.ppdus,
        mpdus: after.mpdus - before.mpdus,
        psdu_octets: after.psdu_octets - before.psdu_octets,
        ..after
    }
}

/// The stations that a flow goes to or comes from.
pub(super) fn members(flow: &Value, stations: usize) -> std::ops::RangeInclusive<usize> {
    match flow["stations"].as_str().unwrap_or_default() {
        all if all.starts_with("each") => 0..=stations - 1,
        some => range(some),
    }
}

pub(super) fn results(
    arrived: &Arrived,
    counts: &[LinkCounts],
    has_bulk: &[bool],
    attempts: u64,
    collided: u64,
    window: f64,
) -> BTreeMap<String, f64> {
    let mut results = BTreeMap::new();
    let mut put = |name: String, value: f64| {
        results.insert(name, value);
    };
    let mbps = |bytes: u64| 8.0 * bytes as f64 / window / 1e6;
    let of = |direction: usize| arrived.bulk.iter().skip(direction).step_by(2).sum::<u64>();
    put("throughput_mbps".into(), mbps(of(0) + of(1)));
    let airtime: f64 = counts.iter().map(|counts| counts.airtime.as_secs_f64()).sum();
    let stations = counts.len() / 2;
    for (direction, name) in ["down", "up"].into_iter().enumerate() {
        put(format!("throughput_{name}_mbps"), mbps(of(direction)));
        let bulk =
            || (0..stations).map(|station| 2 * station + direction).filter(|port| has_bulk[*port]);
        let ppdus: u64 = bulk().map(|port| counts[port].ppdus).sum();
        let mpdus: u64 = bulk().map(|port| counts[port].mpdus).sum();
        if ppdus > 0 {
            put(format!("mpdus_per_ppdu_{name}"), mpdus as f64 / ppdus as f64);
            put(format!("data_psdus_per_s_{name}"), ppdus as f64 / window);
        }
        let share = |port: usize| counts[port].airtime.as_secs_f64() / airtime;
        for station in 0..stations {
            let port = 2 * station + direction;
            put(format!("sta{station}_{name}_mbps"), mbps(arrived.bulk[port]));
            put(format!("sta{station}_{name}_airtime_share"), share(port));
        }
        let slow = 2 * (stations - 1) + direction;
        let fast: f64 = (0..stations - 1).map(|station| share(2 * station + direction)).sum();
        put(format!("slow_{name}_airtime_share"), share(slow));
        put(format!("fast_{name}_airtime_share_sum"), fast);
        percentiles(&format!("voice_{name}_delay"), &arrived.voice_ms[direction], &mut put);
    }
    for (category, name) in ["bk", "be", "vi", "vo"].into_iter().enumerate() {
        put(format!("throughput_{name}_mbps"), mbps(arrived.by_category[category]));
    }
    percentiles("ping_rtt", &arrived.ping_ms, &mut put);
    put("collision_probability".into(), collided as f64 / attempts.max(1) as f64);
    results
}

fn percentiles(name: &str, values: &[f64], put: &mut impl FnMut(String, f64)) {
    if values.is_empty() {
        return;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let mean = sorted.iter().sum::<f64>() / sorted.len() as f64;
    put(format!("{name}_mean_ms"), mean);
    for percent in [50, 95, 99] {
        let index = (sorted.len() - 1) * percent / 100;
        put(format!("{name}_p{percent}_ms"), sorted[index]);
    }
}
