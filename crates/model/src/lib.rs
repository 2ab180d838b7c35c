//! Closed forms: what published formulas predict, a file for each paper.
//!
//! A formula keeps its paper's letters. If the printed form is wrong, the corrected form is the
//! default and the printed one a labelled mode; the module says what differs and why.

#![cfg_attr(not(test), no_std)]

extern crate alloc;

pub mod anomaly;
pub mod bianchi;
pub mod ofdma;
mod roots;
pub mod uora;
