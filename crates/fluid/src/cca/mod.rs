//! Congestion controls as fluids: a window and a pacing rate that follow what comes back.
//!
//! Continuous growth is integrated in closed form over what a step acknowledges. What a controller
//! does at a moment (a cut, a phase) happens at the end of a step. The engine shortens a step in which
//! that happens, unless it is at the controller's timer, where a step ends anyway.

mod bbr;
mod bbr2;
mod bbr3;
mod cubic;
mod dctcp;
mod filter;
mod prague;
mod reno;
mod slow_start;

use alloc::format;

use sojourn_cca::Config;
use sojourn_core::{SpecError, Stream};

use bbr::Bbr;
use bbr3::Bbr3;
use cubic::Cubic;
use dctcp::Dctcp;
use prague::Prague;
use reno::Reno;

/// What a sender learns in a step. Amounts are bytes on the wire, times seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told {
    pub(crate) now: f64,
    /// Newly known to have been delivered, and of that what was marked.
    pub(crate) acked: f64,
    pub(crate) marked: f64,
    /// Packets newly known to be lost, and to have been marked.
    pub(crate) losses: u32,
    pub(crate) marks: u32,
    /// Known to have been delivered, and sent, since the flow began.
    pub(crate) delivered: f64,
    pub(crate) sent: f64,
    pub(crate) rtt: f64,
    /// In flight after this step's acknowledgements.
    pub(crate) in_flight: f64,
    /// The window held the sender back.
    pub(crate) is_limited: bool,
    pub(crate) sample: Sample,
}

/// The delivery-rate sample of what is acknowledged now.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sample {
    /// Bytes a second; zero if nothing can be said yet.
    pub(crate) bw: f64,
    /// Delivered between the sending and the acknowledging of it, and before.
    pub(crate) delivered: f64,
    pub(crate) prior_delivered: f64,
    /// In flight when it left.
    pub(crate) tx_in_flight: f64,
    /// Known to be lost in between, in whole packets.
    pub(crate) lost: f64,
}

/// What a controller lets its sender do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowed {
    pub(crate) window: f64,
    /// Bytes a second.
    pub(crate) pacing: Option<f64>,
}

/// What the time series show of a controller beside window and rate.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shown {
    pub(crate) ssthresh: Option<f64>,
    pub(crate) bw: Option<f64>,
    pub(crate) min_rtt: Option<f64>,
    pub(crate) inflight_longterm: Option<f64>,
    pub(crate) rounds: Option<u64>,
}

/// What a controller begins with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) now: f64,
    pub(crate) initial_window: f64,
    pub(crate) packet: f64,
    /// Bytes that one acknowledgement stands for.
    pub(crate) at_once: f64,
    /// Of the handshake.
    pub(crate) rtt: f64,
    /// The flow's packets can be marked, and its sender hears of it.
    pub(crate) has_ecn: bool,
}

macro_rules! controls {
    (by window: $($windowed:ident),+; by model: $($modelled:ident),+) => {
        #[derive(Clone, Debug)]
        pub(crate) enum Cca {
            $($windowed($windowed),)+
            $($modelled($modelled),)+
        }

        impl Cca {
            pub(crate) fn on_step(&mut self, told: &Told) {
                match self {
                    $(Self::$windowed(cca) => cca.on_step(told),)+
                    $(Self::$modelled(cca) => cca.on_step(told),)+
                }
            }

            pub(crate) fn allowed(&self) -> Allowed {
                match self {
                    $(Self::$windowed(cca) => Allowed { window: cca.window.cwnd, pacing: None },)+
                    $(Self::$modelled(cca) => cca.allowed(),)+
                }
            }

            /// A time at which the controller does something, if it is known.
            pub(crate) fn timer(&self) -> f64 {
                match self {
                    $(Self::$windowed(_) => f64::INFINITY,)+
                    $(Self::$modelled(cca) => cca.timer(),)+
                }
            }

            pub(crate) fn phase(&self) -> &'static str {
                match self {
                    $(Self::$windowed(cca) => cca.window.phase(),)+
                    $(Self::$modelled(cca) => cca.phase(),)+
                }
            }

            pub(crate) fn shown(&self) -> Shown {
                match self {
                    $(Self::$windowed(cca) => cca.window.shown(),)+
                    $(Self::$modelled(cca) => cca.shown(),)+
                }
            }
        }
    };
}

controls!(by window: Reno, Cubic, Dctcp, Prague; by model: Bbr, Bbr3);

/// The controls that there are, as an error lists them.
const KNOWN: [&str; 7] = ["reno", "cubic", "bbr", "bbr2", "bbr3", "dctcp", "prague"];

/// # Errors
/// The control has no fluid model, or has parameters that the model does not have.
pub(crate) fn check(config: &Config) -> Result<(), SpecError> {
    let name = config.name();
    if !KNOWN.contains(&name) {
        let problem = format!("'{name}' has no fluid model");
        return Err(SpecError::new(problem).allow(KNOWN));
    }
    let written = config.canonical();
    if written != name {
        let problem = format!("'{written}': the fluid model of {name} has no parameters");
        return Err(SpecError::new(problem).allow([format!("'{name}' alone")]));
    }
    Ok(())
}

/// The controller of a flow; `config` has been checked.
pub(crate) fn build(config: &Config, setup: Setup, random: Stream) -> Cca {
    match config {
        Config::Cubic(_) => Cca::Cubic(Cubic::new(setup)),
        Config::Bbr(_) => Cca::Bbr(Bbr::new(setup, random)),
        Config::Bbr2(_) => Cca::Bbr3(Bbr3::new(bbr2::RULES, setup, random)),
        Config::Bbr3(_) => Cca::Bbr3(Bbr3::new(bbr3::RULES, setup, random)),
        // Without feedback of marks both are Reno (RFC 8257 section 3.5; Prague draft section 2.3.1).
        Config::Dctcp(_) if setup.has_ecn => Cca::Dctcp(Dctcp::new(setup)),
        Config::Prague(_) if setup.has_ecn => Cca::Prague(Prague::new(setup)),
        _ => Cca::Reno(Reno::new(setup)),
    }
}
