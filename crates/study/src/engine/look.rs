//! Whether who has a run computed wants it to end.

use std::cell::RefCell;
use std::panic::resume_unwind;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use sojourn_core::{Span, Time};

/// What a run unwinds with that ends because that is wanted.
#[derive(Clone, Copy, Debug)]
pub struct Ended;

type Asks = Rc<dyn Fn() -> bool>;

thread_local! {
    static ASKS: RefCell<Option<Asks>> = const { RefCell::new(None) };
}

/// Does `work`, whose runs in this thread end at their next [`look`] as soon as `is_over` says so.
pub fn watched<T>(is_over: impl Fn() -> bool + 'static, work: impl FnOnce() -> T) -> T {
    /// What was asked before, also if `work` unwinds.
    struct Before(Option<Asks>);

    impl Drop for Before {
        fn drop(&mut self) {
            ASKS.set(self.0.take());
        }
    }

    let _before = Before(ASKS.replace(Some(Rc::new(is_over))));
    work()
}

/// Ends the run that this thread computes, if that is wanted. Engines that compute look at each row of the time series, and
/// parts from outside that take long may, too.
pub fn look() {
    let asks = ASKS.with_borrow(Clone::clone);
    if asks.is_some_and(|is_over| is_over()) {
        resume_unwind(Box::new(Ended));
    }
}

/// Virtual time that the run has reached which noted it last.
static REACHED: AtomicU64 = AtomicU64::new(0);

/// Notes for [`reached`] how far a simulated run is.
pub(super) fn reach(now: Time) {
    REACHED.store(now.as_nanos(), Ordering::Relaxed);
}

/// How far the simulated run is that noted it last: of use where there is only one.
pub fn reached() -> Span {
    Span::from_nanos(REACHED.load(Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::*;

    #[test]
    fn a_look_ends_the_work_only_while_that_is_wanted() {
        look();
        watched(|| false, look);
        let ended = catch_unwind(|| watched(|| true, look)).unwrap_err();
        assert!(ended.is::<Ended>());
        look();
    }
}
