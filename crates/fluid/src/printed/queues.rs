//! The queues, equations (15) to (24) as printed.
//!
//! Nothing printed says what p_drop, κ_codel, φ_host, ψ and F_cake are. p_drop is the indicator of the
//! two that the text offers; κ is one packet an interval, which is how CoDel begins; F_cake is the same
//! over what comes; φ_host is one over the host's flows, and ψ is 1.

use alloc::vec::Vec;

use sojourn_qdisc::{Config, fifo};

use crate::world::Bottleneck;

#[derive(Clone, Debug)]
pub(super) enum Discipline {
    /// Q_max, packets.
    Fifo {
        most: f64,
    },
    /// CoDel's target and interval, seconds.
    FqCodel {
        target: f64,
        interval: f64,
    },
    Cake {
        target: f64,
        interval: f64,
    },
}

/// All flows at the queue. Amounts are packets, times seconds.
#[derive(Clone, Debug)]
pub(super) struct Queues {
    discipline: Discipline,
    /// Θ_i, the rate that equation (8) or a link gives a flow.
    pub(super) theta: Vec<f64>,
    /// α_i of equations (20) and (22).
    alpha: Vec<f64>,
    capacity: f64,
    pub(super) held: Vec<f64>,
    /// p_i.
    pub(super) loss: Vec<f64>,
}

impl Queues {
    pub(super) fn new(link: &Bottleneck, capacity: f64) -> Self {
        let members = &link.members;
        let count = members.len() as f64;
        let mut alpha: Vec<f64> = members.iter().map(|_| 1.0 / count).collect();
        let discipline = match &link.queue {
            Config::FqCodel(config) => Discipline::FqCodel {
                target: config.target.as_secs_f64(),
                interval: config.interval.as_secs_f64(),
            },
            Config::Cake(config) => {
                // Equation (22): ω = φ_host(h(i))·ψ.
                let omega = |source: u16| {
                    1.0 / members.iter().filter(|other| other.source == source).count() as f64
                };
                let sum: f64 = members.iter().map(|member| omega(member.source)).sum();
                alpha = members.iter().map(|member| omega(member.source) / sum).collect();
                Discipline::Cake {
                    target: config.target().as_secs_f64(),
                    interval: config.rtt.as_secs_f64(),
                }
            }
            Config::Fifo(fifo::Config::Packets(most)) => {
                Discipline::Fifo { most: f64::from(*most) }
            }
            Config::Fifo(fifo::Config::Bytes(most)) => {
                Discipline::Fifo { most: most.as_u64() as f64 / link.packet }
            }
            _ => Discipline::Fifo { most: f64::INFINITY },
        };
        let none = || members.iter().map(|_| 0.0).collect();
        Self {
            discipline,
            theta: members.iter().map(|_| capacity / count).collect(),
            alpha,
            capacity,
            held: none(),
            loss: none(),
        }
    }

    /// Equation (15).
    pub(super) fn rtt(&self, flow: usize, least_rtt: f64) -> f64 {
        least_rtt + self.held[flow] / self.theta[flow]
    }

    /// Equation (17), which has the symbol Θ_i(t): what a flow receives.
    pub(super) fn received(&self, flow: usize, rate: f64) -> f64 {
        (1.0 - self.loss[flow]) * rate
    }

    pub(super) fn sojourn(&self, flow: usize) -> f64 {
        match self.discipline {
            Discipline::Fifo { .. } => self.held[flow] / self.theta[flow],
            Discipline::FqCodel { .. } | Discipline::Cake { .. } => {
                self.held[flow] / (self.alpha[flow] * self.capacity)
            }
        }
    }

    /// A step in which flows send `rates`.
    pub(super) fn advance(&mut self, rates: &[f64], step: f64) {
        for (flow, rate) in rates.iter().enumerate() {
            // Equations (20) and (23), s_i. Equation (18) is a share of the queue, in packets, and nothing
            // uses it: equation (16) has Θ_i.
            let service = match self.discipline {
                Discipline::Fifo { .. } => self.theta[flow],
                _ => self.alpha[flow] * self.capacity,
            };
            let enters = match self.discipline {
                // Equation (24).
                Discipline::Cake { .. } => rate * (1.0 - self.loss[flow]),
                // Equation (16).
                _ => *rate,
            };
            self.held[flow] += step * (enters - service);
        }
        let all: f64 = self.held.iter().sum();
        for (flow, rate) in rates.iter().enumerate() {
            let sojourn = self.sojourn(flow);
            // d_i, packets a second.
            let dropped = match self.discipline {
                // Equation (19).
                Discipline::Fifo { most } => {
                    if all >= most {
                        *rate
                    } else {
                        0.0
                    }
                }
                // Equations (21) and (23).
                Discipline::FqCodel { target, interval }
                | Discipline::Cake { target, interval } => {
                    if sojourn > target {
                        1.0 / interval
                    } else {
                        0.0
                    }
                }
            };
            self.loss[flow] = if *rate > 0.0 { (dropped / rate).min(1.0) } else { 0.0 };
        }
    }
}
