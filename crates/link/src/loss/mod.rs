//! Loss on the medium, decided packet by packet.
//!
//! The processes of Linux's `netem`, by their documented behaviour: independent loss, loss with
//! correlated random numbers, the four-state chain (`state`) and Gilbert–Elliott (`gemodel`). And
//! the loss of every n-th packet, which makes tests exact.

#[cfg(test)]
mod tests;

use alloc::format;
use core::fmt;

use sojourn_core::{Param, ParamKind, SpecError, Stream, Time, Words};

use crate::{Model, Steps};

/// A probability as `netem` writes it, in percent.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Percent(f64);

impl Percent {
    pub const ZERO: Self = Self(0.0);
    pub const ALL: Self = Self(100.0);

    /// `None` outside 0 to 100.
    pub fn new(percent: f64) -> Option<Self> {
        (0.0..=100.0).contains(&percent).then_some(Self(percent))
    }

    pub fn share(self) -> f64 {
        self.0 / 100.0
    }

    fn rest(self) -> Self {
        Self(100.0 - self.0)
    }

    /// Reads parameter `name`. `tc` reads a number without `%` as percent and others read it as a
    /// share, so it is refused.
    pub(crate) fn parse(name: &str, text: &str) -> Result<Self, SpecError> {
        let number = text.strip_suffix('%').unwrap_or(text).parse().ok();
        match number.and_then(Self::new) {
            Some(percent) if text.ends_with('%') || percent == Self::ZERO => Ok(percent),
            Some(_) => {
                Err(SpecError::new(format!("{name}: '{text}' has no unit; write '{text}%'"))
                    .allow([ALLOWED]))
            }
            None => Err(SpecError::new(format!("{name}: '{text}' is not a share in percent"))
                .allow([ALLOWED])),
        }
    }
}

/// The rounding error that a sum of two shares may have.
const ROUNDING: f64 = 1e-9;

const ALLOWED: &str = "a number from 0% to 100%";

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.0)
    }
}

/// A checked loss process.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum LossConfig {
    #[default]
    None,
    Random {
        p: Percent,
    },
    /// Each random number carries the share `rho` of the one before.
    Correlated {
        p: Percent,
        rho: Percent,
    },
    State(FourState),
    Gemodel(Gemodel),
    /// Every `every`-th packet.
    Periodic {
        every: u32,
    },
    /// Independent loss that changes at stated times.
    Steps(Steps<Percent>),
}

/// The four-state model in `netem`'s letters: state 1 delivers within a gap, 2 delivers within a
/// burst, 3 loses within a burst, 4 loses a single packet within a gap and returns to 1.
///
/// The probabilities of leaving one state add up to at most 100 %.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FourState {
    /// From the gap to a loss in a burst.
    p13: Percent,
    /// From a loss in a burst to the gap.
    p31: Percent,
    /// From a loss in a burst to a delivery in it.
    p32: Percent,
    /// From a delivery in a burst to a loss in it.
    p23: Percent,
    /// From the gap to a single loss.
    p14: Percent,
}

/// The Gilbert–Elliott model in `netem`'s letters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gemodel {
    /// From good to bad.
    pub p: Percent,
    /// From bad to good.
    pub r: Percent,
    /// 1-h: loss in the bad state.
    pub loss_bad: Percent,
    /// 1-k: loss in the good state.
    pub loss_good: Percent,
}

