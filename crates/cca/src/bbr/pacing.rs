//! Pacing rate, and the burst that Linux would hand to segmentation offload at it.

use sojourn_core::{Rate, Span};

use crate::Setup;
use crate::fixed::{Bw, Gain};

/// From this rate on at least two segments are sent at once.
const MIN_TSO_BYTES_PER_SEC: u64 = 1_200_000 / 8;
/// A burst lasts a 2⁻¹⁰th of a second.
const PACING_SHIFT: u32 = 10;
/// The largest offloaded packet, minus the room that headers may take.
const MAX_BURST: u64 = 65_536 - 1 - 320;
/// The kernel stores the burst in seven bits.
const MAX_BURST_SEGMENTS: u32 = 127;

#[derive(Clone, Debug)]
pub(super) struct Pacing {
    mss: u32,
    startup_gain: Gain,
    /// Percent of the bandwidth left unused.
    margin: u32,
    has_seen_rtt: bool,
    bytes_per_sec: u64,
    tso_goal: u32,
}

impl Pacing {
    /// Starts with the initial window spread over the handshake's round-trip time.
    pub(super) fn new(setup: &Setup, startup_gain: Gain, margin: u32) -> Self {
        let mut pacing = Self {
            mss: setup.mss.max(1),
            startup_gain,
            margin,
            has_seen_rtt: false,
            bytes_per_sec: 0,
            tso_goal: 1,
        };
        pacing.start_from(setup.initial_cwnd, setup.handshake_rtt);
        pacing
    }

    pub(super) fn rate(&self) -> Rate {
        Rate::from_bytes_per_sec(self.bytes_per_sec)
    }

    pub(super) fn mss(&self) -> u32 {
        self.mss
    }

    pub(super) fn margin(&self) -> u32 {
        self.margin
    }

    /// Paces at `gain` times `bw`; lowers the rate only once the pipe is known to be full.
    pub(super) fn update(
        &mut self,
        bw: Bw,
        gain: Gain,
        full_bw_reached: bool,
        cwnd: u32,
        srtt: Option<Span>,
    ) {
        if !self.has_seen_rtt && srtt.is_some() {
            self.start_from(cwnd, srtt);
        }
        let bytes_per_sec = bw.bytes_per_sec(self.mss, gain, self.margin);
        if full_bw_reached || bytes_per_sec > self.bytes_per_sec {
            self.set(bytes_per_sec);
        }
    }

    /// Segments that Linux would send in one burst.
    pub(super) fn tso_goal(&self) -> u32 {
        self.tso_goal
    }

    pub(super) fn least_quantum(&self) -> u32 {
        if self.bytes_per_sec < MIN_TSO_BYTES_PER_SEC { 1 } else { 2 }
    }

    fn start_from(&mut self, cwnd: u32, rtt: Option<Span>) {
        self.has_seen_rtt = rtt.is_some();
        let micros = rtt.map_or(1_000, |rtt| rtt.as_micros().max(1));
        let bw = Bw::of(u64::from(cwnd), micros);
        self.set(bw.bytes_per_sec(self.mss, self.startup_gain, self.margin));
    }

    fn set(&mut self, bytes_per_sec: u64) {
        if bytes_per_sec == self.bytes_per_sec {
            return;
        }
        self.bytes_per_sec = bytes_per_sec;
        let burst = (bytes_per_sec >> PACING_SHIFT).min(MAX_BURST) as u32;
        self.tso_goal = (burst / self.mss).max(self.least_quantum()).min(MAX_BURST_SEGMENTS);
    }
}
