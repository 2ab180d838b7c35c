//! The congestion control of a flow's sockets.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use sojourn_core::FlowSample;

use super::{Own, state};
use crate::sys::bpf::{self, Map};

/// What the kernel calls a congestion control: a study's `cubic-linux` is a model of its `cubic`.
pub(crate) fn kernel_name(cca: &sojourn_cca::Config) -> &'static str {
    match Own::named(cca.name()) {
        Some(own) => own.kernel_name,
        None => cca.name().strip_suffix("-linux").unwrap_or(cca.name()),
    }
}

/// A congestion control by the kernel's name, and where the state of connections is if it is one of ours.
#[derive(Clone, Debug)]
pub(crate) struct Control {
    pub(crate) name: Arc<str>,
    states: Option<Arc<Map>>,
}

impl Control {
    /// If it is one of ours that another version has loaded, or the caller may not read it, its state is not told.
    pub(crate) fn new(name: &str) -> Self {
        let wanted = Own::named(name).filter(|own| own.kernel_name == name).map(Own::state_name);
        let states = wanted.and_then(|wanted| {
            let maps = bpf::maps().ok()?;
            maps.into_iter().find(|map| map.kind == bpf::SOCKET_STORAGE && map.name == wanted)
        });
        Self { name: name.into(), states: states.map(Arc::new) }
    }

    /// Adds to a sample what the control has in mind.
    pub(crate) fn add_state(&self, socket: &OwnedFd, sample: &mut FlowSample) {
        let value = self.states.as_ref().and_then(|map| map.value_of(socket.as_raw_fd()).ok());
        if let Some(value) = value {
            state::add(&value, sample);
        }
    }
}
