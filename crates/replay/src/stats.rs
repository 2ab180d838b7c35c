//! What browsers say of a call every second or so: a dump of `chrome://webrtc-internals`, or results of `getStats`.
//!
//! Neither has packets. They are laid out: those of an interval leave evenly and have its mean size; a packet's delay is what the
//! round trip exceeds the shortest one by, drawn as a line between samples; the lost ones are spread evenly.

use std::collections::BTreeMap;
use std::io::{BufRead, Read};

use serde_json::{Map, Value};
use sojourn_core::{Span, Time};

use crate::error::ReplayError;
use crate::form::{Format, Head, Line, Mark, Use, VERSION};
use crate::read::LONGEST;

/// The largest file, in bytes.
const LARGEST_FILE: u64 = 256 << 20;
/// Packets that are laid out at most.
const MOST_PACKETS: u64 = 20_000_000;
const FEEDBACK: Span = Span::from_micros(62_500);
/// UDP and IP headers and SRTP's tag, which the counters leave out.
const AROUND: f64 = 38.0;
const LARGEST: f64 = 65_535.0;
/// Counters are exact up to here.
const LARGEST_COUNT: f64 = (1_u64 << 53) as f64;
const LEAST_RATE: u64 = 5_000;

/// Whether a file that begins so is one of these, and not a recording, whose every line has a type.
pub(crate) fn begins(start: &[u8]) -> bool {
    let line = start.trim_ascii_start().split(|byte| *byte == b'\n').next().unwrap_or_default();
    let value: Option<Value> = serde_json::from_slice(line).ok();
    !value.is_some_and(|value| value.get("type").is_some_and(Value::is_string))
}

/// What was found, and of which connection where there are several.
struct Found {
    samples: Vec<Sample>,
    whose: String,
}

/// A moment at which the browser was asked. Counters are sums over all streams that are sent; what is no number there is NaN.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    at_ms: f64,
    bytes: Option<f64>,
    /// A stream says how many packets it sent, but not how many bytes of payload.
    lacks_bytes: bool,
    packets: Option<f64>,
    lost: Option<f64>,
    rtt: Option<f64>,
    available: Option<f64>,
    target: Option<f64>,
    fps: Option<f64>,
}

/// The call as lines of a recording.
pub(crate) fn read(input: impl BufRead) -> Result<(Head, impl Iterator<Item = Line>), ReplayError> {
    let mut text = Vec::new();
    let read = input.take(LARGEST_FILE + 1).read_to_end(&mut text);
    let read = read.map_err(|error| ReplayError::whole(error.to_string()))?;
    if read as u64 > LARGEST_FILE {
        let problem = format!("is too large (allowed: {LARGEST_FILE} bytes of getStats)");
        return Err(ReplayError::whole(problem));
    }
    let Found { samples, whose } = found(&text)?;
    lay_out(&samples, whose)
}

/// Results in one JSON text, or one on each line.
fn found(text: &[u8]) -> Result<Found, ReplayError> {
    let values: Vec<Value> = match serde_json::from_slice(text) {
        Ok(Value::Object(object)) => match object.get("PeerConnections") {
            Some(connections) => return of_internals(connections),
            None => vec![Value::Object(object)],
        },
        Ok(Value::Array(values)) => values,
        Ok(_) => return Err(not_stats()),
        Err(error) => {
            let lines =
                text.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
            let each: Result<Vec<Value>, _> = lines.map(serde_json::from_slice).collect();
            each.map_err(|_| ReplayError::at(error.line() as u64, format!("is no JSON: {error}")))?
        }
    };
    let mut samples = Vec::new();
    for value in &values {
        samples.extend(of_result(value));
    }
    match samples.is_empty() {
        true => Err(not_stats()),
        false => Ok(Found { samples, whose: "getStats".to_owned() }),
    }
}

/// A value as a number, which some programs write as text; NaN if it is something else.
fn number_of(value: &Value) -> Option<f64> {
    match value {
        Value::Null => None,
        Value::Number(number) => number.as_f64(),
        Value::String(text) => Some(text.trim().parse().unwrap_or(f64::NAN)),
        _ => Some(f64::NAN),
    }
}

