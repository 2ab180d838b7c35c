//! The congestion control of a flow's sockets.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sojourn_core::FlowSample;

use super::{Own, of_maps, state};
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
    states: Option<Arc<States>>,
}

#[derive(Debug)]
struct States {
    map: Map,
    /// A connection had none.
    is_missing: AtomicBool,
}

impl Control {
    /// Its state is not told.
    pub(crate) fn named(name: &str) -> Self {
        Self { name: name.into(), states: None }
    }

    /// Its state is told if it is one of ours, and the caller may read it: others than root may not.
    ///
    /// # Errors
    /// It is one of ours, and its state can't be read although the caller may.
    pub(crate) fn found(name: &str) -> Result<Self, String> {
        let named = Self::named(name);
        let Some(own) = Own::named(name).filter(|own| own.kernel_name == name) else {
            return Ok(named);
        };
        let maps = match bpf::maps() {
            Ok(maps) => maps,
            Err(error) if matches!(error.raw_os_error(), Some(libc::EPERM | libc::ENOSYS)) => {
                return Ok(named);
            }
            Err(error) => {
                return Err(format!("the state of '{}' can't be read: {error}", own.name));
            }
        };
        match of_maps(maps).into_iter().find(|other| other.own == own && other.is_registered) {
            Some(loaded) if loaded.is_current => {
                let states = States { map: loaded.states, is_missing: AtomicBool::new(false) };
                Ok(Self { states: Some(Arc::new(states)), ..named })
            }
            Some(_) => Err(format!(
                "'{0}' was loaded by another version of this program, and this one can't read its state: sudo sojourn live cca load {0}",
                own.name
            )),
            None => Ok(named),
        }
    }

    /// Adds to a sample what the control has in mind.
    pub(crate) fn add_state(
        &self,
        socket: &OwnedFd,
        is_established: bool,
        sample: &mut FlowSample,
    ) {
        let Some(states) = &self.states else { return };
        match states.map.value_of(socket.as_raw_fd()) {
            Ok(value) => state::add(&value, sample),
            // It has one from when the connection is established.
            Err(_) if is_established => states.is_missing.store(true, Ordering::Relaxed),
            Err(_) => {}
        }
    }

    /// # Errors
    /// The state of a connection was not there, so that its series don't have it.
    pub(crate) fn check(&self) -> Result<(), String> {
        match &self.states {
            Some(states) if states.is_missing.load(Ordering::Relaxed) => Err(format!(
                "a connection has no state of '{}': either that was unloaded or loaded anew meanwhile, or there is no option memory for it (sysctl net.core.optmem_max)",
                self.name
            )),
            _ => Ok(()),
        }
    }
}