/// The names by which [`LossConfig::parse`] knows the processes.
pub(crate) const MODELS: &[Model] = &[
    Model { name: "none", doc: "No loss", params: &[] },
    Model {
        name: "random",
        doc: "Independent loss, as netem's; '1%' alone means this",
        params: &[
            Param::new("p", ParamKind::Share, "", "Share of the packets lost"),
            Param::new(
                "rho",
                ParamKind::Share,
                "0%",
                "Weight of the random number before, as netem's correlation",
            ),
        ],
    },
    Model {
        name: "state",
        doc: "A chain of four states, as netem's",
        params: &[
            Param::new(
                "p13",
                ParamKind::Share,
                "",
                "Chance of going from the gap (1) to a loss in a burst (3)",
            ),
            Param::new(
                "p31",
                ParamKind::Share,
                "1-p13",
                "Chance of going from a loss in a burst back to the gap",
            ),
            Param::new(
                "p32",
                ParamKind::Share,
                "0%",
                "Chance of going from a loss in a burst to a delivery in it (2)",
            ),
            Param::new(
                "p23",
                ParamKind::Share,
                "100%",
                "Chance of going from a delivery in a burst to a loss in it",
            ),
            Param::new(
                "p14",
                ParamKind::Share,
                "0%",
                "Chance of going from the gap to a single loss (4)",
            ),
        ],
    },
    Model {
        name: "gemodel",
        doc: "Gilbert-Elliott, as netem's",
        params: &[
            Param::new(
                "p",
                ParamKind::Share,
                "",
                "Chance of going from the good state to the bad one",
            ),
            Param::new("r", ParamKind::Share, "1-p", "Chance of going back"),
            Param::new("1-h", ParamKind::Share, "100%", "Loss in the bad state"),
            Param::new("1-k", ParamKind::Share, "0%", "Loss in the good state"),
        ],
    },
    Model {
        name: "periodic",
        doc: "Every n-th packet is lost, for analytic tests",
        params: &[Param::new("n", ParamKind::Count, "", "Packets from one loss to the next")],
    },
    Model {
        name: "steps",
        doc: "Independent loss that changes at stated times: steps 0% 10s 5% 2s; 'end hold' lets the \
              last one stay",
        params: &[Param::new(
            "end",
            ParamKind::Choice,
            "wrap",
            "What follows the end: 'wrap', 'hold'",
        )],
    },
];

impl LossConfig {
    /// Reads `none`, `1%`, `random 1% 25%`, `state 1% 10% 5% 50% 0.1%`, `gemodel 1% 10% 70% 0.1%`
    /// `periodic 100` or `steps 0% 10s 5% 2s`. Values come in the order of the parameters, as in `netem`, and the word
    /// `loss` may stand before them as it does there.
    ///
    /// # Errors
    /// An unknown process, a missing or surplus value, one out of range, or chances of leaving one
    /// state that exceed 100 % together. A share without `%` is
    /// refused, because `tc` reads it as percent.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        let words = &mut Words::new(text);
        let names = || MODELS.iter().map(|model| model.name);
        let allowed = || ["1%"].into_iter().chain(names());
        let mut first = words.next();
        if first == Some("loss") {
            first = words.next();
        }
        let first = first
            .ok_or_else(|| SpecError::new("no loss is named; write 'none'").allow(allowed()))?;
        let config = match first {
            "none" => Self::None,
            "random" => {
                let p = Percent::parse("p", words.value("p")?)?;
                Self::random(p, words)?
            }
            "state" => Self::State(FourState::parse(words)?),
            "gemodel" => Self::Gemodel(Gemodel::parse(words)?),
            "steps" => Self::Steps(Steps::parse(words, |text| Percent::parse("p", text))?),
            "periodic" => Self::Periodic { every: words.count("n", 1, u32::MAX.into())? as u32 },
            _ if first.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) => {
                Self::random(Percent::parse("p", first)?, words)?
            }
            _ => {
                return Err(SpecError::new(format!("unknown loss '{first}'"))
                    .near(first, names())
                    .allow(allowed()));
            }
        };
        match words.next() {
            None => Ok(config),
            Some(surplus) => Err(SpecError::new(format!("'{surplus}' follows a complete loss"))),
        }
    }

    fn random(p: Percent, words: &mut Words<'_>) -> Result<Self, SpecError> {
        Ok(match words.next() {
            None => Self::Random { p },
            Some(text) => Self::Correlated { p, rho: Percent::parse("rho", text)? },
        })
    }

    pub fn build(&self) -> Loss {
        match self.clone() {
            Self::None => Loss::None,
            Self::Random { p } => Loss::Random { p: p.share() },
            Self::Correlated { p, rho } => {
                Loss::Correlated { p: p.share(), rho: rho.share(), last: None }
            }
            Self::State(FourState { p13, p31, p32, p23, p14 }) => Loss::FourState {
                chances: Chances {
                    p13: p13.share(),
                    p31: p31.share(),
                    p32: p32.share(),
                    p23: p23.share(),
                    p14: p14.share(),
                },
                state: State::Gap,
            },
            Self::Gemodel(Gemodel { p, r, loss_bad, loss_good }) => Loss::Gemodel {
                good: Moves { leave: p.share(), loss: loss_good.share() },
                bad: Moves { leave: r.share(), loss: loss_bad.share() },
                in_bad: false,
            },
            Self::Periodic { every } => Loss::Periodic { every, passed: 0 },
            Self::Steps(steps) => Loss::Steps(steps),
        }
    }

    /// The share of packets lost in the long run, if there is a closed form.
    pub fn stationary(&self) -> Option<f64> {
        match self {
            Self::None => Some(0.0),
            Self::Random { p } => Some(p.share()),
            Self::Correlated { .. } => None,
            Self::State(model) => Some(model.stationary()),
            Self::Gemodel(model) => Some(model.stationary()),
            Self::Periodic { every } => Some(1.0 / f64::from(*every)),
            Self::Steps(steps) => Some(steps.shares().map(|(p, part)| p.share() * part).sum()),
        }
    }
}