fn not_stats() -> ReplayError {
    ReplayError::whole(
        "is neither a recording nor statistics of a call that sends (allowed: what `sojourn export --format call` \
         writes; a dump of chrome://webrtc-internals; results of getStats as a JSON list, or one on each line)",
    )
}

/// One result of `getStats`: an object or a list of reports.
fn of_result(value: &Value) -> Option<Sample> {
    let reports: Vec<&Map<String, Value>> = match value {
        Value::Object(object) => object.values().filter_map(Value::as_object).collect(),
        Value::Array(list) => list.iter().filter_map(Value::as_object).collect(),
        _ => return None,
    };
    let mut sample = Sample::default();
    let mut has_stream = false;
    for report in reports {
        let number = |name: &str| report.get(name).and_then(number_of);
        let kind = report.get("type").and_then(Value::as_str).unwrap_or_default();
        if kind == "outbound-rtp" {
            has_stream = true;
            // The stream's own time: that of a report from the other end is when that one came.
            sample.at_ms = number("timestamp").unwrap_or(f64::NAN);
        }
        sample.add(kind, &number, is_used(report));
    }
    has_stream.then_some(sample)
}

fn is_used(pair: &Map<String, Value>) -> bool {
    let is = |name: &str| pair.get(name).and_then(Value::as_bool).unwrap_or(false);
    is("nominated") || is("selected")
}

impl Sample {
    fn add(&mut self, kind: &str, number: &dyn Fn(&str) -> Option<f64>, is_used: bool) {
        let plus = |sum: &mut Option<f64>, more: Option<f64>| {
            if let Some(more) = more {
                *sum = Some(sum.unwrap_or(0.0) + more);
            }
        };
        match kind {
            "outbound-rtp" => {
                plus(&mut self.bytes, number("bytesSent"));
                self.lacks_bytes |=
                    number("bytesSent").is_none() && number("packetsSent").is_some();
                plus(&mut self.bytes, number("headerBytesSent"));
                plus(&mut self.packets, number("packetsSent"));
                plus(&mut self.target, number("targetBitrate"));
                self.fps = self.fps.or(number("framesPerSecond").filter(|fps| fps.is_finite()));
            }
            "remote-inbound-rtp" => {
                plus(&mut self.lost, number("packetsLost"));
                self.rtt = self.rtt.or(number("roundTripTime"));
            }
            "candidate-pair" if is_used || number("availableOutgoingBitrate").is_some() => {
                self.available = number("availableOutgoingBitrate").or(self.available);
                // Measured by STUN, which is answered at once.
                self.rtt = number("currentRoundTripTime").or(self.rtt);
            }
            _ => {}
        }
    }
}

/// The dump: a series of values for each statistic of each report, and one of their times.
fn of_internals(connections: &Value) -> Result<Found, ReplayError> {
    let connections = connections.as_object().ok_or_else(not_stats)?;
    // Of several connections, the one that sent most.
    let mut best: Option<(f64, &str, Vec<Sample>)> = None;
    let mut sending = 0;
    for (name, connection) in connections {
        let Some(stats) = connection.get("stats").and_then(Value::as_object) else { continue };
        let samples = of_connection(stats)?;
        let sent = samples.last().and_then(|sample| sample.bytes).unwrap_or(0.0);
        sending += u32::from(!samples.is_empty());
        if !samples.is_empty() && best.as_ref().is_none_or(|(most, ..)| sent > *most) {
            best = Some((sent, name, samples));
        }
    }
    let (_, name, samples) = best.ok_or_else(not_stats)?;
    let whose = match sending {
        1 => "getStats".to_owned(),
        _ => format!("connection {name}, which sent most of {sending},"),
    };
    Ok(Found { samples, whose })
}

