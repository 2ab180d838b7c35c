//! Where packets wait in a station before they have a sequence number.

mod addressed;
mod driver;
mod fq_mac;
mod stations;

pub(crate) use addressed::{Addressed, Arrival, PassedOn};
pub(crate) use driver::Driver;
pub use driver::{DriverConfig, Order};
pub use fq_mac::FqConfig;
pub(crate) use fq_mac::FqMac;
pub(crate) use stations::Stations;
pub use stations::{Airtime, Schedule};

use alloc::boxed::Box;

use sojourn_core::{Span, SpecError, Stream, Time};
use sojourn_qdisc::Reshape;

use crate::mac::edca::AccessCategory;
use crate::port::Listener;
use crate::store::{Chain, Released, Slot, Store};

/// How packets wait in the access point.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueConfig {
    pub kind: QueueKind,
    pub hardware: Hardware,
}

#[derive(Clone, Debug, PartialEq)]
pub enum QueueKind {
    Driver(DriverConfig),
    /// Queueing in the MAC.
    Managed(FqConfig),
}

/// What has left the queues before it is sent, and that which is on the air.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hardware {
    /// None: an aggregate is put together when it is sent.
    #[default]
    None,
    /// This many of an access category, for all stations together.
    Aggregates(u8),
    /// No aggregates, but packets that take these times on the air (airtime queue limits of mac80211): a station gets
    /// another one of an access category while it has less than `low` of it, or less than `high` while all stations and
    /// categories together have less than `total`.
    /// Aggregates are put together of them when they are sent.
    Airtime { low: Span, high: Span, total: Span },
}

impl Hardware {
    /// mac80211's default limits.
    pub const AQL: Self = Self::Airtime {
        low: Span::from_millis(5),
        high: Span::from_millis(12),
        total: Span::from_millis(24),
    };
}

impl From<DriverConfig> for QueueConfig {
    fn from(driver: DriverConfig) -> Self {
        Self { kind: QueueKind::Driver(driver), hardware: Hardware::None }
    }
}

impl QueueConfig {
    /// # Errors
    /// A buffer without room, queues that nobody can build or serve, or hardware without room.
    pub fn check(&self) -> Result<(), SpecError> {
        match &self.kind {
            QueueKind::Driver(driver) => driver.check()?,
            QueueKind::Managed(queues) => queues.check()?,
        }
        match self.hardware {
            Hardware::Aggregates(0) => {
                Err(SpecError::new("hardware with room for no aggregate").allow(["1 to 255"]))
            }
            Hardware::Airtime { low, high, .. } if low.is_zero() && high.is_zero() => {
                Err(SpecError::new("an airtime queue limit of 0s").allow(["a longer time"]))
            }
            _ => Ok(()),
        }
    }

    /// A driver with two aggregates in the hardware and at most 123 packets, below a discipline: ath9k
    /// before Linux 4.10.
    pub fn below(upper: sojourn_qdisc::Config) -> Self {
        let limit = DriverConfig::ATH9K;
        let driver = DriverConfig { limit, order: Order::LosesTurns, upper: Some(upper) };
        Self { kind: QueueKind::Driver(driver), hardware: Hardware::Aggregates(2) }
    }

    /// The paper's queueing in the MAC, stations in turn or by airtime.
    pub fn in_mac(schedule: Schedule) -> Self {
        let kind = QueueKind::Managed(FqConfig::paper(schedule));
        Self { kind, hardware: Hardware::Aggregates(2) }
    }

    /// mac80211 since Linux 6.18.
    pub fn mac80211() -> Self {
        Self { kind: QueueKind::Managed(FqConfig::linux()), hardware: Hardware::AQL }
    }
}

