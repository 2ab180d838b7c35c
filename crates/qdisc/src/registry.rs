//! The built-in disciplines by the names `tc` gives them.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;
use core::fmt;

use sojourn_core::{Param, Queued, Rate, SpecError, Stream, Time, Words};

use crate::{Backlog, Dequeue, Enqueue, Qdisc, Reshape, Sink};
use crate::{cake, codel, dualpi2, fifo, fq, fq_codel, fq_pie, pie, red, tbf};

/// A name under which a discipline can be asked for.
#[derive(Clone, Copy, Debug)]
pub struct Discipline {
    pub name: &'static str,
    pub doc: &'static str,
    pub params: &'static [Param],
}

/// Every name, in the order of the documentation.
pub fn disciplines() -> &'static [Discipline] {
    &[
        Discipline {
            name: "pfifo",
            doc: "first in first out, limited in packets",
            params: fifo::PFIFO_PARAMS,
        },
        Discipline {
            name: "bfifo",
            doc: "first in first out, limited in bytes",
            params: fifo::BFIFO_PARAMS,
        },
        Discipline {
            name: "codel",
            doc: "CoDel (RFC 8289), as Linux has it or to the letter",
            params: codel::PARAMS,
        },
        Discipline {
            name: "fq_codel",
            doc: "FlowQueue-CoDel (RFC 8290), as Linux has it or to the letter",
            params: fq_codel::PARAMS,
        },
        Discipline {
            name: "cake",
            doc: "CAKE: shaper, tins, host and flow isolation, COBALT, as Linux has it",
            params: cake::PARAMS,
        },
        Discipline { name: "pie", doc: "PIE (RFC 8033), as Linux has it", params: pie::PARAMS },
        Discipline {
            name: "fq_pie",
            doc: "FlowQueue-PIE: PIE on each queue of a deficit round robin, as Linux has it",
            params: fq_pie::PARAMS,
        },
        Discipline {
            name: "dualpi2",
            doc: "DualPI2 (RFC 9332): the coupled dual queue for L4S, as Linux has it",
            params: dualpi2::PARAMS,
        },
        Discipline {
            name: "red",
            doc: "RED: random early detection, also adaptive, as Linux has it",
            params: red::PARAMS,
        },
        Discipline {
            name: "fq",
            doc: "FQ: a queue and a limit for each flow, as Linux has it for packets from outside",
            params: fq::PARAMS,
        },
        Discipline {
            name: "tbf",
            doc: "TBF: token bucket shaper over a FIFO, as Linux has it",
            params: tbf::PARAMS,
        },
    ]
}

/// A discipline's checked and complete parameters. Printed as `tc qdisc show` prints them.
#[derive(Clone, Debug, PartialEq)]
pub enum Config {
    Fifo(fifo::Config),
    Codel(codel::Config),
    FqCodel(fq_codel::Config),
    Cake(cake::Config),
    Pie(pie::Config),
    FqPie(fq_pie::Config),
    DualPi2(dualpi2::Config),
    Red(red::Config),
    Fq(fq::Config),
    Tbf(tbf::Config),
}

impl Config {
    /// Reads a name and its parameters: `fq_codel limit 1000 target 5ms noecn`.
    ///
    /// # Errors
    /// An unknown name or parameter, or a value out of range; names what is allowed.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        let mut words = Words::new(text);
        let names = || disciplines().iter().map(|discipline| discipline.name);
        let name = words
            .next()
            .ok_or_else(|| SpecError::new("no queue discipline is named").allow(names()))?;
        Ok(match name {
            "pfifo" => Self::Fifo(fifo::Config::parse_pfifo(&mut words)?),
            "bfifo" => Self::Fifo(fifo::Config::parse_bfifo(&mut words)?),
            "codel" => Self::Codel(codel::Config::parse(&mut words)?),
            "fq_codel" => Self::FqCodel(fq_codel::Config::parse(&mut words)?),
            "cake" => Self::Cake(cake::Config::parse(&mut words)?),
            "pie" => Self::Pie(pie::Config::parse(&mut words)?),
            "fq_pie" => Self::FqPie(fq_pie::Config::parse(&mut words)?),
            "dualpi2" => Self::DualPi2(dualpi2::Config::parse(&mut words)?),
            "red" => Self::Red(red::Config::parse(&mut words)?),
            "fq" => Self::Fq(fq::Config::parse(&mut words)?),
            "tbf" => Self::Tbf(tbf::Config::parse(&mut words)?),
            _ => {
                refuse_what_links_do(name)?;
                return Err(SpecError::new(format!("unknown queue discipline '{name}'"))
                    .near(name, names())
                    .allow(names()));
            }
        })
    }

    pub fn name(&self) -> &'static str {
        match self {
            Self::Fifo(config) => config.name(),
            Self::Codel(_) => "codel",
            Self::FqCodel(_) => "fq_codel",
            Self::Cake(_) => "cake",
            Self::Pie(_) => "pie",
            Self::FqPie(_) => "fq_pie",
            Self::DualPi2(_) => "dualpi2",
            Self::Red(_) => "red",
            Self::Fq(_) => "fq",
            Self::Tbf(_) => "tbf",
        }
    }

    /// The rate that the discipline holds packets back to, if it shapes.
    pub fn shaped_rate(&self) -> Option<Rate> {
        let rate = match self {
            Self::Cake(config) => config.bandwidth,
            Self::Tbf(config) => config.rate,
            _ => return None,
        };
        (!rate.is_unlimited()).then_some(rate)
    }

    /// An empty queue. `random` perturbs hashes and is what the discipline draws from.
    pub fn build<P: Reshape + Send>(&self, random: Stream) -> AnyQdisc<P> {
        match self {
            Self::Fifo(config) => AnyQdisc::Fifo(fifo::Fifo::new(config)),
            Self::Codel(config) => AnyQdisc::Codel(codel::Codel::new(config)),
            Self::FqCodel(config) => AnyQdisc::FqCodel(fq_codel::FqCodel::new(config, random)),
            Self::Cake(config) => AnyQdisc::Cake(cake::Cake::new(config, random)),
            Self::Pie(config) => AnyQdisc::Pie(pie::Pie::new(config, random)),
            Self::FqPie(config) => AnyQdisc::FqPie(fq_pie::FqPie::new(config, random)),
            Self::DualPi2(config) => AnyQdisc::DualPi2(dualpi2::DualPi2::new(config, random)),
            Self::Red(config) => AnyQdisc::Red(red::Red::new(config, random)),
            Self::Fq(config) => AnyQdisc::Fq(fq::Fq::new(config, random)),
            Self::Tbf(config) => AnyQdisc::Tbf(tbf::Tbf::new(config)),
        }
    }
}

