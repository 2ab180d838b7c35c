//! A scalable controller if the ends agreed on the feedback that it needs, otherwise Reno.

use crate::pass_on::pass_on;
use crate::reno::{self, Reno};
use crate::{Controller, Setup};

/// The controller of a connection that asked for `C`.
#[derive(Clone, Debug)]
pub enum OrReno<C> {
    Scalable(C),
    /// The other side cannot give the feedback.
    Reno(Reno),
}

impl<C> OrReno<C> {
    pub(crate) fn reno(setup: Setup) -> Self {
        Self::Reno(Reno::new(reno::Config::default(), setup))
    }
}

macro_rules! either {
    ($self:expr, $inner:ident => $call:expr) => {
        match $self {
            OrReno::Scalable($inner) => $call,
            OrReno::Reno($inner) => $call,
        }
    };
}

impl<C: Controller> Controller for OrReno<C> {
    pass_on!(either);
}
