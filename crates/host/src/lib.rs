//! End systems as state machines that are told the time: the two ends of a TCP connection that
//! people who know Linux recognise, and the applications above and beside it.
//!
//! Every machine is used alike: change it once (`on_packet`, `on_wake`), take packets with
//! `poll_transmit` until there are none, then ask `next_wake` when it wants to be called again.
//! [`Endpoint`] is what all of them have in common, and what one from outside implements.

#![cfg_attr(not(test), no_std)]

extern crate alloc;

pub mod apps;
mod bounds;
mod contents;
mod endpoint;
mod source;
pub mod tcp;

pub use contents::Contents;
pub use endpoint::{AppModel, Around, Endpoint, ExternalApp, FlowSetup, external};
