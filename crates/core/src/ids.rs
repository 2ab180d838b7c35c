//! Names for the parts of a scenario: positions in its lists, each of a type of its own.

/// A flow of the scenario, by its position there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u32);

/// An end system, by its position in the scenario; this is its address too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub u16);

/// A place where packets enter a carrier and wait: the queue of a link, or one of the queues of a
/// carrier that has several. Ports are numbered through a scenario: first its links, each of which
/// is one port, then the ports of its other carriers. A route is a list of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(pub u16);

/// Bytes that a packet carries, kept by the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentId(pub u32);

impl FlowId {
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl HostId {
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl PortId {
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}
