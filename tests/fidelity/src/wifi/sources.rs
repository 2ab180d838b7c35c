//! Traffic of the measured cells: saturating datagrams, voice, and echoes.

use sojourn_core::{Ecn, FlowKey, PureAck, Queued, Span, Stream, Time};
use sojourn_qdisc::Reshape;
use sojourn_wifi::Port;

/// UDP and IPv4.
const HEADERS: u32 = 28;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Bulk,
    Voice,
    /// The packet carries the time of the request there and back.
    Echo {
        asked: Time,
    },
}

/// A datagram.
#[derive(Clone, Copy, Debug)]
pub(super) struct Datagram {
    pub(super) kind: Kind,
    pub(super) sent: Time,
    pub(super) payload: u32,
    dscp: u8,
    source: u32,
}

impl Queued for Datagram {
    fn wire_len(&self) -> u32 {
        self.ip_len() + 14
    }

    fn ip_len(&self) -> u32 {
        self.payload + HEADERS
    }

    fn truesize(&self) -> u32 {
        self.wire_len() + 880
    }

    fn flow_key(&self) -> FlowKey {
        FlowKey { src: 0, dst: 1, ports: u64::from(self.source) }
    }

    fn ecn(&self) -> Ecn {
        Ecn::NotEct
    }

    fn mark_ce(&mut self) {}

    fn dscp(&self) -> u8 {
        self.dscp
    }

    fn pure_ack(&self) -> Option<PureAck> {
        None
    }
}

impl Reshape for Datagram {
    fn split_first(&mut self) -> Option<Self> {
        None
    }

    fn wash(&mut self) {
        self.dscp = 0;
    }
}

/// A code point of each access category, BK, BE, VI and VO.
const CODE_POINTS: [u8; 4] = [8, 0, 40, 46];

impl Datagram {
    pub(super) fn category(&self) -> usize {
        CODE_POINTS.iter().position(|dscp| *dscp == self.dscp).unwrap_or(1)
    }
}

/// What sends datagrams into a port.
pub(super) struct Source {
    pub(super) port: Port,
    pub(super) next: Time,
    pub(super) category: usize,
    kind: Kind,
    payload: u32,
    /// Mean gap in seconds, exponential, or exact.
    gap: f64,
    is_exact: bool,
    random: Stream,
    number: u32,
}

impl Source {
    pub(super) fn bulk(
        port: Port,
        start: Time,
        category: usize,
        payload: u32,
        mbps: f64,
        mut random: Stream,
    ) -> Self {
        let gap = 8.0 * f64::from(payload) / (mbps * 1e6);
        let next = start + Span::from_secs_f64(random.exponential(gap));
        let number = u32::from(port.index());
        let kind = Kind::Bulk;
        Self { port, next, category, kind, payload, gap, is_exact: false, random, number }
    }

    /// Every `gap` seconds, from a random moment on.
    pub(super) fn periodic(
        port: Port,
        start: Time,
        category: usize,
        payload: u32,
        gap: f64,
        is_echo: bool,
        mut random: Stream,
    ) -> Self {
        let next = start + Span::from_secs_f64(random.uniform(0.0, gap));
        let number = 1000 + u32::from(port.index()) + if is_echo { 1000 } else { 0 };
        let kind = if is_echo { Kind::Echo { asked: next } } else { Kind::Voice };
        Self { port, next, category, kind, payload, gap, is_exact: true, random, number }
    }

    pub(super) fn is_bulk(&self) -> bool {
        self.kind == Kind::Bulk
    }

    pub(super) fn send(&mut self) -> Datagram {
        let sent = self.next;
        let gap = if self.is_exact { self.gap } else { self.random.exponential(self.gap) };
        self.next = sent + Span::from_secs_f64(gap);
        let kind = match self.kind {
            Kind::Echo { .. } => Kind::Echo { asked: sent },
            kind => kind,
        };
        let dscp = CODE_POINTS[self.category];
        Datagram { kind, sent, payload: self.payload, dscp, source: self.number }
    }
}
