//! When packets leave: voices at once, then repairs, then video and its parity in their order, at the controller's pace.
//!
//! It works like libwebrtc's: what was sent is a debt that is paid off at the pacing rate. Packets leave
//! while the debt is less than a burst; then the next waits until all of it is paid off, even if more packets come meanwhile. Without a burst each
//! waits for the time of the one before it. Where the queue has a limit, the rate is raised when packets would wait longer than that in the mean. It is
//! worked out when packets come, when the controller sets its own, and when a burst is over. So a queue whose time is up leaves at once, in bursts of the
//! largest size, and the debt of the last one is paid off at the controller's rate before anything else leaves.

use alloc::collections::VecDeque;

use sojourn_core::{RtpStream, Span, Time};

use super::Item;
use super::probe::Prober;
use crate::control::{Outputs, Probe};

#[derive(Clone, Copy, Debug)]
pub(crate) struct PacerConfig {
    pub(crate) burst: Span,
    /// Packets leave faster if they would wait longer in the mean.
    pub(crate) queue_limit: Option<Span>,
    /// Bytes of a packet of padding without content, headers included.
    pub(crate) padding: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct Pacer {
    config: PacerConfig,
    audio: VecDeque<(Time, Item)>,
    repair: VecDeque<(Time, Item)>,
    video: VecDeque<(Time, Item)>,
    /// Bytes that wait, and the sum of the times since when in nanoseconds, audio not counted.
    queued: u64,
    since: u128,
    /// The controller's pacing rate and that of padding, in bytes a second.
    least: f64,
    padding: f64,
    /// The pacing rate, raised if needed to empty the queue in time.
    rate: f64,
    /// The burst in seconds, and in bytes at the controller's pacing rate.
    burst_s: f64,
    least_burst: f64,
    /// Bytes that may be in flight, and those that are.
    window: Option<u64>,
    in_flight: u64,
    left_at: Time,
    debt: f64,
    padding_debt: f64,
    /// Bytes of a packet of padding that repeats a recent one, headers included; zero where none is repeated.
    copy: u32,
    /// Until when the debts are paid off.
    paid_until: Time,
    prober: Prober,
}

/// What leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Release {
    Media {
        item: Item,
        probe: Option<u32>,
    },
    /// A packet of so many bytes without content, or with content that was sent before.
    Padding {
        size: u32,
        probe: Option<u32>,
    },
}

/// The largest burst, in bytes.
const LARGEST_BURST: f64 = 63_000.0;
/// While the window is full, one packet leaves in this time, so that a report comes even if all others were lost.
const WHILE_FULL: Span = Span::from_millis(500);
/// The debt is limited to what is paid off in this time.
const MOST_DEBT: Span = Span::from_millis(500);

/// A probe wants so much padding at a time, at its rate, and padding besides probes so much at its own.
const PROBED: Span = Span::from_millis(2);
const PADDED: Span = Span::from_millis(5);
const MOST_PADDING: f64 = 3.0;

impl Pacer {
    pub(crate) fn new(config: PacerConfig, now: Time) -> Self {
        Self {
            config,
            audio: VecDeque::new(),
            repair: VecDeque::new(),
            video: VecDeque::new(),
            queued: 0,
            since: 0,
            least: f64::INFINITY,
            padding: 0.0,
            rate: f64::INFINITY,
            burst_s: config.burst.as_secs_f64(),
            least_burst: f64::INFINITY,
            window: None,
            in_flight: 0,
            left_at: now,
            debt: 0.0,
            padding_debt: 0.0,
            copy: 0,
            paid_until: now,
            prober: Prober::default(),
        }
    }

