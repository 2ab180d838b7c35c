//! The state of a loss process, changed by every packet.

use sojourn_core::{Stream, Time};

use super::four_state::{Chances, State};
use super::gemodel::Moves;
use crate::{Percent, Steps};

#[derive(Clone, Debug)]
pub enum Loss {
    None,
    Random {
        p: f64,
    },
    Correlated {
        p: f64,
        rho: f64,
        /// The random number before, once there is one.
        last: Option<f64>,
    },
    FourState {
        chances: Chances,
        state: State,
    },
    Gemodel {
        good: Moves,
        bad: Moves,
        in_bad: bool,
    },
    Periodic {
        every: u32,
        /// Packets since the last loss.
        passed: u32,
    },
    Steps(Steps<Percent>),
}

impl Loss {
    /// Whether a packet that crosses at `now` is lost.
    #[inline(always)]
    pub fn loses(&mut self, now: Time, random: &mut Stream) -> bool {
        // Most links lose nothing; for them this is one comparison and no call.
        !matches!(self, Self::None) && self.draw(now, random)
    }

    #[inline(never)]
    fn draw(&mut self, now: Time, random: &mut Stream) -> bool {
        match self {
            Self::None => false,
            Self::Random { p } => random.chance(*p),
            Self::Steps(steps) => random.chance(steps.at(now).share()),
            Self::Correlated { p, rho, last } => {
                let before = last.unwrap_or_else(|| random.unit());
                let value = random.unit() * (1.0 - *rho) + before * *rho;
                *last = Some(value);
                value < *p
            }
            Self::FourState { chances, state } => {
                *state = state.next(chances, random);
                matches!(state, State::LossInBurst | State::LossInGap)
            }
            Self::Gemodel { good, bad, in_bad } => {
                // The state moves first, but the loss is that of the state before.
                let Moves { leave, loss } = if *in_bad { *bad } else { *good };
                *in_bad ^= random.chance(leave);
                random.chance(loss)
            }
            Self::Periodic { every, passed } => {
                *passed += 1;
                let lost = *passed >= *every;
                if lost {
                    *passed = 0;
                }
                lost
            }
        }
    }
}
