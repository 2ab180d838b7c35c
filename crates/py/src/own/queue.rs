//! A queue that is written in Python.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use sojourn_core::{DropReason, Ecn, Queued, Stream, Time};
use sojourn_qdisc::{Backlog, Dequeue, Discipline, Enqueue, Qdisc, Sink, Ticket};

use super::asked;
use super::class::{Class, named_python};

named_python!(Own, "Queue", "A queue that is a class in Python");

impl Discipline for Own {
    type Queue = State;

    fn build(&self, mut random: Stream) -> State {
        let class = self.0.clone();
        let object = asked(&class, |py| class.make(py, random.next_u64()));
        State { class, object, inside: BTreeMap::new(), bytes: 0, arrivals: 0 }
    }
}

/// A packet, as a queue knows it.
#[pyclass(frozen, module = "sojourn")]
pub(crate) struct Packet {
    number: u64,
    /// When it came to the queue, since the run began.
    #[pyo3(get)]
    arrived_s: f64,
    /// On the wire, as Linux counts: with Ethernet's header.
    #[pyo3(get)]
    bytes: u32,
    /// Of the IP packets alone.
    #[pyo3(get)]
    ip_bytes: u32,
    /// How many it is when divided: a host's queue holds packets of several segments (GSO).
    #[pyo3(get)]
    segments: u32,
    /// Sending host, receiving host, and a number for ports and protocol.
    #[pyo3(get)]
    flow: (u32, u32, u64),
    /// The class that the sender asks for (RFC 2474), 0 to 63.
    #[pyo3(get)]
    dscp: u8,
    /// It acknowledges and carries no data.
    #[pyo3(get)]
    is_pure_ack: bool,
    /// `not-ect`, `ect0`, `ect1` or `ce`.
    ecn: Ecn,
    is_marked: AtomicBool,
}

#[pymethods]
impl Packet {
    /// `not-ect`, `ect0`, `ect1` or `ce`.
    #[getter]
    fn ecn(&self) -> &'static str {
        match self.ecn {
            _ if self.is_marked.load(Ordering::Relaxed) => "ce",
            Ecn::NotEct => "not-ect",
            Ecn::Ect0 => "ect0",
            Ecn::Ect1 => "ect1",
            Ecn::Ce => "ce",
        }
    }

    /// Marks it, if its sender allows that.
    fn _mark(&self) -> bool {
        let is_capable = self.ecn.is_capable();
        if is_capable {
            self.is_marked.store(true, Ordering::Relaxed);
        }
        is_capable
    }

    fn __repr__(&self) -> String {
        format!("<sojourn.Packet {} of {} bytes>", self.number, self.bytes)
    }
}

/// The queue of one line.
pub(crate) struct State {
    class: Class,
    object: Py<PyAny>,
    /// What it has taken and neither given nor dropped, by order of arrival.
    inside: BTreeMap<u64, (Time, Ticket)>,
    bytes: u64,
    arrivals: u64,
}

/// What a queue says of packets that are inside, in its order.
enum Told {
    Dropped(u64, DropReason),
    Marked(u64),
}

enum Answer {
    Packet(u64),
    Empty,
    Wait(f64),
}

impl State {
    fn take(&mut self, number: u64) -> (Time, Ticket) {
        let taken = self.inside.remove(&number).expect("it was looked up");
        self.bytes -= u64::from(taken.1.wire_len());
        taken
    }

    fn hear(&mut self, now: Time, told: Vec<Told>, sink: &mut dyn Sink<Ticket>) {
        for event in told {
            match event {
                Told::Dropped(number, why) => {
                    let (_, ticket) = self.take(number);
                    sink.dropped(now, ticket, why);
                }
                Told::Marked(number) => {
                    let (_, ticket) = self.inside.get_mut(&number).expect("it was looked up");
                    ticket.mark_ce();
                    sink.marked(now, ticket);
                }
            }
        }
    }

    /// What the object told of packets since it was last asked. A packet that it drops is no longer inside.
    fn told(&self, py: Python<'_>) -> PyResult<Vec<Told>> {
        let list: Vec<(Py<Packet>, Option<String>)> =
            self.object.bind(py).call_method0("_take_told")?.extract()?;
        let mut gone = Vec::new();
        let mut told = Vec::new();
        for (packet, why) in list {
            let number = packet.get().number;
            if !self.inside.contains_key(&number) || gone.contains(&number) {
                return Err(not_inside(packet.get()));
            }
            told.push(match why.as_deref() {
                None => Told::Marked(number),
                Some(why) => {
                    gone.push(number);
                    Told::Dropped(number, reason(why)?)
                }
            });
        }
        Ok(told)
    }

