//! Lip sync: which of voice and video has to wait for the other, and for how long.
//!
//! As libwebrtc's receiver does: once a second it compares when the newest packet of each stream came with when
//! its content was captured, by the sender's clock, adds how long each stream waits here, and smooths the
//! difference. If it is large, half of it, and no more than 80 ms, goes to the delay of the stream that is early;
//! what was added to the late one before is taken away first.

use sojourn_core::{Span, Time};

use crate::rtcp::SenderReport;

/// How often streams are compared.
pub(crate) const EVERY: Span = Span::from_secs(1);
/// Milliseconds: the least mean difference that is acted on, the largest change at once, the most that a stream
/// may wait, and beyond what a difference is not believed.
const LEAST: i64 = 30;
const LARGEST_CHANGE: i64 = 80;
const MOST: i64 = 10_000;
const UNBELIEVABLE: i64 = 10_000;
/// A new difference is one part of so many of the mean.
const SMOOTHED_OVER: i64 = 4;
/// With one report nothing says how fast the stream's clock runs.
const REPORTS: u32 = 2;

#[derive(Clone, Debug)]
pub(crate) struct LipSync {
    voice: Aligned,
    video: Aligned,
    /// The smoothed difference in milliseconds: above zero, video is later.
    mean: i64,
}

/// A packet of a stream: its RTP timestamp, when it came, and how long its content waits here until it is played.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Newest {
    pub(crate) timestamp: u32,
    pub(crate) arrived: Time,
    pub(crate) waits: Span,
}

/// How long each stream waits at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeastWaits {
    pub(crate) voice: Span,
    pub(crate) video: Span,
}

impl LipSync {
    /// RTP clocks in ticks a second.
    pub(crate) fn new(voice_clock: u32, video_clock: u32) -> Self {
        Self { voice: Aligned::new(voice_clock), video: Aligned::new(video_clock), mean: 0 }
    }

    pub(crate) fn on_voice_report(&mut self, report: &SenderReport) {
        self.voice.on_report(report);
    }

    pub(crate) fn on_video_report(&mut self, report: &SenderReport) {
        self.video.on_report(report);
    }

    /// Compares the newest packets of both streams. Returns what changes from now on, if anything does: not before
    /// both have had two sender reports, nor when one of them has had no packet since it was last asked.
    pub(crate) fn compare(&mut self, voice: Newest, video: Newest) -> Option<LeastWaits> {
        if !self.voice.is_news(voice.arrived) || !self.video.is_news(video.arrived) {
            return None;
        }
        let captured = [self.voice.captured(voice)?, self.video.captured(video)?];
        // In 1/65536 s, as the clocks of both are the sender's.
        let captured_later = i64::from(captured[1].wrapping_sub(captured[0]) as i32);
        let came_later = nanos(video.arrived) - nanos(voice.arrived);
        let later = came_later - ((captured_later * 1_000_000_000) >> 16);
        let later = (later + 500_000).div_euclid(1_000_000);
        if later.abs() > UNBELIEVABLE {
            return None;
        }
        self.align(later + millis(video.waits) - millis(voice.waits))
    }

    /// Takes how much later video is played than voice, in milliseconds.
    fn align(&mut self, later: i64) -> Option<LeastWaits> {
        self.mean = ((SMOOTHED_OVER - 1) * self.mean + later) / SMOOTHED_OVER;
        if self.mean.abs() < LEAST {
            return None;
        }
        let change = (self.mean / 2).clamp(-LARGEST_CHANGE, LARGEST_CHANGE);
        // What was asked for shows only later: until then the mean would ask for it again.
        self.mean = 0;
        let (late, early) = match change > 0 {
            true => (&mut self.video, &mut self.voice),
            false => (&mut self.voice, &mut self.video),
        };
        if late.added > 0 {
            late.added -= change.abs();
            early.added = 0;
        } else {
            early.added += change.abs();
            late.added = 0;
        }
        // libwebrtc keeps what was taken from the voice beyond all that had been added to it.
        self.video.added = self.video.added.max(0);
        Some(LeastWaits { voice: self.voice.settle(), video: self.video.settle() })
    }

    /// The voice's buffer can't hold as much as was last asked for.
    pub(crate) fn on_voice_refused(&mut self) {
        self.voice.added = self.voice.added * 9 / 10;
    }
}

/// A stream that is aligned with another.
#[derive(Clone, Debug)]
struct Aligned {
    /// Ticks of its RTP clock in a second.
    clock: u32,
    /// The newest sender report's time, in 1/65536 s, and RTP timestamp; and how many came.
    report: (u32, u32),
    reports: u32,
    /// When the packet came that was compared last.
    compared: Option<Time>,
    /// What was added to its delay, and how long it was last told to wait, in milliseconds. When all was taken
    /// away again, the rest of the last step stays.
    added: i64,
    waits: i64,
}

