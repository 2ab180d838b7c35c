//! The four-state model in `netem`'s letters: state 1 delivers within a gap, 2 delivers within a
//! burst, 3 loses within a burst, 4 loses a single packet within a gap and returns to 1.

use alloc::format;

use sojourn_core::param::{Given, Maybe};
use sojourn_core::{SpecError, Stream};

use crate::Percent;

sojourn_core::params! {
    /// The chances as they are written.
    pub(crate) struct Written: "state", "A chain of four states, as netem's" {
        p13: Percent as Given<Percent> = "",
            "Chance of going from the gap (1) to a loss in a burst (3)";
        p31: Option<Percent> as Maybe<Percent> = "1-p13",
            "Chance of going from a loss in a burst back to the gap";
        p32: Percent = "0%", "Chance of going from a loss in a burst to a delivery in it (2)";
        p23: Percent = "100%", "Chance of going from a delivery in a burst to a loss in it";
        p14: Percent = "0%", "Chance of going from the gap to a single loss (4)";
    }
}

/// The chances of going from one state to another. Those of leaving one state add up to at most 100 %.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FourState {
    /// From the gap to a loss in a burst.
    pub p13: Percent,
    /// From a loss in a burst to the gap.
    pub p31: Percent,
    /// From a loss in a burst to a delivery in it.
    pub p32: Percent,
    /// From a delivery in a burst to a loss in it.
    pub p23: Percent,
    /// From the gap to a single loss.
    pub p14: Percent,
}

impl TryFrom<Written> for FourState {
    type Error = SpecError;

    fn try_from(written: Written) -> Result<Self, SpecError> {
        let Written { p13, p31, p32, p23, p14 } = written;
        let model = Self { p13, p31: p31.unwrap_or(p13.rest()), p32, p23, p14 };
        model.check()?;
        Ok(model)
    }
}

impl From<FourState> for Written {
    fn from(model: FourState) -> Self {
        let FourState { p13, p31, p32, p23, p14 } = model;
        Self { p13, p31: Some(p31), p32, p23, p14 }
    }
}

impl FourState {
    /// # Errors
    /// Chances of leaving one state that exceed 100 % together.
    pub(super) fn check(&self) -> Result<(), SpecError> {
        let at_most_all = |names: &str, a: Percent, b: Percent| {
            if a.leaves_room_for(b) {
                return Ok(());
            }
            Err(SpecError::new(format!("state: {names} are {a} and {b}"))
                .allow(["up to 100% together: they leave one state"]))
        };
        at_most_all("p13 and p14", self.p13, self.p14)?;
        at_most_all("p31 and p32", self.p31, self.p32)
    }

    pub(super) fn chances(&self) -> Chances {
        let Self { p13, p31, p32, p23, p14 } = *self;
        let [p13, p31, p32, p23, p14] = [p13, p31, p32, p23, p14].map(Percent::share);
        Chances { p13, p31, p32, p23, p14 }
    }

    /// From the balance of transitions between the states: 1 and 3 through p13 and p31, 2 and 3
    /// through p23 and p32, 1 and 4 through p14 and the certain return.
    pub(super) fn stationary(&self) -> f64 {
        let Self { p13, p31, p32, p23, p14 } = *self;
        let [p13, p31, p32, p23, p14] = [p13, p31, p32, p23, p14].map(Percent::share);
        if p13 == 0.0 {
            return p14 / (1.0 + p14);
        }
        // A chain ends in states that it can't leave.
        if p32 > 0.0 && p23 == 0.0 {
            return 0.0;
        }
        let in_burst = if p32 == 0.0 { 0.0 } else { p32 / p23 };
        if p31 == 0.0 {
            return 1.0 / (1.0 + in_burst);
        }
        // Each state's share, as a multiple of that of state 1.
        let lost_in_burst = p13 / p31;
        (lost_in_burst + p14) / (1.0 + p14 + lost_in_burst * (1.0 + in_burst))
    }
}

/// The chances of the four-state model, by their netem letters.
#[derive(Clone, Copy, Debug)]
pub struct Chances {
    pub(super) p13: f64,
    pub(super) p31: f64,
    pub(super) p32: f64,
    pub(super) p23: f64,
    pub(super) p14: f64,
}

/// States 1 to 4 of the four-state model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Gap,
    DeliveryInBurst,
    LossInBurst,
    LossInGap,
}

impl State {
    /// The state in which the next packet is: one draw for each packet.
    pub(super) fn next(self, chances: &Chances, random: &mut Stream) -> Self {
        let draw = random.unit();
        match self {
            Self::Gap if draw < chances.p14 => Self::LossInGap,
            Self::Gap if draw < chances.p14 + chances.p13 => Self::LossInBurst,
            Self::DeliveryInBurst if draw < chances.p23 => Self::LossInBurst,
            Self::LossInBurst if draw < chances.p32 => Self::DeliveryInBurst,
            Self::LossInBurst if draw < chances.p32 + chances.p31 => Self::Gap,
            Self::LossInGap => Self::Gap,
            Self::Gap | Self::DeliveryInBurst | Self::LossInBurst => self,
        }
    }
}