    pub(crate) fn set(&mut self, now: Time, outputs: &Outputs) {
        self.pay_if_stopped(now);
        self.least = outputs.pacing.map_or(f64::INFINITY, |pacing| pacing.as_bps() as f64 / 8.0);
        self.padding = outputs.padding.as_bps() as f64 / 8.0;
        // Where packets are not paced, all may leave at once.
        let is_paced = self.least.is_finite();
        self.least_burst = if is_paced { self.burst(self.least) } else { f64::INFINITY };
        self.window = outputs.window;
        self.adjust(now);
    }

    pub(crate) fn set_in_flight(&mut self, now: Time, bytes: u64) {
        if bytes < self.in_flight {
            self.pay_if_stopped(now);
        }
        self.in_flight = bytes;
    }

    /// A packet of so many bytes has left.
    pub(crate) fn add_in_flight(&mut self, bytes: u32) {
        self.in_flight += u64::from(bytes);
    }

    /// From now on padding repeats a packet, and then has so many bytes.
    pub(crate) fn set_copy(&mut self, size: u32) {
        self.copy = size;
    }

    pub(crate) fn add_probe(&mut self, probe: Probe) {
        self.prober.add(probe);
    }

    /// The packets of a frame of video come; returns their bytes.
    pub(crate) fn push_frame(&mut self, now: Time, packets: impl Iterator<Item = Item>) -> u32 {
        self.begin_to_wait(now);
        let (before, mut bytes) = (self.video.len(), 0);
        self.video.extend(packets.map(|item| {
            bytes += item.size;
            (now, item)
        }));
        self.queued += u64::from(bytes);
        self.since += u128::from(now.as_nanos()) * (self.video.len() - before) as u128;
        self.adjust(now);
        bytes
    }

    pub(crate) fn push(&mut self, now: Time, item: Item) {
        self.begin_to_wait(now);
        let queue = match item.stream {
            RtpStream::Audio => &mut self.audio,
            RtpStream::Repair => &mut self.repair,
            RtpStream::Video | RtpStream::Fec | RtpStream::Padding => &mut self.video,
        };
        queue.push_back((now, item));
        if item.stream != RtpStream::Audio {
            self.queued += u64::from(item.size);
            self.since += u128::from(now.as_nanos());
            self.adjust(now);
        }
    }

    /// Time in which nothing waited pays for nothing that comes now.
    #[inline]
    fn begin_to_wait(&mut self, now: Time) {
        if !self.has_media() {
            self.pay(now);
        }
    }

    /// Bytes that wait.
    pub(crate) fn queued(&self) -> u64 {
        self.queued
    }

    /// How long the oldest packet has waited.
    pub(crate) fn queue_delay(&self, now: Time) -> Span {
        let since = |queue: &VecDeque<(Time, Item)>| queue.front().map_or(now, |(since, _)| *since);
        now.since(since(&self.repair).min(since(&self.video)))
    }

    /// How long packets have waited in the mean.
    fn mean_wait(&self, now: Time) -> Span {
        let packets = (self.repair.len() + self.video.len()) as u64;
        // A division of 64 bits costs a tenth, and mostly they suffice.
        let mean = match u64::try_from(self.since) {
            Ok(since) => since.checked_div(packets),
            Err(_) => self.since.checked_div(packets.into()).map(|nanos| nanos as u64),
        };
        now.since(mean.map_or(now, Time::from_nanos))
    }

    fn has_media(&self) -> bool {
        self.queued > 0
    }

    /// Works out the rate at which the queue is emptied in time.
    #[inline(always)]
    fn adjust(&mut self, now: Time) {
        self.rate = match self.config.queue_limit {
            Some(limit) if self.queued > 0 && self.least < f64::INFINITY => self.raised(now, limit),
            _ => self.least,
        };
    }

    fn raised(&self, now: Time, limit: Span) -> f64 {
        let left = limit.saturating_sub(self.mean_wait(now));
        let needed = self.queued as i64 as f64 / seconds(left).max(0.001);
        self.least.max(needed)
    }

