//! What parts from outside find out about a run when it is over and they are dropped.

use std::cell::{Cell, RefCell};

thread_local! {
    static NOTED: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    static RUN: Cell<Option<u32>> = const { Cell::new(None) };
}

/// Tells of something that went wrong in the run that this thread computes without making its measurements worthless. It is among
/// the run's [`troubles`](super::Measured::troubles).
pub fn note(trouble: String) {
    const MOST: usize = 100;
    NOTED.with_borrow_mut(|noted| {
        if noted.len() < MOST && !noted.contains(&trouble) {
            noted.push(trouble);
        }
    });
}

/// The number of the run that this thread computes, or has computed last.
pub fn present_run() -> Option<u32> {
    RUN.get()
}

pub(crate) fn begin(run: u32) {
    RUN.set(Some(run));
}

/// All that was told since the last time.
pub(super) fn take() -> Vec<String> {
    NOTED.take()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_twice_is_kept_once() {
        ["one", "two", "one"].iter().for_each(|trouble| note((*trouble).to_owned()));
        assert_eq!(take(), ["one", "two"]);
        assert_eq!(take(), [""; 0]);
    }
}
