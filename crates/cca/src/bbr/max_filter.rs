//! An approximate windowed maximum that remembers three samples (Kathleen Nichols' algorithm, the
//! one behind the kernel's bandwidth filter).

/// The best sample of a window of rounds, and the best ones after it.
///
/// `best[0]` is the answer. `best[1]` and `best[2]` are its successors: each is the largest sample
/// since the one before it. They are renewed a quarter and a half of the window later, so that not
/// all of them expire together.
#[derive(Clone, Debug, Default)]
pub(crate) struct WindowedMax<T> {
    best: [Dated<T>; 3],
}

#[derive(Clone, Copy, Debug, Default)]
struct Dated<T> {
    round: u64,
    value: T,
}

impl<T: Copy + Ord> WindowedMax<T> {
    pub(crate) fn value(&self) -> T {
        self.best[0].value
    }

    /// Adds `value`, measured in `round`, which must not be before an earlier one, and forgets
    /// samples that are more than `window` rounds old.
    pub(crate) fn update(&mut self, window: u64, round: u64, value: T) {
        let new = Dated { round, value };
        if value >= self.best[0].value || self.age(2, round) > window {
            self.best = [new; 3];
            return;
        }
        if value >= self.best[1].value {
            self.best[1] = new;
            self.best[2] = new;
        } else if value >= self.best[2].value {
            self.best[2] = new;
        }
        self.expire(window, new);
    }

    /// Promotes the successors when the best sample is too old, and renews a successor when it is
    /// as old as the one before it.
    fn expire(&mut self, window: u64, new: Dated<T>) {
        let age = self.age(0, new.round);
        if age > window {
            self.promote(new);
            if self.age(0, new.round) > window {
                self.promote(new);
            }
        } else if self.best[1].round == self.best[0].round && age > window / 4 {
            self.best[1] = new;
            self.best[2] = new;
        } else if self.best[2].round == self.best[1].round && age > window / 2 {
            self.best[2] = new;
        }
    }

    fn promote(&mut self, new: Dated<T>) {
        self.best = [self.best[1], self.best[2], new];
    }

    fn age(&self, index: usize, round: u64) -> u64 {
        round.saturating_sub(self.best[index].round)
    }
}
