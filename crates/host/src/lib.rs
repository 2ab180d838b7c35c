//! End systems as state machines that are told the time: the two ends of a TCP connection that
//! behaves as Linux's, and the applications over and beside TCP.
//!
//! Every machine is used alike: change it once (`on_packet`, `on_wake`), take packets with
//! `poll_transmit` until there are none, then ask `next_wake` when it must be called again.
//! [`Endpoint`] is the trait that an end from outside implements.

#![cfg_attr(not(test), no_std)]

extern crate alloc;

pub mod apps;
mod bounds;
mod contents;
mod endpoint;
pub mod offer;
mod source;
pub mod tcp;

pub use contents::Contents;
pub use endpoint::{AppModel, Around, Endpoint, Endpoints, ExternalApp, FlowSetup, external};
