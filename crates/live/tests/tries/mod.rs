//! Tests of rates and delays on a machine that does other things, too.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Runs `check` up to three times, until it passes, with how many tries are left. A machine that is busy with other things disturbs a
/// run, whether or not the run notices; a mistake of ours disturbs each.
pub(crate) fn until_it_passes(check: impl Fn(u32)) {
    for left in (0..3).rev() {
        match catch_unwind(AssertUnwindSafe(|| check(left))) {
            Ok(()) => return,
            Err(problem) if left == 0 => resume_unwind(problem),
            Err(_) => eprintln!("once more: {left} left"),
        }
    }
}