/// The packets for a station, of one access category.
pub(crate) enum Waiting<'a> {
    /// They leave in this order.
    Chain(&'a mut Chain),
    /// Queues in the MAC choose when they are asked, and may drop then.
    Managed { queue: &'a mut FqMac, station: usize, ac: AccessCategory },
}

impl Waiting<'_> {
    /// The packet that leaves next.
    #[inline]
    pub(crate) fn first<'a, P: Reshape + Send>(
        &'a mut self,
        now: Time,
        store: &'a mut Store<P>,
        listener: &mut impl Listener<P>,
    ) -> Option<&'a Released> {
        match self {
            Self::Chain(chain) => store.first(chain),
            Self::Managed { queue, station, ac } => {
                queue.first(now, *station, *ac, store, listener)
            }
        }
    }

    #[inline]
    pub(crate) fn pop<P: Reshape + Send>(&mut self, store: &mut Store<P>) -> Option<Released> {
        match self {
            Self::Chain(chain) => store.pop(chain),
            Self::Managed { queue, station, ac } => {
                queue.pop(*station, *ac).map(|slot| *store.released(slot))
            }
        }
    }

    /// Takes out the packet that leaves next.
    #[inline(always)]
    pub(crate) fn take_first<P: Reshape + Send>(
        &mut self,
        now: Time,
        store: &mut Store<P>,
        listener: &mut impl Listener<P>,
    ) -> Option<Slot> {
        match self {
            Self::Chain(chain) => store.pop(chain).map(|released| released.slot),
            Self::Managed { queue, station, ac } => {
                queue.take_first(now, *station, *ac, store, listener)
            }
        }
    }

    /// Takes out the packet that leaves next, if it is one that `may`.
    #[inline]
    pub(crate) fn pop_if<P: Reshape + Send>(
        &mut self,
        now: Time,
        store: &mut Store<P>,
        listener: &mut impl Listener<P>,
        may: impl FnOnce(&Released) -> bool,
    ) -> Option<Released> {
        match self {
            Self::Chain(chain) => store.pop_if(chain, may).map(|(released, _)| released),
            Self::Managed { queue, station, ac } => {
                let first = queue.first(now, *station, *ac, store, listener)?;
                if may(first) {
                    queue.pop(*station, *ac).map(|slot| *store.released(slot))
                } else {
                    None
                }
            }
        }
    }
}

#[expect(clippy::large_enum_variant, reason = "one per node, and never moved")]
pub(crate) enum Queue<P: Reshape + Send> {
    Driver(Driver<P>),
    Managed(Box<FqMac>),
}

impl<P: Reshape + Send> Queue<P> {
    pub(crate) fn new(kind: &QueueKind, stations: usize, random: &mut Stream) -> Self {
        match kind {
            QueueKind::Driver(config) => Self::Driver(Driver::new(config, stations, random)),
            QueueKind::Managed(config) => {
                Self::Managed(Box::new(FqMac::new(config, stations, random)))
            }
        }
    }

    /// Stations have these weights, where they are served by airtime.
    pub(crate) fn weigh(&mut self, weights: impl Iterator<Item = u16>) {
        if let Self::Managed(queue) = self {
            queue.weigh(weights);
        }
    }

    /// Takes a packet in. Returns how many more packets may be sent.
    #[inline]
    pub(crate) fn offer(
        &mut self,
        ac: AccessCategory,
        arrival: &Arrival<'_, P>,
        store: &mut Store<P>,
        listener: &mut impl Listener<P>,
    ) -> u32 {
        match self {
            Self::Driver(driver) => driver.offer(ac, arrival, store, listener),
            Self::Managed(queue) => {
                queue.enqueue(ac, *arrival, store, listener);
                1
            }
        }
    }

    /// Takes a packet from a discipline above if the buffer has room.
    #[inline]
    pub(crate) fn refill(
        &mut self,
        now: Time,
        ac: AccessCategory,
        store: &mut Store<P>,
        listener: &mut impl Listener<P>,
    ) -> u32 {
        match self {
            Self::Driver(driver) => driver.refill(now, ac, store, listener),
            Self::Managed(_) => 0,
        }
    }

    /// When a shaper above releases the next packet.
    pub(crate) fn held_back_until(&self) -> Time {
        match self {
            Self::Driver(driver) => driver.held_back_until(),
            Self::Managed(_) => Time::NEVER,
        }
    }

    /// Must be called before the categories are filled again.
    pub(crate) fn wake(&mut self) {
        if let Self::Driver(driver) = self {
            driver.wake();
        }
    }

    /// So many packets of the category are delivered or given up.
    #[inline]
    pub(crate) fn release(&mut self, ac: AccessCategory, packets: u32) {
        if let Self::Driver(driver) = self {
            driver.release(ac, packets);
        }
    }

    /// Whether [`Queue::take_dropped`] never has anything.
    #[inline]
    pub(crate) fn drops_nothing_later(&self) -> bool {
        matches!(self, Self::Driver(_))
    }

