//! Queues that signal by smooth laws.

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use sojourn_core::SpecError;
use sojourn_qdisc::{Config, fifo};

use super::Seen;

/// Probabilities between which a point at rest is sought.
const LEAST: f64 = 1e-12;
const MOST: f64 = 0.999;

#[derive(Clone, Debug)]
pub(super) enum Aqm {
    /// Any of the others while it signals nothing: the queue is empty, or it moves.
    Silent { is_empty: bool },
    /// A full queue: p = 1 − C/y.
    Tail { limit: f64 },
    /// The average and the line of RED; the state is the average, in packets.
    Red { min: f64, max: f64, most: f64, weight: f64, marks: bool },
    /// p' = (α(d − target)/T + β·d')·scale(p); the state is p.
    Pie { target: f64, update: f64, alpha: f64, beta: f64, marks: bool },
    /// The same without a scale; Classic flows are signalled with p², low-latency ones with k·p.
    DualPi2 { target: f64, update: f64, alpha: f64, beta: f64, coupling: f64 },
}

impl Aqm {
    pub(super) fn new(config: &Config, capacity: f64, packet: f64) -> Result<Self, SpecError> {
        let bdp_guard = |limit: f64, held: f64| match limit < held {
            true => Err(SpecError::new(format!(
                "the queue's limit of {limit:.0} packets is below what it steers to, {held:.0}"
            ))
            .allow(["a larger limit"])),
            false => Ok(()),
        };
        match config {
            Config::Fifo(fifo::Config::Packets(packets)) => {
                Ok(Self::Tail { limit: f64::from(*packets) })
            }
            Config::Fifo(fifo::Config::Bytes(bytes)) => {
                Ok(Self::Tail { limit: bytes.as_u64() as f64 / packet })
            }
            Config::Red(red) => Ok(Self::Red {
                min: red.min.as_u64() as f64 / packet,
                max: red.max.as_u64() as f64 / packet,
                most: red.probability,
                weight: red.weight(),
                marks: red.ecn,
            }),
            Config::Pie(pie) => {
                let target = pie.target.as_secs_f64();
                bdp_guard(f64::from(pie.limit), target * capacity)?;
                Ok(Self::Pie {
                    target,
                    update: pie.tupdate.as_secs_f64(),
                    alpha: f64::from(pie.alpha) / 16.0,
                    beta: f64::from(pie.beta) / 16.0,
                    marks: pie.ecn,
                })
            }
            Config::DualPi2(dual) => {
                let target = dual.target.as_secs_f64();
                bdp_guard(f64::from(dual.limit), target * capacity)?;
                Ok(Self::DualPi2 {
                    target,
                    update: dual.tupdate.as_secs_f64(),
                    alpha: f64::from(dual.alpha.0) / 256.0,
                    beta: f64::from(dual.beta.0) / 256.0,
                    coupling: f64::from(dual.coupling_factor),
                })
            }
            other => {
                let problem =
                    format!("'{}' signals at moments, which is no smooth law", other.name());
                Err(SpecError::new(problem).allow(["pfifo", "bfifo", "red", "pie", "dualpi2"]))
            }
        }
    }

    /// Where the queue stands if its law moves nothing.
    pub(super) fn limit(&self) -> Option<f64> {
        match self {
            Self::Tail { limit } => Some(*limit),
            Self::Silent { is_empty } => is_empty.then_some(0.0),
            _ => None,
        }
    }

    pub(super) fn is_coupled(&self) -> bool {
        matches!(self, Self::DualPi2 { .. })
    }

    /// Whether capable packets are marked in place of being dropped.
    pub(super) fn marks(&self) -> bool {
        match self {
            Self::Tail { .. } | Self::Silent { .. } => false,
            Self::Red { marks, .. } | Self::Pie { marks, .. } => *marks,
            Self::DualPi2 { .. } => true,
        }
    }

    pub(super) const fn states(&self) -> usize {
        match self {
            Self::Tail { .. } | Self::Silent { .. } => 0,
            Self::Red { .. } | Self::Pie { .. } | Self::DualPi2 { .. } => 1,
        }
    }

    /// The levels between which a point at rest is sought: RED's average, else the probability.
    pub(super) fn levels(&self) -> [f64; 2] {
        match self {
            Self::Red { min, max, .. } => [*min * (1.0 + 1e-9), *max],
            _ => [LEAST, MOST],
        }
    }

    /// Probabilities are halved by their size, so that small ones are found as well.
    pub(super) fn middle(&self, low: f64, high: f64) -> f64 {
        match self {
            Self::Red { .. } => 0.5 * (low + high),
            _ => libm::sqrt(low * high),
        }
    }

    /// The wait in seconds and the probability at a level.
    pub(super) fn at_rest(&self, level: f64, capacity: f64) -> (f64, f64) {
        match self {
            Self::Silent { .. } => (0.0, 0.0),
            Self::Tail { limit } => (limit / capacity, level),
            Self::Red { .. } => (level / capacity, self.line(level)),
            Self::Pie { target, .. } | Self::DualPi2 { target, .. } => (*target, level),
        }
    }

    /// The law's state at a level.
    pub(super) fn state_at(&self, level: f64) -> Vec<f64> {
        match self {
            Self::Tail { .. } | Self::Silent { .. } => vec![],
            _ => vec![level],
        }
    }

    /// What is signalled, given the law's state and the packets a second that arrive.
    pub(super) fn probability(&self, state: &[f64], arrives: f64, capacity: f64) -> f64 {
        match self {
            Self::Silent { .. } => 0.0,
            Self::Tail { .. } => (1.0 - capacity / arrives).max(0.0),
            Self::Red { .. } => self.line(state[0]),
            Self::Pie { .. } | Self::DualPi2 { .. } => state[0].clamp(0.0, 1.0),
        }
    }

    /// What of that a flow hears.
    pub(super) fn signal(&self, p: f64, is_low: bool) -> f64 {
        match self {
            Self::DualPi2 { coupling, .. } if is_low => (coupling * p).min(1.0),
            Self::DualPi2 { .. } => p * p,
            _ => p,
        }
    }

    /// RED's line, with signals spread evenly over up to 1/p arrivals as its count does.
    fn line(&self, average: f64) -> f64 {
        match self {
            Self::Red { min, max, most, .. } => {
                let p = (most * (average - min) / (max - min)).clamp(0.0, *most);
                2.0 * p / (1.0 + p)
            }
            _ => 0.0,
        }
    }

    pub(super) fn slopes(
        &self,
        state: &[f64],
        seen: &Seen,
        trend: f64,
        capacity: f64,
        slopes: &mut [f64],
    ) {
        match self {
            Self::Tail { .. } | Self::Silent { .. } => {}
            Self::Red { weight, .. } => {
                slopes[0] = -libm::log1p(-weight) * capacity * (seen.held - state[0]);
            }
            Self::Pie { target, update, alpha, beta, .. } => {
                let slope = alpha * (seen.wait - target) / update + beta * trend;
                slopes[0] = slope * scale(state[0]);
            }
            Self::DualPi2 { target, update, alpha, beta, .. } => {
                slopes[0] = alpha * (seen.wait - target) / update + beta * trend;
            }
        }
    }
}

/// How much more gently PIE moves while little is signalled (RFC 8033 section 4.2).
fn scale(p: f64) -> f64 {
    const STEPS: [(f64, f64); 6] =
        [(1e-6, 2048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (1e-1, 2.0)];
    STEPS.iter().find(|(below, _)| p < *below).map_or(1.0, |(_, part)| 1.0 / part)
}
