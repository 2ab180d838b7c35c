//! The worlds that are measured.

use sojourn_core::{Rate, Span};
use sojourn_host::tcp::Config as Transport;
use sojourn_link::RateConfig;
use sojourn_scenario::{App, Checked, Flow, Host, Link, Scenario, Until};

use crate::call::Call;
use crate::cell::Cell;
use crate::grown::Grown;

/// From slow and crowded to fast and near. Names are stable, because ceilings refer to them.
pub const YARDSTICKS: &[Yardstick] = &[
    Yardstick {
        name: "1-10M-fifo",
        world: World::Wire { rate: Rate::from_bps(10_000_000), queue: "pfifo limit 50" },
        rtt: Span::from_millis(20),
        ccas: &["cubic", "bbr"],
        duration: Span::from_secs(120),
        ns3: Some(33_100.0),
    },
    Yardstick {
        name: "2-10M-fqcodel",
        world: World::Wire { rate: Rate::from_bps(10_000_000), queue: "fq_codel" },
        rtt: Span::from_millis(20),
        ccas: &["cubic", "bbr"],
        duration: Span::from_secs(120),
        ns3: Some(28_900.0),
    },
    Yardstick {
        name: "2-10M-cake",
        world: World::Wire { rate: Rate::from_bps(10_000_000), queue: "cake bandwidth 10mbit" },
        rtt: Span::from_millis(20),
        ccas: &["cubic", "bbr"],
        duration: Span::from_secs(120),
        ns3: None,
    },
    Yardstick {
        name: "3-1G-cubic10",
        world: World::Wire { rate: Rate::from_bps(1_000_000_000), queue: "pfifo limit 1667" },
        rtt: Span::from_millis(20),
        ccas: &["cubic"; 10],
        duration: Span::from_secs(20),
        ns3: Some(12_600.0),
    },
    Yardstick {
        name: "4-3G-bbr10",
        world: World::Wire { rate: Rate::from_bps(3_000_000_000), queue: "pfifo limit 5000" },
        rtt: Span::from_millis(1),
        ccas: &["bbr"; 10],
        duration: Span::from_secs(5),
        ns3: Some(17_400.0),
    },
    cell("5a-ax-2up", Cell::HE.of(2).up(), Some(&["cubic", "bbr"]), 10, Some(15_300.0)),
    cell(
        "5b-ax-2up-ofdma",
        Cell::HE.of(2).up().with_ofdma(),
        Some(&["cubic", "bbr"]),
        10,
        Some(13_000.0),
    ),
    cell("5c-n-3down-udp", Cell::HT.of(3).udp(50_000_000), None, 30, Some(11_100.0)),
    cell("5d-n-3down-tcp", Cell::HT.of(3), Some(&["cubic"]), 30, Some(12_600.0)),
    cell("5e-n-3down-mac80211", Cell::HT.of(3).in_mac(), Some(&["cubic"]), 30, None),
    cell("6a-ax-30up", Cell::HE.of(30).up(), Some(&["cubic", "bbr"]), 10, Some(2_720.0)),
    cell("6b-n-30down-udp", Cell::HT.of(30).udp(5_000_000), None, 30, Some(7_200.0)),
    cell("6c-n-30down-tcp", Cell::HT.of(30), Some(&["cubic"]), 30, Some(3_400.0)),
    call("7a-call-gcc", Call::ALONE, 3_600),
    call("7b-call-scream2", Call::ALONE.controlled_by("scream-v2"), 3_600),
    call("7c-call-busy", Call::ALONE.over(2_000, "1%"), 600),
    call("7d-game", Call::GAME, 120),
    flows("8a-flows-10-fifo", 10, FIFO),
    flows("8a-flows-100-fifo", 100, FIFO),
    flows("8a-flows-1000-fifo", 1_000, FIFO),
    flows("8a-flows-10000-fifo", 10_000, FIFO),
    flows("8b-flows-10-fqcodel", 10, "fq_codel"),
    flows("8b-flows-1000-fqcodel", 1_000, "fq_codel"),
    flows("8b-flows-10000-fqcodel", 10_000, "fq_codel"),
    flows("8c-flows-10-cake", 10, CAKE),
    flows("8c-flows-1000-cake", 1_000, CAKE),
    flows("8c-flows-10000-cake", 10_000, CAKE),
    window("8d-window-50M", 50, LONG),
    window("8d-window-500M", 500, LONG),
    window("8d-window-1500M", 1_500, LONG),
    window("8e-window-50M-loss", 50, LOSSY),
    window("8e-window-500M-loss", 500, LOSSY),
    window("8e-window-1500M-loss", 1_500, LOSSY),
    hops("8f-hops-1", 1),
    hops("8f-hops-5", 5),
    hops("8f-hops-20", 20),
    window("8g-window-50M-reorder", 50, MIXED),
    window("8g-window-500M-reorder", 500, MIXED),
    fluid("9-fluid-bbr1", &["bbr"; 10]),
    fluid("9-fluid-bbr2", &["bbr2"; 10]),
    fluid("9-fluid-bbr3", &["bbr3"; 10]),
    fluid("9-fluid-cubic", &["cubic"; 10]),
    fluid("9-fluid-reno", &["reno"; 10]),
];

const FIFO: &str = "pfifo limit 1667";
const CAKE: &str = "cake bandwidth 1gbit";

/// Flows that share 1 Gbit/s.
const fn flows(name: &'static str, flows: usize, queue: &'static str) -> Yardstick {
    grown(name, Grown { flows, queue, ..Grown::ONE }, Span::from_millis(20), Span::from_secs(4))
}

const LONG: Grown = Grown { queue: "pfifo limit 20000", ..Grown::ONE };
const LOSSY: Grown = Grown { cca: "bbr", loss: "5%", ..LONG };
const MIXED: Grown = Grown { reorder: "1%", ..LONG };

