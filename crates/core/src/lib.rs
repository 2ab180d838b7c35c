//! What every room of Sojourn shares: units, the packet as models see it, addressed random streams,
//! the events that can be observed, what a parameter is, and the grammar in which algorithms and
//! their parameters are written.
//!
//! Nothing here asks for the time, reads a file or starts a thread; [`Time`] is always an argument.

#![cfg_attr(not(test), no_std)]

extern crate alloc;

#[cfg(all(target_arch = "x86", not(target_feature = "sse2")))]
compile_error!("the old floating-point unit rounds otherwise: build with -C target-cpu=pentium4");

mod error;
pub mod event;
pub mod framing;
mod ids;
pub mod packet;
pub mod param;
pub mod random;
pub mod registry;
pub mod units;
mod wakes;
pub mod words;

pub use error::{SpecError, nearest};
pub use event::{
    AirSample, Confidence, DropReason, EcnMode, Event, FecEvent, FlowSample, FrameEvent,
    FrameStage, NoObserver, Observer, QueueSample, RateControl, Responsiveness, VoiceEvent, Who,
    is_phase,
};
pub use framing::{Cells, Framing, FramingWords};
pub use ids::{ContentId, FlowId, HostId, PortId};
pub use packet::{
    AckBody, AckFlags, AckKind, Body, CeBytes, Direction, ETHERNET_HEADER, Ecn, FlowKey,
    MAX_SACK_BLOCKS, Packet, PureAck, Queued, RtpBody, RtpStream, SackBlock, SegmentBody, TcpEcn,
    truesize_of,
};
pub use param::{Param, ParamKind, Params};
pub use random::{Purpose, Stream, StreamAddress};
pub use registry::{Kind, Kinds};
pub use units::{Bytes, Rate, Span, Time};
pub use wakes::Wakes;
pub use words::Words;