fn of_connection(stats: &Map<String, Value>) -> Result<Vec<Sample>, ReplayError> {
    const WANTED: [&str; 3] = ["outbound-rtp", "remote-inbound-rtp", "candidate-pair"];
    let mut by_report: BTreeMap<&str, (&str, BTreeMap<&str, Vec<Value>>)> = BTreeMap::new();
    for (name, series) in stats {
        let kind = series.get("statsType").and_then(Value::as_str).unwrap_or_default();
        let Some((report, statistic)) = name.rsplit_once('-') else { continue };
        if !WANTED.contains(&kind) || statistic.starts_with('[') {
            continue;
        }
        let values = match series.get("values") {
            Some(Value::String(text)) => serde_json::from_str(text)
                .map_err(|error| ReplayError::whole(format!("values of {name}: {error}")))?,
            Some(Value::Array(values)) => values.clone(),
            _ => continue,
        };
        by_report
            .entry(report)
            .or_insert_with(|| (kind, BTreeMap::new()))
            .1
            .insert(statistic, values);
    }
    // The moments are those of the first stream that is sent.
    let stream = by_report
        .values()
        .find(|(kind, series)| *kind == "outbound-rtp" && series.contains_key("packetsSent"));
    let Some((_, series)) = stream else { return Ok(Vec::new()) };
    let Some(times) = series.get("timestamp") else {
        return Err(ReplayError::whole(
            "the dump has no times of its values (allowed: a dump of Chromium 117 or later)",
        ));
    };
    let mut samples = Vec::new();
    for at_ms in times.iter().filter_map(number_of) {
        let mut sample = Sample { at_ms, ..Sample::default() };
        for (kind, series) in by_report.values() {
            let times = series.get("timestamp").map_or(&[][..], Vec::as_slice);
            // The newest value of this moment or before. Series that began later end with the same moment.
            let upto = times
                .iter()
                .take_while(|time| number_of(time).is_some_and(|time| time <= at_ms + 0.5));
            let Some(newest) = upto.count().checked_sub(1) else { continue };
            let value = |name: &str| {
                let values = series.get(name)?;
                let at = (newest + values.len()).checked_sub(times.len())?;
                values.get(at)
            };
            let number = |name: &str| value(name).and_then(number_of);
            let is = |name: &str| value(name).and_then(Value::as_bool).unwrap_or(false);
            sample.add(kind, &number, is("nominated") || is("selected"));
        }
        samples.push(sample);
    }
    Ok(samples)
}

/// An interval between two samples in which packets left.
#[derive(Clone, Copy, Debug)]
struct Interval {
    /// Seconds since the first sample.
    from: f64,
    to: f64,
    packets: u64,
    lost: u64,
    size: u32,
    /// Round trips at both ends.
    rtt: [f64; 2],
    target: Option<f64>,
}

impl Interval {
    /// What was sent, in bit/s.
    fn rate(&self) -> f64 {
        self.packets as f64 * f64::from(self.size) * 8.0 / (self.to - self.from)
    }
}

impl Sample {
    /// Says which of its values can't be.
    fn check(&self) -> Result<(), String> {
        if !self.at_ms.is_finite() {
            return Err("has no time (allowed: timestamp in milliseconds, as a number)".to_owned());
        }
        let counters = [
            ("bytesSent or headerBytesSent", self.bytes, 0.0),
            ("packetsSent", self.packets, 0.0),
            // Packets that came twice are taken away (RFC 3550).
            ("packetsLost", self.lost, -LARGEST_COUNT),
        ];
        for (name, value, least) in counters {
            let Some(value) = value else { continue };
            if value.is_nan() {
                return Err(format!("{name} is no number"));
            }
            if !(least..=LARGEST_COUNT).contains(&value) {
                let allowed = format!("{} to 2^53", if least == 0.0 { "0" } else { "-2^53" });
                return Err(format!("{name} is {value:e} (allowed: {allowed})"));
            }
        }
        Ok(())
    }
}

