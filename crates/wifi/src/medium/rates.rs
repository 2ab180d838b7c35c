//! Modes that change from one PPDU to the next, and stations that come and leave.

use alloc::boxed::Box;
use alloc::vec::Vec;

use sojourn_core::{Stream, Time};
use sojourn_qdisc::Reshape;

use super::attempt::Ppdu;
use super::link::Sending;
use super::staged::Cost;
use super::{CATEGORIES, Config, Medium, Radio};
use crate::mac::edca::AccessCategory;
use crate::phy::Mode;
use crate::rate::PortRate;

/// The modes of a port whose mode changes.
pub(crate) struct Adaptive {
    rate: PortRate,
    /// How it sends in each of them, and what a packet then needs.
    sendings: Vec<(Sending, Cost)>,
}

/// An entry for each port; an empty list if the modes of the cell never change.
pub(super) fn adaptive(config: &Config, random: &mut Stream) -> Vec<Option<Box<Adaptive>>> {
    if config.rates.is_empty() {
        return Vec::new();
    }
    let mut ports: Vec<Option<Box<Adaptive>>> = Vec::new();
    ports.resize_with(2 * config.stations.len(), || None);
    for rates in &config.rates {
        let station = usize::from(rates.station);
        let radios = [config.stations[station].down, config.stations[station].up];
        for (port, radio) in (2 * station..).zip(radios) {
            let rate = PortRate::new(rates, radio.mode, random);
            let sending = |mode: &Mode| {
                (Sending::new(Radio { mode: *mode, ..radio }, config), Cost::new(mode))
            };
            let sendings = rate.modes().iter().map(sending).collect();
            ports[port] = Some(Box::new(Adaptive { rate, sendings }));
        }
    }
    ports
}

impl<P: Reshape + Send> Medium<P> {
    #[inline]
    pub(super) fn adaptive(&mut self, link: usize) -> Option<&mut Adaptive> {
        self.rates.get_mut(link / CATEGORIES)?.as_deref_mut()
    }

    /// Chooses the mode of the next PPDU of a link.
    #[inline]
    pub(super) fn adapt(&mut self, now: Time, link: usize) {
        let Some(adaptive) = self.adaptive(link) else { return };
        let choice = adaptive.rate.choose(now);
        let (sending, cost) = adaptive.sendings[choice];
        let link = &mut self.links[link];
        (link.sending, link.cost, link.choice) = (sending, cost, choice as u16);
    }

    /// Goes back to the mode that a PPDU was put together for.
    #[inline]
    pub(super) fn use_choice(&mut self, ppdu: &Ppdu) {
        let link = ppdu.link as usize;
        let Some(adaptive) = self.adaptive(link) else { return };
        let (sending, cost) = adaptive.sendings[usize::from(ppdu.choice)];
        let link = &mut self.links[link];
        (link.sending, link.cost, link.choice) = (sending, cost, ppdu.choice);
    }

    /// Tells whoever chooses the modes how many MPDUs of the PPDU were acknowledged.
    #[inline]
    pub(super) fn report(&mut self, ppdu: &Ppdu, received: u32) {
        if let Some(adaptive) = self.adaptive(ppdu.link as usize) {
            adaptive.rate.report(usize::from(ppdu.choice), ppdu.psdu.mpdus, received);
        }
    }

    /// How a station sends to the access point.
    pub(super) fn up_mode(&self, station: usize) -> Mode {
        self.links[Self::link_index(station + 1, 0, AccessCategory::Be as usize)].sending.mode
    }

    /// Whether a station is there.
    #[inline]
    pub(super) fn is_present(&self, station: usize, now: Time) -> bool {
        self.rates.is_empty() || self.has_come(station, now)
    }

    #[inline(never)]
    fn has_come(&self, station: usize, now: Time) -> bool {
        self.rates
            .get(2 * station)
            .and_then(Option::as_ref)
            .is_none_or(|adaptive| adaptive.rate.is_present(now))
    }

    /// When the next station comes.
    pub(super) fn next_arrival(&self, now: Time) -> Time {
        let ports = self.rates.iter().flatten();
        ports.map(|adaptive| adaptive.rate.comes_after(now)).min().unwrap_or(Time::NEVER)
    }

    /// Stations that have come contend with what they had left.
    pub(super) fn welcome(&mut self, now: Time) {
        for index in CATEGORIES..self.edcafs.len() {
            if self.edcafs[index].pending > 0 {
                self.announce(now, index);
            }
        }
        self.arrival_at = self.next_arrival(now);
    }
}

impl Adaptive {
    /// Probability that an MPDU of so many octets is lost now, whether by a weak signal or for the
    /// link's own reason.
    pub(super) fn error(&mut self, now: Time, sending: &Sending, octets: u32) -> f64 {
        let weak = self.rate.error(now, &sending.mode, octets);
        weak + (1.0 - weak) * sending.error
    }
}
