//! Reads what runs left behind while other threads work on what was read before.

use std::num::NonZero;
use std::thread;

use rayon::ThreadPoolBuilder;

/// A batch has at most so many runs. It does not depend on the number of threads, as neither does the page.
const MOST_RUNS: usize = 16;

/// A batch with as many numbers is not filled further, and nothing is read beside it, because memory has to hold both.
const MOST_NUMBERS: usize = 4_000_000;

struct Batch<T> {
    runs: Vec<T>,
    numbers: usize,
}

impl<T> Batch<T> {
    fn read(read: &mut impl FnMut() -> Option<(T, usize)>) -> Self {
        let mut batch = Self { runs: Vec::new(), numbers: 0 };
        while batch.runs.len() < MOST_RUNS
            && batch.numbers < MOST_NUMBERS
            && let Some((run, numbers)) = read()
        {
            batch.runs.push(run);
            batch.numbers += numbers;
        }
        batch
    }
}

/// Works on all that `read` gives, batch after batch, in its order. `read` says how many numbers a run has.
pub(crate) fn in_batches<T: Send>(
    mut read: impl FnMut() -> Option<(T, usize)> + Send,
    mut work: impl FnMut(Vec<T>) + Send,
) {
    let mut next = Batch::read(&mut read);
    while !next.runs.is_empty() {
        let Batch { runs, numbers } = next;
        if numbers < MOST_NUMBERS {
            ((), next) = rayon::join(|| work(runs), || Batch::read(&mut read));
        } else {
            work(runs);
            next = Batch::read(&mut read);
        }
    }
}

/// Runs `work` on so many threads, or one for each core. More threads than a batch has runs, and one that reads, would have
/// nothing to do.
pub(crate) fn with_threads<T: Send>(
    threads: Option<NonZero<usize>>,
    work: impl FnOnce() -> T + Send,
) -> T {
    let cores = || thread::available_parallelism().map_or(1, NonZero::get);
    let threads = threads.map_or_else(cores, NonZero::get).min(MOST_RUNS + 1);
    let pool = ThreadPoolBuilder::new().num_threads(threads).build();
    // Where the system gives no more threads, this one does it.
    let alone = || ThreadPoolBuilder::new().num_threads(1).use_current_thread().build();
    match pool.or_else(|_| alone()) {
        Ok(pool) => pool.install(work),
        Err(_) => work(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_runs_come_in_order_and_large_ones_alone() {
        let mut batches: Vec<Vec<usize>> = Vec::new();
        let mut runs = 0..40;
        let read = || {
            let run = runs.next()?;
            Some((run, if run == 20 { MOST_NUMBERS } else { 1 }))
        };
        in_batches(read, |batch| batches.push(batch));
        assert_eq!(batches.concat(), Vec::from_iter(0..40));
        let lengths: Vec<usize> = batches.iter().map(Vec::len).collect();
        assert_eq!(lengths, [16, 5, 16, 3]);
    }
}
