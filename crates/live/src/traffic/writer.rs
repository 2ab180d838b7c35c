//! The application of a flow as a thread of its own: its calls wait for room, as those of programs with one connection do.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

use rustix::net::{Shutdown, shutdown};

use super::{ZEROS, socket};

/// Writes zeros to a socket up to where it is told.
pub(super) struct Writer {
    shared: Arc<Shared>,
    socket: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    plan: Plan,
    written: u64,
    is_over: bool,
    failed: Option<io::Error>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    /// It begins no call behind this byte position.
    pub(super) until: u64,
    /// Nothing comes behind it, so the connection ends there.
    pub(super) is_all: bool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Writer {
    /// The socket must be connected; its calls wait from now on.
    pub(super) fn new(socket: &Arc<OwnedFd>) -> io::Result<Self> {
        socket::set_blocking(socket)?;
        let shared = Arc::new(Shared { state: Mutex::default(), changed: Condvar::new() });
        let (own, to) = (Arc::clone(&shared), Arc::clone(socket));
        let thread = Builder::new().stack_size(64 * 1024).spawn(move || write(&own, &to))?;
        Ok(Self { shared, socket: Arc::clone(socket), thread: Some(thread) })
    }

    /// What it is to write.
    pub(super) fn set_plan(&self, plan: Plan) {
        let mut state = self.shared.state();
        if state.plan != plan {
            state.plan = plan;
            self.shared.changed.notify_one();
        }
    }

    /// Bytes that it has written.
    ///
    /// # Errors
    /// Why the socket takes no more.
    pub(super) fn written(&self) -> io::Result<u64> {
        let mut state = self.shared.state();
        state.failed.take().map_or(Ok(state.written), Err)
    }

    /// Ends the thread, and the connection behind what it has written, also in a call that waits.
    pub(super) fn end(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        self.shared.state().is_over = true;
        self.shared.changed.notify_one();
        // One that has ended already is as it should be.
        let _ = shutdown(&self.socket, Shutdown::Write);
        let _ = thread.join();
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.end();
    }
}

fn write(shared: &Shared, socket: &OwnedFd) {
    let mut state = shared.state();
    loop {
        while !state.is_over && state.written >= state.plan.until {
            state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.is_over {
            return;
        }
        let length = (state.plan.until - state.written).min(ZEROS.len() as u64) as usize;
        drop(state);
        let wrote = socket::write_whole(socket, &ZEROS[..length]);
        state = shared.state();
        let ended = wrote.and_then(|wrote| {
            state.written += wrote as u64;
            match state.plan {
                Plan { until, is_all: true } if state.written >= until => {
                    state.is_over = true;
                    Ok(shutdown(socket, Shutdown::Write)?)
                }
                _ => Ok(()),
            }
        });
        // Who is told to end finds the socket shut.
        if let Err(error) = ended
            && !state.is_over
        {
            state.failed = Some(error);
            return;
        }
    }
}
