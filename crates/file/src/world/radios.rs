//! Radio cells of a free topology, whose stations are nodes.

use std::collections::BTreeSet;

use sojourn_core::{PortId, Span, SpecError};
use sojourn_qdisc::Config as Discipline;
use sojourn_scenario::{CarrierConfig, Host};
use sojourn_wifi::mac::aggregation::Limits;
use sojourn_wifi::mac::edca::{AccessCategory, Parameters, WrittenParameters};
use sojourn_wifi::medium::{self, Config, Radio, Station};
use sojourn_wifi::phy::{Format, Mode};
use sojourn_wifi::queueing::{Airtime, DriverConfig, QueueConfig, Schedule};
use sojourn_wifi::rate::{Control, Rates, SignalConfig};
use sojourn_wifi::{Port, RadioConfig};

use super::routes::Graph;
use super::shape::{Shape, check_name, taken};
use super::{Sources, Wrong};
use crate::plan::PlannedQueue;
use crate::spec::{
    Access, LostBlockAck, QueueSpec, Queueing, RadioSpec, ScenarioSpec, StationSpec, Text,
};

/// The most stations of a cell: more could not be numbered as ports.
const MAX_STATIONS: usize = 2_000;

const STATION_QUEUE: &str = "pfifo limit 1000";

/// Adds the nodes that are stations, so that links and carriers may name them too.
pub(super) fn add_nodes(
    spec: &ScenarioSpec,
    shape: &mut Shape,
    graph: &mut Graph,
) -> Result<(), Wrong> {
    let mut names: BTreeSet<String> = graph.nodes().iter().cloned().collect();
    for (index, radio) in spec.radio.iter().enumerate() {
        for (place, station) in radio.station.iter().enumerate() {
            let key = format!("radio.{index}.station.{place}.name");
            check_name(&station.name).map_err(|problem| Wrong::new(&key, problem))?;
        }
        for Named { name, place, .. } in named(radio, &format!("radio.{index}"))? {
            if !names.insert(name.clone()) {
                let key = format!("radio.{index}.station.{place}.name");
                return Err(Wrong::new(key, taken("node", &name)));
            }
            graph.add_node(&name);
            shape.hosts.push(Host { name });
        }
    }
    Ok(())
}

/// A station of a cell.
struct Named<'a> {
    name: String,
    /// Which of those that are written it is.
    place: usize,
    spec: &'a StationSpec,
}

/// The stations of a cell, each by itself.
fn named<'a>(radio: &'a RadioSpec, key: &str) -> Result<Vec<Named<'a>>, Wrong> {
    let mut stations = Vec::new();
    for (place, spec) in radio.station.iter().enumerate() {
        let count = spec.count.unwrap_or(1);
        if count == 0 || stations.len() + usize::from(count) > MAX_STATIONS {
            let problem = match count {
                0 => SpecError::new("there are 0 of them"),
                _ => SpecError::new(format!("radio '{}' has too many stations", radio.name)),
            };
            let key = match spec.count {
                Some(_) => format!("{key}.station.{place}.count"),
                None => format!("{key}.station"),
            };
            return Err(Wrong::new(key, problem.allow([format!("1 to {MAX_STATIONS} in all")])));
        }
        stations.extend((1..=count).map(|number| Named {
            name: match spec.count {
                None => spec.name.clone(),
                Some(_) => format!("{}.{number}", spec.name),
            },
            place,
            spec,
        }));
    }
    Ok(stations)
}

/// Adds the cells, whose ports follow those of links and carriers.
pub(super) fn build(
    spec: &ScenarioSpec,
    shape: &mut Shape,
    graph: &mut Graph,
    sources: &mut Sources<'_>,
) -> Result<(), Wrong> {
    for (index, radio) in spec.radio.iter().enumerate() {
        let key = format!("radio.{index}");
        let wrong = |problem| Wrong::new(format!("{key}.name"), problem);
        check_name(&radio.name).map_err(wrong)?;
        let is_taken = spec.radio[..index].iter().any(|other| other.name == radio.name)
            || spec.carrier.iter().any(|other| other.name == radio.name);
        if is_taken {
            return Err(wrong(taken("carrier", &radio.name)));
        }
        add(radio, &key, shape, graph, sources)?;
    }
    Ok(())
}