impl Aligned {
    fn new(clock: u32) -> Self {
        Self { clock, report: (0, 0), reports: 0, compared: None, added: 0, waits: 0 }
    }

    fn on_report(&mut self, report: &SenderReport) {
        let (sent, _) = self.report;
        let is_newer = report.sent.wrapping_sub(sent) as i32 > 0;
        if self.reports == 0 || is_newer {
            self.report = (report.sent, report.timestamp);
            self.reports = (self.reports + 1).min(REPORTS);
        }
    }

    fn is_news(&mut self, arrived: Time) -> bool {
        self.compared.replace(arrived) != Some(arrived)
    }

    /// The sender's time at which the packet's content was captured, in 1/65536 s.
    fn captured(&self, packet: Newest) -> Option<u32> {
        if self.reports < REPORTS {
            return None;
        }
        let (sent, timestamp) = self.report;
        let ticks = i64::from(packet.timestamp.wrapping_sub(timestamp) as i32);
        let since = (ticks << 16).div_euclid(i64::from(self.clock));
        Some(sent.wrapping_add(since as u32))
    }

    /// How long it waits at least from now on.
    fn settle(&mut self) -> Span {
        if self.added > 0 {
            self.waits = self.added.min(MOST);
        }
        Span::from_millis(self.waits as u64)
    }
}

fn millis(span: Span) -> i64 {
    span.as_millis() as i64
}

