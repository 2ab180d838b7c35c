//! A congestion control that is written in Python.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use sojourn_cca::{self as cca, Algorithm, Controller, EcnRequest, Outputs, Quantum, Setup};
use sojourn_core::{Span, Time};

use super::asked;
use super::class::{Class, named_python};

named_python!(Own, "Controller", "A congestion control that is a class in Python");

impl Algorithm for Own {
    type Controller = State;

    fn build(&self, mut setup: Setup) -> State {
        let start = Start {
            mss: setup.mss,
            initial_cwnd: setup.initial_cwnd,
            now_s: setup.now.as_secs_f64(),
            handshake_rtt_s: setup.handshake_rtt.map(Span::as_secs_f64),
            random: setup.random.next_u64(),
        };
        let class = self.0.clone();
        let (object, says) = asked(&class, |py| {
            let object = class.make(py, start)?;
            let says = answers(py, &object)?;
            Ok((object, says))
        });
        let calls = ["on_sent", "on_lost", "on_recovered", "on_undo", "on_restart"];
        let [on_sent, on_lost, on_recovered, on_undo, on_restart] =
            calls.map(|name| class.has(name));
        let has = Has { on_sent, on_lost, on_recovered, on_undo, on_restart };
        State { mss: setup.mss, class, object, says, has }
    }

    fn ecn_request(&self) -> EcnRequest {
        match self.0.ecn() {
            "mark by mark" => EcnRequest::MarkByMark,
            "l4s" => EcnRequest::L4s,
            _ => EcnRequest::Host,
        }
    }

    fn phases(&self) -> Vec<&'static str> {
        self.0.phases().iter().filter_map(|phase| lasting(phase)).collect()
    }
}

/// What a connection knows when it begins.
#[pyclass(frozen, get_all, module = "sojourn")]
pub(crate) struct Start {
    /// Payload bytes of a full segment.
    mss: u32,
    /// Segments.
    initial_cwnd: u32,
    now_s: f64,
    handshake_rtt_s: Option<f64>,
    /// A number to begin a random generator with.
    random: u64,
}

/// An acknowledgement, after the transport's own bookkeeping of it. Counts are segments.
#[pyclass(frozen, get_all, module = "sojourn")]
pub(crate) struct Ack {
    /// Since the run began.
    now_s: f64,
    /// Newly delivered, cumulatively or selectively.
    delivered: u32,
    /// Newly deemed lost.
    lost: u32,
    /// Newly reported as marked; with classic ECN all of `delivered` while the receiver echoes a mark.
    marked: u32,
    /// It carries ECN-Echo; with accurate ECN: `marked` is not 0.
    ece: bool,
    /// The round-trip time of the newest segment that was not sent twice; None if it acknowledges none such.
    rtt_s: Option<f64>,
    /// The smoothed round-trip time (RFC 6298); None before the first.
    srtt_s: Option<f64>,
    /// The least round-trip time of the last 5 minutes; None before the first.
    min_rtt_s: Option<f64>,
    /// In flight before it.
    prior_in_flight: u32,
    /// In flight after it.
    in_flight: u32,
    /// The number of the first segment that is not acknowledged cumulatively; a round trip ends when it passes what `snd_nxt` was.
    snd_una: u32,
    /// The number of the segment that is to be sent next for the first time.
    snd_nxt: u32,
    /// Delivered since the connection began.
    total_delivered: u64,
    /// Deemed lost since the connection began.
    total_lost: u64,
    /// The window was the limit in the round before; in slow start it is enough that half of it was used. A window that was not the limit says nothing of the path.
    is_cwnd_limited: bool,
    /// All of the window was used at some time in the round before: as `is_cwnd_limited`, but in slow start half of it is not enough.
    was_cwnd_full: bool,
    /// The application has not given enough to fill the window.
    is_app_limited: bool,
    /// The transport lowers the window at present and does not want it to grow.
    is_reducing: bool,
    /// It acknowledges cumulatively at least one segment that was not before, so `snd_una` is larger than it was.
    moves_una: bool,
    /// `open`, `disorder`, `cwr`, `recovery` or `loss`, as in Linux.
    state: &'static str,
    /// How fast segments were delivered lately; None if it delivers none.
    rate: Option<Py<Rate>>,
}

/// A delivery rate sample.
#[pyclass(frozen, get_all, module = "sojourn")]
pub(crate) struct Rate {
    /// `delivered` over `interval_s`, as payload in Mbit/s.
    mbps: f64,
    /// Segments delivered in `interval_s`.
    delivered: u32,
    /// Segments deemed lost from when the newest acknowledged segment left until it was acknowledged.
    lost: u32,
    /// The longer of the times in which they were sent and acknowledged.
    interval_s: f64,
    /// `Ack.total_delivered` when the newest acknowledged segment left.
    prior_delivered: u64,
    /// The application was the limit when the newest acknowledged segment left, so the path may carry more.
    is_app_limited: bool,
    /// The interval is shorter than the least round-trip time, so the rate means nothing.
    is_too_short: bool,
}

