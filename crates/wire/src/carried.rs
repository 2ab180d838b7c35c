use sojourn_core::{Body, Packet};
use sojourn_qdisc::Reshape;

/// What carriers carry: simulated packets, or handles to real bytes with what their headers say.
///
/// Carriers copy it freely. Code that keeps bytes elsewhere frees them when the packet comes out,
/// or when the carrier reports it in [`crate::Carrier::take_lost`]; a discipline may have cut the
/// packet into its segments by then.
pub trait Carried: Reshape + Send + 'static {
    /// What its headers say, for observers.
    fn headers(&self) -> &Packet;

    /// It has left the queue of a port, so the next port of its route is ahead.
    fn leave_port(&mut self);

    /// Whether something that is kept elsewhere must be freed when this is lost.
    fn has_contents(&self) -> bool;
}

impl Carried for Packet {
    #[inline(always)]
    fn headers(&self) -> &Packet {
        self
    }

    #[inline(always)]
    fn leave_port(&mut self) {
        self.hop += 1;
    }

    #[inline]
    fn has_contents(&self) -> bool {
        matches!(self.body, Body::Opaque { .. })
    }
}