/// The node that is the access point. It is none of the stations, which are nodes too.
fn access_point(
    spec: &RadioSpec,
    stations: &[Named<'_>],
    graph: &Graph,
) -> Result<usize, SpecError> {
    let is_station = |node: &str| stations.iter().any(|station| station.name == node);
    let problem = match graph.node(&spec.ap) {
        Ok(node) if !is_station(&spec.ap) => return Ok(node),
        Ok(_) => SpecError::new(format!("'{}' is a station of this radio", spec.ap)),
        Err(_) => SpecError::new(format!("no node is named '{}'", spec.ap)),
    };
    let others = || graph.nodes().iter().map(String::as_str).filter(|node| !is_station(node));
    let problem = problem.near(&spec.ap, others());
    Err(match others().next() {
        Some(_) => problem.allow(others()),
        None => problem.allow(["the name of a [[scenario.node]]; there is none yet"]),
    })
}

fn add(
    spec: &RadioSpec,
    key: &str,
    shape: &mut Shape,
    graph: &mut Graph,
    sources: &mut Sources<'_>,
) -> Result<(), Wrong> {
    let named = named(spec, key)?;
    let ap = access_point(spec, &named, graph)
        .map_err(|problem| Wrong::new(format!("{key}.ap"), problem))?;
    if named.is_empty() {
        let problem = SpecError::new(format!("radio '{}' has 0 stations", spec.name));
        let problem = problem.allow([format!("1 to {MAX_STATIONS}: [[scenario.radio.station]]")]);
        return Err(Wrong::new(format!("{key}.station"), problem));
    }
    let mut stations = Vec::with_capacity(named.len());
    for Named { place, spec, .. } in &named {
        stations.push(station(spec, &format!("{key}.station.{place}"), sources)?);
    }
    let queue = queue(spec, key, sources)?;
    let (text, limits) = (queue_text(spec), limits(spec, key, &stations)?);
    let mut cell = Config::new(stations, limits, queue);
    cell.lost_block_ack = match spec.lost_block_ack.unwrap_or_default() {
        LostBlockAck::Repeat => medium::LostBlockAck::Repeat,
        LostBlockAck::Request => medium::LostBlockAck::Request,
    };
    cell.cf_end = spec.cf_end.is_some_and(|is_so| is_so.0);
    cell.collisions_are_detected = spec.eifs_after_collisions.is_some_and(|is_so| is_so.0);
    cell.is_qos = spec.access.unwrap_or_default() == Access::Edca;
    check_access(&cell).map_err(|problem| Wrong::new(format!("{key}.access"), problem))?;
    let usual = if cell.is_qos { Parameters::EDCA } else { [Parameters::DCF; 4] };
    let left_out = usual[AccessCategory::Be as usize];
    let parameters = |usual, written| parameters(usual, left_out, written);
    cell.station = parameters(usual, [&spec.bk, &spec.be, &spec.vi, &spec.vo]);
    cell.access_point =
        parameters(cell.station, [&spec.ap_bk, &spec.ap_be, &spec.ap_vi, &spec.ap_vo]);
    let rts_threshold = Text::value_or_default(&spec.rts_threshold).0;
    cell.rts_threshold =
        rts_threshold.map_or(u32::MAX, |octets| u32::try_from(octets.as_u64()).unwrap_or(u32::MAX));
    cell.protection = Text::value_or_default(&spec.protection).0;
    cell.ofdma = spec.ofdma.as_ref().and_then(|ofdma| ofdma.value.0.clone());
    cell.check_protection().map_err(|problem| Wrong::new(format!("{key}.protection"), problem))?;
    cell.retry_limit = spec.retries.map_or(cell.retry_limit, |retries| retries.0);
    cell.check_ofdma().map_err(|problem| Wrong::new(format!("{key}.ofdma"), problem))?;
    for (index, Named { place, spec: own, .. }) in (0..).zip(&named) {
        let station_key = format!("{key}.station.{place}");
        let rates = rates(own, index, spec.signal.as_ref(), &station_key, sources)?;
        if let Some(rates) = &rates {
            let wrong = |problem| Wrong::new(format!("{station_key}.{}", rates_key(own)), problem);
            rates.check(cell.stations[usize::from(index)].modes()).map_err(wrong)?;
        }
        cell.rates.extend(rates);
    }
    check_signal(spec).map_err(|problem| Wrong::new(format!("{key}.signal"), problem))?;
    let names = named.iter().map(|station| station.name.clone()).collect();
    let radio = RadioConfig::new(&spec.name, names, cell);
    let radio = radio.map_err(|problem| Wrong::new(format!("{key}.name"), problem))?;
    let first = shape.ports();
    for (index, Named { name, place, .. }) in (0..).zip(&named) {
        let wrong = |problem| Wrong::new(format!("{key}.station.{place}.name"), problem);
        let node = graph.node(name).map_err(wrong)?;
        let port = |port: Port| PortId((first + usize::from(port.index())) as u16);
        graph.add_edge(ap, node, port(Port::down(index)));
        graph.add_edge(node, ap, port(Port::up(index)));
    }
    let carrier = CarrierConfig::from(radio);
    for (index, shape_of) in carrier.ports().into_iter().enumerate() {
        let own = named[index / 2].spec;
        let (queue, mode) = match index % 2 {
            0 => (text.clone(), &own.mode),
            _ => {
                let queue = own.queue.as_ref().map_or(STATION_QUEUE, |queue| &queue.text);
                (queue.to_owned(), own.up_mode.as_ref().unwrap_or(&own.mode))
            }
        };
        let rate = mode.text.clone();
        shape.queues.push(PlannedQueue { name: shape_of.name.clone(), queue, rate });
        shape.carrier_ports.push(shape_of);
    }
    shape.carriers.push(carrier);
    Ok(())
}

fn station(spec: &StationSpec, key: &str, sources: &Sources<'_>) -> Result<Station, Wrong> {
    let error = spec.error.unwrap_or(0.0);
    if !(0.0..1.0).contains(&error) {
        let problem = SpecError::new(format!("{error} of the frames are lost"));
        let problem = problem.allow(["a share from 0 to below 1"]);
        return Err(Wrong::new(format!("{key}.error"), problem));
    }
    let up = spec.up_mode.as_ref().unwrap_or(&spec.mode).value;
    let fallback = spec.fallback.as_ref().map(|mode| mode.value);
    if let Some(slowest) = fallback {
        check_fallback(&spec.mode.value, &slowest)
            .map_err(|problem| Wrong::new(format!("{key}.fallback"), problem))?;
    }
    let written = QueueSpec::parse(STATION_QUEUE).expect("the default is a queue");
    let queue = spec.queue.as_ref().map_or(&written, |queue| &queue.value);
    let upper = discipline(queue, &format!("{key}.queue"), sources)?;
    let station = Station {
        down: Radio { error, fallback, ..Radio::new(spec.mode.value) },
        up: Radio { error, ..Radio::new(up) },
        queue: DriverConfig::of_station(&up, upper),
        weight: spec.airtime_weight.unwrap_or(Station::WEIGHT),
    };
    let wrong = |problem| Wrong::new(format!("{key}.airtime_weight"), problem);
    station.check_weight().map_err(wrong)?;
    Ok(station)
}

/// A driver falls back to what is slower, and aggregates to what has aggregates.
fn check_fallback(mode: &Mode, slowest: &Mode) -> Result<(), SpecError> {
    if slowest.format() != mode.format() {
        return Err(SpecError::new(format!("'{slowest}' is of another standard than '{mode}'"))
            .allow(["a slower mode of the same standard"]));
    }
    if slowest.rate() > mode.rate() {
        return Err(SpecError::new(format!("'{slowest}' is faster than '{mode}'"))
            .allow(["a slower mode of the same standard"]));
    }
    Ok(())
}

/// # Errors
/// A cell without QoS whose stations aggregate frames, for which BlockAcks are agreed by access category.
fn check_access(cell: &Config) -> Result<(), SpecError> {
    match cell.is_qos || !cell.limits.is_aggregating() {
        true => Ok(()),
        false => Err(SpecError::new("DCF and aggregates in one cell")
            .allow(["modes of 802.11a or 802.11b", "aggregate_frames = 1"])),
    }
}

/// # Errors
/// A signal that no station has, because none is at a distance.
fn check_signal(spec: &RadioSpec) -> Result<(), SpecError> {
    match &spec.signal {
        Some(_) if spec.station.iter().all(|station| station.distance.is_none()) => {
            Err(SpecError::new("a signal, and no station with a distance")
                .allow(["a station's distance, such as 10m"]))
        }
        _ => Ok(()),
    }
}

/// How the modes of a station change; `None` if the file says nothing about it.
fn rates(
    spec: &StationSpec,
    station: u16,
    signal: Option<&Text<SignalConfig>>,
    key: &str,
    sources: &mut Sources<'_>,
) -> Result<Option<Rates>, Wrong> {
    let StationSpec { distance, fading, rate_control, present, .. } = spec;
    let control = match rate_control {
        None => Control::Fixed,
        Some(control) => {
            let key = format!("{key}.rate_control");
            let complete = sources.traces.control(&control.value, &key, sources.document);
            complete.map_err(|problem| Wrong::new(key, problem))?
        }
    };
    let present = Text::value_or_default(present);
    let says_nothing =
        distance.is_none() && fading.is_none() && present.is_empty() && control == Control::Fixed;
    Ok((!says_nothing).then(|| Rates {
        station,
        signal: Text::value_or_default(&signal.cloned()),
        places: Text::value_or_default(distance),
        fading: fading.as_ref().map(|fading| fading.value.clone()),
        present,
        control,
    }))
}

/// The key to blame if a station's settings do not fit together.
fn rates_key(spec: &StationSpec) -> &'static str {
    match (&spec.rate_control, &spec.fading) {
        (Some(_), _) => "rate_control",
        (None, Some(_)) => "fading",
        (None, None) => "distance",
    }
}