fn lay_out(
    samples: &[Sample],
    whose: String,
) -> Result<(Head, impl Iterator<Item = Line> + use<>), ReplayError> {
    let wrong = |problem: String| ReplayError::whole(problem);
    for (count, sample) in (1..).zip(samples) {
        sample.check().map_err(|problem| wrong(format!("sample {count}: {problem}")))?;
    }
    let mut intervals = Vec::new();
    let mut packets = 0;
    let origin = samples.first().map_or(0.0, |sample| sample.at_ms);
    let mut rtt = samples.iter().find_map(|sample| sample.rtt);
    let mut shortest = f64::INFINITY;
    for (count, pair) in (2..).zip(samples.windows(2)) {
        let [one, two] = pair else { continue };
        let (from, to) = ((one.at_ms - origin) / 1000.0, (two.at_ms - origin) / 1000.0);
        if !(from >= 0.0 && to <= LONGEST.as_secs_f64()) || to < from {
            return Err(wrong(format!(
                "sample {count}: its time is {} ms (allowed: later than the sample before, within 7 days of the first)",
                two.at_ms
            )));
        }
        let before = rtt;
        rtt = two.rtt.filter(|rtt| (0.0..60.0).contains(rtt)).or(rtt);
        let (Some(before), Some(after)) = (before, rtt) else { continue };
        shortest = shortest.min(before).min(after);
        let more =
            |old: Option<f64>, new: Option<f64>| (new.unwrap_or(0.0) - old.unwrap_or(0.0)).max(0.0);
        let (sent, bytes) = (more(one.packets, two.packets), more(one.bytes, two.bytes));
        if sent < 1.0 || to == from {
            continue;
        }
        let lacks_bytes = one.lacks_bytes || two.lacks_bytes;
        if lacks_bytes || bytes / sent + AROUND > LARGEST {
            let said = match lacks_bytes {
                false => format!("{bytes} bytes in {sent} packets"),
                true => "packets without bytes".to_owned(),
            };
            let allowed =
                format!("bytesSent beside packetsSent, at most {LARGEST} for each packet");
            return Err(wrong(format!("sample {count}: {said} were sent (allowed: {allowed})")));
        }
        let lost = more(one.lost, two.lost).min(sent);
        packets = (packets as f64 + sent) as u64;
        if packets > MOST_PACKETS {
            return Err(wrong(format!(
                "sample {count}: more than {MOST_PACKETS} packets were sent (allowed: a shorter part of the call)"
            )));
        }
        intervals.push(Interval {
            from,
            to,
            packets: sent as u64,
            lost: lost as u64,
            size: (bytes / sent + AROUND) as u32,
            rtt: [before, after],
            target: two.available.or(two.target).filter(|target| (0.0..1e12).contains(target)),
        });
    }
    if rtt.is_none() {
        let problem = "has no round trips, so nothing says how long packets waited (allowed: candidate-pair with \
                       currentRoundTripTime, remote-inbound-rtp with roundTripTime)";
        return Err(wrong(problem.to_owned()));
    }
    let Some(first) = intervals.first() else {
        return Err(wrong("has fewer than two samples between which packets were sent".to_owned()));
    };
    let in_range = |rate: &f64| (0.0..1e12).contains(rate);
    // What the browser sent or might have sent. No statistic says what the application allows.
    let known = samples.iter().flat_map(|sample| [sample.available, sample.target]).flatten();
    let largest = intervals.iter().map(Interval::rate).chain(known.filter(in_range));
    let largest = (largest.fold(0.0, f64::max) as u64).max(LEAST_RATE);
    let start = first.target.unwrap_or(first.rate()) as u64;
    let head = Head {
        version: VERSION,
        flow: whose,
        control: "the browser's".to_owned(),
        feedback: Format::Twcc,
        start_ns: nanos(first.from),
        start_rate_bps: Some(start.clamp(LEAST_RATE, largest)),
        min_rate_bps: LEAST_RATE,
        max_rate_bps: largest,
        mtu_bytes: intervals.iter().map(|interval| interval.size).max().unwrap_or(1200).max(1200),
        fps: samples.iter().find_map(|sample| sample.fps).unwrap_or(30.0).clamp(1.0, 1000.0),
        seed: 0,
        run: 0,
    };
    let start = head.start_ns;
    Ok((head, Layout::new(intervals, shortest, start)))
}