    /// The packets for a station.
    #[inline]
    pub(crate) fn waiting(&mut self, station: usize, ac: AccessCategory) -> Waiting<'_> {
        match self {
            Self::Driver(driver) => Waiting::Chain(driver.waiting_mut(station, ac)),
            Self::Managed(queue) => Waiting::Managed { queue, station, ac },
        }
    }

    /// Whether packets wait for the station.
    pub(crate) fn has_packets(&self, station: usize, ac: AccessCategory) -> bool {
        match self {
            Self::Driver(driver) => !driver.waiting(station, ac).is_empty(),
            Self::Managed(queue) => queue.has_packets(station, ac),
        }
    }

    /// For how many stations packets may wait.
    #[inline]
    pub(crate) fn listed(&self, ac: AccessCategory) -> usize {
        match self {
            Self::Driver(driver) => driver.stations(),
            Self::Managed(queue) => queue.listed(ac),
        }
    }

    /// The station whose turn it is. `started` gives the order of arrival of frames that were sent
    /// before; `is_held` says which stations have enough in the hardware.
    pub(crate) fn choose(
        &mut self,
        ac: AccessCategory,
        stations: usize,
        store: &Store<P>,
        started: impl Fn(usize) -> Option<u64>,
        is_held: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        match self {
            Self::Driver(driver) => driver.choose(ac, stations, store, started, is_held),
            Self::Managed(queue) => queue.choose(ac, |s| started(s).is_some(), is_held),
        }
    }

    /// Whether the station whose turn it is keeps it until it has used the medium or another one has
    /// packets; notes whose turn it is.
    pub(crate) fn keeps_turn(&mut self, ac: AccessCategory) -> bool {
        match self {
            Self::Driver(_) => false,
            Self::Managed(queue) => queue.keeps_turn(ac),
        }
    }

    /// Whether it is still the turn of the station that was noted.
    pub(crate) fn has_same_turn(&self, ac: AccessCategory) -> bool {
        match self {
            Self::Driver(_) => false,
            Self::Managed(queue) => queue.has_same_turn(ac),
        }
    }

    /// The hardware is full, so the station whose turn it is may lose the turn.
    pub(crate) fn pass_over(
        &mut self,
        ac: AccessCategory,
        store: &Store<P>,
        started: impl Fn(usize) -> Option<u64>,
    ) {
        if let Self::Driver(driver) = self {
            driver.pass_over(ac, store, started);
        }
    }

    /// The station has frames to send again.
    pub(crate) fn rejoin(&mut self, ac: AccessCategory, station: usize) {
        match self {
            Self::Driver(driver) => driver.join(ac, station),
            Self::Managed(queue) => queue.rejoin(ac, station),
        }
    }

    /// The station has used the medium, in either direction.
    pub(crate) fn charge(&mut self, ac: AccessCategory, station: usize, airtime: Span) {
        if let Self::Managed(queue) = self {
            queue.charge(ac, station, airtime);
        }
    }

    /// What was charged in advance is taken back.
    pub(crate) fn refund(&mut self, ac: AccessCategory, station: usize, airtime: Span) {
        if let Self::Managed(queue) = self {
            queue.refund(ac, station, airtime);
        }
    }

    /// By access category, how many packets were dropped after they were counted as to be sent.
    #[inline]
    pub(crate) fn take_dropped(&mut self) -> Option<[u32; AccessCategory::COUNT]> {
        match self {
            Self::Driver(_) => None,
            Self::Managed(queue) => queue.take_dropped(),
        }
    }

    pub(crate) fn backlog(&self) -> u64 {
        match self {
            Self::Driver(driver) => driver.backlog(),
            Self::Managed(queue) => u64::from(queue.backlog()),
        }
    }

    /// The longest time that a packet for a station has waited.
    pub(crate) fn oldest_of(&self, now: Time, station: usize, store: &Store<P>) -> Span {
        let oldest = match self {
            Self::Driver(driver) => driver.oldest_of(station, store),
            Self::Managed(queue) => queue.oldest_of(station, store),
        };
        oldest.map_or(Span::ZERO, |arrived| now.since(arrived))
    }

    /// The longest time that a packet has waited.
    pub(crate) fn oldest(&self, now: Time, store: &Store<P>) -> Span {
        match self {
            Self::Driver(driver) => driver.oldest(now, store),
            Self::Managed(queue) => {
                queue.oldest(store).map_or(Span::ZERO, |arrived| now.since(arrived))
            }
        }
    }
}