fn discipline(queue: &QueueSpec, key: &str, sources: &Sources<'_>) -> Result<Discipline, Wrong> {
    // A station's rate is not known in advance, so no size can follow from it.
    let queue = queue.complete(sources.registry.queues(), None, None, Span::ZERO);
    let queue = queue.and_then(|queue| queue.check_on(None).map(|()| queue));
    queue.map_err(|problem| Wrong::new(key, problem))
}

fn queue(spec: &RadioSpec, key: &str, sources: &Sources<'_>) -> Result<QueueConfig, Wrong> {
    let queueing = spec.queueing.unwrap_or_default();
    let written = |text| QueueSpec::parse(text).expect("it is a queue");
    let upper = match (queueing, &spec.queue) {
        (Queueing::Qdisc, Some(queue)) => queue.value.clone(),
        (Queueing::Qdisc, None) => {
            let problem = SpecError::new("the discipline above the driver is not given");
            let problem = problem.allow(["queue, such as cake bandwidth 10mbit"]);
            return Err(Wrong::new(format!("{key}.queueing"), problem));
        }
        (_, Some(_)) => {
            let problem = SpecError::new("there is no place for a discipline of its own");
            let problem = problem.allow(["queueing = \"qdisc\""]);
            return Err(Wrong::new(format!("{key}.queue"), problem));
        }
        (Queueing::Fifo, None) => written("pfifo limit 1000"),
        (Queueing::FqCodel, None) => written("fq_codel"),
        (Queueing::FqMac, None) => return Ok(QueueConfig::in_mac(Schedule::RoundRobin)),
        (Queueing::Airtime, None) => return Ok(QueueConfig::in_mac(Schedule::PAPER)),
        (Queueing::AirtimeNoSparse, None) => {
            let schedule = match Schedule::PAPER {
                Schedule::Airtime(airtime) => {
                    Schedule::Airtime(Airtime { sparse_first: false, ..airtime })
                }
                Schedule::RoundRobin => Schedule::RoundRobin,
            };
            return Ok(QueueConfig::in_mac(schedule));
        }
        (Queueing::Mac80211, None) => return Ok(QueueConfig::mac80211()),
    };
    Ok(QueueConfig::below(discipline(&upper, &format!("{key}.queue"), sources)?))
}

