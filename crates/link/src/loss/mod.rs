//! Loss on the medium, decided packet by packet.
//!
//! The processes of Linux's `netem`, described by their documented behaviour: independent loss,
//! loss with its correlated random numbers, and Gilbert–Elliott (`gemodel`). And the loss of every
//! n-th packet, which makes tests exact.

#[cfg(test)]
mod tests;

use std::fmt;

use sojourn_core::{Param, ParamKind, SpecError, Stream, Words};

use crate::Model;

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

    /// Reads parameter `name`. `tc` reads a number without `%` as percent and others as a share,
    /// so it is refused rather than guessed at.
    fn parse(name: &str, text: &str) -> Result<Self, SpecError> {
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

const ALLOWED: &str = "a number from 0% to 100%";

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.0)
    }
}

/// A checked loss process.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
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
    Gemodel(Gemodel),
    /// Every `every`-th packet.
    Periodic {
        every: u32,
    },
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
            Param {
                name: "p",
                kind: ParamKind::Share,
                default: "",
                doc: "Share of the packets lost",
            },
            Param {
                name: "rho",
                kind: ParamKind::Share,
                default: "0%",
                doc: "Weight of the random number before, as netem's correlation",
            },
        ],
    },
    Model {
        name: "gemodel",
        doc: "Gilbert-Elliott, as netem's",
        params: &[
            Param {
                name: "p",
                kind: ParamKind::Share,
                default: "",
                doc: "Chance of going from the good state to the bad one",
            },
            Param {
                name: "r",
                kind: ParamKind::Share,
                default: "1-p",
                doc: "Chance of going back",
            },
            Param {
                name: "1-h",
                kind: ParamKind::Share,
                default: "100%",
                doc: "Loss in the bad state",
            },
            Param {
                name: "1-k",
                kind: ParamKind::Share,
                default: "0%",
                doc: "Loss in the good state",
            },
        ],
    },
    Model {
        name: "periodic",
        doc: "Every n-th packet is lost, for analytic tests",
        params: &[Param {
            name: "n",
            kind: ParamKind::Count,
            default: "",
            doc: "Packets from one loss to the next",
        }],
    },
];

impl LossConfig {
    /// Reads `none`, `1%`, `random 1% 25%`, `gemodel 1% 10% 70% 0.1%` or `periodic 100`. Values
    /// come in the order of the parameters, as in `netem`.
    ///
    /// # Errors
    /// An unknown process, a missing or surplus value, or one out of range. A share without `%` is
    /// refused, because `tc` reads it as percent.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        let words = &mut Words::new(text);
        let names = || MODELS.iter().map(|model| model.name);
        let allowed = || ["1%"].into_iter().chain(names());
        let first = words
            .next()
            .ok_or_else(|| SpecError::new("no loss is named; write 'none'").allow(allowed()))?;
        let config = match first {
            "none" => Self::None,
            "random" => {
                let p = Percent::parse("p", words.value("p")?)?;
                Self::random(p, words)?
            }
            "gemodel" => Self::Gemodel(Gemodel::parse(words)?),
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
        match *self {
            Self::None => Loss::None,
            Self::Random { p } => Loss::Random { p: p.share() },
            Self::Correlated { p, rho } => {
                Loss::Correlated { p: p.share(), rho: rho.share(), last: None }
            }
            Self::Gemodel(Gemodel { p, r, loss_bad, loss_good }) => Loss::Gemodel {
                good: Moves { leave: p.share(), loss: loss_good.share() },
                bad: Moves { leave: r.share(), loss: loss_bad.share() },
                in_bad: false,
            },
            Self::Periodic { every } => Loss::Periodic { every, passed: 0 },
        }
    }

    /// The share of packets lost in the long run, where a closed form exists.
    pub fn stationary(&self) -> Option<f64> {
        match self {
            Self::None => Some(0.0),
            Self::Random { p } => Some(p.share()),
            Self::Correlated { .. } => None,
            Self::Gemodel(model) => Some(model.stationary()),
            Self::Periodic { every } => Some(1.0 / f64::from(*every)),
        }
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
        // A chain that never moves stays in the good state, in which it begins.
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
            Self::Gemodel(Gemodel { p, r, loss_bad, loss_good }) => {
                write!(f, "gemodel {p} {r} {loss_bad} {loss_good}")
            }
            Self::Periodic { every } => write!(f, "periodic {every}"),
        }
    }
}

/// A loss process under way.
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
}

/// What may happen in one state of the Gilbert–Elliott model, by probability.
#[derive(Clone, Copy, Debug)]
pub struct Moves {
    leave: f64,
    loss: f64,
}

impl Loss {
    /// Whether the next packet is lost.
    #[inline(always)]
    pub fn loses(&mut self, random: &mut Stream) -> bool {
        // Most links lose nothing: that costs a comparison and no call.
        !matches!(self, Self::None) && self.draw(random)
    }

    #[inline(never)]
    fn draw(&mut self, random: &mut Stream) -> bool {
        match self {
            Self::None => false,
            Self::Random { p } => random.chance(*p),
            Self::Correlated { p, rho, last } => {
                let before = last.unwrap_or_else(|| random.unit());
                let value = random.unit() * (1.0 - *rho) + before * *rho;
                *last = Some(value);
                value < *p
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
