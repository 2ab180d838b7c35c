//! What changes in the world when a sender enters a phase of its congestion controller.

use alloc::format;
use alloc::string::String;

use sojourn_core::{FlowId, PortId, Rate, Span, SpecError, is_phase};
use sojourn_host::apps::BulkConfig;
use sojourn_link::{LossConfig, RateConfig};

use crate::{App, Flow, Scenario, Traffic, short};

/// Something changes at a moment that a sender determines.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    pub when: When,
    pub what: What,
}

/// A sender enters a phase.
#[derive(Clone, Debug, PartialEq)]
pub struct When {
    pub flow: FlowId,
    /// As [`is_phase`] compares it.
    pub phase: String,
    /// Which time it is entered, from 1.
    pub occurrence: u32,
    /// How long after that the change comes.
    pub after: Span,
}

/// What changes.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// Of a link with a fixed rate.
    Rate(PortId, Rate),
    /// Loss on the medium, and propagation, of a link.
    Loss(PortId, LossConfig),
    Delay(PortId, Span),
    /// A flow starts, and not before.
    Start(FlowId),
    /// An application with a connection of its own offers nothing more.
    Stop(FlowId),
    /// A bulk application without an end writes nothing for so long.
    Pause(FlowId, Span),
    /// It writes at this rate, or, if that is unlimited, as much as fits.
    Write(FlowId, Rate),
}

/// Which part of a [`Change`] is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangePart {
    /// The flow or the phase that is waited for.
    When,
    Occurrence,
    After,
    What,
}

impl Change {
    /// The flow that it starts.
    pub fn starts(&self) -> Option<FlowId> {
        match self.what {
            What::Start(flow) => Some(flow),
            _ => None,
        }
    }
}

impl Scenario {
    /// What a change waits for, in words.
    pub fn moment(&self, when: &When) -> String {
        let name = self.flows.get(when.flow.index()).map_or("", |flow| &flow.name);
        let mut text = format!("'{name} enters {}'", when.phase);
        if when.occurrence != 1 {
            text += &format!(" for the {}th time", when.occurrence);
        }
        if !when.after.is_zero() {
            text += &format!(" and {} more", when.after);
        }
        text
    }

    /// Whether a change waits for the flow to enter a phase.
    pub fn is_watched(&self, flow: FlowId) -> bool {
        self.changes.iter().any(|change| change.when.flow == flow)
    }

    /// Whether packets of the port may be lost on the medium, now or after a change.
    pub fn may_lose(&self, port: PortId) -> bool {
        self.changes.iter().any(|change| matches!(change.what, What::Loss(own, _) if own == port))
    }

    /// Whether a change may set the rate of the port's link.
    pub fn changes_rate(&self, port: PortId) -> bool {
        self.changes.iter().any(|change| matches!(change.what, What::Rate(own, _) if own == port))
    }

    /// Refuses a change that can't come, or that can't be made.
    ///
    /// # Errors
    /// The part that is wrong, and what is allowed.
    pub fn check_change(&self, change: &Change) -> Result<(), (ChangePart, SpecError)> {
        let Change { when, what } = change;
        self.check_phase(when).map_err(|error| (ChangePart::When, error))?;
        if when.occurrence == 0 {
            let problem = SpecError::new("occurrence is 0").allow(["1 for the first time, 2 …"]);
            return Err((ChangePart::Occurrence, problem));
        }
        short("after", when.after).map_err(|error| (ChangePart::After, error))?;
        self.check_what(what, when).map_err(|error| (ChangePart::What, error))
    }

    fn check_phase(&self, When { flow, phase, .. }: &When) -> Result<(), SpecError> {
        let flow = self.changed_flow(*flow)?;
        let Some((_, cca)) = flow.lone_connection() else {
            let problem = format!("flow '{}' has no phases", flow.name);
            let lone = self.flows.iter().filter(|flow| flow.lone_connection().is_some());
            let lone = lone.map(|flow| format!("'{}'", flow.name));
            return Err(SpecError::new(problem)
                .allow(lone.chain(["a flow with app = 'bulk' or 'on_off'".into()])));
        };
        let phases = cca.phases();
        if phases.is_empty() {
            let problem = format!("'{}' does not say which phases it has", cca.name());
            return Err(SpecError::new(problem)
                .allow(["a congestion control whose Algorithm has phases()"]));
        }
        if !phases.iter().any(|known| is_phase(known, phase)) {
            let problem = format!("'{}' has no phase '{phase}'", cca.name());
            return Err(SpecError::new(problem).near(phase, phases.iter().copied()).allow(phases));
        }
        Ok(())
    }

