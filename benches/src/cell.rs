//! A radio cell with a flow for each station, as the scenarios of the same names have it that are
//! run in ns-3 for comparison: a wired server, an access point, FQ-CoDel above a buffer of 500
//! packets in every node.

use sojourn_core::{HostId, PortId, Rate, Span};
use sojourn_host::apps::UdpConfig;
use sojourn_host::tcp::Config as Transport;
use sojourn_scenario::{App, Checked, Flow, Host, Scenario, Until};
use sojourn_wifi::RadioConfig;
use sojourn_wifi::mac::aggregation::Limits;
use sojourn_wifi::medium::{Config, LostBlockAck, Radio, Station};
use sojourn_wifi::ofdma::Ofdma;
use sojourn_wifi::phy::Mode;
use sojourn_wifi::queueing::{DriverConfig, Order, QueueConfig};

use crate::yardstick::link;

/// As ns-3 has it by default, and its guard interval with OFDMA and its BlockAckReq: aggregates of 802.11ax are
/// no longer than those of 802.11n.
const SHORT: Limits = Limits { ampdu_octets: 65_535, ..Limits::HE };

#[derive(Clone, Copy, Debug)]
pub struct Cell {
    stations: u16,
    is_he: bool,
    is_up: bool,
    has_ofdma: bool,
    is_in_mac: bool,
    /// Of each station's datagrams; none for TCP.
    udp: Option<u64>,
}

const PLAIN: Cell =
    Cell { stations: 1, is_he: true, is_up: false, has_ofdma: false, is_in_mac: false, udp: None };

impl Cell {
    /// 802.11ax, 20 MHz, one stream, MCS 11.
    pub const HE: Self = PLAIN;
    /// 802.11n, 20 MHz, MCS 15 and the last station MCS 0.
    pub const HT: Self = Self { is_he: false, ..PLAIN };

    pub const fn of(self, stations: u16) -> Self {
        Self { stations, ..self }
    }

    pub const fn up(self) -> Self {
        Self { is_up: true, ..self }
    }

    pub const fn with_ofdma(self) -> Self {
        Self { has_ofdma: true, ..self }
    }

    /// mac80211's queueing in the access point.
    pub const fn in_mac(self) -> Self {
        Self { is_in_mac: true, ..self }
    }

    pub const fn udp(self, bps: u64) -> Self {
        Self { udp: Some(bps), ..self }
    }

    pub(crate) fn scenario(&self, rtt: Span, ccas: &[&str], duration: Span) -> Checked {
        let rate = Rate::from_bps(1_000_000_000);
        let wire = |name| link(name, "pfifo limit 100000", rate, rtt / 2);
        let mut hosts = vec![Host { name: "server".into() }];
        let mut flows = Vec::new();
        for station in 0..self.stations {
            hosts.push(Host { name: format!("sta{station}") });
            let app = match self.udp {
                Some(bps) => datagrams(bps),
                None => {
                    let cca = ccas[usize::from(station) % ccas.len()];
                    let cca = sojourn_cca::Config::parse(cca).expect("a shipped controller");
                    App::bulk(cca, Transport::default())
                }
            };
            let down = vec![PortId(0), PortId(2 + 2 * station)];
            let up = vec![PortId(3 + 2 * station), PortId(1)];
            let (server, host) = (HostId(0), HostId(1 + station));
            let name = format!("flow-{station}");
            let mut flow = Flow::new(&name, app, &[], &[]);
            flow.start = Span::from_millis(10 * u64::from(station));
            (flow.src, flow.dst, flow.forward, flow.reverse) = match self.is_up {
                true => (host, server, up, down),
                false => (server, host, down, up),
            };
            flows.push(flow);
        }
        Scenario {
            duration,
            warmup: Span::ZERO,
            step: Span::from_millis(100),
            hosts,
            until: Until::Duration,
            links: vec![wire("wire-down"), wire("wire-up")],
            carriers: vec![self.radio().into()],
            changes: Vec::new(),
            flows,
        }
        .checked()
        .expect("yardsticks are sound")
    }

    fn radio(&self) -> RadioConfig {
        let buffer = DriverConfig {
            limit: 500,
            order: Order::OldestFirst,
            upper: Some(sojourn_qdisc::Config::parse("fq_codel").expect("a shipped discipline")),
        };
        let station = |number: u16| {
            let mode = match self.is_he {
                true if self.has_ofdma => "he mcs 11 gi 1.6us",
                true => "he mcs 11",
                false if number + 1 == self.stations => "ht mcs 0 sgi",
                false => "ht mcs 15 sgi",
            };
            let mode = Mode::parse(mode).expect("a mode of the standard");
            let radio = Radio::new(mode);
            Station { down: radio, up: radio, queue: buffer.clone(), weight: Station::WEIGHT }
        };
        let limits = if self.is_he { SHORT } else { Limits::HT };
        let queue = match self.is_in_mac {
            true => QueueConfig::mac80211(),
            false => buffer.clone().into(),
        };
        let mut config = Config::new((0..self.stations).map(station).collect(), limits, queue);
        config.lost_block_ack = LostBlockAck::Request;
        config.ofdma = self.has_ofdma.then(Ofdma::default);
        let names = (0..self.stations).map(|number| format!("sta{number}")).collect();
        RadioConfig::new("wifi", names, config).expect("a sound cell")
    }
}

fn datagrams(bps: u64) -> App {
    const PAYLOAD: u64 = 1472;
    App::Udp(UdpConfig {
        interval: Span::from_nanos(PAYLOAD * 8 * 1_000_000_000 / bps),
        frame: PAYLOAD as u32,
        datagrams: 1,
        header: 28,
    })
}