/// A reduction begins.
#[pyclass(frozen, get_all, module = "sojourn")]
pub(crate) struct Congestion {
    /// Since the run began.
    now_s: f64,
    /// `loss`, `ecn` or `timeout`.
    kind: &'static str,
    /// Segments in flight.
    in_flight: u32,
    /// The state before, as in `Ack`.
    state: &'static str,
}

/// A segment is deemed lost.
#[pyclass(frozen, get_all, module = "sojourn")]
pub(crate) struct Lost {
    /// Since the run began.
    now_s: f64,
    /// Segments that the connection had delivered when it left.
    sent_delivered: u64,
    /// Segments in flight when it left, with it.
    sent_in_flight: u32,
    /// Deemed lost since the connection began, with it.
    total_lost: u64,
    /// Delivered since the connection began.
    total_delivered: u64,
    /// It was sent before, and is lost again.
    is_retransmission: bool,
}

/// One connection's.
pub(crate) struct State {
    mss: u32,
    class: Class,
    object: Py<PyAny>,
    says: Outputs,
    has: Has,
}

/// Which methods the class has of those that it may leave out.
struct Has {
    on_sent: bool,
    on_lost: bool,
    on_recovered: bool,
    on_undo: bool,
    on_restart: bool,
}

impl State {
    fn call<A>(&mut self, method: &str, argument: impl FnOnce(Python<'_>) -> PyResult<A>)
    where
        A: for<'py> IntoPyObject<'py>,
    {
        let object = &self.object;
        self.says = asked(&self.class, |py| {
            let argument = argument(py)?;
            object.call_method1(py, method, (argument,))?;
            answers(py, object)
        });
    }
}

impl Controller for State {
    fn on_sent(&mut self, sent: &cca::Sent) {
        if self.has.on_sent {
            self.call("on_sent", |_| Ok(sent.now.as_secs_f64()));
        }
    }

    fn on_ack(&mut self, ack: &cca::Ack) {
        let mss = self.mss;
        self.call("on_ack", |py| {
            let rate = ack.rate.map(|sample| Py::new(py, rate(&sample, mss))).transpose()?;
            Ok(Ack {
                now_s: ack.now.as_secs_f64(),
                delivered: ack.delivered,
                lost: ack.lost,
                marked: ack.ce,
                ece: ack.ece,
                rtt_s: ack.rtt.map(Span::as_secs_f64),
                srtt_s: ack.srtt.map(Span::as_secs_f64),
                min_rtt_s: ack.min_rtt.map(Span::as_secs_f64),
                prior_in_flight: ack.prior_in_flight,
                in_flight: ack.in_flight,
                snd_una: ack.snd_una,
                snd_nxt: ack.snd_nxt,
                total_delivered: ack.total_delivered,
                total_lost: ack.total_lost,
                is_cwnd_limited: ack.is_cwnd_limited,
                was_cwnd_full: ack.was_cwnd_full,
                is_app_limited: ack.app_limited_until > 0,
                is_reducing: ack.state.is_reducing(),
                moves_una: ack.cumulative > 0,
                state: state_name(ack.state),
                rate,
            })
        });
    }

    fn on_lost(&mut self, lost: &cca::Lost) {
        if self.has.on_lost {
            let lost = Lost {
                now_s: lost.now.as_secs_f64(),
                sent_delivered: lost.memo.delivered,
                sent_in_flight: lost.memo.in_flight,
                total_lost: lost.total_lost,
                total_delivered: lost.total_delivered,
                is_retransmission: lost.retransmission,
            };
            self.call("on_lost", |_| Ok(lost));
        }
    }

    fn on_congestion(&mut self, congestion: &cca::Congestion) {
        let kind = match congestion.kind {
            cca::CongestionKind::Loss => "loss",
            cca::CongestionKind::Ecn => "ecn",
            cca::CongestionKind::Timeout => "timeout",
        };
        let told = Congestion {
            now_s: congestion.now.as_secs_f64(),
            kind,
            in_flight: congestion.in_flight,
            state: state_name(congestion.prior_state),
        };
        self.call("on_congestion", |_| Ok(told));
    }

    fn on_recovered(&mut self, now: Time) {
        if self.has.on_recovered {
            self.call("on_recovered", |_| Ok(now.as_secs_f64()));
        }
    }

    fn on_undo(&mut self, undo: &cca::Undo) {
        if self.has.on_undo {
            self.call("on_undo", |_| Ok(undo.now.as_secs_f64()));
        }
    }

    fn on_restart(&mut self, restart: &cca::Restart) {
        if self.has.on_restart {
            self.call("on_restart", |_| Ok(restart.idle.as_secs_f64()));
        }
    }

    fn cwnd(&self) -> u32 {
        self.says.cwnd
    }

    fn ssthresh(&self) -> Option<u32> {
        self.says.ssthresh
    }

    fn pacing_rate(&self) -> Option<sojourn_core::Rate> {
        self.says.pacing_rate
    }

    fn send_quantum(&self) -> Quantum {
        self.says.send_quantum
    }

    fn uses_prr(&self) -> bool {
        self.class.uses_prr()
    }

    fn phase(&self) -> &'static str {
        self.says.phase
    }
}

fn rate(sample: &cca::RateSample, mss: u32) -> Rate {
    let interval_s = sample.interval.as_secs_f64();
    Rate {
        mbps: f64::from(sample.delivered) * f64::from(mss) * 8e-6 / interval_s,
        delivered: sample.delivered,
        lost: sample.lost,
        interval_s,
        prior_delivered: sample.prior.delivered,
        is_app_limited: sample.prior.is_app_limited,
        is_too_short: sample.is_too_short,
    }
}

fn state_name(state: cca::RecoveryState) -> &'static str {
    match state {
        cca::RecoveryState::Open => "open",
        cca::RecoveryState::Disorder => "disorder",
        cca::RecoveryState::Cwr => "cwr",
        cca::RecoveryState::Recovery => "recovery",
        cca::RecoveryState::Loss => "loss",
    }
}

