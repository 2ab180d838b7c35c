//! The congestion window: what the encoder leaves out while too much is on its way.
//!
//! The window is what the target carries in the shortest of the last round trips and [`Config::congestion_window`]. It
//! holds no packet back. A share of the target is left to the encoder; it falls while more is in flight than the window
//! allows and rises again when less is. The encoder has it for the next picture: measured calls leave out frames as soon as the window is full.

use alloc::collections::VecDeque;

use sojourn_core::{Span, Time};

use super::Config;

#[derive(Clone, Debug)]
pub(super) struct InFlight {
    /// What may wait in queues, in seconds; none for no window.
    queue: Option<f64>,
    /// The encoder keeps this many bit/s of any target.
    least: f64,
    /// The longest round trip of each of the last reports, with the report's number: those that were shorter than all later ones.
    rtts: VecDeque<(u64, Span)>,
    reports: u64,
    /// In bytes; none before a round trip is known.
    window: Option<f64>,
    /// Bytes on their way.
    bytes: u64,
    /// While no more are, nothing that libwebrtc looks at changes anything until the target does.
    unnoticed: u64,
    share: f64,
    looked: Time,
}

/// Round trips of so many reports count.
const REPORTS: u64 = 32;
const LEAST_WINDOW: f64 = 2.0 * 1500.0;
/// libwebrtc looks at window and share this often even if nothing is sent or reported.
const LOOKS: Span = Span::from_millis(25);

impl InFlight {
    pub(super) fn new(config: &Config) -> Self {
        let queue = config.congestion_window;
        Self {
            queue: (!queue.is_zero()).then(|| queue.as_secs_f64()),
            least: config.congestion_window_least.as_bps() as f64,
            rtts: VecDeque::new(),
            reports: 0,
            window: None,
            bytes: 0,
            unnoticed: u64::MAX,
            share: 1.0,
            looked: Time::ZERO,
        }
    }

    /// The share of a target of `target` bit/s that the encoder leaves out; `min` bit/s are always left.
    pub(super) fn held_back(&self, target: f64, min: f64) -> f64 {
        let pushed = self.share * target;
        let pushed = if pushed < self.least { target.min(self.least) } else { pushed };
        1.0 - pushed.max(min).min(target) / target
    }

    /// A packet leaves, and `bytes` are in flight with it.
    #[inline]
    pub(super) fn on_sent(&mut self, now: Time, bytes: u64, target: f64) {
        if bytes <= self.unnoticed {
            self.bytes = bytes;
        } else {
            self.notice(now, bytes, target);
        }
    }

    #[inline(never)]
    fn notice(&mut self, now: Time, bytes: u64, target: f64) {
        self.look(now, target);
        self.bytes = bytes;
        self.push();
        self.set_unnoticed(target);
    }

    /// The target is another from now on.
    pub(super) fn set_unnoticed(&mut self, target: f64) {
        self.unnoticed = match self.window {
            None => u64::MAX,
            // Looks bring the window nearer to its goal, never beyond.
            Some(window) if self.share == 1.0 => window.min(self.goal(target)) as u64,
            Some(_) => 0,
        };
    }

    /// A report came: its oldest packet left at `oldest`, and `bytes` are in flight.
    pub(super) fn on_report(&mut self, now: Time, oldest: Option<Time>, bytes: u64, target: f64) {
        if self.queue.is_none() {
            return;
        }
        self.look(now, target);
        self.bytes = bytes;
        if let Some(oldest) = oldest {
            let rtt = now.since(oldest);
            self.reports += 1;
            let first = self.reports.saturating_sub(REPORTS);
            while self.rtts.pop_front_if(|(number, _)| *number <= first).is_some() {}
            while self.rtts.pop_back_if(|(_, longer)| *longer >= rtt).is_some() {}
            self.rtts.push_back((self.reports, rtt));
        }
    }

    /// What follows from a report, after which the target is `target`.
    pub(super) fn after_report(&mut self, target: f64) {
        if self.queue.is_none() {
            return;
        }
        self.push();
        self.resize(target);
        self.set_unnoticed(target);
    }

    /// Looks that changed something until `now`.
    #[inline]
    pub(super) fn look_again(&mut self, now: Time, target: f64) {
        if self.share != 1.0 || self.bytes > self.unnoticed {
            self.look(now, target);
        }
    }

