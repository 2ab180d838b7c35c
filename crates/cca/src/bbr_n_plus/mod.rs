//! BBR-n+: BBR version 3 that tells a receiver's limit from the network's in STARTUP.
//!
//! Only the abstract of its paper is public (Ahsan and Hussain, PLOS ONE 21(4), e0330972, 2026): it
//! "refines the startup exit by detecting receive window limitations". Rules and constants here are
//! therefore a reconstruction; the model's page says which and why. Without a receive window that
//! limits, every step is [`bbr3`]'s.

mod rounds;
mod smart_exit;
#[cfg(test)]
mod tests;

use alloc::vec::Vec;

use core::fmt;

use sojourn_core::param::{Style, join};
use sojourn_core::{Param, Params, Rate, Span, SpecError, Time, Words};

use crate::bbr3::{self, Bbr3};
use crate::{
    Ack, Algorithm, Congestion, Controller, Lost, Outputs, Quantum, Restart, Sent, Setup, Undo,
};
use smart_exit::{Rules, SmartExit};

/// The parameters of BBR-n+, and those of the draft's BBR version 3.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    rules: Rules,
    bbr: bbr3::Config,
}

impl Params for Config {
    const NAME: &'static str = Rules::NAME;
    const DOC: &'static str = Rules::DOC;
    const PARAMS: &'static [Param] = &join::<{ Rules::PARAMS.len() + bbr3::Config::PARAMS.len() }>(
        Rules::PARAMS,
        bbr3::Config::PARAMS,
    );

    fn accept(&mut self, word: &str, words: &mut Words<'_>) -> Result<bool, SpecError> {
        Ok(self.rules.accept(word, words)? || self.bbr.accept(word, words)?)
    }

    fn check(&self) -> Result<(), SpecError> {
        self.rules.check()?;
        self.bbr.check()
    }

    fn write(&self, style: Style, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rules.write(style, f)?;
        self.bbr.write(style, f)
    }
}

impl Algorithm for Config {
    type Controller = BbrNPlus;

    fn build(&self, setup: Setup) -> BbrNPlus {
        BbrNPlus {
            exit: SmartExit::new(self.rules.clone(), &setup),
            bbr: Bbr3::new(self.bbr.clone(), setup),
        }
    }

    fn phases(&self) -> Vec<&'static str> {
        self.bbr.phases()
    }
}

/// BBR version 3 with the smart exit.
#[derive(Clone, Debug)]
pub struct BbrNPlus {
    bbr: Bbr3,
    exit: SmartExit,
}

impl Controller for BbrNPlus {
    fn on_ack(&mut self, ack: &Ack) {
        self.bbr.hold_plateau(self.exit.holds_plateau(self.bbr.min_rtt()));
        self.bbr.update_model(ack);
        self.exit.follow(ack, &mut self.bbr);
        self.bbr.update_control_parameters(ack);
        self.exit.bound_burst(&mut self.bbr);
    }

    fn on_sent(&mut self, sent: &Sent) {
        self.bbr.on_sent(sent);
    }

    fn on_lost(&mut self, lost: &Lost) {
        self.bbr.on_lost(lost);
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        self.bbr.on_congestion(congestion);
    }

    fn on_recovered(&mut self, now: Time) {
        self.bbr.on_recovered(now);
    }

    fn on_undo(&mut self, undo: &Undo) {
        self.bbr.on_undo(undo);
    }

    fn on_restart(&mut self, restart: &Restart) {
        self.bbr.on_restart(restart);
    }

    fn on_unused_window(&mut self, used: u32) {
        self.bbr.on_unused_window(used);
    }

    fn cwnd(&self) -> u32 {
        self.bbr.cwnd()
    }

    fn ssthresh(&self) -> Option<u32> {
        self.bbr.ssthresh()
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.bbr.pacing_rate()
    }

    fn send_quantum(&self) -> Quantum {
        self.bbr.send_quantum()
    }

    fn uses_prr(&self) -> bool {
        self.bbr.uses_prr()
    }

    fn send_buffer_windows(&self) -> u32 {
        self.bbr.send_buffer_windows()
    }

    fn phase(&self) -> &'static str {
        self.bbr.phase()
    }

    fn outputs(&self) -> Outputs {
        self.bbr.outputs()
    }

    fn bandwidth(&self) -> Option<Rate> {
        self.bbr.bandwidth()
    }

    fn model_min_rtt(&self) -> Option<Span> {
        self.bbr.model_min_rtt()
    }

    fn extra_acked(&self) -> Option<u32> {
        self.bbr.extra_acked()
    }

    fn inflight_longterm(&self) -> Option<u32> {
        self.bbr.inflight_longterm()
    }

    fn round_count(&self) -> Option<u64> {
        self.bbr.round_count()
    }
}
