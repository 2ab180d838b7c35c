//! Queues as fluids.
//!
//! A queue has classes: one for a FIFO, one for each flow under fair queueing, two for DualPI2. Flows
//! of one class wait behind each other. What a class holds is the difference of what came and what
//! left; which flow's fluid leaves follows from when it came, which is the engine's part.

mod cake;
mod codel;
mod drop_tail;
mod dualpi2;
mod fair;
mod fq_codel;
mod pie;
mod red;
mod room;

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use sojourn_core::{Framing, SpecError, Stream as Random};
use sojourn_qdisc::Config;

use cake::Cake;
use codel::Codel;
use drop_tail::DropTail;
use dualpi2::DualPi2;
use fq_codel::FqCodel;
use pie::Pie;
use red::Red;

/// A flow at a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    /// Bytes of a packet on the wire.
    pub(crate) packet: f64,
    /// Bytes of memory that Linux charges for it.
    pub(crate) memory: f64,
    /// Round trip without queues, in seconds.
    pub(crate) round: f64,
    /// Packets that come at once.
    pub(crate) burst: f64,
    /// May be marked instead of dropped.
    pub(crate) is_capable: bool,
    /// Sends ECT(1).
    pub(crate) is_l4s: bool,
    pub(crate) dscp: u8,
    pub(crate) source: u16,
    pub(crate) destination: u16,
}

/// What a step brings a queue. Amounts are bytes, times seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step<'a> {
    pub(crate) length: f64,
    /// What the link can carry in it.
    pub(crate) capacity: f64,
    /// What comes, by member.
    pub(crate) arrivals: &'a [f64],
    pub(crate) members: &'a [Member],
    /// What waits at its beginning, by class.
    pub(crate) backlogs: &'a [f64],
    /// Of that, what is dropped from the head, and takes no time of the link.
    pub(crate) dropped: &'a [f64],
}

/// What a discipline sees at the end of a step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen<'a> {
    pub(crate) now: f64,
    pub(crate) arrived: f64,
    pub(crate) capacity: f64,
    /// How long what leaves has waited, and what waits, by class.
    pub(crate) sojourns: &'a [f64],
    pub(crate) backlogs: &'a [f64],
    /// What left, by class.
    pub(crate) left: &'a [f64],
    /// What had no room and was dropped, by class.
    pub(crate) excess: &'a [f64],
}

impl Seen<'_> {
    /// Packets wait in the class, and none leaves: a law that acts on what leaves does nothing.
    fn stands_still(&self, class: usize) -> bool {
        self.backlogs[class] > 0.0 && self.left[class] <= 0.0
    }
}

/// Packets of a class that a discipline signals.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Due {
    pub(crate) class: usize,
    pub(crate) packets: u32,
    /// Of what comes next, not of what waits at the head.
    pub(crate) at_tail: bool,
    /// What is capable is marked instead of dropped.
    pub(crate) may_mark: bool,
}

/// What becomes of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fate {
    /// Of the arrivals, by member: lost, and let in with a mark.
    pub(crate) lost: Vec<f64>,
    pub(crate) marked: Vec<f64>,
    /// Of what is lost, what was signalled early; the rest met a full queue. Empty if nothing was.
    early: Vec<f64>,
    /// What leaves, by class, drops at the head among it.
    pub(crate) departures: Vec<f64>,
    /// Of that, what is dropped beside [`Step::dropped`], by class: it takes no time of the link either.
    pub(crate) beyond: Vec<f64>,
    /// Of that, what had no room.
    pub(crate) excess: Vec<f64>,
    /// What classes would send if they could.
    wanted: Vec<f64>,
}

impl Fate {
    pub(crate) fn clear(&mut self, members: usize, classes: usize) {
        self.lost.clear();
        self.lost.resize(members, 0.0);
        self.marked.clear();
        self.marked.resize(members, 0.0);
        self.early.clear();
        self.departures.clear();
        self.departures.resize(classes, 0.0);
        self.beyond.clear();
        self.beyond.resize(classes, 0.0);
        self.excess.clear();
        self.excess.resize(classes, 0.0);
        self.wanted.clear();
        self.wanted.resize(classes, 0.0);
    }

    /// Of what was lost of a member, what was signalled and did not meet a full queue.
    pub(crate) fn early(&self, member: usize) -> f64 {
        self.early.get(member).copied().unwrap_or_default()
    }

    /// A share of what comes is signalled, by a mark where that may be.
    fn signal(&mut self, step: &Step<'_>, member: usize, probability: f64, may_mark: bool) {
        let amount = (step.arrivals[member] - self.lost[member]) * probability;
        if may_mark && step.members[member].is_capable {
            self.marked[member] += amount;
        } else {
            self.lost[member] += amount;
            self.early.resize(self.lost.len(), 0.0);
            self.early[member] += amount;
        }
    }
}