    /// Pays off the debts until `then`.
    fn pay(&mut self, then: Time) {
        if then > self.paid_until {
            if self.debt > 0.0 {
                let passed = seconds(then.since(self.paid_until));
                let paid = if self.rate.is_finite() { self.rate * passed } else { f64::INFINITY };
                self.debt = (self.debt - paid).max(0.0);
            }
            self.pay_padding(then);
        }
    }

    /// Pays off the debt of padding; after it both debts are paid until `then`.
    #[inline]
    fn pay_padding(&mut self, then: Time) {
        if self.padding_debt > 0.0 {
            let passed = seconds(then.since(self.paid_until));
            self.padding_debt = (self.padding_debt - self.padding * passed).max(0.0);
        }
        self.paid_until = then;
    }

    /// The debt is paid off at `due`.
    fn pay_all(&mut self, due: Time) {
        if due > self.paid_until {
            self.debt = 0.0;
            self.pay_padding(due);
        }
    }

    /// What a full window has held back does not leave faster after it.
    #[inline]
    fn pay_if_stopped(&mut self, now: Time) {
        if self.is_full() {
            self.pay(now);
        }
    }

    /// When the next packet may leave.
    #[inline(always)]
    pub(crate) fn next(&self, now: Time) -> Time {
        if !self.audio.is_empty() || self.is_free() {
            return now;
        }
        self.next_at(now)
    }

    /// Whether media may leave at once at any rate: a higher one than the controller's allows a larger burst.
    #[inline]
    fn is_free(&self) -> bool {
        self.debt < self.least_burst && self.has_media() && !self.is_full() && !self.prober.is_on()
    }

    /// When the next packet but a voice's may leave.
    #[inline(always)]
    fn next_at(&self, now: Time) -> Time {
        let next = if self.prober.is_on() { self.prober.next(now) } else { self.due() };
        let next = next.max(now);
        match self.is_full() {
            true => next.max(self.left_at + WHILE_FULL),
            false => next,
        }
    }

    /// When the debts allow the next packet, which may be in the past.
    #[inline(always)]
    fn due(&self) -> Time {
        let wait = |debt: f64, rate: f64| match debt {
            0.0 => self.paid_until,
            // Rounded up, so that the debt is paid then.
            debt => self.paid_until + Span::from_secs_f64(debt / rate) + Span::from_nanos(1),
        };
        match self.has_media() {
            true if !self.is_spent() => self.paid_until,
            true => wait(self.debt, self.rate),
            false if self.padding > 0.0 => {
                wait(self.padding_debt, self.padding).max(wait(self.debt, self.rate))
            }
            false => Time::NEVER,
        }
    }

    /// Whether what comes next has no room in the window.
    #[inline]
    fn is_full(&self) -> bool {
        let Some(window) = self.window else { return false };
        let next = self.repair.front().or(self.video.front());
        let size = next.map_or(self.config.padding, |(_, item)| item.size);
        self.in_flight > 0 && self.in_flight + u64::from(size) > window
    }

    /// Whether the debt is as large as a burst.
    #[inline(always)]
    fn is_spent(&self) -> bool {
        self.debt >= self.least_burst
            && (self.rate <= self.least || self.debt >= self.burst(self.rate))
    }

    fn burst(&self, rate: f64) -> f64 {
        (rate * self.burst_s).clamp(1.0, LARGEST_BURST)
    }

