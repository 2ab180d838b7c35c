//! Which packets share a queue, and who shares bandwidth with whom.

use sojourn_core::FlowKey;

use crate::hash::FlowHash;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// One queue for all.
    Flowblind,
    /// A queue for each source host.
    Srchost,
    /// A queue for each destination host.
    Dsthost,
    /// A queue for each pair of hosts.
    Hosts,
    /// A queue for each flow.
    Flows,
    /// A queue for each flow; source hosts share evenly.
    DualSrchost,
    /// A queue for each flow; destination hosts share evenly.
    DualDsthost,
    /// A queue for each flow; hosts at both ends share evenly.
    TripleIsolate,
}

sojourn_core::keywords! {
    pub(crate) IsolationWord for Isolation {
        "flowblind" = Isolation::Flowblind, "one queue for all flows";
        "srchost" = Isolation::Srchost, "a queue for each source host";
        "dsthost" = Isolation::Dsthost, "a queue for each destination host";
        "hosts" = Isolation::Hosts, "a queue for each pair of hosts";
        "flows" = Isolation::Flows, "a queue for each flow";
        "dual-srchost" = Isolation::DualSrchost, "flows share evenly within source hosts, and these with each other";
        "dual-dsthost" = Isolation::DualDsthost, "flows share evenly within destination hosts, and these with each other";
        "triple-isolate" = Isolation::TripleIsolate, "as both dual modes at once";
    }
}

impl Isolation {
    #[inline]
    pub(crate) fn flow_hash(self, key: &FlowKey, hash: FlowHash) -> u32 {
        match self {
            Self::Flows | Self::DualSrchost | Self::DualDsthost | Self::TripleIsolate => {
                hash.flow(key)
            }
            Self::Flowblind | Self::Srchost | Self::Dsthost | Self::Hosts => {
                self.host_hash(key, hash)
            }
        }
    }

    /// Each flow has a queue of its own.
    pub const fn parts_flows(self) -> bool {
        matches!(self, Self::Flows | Self::DualSrchost | Self::DualDsthost | Self::TripleIsolate)
    }

    #[inline(never)]
    fn host_hash(self, key: &FlowKey, hash: FlowHash) -> u32 {
        match self {
            Self::Srchost => hash.host(key.src),
            Self::Dsthost => hash.host(key.dst),
            Self::Hosts => hash.host(key.src) ^ hash.host(key.dst).rotate_left(1),
            _ => 0,
        }
    }

    /// Source hosts share evenly.
    #[inline]
    pub const fn is_fair_to_sources(self) -> bool {
        matches!(self, Self::DualSrchost | Self::TripleIsolate)
    }

    /// Destination hosts share evenly.
    #[inline]
    pub const fn is_fair_to_destinations(self) -> bool {
        matches!(self, Self::DualDsthost | Self::TripleIsolate)
    }
}
