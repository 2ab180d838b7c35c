//! When voices are heard: the timing of libwebrtc's NetEq.
//!
//! Every 10 ms it gives out 10 ms of sound: what was decoded, or what it makes up because a packet
//! is late or lost. How long packets should wait follows from a histogram of how much later they came
//! than the fastest one; if they wait longer, sound is played faster by leaving out a pitch period,
//! and slower by repeating one.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use sojourn_core::{Span, Time, VoiceEvent};

use crate::source::NOISE_EVERY;

/// What is given out at once.
pub(crate) const TICK: Span = Span::from_millis(10);
/// A pitch period is between 2.5 and 15 ms; signals are not modelled, so the middle stands for all.
const PITCH: Span = Span::from_micros(8750);
/// Sound that must be there to be stretched, and ticks between two stretches.
const TO_STRETCH: Span = Span::from_millis(30);
const BETWEEN_STRETCHES: u32 = 5;
/// If more packets than this wait, all of them are thrown away.
const MOST_PACKETS: usize = 200;
/// A gap is skipped if sound waits this much longer than it should.
const ABOVE_TARGET: Span = Span::from_millis(50);
/// After this much made-up sound, playing goes on with whatever has come.
const LONGEST_WAIT: Span = Span::from_secs(1);
/// A packet with no more payload says that silence follows (RFC 6716 section 3.1).
const SILENT: u32 = 2;
/// Silence is believed for as long as it takes to miss so many packets in a row that would renew it.
const MISSED: u64 = 2;

#[derive(Clone, Debug)]
pub(crate) struct NetEq {
    frame: Span,
    /// By sequence number: when they were spoken, and whether silence follows.
    packets: BTreeMap<u32, Waiting>,
    target: Target,
    /// They wait for so long at least, because the video is later.
    least: Span,
    /// Decoded, and not given out yet.
    decoded: Span,
    /// The moment of capture of the sound that comes next; `None` before the first packet.
    next: Option<Time>,
    /// The sequence number after the last one that was decoded.
    sequence: u32,
    is_silent: bool,
    /// The end of the silence that the sender has told of, if nothing renews it.
    silent_until: Time,
    /// Whether sound is being made up, and how much of it does not stand for lost sound yet.
    is_made_up: bool,
    made_up: Span,
    /// No packet was waiting when sound was last made up.
    has_run_dry: bool,
    /// The smoothed length of what waits, in milliseconds.
    level: f64,
    since_stretch: u32,
    events: VecDeque<VoiceEvent>,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    /// The beginning of the sound in it.
    begins: Time,
    arrived: Time,
    bytes: u32,
    is_silent: bool,
}