/// Says where to find a discipline of `tc` that is no queue here.
fn refuse_what_links_do(name: &str) -> Result<(), SpecError> {
    let instead = match name {
        "netem" => "loss, delay, jitter and rate are the link's",
        "htb" => "shaping by classes is the link's; write its rate as 'htb rate 10mbit'",
        _ => return Ok(()),
    };
    Err(SpecError::new(format!("'{name}' is no queue discipline here: {instead}")))
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        f.write_str(" ")?;
        match self {
            Self::Fifo(config) => config.fmt(f),
            Self::Codel(config) => config.fmt(f),
            Self::FqCodel(config) => config.fmt(f),
            Self::Cake(config) => config.fmt(f),
            Self::Pie(config) => config.fmt(f),
            Self::FqPie(config) => config.fmt(f),
            Self::DualPi2(config) => config.fmt(f),
            Self::Red(config) => config.fmt(f),
            Self::Fq(config) => config.fmt(f),
            Self::Tbf(config) => config.fmt(f),
        }
    }
}

/// A discipline: a built-in one, called directly, or any other behind a box.
///
/// Only a FIFO is inlined into the choice between them; it would pay for what the others need on
/// the stack.
pub enum AnyQdisc<P: Queued> {
    Fifo(fifo::Fifo<P>),
    Codel(codel::Codel<P>),
    FqCodel(fq_codel::FqCodel<P>),
    Cake(cake::Cake<P>),
    Pie(pie::Pie<P>),
    FqPie(fq_pie::FqPie<P>),
    DualPi2(dualpi2::DualPi2<P>),
    Red(red::Red<P>),
    Fq(fq::Fq<P>),
    Tbf(tbf::Tbf<P>),
    External(Box<dyn Qdisc<P>>),
}

macro_rules! each {
    ($qdisc:expr, $inner:ident => $call:expr) => {
        match $qdisc {
            AnyQdisc::Fifo($inner) => $call,
            AnyQdisc::Codel($inner) => $call,
            AnyQdisc::FqCodel($inner) => $call,
            AnyQdisc::Cake($inner) => $call,
            AnyQdisc::Pie($inner) => $call,
            AnyQdisc::FqPie($inner) => $call,
            AnyQdisc::DualPi2($inner) => $call,
            AnyQdisc::Red($inner) => $call,
            AnyQdisc::Fq($inner) => $call,
            AnyQdisc::Tbf($inner) => $call,
            AnyQdisc::External($inner) => $call,
        }
    };
}

impl<P: Reshape + Send> Qdisc<P> for AnyQdisc<P> {
    #[inline]
    fn enqueue(&mut self, now: Time, packet: P, sink: &mut dyn Sink<P>) -> Enqueue<P> {
        each!(self, inner => inner.enqueue(now, packet, sink))
    }

    #[inline]
    fn dequeue(&mut self, now: Time, sink: &mut dyn Sink<P>) -> Dequeue<P> {
        each!(self, inner => inner.dequeue(now, sink))
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        each!(self, inner => inner.backlog())
    }

    fn oldest(&self) -> Option<Time> {
        each!(self, inner => inner.oldest())
    }

    fn details(&self) -> Vec<(&'static str, u64)> {
        each!(self, inner => inner.details())
    }
}
