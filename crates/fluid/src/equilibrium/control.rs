//! Windows as means that follow smooth laws (V. Misra, W.-B. Gong, D. Towsley, SIGCOMM 2000): signals
//! come as a Poisson stream with the rate of packets times the probability.

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use sojourn_cca::Config;
use sojourn_core::SpecError;

/// RFC 9438: C, β, and the increase that is as fast as Reno's with that β.
const C: f64 = 0.4;
const BETA: f64 = 0.7;
const FRIENDLY: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// DCTCP's gain (RFC 8257).
const GAIN: f64 = 1.0 / 16.0;
/// The least that is signalled, so that windows are finite.
const LEAST: f64 = 1e-12;

/// A control's law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Control {
    /// w' = x(1 − p)/w − x·p·w/2.
    Reno,
    /// The cubic of the time s since the last signal: s' = 1 − λs, W' = λ(w − W), λ = x·p; or where that is
    /// larger the Reno-friendly window. The states are W, s, and the friendly window.
    Cubic,
    /// w' = (1 − ℓ − α·w/2·m)/τ − x·ℓ·w/2 and α' = g(p − α)/τ, where m = 1 − exp(−w·p) is the chance that a
    /// round trip has a mark (M. Alizadeh, A. Javanmard, B. Prabhakar, SIGMETRICS 2011, with marks at random),
    /// and a loss, of the share ℓ, halves the window as Reno's (RFC 8257 section 3.5).
    Dctcp,
    /// Packets that a buffer keeps the window at, whatever is signalled.
    Limited(f64),
}

/// What comes back to a sender now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Back {
    /// Packets a second when they were sent, the window then, the share that the queue signalled, and of
    /// all that was sent the share that was signalled or lost on the medium.
    pub(super) rate: f64,
    pub(super) window: f64,
    pub(super) marked: f64,
    pub(super) signalled: f64,
    pub(super) lost: f64,
    pub(super) rtt: f64,
}

impl Control {
    /// DCTCP and Prague that hear of no marks are Reno (RFC 8257 section 3.5; Prague draft section 2.3.1).
    pub(super) fn new(cca: &Config, is_marked: bool) -> Result<Self, SpecError> {
        match cca {
            Config::Reno(_) => Ok(Self::Reno),
            Config::Cubic(_) => Ok(Self::Cubic),
            Config::Dctcp(_) | Config::Prague(_) if is_marked => Ok(Self::Dctcp),
            Config::Dctcp(_) | Config::Prague(_) => Ok(Self::Reno),
            other => {
                let problem = format!("'{}' has no smooth law", other.name());
                Err(SpecError::new(problem).allow(["reno", "cubic", "dctcp", "prague"]))
            }
        }
    }

    pub(super) const fn states(self) -> usize {
        match self {
            Self::Reno => 1,
            Self::Cubic => 3,
            Self::Dctcp => 2,
            Self::Limited(_) => 0,
        }
    }

    /// Packets.
    pub(super) fn window(self, state: &[f64]) -> f64 {
        match self {
            Self::Reno | Self::Dctcp => state[0],
            Self::Cubic => cubic(state[0], state[1]).max(state[2]),
            Self::Limited(window) => window,
        }
        .max(1e-3)
    }

    /// The window at which nothing changes.
    pub(super) fn window_at(self, p: f64, lost: f64, rtt: f64) -> f64 {
        self.window(&self.at_rest(p, lost, rtt))
    }

    /// The state at which nothing changes, if the queue signals `p` and the medium loses `lost`.
    pub(super) fn at_rest(self, p: f64, lost: f64, rtt: f64) -> Vec<f64> {
        let marked = p.max(LEAST);
        let p = either(p, lost).max(LEAST);
        match self {
            Self::Reno => vec![libm::sqrt(2.0 * (1.0 - p) / p)],
            Self::Cubic => {
                // λ·K = 1 and K³ = w(1 − β)/C.
                let most = libm::pow(rtt / p, 0.75) * libm::pow(C / (1.0 - BETA), 0.25);
                let friendly = libm::sqrt(FRIENDLY * (1.0 - p) / ((1.0 - BETA) * p));
                if most >= friendly {
                    return vec![most, k(most), friendly];
                }
                // The friendly window sets when signals come, and with that the cubic's clock.
                let since = rtt / (friendly * p);
                vec![friendly, since, friendly]
            }
            Self::Dctcp => {
                // What grows in a round trip is what is cut in it; without losses p·w is 2 to 3.
                let grows = |w: f64| {
                    1.0 - lost + marked * w / 2.0 * libm::expm1(-w * marked) - lost * w * w / 2.0
                };
                let (mut low, mut high) = (0.0, 3.0 / marked);
                for _ in 0..100 {
                    let w = 0.5 * (low + high);
                    if grows(w) > 0.0 {
                        low = w;
                    } else {
                        high = w;
                    }
                }
                vec![high, marked]
            }
            Self::Limited(_) => vec![],
        }
    }

    pub(super) fn slopes(self, state: &[f64], back: &Back, slopes: &mut [f64]) {
        let Back { rate, window, marked, signalled, lost, rtt } = *back;
        let signals = rate * signalled;
        let acknowledged = rate * (1.0 - signalled);
        match self {
            Self::Reno => {
                slopes[0] = acknowledged / state[0] - signals * state[0] / 2.0;
            }
            Self::Cubic => {
                slopes[0] = signals * (window - state[0]);
                slopes[1] = 1.0 - signals * state[1];
                slopes[2] = FRIENDLY * acknowledged / state[2] - signals * (1.0 - BETA) * state[2];
            }
            Self::Dctcp => {
                let has_mark = -libm::expm1(-state[0] * marked);
                slopes[0] = (1.0 - lost - state[1] * state[0] / 2.0 * has_mark) / rtt
                    - rate * lost * state[0] / 2.0;
                slopes[1] = GAIN * (marked - state[1]) / rtt;
            }
            Self::Limited(_) => {}
        }
    }
}

/// The share to which one of two things happens that do not depend on each other.
pub(super) fn either(one: f64, other: f64) -> f64 {
    1.0 - (1.0 - one) * (1.0 - other)
}

fn k(most: f64) -> f64 {
    libm::cbrt(most * (1.0 - BETA) / C)
}

fn cubic(most: f64, since: f64) -> f64 {
    let time = since - k(most);
    C * time * time * time + most
}
