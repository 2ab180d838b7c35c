//! Reads lines and checks what each says, so that a controller meets nothing that could not have happened.

use std::collections::VecDeque;
use std::io::{BufRead, Read};

use sojourn_core::{Rate, Span, StreamAddress, Time};
use sojourn_media::control::{Entry, Feedback, Outstanding, ReceiverReport, Report, Sent, Setup};

use crate::error::ReplayError;
use crate::form::{Head, Line, VERSION, VERSIONS};

/// The longest line, in bytes.
const LONGEST_LINE: u64 = 1 << 20;
/// The longest call.
pub(crate) const LONGEST: Span = Span::from_secs(7 * 24 * 3600);
const FASTEST: u64 = 1_000_000_000_000;
const LARGEST: u32 = 65_535;
const MOST_BYTES: u64 = 1 << 50;
/// Packets that can still be reported on.
const KEPT: usize = 100_000;

/// The next line without its end; `false` at the end of the file.
pub(crate) fn next_line(
    input: &mut impl BufRead,
    number: &mut u64,
    line: &mut Vec<u8>,
) -> Result<bool, ReplayError> {
    loop {
        line.clear();
        *number += 1;
        let read = input.take(LONGEST_LINE + 1).read_until(b'\n', line);
        let read = read.map_err(|error| ReplayError::at(*number, error.to_string()))?;
        if read as u64 > LONGEST_LINE {
            let problem = format!("is too long (allowed: {LONGEST_LINE} bytes)");
            return Err(ReplayError::at(*number, problem));
        }
        if read == 0 {
            return Ok(false);
        }
        if !line.trim_ascii().is_empty() {
            return Ok(true);
        }
    }
}

/// What a line of JSON says.
pub(crate) fn parse(number: u64, line: &[u8]) -> Result<Line, ReplayError> {
    serde_json::from_slice(line).map_err(|error| {
        // It counts lines within the text it is given, of which there is one.
        let problem = error.to_string();
        let problem = problem.split(" at line 1 ").next().unwrap_or(&problem);
        ReplayError::at(number, format!("is no line of a recording: {problem}"))
    })
}

/// The first line.
pub(crate) fn head(number: u64, line: Line) -> Result<Head, ReplayError> {
    let wrong = |problem: String| Err(ReplayError::at(number, problem));
    let Line::Call(head) = line else {
        return wrong("the recording does not begin with a line of type call".to_owned());
    };
    if !VERSIONS.contains(&head.version) {
        let first = VERSIONS.start();
        return wrong(format!("version {} (allowed: {first} to {VERSION})", head.version));
    }
    if head.min_rate_bps == 0 || head.min_rate_bps > head.max_rate_bps {
        return wrong(format!(
            "min_rate_bps is {} (allowed: 1 to max_rate_bps, {})",
            head.min_rate_bps, head.max_rate_bps
        ));
    }
    let rates = [Some(head.max_rate_bps), head.start_rate_bps];
    if let Some(rate) = rates.into_iter().flatten().find(|rate| *rate == 0 || *rate > FASTEST) {
        return wrong(format!("a rate of {rate} bit/s (allowed: 1 to {FASTEST})"));
    }
    if !(100..=LARGEST).contains(&head.mtu_bytes) {
        return wrong(format!("mtu_bytes is {} (allowed: 100 to {LARGEST})", head.mtu_bytes));
    }
    if !(0.1..=1000.0).contains(&head.fps) {
        return wrong(format!("fps is {} (allowed: 0.1 to 1000)", head.fps));
    }
    if head.start_ns > LONGEST.as_nanos() {
        return wrong(format!("start_ns is {} (allowed: up to 7 days)", head.start_ns));
    }
    Ok(head)
}

pub(crate) fn setup(head: &Head) -> Setup {
    let address = StreamAddress { seed: head.seed, run: head.run };
    Setup {
        now: Time::from_nanos(head.start_ns),
        start_rate: head.start_rate_bps.map(Rate::from_bps),
        min_rate: Rate::from_bps(head.min_rate_bps),
        max_rate: Rate::from_bps(head.max_rate_bps),
        mtu: head.mtu_bytes,
        frames_per_second: head.fps,
        random: address.stream_named(&head.flow, sojourn_core::Purpose::Controller),
    }
}

/// What was decided when the call was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    pub at: Time,
    pub target: Rate,
    pub pacing: Option<Rate>,
    pub padding: Rate,
    pub window: Option<u64>,
}

pub(crate) enum Event<'a> {
    Told(Entry<'a>),
    Decided(Decision),
}

/// Checks lines one after the other.
#[derive(Debug)]
pub(crate) struct Checker {
    now: Time,
    end: Time,
    next_number: u64,
    /// The last packets, in the order of their numbers.
    sent: VecDeque<Sent>,
    reports: Vec<Report>,
}

impl Checker {
    pub(crate) fn new(head: &Head) -> Self {
        let now = Time::from_nanos(head.start_ns);
        Self { now, end: now + LONGEST, next_number: 0, sent: VecDeque::new(), reports: Vec::new() }
    }

