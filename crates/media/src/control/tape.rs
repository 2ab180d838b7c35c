//! What a controller is told and what it decides, kept for a replay, and played to another.
//!
//! A replay is an open loop: packets leave as they once left, whatever the controller decides. So it says what a
//! controller would have decided about a call, not how the call would have gone.

use alloc::boxed::Box;
use alloc::sync::Arc;

use sojourn_core::{Rate, Time};

use super::{
    Arrival, Config, Controller, Estimates, Estimator, Feedback, FeedbackKind, Outputs,
    Outstanding, Probe, ReceiverReport, Sent, Setup,
};
use crate::rtp::{IP_UDP, RTP, SRTP, abs_send_time, video_ticks};

/// One call of a controller's methods, or what came of it.
#[derive(Clone, Copy, Debug)]
pub enum Entry<'a> {
    Sent {
        sent: Sent,
        outstanding: Outstanding,
    },
    /// A frame of so many bytes went to the pacer.
    Frame {
        now: Time,
        size: u32,
    },
    /// A picture is captured: the encoder asks what is held back.
    Capture {
        now: Time,
    },
    Feedback(Feedback<'a>),
    ReceiverReport(ReceiverReport),
    Remb {
        now: Time,
        rate: Rate,
    },
    Backlog {
        now: Time,
        has_backlog: bool,
    },
    Wake {
        now: Time,
    },
    /// What the controller wants from now on; only if it is something else than before.
    Decision {
        now: Time,
        outputs: Outputs,
        estimates: Estimates,
    },
}

impl Entry<'_> {
    /// When it happened.
    pub fn at(&self) -> Time {
        match self {
            Self::Sent { sent, .. } => sent.at,
            Self::Feedback(feedback) => feedback.now,
            Self::ReceiverReport(report) => report.now,
            Self::Frame { now, .. }
            | Self::Capture { now }
            | Self::Remb { now, .. }
            | Self::Backlog { now, .. }
            | Self::Wake { now }
            | Self::Decision { now, .. } => *now,
        }
    }
}

/// Keeps what happens to a controller. Entries come in the order in which they happen.
pub trait Tape: Send + Sync {
    /// The controller is made.
    fn begin(&self, setup: &Setup);

    fn keep(&self, entry: &Entry<'_>);
}

/// A controller with a tape.
pub(crate) struct Taped {
    inner: Box<dyn Controller>,
    tape: Arc<dyn Tape>,
    /// Nothing is kept from here on, because nobody sends.
    stop: Time,
    decided: Outputs,
}

impl Taped {
    pub(crate) fn new(
        inner: Box<dyn Controller>,
        tape: Arc<dyn Tape>,
        start: Time,
        stop: Time,
    ) -> Self {
        let decided = inner.outputs();
        let estimates = inner.estimates();
        tape.keep(&Entry::Decision { now: start, outputs: decided, estimates });
        Self { inner, tape, stop, decided }
    }

    fn told(&mut self, entry: &Entry<'_>) {
        let now = entry.at();
        if now >= self.stop {
            return;
        }
        self.tape.keep(entry);
        let outputs = self.inner.outputs();
        if outputs != self.decided {
            self.decided = outputs;
            let estimates = self.inner.estimates();
            self.tape.keep(&Entry::Decision { now, outputs, estimates });
        }
    }
}

impl Controller for Taped {
    fn on_sent(&mut self, sent: &Sent, outstanding: &Outstanding) {
        self.inner.on_sent(sent, outstanding);
        self.told(&Entry::Sent { sent: *sent, outstanding: *outstanding });
    }

    fn on_frame(&mut self, now: Time, size: u32) {
        self.inner.on_frame(now, size);
        self.told(&Entry::Frame { now, size });
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        self.inner.on_feedback(feedback);
        self.told(&Entry::Feedback(*feedback));
    }

    fn on_receiver_report(&mut self, report: &ReceiverReport) {
        self.inner.on_receiver_report(report);
        self.told(&Entry::ReceiverReport(*report));
    }

    fn on_remb(&mut self, now: Time, rate: Rate) {
        self.inner.on_remb(now, rate);
        self.told(&Entry::Remb { now, rate });
    }

    fn on_backlog(&mut self, now: Time, has_backlog: bool) {
        self.inner.on_backlog(now, has_backlog);
        self.told(&Entry::Backlog { now, has_backlog });
    }

    fn on_wake(&mut self, now: Time) {
        self.inner.on_wake(now);
        self.told(&Entry::Wake { now });
    }

    fn next_wake(&self) -> Time {
        self.inner.next_wake()
    }

