//! The controllers that can be asked for by name: the built-in ones, a line each, and those from
//! outside.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;

use sojourn_core::param::Style;
use sojourn_core::{Ecn, Kind, Kinds, Rate, Span, SpecError};

use super::{Algorithm, Controller, Estimator, FeedbackKind, Setup, Stack};
use super::{aiortc, fixed, gcc, gcc_draft, nada, scream, scream_v2};
use crate::any::AnyParams;

/// Every built-in kind, in the order of the documentation.
pub fn algorithms() -> &'static [Kind<Config>] {
    const ALL: &[Kind<Config>] = &[
        kind::<gcc::Config>(),
        kind::<gcc_draft::Config>(),
        kind::<aiortc::Config>(),
        kind::<nada::Config>(),
        kind::<scream::Config>(),
        kind::<scream_v2::Config>(),
        kind::<fixed::Config>(),
    ];
    ALL
}

/// The built-in kinds, to which others can be added.
pub fn kinds() -> Kinds<Config> {
    Kinds::new("rate controller", algorithms().iter().copied())
}

/// A kind from outside this crate, for [`Kinds::add`].
pub const fn external<A: Algorithm>() -> Kind<Config> {
    kind::<A>()
}

const fn kind<A: Algorithm>() -> Kind<Config> {
    Kind::of::<A>(|words| Ok(Config(Arc::new(A::parse(words)?))))
}

/// A controller's checked and complete parameters.
#[derive(Clone, Debug)]
pub struct Config(Arc<dyn AnyAlgorithm>);

impl Config {
    pub fn new(algorithm: impl Algorithm) -> Self {
        Self(Arc::new(algorithm))
    }

    pub fn name(&self) -> &'static str {
        self.0.name()
    }

    /// Refuses values out of bounds, which code may have set.
    ///
    /// # Errors
    /// Names the parameter, its value and what is allowed.
    pub fn check(&self) -> Result<(), SpecError> {
        self.0.check()
    }

    /// The text that stands for it in a run's identity: the name, and the parameters that are not the default.
    pub fn canonical(&self) -> String {
        self.0.written(Style::Canonical)
    }

    pub fn build(&self, setup: Setup) -> Box<dyn Controller> {
        self.0.build(setup)
    }

    pub fn estimator(&self, setup: &Setup) -> Option<Box<dyn Estimator>> {
        self.0.estimator(setup)
    }

    /// Refuses parameters that contradict each other.
    ///
    /// # Errors
    /// Names both, and what is allowed.
    pub fn agree(&self) -> Result<(), SpecError> {
        self.0.agree()
    }

    pub fn kept_rate(&self) -> Option<Rate> {
        self.0.kept_rate()
    }

    pub fn feedback(&self) -> FeedbackKind {
        self.0.feedback()
    }

    /// Whether a call's receiver may report so.
    pub fn works_with(&self, feedback: FeedbackKind) -> bool {
        let made_for = self.feedback();
        feedback == made_for
            || feedback.is_per_packet() && made_for.is_per_packet()
            || feedback == FeedbackKind::ReceiverReports && self.0.works_with_receiver_reports()
    }

    pub fn feedback_interval(&self) -> Span {
        self.0.feedback_interval()
    }

    pub fn feedback_packets(&self) -> Option<u32> {
        self.0.feedback_packets()
    }

    pub fn pacer_burst(&self) -> Span {
        self.0.pacer_burst()
    }

    pub fn pacer_limit(&self) -> Option<Span> {
        self.0.pacer_limit()
    }

    pub fn stack(&self) -> Stack {
        self.0.stack()
    }

    pub fn has_adjuster(&self) -> bool {
        self.0.has_adjuster()
    }

    pub fn counts_payload(&self) -> bool {
        self.0.counts_payload()
    }

    pub fn ecn(&self) -> Ecn {
        self.0.ecn()
    }
}

impl PartialEq for Config {
    fn eq(&self, other: &Self) -> bool {
        self.0.equals(other.0.as_any())
    }
}