    fn check_what(&self, what: &What, when: &When) -> Result<(), SpecError> {
        match what {
            What::Rate(port, rate) => {
                let link = self.changed_link(*port)?;
                if !matches!(link.rate, RateConfig::Fixed { .. }) {
                    let problem = format!("the rate of '{}' is not fixed", link.name);
                    return Err(SpecError::new(problem)
                        .allow(["a link whose rate is one value, such as '100mbit'"]));
                }
                if rate.is_unlimited() {
                    return Err(SpecError::new("the new rate of a link is unlimited")
                        .allow(["a rate such as '90mbit'"]));
                }
                link.queue.check_on(None).map_err(|error| error.within(&link.name))?;
                RateConfig::fixed(*rate).map(|_| ())
            }
            What::Loss(port, loss) => {
                self.changed_link(*port)?;
                loss.check()
            }
            What::Delay(port, delay) => {
                self.changed_link(*port)?;
                short("delay", *delay)
            }
            What::Start(flow) => self.check_start(*flow, when),
            What::Stop(flow) => {
                let flow = self.changed_flow(*flow)?;
                match flow.lone_connection() {
                    Some((
                        Traffic::Bulk(BulkConfig { bytes: None, .. }) | Traffic::OnOff(_),
                        _,
                    )) => Ok(()),
                    _ => {
                        Err(SpecError::new(format!("flow '{}' ends by itself", flow.name)).allow([
                            "a flow with app = 'bulk' and no 'bytes'",
                            "one with app = 'on_off'",
                        ]))
                    }
                }
            }
            What::Pause(flow, length) => {
                short("pause", *length)?;
                self.check_writer(*flow)
            }
            What::Write(flow, rate) => {
                self.check_writer(*flow)?;
                match rate.is_unlimited() {
                    true => Ok(()),
                    false => RateConfig::fixed(*rate).map(|_| ()),
                }
            }
        }
    }

    fn check_start(&self, flow: FlowId, when: &When) -> Result<(), SpecError> {
        let own = self.changed_flow(flow)?;
        if when.flow == flow {
            let problem = format!("flow '{}' waits for itself", own.name);
            return Err(SpecError::new(problem).allow(["a phase of another flow"]));
        }
        if !own.start.is_zero() {
            let problem = format!("flow '{}' starts at {} already", own.name, own.start);
            return Err(SpecError::new(problem).allow(["a flow without 'start'"]));
        }
        if self.changes.iter().filter(|change| change.starts() == Some(flow)).count() > 1 {
            let problem = format!("flow '{}' starts more than once", own.name);
            return Err(SpecError::new(problem).allow(["one change that starts it"]));
        }
        Ok(())
    }

    /// An application whose writing can be changed.
    fn check_writer(&self, flow: FlowId) -> Result<(), SpecError> {
        let flow = self.changed_flow(flow)?;
        match flow.lone_connection() {
            Some((Traffic::Bulk(BulkConfig { bytes: None, .. }), _)) => Ok(()),
            _ => Err(SpecError::new(format!("flow '{}' writes as it has planned", flow.name))
                .allow(["a flow with app = 'bulk' and no 'bytes'"])),
        }
    }

    fn changed_flow(&self, flow: FlowId) -> Result<&Flow, SpecError> {
        let missing = || SpecError::new(format!("flow {} is not there", flow.0));
        self.flows.get(flow.index()).ok_or_else(missing)
    }

    fn changed_link(&self, port: PortId) -> Result<&sojourn_wire::Link, SpecError> {
        let missing = || {
            SpecError::new(format!("port {} is no link", port.0))
                .allow(self.links.iter().map(|link| &link.name))
        };
        self.links.get(port.index()).ok_or_else(missing)
    }
}

impl Flow {
    /// What the flow writes, and its congestion control, if it is one TCP connection.
    pub fn lone_connection(&self) -> Option<(&Traffic, &sojourn_cca::Config)> {
        match &self.app {
            App::Tcp { traffic: traffic @ (Traffic::Bulk(_) | Traffic::OnOff(_)), cca, .. } => {
                Some((traffic, cca))
            }
            _ => None,
        }
    }
}