impl NetEq {
    /// `frame` is the sound in a packet.
    pub(crate) fn new(frame: Span) -> Self {
        Self {
            frame,
            packets: BTreeMap::new(),
            target: Target::new(frame),
            least: Span::ZERO,
            decoded: Span::ZERO,
            next: None,
            sequence: 0,
            is_silent: false,
            silent_until: Time::ZERO,
            is_made_up: false,
            made_up: Span::ZERO,
            has_run_dry: false,
            level: 0.0,
            since_stretch: 0,
            events: VecDeque::new(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.packets.is_empty() && self.decoded.is_zero()
    }

    /// How long packets should wait.
    fn wanted(&self) -> Span {
        self.target.wanted.max(self.least)
    }

    /// Makes packets wait for so long at least; `false`, and nothing changes, if that fills more than three quarters of the buffer.
    pub(crate) fn wait_for_video(&mut self, least: Span) -> bool {
        let is_possible = least * 4 <= self.frame * (3 * MOST_PACKETS as u64);
        if is_possible {
            self.least = least;
        }
        is_possible
    }

    /// How long sound has waited of late when it is heard.
    pub(crate) fn waits(&self) -> Span {
        Span::from_secs_f64(self.level.max(0.0) / 1e3)
    }

    /// What happened, in order.
    pub(crate) fn poll_event(&mut self) -> Option<VoiceEvent> {
        self.events.pop_front()
    }

    /// Takes a packet whose sound was complete at `captured`.
    pub(crate) fn on_packet(&mut self, now: Time, sequence: u32, captured: Time, bytes: u32) {
        let begins = captured - self.frame.min(captured.since(Time::ZERO));
        self.target.on_arrival(sequence, begins, now);
        let is_late = self
            .next
            .is_some_and(|next| sequence < self.sequence || (begins < next && !self.is_silent));
        if is_late || self.packets.contains_key(&sequence) {
            self.events.push_back(VoiceEvent::Discarded);
            return;
        }
        if self.packets.len() == MOST_PACKETS {
            self.events.extend((0..MOST_PACKETS).map(|_| VoiceEvent::Discarded));
            self.packets.clear();
            self.next = Some(begins);
        }
        self.next = self.next.or(Some(begins));
        let is_silent = bytes <= SILENT;
        self.packets.insert(sequence, Waiting { begins, arrived: now, bytes, is_silent });
    }

    /// Gives out the next 10 ms of sound; nothing before the first packet.
    pub(crate) fn tick(&mut self, now: Time) {
        let Some(mut next) = self.next else { return };
        self.smooth();
        self.since_stretch = self.since_stretch.saturating_add(1);
        let mut has_decoded = false;
        while self.decoded < TICK {
            let wanted = TICK - self.decoded;
            let first = self.packets.first_key_value().map(|(sequence, first)| (*sequence, *first));
            match first {
                Some((sequence, first)) if first.begins <= next => {
                    if self.waits_for_more() {
                        self.make_up(wanted);
                        continue;
                    }
                    self.packets.pop_first();
                    let delay = (now + self.decoded).since(first.begins);
                    self.events.push_back(VoiceEvent::Played {
                        delay,
                        buffered: now.since(first.arrived),
                        target: self.wanted(),
                        length: self.frame,
                        bytes: first.bytes,
                    });
                    self.decoded += self.frame;
                    next = first.begins + self.frame;
                    self.sequence = sequence + 1;
                    self.is_silent = first.is_silent;
                    self.silent_until = next + (NOISE_EVERY + self.frame) * MISSED;
                    (self.made_up, self.is_made_up, self.has_run_dry) = (Span::ZERO, false, false);
                    has_decoded = true;
                }
                // What lies before the packet that was sent next was not sent.
                Some((sequence, first)) if self.is_silent && sequence == self.sequence => {
                    next += self.be_silent(wanted.min(first.begins.since(next)));
                }
                _ if self.is_silent && next < self.silent_until => {
                    let ends = first.map_or(Time::NEVER, |(_, first)| first.begins);
                    let left = ends.min(self.silent_until).since(next);
                    next += self.be_silent(wanted.min(left));
                }
                _ if self.is_silent => self.is_silent = false,
                Some((_, first)) => {
                    let missing = first.begins.since(next);
                    // The sound made up while no packet was there stands for the packet missing here.
                    let covered = missing.min(self.made_up);
                    let is_too_much = self.waiting() > self.wanted() + ABOVE_TARGET;
                    if covered == missing || is_too_much {
                        next = first.begins;
                    } else if self.has_run_dry {
                        self.has_run_dry = false;
                        next += covered;
                        self.made_up = self.made_up - covered;
                    } else {
                        let length = wanted.min(missing);
                        self.make_up(length);
                        self.made_up = self.made_up - length;
                        next += length;
                    }
                }
                None => {
                    self.make_up(wanted);
                    self.has_run_dry = true;
                }
            }
        }
        if has_decoded && !self.is_silent {
            self.stretch();
        }
        self.decoded = self.decoded.saturating_sub(TICK);
        self.next = Some(next);
    }

    /// What lies between the first packet and the last, both included, and with it what was decoded.
    fn waiting(&self) -> Span {
        let ends = (self.packets.first_key_value(), self.packets.last_key_value());
        let (Some((_, first)), Some((_, last))) = ends else { return Span::ZERO };
        last.begins.since(first.begins) + self.frame
    }

    fn there(&self) -> Span {
        self.waiting() + self.decoded
    }

    /// After a gap without packets, half of what should wait must have come first.
    fn waits_for_more(&self) -> bool {
        self.has_run_dry
            && self.made_up < LONGEST_WAIT
            && self.there() * 2 < self.wanted()
            && !self.packets.values().any(|packet| packet.is_silent)
    }

    fn make_up(&mut self, length: Span) {
        self.events.push_back(VoiceEvent::Concealed { length, begins: !self.is_made_up });
        self.is_made_up = true;
        self.made_up += length;
        self.decoded += length;
    }

    /// Returns the length.
    fn be_silent(&mut self, length: Span) -> Span {
        self.events.push_back(VoiceEvent::Silent { length });
        self.decoded += length;
        length
    }

    fn smooth(&mut self) {
        let target = self.wanted().as_millis_f64();
        let weight = match target {
            ..=20.0 => 251.0,
            ..=60.0 => 252.0,
            ..=140.0 => 253.0,
            _ => 254.0,
        } / 256.0;
        self.level = weight * self.level + (1.0 - weight) * self.there().as_millis_f64();
    }

    /// Leaves out a pitch period if too much waits, or repeats one if too little does.
    fn stretch(&mut self) {
        let target = self.wanted().as_millis_f64();
        let low = (0.75 * target).max(target - 85.0);
        let high = target.max(low + 20.0);
        let is_allowed = self.since_stretch >= BETWEEN_STRETCHES;
        let is_enough = self.there() >= TO_STRETCH && self.decoded > PITCH + TICK;
        if is_enough && (self.level >= 4.0 * high || (self.level >= high && is_allowed)) {
            self.decoded = self.decoded - PITCH;
            self.level -= PITCH.as_millis_f64();
            self.events.push_back(VoiceEvent::Removed { length: PITCH });
            self.since_stretch = 0;
        } else if self.level < low && is_allowed {
            self.decoded += PITCH;
            self.level += PITCH.as_millis_f64();
            self.events.push_back(VoiceEvent::Inserted { length: PITCH });
            self.since_stretch = 0;
        }
    }
}

/// How long packets should wait: long enough for nearly all that come in order, and for those that were
/// overtaken as far as losing them would be worse; a packet's own length at least, because so much goes from
/// what waits until the next one comes.
#[derive(Clone, Debug)]
struct Target {
    least: Span,
    wanted: Span,
    /// Delays of packets that were spoken in the last two seconds, with that moment.
    history: VecDeque<(Time, Span)>,
    in_order: Shares,
    /// Delays of packets that others overtook; packets that came in order count with none.
    overtaken: Shares,
    /// The largest delay since then of a packet that came in order.
    largest: Span,
    since: Option<Time>,
    newest: Option<u32>,
}

const FIRST_TARGET: Span = Span::from_millis(80);
const HISTORY: Span = Span::from_secs(2);
const QUANTILE: f64 = 0.95;
const FORGET: f64 = 0.983;
const FORGET_OVERTAKEN: f64 = 0.9993;
/// Waiting this long is as bad as losing one packet of a hundred.
const PER_HUNDREDTH: f64 = 20.0;
/// The histogram gets the largest delay of each period of this length.
const EVERY: Span = Span::from_millis(500);

impl Target {
    fn new(frame: Span) -> Self {
        Self {
            least: frame,
            wanted: FIRST_TARGET.max(frame),
            history: VecDeque::new(),
            in_order: Shares::new(FORGET),
            overtaken: Shares::new(FORGET_OVERTAKEN),
            largest: Span::ZERO,
            since: None,
            newest: None,
        }
    }

    fn on_arrival(&mut self, sequence: u32, begins: Time, now: Time) {
        let delay = now.since(begins);
        self.history.push_back((begins, delay));
        while self.history.pop_front_if(|(spoken, _)| *spoken + HISTORY < begins).is_some() {}
        let fastest = self.history.iter().map(|(_, delay)| *delay).min().unwrap_or(delay);
        let later = delay - fastest;
        let is_overtaken = self.newest.is_some_and(|newest| sequence < newest);
        self.newest = self.newest.max(Some(sequence));
        self.overtaken.add(if is_overtaken { later } else { Span::ZERO });
        if !is_overtaken {
            self.largest = self.largest.max(later);
            let since = *self.since.get_or_insert(now);
            if now.since(since) > EVERY {
                self.in_order.add(self.largest);
                (self.largest, self.since) = (Span::ZERO, Some(now));
            }
        }
        if self.in_order.added > 0 {
            let for_most = self.in_order.covering(QUANTILE);
            self.wanted = for_most.max(self.overtaken.cheapest(for_most)).max(self.least);
        }
    }
}

/// A histogram: the shares of delays in buckets of 20 ms. Old delays gradually lose weight.
#[derive(Clone, Debug)]
struct Shares {
    shares: Vec<f64>,
    added: u32,
    forget: f64,
}

const BUCKET: Span = Span::from_millis(20);
const BUCKETS: usize = 100;
/// The first delays count less than those after them: the n-th delay gets a weight of 2/(n + 1).
const START_WEIGHT: f64 = 2.0;

impl Shares {
    fn new(forget: f64) -> Self {
        Self { shares: alloc::vec![0.0; BUCKETS], added: 0, forget }
    }

    fn add(&mut self, delay: Span) {
        let bucket = (delay.as_nanos() / BUCKET.as_nanos()) as usize;
        self.added = self.added.saturating_add(1);
        let kept = (1.0 - START_WEIGHT / (f64::from(self.added) + 1.0)).clamp(0.0, self.forget);
        self.shares.iter_mut().for_each(|share| *share *= kept);
        self.shares[bucket.min(BUCKETS - 1)] += 1.0 - kept;
    }

    /// The end of the bucket that has this quantile.
    fn covering(&self, quantile: f64) -> Span {
        let mut left = 1.0;
        let covers = |share: &f64| {
            left -= share;
            left <= 1.0 - quantile
        };
        let at = self.shares.iter().position(covers).unwrap_or(BUCKETS - 1);
        BUCKET * (at as u64 + 1)
    }

    /// The cheapest time to wait, as the end of a bucket. The cost is the time beyond `anyhow`, plus the loss
    /// of packets that come later.
    fn cheapest(&self, anyhow: Span) -> Span {
        let mut left = 1.0;
        let (mut best, mut least) = (0, f64::INFINITY);
        for (at, share) in self.shares.iter().enumerate() {
            left -= share;
            let wait = (BUCKET * at as u64).saturating_sub(anyhow).as_millis_f64();
            let cost = wait + 100.0 * PER_HUNDREDTH * left;
            if cost < least {
                (best, least) = (at, cost);
            }
        }
        BUCKET * (best as u64 + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: Span = Span::from_millis(20);

    fn ms(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    /// What a listener gets in `seconds` if packet `n` takes `delay(n)` ms, or is lost.
    fn heard(seconds: u64, delay: impl Fn(u64) -> Option<u64>) -> (NetEq, Vec<(Time, VoiceEvent)>) {
        heard_in_frames_of(20, seconds, delay)
    }

    fn heard_in_frames_of(
        frame: u64,
        seconds: u64,
        delay: impl Fn(u64) -> Option<u64>,
    ) -> (NetEq, Vec<(Time, VoiceEvent)>) {
        let mut neteq = NetEq::new(Span::from_millis(frame));
        let count = 1000 * seconds / frame;
        let packets = (0..count).filter_map(|n| Some((n, frame * (n + 1) + delay(n)?)));
        let mut arrivals: Vec<(u64, u64)> = packets.map(|(n, at)| (at, n)).collect();
        arrivals.sort();
        let mut arrivals = arrivals.into_iter().peekable();
        let mut events = Vec::new();
        for at in (0..1000 * seconds).step_by(10) {
            while let Some((arrived, n)) = arrivals.next_if(|(arrived, _)| *arrived <= at) {
                neteq.on_packet(ms(arrived), n as u32, ms(frame * (n + 1)), 80);
            }
            neteq.tick(ms(at));
            while let Some(event) = neteq.poll_event() {
                events.push((ms(at), event));
            }
        }
        (neteq, events)
    }

    fn concealed(events: &[(Time, VoiceEvent)], from: u64) -> Span {
        let lengths =
            events.iter().filter(|(at, _)| *at >= ms(from)).map(|(_, event)| match event {
                VoiceEvent::Concealed { length, .. } => *length,
                _ => Span::ZERO,
            });
        lengths.fold(Span::ZERO, |sum, length| sum + length)
    }

    fn last_delay(events: &[(Time, VoiceEvent)]) -> u64 {
        let delays = events.iter().rev().find_map(|(_, event)| match event {
            VoiceEvent::Played { delay, .. } => Some(delay.as_millis()),
            _ => None,
        });
        delays.expect("something was played")
    }

    /// One bucket of 20 ms is wanted; the path takes 30 ms and the frame 20.
    #[test]
    fn a_steady_stream_is_heard_whole_and_soon() {
        let (neteq, events) = heard(60, |_| Some(30));
        assert_eq!(neteq.target.wanted, Span::from_millis(20));
        assert_eq!(concealed(&events, 5000), Span::ZERO);
        let delay = last_delay(&events);
        assert!((50..=50 + 60).contains(&delay), "{delay} ms");
    }

    /// The longer a packet, the more must wait when it comes, so that sound lasts until the next one.
    #[test]
    fn a_steady_stream_of_packets_of_any_length_is_heard_as_it_is() {
        for frame in [10, 20, 40, 60, 120] {
            let (neteq, events) = heard_in_frames_of(frame, 60, |_| Some(30));
            assert_eq!(neteq.target.wanted, Span::from_millis(frame.max(20)));
            let late = events.iter().filter(|(at, _)| *at >= ms(20_000));
            let changed = late.filter(|(_, event)| !matches!(event, VoiceEvent::Played { .. }));
            assert_eq!(changed.count(), 0, "frames of {frame} ms");
            let delay = last_delay(&events);
            assert!((30 + frame..=120 + 2 * frame).contains(&delay), "{frame} ms: {delay} ms");
        }
    }

    /// The path stands still for 90 ms every second, so five buckets of 20 ms are wanted. Sound is
    /// repeated only when less than three quarters of that wait, so a little is made up now and then.
    #[test]
    fn what_waits_covers_the_packets_that_come_late() {
        let late = |n: u64| Some(30 + [90, 70, 50, 30, 10].get((n % 50) as usize).unwrap_or(&0));
        let (neteq, events) = heard(120, late);
        assert_eq!(neteq.target.wanted, Span::from_millis(100));
        let concealed = concealed(&events, 60_000).as_secs_f64() / 60.0;
        assert!(concealed < 0.01, "{concealed}");
        let delay = last_delay(&events);
        assert!((120..=170).contains(&delay), "{delay} ms");
    }

    /// Losing one packet of ten is as bad as waiting 200 ms, losing one of a thousand as 2 ms.
    #[test]
    fn more_is_wanted_for_packets_that_are_overtaken_if_losing_them_is_worse() {
        let one_of = |many: u64| move |n: u64| Some(if n % many == many / 2 { 120 } else { 30 });
        assert_eq!(heard(120, one_of(10)).0.target.wanted, Span::from_millis(100));
        assert_eq!(heard(120, one_of(1000)).0.target.wanted, Span::from_millis(20));
    }

    #[test]
    fn a_lost_packet_is_made_up_once_and_the_delay_stays() {
        let lost = |n: u64| (n % 100 != 50).then_some(30);
        let (_, events) = heard(60, lost);
        // One packet of a hundred is lost, counted over 55 seconds: 27 or 28 frames.
        let expected = FRAME * 28;
        let concealed = concealed(&events, 5000);
        assert!(concealed >= expected - FRAME && concealed <= expected + FRAME, "{concealed:?}");
        assert!(last_delay(&events) <= 120, "{}", last_delay(&events));
    }

    #[test]
    fn an_outage_is_made_up_and_what_piled_up_is_played_faster() {
        let held = |n: u64| Some(if (500..550).contains(&n) { 20 * (550 - n) + 30 } else { 30 });
        let (_, events) = heard(60, held);
        let concealed = concealed(&events, 5000);
        assert!(concealed >= Span::from_millis(900) && concealed <= Span::from_millis(1300));
        let removed =
            events.iter().filter(|(_, e)| matches!(e, VoiceEvent::Removed { .. })).count();
        assert!(removed >= 80, "{removed} pitch periods");
        assert!(last_delay(&events) <= 200, "{}", last_delay(&events));
    }

    /// Sound is repeated until three quarters of it wait; nothing is made up for that. 200 packets of 20 ms are 4 s.
    #[test]
    fn packets_wait_for_the_video_as_far_as_the_buffer_can_hold_them() {
        let mut neteq = NetEq::new(FRAME);
        let mut events = Vec::new();
        for n in 0..3000_u64 {
            neteq.on_packet(ms(20 * n + 50), n as u32, ms(20 * (n + 1)), 80);
            if n == 500 {
                assert!(neteq.wait_for_video(Span::from_millis(300)));
                assert!(!neteq.wait_for_video(Span::from_millis(3001)));
            }
            for at in [20 * n + 50, 20 * n + 60] {
                neteq.tick(ms(at));
                events.extend(
                    core::iter::from_fn(|| neteq.poll_event()).map(|event| (ms(at), event)),
                );
            }
        }
        assert_eq!(concealed(&events, 5000), Span::ZERO);
        assert!((225..=300).contains(&neteq.waits().as_millis()), "{}", neteq.waits());
        let delay = last_delay(&events);
        assert!((250..=350).contains(&delay), "{delay} ms");
        assert!(neteq.wait_for_video(Span::from_secs(3)));
    }

    #[test]
    fn a_packet_that_comes_after_its_turn_is_thrown_away() {
        let late = |n: u64| Some(if n == 1000 { 500 } else { 30 });
        let (_, events) = heard(60, late);
        let discarded = events.iter().filter(|(_, event)| *event == VoiceEvent::Discarded).count();
        assert_eq!(discarded, 1);
    }

    #[test]
    fn what_is_given_out_is_as_long_as_the_time() {
        let any = |n: u64| (n % 7 != 3).then_some(30 + n * n % 130);
        let (neteq, events) = heard(30, any);
        let mut sum = 0_i64;
        for (_, event) in &events {
            sum += match event {
                VoiceEvent::Played { .. } => FRAME.as_nanos() as i64,
                VoiceEvent::Concealed { length, .. }
                | VoiceEvent::Inserted { length }
                | VoiceEvent::Silent { length } => length.as_nanos() as i64,
                VoiceEvent::Removed { length } => -(length.as_nanos() as i64),
                VoiceEvent::Discarded => 0,
            };
        }
        let began = events.iter().find(|(_, event)| *event != VoiceEvent::Discarded).map(|e| e.0);
        let ticks = (ms(30_000).since(began.expect("something was heard"))).as_nanos() as i64;
        assert_eq!(sum, ticks + neteq.decoded.as_nanos() as i64);
    }

    #[test]
    fn silence_is_not_made_up() {
        let mut neteq = NetEq::new(FRAME);
        neteq.on_packet(ms(50), 0, ms(20), 80);
        neteq.on_packet(ms(50), 1, ms(40), 2);
        neteq.on_packet(ms(450), 2, ms(420), 80);
        let mut events = Vec::new();
        for at in (50..470).step_by(10) {
            neteq.tick(ms(at));
            events.extend(core::iter::from_fn(|| neteq.poll_event()).map(|event| (ms(at), event)));
        }
        assert_eq!(concealed(&events, 0), Span::ZERO);
        assert_eq!(
            events.iter().filter(|(_, e)| matches!(e, VoiceEvent::Played { .. })).count(),
            3
        );
    }
    /// Noise is renewed each 400 ms. Of a pause in which nothing comes any more two renewals and their packets' length pass in
    /// silence; what follows is missing.
    #[test]
    fn an_outage_that_begins_in_a_pause_is_made_up() {
        let mut neteq = NetEq::new(FRAME);
        let mut events = Vec::new();
        for at in (50..10_050).step_by(10) {
            if at == 50 {
                neteq.on_packet(ms(at), 0, ms(20), 80);
                neteq.on_packet(ms(at), 1, ms(40), 2);
            }
            // Of the packets 2 to 25 none came.
            if at == 9050 {
                neteq.on_packet(ms(at), 26, ms(9020), 80);
            }
            neteq.tick(ms(at));
            events.extend(core::iter::from_fn(|| neteq.poll_event()).map(|event| (ms(at), event)));
        }
        let silent = events.iter().map(|(_, event)| match event {
            VoiceEvent::Silent { length } => *length,
            _ => Span::ZERO,
        });
        assert_eq!(silent.fold(Span::ZERO, |sum, length| sum + length), Span::from_millis(840));
        assert!(concealed(&events, 0) > Span::from_millis(8000), "{}", concealed(&events, 0));
    }
}