    /// The event that a line stands for, in the order of time.
    pub(crate) fn check(&mut self, line_number: u64, line: Line) -> Result<Event<'_>, ReplayError> {
        let wrong = |problem: String| Err(ReplayError::at(line_number, problem));
        let at_ns = match &line {
            Line::Call(_) => return wrong("is a second line of type call".to_owned()),
            Line::Sent { at_ns, .. }
            | Line::Frame { at_ns, .. }
            | Line::Capture { at_ns }
            | Line::Feedback { at_ns, .. }
            | Line::ReceiverReport { at_ns, .. }
            | Line::Remb { at_ns, .. }
            | Line::Backlog { at_ns, .. }
            | Line::Wake { at_ns }
            | Line::Decision { at_ns, .. } => *at_ns,
        };
        let now = Time::from_nanos(at_ns);
        if now < self.now || now > self.end {
            return wrong(format!(
                "at_ns is {at_ns} (allowed: {}, the time of the line before, and later, up to 7 days)",
                self.now.as_nanos()
            ));
        }
        self.now = now;
        let amounts = match &line {
            Line::Sent { in_flight_bytes, queued_bytes, .. } => [*in_flight_bytes, *queued_bytes],
            Line::Feedback { prior_in_flight_bytes, in_flight_bytes, .. } => {
                [*prior_in_flight_bytes, *in_flight_bytes]
            }
            _ => [0, 0],
        };
        if let Some(bytes) = amounts.into_iter().find(|bytes| *bytes > MOST_BYTES) {
            return wrong(format!("{bytes} bytes (allowed: up to {MOST_BYTES})"));
        }
        Ok(Event::Told(match line {
            Line::Call(_) => return wrong("is a second line of type call".to_owned()),
            Line::Sent {
                number,
                bytes,
                purpose,
                probe,
                in_flight_bytes,
                queued_bytes,
                queue_delay_ns,
                ..
            } => {
                if number < self.next_number || number >= 1 << 62 {
                    let least = self.next_number;
                    return wrong(format!("number is {number} (allowed: {least} or more)"));
                }
                if !(1..=LARGEST).contains(&bytes) {
                    return wrong(format!("bytes is {bytes} (allowed: 1 to {LARGEST})"));
                }
                self.next_number = number + 1;
                let sent = Sent { number, at: now, size: bytes, purpose: purpose.into(), probe };
                if self.sent.len() == KEPT {
                    self.sent.pop_front();
                }
                self.sent.push_back(sent);
                let outstanding = Outstanding {
                    in_flight: in_flight_bytes,
                    queued: queued_bytes,
                    queue_delay: span(line_number, queue_delay_ns)?,
                };
                Entry::Sent { sent, outstanding }
            }
            Line::Frame { bytes, .. } => Entry::Frame { now, size: bytes },
            Line::Capture { .. } => Entry::Capture { now },
            Line::Feedback { packets, prior_in_flight_bytes, in_flight_bytes, held_ns, .. } => {
                self.reports.clear();
                for (number, arrived, mark) in packets {
                    let at = self.sent.binary_search_by_key(&number, |sent| sent.number);
                    let Some(packet) = at.ok().and_then(|at| self.sent.get(at)) else {
                        return wrong(format!(
                            "packet {number} is reported on (allowed: one of the last {KEPT} that were sent)"
                        ));
                    };
                    if self.reports.last().is_some_and(|last| last.packet.number >= number) {
                        return wrong(format!(
                            "packet {number} is out of order (allowed: ascending numbers, each once)"
                        ));
                    }
                    if arrived.is_some_and(|arrived| arrived > 1 << 62) {
                        return wrong(format!("packet {number} arrived after all time"));
                    }
                    let arrived = arrived.map(Time::from_nanos);
                    self.reports.push(Report { packet: *packet, arrived, ecn: mark.into() });
                }
                Entry::Feedback(Feedback {
                    now,
                    reports: &self.reports,
                    prior_in_flight: prior_in_flight_bytes,
                    in_flight: in_flight_bytes,
                    held: held_ns.map(|held| span(line_number, held)).transpose()?,
                })
            }
            Line::ReceiverReport {
                fraction_lost,
                cumulative_lost,
                expected,
                jitter_ns,
                rtt_ns,
                ..
            } => {
                if !(0.0..=1.0).contains(&fraction_lost) {
                    return wrong(format!("fraction_lost is {fraction_lost} (allowed: 0 to 1)"));
                }
                Entry::ReceiverReport(ReceiverReport {
                    now,
                    fraction_lost,
                    cumulative_lost,
                    expected,
                    jitter: span(line_number, jitter_ns)?,
                    rtt: rtt_ns.map(|rtt| span(line_number, rtt)).transpose()?,
                })
            }
            Line::Remb { rate_bps, .. } => Entry::Remb { now, rate: rate(line_number, rate_bps)? },
            Line::Backlog { has_backlog, .. } => Entry::Backlog { now, has_backlog },
            Line::Wake { .. } => Entry::Wake { now },
            Line::Decision { target_bps, pacing_bps, padding_bps, window_bytes, .. } => {
                return Ok(Event::Decided(Decision {
                    at: now,
                    target: rate(line_number, target_bps)?,
                    pacing: pacing_bps.map(Rate::from_bps),
                    padding: Rate::from_bps(padding_bps),
                    window: window_bytes,
                }));
            }
        }))
    }
}

fn span(line: u64, ns: u64) -> Result<Span, ReplayError> {
    match ns <= LONGEST.as_nanos() {
        true => Ok(Span::from_nanos(ns)),
        false => Err(ReplayError::at(line, format!("a time of {ns} ns (allowed: up to 7 days)"))),
    }
}

fn rate(line: u64, bps: u64) -> Result<Rate, ReplayError> {
    match bps <= FASTEST {
        true => Ok(Rate::from_bps(bps)),
        false => {
            Err(ReplayError::at(line, format!("a rate of {bps} bit/s (allowed: up to {FASTEST})")))
        }
    }
}
