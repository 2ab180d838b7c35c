//! What every room of Sojourn shares: units, the packet as models see it, addressed random
//! streams, the events that can be observed, and the little grammar in which algorithms and
//! their parameters are written.
//!
//! Nothing here asks for the time, reads a file or starts a thread; [`Time`] is always an argument.

#![cfg_attr(not(test), no_std)]

extern crate alloc;

pub mod event;
mod ids;
pub mod packet;
pub mod random;
pub mod units;
pub mod words;

pub use event::{DropReason, EcnMode, Event, FlowSample, NoObserver, Observer, QueueSample, Who};
pub use ids::{FlowId, HostId, PortId};
pub use packet::{
    AckBody, Body, CeBytes, Direction, ETHERNET_HEADER, Ecn, FlowKey, MAX_SACK_BLOCKS, Packet,
    PureAck, Queued, SackBlock, SegmentBody, TcpEcn,
};
pub use random::{Purpose, Stream, StreamAddress};
pub use units::{Bytes, Rate, Span, Time};
pub use words::{Param, ParamKind, SpecError, Words};
