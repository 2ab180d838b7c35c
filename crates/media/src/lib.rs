//! Real-time media in virtual time: a call, a cloud game, a shared screen.
//!
//! A [`source`] makes frames, a path packetises, paces and repairs them, a rate controller
//! ([`control`]) decides from feedback how many bits the source may make, and a playout decides when
//! the viewer sees what.

#![cfg_attr(not(test), no_std)]

extern crate alloc;

mod any;
pub mod call;
pub mod control;
mod fec;
mod receive;
pub mod rtcp;
mod rtp;
mod send;
pub mod source;