    /// The packet that leaves now, if one does.
    #[inline(always)]
    pub(crate) fn poll(&mut self, now: Time) -> Option<Release> {
        if let Some((_, item)) = self.audio.pop_front() {
            return Some(Release::Media { item, probe: None });
        }
        let is_probe = self.prober.is_on();
        if !self.is_free() {
            // A probe, and what leaves past a full window, have times of their own.
            if is_probe || self.is_full() {
                if self.next_at(now) > now {
                    return None;
                }
                self.pay(now);
            } else {
                let due = self.due();
                if due > now {
                    return None;
                }
                self.pay_all(due);
            }
        }
        self.left_at = now;
        // A small packet begins a cluster, so that its rate is measured from a sharp edge.
        let next = match is_probe && self.prober.begins(now) {
            true => None,
            false => {
                let has_repair = !self.repair.is_empty();
                let queue = if has_repair { &mut self.repair } else { &mut self.video };
                queue.pop_front()
            }
        };
        let size = next.map_or_else(|| self.padding_size(now, is_probe), |(_, item)| item.size);
        self.debt += f64::from(size);
        if self.debt > self.least * MOST_DEBT.as_secs_f64() {
            self.debt = self.debt.min(self.rate * MOST_DEBT.as_secs_f64());
        }
        if self.padding > 0.0 {
            let most = self.padding * MOST_DEBT.as_secs_f64();
            self.padding_debt = (self.padding_debt + f64::from(size)).min(most);
        } else {
            self.padding_debt = 0.0;
        }
        let probe = if is_probe { self.prober.send(now, size) } else { None };
        Some(match next {
            Some((since, item)) => {
                self.queued -= u64::from(item.size);
                self.since -= u128::from(since.as_nanos());
                if self.queued == 0 || self.is_spent() {
                    self.adjust(now);
                }
                Release::Media { item, probe }
            }
            None => Release::Padding { size, probe },
        })
    }

    /// A packet is repeated unless it has more than thrice the bytes that are wanted.
    #[inline(never)]
    fn padding_size(&self, now: Time, is_probe: bool) -> u32 {
        let wanted = match is_probe {
            true if self.prober.begins(now) => 0.0,
            true => self.prober.rate() * PROBED.as_secs_f64(),
            false => self.padding * PADDED.as_secs_f64(),
        };
        match f64::from(self.copy) <= MOST_PADDING * wanted {
            true => self.copy.max(self.config.padding),
            false => self.config.padding,
        }
    }
}

