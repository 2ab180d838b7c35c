//! Saturated stations with equal windows: G. Bianchi, "Performance analysis of the IEEE 802.11
//! distributed coordination function", JSAC 18(3), 2000.
//!
//! The correction of I. Tinnirello, G. Bianchi and Y. Xiao, "Refinements on IEEE 802.11 distributed
//! coordination function modeling approaches", 2010, is [`Refinement::FrozenCounters`]: after a
//! success only the winner can use the first slot, because the counters of the others do not move.

use alloc::vec;
use alloc::vec::Vec;

use sojourn_core::param::{time, whole};
use sojourn_core::{Span, SpecError};

use crate::formula::{Formula, Output, output};
use crate::roots::rising_root;

/// The backoff of every station.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    /// W: smallest contention window and one.
    pub window: f64,
    /// m: how often it doubles.
    pub stages: u32,
}

/// CWmin 15 and CWmax 1023.
pub const DCF: Backoff = Backoff { window: 16.0, stages: 6 };

/// The lengths of the chain's slots, in microseconds.
#[derive(Clone, Copy, Debug)]
pub struct Slots {
    /// σ: an empty one.
    pub idle: f64,
    /// T_s: a success, with the interframe space after it.
    pub success: f64,
    /// T_c: a collision.
    pub collision: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Refinement {
    /// As printed in 2000, and right for EDCA, whose counters step down at every boundary.
    #[default]
    None,
    /// DCF: E\[P\] and T_s are divided by 1 − B with B = 1/W, and a slot is added to T_s. τ stays that of 2000, as in
    /// the published tables, and counts draws of 0 a second time: one station has 1 % too little.
    FrozenCounters,
}

/// τ, the probability that a station sends in a slot, and p, that its frame collides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FixedPoint {
    pub tau: f64,
    pub p: f64,
}

/// Equations 7 and 9 for `n` stations.
pub fn fixed_point(n: u32, backoff: Backoff) -> FixedPoint {
    let others = f64::from(n) - 1.0;
    if n == 1 {
        return FixedPoint { tau: attempt(0.0, backoff), p: 0.0 };
    }
    let p = rising_root(0.0, 1.0, |p| p - (1.0 - libm::pow(1.0 - attempt(p, backoff), others)));
    FixedPoint { tau: attempt(p, backoff), p }
}

/// Equation 7 as a sum, which has no singularity at p = 1/2.
fn attempt(p: f64, backoff: Backoff) -> f64 {
    let w = backoff.window;
    let (mut sum, mut power) = (0.0, 1.0);
    for _ in 0..backoff.stages {
        sum += power;
        power *= 2.0 * p;
    }
    2.0 / (1.0 + w + p * w * sum)
}

/// Equation 13: bits that `n` stations deliver in a microsecond, which is Mbit/s, when a frame
/// carries `payload` bits.
pub fn saturation_throughput(
    n: u32,
    payload: f64,
    backoff: Backoff,
    slots: Slots,
    refinement: Refinement,
) -> f64 {
    let FixedPoint { tau, .. } = fixed_point(n, backoff);
    let n = f64::from(n);
    let ptr = 1.0 - libm::pow(1.0 - tau, n);
    let ps = n * tau * libm::pow(1.0 - tau, n - 1.0) / ptr;
    let (payload, success) = match refinement {
        Refinement::None => (payload, slots.success),
        Refinement::FrozenCounters => {
            let kept = 1.0 - 1.0 / backoff.window;
            (payload / kept, slots.success / kept + slots.idle)
        }
    };
    let slot = (1.0 - ptr) * slots.idle + ptr * ps * success + ptr * (1.0 - ps) * slots.collision;
    ps * ptr * payload / slot
}

sojourn_core::params! {
    /// Stations, their backoff and the lengths of slots, by name.
    pub struct Bianchi: "bianchi", "Saturation throughput of equal stations (Bianchi, JSAC 2000; Tinnirello, Bianchi and Xiao 2010)" {
        pub stations: u32 = "10", whole(1, 10_000), "n: stations that always have a frame";
        pub window: u32 = "16", whole(1, 32_768), "W: smallest contention window and one";
        pub stages: u32 = "6", whole(0, 16), "m: how often it doubles";
        pub payload: u32 = "1500", whole(1, 1_000_000), "octets that a frame delivers";
        pub idle: Span = "9us", time(Span::from_nanos(1), Span::from_secs(1)), "σ: an empty slot";
        pub success: Span = "330us", time(Span::from_nanos(1), Span::from_secs(1)), "T_s: frame, acknowledgement and the spaces after both";
        pub collision: Span = "282us", time(Span::from_nanos(1), Span::from_secs(1)), "T_c: the longest frame that collided and the space after it";
        pub refinement: Refinement = "none",
            "none, as printed in 2000, or frozen: the counters of the others stand still after a success";
    }
}

