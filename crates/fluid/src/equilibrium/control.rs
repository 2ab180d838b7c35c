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

/// A control's law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Control {
    /// w' = x(1 − p)/w − x·p·w/2.
    Reno,
    /// The cubic of the time s since the last signal: s' = 1 − λs, W' = λ(w − W), λ = x·p; or where that is
    /// larger the Reno-friendly window. The states are W, s, and the friendly window.
    Cubic,
    /// w' = (1 − α·w/2·m)/τ and α' = g(p − α)/τ, where m = 1 − exp(−w·p) is the chance that a round trip
    /// has a mark (M. Alizadeh, A. Javanmard, B. Prabhakar, SIGMETRICS 2011, with marks at random).
    Dctcp,
}

/// What comes back to a sender now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Back {
    /// Packets a second when they were sent, the window then, and the share that was signalled.
    pub(super) rate: f64,
    pub(super) window: f64,
    pub(super) signalled: f64,
    pub(super) rtt: f64,
}

impl Control {
    pub(super) fn new(cca: &Config) -> Result<Self, SpecError> {
        match cca {
            Config::Reno(_) => Ok(Self::Reno),
            Config::Cubic(_) => Ok(Self::Cubic),
            Config::Dctcp(_) | Config::Prague(_) => Ok(Self::Dctcp),
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
        }
    }

    /// Packets.
    pub(super) fn window(self, state: &[f64]) -> f64 {
        match self {
            Self::Reno | Self::Dctcp => state[0],
            Self::Cubic => cubic(state[0], state[1]).max(state[2]),
        }
        .max(1e-3)
    }

    /// The window at which nothing changes.
    pub(super) fn window_at(self, p: f64, rtt: f64) -> f64 {
        self.window(&self.at_rest(p, rtt))
    }

    pub(super) fn at_rest(self, p: f64, rtt: f64) -> Vec<f64> {
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
                // z(1 − exp(−z)) = 2.
                let (mut low, mut high) = (2.0, 3.0);
                for _ in 0..100 {
                    let z: f64 = 0.5 * (low + high);
                    if z * -libm::expm1(-z) < 2.0 {
                        low = z;
                    } else {
                        high = z;
                    }
                }
                vec![high / p, p]
            }
        }
    }

    pub(super) fn slopes(self, state: &[f64], back: &Back, slopes: &mut [f64]) {
        let Back { rate, window, signalled, rtt } = *back;
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
                let marked = -libm::expm1(-state[0] * signalled);
                slopes[0] = (1.0 - state[1] * state[0] / 2.0 * marked) / rtt;
                slopes[1] = GAIN * (signalled - state[1]) / rtt;
            }
        }
    }
}

fn k(most: f64) -> f64 {
    libm::cbrt(most * (1.0 - BETA) / C)
}

fn cubic(most: f64, since: f64) -> f64 {
    let time = since - k(most);
    C * time * time * time + most
}
