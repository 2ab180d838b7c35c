use alloc::vec::Vec;

use sojourn_core::Params;

use crate::{Controller, EcnRequest, Setup};

/// A congestion control, given by its parameters. A crate outside this one implements it to
/// register a congestion control with [`external`](crate::external).
pub trait Algorithm: Params + Send + Sync + 'static {
    type Controller: Controller + 'static;

    /// The controller of one connection.
    fn build(&self, setup: Setup) -> Self::Controller;

    /// What the host should ask for in the handshake, and send afterwards.
    fn ecn_request(&self) -> EcnRequest {
        EcnRequest::Host
    }

    /// Every phase that a controller with these parameters can be in ([`Controller::phase`]). A
    /// study can change the world when a sender enters one of them; without any it cannot.
    fn phases(&self) -> Vec<&'static str> {
        Vec::new()
    }
}
