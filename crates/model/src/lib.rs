//! Closed forms: what published formulas predict, a file for each paper.
//!
//! [`formulas`] has them by name, for the command and for claims. A formula keeps its paper's letters. If the printed form is wrong, the corrected form is the
//! default and the printed one a labelled mode; the module says what differs and why.

#![cfg_attr(not(test), no_std)]

extern crate alloc;

pub mod anomaly;
mod aqm;
mod bbr;
pub mod bianchi;
mod dctcp;
mod formula;
pub mod ofdma;
mod registry;
mod response;
mod roots;
pub mod uora;
mod ware;

pub use formula::{Answer, Output};
pub use registry::formulas;
