//! The Gilbert–Elliott model in `netem`'s letters: a good and a bad state, each with a loss of its own.

use sojourn_core::Param;
use sojourn_core::param::{Given, Maybe};

use crate::Percent;

sojourn_core::params! {
    /// The chances as they are written.
    pub(crate) struct Written: "gemodel", "Gilbert-Elliott, as netem's" {
        p: Percent as Given<Percent> = "", "Chance of going from the good state to the bad one";
        r: Option<Percent> as Maybe<Percent> = "1-p", "Chance of going back";
        loss_bad: Percent = Param::of::<Percent>("1-h", "100%", "Loss in the bad state");
        loss_good: Percent = Param::of::<Percent>("1-k", "0%", "Loss in the good state");
    }
}

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

impl From<Written> for Gemodel {
    fn from(written: Written) -> Self {
        let Written { p, r, loss_bad, loss_good } = written;
        Self { p, r: r.unwrap_or(p.rest()), loss_bad, loss_good }
    }
}

impl From<Gemodel> for Written {
    fn from(model: Gemodel) -> Self {
        let Gemodel { p, r, loss_bad, loss_good } = model;
        Self { p, r: Some(r), loss_bad, loss_good }
    }
}

impl Gemodel {
    pub(super) fn stationary(&self) -> f64 {
        // A chain that never moves stays in the good state, where it begins.
        let (p, r) = (self.p.share(), self.r.share());
        let bad = if p == 0.0 { 0.0 } else { p / (p + r) };
        bad * self.loss_bad.share() + (1.0 - bad) * self.loss_good.share()
    }
}

/// What may happen in one state of the Gilbert–Elliott model, by probability.
#[derive(Clone, Copy, Debug)]
pub struct Moves {
    pub(super) leave: f64,
    pub(super) loss: f64,
}
