//! On which processor a run's guests work.
//!
//! Only one of a run's guests and the thread that runs the simulation is at work at a time. On one processor the next one begins
//! where the one before waits; on two, each time a processor that sleeps must be woken, which takes longer than what it then does.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use rustix::process::Pid;
use rustix::thread::{CpuSet, gettid, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// The thread that took it stays on one processor, and so does whatever it starts, until the last one that it took is gone.
#[derive(Debug)]
pub(crate) struct Seat {
    thread: Pid,
}

/// By the number of a thread: where it is kept, where it was allowed before, and how many seats it has.
type Kept = (usize, CpuSet, usize);

static KEPT: Mutex<BTreeMap<i32, Kept>> = Mutex::new(BTreeMap::new());

impl Seat {
    /// Where a machine does not allow it, all goes on as before.
    pub(crate) fn take() -> Self {
        let thread = gettid();
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((.., seats)) = kept.get_mut(&thread.as_raw_pid()) {
            *seats += 1;
            return Self { thread };
        }
        if let Ok(allowed) = sched_getaffinity(None)
            && let Some(processor) = best(&allowed, &kept, sched_getcpu())
        {
            let mut only = CpuSet::new();
            only.set(processor);
            if sched_setaffinity(None, &only).is_ok() {
                kept.insert(thread.as_raw_pid(), (processor, allowed, 1));
            }
        }
        Self { thread }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((_, allowed, seats)) = kept.get_mut(&self.thread.as_raw_pid()) else { return };
        *seats -= 1;
        if *seats == 0 {
            // The thread may be gone.
            let _ = sched_setaffinity(Some(self.thread), allowed);
            kept.remove(&self.thread.as_raw_pid());
        }
    }
}

/// The processor with the fewest runs of this process; of several, where the thread is now, as the machine put it there.
fn best(allowed: &CpuSet, kept: &BTreeMap<i32, Kept>, present: usize) -> Option<usize> {
    let runs = |processor: usize| kept.values().filter(|(at, ..)| *at == processor).count();
    let all = (0..CpuSet::MAX_CPU).filter(|processor| allowed.is_set(*processor));
    all.min_by_key(|processor| (runs(*processor), *processor != present))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed() -> CpuSet {
        sched_getaffinity(None).expect("Linux tells")
    }

    #[test]
    fn a_thread_is_free_again_when_its_last_seat_is_gone() {
        let before = allowed();
        let (one, other) = (Seat::take(), Seat::take());
        assert_eq!(allowed().count(), 1);
        drop(one);
        assert_eq!(allowed().count(), 1);
        // By another thread, as when a run's parts are dropped elsewhere.
        std::thread::spawn(move || drop(other)).join().expect("it doesn't panic");
        assert_eq!(allowed(), before);
    }

    #[test]
    fn runs_are_spread_over_the_processors() {
        let mut allowed = CpuSet::new();
        [1, 3, 5].into_iter().for_each(|processor| allowed.set(processor));
        let mut kept = BTreeMap::new();
        assert_eq!(best(&allowed, &kept, 3), Some(3));
        for (thread, expected) in [(1, 1), (2, 3), (3, 5), (4, 1)] {
            let processor = best(&allowed, &kept, 0);
            assert_eq!(processor, Some(expected));
            kept.insert(thread, (expected, allowed, 1));
        }
        assert_eq!(best(&CpuSet::new(), &kept, 0), None);
    }
}