impl FourState {
    fn parse(words: &mut Words<'_>) -> Result<Self, SpecError> {
        let p13 = Percent::parse("p13", words.value("p13")?)?;
        let mut optional = |name: &str, default: Percent| {
            words.next().map_or(Ok(default), |text| Percent::parse(name, text))
        };
        let model = Self {
            p13,
            p31: optional("p31", p13.rest())?,
            p32: optional("p32", Percent::ZERO)?,
            p23: optional("p23", Percent::ALL)?,
            p14: optional("p14", Percent::ZERO)?,
        };
        let at_most_all = |names: &str, a: Percent, b: Percent| match a.0 + b.0 <= 100.0 + ROUNDING
        {
            true => Ok(()),
            false => Err(SpecError::new(format!("state: {names} are {a} and {b}"))
                .allow(["up to 100% together: they leave one state"])),
        };
        at_most_all("p13 and p14", model.p13, model.p14)?;
        at_most_all("p31 and p32", model.p31, model.p32)?;
        Ok(model)
    }

    /// From the balance of transitions between the states: 1 and 3 through p13 and p31, 2 and 3
    /// through p23 and p32, 1 and 4 through p14 and the certain return.
    fn stationary(&self) -> f64 {
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

impl Gemodel {
    fn parse(words: &mut Words<'_>) -> Result<Self, SpecError> {
        let p = Percent::parse("p", words.value("p")?)?;
        let mut optional = |name: &str, default: Percent| {
            words.next().map_or(Ok(default), |text| Percent::parse(name, text))
        };
        Ok(Self {
            p,
            r: optional("r", p.rest())?,
            loss_bad: optional("1-h", Percent::ALL)?,
            loss_good: optional("1-k", Percent::ZERO)?,
        })
    }

    fn stationary(&self) -> f64 {
        // A chain that never moves stays in the good state, where it begins.
        let (p, r) = (self.p.share(), self.r.share());
        let bad = if p == 0.0 { 0.0 } else { p / (p + r) };
        bad * self.loss_bad.share() + (1.0 - bad) * self.loss_good.share()
    }
}

impl fmt::Display for LossConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Random { p } => write!(f, "{p}"),
            Self::Correlated { p, rho } => write!(f, "random {p} {rho}"),
            Self::State(FourState { p13, p31, p32, p23, p14 }) => {
                write!(f, "state {p13} {p31} {p32} {p23} {p14}")
            }
            Self::Gemodel(Gemodel { p, r, loss_bad, loss_good }) => {
                write!(f, "gemodel {p} {r} {loss_bad} {loss_good}")
            }
            Self::Periodic { every } => write!(f, "periodic {every}"),
            Self::Steps(steps) => steps.fmt(f),
        }
    }
}

/// The state of a loss process.
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

/// The chances of the four-state model, by their netem letters.
#[derive(Clone, Copy, Debug)]
pub struct Chances {
    p13: f64,
    p31: f64,
    p32: f64,
    p23: f64,
    p14: f64,
}

/// States 1 to 4 of the four-state model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Gap,
    DeliveryInBurst,
    LossInBurst,
    LossInGap,
}

/// What may happen in one state of the Gilbert–Elliott model, by probability.
#[derive(Clone, Copy, Debug)]
pub struct Moves {
    leave: f64,
    loss: f64,
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

impl State {
    /// The state in which the next packet is: one draw for each packet.
    fn next(self, chances: &Chances, random: &mut Stream) -> Self {
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
