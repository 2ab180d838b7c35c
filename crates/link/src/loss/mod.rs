//! Loss on the medium, decided packet by packet.
//!
//! The processes of Linux's `netem`, by their documented behaviour: independent loss, loss with
//! correlated random numbers, the four-state chain (`state`) and Gilbert–Elliott (`gemodel`). And
//! the loss of every n-th packet, which makes tests exact.

mod four_state;
mod gemodel;
mod process;
#[cfg(test)]
mod tests;

use alloc::format;
use core::fmt;

use sojourn_core::param::{Form, Given, Maybe, Needed, Style, whole};
use sojourn_core::{Params, SpecError, Words};

pub use four_state::{FourState, State};
pub use gemodel::Gemodel;
pub use process::Loss;

use crate::{Model, Percent, Steps, steps};
use gemodel::Moves;

/// A checked loss process.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum LossConfig {
    #[default]
    None,
    Random(Random),
    State(FourState),
    Gemodel(Gemodel),
    Periodic(Periodic),
    /// Independent loss that changes at stated times.
    Steps(Steps<Percent>),
}

sojourn_core::params! {
    /// Independent loss; with `rho` each random number carries that share of the one before.
    pub struct Random: "random", "Independent loss, as netem's; '1%' alone means this" {
        pub p: Percent as Given<Percent> = "", "Share of the packets lost";
        pub rho: Option<Percent> as Maybe<Percent> = "0%",
            "Weight of the previous random number in the next one: netem's correlation";
    }
}

sojourn_core::params! {
    pub struct Periodic: "periodic", "Every n-th packet is lost, for analytic tests" {
        pub n: u32 as Needed<u32> = "", whole(1, u32::MAX as i64),
            "Packets from one loss to the next";
    }
}

/// The names by which [`LossConfig::parse`] knows the processes.
pub(crate) const MODELS: &[Model] = &[
    Model::bare("none", "No loss"),
    Model::of::<Random>(),
    Model::of::<four_state::Written>(),
    Model::of::<gemodel::Written>(),
    Model::of::<Periodic>(),
    steps::model(
        "Independent loss that changes at stated times: steps 0% 10s 5% 2s; 'end hold' lets the last one stay",
    ),
];

impl LossConfig {
    /// Reads `none`, `1%`, `random 1% 25%`, `state 1% 10% 5% 50% 0.1%`, `gemodel 1% 10% 70% 0.1%`
    /// `periodic 100` or `steps 0% 10s 5% 2s`. Values come in the order of the parameters, as in `netem`,
    /// or after their names, and the word `loss` may stand before them as it does there.
    ///
    /// # Errors
    /// An unknown process, a missing or surplus value, one out of range, or chances of leaving one
    /// state that exceed 100 % together. A share without `%` is
    /// refused, because `tc` reads it as percent.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        let words = &mut Words::new(text);
        let names = || MODELS.iter().map(|model| model.name);
        let allowed = || ["1%"].into_iter().chain(names());
        let mut all = words.clone();
        let mut first = words.next();
        if first == Some("loss") {
            all = words.clone();
            first = words.next();
        }
        let first = first
            .ok_or_else(|| SpecError::new("no loss is named; write 'none'").allow(allowed()))?;
        Ok(match first {
            "none" => match words.next() {
                None => Self::None,
                Some(surplus) => return Err(SpecError::new(format!("'{surplus}' follows 'none'"))),
            },
            "random" => Self::Random(Random::parse_in_order(words)?),
            "state" => Self::State(four_state::Written::parse_in_order(words)?.try_into()?),
            "gemodel" => Self::Gemodel(gemodel::Written::parse_in_order(words)?.into()),
            "steps" => {
                let p = &Random::PARAMS[0];
                Self::Steps(Steps::parse(words, |text| Percent::read(text, p))?)
            }
            "periodic" => Self::Periodic(Periodic::parse_in_order(words)?),
            _ if first.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) => {
                Self::Random(Random::parse_in_order(&mut all)?)
            }
            _ => {
                return Err(SpecError::new(format!("unknown loss '{first}'"))
                    .near(first, names())
                    .allow(allowed()));
            }
        })
    }

    /// Refuses values out of bounds; code may have set them.
    ///
    /// # Errors
    /// Names the parameter and what is allowed.
    pub fn check(&self) -> Result<(), SpecError> {
        match self {
            Self::None | Self::Gemodel(_) | Self::Steps(_) => Ok(()),
            Self::Random(random) => random.check(),
            Self::State(model) => model.check(),
            Self::Periodic(periodic) => periodic.check(),
        }
    }

    /// False if no packet can be lost, which is also so of a random loss of 0 %: sweeps begin with it.
    pub fn may_lose(&self) -> bool {
        match self {
            Self::None => false,
            Self::Random(Random { p, rho: None }) => *p != Percent::ZERO,
            _ => true,
        }
    }

    pub fn build(&self) -> Loss {
        match self.clone() {
            Self::None => Loss::None,
            Self::Random(Random { p, rho: None }) if p == Percent::ZERO => Loss::None,
            Self::Random(Random { p, rho: None }) => Loss::Random { p: p.share() },
            Self::Random(Random { p, rho: Some(rho) }) => {
                Loss::Correlated { p: p.share(), rho: rho.share(), last: None }
            }
            Self::State(model) => Loss::FourState { chances: model.chances(), state: State::Gap },
            Self::Gemodel(Gemodel { p, r, loss_bad, loss_good }) => Loss::Gemodel {
                good: Moves { leave: p.share(), loss: loss_good.share() },
                bad: Moves { leave: r.share(), loss: loss_bad.share() },
                in_bad: false,
            },
            Self::Periodic(Periodic { n }) => Loss::Periodic { every: n, passed: 0 },
            Self::Steps(steps) => Loss::Steps(steps),
        }
    }

    /// The share of packets lost in the long run, if there is a closed form.
    pub fn stationary(&self) -> Option<f64> {
        match self {
            Self::None => Some(0.0),
            Self::Random(Random { p, rho: None }) => Some(p.share()),
            Self::Random(_) => None,
            Self::State(model) => Some(model.stationary()),
            Self::Gemodel(model) => Some(model.stationary()),
            Self::Periodic(Periodic { n }) => Some(1.0 / f64::from(*n)),
            Self::Steps(steps) => Some(steps.shares().map(|(p, part)| p.share() * part).sum()),
        }
    }
}

impl fmt::Display for LossConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let in_order = Style::InOrder;
        match self {
            Self::None => f.write_str("none"),
            Self::Random(Random { p, rho: None }) => p.fmt(f),
            Self::Random(random) => f.write_str(&random.written(in_order)),
            Self::State(model) => f.write_str(&four_state::Written::from(*model).written(in_order)),
            Self::Gemodel(model) => f.write_str(&gemodel::Written::from(*model).written(in_order)),
            Self::Periodic(periodic) => f.write_str(&periodic.written(in_order)),
            Self::Steps(steps) => steps.fmt(f),
        }
    }
}