impl fmt::Display for Config {
    /// As a study file has it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.written(Style::Equals))
    }
}

/// An [`Algorithm`] whose type is not known here.
trait AnyAlgorithm: AnyParams {
    fn build(&self, setup: Setup) -> Box<dyn Controller>;
    fn estimator(&self, setup: &Setup) -> Option<Box<dyn Estimator>>;
    fn agree(&self) -> Result<(), SpecError>;
    fn kept_rate(&self) -> Option<Rate>;
    fn feedback(&self) -> FeedbackKind;
    fn works_with_receiver_reports(&self) -> bool;
    fn feedback_interval(&self) -> Span;
    fn feedback_packets(&self) -> Option<u32>;
    fn pacer_burst(&self) -> Span;
    fn pacer_limit(&self) -> Option<Span>;
    fn stack(&self) -> Stack;
    fn has_adjuster(&self) -> bool;
    fn counts_payload(&self) -> bool;
    fn ecn(&self) -> Ecn;
}

impl<A: Algorithm> AnyAlgorithm for A {
    fn build(&self, setup: Setup) -> Box<dyn Controller> {
        Algorithm::build(self, setup)
    }

    fn estimator(&self, setup: &Setup) -> Option<Box<dyn Estimator>> {
        Algorithm::estimator(self, setup)
    }

    fn agree(&self) -> Result<(), SpecError> {
        Algorithm::agree(self)
    }

    fn kept_rate(&self) -> Option<Rate> {
        Algorithm::kept_rate(self)
    }

    fn feedback(&self) -> FeedbackKind {
        Algorithm::feedback(self)
    }

    fn works_with_receiver_reports(&self) -> bool {
        Algorithm::works_with_receiver_reports(self)
    }

    fn feedback_interval(&self) -> Span {
        Algorithm::feedback_interval(self)
    }

    fn feedback_packets(&self) -> Option<u32> {
        Algorithm::feedback_packets(self)
    }

    fn pacer_burst(&self) -> Span {
        Algorithm::pacer_burst(self)
    }

    fn pacer_limit(&self) -> Option<Span> {
        Algorithm::pacer_limit(self)
    }

    fn stack(&self) -> Stack {
        Algorithm::stack(self)
    }

    fn has_adjuster(&self) -> bool {
        Algorithm::has_adjuster(self)
    }

    fn counts_payload(&self) -> bool {
        Algorithm::counts_payload(self)
    }

    fn ecn(&self) -> Ecn {
        Algorithm::ecn(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Outputs;

    sojourn_core::params! {
        /// A rate that follows the receiver's estimate.
        struct Follows: "follows", "what the receiver says" {
            first: Rate = "300kbit", "the rate until then";
        }
    }

    struct Following(Rate);

    impl Algorithm for Follows {
        fn build(&self, setup: Setup) -> Box<dyn Controller> {
            Box::new(Following(setup.start_rate.unwrap_or(self.first)))
        }

        fn feedback(&self) -> FeedbackKind {
            FeedbackKind::Remb
        }
    }

    impl Controller for Following {
        fn on_remb(&mut self, _now: sojourn_core::Time, rate: Rate) {
            self.0 = rate;
        }

        fn outputs(&self) -> Outputs {
            Outputs {
                target: self.0,
                pacing: None,
                padding: Rate::ZERO,
                window: None,
                phase: "follows",
            }
        }
    }

    #[test]
    fn a_controller_from_outside_is_read_printed_and_built_like_one_of_here() {
        let mut kinds = kinds();
        kinds.add(external::<Follows>()).expect("its name is free");
        let config = kinds.parse("follows first=1mbit").expect("it is registered");
        assert_eq!(alloc::format!("{config}"), "follows first=1mbit");
        assert_eq!(kinds.parse("follows first=1mbit"), Ok(config.clone()));
        assert_ne!(kinds.parse("follows"), Ok(config));
        assert_eq!(kinds.parse("folows").expect_err("misspelt").nearest(), Some("follows"));
    }
}
