use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

use sojourn_core::StreamAddress;
use sojourn_media::control::{Entry, FeedbackKind, Setup, Tape};

use crate::form::{Head, Line, VERSION};

/// What a recording says of its call.
#[derive(Clone, Debug)]
pub struct Call<'a> {
    pub flow: &'a str,
    /// The controller with its parameters, as a study has it.
    pub control: &'a str,
    pub feedback: FeedbackKind,
    pub address: StreamAddress,
}

/// Writes a recording. The first error stops it and is what [`Writer::finish`] returns.
pub struct Writer<W> {
    state: Mutex<(W, io::Result<()>)>,
    /// The first line, without what is known when the call begins.
    head: Head,
}

impl<W: Write + Send> Writer<W> {
    pub fn new(out: W, call: &Call<'_>) -> Self {
        let head = Head {
            version: VERSION,
            flow: call.flow.to_owned(),
            control: call.control.to_owned(),
            feedback: call.feedback.into(),
            start_ns: 0,
            start_rate_bps: None,
            min_rate_bps: 0,
            max_rate_bps: 0,
            mtu_bytes: 0,
            fps: 0.0,
            seed: call.address.seed,
            run: call.address.run,
        };
        Self { state: Mutex::new((out, Ok(()))), head }
    }

    /// Gives back where it wrote to, and the first error.
    pub fn finish(self) -> (W, io::Result<()>) {
        self.state.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn line(&self, line: &Line) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (out, written) = &mut *state;
        if written.is_ok() {
            *written = serde_json::to_vec(line).map_err(io::Error::from).and_then(|mut bytes| {
                bytes.push(b'\n');
                out.write_all(&bytes)
            });
        }
    }
}

impl<W: Write + Send> Tape for Writer<W> {
    fn begin(&self, setup: &Setup) {
        let Setup { now, start_rate, min_rate, max_rate, mtu, frames_per_second, .. } = setup;
        self.line(&Line::Call(Head {
            start_ns: now.as_nanos(),
            start_rate_bps: start_rate.map(sojourn_core::Rate::as_bps),
            min_rate_bps: min_rate.as_bps(),
            max_rate_bps: max_rate.as_bps(),
            mtu_bytes: *mtu,
            fps: *frames_per_second,
            ..self.head.clone()
        }));
    }

    fn keep(&self, entry: &Entry<'_>) {
        let at_ns = entry.at().as_nanos();
        self.line(&match entry {
            Entry::Sent { sent, outstanding } => Line::Sent {
                at_ns,
                number: sent.number,
                bytes: sent.size,
                purpose: sent.purpose.into(),
                probe: sent.probe,
                in_flight_bytes: outstanding.in_flight,
                queued_bytes: outstanding.queued,
                queue_delay_ns: outstanding.queue_delay.as_nanos(),
            },
            Entry::Frame { size, .. } => Line::Frame { at_ns, bytes: *size },
            Entry::Capture { .. } => Line::Capture { at_ns },
            Entry::Feedback(feedback) => Line::Feedback {
                at_ns,
                packets: feedback
                    .reports
                    .iter()
                    .map(|report| {
                        let arrived = report.arrived.map(sojourn_core::Time::as_nanos);
                        (report.packet.number, arrived, report.ecn.into())
                    })
                    .collect(),
                prior_in_flight_bytes: feedback.prior_in_flight,
                in_flight_bytes: feedback.in_flight,
                held_ns: feedback.held.map(sojourn_core::Span::as_nanos),
            },
            Entry::ReceiverReport(report) => Line::ReceiverReport {
                at_ns,
                fraction_lost: report.fraction_lost,
                cumulative_lost: report.cumulative_lost,
                expected: report.expected,
                jitter_ns: report.jitter.as_nanos(),
                rtt_ns: report.rtt.map(sojourn_core::Span::as_nanos),
            },
            Entry::Remb { rate, .. } => Line::Remb { at_ns, rate_bps: rate.as_bps() },
            Entry::Backlog { has_backlog, .. } => {
                Line::Backlog { at_ns, has_backlog: *has_backlog }
            }
            Entry::Wake { .. } => Line::Wake { at_ns },
            Entry::Decision { outputs, .. } => Line::Decision {
                at_ns,
                target_bps: outputs.target.as_bps(),
                pacing_bps: outputs.pacing.map(sojourn_core::Rate::as_bps),
                padding_bps: outputs.padding.as_bps(),
                window_bytes: outputs.window,
            },
        });
    }
}