/// What the object answers at present: its attributes.
fn answers(py: Python<'_>, object: &Py<PyAny>) -> PyResult<Outputs> {
    let object = object.bind(py);
    Ok(Outputs {
        cwnd: attribute(object, "cwnd", "1 to 2**31 segments", |value| segments(value, 1.0))?,
        ssthresh: attribute(object, "ssthresh", "0 to 2**31 segments, or None", |value| {
            if value.is_none() { Some(None) } else { segments(value, 0.0).map(Some) }
        })?,
        pacing_rate: attribute(
            object,
            "pacing_rate_mbps",
            "more than 0.000001, less than 10**9, or None",
            |value| if value.is_none() { Some(None) } else { rate_of(value).map(Some) },
        )?,
        send_quantum: Quantum::Auto { least: 2 },
        phase: attribute(object, "phase", PHASES, |value| lasting(value.extract().ok()?))?,
    })
}

/// An attribute as `read` takes it, which has no answer for what is not allowed.
fn attribute<'py, T>(
    object: &Bound<'py, PyAny>,
    name: &str,
    allowed: &str,
    read: impl FnOnce(&Bound<'py, PyAny>) -> Option<T>,
) -> PyResult<T> {
    let value = object.getattr(name)?;
    read(&value).ok_or_else(|| {
        let shown = shown(&value);
        PyValueError::new_err(format!("{name} is {shown} (allowed: {allowed})"))
    })
}

/// A value as Python writes it.
fn shown(value: &Bound<'_, PyAny>) -> String {
    const MOST: usize = 60;
    let text = value.repr().map_or_else(|_| "something".to_owned(), |text| text.to_string());
    match text.chars().count() > MOST {
        true => text.chars().take(MOST).chain(['…']).collect(),
        false => text,
    }
}

/// A part of a segment cannot be sent.
fn segments(value: &Bound<'_, PyAny>, least: f64) -> Option<u32> {
    let whole = value.extract::<f64>().ok()?.floor();
    (least..=f64::from(1u32 << 31)).contains(&whole).then_some(whole as u32)
}

fn rate_of(value: &Bound<'_, PyAny>) -> Option<sojourn_core::Rate> {
    let mbps = value.extract::<f64>().ok()?;
    (mbps > 1e-6 && mbps < 1e9).then(|| sojourn_core::Rate::from_bps((mbps * 1e6) as u64))
}

/// Names of phases are few, and plots have a colour for each.
const MOST_PHASES: usize = 100;

const PHASES: &str = "a name, and fewer than 100 of them";

/// A name of a phase that lasts as long as the process, as those of built-in controls do.
fn lasting(phase: &str) -> Option<&'static str> {
    static PHASES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut phases = PHASES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = phases.get(phase) {
        return Some(known);
    }
    if phase.is_empty() || phases.len() == MOST_PHASES {
        return None;
    }
    let lasting: &'static str = Box::leak(phase.to_owned().into_boxed_str());
    phases.insert(lasting);
    Some(lasting)
}
