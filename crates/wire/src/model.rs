use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use sojourn_core::{Packet, PortId, Rate, Span, SpecError, StreamAddress};

use crate::{Carrier, Link, SwitchConfig};

/// A carrier with its parameters, checked and complete. A link is a carrier too, but links have a
/// list of their own, because nearly every port is a link.
#[derive(Clone, Debug, PartialEq)]
pub enum CarrierConfig {
    Switch(SwitchConfig),
    External(ExternalCarrier),
}

impl CarrierConfig {
    pub fn ports(&self) -> Vec<PortShape> {
        match self {
            Self::Switch(switch) => switch.ports().iter().map(PortShape::of).collect(),
            Self::External(carrier) => carrier.0.ports(),
        }
    }

    /// How many ports there are, which takes less to say than what they are.
    pub fn port_count(&self) -> usize {
        match self {
            Self::Switch(switch) => switch.ports().len(),
            Self::External(carrier) => carrier.0.port_count(),
        }
    }

    /// As [`CarrierModel::longest_packet`].
    pub fn longest_packet(&self) -> Option<u32> {
        match self {
            Self::Switch(_) => None,
            Self::External(carrier) => carrier.0.longest_packet(),
        }
    }

    /// What its ports are made of, in their order; `None` if they are no links.
    pub fn links(&self) -> Option<&[Link]> {
        match self {
            Self::Switch(switch) => Some(switch.ports()),
            Self::External(_) => None,
        }
    }

    /// Refuses values out of bounds; code may have set them.
    ///
    /// # Errors
    /// Names the port, the parameter and what is allowed.
    pub fn check(&self) -> Result<(), SpecError> {
        match self {
            Self::Switch(switch) => switch.ports().iter().try_for_each(Link::check),
            Self::External(carrier) => carrier.0.check(),
        }
    }

    /// An empty carrier; its ports follow `first`.
    pub fn build(&self, first: PortId, address: StreamAddress) -> Box<dyn Carrier<Packet>> {
        match self {
            Self::Switch(switch) => Box::new(switch.build(first, address)),
            Self::External(carrier) => carrier.0.build(first, address),
        }
    }
}

/// What is known of a port before anything runs.
#[derive(Clone, Debug, PartialEq)]
pub struct PortShape {
    /// The name of its queue, which no other queue of the scenario has.
    pub name: String,
    /// The least time from its queue to where packets come out, without the time to send them.
    pub delay: Span,
    /// The most that it can carry.
    pub rate: Rate,
    /// What it carries in the mean, if that is known before anything runs.
    pub mean: Option<Rate>,
}

impl PortShape {
    /// A port that always carries the same.
    pub fn new(name: impl Into<String>, rate: Rate, delay: Span) -> Self {
        Self { name: name.into(), delay, rate, mean: Some(rate) }
    }

    pub fn of(link: &Link) -> Self {
        Self {
            name: link.name.clone(),
            delay: link.delay,
            rate: link.rate.peak(),
            mean: link.rate.mean(),
        }
    }
}

/// A kind of carrier from outside of this workspace, with its parameters.
pub trait CarrierModel: Send + Sync {
    /// Refuses values out of bounds, before anything is built. One that can't be made with such
    /// values need not check again.
    ///
    /// # Errors
    /// Names the port, the parameter and what is allowed.
    fn check(&self) -> Result<(), SpecError> {
        Ok(())
    }

    fn ports(&self) -> Vec<PortShape>;

    /// As many as [`CarrierModel::ports`] has. It is asked for each flow, so a carrier of many ports says it without
    /// making them.
    fn port_count(&self) -> usize {
        self.ports().len()
    }

    /// Bytes of the longest IP packet that its ports carry, if there is a longest one. A packet that stands for several
    /// segments counts as one of them.
    fn longest_packet(&self) -> Option<u32> {
        None
    }

    /// An empty carrier; its ports follow `first`. What it draws at random comes from `address`.
    fn build(&self, first: PortId, address: StreamAddress) -> Box<dyn Carrier<Packet>>;

    /// Its name and parameters: two carriers with the same text are the same.
    fn canonical(&self) -> String;
}

/// A [`CarrierModel`] as part of a scenario.
#[derive(Clone)]
pub struct ExternalCarrier(pub Arc<dyn CarrierModel>);

impl PartialEq for ExternalCarrier {
    fn eq(&self, other: &Self) -> bool {
        self.0.canonical() == other.0.canonical()
    }
}

impl fmt::Debug for ExternalCarrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.canonical())
    }
}