    fn is_inside(&self, packet: &Packet, told: &[Told]) -> PyResult<u64> {
        let number = packet.number;
        let is_gone =
            told.iter().any(|one| matches!(one, Told::Dropped(gone, _) if *gone == number));
        match self.inside.contains_key(&number) && !is_gone {
            true => Ok(number),
            false => Err(not_inside(packet)),
        }
    }
}

fn not_inside(packet: &Packet) -> PyErr {
    PyValueError::new_err(format!(
        "packet {} is not in the queue: it was given, dropped or refused before",
        packet.number
    ))
}

fn reason(why: &str) -> PyResult<DropReason> {
    let allowed = [DropReason::Full, DropReason::Overflow, DropReason::Aqm];
    let found = allowed.into_iter().find(|reason| reason.name() == why);
    found.ok_or_else(|| {
        PyValueError::new_err(format!("why is '{why}' (allowed: full, overflow, aqm)"))
    })
}

impl Qdisc<Ticket> for State {
    fn enqueue(
        &mut self,
        now: Time,
        ticket: Ticket,
        sink: &mut dyn Sink<Ticket>,
    ) -> Enqueue<Ticket> {
        let number = self.arrivals;
        self.arrivals += 1;
        let key = ticket.flow_key();
        let packet = Packet {
            number,
            arrived_s: now.as_secs_f64(),
            bytes: ticket.wire_len(),
            ip_bytes: ticket.ip_len(),
            segments: ticket.segments(),
            flow: (key.src, key.dst, key.ports),
            dscp: ticket.dscp(),
            is_pure_ack: ticket.pure_ack().is_some(),
            ecn: ticket.ecn(),
            is_marked: AtomicBool::new(false),
        };
        self.bytes += u64::from(ticket.wire_len());
        self.inside.insert(number, (now, ticket));
        let (why, told) = asked(&self.class, |py| {
            let answer =
                self.object.bind(py).call_method1("_enqueue", (packet, now.as_secs_f64()))?;
            let why = answer.extract::<Option<String>>()?.map(|why| reason(&why)).transpose()?;
            Ok((why, self.told(py)?))
        });
        self.hear(now, told, sink);
        match why {
            // It may have dropped the packet itself, which is told by then.
            Some(why) if self.inside.contains_key(&number) => {
                Enqueue::Dropped(self.take(number).1, why)
            }
            _ => Enqueue::Queued,
        }
    }

    fn dequeue(&mut self, now: Time, sink: &mut dyn Sink<Ticket>) -> Dequeue<Ticket> {
        let (answer, told) = asked(&self.class, |py| {
            let answer = self.object.bind(py).call_method1("dequeue", (now.as_secs_f64(),))?;
            let told = self.told(py)?;
            let left = self.inside.len()
                - told.iter().filter(|one| matches!(one, Told::Dropped(..))).count();
            let answer = if answer.is_none() {
                if left > 0 {
                    return Err(PyValueError::new_err(format!(
                        "dequeue returned None with {left} packets inside (allowed: a packet, or a later \
                         time in seconds)"
                    )));
                }
                Answer::Empty
            } else if let Ok(packet) = answer.cast::<Packet>() {
                Answer::Packet(self.is_inside(packet.get(), &told)?)
            } else if let Ok(until_s) = answer.extract::<f64>() {
                if !(until_s > now.as_secs_f64() && until_s.is_finite()) || left == 0 {
                    return Err(PyValueError::new_err(format!(
                        "dequeue asks to wait until {until_s} s, at {} s with {left} packets inside \
                         (allowed: later times, with a packet inside)",
                        now.as_secs_f64()
                    )));
                }
                Answer::Wait(until_s)
            } else {
                return Err(PyTypeError::new_err(format!(
                    "dequeue returned a {} (allowed: a packet, None, or a later time in seconds)",
                    answer.get_type().name()?
                )));
            };
            Ok((answer, told))
        });
        self.hear(now, told, sink);
        match answer {
            Answer::Empty => Dequeue::Empty,
            Answer::Packet(number) => {
                let (arrived, ticket) = self.take(number);
                Dequeue::Packet(ticket, now.since(arrived))
            }
            // Of two times that round to the same nanosecond the later one is meant.
            Answer::Wait(until_s) => {
                let until = Time::from_nanos((until_s * 1e9).ceil() as u64);
                Dequeue::NotBefore(until.max(Time::from_nanos(now.as_nanos() + 1)))
            }
        }
    }

    fn backlog(&self) -> Backlog {
        Backlog { packets: self.inside.len() as u32, bytes: self.bytes }
    }

    fn oldest(&self) -> Option<Time> {
        self.inside.values().next().map(|(arrived, _)| *arrived)
    }
}
