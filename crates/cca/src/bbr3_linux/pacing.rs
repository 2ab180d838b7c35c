//! Pacing rate, and the burst given to segmentation offload, which depends on the round-trip time
//! too.

use sojourn_core::{Rate, Span};

use super::Config;
use super::rules::Rules;
use crate::Setup;
use crate::fixed::{Bw, Gain};

/// A burst lasts a 2⁻¹⁰th of a second.
const PACING_SHIFT: u32 = 10;
/// The largest offloaded packet.
const MAX_GSO: u64 = 65_536;
/// The same, minus the room that headers may take.
const MAX_BURST: u64 = MAX_GSO - 1 - 320;
/// The kernel's setting `tcp_min_tso_segs`.
const MIN_TSO_SEGMENTS: u32 = 2;
/// Below this rate, in bytes per second, version 2 sends segment by segment.
const V2_MIN_TSO_RATE: u64 = 1_200_000 / 8;

#[derive(Clone, Debug)]
pub(super) struct Pacing {
    mss: u32,
    startup_gain: Gain,
    /// Percent of the bandwidth left unused.
    margin: u32,
    tso_rtt_shift: u32,
    min_tso_rate: u64,
    min_rtt: Option<Span>,
    has_seen_rtt: bool,
    bytes_per_sec: u64,
    tso_goal: u32,
}

impl Pacing {
    /// Starts with the initial window spread over the handshake's round-trip time.
    pub(super) fn new(setup: &Setup, config: &Config, rules: Rules) -> Self {
        let mut pacing = Self {
            mss: setup.mss.max(1),
            startup_gain: config.startup_pacing_gain,
            margin: config.pacing_margin.0,
            tso_rtt_shift: config.tso_rtt_shift,
            min_tso_rate: if rules.is_v2() { V2_MIN_TSO_RATE } else { 0 },
            min_rtt: setup.handshake_rtt,
            has_seen_rtt: false,
            bytes_per_sec: 0,
            tso_goal: MIN_TSO_SEGMENTS,
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

    /// Segments sent in one burst.
    pub(super) fn tso_goal(&self) -> u32 {
        self.tso_goal
    }

    pub(super) fn set_min_rtt(&mut self, min_rtt: Option<Span>) {
        if min_rtt != self.min_rtt {
            self.min_rtt = min_rtt;
            self.update_tso_goal();
        }
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

    fn start_from(&mut self, cwnd: u32, rtt: Option<Span>) {
        self.has_seen_rtt = rtt.is_some();
        let micros = rtt.map_or(1_000, |rtt| rtt.as_micros().max(1));
        let bw = Bw::of(u64::from(cwnd), micros);
        self.set(bw.bytes_per_sec(self.mss, self.startup_gain, self.margin));
    }

    fn set(&mut self, bytes_per_sec: u64) {
        let bytes_per_sec = bytes_per_sec.max(1);
        if bytes_per_sec != self.bytes_per_sec {
            self.bytes_per_sec = bytes_per_sec;
            self.update_tso_goal();
        }
    }

    fn update_tso_goal(&mut self) {
        let for_rate = self.bytes_per_sec >> PACING_SHIFT;
        let halvings = self
            .min_rtt
            .and_then(|rtt| rtt.as_micros().checked_shr(self.tso_rtt_shift))
            .unwrap_or(u64::MAX);
        let for_rtt = if self.tso_rtt_shift > 0 && halvings < 32 { MAX_GSO >> halvings } else { 0 };
        let burst = (for_rate + for_rtt).min(MAX_BURST) as u32;
        let least = if self.bytes_per_sec < self.min_tso_rate { 1 } else { MIN_TSO_SEGMENTS };
        self.tso_goal = (burst / self.mss).max(least);
    }
}
