use sojourn_core::{Body, Packet};
use sojourn_qdisc::Reshape;

/// What a carrier carries: a simulated packet, or a handle to real bytes with what their headers
/// say.
///
/// Carriers copy it as they please. Whoever keeps bytes elsewhere frees them when the packet comes
/// out, or when the carrier names it in [`crate::Carrier::take_lost`]; a discipline may have cut it
/// into its segments by then.
pub trait Carried: Reshape + Send + 'static {
    /// What its headers say, for whoever observes.
    fn headers(&self) -> &Packet;

    /// It has left the queue of a port: the next one of its route is ahead.
    fn leave_port(&mut self);

    /// Whether something kept elsewhere is to be freed when this is lost.
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