sojourn_core::choice! { Refinement { "none" = Refinement::None, "frozen" = Refinement::FrozenCounters } }

impl Formula for Bianchi {
    const OUTPUTS: &'static [Output] = &[
        output("throughput", "Mbit/s", "payload a second, of all stations"),
        output("tau", "", "probability that a station sends in a slot"),
        output("p", "", "probability that its frame collides"),
    ];

    fn evaluate(&self) -> Result<Vec<f64>, SpecError> {
        let backoff = Backoff { window: f64::from(self.window), stages: self.stages };
        let micros = |span: Span| span.as_nanos() as f64 / 1000.0;
        let slots = Slots {
            idle: micros(self.idle),
            success: micros(self.success),
            collision: micros(self.collision),
        };
        if self.refinement == Refinement::FrozenCounters && self.window < 2 {
            let problem = "a window of 1 leaves no slot to stations with frozen counters";
            return Err(SpecError::new(problem).allow(["window=2 or more"]));
        }
        let FixedPoint { tau, p } = fixed_point(self.stations, backoff);
        let payload = 8.0 * f64::from(self.payload);
        let n = self.stations;
        let throughput = saturation_throughput(n, payload, backoff, slots, self.refinement);
        Ok(vec![throughput, tau, p])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Basic access with 1500 octets of payload: `data` and `ack` µs long.
    fn slots(data: f64, ack: f64, is_eifs: bool) -> Slots {
        let (sifs, difs) = (16.0, 34.0);
        let eifs = if is_eifs { sifs + ack + 0.1 } else { 0.0 };
        let received = if is_eifs { 0.1 } else { 0.0 };
        Slots {
            idle: 9.0,
            success: data + sifs + ack + difs + received,
            collision: data + difs + eifs,
        }
    }

    fn ofdm(bits_per_symbol: f64) -> f64 {
        20.0 + 4.0 * libm::ceil((16.0 + 8.0 * 1534.0 + 6.0) / bits_per_symbol)
    }

    fn he(bits_per_symbol: f64) -> f64 {
        44.0 + 13.6 * libm::ceil((16.0 + 8.0 * 1538.0 + 6.0) / bits_per_symbol)
    }

    #[track_caller]
    fn agrees(slots: Slots, refinement: Refinement, expected: &[(u32, f64)]) {
        for &(n, expected) in expected {
            let s = saturation_throughput(n, 12_000.0, DCF, slots, refinement);
            // The published figures come from a grid of 10 000 values of τ.
            assert!((s / expected - 1.0).abs() < 0.001, "n = {n}: {s} for {expected}");
        }
    }

    #[test]
    fn published_throughput_of_80211a() {
        let frozen = Refinement::FrozenCounters;
        agrees(
            slots(ofdm(24.0), 44.0, false),
            frozen,
            &[(5, 4.7087), (10, 4.3453), (20, 3.9899), (30, 3.7824), (40, 3.6276), (50, 3.5071)],
        );
        agrees(
            slots(ofdm(24.0), 44.0, true),
            frozen,
            &[(5, 4.6899), (10, 4.3197), (20, 3.9589), (30, 3.7490), (40, 3.5927), (50, 3.4711)],
        );
        agrees(
            slots(ofdm(96.0), 28.0, false),
            frozen,
            &[(5, 16.2470), (10, 15.1426), (20, 14.0072), (30, 13.3288), (50, 12.4144)],
        );
        agrees(
            slots(ofdm(216.0), 28.0, false),
            frozen,
            &[(5, 29.8324), (10, 28.1519), (20, 26.2925), (30, 25.1434), (50, 23.5618)],
        );
        agrees(
            slots(ofdm(216.0), 28.0, true),
            frozen,
            &[(5, 29.2861), (10, 27.3763), (20, 25.3325), (30, 24.0944), (50, 22.4162)],
        );
    }

    /// The tables of ns-3's example `wifi-bianchi` at other rates and numbers of stations. Their grid of τ is as far off
    /// at one number of stations for every rate: 0.05 % at 15, 0.10 % at 25, 0.09 % at 35, 0.22 % at 45.
    #[test]
    fn published_throughput_of_other_rates_and_numbers_of_stations() {
        let table: [(f64, f64, [f64; 4]); 6] = [
            (36.0, 44.0, [6.0489, 5.6762, 5.4110, 5.2307]),
            (48.0, 32.0, [7.9102, 7.4274, 7.0829, 6.8485]),
            (72.0, 32.0, [11.3543, 10.6809, 10.1978, 9.8679]),
            (144.0, 28.0, [20.0649, 18.9552, 18.1476, 17.5915]),
            (192.0, 28.0, [24.7069, 23.3965, 22.4350, 21.7696]),
            (216.0, 28.0, [27.0948, 25.6896, 24.6539, 23.9353]),
        ];
        for (bits, ack, published) in table {
            let slots = slots(ofdm(bits), ack, false);
            for ((n, bound), published) in
                [(15, 0.0006), (25, 0.0011), (35, 0.001), (45, 0.0023)].into_iter().zip(published)
            {
                let refinement = Refinement::FrozenCounters;
                let s = saturation_throughput(n, 12_000.0, DCF, slots, refinement);
                assert!((s / published - 1.0).abs() < bound, "n = {n}: {s} for {published}");
            }
        }
    }

    #[test]
    fn published_throughput_of_80211ax() {
        // Best effort waits a slot longer than DIFS; the published collisions do not include that
        // slot.
        let best_effort = |data, ack, is_eifs| {
            let slots = slots(data, ack, is_eifs);
            Slots { success: slots.success + slots.idle, ..slots }
        };
        let none = Refinement::None;
        agrees(
            best_effort(he(117.0), 44.0, false),
            none,
            &[(5, 6.3746), (10, 5.8670), (20, 5.3742), (30, 5.0829), (40, 4.8703), (50, 4.7004)],
        );
        agrees(
            best_effort(he(936.0), 28.0, false),
            none,
            &[(5, 30.6683), (10, 28.8843), (20, 26.9210), (30, 25.6906), (50, 24.0151)],
        );
        agrees(
            best_effort(he(1950.0), 28.0, false),
            none,
            &[(5, 43.0043), (10, 41.0039), (20, 38.5865), (30, 37.0116), (50, 34.8154)],
        );
        agrees(
            best_effort(he(8166.0), 28.0, false),
            none,
            &[(5, 60.3411), (10, 58.5527), (20, 55.8834), (30, 54.0128), (50, 51.2922)],
        );
        agrees(
            best_effort(he(8166.0), 28.0, true),
            none,
            &[(5, 58.0092), (10, 55.0896), (20, 51.4672), (30, 49.1091), (50, 45.8436)],
        );
    }

    /// (W − 1)/2 = 7.5 slots and T_s a frame. With frozen counters the winner's draws of 0 are taken out of its backoff,
    /// so the τ that goes with them is 2/W; that of 2000 is 2/(W + 1).
    #[test]
    fn one_station_alone_is_exact_as_printed_and_one_percent_short_with_frozen_counters() {
        let exact = 12_000.0 / (7.5 * 9.0 + 330.0);
        let of = |refinement| Bianchi { stations: 1, refinement, ..Bianchi::default() };
        let throughput = |refinement| of(refinement).evaluate().expect("an answer")[0];
        assert!((throughput(Refinement::None) / exact - 1.0).abs() < 1e-12);
        let frozen = 12_000.0 * 16.0 / 15.0 / (7.5 * 9.0 + 330.0 * 16.0 / 15.0 + 9.0);
        assert!((throughput(Refinement::FrozenCounters) / frozen - 1.0).abs() < 1e-12);
        assert!((frozen / exact - 0.9895).abs() < 1e-4);
    }

    #[test]
    fn one_station_never_collides() {
        let point = fixed_point(1, DCF);
        assert!(point.p < 1e-12 && (point.tau - 2.0 / 17.0).abs() < 1e-12);
    }

    #[test]
    fn collisions_grow_with_the_stations() {
        let p = |n| fixed_point(n, DCF).p;
        // The values of several hand calculations for measured cells.
        for (n, expected) in [(2, 0.1046), (3, 0.1781), (5, 0.2715), (10, 0.3844), (50, 0.5953)] {
            assert!((p(n) - expected).abs() < 5e-5, "{n}: {}", p(n));
        }
    }
}