/// 63 bits hold three centuries, and convert faster than 64.
#[inline(always)]
fn seconds(span: Span) -> f64 {
    span.as_nanos() as i64 as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use sojourn_core::Rate;

    use super::*;

    fn pacer(kbps: u64) -> Pacer {
        let config = PacerConfig {
            burst: Span::from_millis(40),
            queue_limit: Some(Span::from_secs(2)),
            padding: 290,
        };
        let mut pacer = Pacer::new(config, Time::ZERO);
        pacer.set(Time::ZERO, &outputs(kbps, 0));
        pacer
    }

    fn outputs(kbps: u64, padding: u64) -> Outputs {
        Outputs {
            target: Rate::from_bps(kbps * 1000),
            pacing: Some(Rate::from_bps(kbps * 1000)),
            padding: Rate::from_bps(padding * 1000),
            window: None,
            phase: "",
        }
    }

    fn item(stream: RtpStream) -> Item {
        Item {
            stream,
            sequence: 0,
            frame: 0,
            part: 0,
            parts: 1,
            captured: Time::ZERO,
            is_key: false,
            size: 1000,
            frame_bytes: 1000,
        }
    }

    /// How many packets leave now.
    fn burst(pacer: &mut Pacer, now: Time) -> usize {
        core::iter::from_fn(|| pacer.poll(now)).count()
    }

    /// When each packet leaves, in milliseconds.
    fn leaves(pacer: &mut Pacer, until: u64) -> Vec<u64> {
        let mut at = Time::ZERO;
        let mut out = Vec::new();
        while at.as_nanos() < until * 1_000_000 {
            out.extend((0..burst(pacer, at)).map(|_| at.as_nanos() / 1_000_000));
            at = pacer.next(at).max(at + Span::from_nanos(1));
        }
        out
    }

    /// At 1 Mbit/s a burst of 40 ms is 5000 bytes; the debt of the packet that reaches it is paid
    /// before the next one leaves.
    #[test]
    fn packets_leave_in_bursts_and_the_debt_is_paid_off_between() {
        let mut pacer = pacer(1000);
        (0..12).for_each(|_| pacer.push(Time::ZERO, item(RtpStream::Video)));
        assert_eq!(leaves(&mut pacer, 200), [0, 0, 0, 0, 0, 40, 40, 40, 40, 40, 80, 80]);
    }

    /// What comes while a burst is paid off waits as long as what waited before.
    #[test]
    fn what_comes_between_bursts_does_not_leave_before_the_next() {
        let mut pacer = pacer(1000);
        (0..7).for_each(|_| pacer.push(Time::ZERO, item(RtpStream::Video)));
        (0..5).for_each(|_| assert!(pacer.poll(Time::ZERO).is_some()));
        let between = Time::from_nanos(20_000_000);
        pacer.push(between, item(RtpStream::Repair));
        pacer.set(between, &outputs(1000, 0));
        assert_eq!(pacer.poll(between), None);
        assert_eq!(leaves(&mut pacer, 200), [40, 40, 40]);
    }

    /// Time in which nothing waits is not saved up.
    #[test]
    fn an_idle_second_does_not_lengthen_the_next_burst() {
        let mut pacer = pacer(1000);
        pacer.push(Time::ZERO, item(RtpStream::Video));
        assert!(pacer.poll(Time::ZERO).is_some());
        let later = Time::from_nanos(1_000_000_000);
        (0..12).for_each(|_| pacer.push(later, item(RtpStream::Video)));
        assert_eq!(burst(&mut pacer, later), 5);
    }

    /// Nor is time in which the window is full.
    #[test]
    fn a_full_window_does_not_lengthen_the_next_burst() {
        let mut pacer = pacer(1000);
        pacer.set(Time::ZERO, &Outputs { window: Some(5000), ..outputs(1000, 0) });
        (0..12).for_each(|_| pacer.push(Time::ZERO, item(RtpStream::Video)));
        (0..5).for_each(|_| assert!(pacer.poll(Time::ZERO).is_some()));
        pacer.set_in_flight(Time::ZERO, 5000);
        let opens = Time::from_nanos(300_000_000);
        pacer.set_in_flight(opens, 0);
        assert_eq!(burst(&mut pacer, opens), 5);
    }

    #[test]
    fn voices_come_first_and_then_repairs() {
        let mut pacer = pacer(1000);
        for stream in [RtpStream::Video, RtpStream::Repair, RtpStream::Audio] {
            pacer.push(Time::ZERO, item(stream));
        }
        let order: Vec<RtpStream> = (0..3)
            .map(|_| match pacer.poll(Time::ZERO) {
                Some(Release::Media { item, .. }) => item.stream,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(order, [RtpStream::Audio, RtpStream::Repair, RtpStream::Video]);
    }

    #[test]
    fn a_queue_that_would_last_too_long_is_sent_faster() {
        let mut pacer = pacer(100);
        (0..100).for_each(|_| pacer.push(Time::ZERO, item(RtpStream::Video)));
        let last = leaves(&mut pacer, 10_000).last().copied();
        assert!(last.is_some_and(|last| last <= 2000), "{last:?}");
    }

    /// Half of 100 kB has waited for 1 s, so the mean wait is 0.5 s, and 1.5 s are left.
    #[test]
    fn it_is_the_mean_wait_that_counts() {
        let mut pacer = pacer(1);
        (0..50).for_each(|_| pacer.push(Time::ZERO, item(RtpStream::Video)));
        let at = Time::from_nanos(1_000_000_000);
        (0..50).for_each(|_| pacer.push(at, item(RtpStream::Repair)));
        assert!((pacer.rate - 100_000.0 / 1.5).abs() < 1.0, "{}", pacer.rate);
    }

    /// 70 kB have waited for 2 s. 63 kB leave at once; then 7 kB are to leave in 1 ms, so the debt is paid off in 9 ms. What they leave
    /// as a debt takes 140 ms at 400 kbit/s.
    #[test]
    fn a_queue_whose_time_is_up_leaves_at_once_and_is_paid_off_before_anything_else_leaves() {
        let mut pacer = pacer(400);
        (0..70).for_each(|_| pacer.push(Time::ZERO, item(RtpStream::Video)));
        let at = |ms: u64| Time::from_nanos(ms * 1_000_000);
        pacer.pay(at(2000));
        pacer.set(at(2000), &outputs(400, 0));
        assert_eq!(burst(&mut pacer, at(2000)), 63);
        assert_eq!(pacer.next(at(2000)), at(2009) + Span::from_nanos(1));
        assert_eq!(burst(&mut pacer, at(2010)), 7);
        pacer.push(at(2020), item(RtpStream::Repair));
        assert_eq!(pacer.next(at(2020)).since(at(2009)).as_millis(), 140);
    }

    #[test]
    fn a_probe_has_its_own_rate_and_takes_padding_if_nothing_else_waits() {
        let mut pacer = pacer(100);
        pacer.add_probe(Probe {
            id: 3,
            rate: Rate::from_bps(2_320_000),
            min_packets: 5,
            min_bytes: 1450,
            duration: Span::from_millis(5),
        });
        assert_eq!(leaves(&mut pacer, 100), [0, 1, 2, 3, 4]);
    }

    /// What leaves in a probe of 2320 kbit/s: bytes, and whether it is padding.
    fn probed(pacer: &mut Pacer) -> Vec<(u32, bool)> {
        pacer.add_probe(Probe {
            id: 3,
            rate: Rate::from_bps(2_320_000),
            min_packets: 4,
            min_bytes: 2000,
            duration: Span::from_millis(5),
        });
        let mut at = Time::ZERO;
        let mut out = Vec::new();
        while pacer.prober.is_on() {
            match pacer.poll(at) {
                Some(Release::Media { item, probe: Some(3) }) => out.push((item.size, false)),
                Some(Release::Padding { size, probe: Some(3) }) => out.push((size, true)),
                Some(other) => panic!("{other:?}"),
                None => at = pacer.next(at),
            }
        }
        out
    }

    /// Media would be free to leave at once, but waits for the probe's pace and is part of it.
    #[test]
    fn a_probe_begins_with_a_small_packet_and_nothing_leaves_beside_it() {
        let mut pacer = pacer(100_000);
        (0..5).for_each(|_| pacer.push(Time::ZERO, item(RtpStream::Video)));
        let media = (1000, false);
        assert_eq!(probed(&mut pacer), [(290, true), media, media, media]);
        assert_eq!(leaves(&mut pacer, 20), [0, 0]);
    }

    /// The probe wants 580 bytes each 2 ms: it may take packets of 1740 bytes. Padding of 1 Mbit/s wants 625 bytes each 5 ms: of 1875.
    #[test]
    fn padding_repeats_a_packet_that_is_not_too_large_for_it() {
        let mut pacer = pacer(1000);
        pacer.set_copy(1741);
        assert!(probed(&mut pacer).iter().all(|sent| *sent == (290, true)));
        pacer.set_copy(1740);
        assert_eq!(probed(&mut pacer)[..2], [(290, true), (1740, true)]);
        pacer.set(Time::ZERO, &outputs(1000, 1000));
        assert_eq!(pacer.padding_size(Time::ZERO, false), 1740);
        pacer.set(Time::ZERO, &outputs(1000, 900));
        assert_eq!(pacer.padding_size(Time::ZERO, false), 290);
    }

    #[test]
    fn padding_fills_up_what_media_leaves() {
        let mut pacer = pacer(1000);
        pacer.set(Time::ZERO, &outputs(1000, 232));
        // 290 bytes are 10 ms at 232 kbit/s.
        assert_eq!(leaves(&mut pacer, 45), [0, 10, 20, 30, 40]);
    }
}