    /// Looks that libwebrtc has had until `now`.
    pub(super) fn look(&mut self, now: Time, target: f64) {
        let looks = now.since(self.looked).as_nanos() / LOOKS.as_nanos();
        self.looked += LOOKS * looks;
        if self.window.is_none() {
            return;
        }
        // After some of them neither moves.
        for _ in 0..looks.min(1000) {
            self.resize(target);
            self.push();
        }
    }

    /// The window that would be reached with `target`.
    fn goal(&self, target: f64) -> f64 {
        let rtt = self.rtts.front().map_or(0.0, |(_, rtt)| rtt.as_secs_f64());
        target / 8.0 * (rtt + self.queue.unwrap_or_default())
    }

    fn resize(&mut self, target: f64) {
        if self.rtts.is_empty() {
            return;
        }
        let goal = self.goal(target);
        let window = self.window.map_or(goal, |window| (window + goal) / 2.0);
        self.window = Some(window.max(LEAST_WINDOW));
    }

    fn push(&mut self) {
        let Some(window) = self.window else { return };
        let bytes = self.bytes as f64;
        if self.share == 1.0 && bytes <= window {
            return;
        }
        let fill = bytes / window;
        self.share = if fill > 1.5 {
            0.9 * self.share
        } else if fill > 1.0 {
            0.95 * self.share
        } else if fill < 0.1 {
            1.0
        } else {
            (1.05 * self.share).min(1.0)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    /// At 800 kbit/s 100 kB a second leave: 45 kB in 100 ms of round trip and 350 ms.
    fn filled(bytes: u64) -> InFlight {
        let mut window = InFlight::new(&Config::default());
        window.on_report(at(100), Some(at(0)), 10_000, 800e3);
        window.after_report(800e3);
        window.on_sent(at(101), bytes, 800e3);
        window
    }

    #[test]
    fn the_encoder_gets_less_while_more_is_in_flight_than_the_window() {
        let share = |bytes: u64| filled(bytes).share;
        assert_eq!(share(44_990), 1.0);
        assert_eq!(share(45_100), 0.95);
        assert_eq!(share(67_600), 0.9);
    }

    #[test]
    fn the_encoder_has_it_at_once_and_keeps_a_least_rate() {
        let mut window = filled(67_600);
        let held_back = |window: &InFlight, target, min| window.held_back(target, min);
        assert!((held_back(&window, 800e3, 5e3) - 0.1).abs() < 1e-9);
        window.after_report(790e3);
        assert!((held_back(&window, 790e3, 5e3) - 0.19).abs() < 1e-9);
        // Every 25 ms the share falls further.
        window.look(at(1200), 100e3);
        assert!((held_back(&window, 100e3, 5e3) - 0.7).abs() < 1e-9);
        assert!((held_back(&window, 100e3, 90e3) - 0.1).abs() < 1e-9);
        // With hardly anything on its way all is as before.
        window.on_report(at(1210), Some(at(1000)), 500, 100e3);
        window.after_report(101e3);
        assert_eq!(held_back(&window, 101e3, 5e3), 0.0);
    }

    #[test]
    fn without_a_round_trip_or_with_no_time_to_wait_there_is_no_window() {
        let mut window = InFlight::new(&Config::default());
        window.on_sent(at(10), 1_000_000, 800e3);
        assert_eq!(window.share, 1.0);
        let off = Config { congestion_window: Span::ZERO, ..Config::default() };
        let mut window = InFlight::new(&off);
        window.on_report(at(100), Some(at(0)), 1_000_000, 800e3);
        window.after_report(800e3);
        window.on_sent(at(110), 1_000_000, 800e3);
        assert_eq!((window.share, window.held_back(800e3, 5e3)), (1.0, 0.0));
    }

    #[test]
    fn the_shortest_round_trip_of_32_reports_counts() {
        let mut window = InFlight::new(&Config::default());
        window.on_report(at(100), Some(at(60)), 0, 800e3);
        for n in 1..32 {
            window.on_report(at(100 + 60 * n), Some(at(60 * n)), 0, 800e3);
        }
        assert!((window.goal(800e3) - 39_000.0).abs() < 1e-6);
        window.on_report(at(3000), Some(at(2900)), 0, 800e3);
        assert!((window.goal(800e3) - 45_000.0).abs() < 1e-6);
    }
}