fn nanos(seconds: f64) -> u64 {
    Time::from_nanos(Span::from_secs_f64(seconds.max(0.0)).as_nanos()).as_nanos()
}

/// The lines of a call whose packets are laid out.
struct Layout {
    intervals: std::vec::IntoIter<Interval>,
    current: Option<(Interval, u64)>,
    shortest: f64,
    number: u64,
    /// Packets that arrive, or should have: number, time of arrival, whether they do.
    under_way: std::collections::VecDeque<(u64, u64, bool)>,
    in_flight: u64,
    report_at: u64,
    queued: std::collections::VecDeque<Line>,
    sizes: std::collections::VecDeque<(u64, u32)>,
}

impl Layout {
    fn new(intervals: Vec<Interval>, shortest: f64, start: u64) -> Self {
        Self {
            intervals: intervals.into_iter(),
            current: None,
            shortest,
            number: 0,
            under_way: std::collections::VecDeque::new(),
            in_flight: 0,
            report_at: start + FEEDBACK.as_nanos(),
            queued: std::collections::VecDeque::new(),
            sizes: std::collections::VecDeque::new(),
        }
    }

    /// Reports that reach the sender by `now`.
    fn report(&mut self, now: u64) {
        while self.report_at <= now {
            let at_ns = self.report_at;
            self.report_at += FEEDBACK.as_nanos();
            // What arrived half a shortest round trip ago is known now.
            let back = nanos(self.shortest / 2.0);
            let prior = self.in_flight;
            let mut packets = Vec::new();
            while let Some((number, arrives, comes)) =
                self.under_way.pop_front_if(|(_, arrives, _)| *arrives + back <= at_ns)
            {
                packets.push((number, comes.then_some(arrives), Mark::NotEct));
                if let Some((_, size)) = self.sizes.pop_front() {
                    self.in_flight = self.in_flight.saturating_sub(u64::from(size));
                }
            }
            if !packets.is_empty() {
                self.queued.push_back(Line::Feedback {
                    at_ns,
                    packets,
                    prior_in_flight_bytes: prior,
                    in_flight_bytes: self.in_flight,
                    held_ns: None,
                });
            }
        }
    }
}

impl Iterator for Layout {
    type Item = Line;

    fn next(&mut self) -> Option<Line> {
        loop {
            if let Some(line) = self.queued.pop_front() {
                return Some(line);
            }
            let Some((interval, index)) = self.current else {
                let interval = self.intervals.next()?;
                self.report(nanos(interval.from));
                if let Some(target) = interval.target {
                    self.queued.push_back(Line::Decision {
                        at_ns: nanos(interval.from),
                        target_bps: target as u64,
                        pacing_bps: None,
                        padding_bps: 0,
                        window_bytes: None,
                    });
                }
                self.current = Some((interval, 0));
                continue;
            };
            if index == interval.packets {
                self.current = None;
                continue;
            }
            self.current = Some((interval, index + 1));
            let part = index as f64 / interval.packets as f64;
            let at = interval.from + (interval.to - interval.from) * part;
            let at_ns = nanos(at);
            self.report(at_ns);
            let rtt = interval.rtt[0] + (interval.rtt[1] - interval.rtt[0]) * part;
            // The way back takes half of the shortest round trip, the way there all the rest.
            let arrives = nanos(at + rtt - self.shortest / 2.0);
            // The k-th of n lost packets is the one at which k/n of all have been sent.
            let lost = |count: u64| count * interval.lost / interval.packets;
            let comes = lost(index + 1) == lost(index);
            let number = self.number;
            self.number += 1;
            let before = self.in_flight;
            self.in_flight += u64::from(interval.size);
            let newest = self.under_way.back().map_or(0, |(_, arrives, _)| *arrives);
            self.under_way.push_back((number, arrives.max(newest), comes));
            self.sizes.push_back((number, interval.size));
            self.queued.push_back(Line::Sent {
                at_ns,
                number,
                bytes: interval.size,
                purpose: Use::Video,
                probe: None,
                in_flight_bytes: before,
                queued_bytes: 0,
                queue_delay_ns: 0,
            });
        }
    }
}