/// One flow over a second of round-trip time.
const fn window(name: &'static str, mbps: u64, grown: Grown) -> Yardstick {
    self::grown(name, Grown { mbps, ..grown }, Span::from_secs(1), Span::from_secs(60))
}

/// One flow through a row of links.
const fn hops(name: &'static str, hops: u16) -> Yardstick {
    grown(name, Grown { hops, ..Grown::ONE }, Span::from_millis(20), Span::from_secs(4))
}

/// Ten flows over 100 Mbit/s as equations, with a bandwidth-delay product of buffer.
const fn fluid(name: &'static str, ccas: &'static [&'static str]) -> Yardstick {
    let (rate, queue) = (Rate::from_bps(100_000_000), "pfifo limit 290");
    let (rtt, duration) = (Span::from_millis(35), Span::from_secs(9));
    Yardstick { name, world: World::Fluid { rate, queue }, rtt, ccas, duration, ns3: None }
}

const fn grown(name: &'static str, grown: Grown, rtt: Span, duration: Span) -> Yardstick {
    Yardstick { name, world: World::Grown(grown), rtt, ccas: &[], duration, ns3: None }
}

/// A call of an hour, or what is written; ns-3 has none.
const fn call(name: &'static str, call: Call, seconds: u64) -> Yardstick {
    let duration = Span::from_secs(seconds);
    let rtt = Span::from_millis(20);
    Yardstick { name, world: World::Call(call), rtt, ccas: &[], duration, ns3: None }
}

/// With what ns-3 delivers.
const fn cell(
    name: &'static str,
    cell: Cell,
    ccas: Option<&'static [&'static str]>,
    seconds: u64,
    ns3: Option<f64>,
) -> Yardstick {
    let ccas = match ccas {
        Some(ccas) => ccas,
        None => &[],
    };
    let duration = Span::from_secs(seconds);
    Yardstick { name, world: World::Cell(cell), rtt: Span::from_millis(20), ccas, duration, ns3 }
}

/// A world whose flows always have something to send, or a call.
#[derive(Clone, Copy, Debug)]
pub struct Yardstick {
    pub name: &'static str,
    pub world: World,
    /// Propagation there and back.
    pub rtt: Span,
    /// Congestion control of each flow of a wire, or of the stations of a cell in turn.
    pub ccas: &'static [&'static str],
    /// Simulated, unless asked otherwise.
    pub duration: Span,
    /// Segments that ns-3 3.44 delivers in a second of processor time; none if it can't run this.
    /// Measured as docs/speed.md says.
    pub ns3: Option<f64>,
}

#[derive(Clone, Copy, Debug)]
pub enum World {
    /// Flows through one bottleneck, acknowledgements through another queue of the same rate.
    Wire {
        rate: Rate,
        /// As `tc` writes it.
        queue: &'static str,
    },
    /// A flow for each station of an access point, to or from a host on a wire.
    Cell(Cell),
    /// A call through one bottleneck.
    Call(Call),
    /// A larger one of wires.
    Grown(Grown),
    /// As [`World::Wire`], but solved as equations.
    Fluid { rate: Rate, queue: &'static str },
}

impl Yardstick {
    pub fn find(name: &str) -> Option<&'static Self> {
        YARDSTICKS.iter().find(|yardstick| yardstick.name == name)
    }

    /// Flows start ten milliseconds apart; the time series has a row every 100 ms.
    pub fn scenario(&self, duration: Span) -> Checked {
        match self.world {
            World::Wire { rate, queue } | World::Fluid { rate, queue } => {
                self.wire(rate, queue, duration)
            }
            World::Cell(cell) => cell.scenario(self.rtt, self.ccas, duration),
            World::Call(call) => call.scenario(self.rtt, duration),
            World::Grown(grown) => grown.scenario(self.rtt, duration),
        }
    }

    fn wire(&self, rate: Rate, queue: &str, duration: Span) -> Checked {
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
            links: vec![
                link("queue", queue, rate, self.rtt / 2),
                link("reverse", "pfifo limit 100000", rate, self.rtt / 2),
            ],
            carriers: Vec::new(),
            changes: Vec::new(),
            flows: flows.collect(),
        }
        .checked()
        .expect("yardsticks are sound")
    }
}

pub(crate) fn link(name: &str, queue: &str, rate: Rate, delay: Span) -> Link {
    let queue = sojourn_qdisc::Config::parse(queue).expect("a shipped discipline");
    let rate = RateConfig::fixed(rate).expect("a positive rate");
    Link::new(name, queue, rate, delay)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count;

    #[test]
    fn every_yardstick_is_a_sound_scenario_and_fills_its_link() {
        // Ten thousand flows take a minute where nothing is optimised.
        let most = |yardstick: &&Yardstick| match yardstick.world {
            World::Grown(grown) => grown.flows <= 1_000,
            _ => true,
        };
        for yardstick in YARDSTICKS.iter().filter(most) {
            let mbps = count(yardstick, Span::from_secs(2)) as f64 * 1448.0 * 8.0 / 2e6;
            let fits = match yardstick.world {
                World::Wire { rate, .. } | World::Fluid { rate, .. } => {
                    (0.5..1.0).contains(&(mbps / rate.as_mbps()))
                }
                World::Cell(_) => mbps > 5.0,
                // Packets of media, which ramp up; they are shorter than segments.
                World::Call(_) => mbps > 0.5,
                // A window over a second of round-trip time has hardly begun.
                World::Grown(_) => yardstick.rtt >= Span::from_secs(1) || mbps > 500.0,
            };
            assert!(fits, "{}: {mbps} Mbit/s", yardstick.name);
        }
    }
}