macro_rules! disciplines {
    ($($variant:ident),+) => {
        #[derive(Clone, Debug)]
        pub(crate) enum Queue {
            $($variant($variant),)+
        }

        impl Queue {
            /// The class of each member.
            pub(crate) fn classes(&self, members: &[Member]) -> Vec<usize> {
                match self {
                    $(Self::$variant(queue) => queue.classes(members),)+
                }
            }

            pub(crate) fn advance(&self, step: &Step<'_>, fate: &mut Fate) {
                match self {
                    $(Self::$variant(queue) => queue.advance(step, fate),)+
                }
            }

            /// Says what is to be signalled in the next step.
            pub(crate) fn observe(&mut self, seen: &Seen<'_>, due: &mut Vec<Due>) {
                match self {
                    $(Self::$variant(queue) => queue.observe(seen, due),)+
                }
            }

            /// The next time at which the discipline acts by itself.
            pub(crate) fn timer(&self) -> f64 {
                match self {
                    $(Self::$variant(queue) => queue.timer(),)+
                }
            }
        }
    };
}

disciplines!(DropTail, Red, Codel, FqCodel, Cake, Pie, DualPi2);

const KNOWN: [&str; 8] = ["pfifo", "bfifo", "red", "codel", "fq_codel", "cake", "pie", "dualpi2"];

/// # Errors
/// The discipline has no fluid model, or an option that the model does not have.
pub(crate) fn check(config: &Config) -> Result<(), SpecError> {
    let refuse = |what: &str| Err(refusal(config.name(), what));
    match config {
        Config::Fifo(_) => Ok(()),
        Config::Red(red) if red.adaptive || red.harddrop || red.nodrop => {
            refuse("'adaptive', 'harddrop' or 'nodrop'")
        }
        Config::Codel(codel) if codel.ce_threshold.is_some() => refuse("'ce_threshold'"),
        Config::FqCodel(codel) => fq_codel::check(codel),
        Config::Cake(cake) => cake::check(cake),
        Config::DualPi2(dualpi2) => dualpi2::check(dualpi2),
        Config::Pie(pie) if pie.bytemode || pie.dq_rate_estimator => {
            refuse("'bytemode' or 'dq_rate_estimator'")
        }
        Config::Red(_) | Config::Codel(_) | Config::Pie(_) => Ok(()),
        Config::FqPie(_) | Config::Fq(_) | Config::Tbf(_) | Config::External(_) => {
            let problem = format!("the queue '{}' has no fluid model", config.name());
            Err(SpecError::new(problem).allow(KNOWN))
        }
    }
}

fn refusal(name: &str, what: &str) -> SpecError {
    SpecError::new(format!("the fluid model of '{name}' has no {what}"))
}

/// How a queue frames packets to know how long they take.
pub(crate) fn framing(config: &Config) -> Framing {
    match config {
        Config::Cake(cake) => cake::framing(cake),
        _ => Framing::default(),
    }
}

/// The tin of a code point, if the queue has tins.
pub(crate) fn tin_of(config: &Config, dscp: u8) -> Option<usize> {
    match config {
        Config::Cake(cake) => Some(cake.tin_of(dscp)),
        _ => None,
    }
}

/// The queue of a port; `config` has been checked. `packet` is the largest packet that comes;
/// `random` is for what the discipline draws.
pub(crate) fn build(config: &Config, members: &[Member], packet: f64, random: Random) -> Queue {
    match config {
        Config::Red(red) => Queue::Red(Red::new(red, packet, random)),
        Config::Codel(codel) => Queue::Codel(Codel::new(codel, packet)),
        Config::FqCodel(fq_codel) => Queue::FqCodel(FqCodel::new(fq_codel, members)),
        Config::Cake(cake) => Queue::Cake(Cake::new(cake, members, packet)),
        Config::Pie(pie) => Queue::Pie(Pie::new(pie, packet)),
        Config::DualPi2(dualpi2) => Queue::DualPi2(DualPi2::new(dualpi2, packet)),
        other => Queue::DropTail(DropTail::new(other, packet)),
    }
}

impl Queue {
    /// In which class sparse packets wait, such as acknowledgements and pings; none wait under fair
    /// queueing.
    pub(crate) fn class_of_sparse(&self) -> Option<usize> {
        match self {
            Self::FqCodel(_) | Self::Cake(_) => None,
            Self::DropTail(_) | Self::Red(_) | Self::Codel(_) | Self::Pie(_) | Self::DualPi2(_) => {
                Some(0)
            }
        }
    }
}

/// Every member in one class.
fn one_class(members: &[Member]) -> Vec<usize> {
    vec![0; members.len()]
}

/// The arrivals that were let in.
fn let_in(step: &Step<'_>, fate: &Fate) -> f64 {
    step.arrivals.iter().zip(&fate.lost).map(|(came, lost)| came - lost).sum()
}

/// Serves one class, and loses what does not fit into `limit` bytes, of each member in proportion to
/// what came of it.
fn serve_fifo(step: &Step<'_>, fate: &mut Fate, limit: f64) {
    let came = let_in(step, fate);
    let held = step.backlogs[0] + came;
    let departed = held.min(step.capacity + step.dropped[0]);
    let excess = held - departed - limit;
    if excess > 0.0 && came > 0.0 {
        // Paper "TCP BBR Performance over Wi-Fi 6", equation (19), with p = 1 − C/y at a full queue
        // (Scherrer et al., IMC 2022, equation 4): here the exact excess of the step.
        let share = (excess / came).min(1.0);
        for (lost, came) in fate.lost.iter_mut().zip(step.arrivals) {
            *lost += (came - *lost) * share;
        }
    }
    fate.departures[0] = departed;
}
