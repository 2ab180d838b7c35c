//! The worlds that are measured.

use sojourn_core::{Rate, Span};
use sojourn_host::tcp::Config as Transport;
use sojourn_link::RateConfig;
use sojourn_scenario::{App, Checked, Flow, Host, Link, Scenario, Until};

/// From slow and crowded to fast and near. Names are stable: ceilings are kept under them.
pub const YARDSTICKS: &[Yardstick] = &[
    Yardstick {
        name: "1-10M-fifo",
        rate: Rate::from_bps(10_000_000),
        rtt: Span::from_millis(20),
        queue: "pfifo limit 50",
        ccas: &["cubic", "bbr"],
        duration: Span::from_secs(120),
    },
    Yardstick {
        name: "2-10M-fqcodel",
        rate: Rate::from_bps(10_000_000),
        rtt: Span::from_millis(20),
        queue: "fq_codel",
        ccas: &["cubic", "bbr"],
        duration: Span::from_secs(120),
    },
    Yardstick {
        name: "2-10M-cake",
        rate: Rate::from_bps(10_000_000),
        rtt: Span::from_millis(20),
        queue: "cake bandwidth 10mbit",
        ccas: &["cubic", "bbr"],
        duration: Span::from_secs(120),
    },
    Yardstick {
        name: "3-1G-cubic10",
        rate: Rate::from_bps(1_000_000_000),
        rtt: Span::from_millis(20),
        queue: "pfifo limit 1667",
        ccas: &["cubic"; 10],
        duration: Span::from_secs(20),
    },
    Yardstick {
        name: "4-3G-bbr10",
        rate: Rate::from_bps(3_000_000_000),
        rtt: Span::from_millis(1),
        queue: "pfifo limit 5000",
        ccas: &["bbr"; 10],
        duration: Span::from_secs(5),
    },
];

/// Bulk flows through one bottleneck, acknowledgements through another queue of the same rate.
#[derive(Clone, Copy, Debug)]
pub struct Yardstick {
    pub name: &'static str,
    pub rate: Rate,
    /// Propagation there and back.
    pub rtt: Span,
    /// The bottleneck's discipline, as `tc` writes it.
    pub queue: &'static str,
    /// Congestion control of each flow.
    pub ccas: &'static [&'static str],
    /// Simulated, unless asked otherwise.
    pub duration: Span,
}

impl Yardstick {
    pub fn find(name: &str) -> Option<&'static Self> {
        YARDSTICKS.iter().find(|yardstick| yardstick.name == name)
    }

    /// Flows start ten milliseconds apart; the time series has a row every 100 ms.
    pub fn scenario(&self, duration: Span) -> Checked {
        let flows = self.ccas.iter().enumerate().map(|(index, cca)| {
            let name = format!("{cca}-{index}");
            let cca = sojourn_cca::Config::parse(cca).expect("a shipped controller");
            let app = App::bulk(cca, Transport::default());
            let start = Span::from_millis(10 * index as u64);
            Flow { start, ..Flow::new(&name, app, &[0], &[1]) }
        });
        Scenario {
            duration,
            until: Until::Duration,
            warmup: Span::ZERO,
            step: Span::from_millis(100),
            hosts: ["server", "client"].map(|name| Host { name: name.into() }).into(),
            links: vec![self.link("queue", self.queue), self.link("reverse", "pfifo limit 100000")],
            carriers: Vec::new(),
            flows: flows.collect(),
        }
        .checked()
        .expect("yardsticks are sound")
    }

    fn link(&self, name: &str, queue: &str) -> Link {
        let queue = sojourn_qdisc::Config::parse(queue).expect("a shipped discipline");
        let rate = RateConfig::fixed(self.rate).expect("a positive rate");
        Link::new(name, queue, rate, self.rtt / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count;

    #[test]
    fn every_yardstick_is_a_sound_scenario_and_fills_its_link() {
        for yardstick in YARDSTICKS {
            let scenario = yardstick.scenario(Span::from_secs(2));
            let bits = count(&scenario) as f64 * 1448.0 * 8.0 / 2.0;
            let share = bits / yardstick.rate.as_bps() as f64;
            assert!((0.5..1.0).contains(&share), "{} uses {share} of its link", yardstick.name);
        }
    }
}