    fn poll_probe(&mut self) -> Option<Probe> {
        self.inner.poll_probe()
    }

    fn outputs(&self) -> Outputs {
        self.inner.outputs()
    }

    fn held_back(&mut self, now: Time) -> f64 {
        let share = self.inner.held_back(now);
        self.told(&Entry::Capture { now });
        share
    }

    fn estimates(&self) -> Estimates {
        self.inner.estimates()
    }
}

/// Plays entries to a controller, and wakes it when it wants to be woken.
pub struct Player {
    control: Box<dyn Controller>,
    /// The receiver's part, for a recording that has the arrival of each packet and no estimates of the receiver.
    estimator: Option<Box<dyn Estimator>>,
    /// What the receiver's part said of the feedback that is being played.
    remb: Option<Rate>,
    decided: Outputs,
}

impl Player {
    /// `feedback` is what the recording has.
    pub fn new(config: &Config, setup: Setup, feedback: FeedbackKind) -> Self {
        let estimator = match feedback.is_per_packet() {
            true => config.estimator(&setup),
            false => None,
        };
        let mut control = config.build(setup);
        poll_probes(&mut *control);
        let decided = control.outputs();
        Self { control, estimator, remb: None, decided }
    }

    /// What it decides before anything is played.
    pub fn outputs(&self) -> Outputs {
        self.decided
    }

    /// Plays what happened to a controller; of what one decided nothing is played. Every decision that follows is told to
    /// `decide`.
    pub fn play(&mut self, entry: &Entry<'_>, decide: &mut dyn FnMut(Time, Outputs, Estimates)) {
        if matches!(entry, Entry::Decision { .. }) {
            return;
        }
        let now = entry.at();
        // A recorded wake comes in its own place among the entries of its moment.
        while self.control.next_wake() < now {
            let before = self.control.next_wake();
            self.control.on_wake(before);
            self.settle(before, decide);
            if self.control.next_wake() <= before {
                break;
            }
        }
        match entry {
            Entry::Sent { sent, outstanding } => self.control.on_sent(sent, outstanding),
            Entry::Frame { now, size } => self.control.on_frame(*now, *size),
            Entry::Capture { now } => {
                self.control.held_back(*now);
            }
            Entry::Feedback(feedback) => {
                self.estimate(feedback);
                self.control.on_feedback(feedback);
                if let Some(rate) = self.remb.take() {
                    self.control.on_remb(now, rate);
                }
            }
            Entry::ReceiverReport(report) => self.control.on_receiver_report(report),
            Entry::Remb { now, rate } => self.control.on_remb(*now, *rate),
            Entry::Backlog { now, has_backlog } => self.control.on_backlog(*now, *has_backlog),
            Entry::Wake { now } => {
                if self.control.next_wake() <= *now {
                    self.control.on_wake(*now);
                }
            }
            Entry::Decision { .. } => {}
        }
        self.settle(now, decide);
    }

    /// The receiver's part sees packets in the order of their arrival.
    fn estimate(&mut self, feedback: &Feedback<'_>) {
        let Some(estimator) = &mut self.estimator else { return };
        let mut arrived: alloc::vec::Vec<_> =
            feedback.reports.iter().filter_map(|report| Some((report.arrived?, report))).collect();
        arrived.sort_by_key(|(at, report)| (*at, report.packet.number));
        for (now, report) in arrived {
            while estimator.next_wake() <= now {
                let wake = estimator.next_wake();
                self.remb = estimator.on_wake(wake).or(self.remb);
                if estimator.next_wake() <= wake {
                    break;
                }
            }
            let sent = report.packet.at;
            // A receiver counts neither IP nor UDP.
            let size = report.packet.size.saturating_sub(IP_UDP);
            let estimate = estimator.on_arrival(&Arrival {
                now,
                abs_send_time: abs_send_time(sent),
                size,
                payload: size.saturating_sub(RTP + SRTP),
                ecn: report.ecn,
                rtp_timestamp: video_ticks(sent),
                stream: u8::from(report.packet.purpose == super::Purpose::Audio),
            });
            self.remb = estimate.or(self.remb);
        }
    }

    fn settle(&mut self, now: Time, decide: &mut dyn FnMut(Time, Outputs, Estimates)) {
        poll_probes(&mut *self.control);
        let outputs = self.control.outputs();
        if outputs != self.decided {
            self.decided = outputs;
            decide(now, outputs, self.control.estimates());
        }
    }
}

/// Probes are taken as a sender takes them; what is sent was decided when the call was recorded.
fn poll_probes(control: &mut dyn Controller) {
    while control.poll_probe().is_some() {}
}
