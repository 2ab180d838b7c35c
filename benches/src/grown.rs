//! Worlds that are larger in one way: more flows, a longer window, more hops.

use sojourn_core::{PortId, Rate, Span};
use sojourn_host::tcp::{Config as Transport, SendBuffer};
use sojourn_link::{LossConfig, ReorderConfig};
use sojourn_scenario::{App, Checked, Flow, Host, Scenario, Until};

use crate::yardstick::link;

/// TCP flows without limits of buffers through a row of links; acknowledgements come back through one.
#[derive(Clone, Copy, Debug)]
pub struct Grown {
    pub flows: usize,
    pub cca: &'static str,
    pub hops: u16,
    /// Of the first link; the others are a tenth faster.
    pub mbps: u64,
    /// Of every link, as `tc` writes it.
    pub queue: &'static str,
    /// Share of packets that are lost before the first link, as a study file has it.
    pub loss: &'static str,
    /// Share of packets that overtake others on the first link, as a study file has it.
    pub reorder: &'static str,
}

impl Grown {
    pub const ONE: Self = Self {
        flows: 1,
        cca: "cubic",
        hops: 1,
        mbps: 1_000,
        queue: "pfifo limit 1667",
        loss: "0%",
        reorder: "none",
    };

    /// All flows start within half a second.
    pub(crate) fn scenario(&self, rtt: Span, duration: Span) -> Checked {
        let rate = Rate::from_bps(self.mbps * 1_000_000);
        let faster = Rate::from_bps(self.mbps * 1_100_000);
        let there = rtt / 2 / u64::from(self.hops);
        let mut links: Vec<_> = (0..self.hops)
            .map(|hop| {
                let rate = if hop == 0 { rate } else { faster };
                link(&format!("hop-{hop}"), self.queue, rate, there)
            })
            .collect();
        links[0].entry_loss = LossConfig::parse(self.loss).expect("a share");
        links[0].reorder = ReorderConfig::parse(self.reorder).expect("a share");
        links.push(link("reverse", "pfifo limit 1000000", faster, rtt / 2));
        let forward: Vec<PortId> = (0..self.hops).map(PortId).collect();
        let transport = Transport {
            send_buffer: SendBuffer::Bytes(0),
            most_receive_buffer: 4 << 30,
            ..Transport::default()
        };
        let flows = (0..self.flows).map(|index| {
            let cca = sojourn_cca::Config::parse(self.cca).expect("a shipped controller");
            let app = App::bulk(cca, transport.clone());
            let start = Span::from_millis(500) * index as u64 / self.flows as u64;
            let flow = Flow::new(&format!("flow-{index}"), app, &[], &[]);
            Flow { start, forward: forward.clone(), reverse: vec![PortId(self.hops)], ..flow }
        });
        let mut scenario = Scenario {
            duration,
            until: Until::Duration,
            warmup: Span::ZERO,
            step: Span::ZERO,
            hosts: ["server", "client"].map(|name| Host { name: name.into() }).into(),
            links,
            carriers: Vec::new(),
            changes: Vec::new(),
            flows: flows.collect(),
        };
        scenario.step = scenario.usual_step();
        scenario.checked().expect("yardsticks are sound")
    }
}
