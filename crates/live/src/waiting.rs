//! How the bottleneck waits for the next packet that is due: asleep as long as it can be, and awake for the last moments,
//! as a processor that idles takes some tens of microseconds to wake.

use rustix::event::{PollFd, Timespec, poll};
use rustix::io::Errno;
use sojourn_core::{Span, Time};

use crate::clock::Clock;

/// So that it notices soon that the run is over.
const LONGEST_SLEEP: Span = Span::from_millis(10);

/// It is woken by so much before a packet is due, at most.
const EARLIEST: Span = Span::from_micros(120);

/// The margin by which it is woken early follows this share of the lateness of its wakes: each that was later lengthens it by
/// 1 900 ns, each other one shortens it by 100 ns.
const IN_TIME: f64 = 0.95;
const STEP_NS: f64 = 2_000.0;

/// For each nanosecond asleep it may be awake for so many, working or waiting: a third of the time stays for others, unless packets
/// alone take more. With four, a virtual machine's host took several times as much of its time at 200 Mbit/s, and at 500 Mbit/s the
/// kernel let others in front for up to 20 ms.
const AWAKE: u64 = 2;

/// So much of that can be saved up.
const SAVED: Span = Span::from_millis(20);

/// What a thread does until a time comes.
#[derive(Debug, PartialEq, Eq)]
enum Until {
    /// It looks again at once.
    Awake,
    Asleep(Span),
}

pub(crate) struct Waiting {
    /// Whether the thread comes before all others: one that does not can be put off while it waits awake, and is then later than
    /// one that slept.
    may_be_awake: bool,
    /// By how much it is woken before a packet is due, in nanoseconds.
    early_ns: f64,
    /// How long it may still be awake before it sleeps.
    saved: Span,
    /// When it last woke.
    woke: Time,
}

impl Waiting {
    pub(crate) fn new(may_be_awake: bool) -> Self {
        Self {
            may_be_awake,
            early_ns: 0.5 * EARLIEST.as_nanos() as f64,
            saved: SAVED,
            woke: Time::ZERO,
        }
    }

    /// Waits until one of `fds` has something, or until `wake`, or comes back sooner to be asked again.
    ///
    /// # Errors
    /// The kernel's words.
    pub(crate) fn wait(
        &mut self,
        fds: &mut [PollFd<'_>],
        clock: &Clock,
        wake: Time,
    ) -> Result<(), String> {
        let now = clock.now();
        let Until::Asleep(sleep) = self.until(now, wake) else { return Ok(()) };
        let (secs, nanos) = (sleep.as_nanos() / 1_000_000_000, sleep.as_nanos() % 1_000_000_000);
        let timeout = Timespec { tv_sec: secs as i64, tv_nsec: nanos as i64 };
        let ready = match poll(fds, Some(&timeout)) {
            Ok(ready) => ready > 0,
            Err(Errno::INTR) => true,
            Err(error) => return Err(format!("poll: {error}")),
        };
        self.slept(now, sleep, clock.now(), ready);
        Ok(())
    }

    /// What to do at `now` if something is due at `wake`.
    fn until(&mut self, now: Time, wake: Time) -> Until {
        let left = wake.since(now);
        if !self.may_be_awake {
            return Until::Asleep(left.min(LONGEST_SLEEP));
        }
        self.saved = self.saved.saturating_sub(now.since(self.woke));
        self.woke = now;
        let early = Span::from_nanos(self.early_ns as u64);
        if left > early {
            return Until::Asleep((left - early).min(LONGEST_SLEEP));
        }
        match self.saved.is_zero() {
            true => Until::Asleep(left),
            false => Until::Awake,
        }
    }

    /// It wanted to sleep for `sleep` from `from` on, and woke at `now`; something was `ready`, or it was time.
    fn slept(&mut self, from: Time, sleep: Span, now: Time, ready: bool) {
        let asleep = now.since(from);
        let may = Span::from_nanos(asleep.as_nanos().saturating_mul(AWAKE));
        self.saved = (self.saved + may).min(SAVED);
        self.woke = now;
        if !ready {
            let late = asleep.saturating_sub(sleep).as_nanos() as f64;
            let change = if late > self.early_ns { IN_TIME } else { IN_TIME - 1.0 };
            let most = EARLIEST.as_nanos() as f64;
            self.early_ns = (self.early_ns + STEP_NS * change).clamp(0.0, most);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Time {
        Time::ZERO + Span::from_micros(micros)
    }

    /// Goes through packets that are due every `gap` microseconds, each of which takes `work`, on a machine that wakes
    /// `late` microseconds later than asked: how late packets are in the end, and the share of time awake.
    fn late_and_awake(waiting: &mut Waiting, gap: u64, work: u64, late: u64) -> (u64, f64) {
        let (mut now, mut asleep, mut worst) = (0, 0, 0);
        let packets = 20_000;
        for packet in 1..=packets {
            let due = packet * gap;
            while now < due {
                match waiting.until(at(now), at(due)) {
                    Until::Awake => now += 1,
                    Until::Asleep(span) => {
                        let woke = now + span.as_nanos() / 1000 + late;
                        waiting.slept(at(now), span, at(woke), false);
                        asleep += woke - now;
                        now = woke;
                    }
                }
            }
            if packet > packets / 2 {
                worst = worst.max(now - due);
            }
            now += work;
        }
        (worst, 1.0 - asleep as f64 / now as f64)
    }

    #[test]
    fn packets_are_in_time_although_each_wake_is_late() {
        let (late, awake) = late_and_awake(&mut Waiting::new(true), 300, 10, 35);
        assert!(late <= 1, "{late} µs late");
        assert!(awake < 0.2, "awake for {awake} of the time");
    }

    #[test]
    fn a_thread_that_others_can_put_off_sleeps() {
        let (late, awake) = late_and_awake(&mut Waiting::new(false), 300, 10, 35);
        assert_eq!(late, 35);
        assert!(awake < 0.04, "awake for {awake} of the time");
    }

    #[test]
    fn it_is_awake_for_two_thirds_of_the_time_at_most() {
        for gap in [20, 40, 60, 80] {
            let (_, awake) = late_and_awake(&mut Waiting::new(true), gap, 4, 35);
            // What was saved up in the beginning is a twentieth of the shortest of these.
            assert!(
                awake < 2.0 / 3.0 + 0.05,
                "awake for {awake} of the time with a packet every {gap} µs"
            );
        }
    }

    #[test]
    fn a_wake_that_is_never_in_time_makes_it_no_earlier_than_the_bound() {
        let mut waiting = Waiting::new(true);
        late_and_awake(&mut waiting, 1000, 10, 900);
        assert!(waiting.early_ns <= EARLIEST.as_nanos() as f64);
        assert_eq!(waiting.until(at(0), at(0)), Until::Awake);
    }
}