fn nanos(at: Time) -> i64 {
    at.as_nanos() as i64
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;
    use crate::rtcp::ntp_middle;

    const VOICE: u32 = 8_000;
    const VIDEO: u32 = 90_000;

    fn ticks(at: Time, clock: u32) -> u32 {
        (u128::from(at.as_nanos()) * u128::from(clock) / 1_000_000_000) as u32
    }

    fn report(at: Time, clock: u32) -> SenderReport {
        let timestamp = ticks(at, clock);
        SenderReport { source: 0, sent: ntp_middle(at), timestamp, packets: 1, octets: 1 }
    }

    /// Two streams whose packets take so many milliseconds.
    struct World {
        sync: LipSync,
        now: Time,
    }

    impl World {
        fn new() -> Self {
            let mut world =
                Self { sync: LipSync::new(VOICE, VIDEO), now: Time::ZERO + Span::from_secs(98) };
            world.report();
            world.report();
            world
        }

        fn report(&mut self) {
            self.sync.on_voice_report(&report(self.now, VOICE));
            self.now += Span::from_millis(100);
            self.sync.on_video_report(&report(self.now, VIDEO));
            self.now += Span::from_millis(900);
        }

        /// Some time later, with packets of the same moment; `waits` are what voice and video wait at the receiver.
        fn compare(&mut self, takes: [u64; 2], waits: [u64; 2]) -> Option<(u64, u64)> {
            self.now += Span::from_millis(10_001);
            let [voice, video] = [(VOICE, takes[0], waits[0]), (VIDEO, takes[1], waits[1])].map(
                |(clock, takes, waits)| Newest {
                    timestamp: ticks(self.now, clock),
                    arrived: self.now + Span::from_millis(takes),
                    waits: Span::from_millis(waits),
                },
            );
            let told = self.sync.compare(voice, video)?;
            Some((told.voice.as_millis(), told.video.as_millis()))
        }
    }

    /// The scenarios of libwebrtc's unit tests (`stream_synchronization_unittest.cc`): NoDelay.
    #[test]
    fn streams_that_are_together_stay_as_they_are() {
        assert_eq!(World::new().compare([0, 0], [0, 0]), None);
    }

    /// VideoDelay: an eighth of the 200 ms by which the voice is later goes to the video, and once more each second
    /// while its delay seems not to grow.
    #[test]
    fn video_waits_for_a_late_voice() {
        let mut world = World::new();
        let waits: Vec<_> = (0..3).map(|_| world.compare([200, 0], [0, 0])).collect();
        assert_eq!(waits, [Some((0, 25)), Some((0, 50)), Some((0, 75))]);
    }

    /// AudioDelay: the voice waits for a late video, longer by an eighth of what is left. When its buffer waits for
    /// less than it was told to, it is told to wait longer, and when for more, for less.
    #[test]
    fn a_voice_waits_for_late_video() {
        let mut world = World::new();
        let mut told = 0;
        for (waits, change) in [(0, 25), (25, 21), (46, 19), (10, 23), (350, -18)] {
            told += change;
            assert_eq!(world.compare([0, 200], [waits, 0]), Some((told as u64, 0)), "{waits}");
        }
    }

    /// BothDelayedAudioLater: 300 and 100 ms; then the voice's buffer waits for 50 ms more, then for 10.
    #[test]
    fn only_the_difference_counts() {
        let mut world = World::new();
        let video = [(0, 25), (0, 50), (0, 75), (50, 106), (10, 132)];
        for (waits, told) in video {
            assert_eq!(world.compare([300, 100], [waits, 0]), Some((0, told)), "{waits}");
        }
    }

    #[test]
    fn what_the_late_stream_was_told_to_wait_is_taken_away_first() {
        let mut world = World::new();
        assert_eq!(world.compare([1000, 0], [0, 0]), Some((0, 80)));
        assert_eq!(world.compare([1000, 0], [0, 0]), Some((0, 160)));
        assert_eq!(world.compare([0, 800], [0, 0]), Some((0, 80)));
        // All is taken away, but its last step stays: one stream changes at a time.
        assert_eq!(world.compare([0, 800], [0, 0]), Some((0, 80)));
        assert_eq!(world.compare([0, 800], [0, 0]), Some((80, 80)));
    }

    #[test]
    fn small_differences_are_left_and_large_ones_not_believed() {
        let mut world = World::new();
        for _ in 0..20 {
            assert_eq!(world.compare([0, 29], [0, 0]), None);
        }
        assert_eq!(world.compare([0, 10_001], [0, 0]), None);
        assert_eq!(world.compare([0, 10_000], [0, 0]), Some((80, 0)));
    }

    #[test]
    fn nothing_is_compared_before_the_second_report_or_without_new_packets() {
        let mut world = World { sync: LipSync::new(VOICE, VIDEO), now: Time::ZERO };
        assert_eq!(world.compare([0, 200], [0, 0]), None);
        world.report();
        assert_eq!(world.compare([0, 200], [0, 0]), None);
        // The same report once more is none.
        let sent = report(Time::ZERO + Span::from_millis(1100), VIDEO);
        world.sync.on_video_report(&sent);
        assert_eq!(world.compare([0, 200], [0, 0]), None);
        world.report();
        assert_eq!(world.compare([0, 200], [0, 0]), Some((25, 0)));
        world.now += EVERY;
        let packet = Newest {
            timestamp: ticks(world.now, VIDEO),
            arrived: world.now,
            waits: Span::from_millis(500),
        };
        let mut voice = Newest { timestamp: ticks(world.now, VOICE), ..packet };
        voice.waits = Span::ZERO;
        assert!(world.sync.compare(voice, packet).is_some());
        assert_eq!(world.sync.compare(voice, packet), None);
    }

    /// RTP timestamps and the middle of an NTP timestamp begin anew in the middle of a call.
    #[test]
    fn clocks_wrap() {
        let wraps = [1u64 << 16, (1 << 32) / u64::from(VIDEO)];
        for wrap in wraps {
            let now = Time::ZERO + Span::from_secs(wrap - 30);
            let mut world = World { sync: LipSync::new(VOICE, VIDEO), now };
            world.report();
            for n in 1..6 {
                world.report();
                assert_eq!(world.compare([0, 240], [0, 0]), Some((30 * n, 0)), "{wrap}");
            }
        }
    }

    #[test]
    fn a_voice_that_was_refused_is_asked_for_a_tenth_less() {
        let mut sync = LipSync::new(VOICE, VIDEO);
        for _ in 0..10 {
            sync.align(1000);
        }
        sync.on_voice_refused();
        let told = sync.align(1000).map(|told| told.voice.as_millis());
        assert_eq!(told, Some(800 * 9 / 10 + 80));
    }

    proptest! {
        /// Whatever the differences: no step is longer than 80 ms, and no wait than 10 s.
        #[test]
        fn steps_and_waits_are_bounded(differences in prop::collection::vec(-12_000_i64..12_000, 1..400)) {
            let mut sync = LipSync::new(VOICE, VIDEO);
            let mut before = [0, 0];
            for later in differences {
                let Some(told) = sync.align(later) else { continue };
                let now = [told.voice, told.video].map(millis);
                for (now, before) in now.into_iter().zip(before) {
                    prop_assert!((0..=MOST).contains(&now));
                    prop_assert!((now - before).abs() <= LARGEST_CHANGE);
                }
                before = now;
            }
        }

        /// Streams whose buffers wait as they are told come together, and neither waits longer than the other took,
        /// but for a step that had gone too far.
        #[test]
        fn streams_that_obey_come_together(
            takes in prop::array::uniform2(0_u64..1_000),
            own in prop::array::uniform2(0_u64..200),
        ) {
            let mut world = World::new();
            let mut waits = own;
            for _ in 0..200 {
                if let Some((voice, video)) = world.compare(takes, waits) {
                    waits = [own[0].max(voice), own[1].max(video)];
                }
            }
            let [voice, video] = [0, 1].map(|at| (takes[at] + waits[at]) as i64);
            prop_assert!((video - voice).abs() <= LEAST + SMOOTHED_OVER, "{voice} {video}");
            let later = (takes[0] + own[0]).max(takes[1] + own[1]) as i64;
            prop_assert!(voice.max(video) <= later + LARGEST_CHANGE);
        }
    }
}