/// As a report names it.
fn queue_text(spec: &RadioSpec) -> String {
    match (spec.queueing.unwrap_or_default(), &spec.queue) {
        (_, Some(queue)) => queue.text.clone(),
        (Queueing::Fifo, None) => "fifo".into(),
        (Queueing::FqCodel | Queueing::Qdisc, None) => "fq_codel".into(),
        (Queueing::FqMac, None) => "fq-mac".into(),
        (Queueing::Airtime, None) => "airtime".into(),
        (Queueing::AirtimeNoSparse, None) => "airtime-no-sparse".into(),
        (Queueing::Mac80211, None) => "mac80211".into(),
    }
}

/// The limits of aggregates that the standard of the modes allows, or lower ones from the file.
fn limits(spec: &RadioSpec, key: &str, stations: &[Station]) -> Result<Limits, Wrong> {
    let modes = || stations.iter().flat_map(|station| [station.down.mode, station.up.mode]);
    let is = |wanted: fn(Format) -> bool| modes().all(|mode: Mode| wanted(mode.format()));
    let mut limits = match spec.aggregate_frames {
        _ if is(|format| format <= Format::NonHt) => Limits::NONE,
        Some(1) => Limits::NONE,
        _ if is(|format| format <= Format::HtMixed) => Limits::HT,
        // In a mixed cell, stations of an older standard keep the limits of theirs.
        _ => Limits::HE,
    };
    let refuse = |name: &str, problem: String, allowed: String| {
        let problem = SpecError::new(problem).allow([allowed]);
        Err(Wrong::new(format!("{key}.{name}"), problem))
    };
    if let Some(frames) = spec.aggregate_frames {
        // Formats without aggregates ignore it, so that a factor may compare them with others.
        let most = limits.mpdus;
        if frames == 0 || (limits.is_aggregating() && frames > most) {
            let allowed = format!("1 to {most} with the modes of these stations");
            return refuse("aggregate_frames", format!("aggregates of {frames} frames"), allowed);
        }
        limits.mpdus = frames.min(most);
    }
    if let Some(time) = &spec.aggregate_time {
        let longest = limits.ppdu_time;
        if time.value.is_zero() || time.value > longest {
            let problem = format!("aggregates that last {}", time.value);
            return refuse("aggregate_time", problem, format!("more than 0s, at most {longest}"));
        }
        limits.ppdu_time = time.value;
    }
    limits.amsdu_octets = spec.amsdu.unwrap_or(0);
    let longest = limits.longest_amsdu(modes());
    if limits.amsdu_octets > longest {
        let problem = format!("an A-MSDU of {} octets", limits.amsdu_octets);
        return refuse(
            "amsdu",
            problem,
            format!("0 to {longest} with the modes of these stations"),
        );
    }
    Ok(limits)
}

/// Access parameters: the usual ones, or those that are written, in which what is left out is as in `left_out`.
fn parameters(
    usual: [Parameters; 4],
    left_out: Parameters,
    written: [&Option<Text<WrittenParameters>>; 4],
) -> [Parameters; 4] {
    let mut all = usual;
    for (parameters, written) in all.iter_mut().zip(written) {
        let own = |text: &Text<WrittenParameters>| text.value.complete(left_out);
        *parameters = written.as_ref().map_or(*parameters, own);
    }
    all
}
