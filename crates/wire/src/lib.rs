//! Parts that take packets from one place to another.
//!
//! A [`Wire`] is one direction of a link: a queue, a transmitter and a line. It is generic over
//! what it carries, so that simulated packets and real bytes go through the same code.
//!
//! [`Carrier`] is the trait of everything that may lie between two hosts. A route is a list of
//! ports, and every port belongs to a carrier. [`CarrierKind`] is a kind of carrier that a
//! study file can name.

#![cfg_attr(not(test), no_std)]

extern crate alloc;

mod carried;
mod carrier;
mod kind;
mod link;
mod model;
pub mod suite;
mod switch;
mod wire;

pub use carried::Carried;
pub use carrier::{Books, Carrier, Turn};
pub use kind::{CarrierKind, Joined, Leads, NamedCarrier, Port, Site, carriers, external, kinds};
pub use link::{Link, Quoted};
pub use model::{CarrierConfig, CarrierModel, ExternalCarrier, PortShape};
pub use switch::{Sharing, Switch, SwitchConfig};
pub use wire::{Counts, Exit, Wire};
