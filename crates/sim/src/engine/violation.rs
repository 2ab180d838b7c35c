//! An invariant that a run broke.

use alloc::string::String;

use sojourn_core::{FlowId, PortId, Time};
use sojourn_wire::Books;

/// An invariant that a run broke.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Violation {
    #[error(
        "at {at}: {sent} bytes sent, but {arrived} arrived, {dropped} dropped and {inside} still inside"
    )]
    Conservation { at: Time, sent: u64, arrived: u64, dropped: u64, inside: u64 },
    #[error("at {at}: port {} has other bytes than were offered to it: {books:?}", port.0)]
    PortConservation { at: Time, port: PortId, books: Books },
    #[error(
        "at {at}: flow {flow} has acknowledged segment {una} of {next} received and {sent} sent"
    )]
    Sequence { at: Time, flow: usize, una: u32, next: u32, sent: u32 },
    #[error("at {at}: flow {flow} counts other segments as in flight than its scoreboard shows")]
    Miscount { at: Time, flow: usize },
    #[error("at {at}: flow {flow}: {problem}")]
    Endpoint { at: Time, flow: usize, problem: String },
    #[error("at {at}: the queue of link {link}: {problem}")]
    Link { at: Time, link: usize, problem: String },
    #[error("at {at}: carrier {carrier}: {problem}")]
    Carrier { at: Time, carrier: usize, problem: String },
    #[error("at {at}: a packet of flow {} came out at port {} and not where its route says", flow.0, port.0)]
    Route { at: Time, flow: FlowId, port: PortId },
    #[error("time went back from {from} to {to}")]
    Time { from: Time, to: Time },
    #[error("at {at}: nothing moves on: {wakes} wakes without time passing")]
    Standstill { at: Time, wakes: u64 },
}
