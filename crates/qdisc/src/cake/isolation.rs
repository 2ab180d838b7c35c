//! Which packets share a queue, and who shares bandwidth with whom.

use core::fmt;

use sojourn_core::FlowKey;

use crate::hash::FlowHash;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    #[default]
    TripleIsolate,
}

impl Isolation {
    pub(crate) const ALL: [Self; 8] = [
        Self::Flowblind,
        Self::Srchost,
        Self::Dsthost,
        Self::Hosts,
        Self::Flows,
        Self::DualSrchost,
        Self::DualDsthost,
        Self::TripleIsolate,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Flowblind => "flowblind",
            Self::Srchost => "srchost",
            Self::Dsthost => "dsthost",
            Self::Hosts => "hosts",
            Self::Flows => "flows",
            Self::DualSrchost => "dual-srchost",
            Self::DualDsthost => "dual-dsthost",
            Self::TripleIsolate => "triple-isolate",
        }
    }

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
    pub(crate) const fn is_fair_to_sources(self) -> bool {
        matches!(self, Self::DualSrchost | Self::TripleIsolate)
    }

    /// Destination hosts share evenly.
    #[inline]
    pub(crate) const fn is_fair_to_destinations(self) -> bool {
        matches!(self, Self::DualDsthost | Self::TripleIsolate)
    }
}

impl fmt::Display for Isolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
