//! A cell with the names of its stations.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::{self, Write};

use sojourn_core::{Packet, PortId, Purpose, Span, SpecError, StreamAddress};
use sojourn_wire::{Carrier, CarrierConfig, CarrierModel, ExternalCarrier, PortShape};

use super::{Radio, canonical};
use crate::mac::frames::{LLC_SNAP, MSDU_MAX};
use crate::medium::{self, Config};
use crate::port::Port;

/// A radio cell, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct RadioConfig {
    name: String,
    stations: Vec<String>,
    cell: Config,
}

impl RadioConfig {
    /// The cell `name`, whose stations have these names.
    ///
    /// # Errors
    /// Other names than stations, two alike, or what [`Config::check`] refuses.
    pub fn new(name: &str, stations: Vec<String>, cell: Config) -> Result<Self, SpecError> {
        cell.check().map_err(|error| error.within(&format!("radio '{name}'")))?;
        let (names, count) = (stations.len(), cell.stations.len());
        if names != count {
            return Err(SpecError::new(format!("{names} names for {count} stations")));
        }
        let mut sorted: Vec<&String> = stations.iter().collect();
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(SpecError::new(format!("two stations are named '{}'", pair[0])));
        }
        Ok(Self { name: name.into(), stations, cell })
    }

    pub fn cell(&self) -> &Config {
        &self.cell
    }

    /// An idle medium; its ports follow `first`.
    pub fn build<P: sojourn_wire::Carried>(
        &self,
        first: PortId,
        address: StreamAddress,
    ) -> Radio<P> {
        Radio::new(self, first, address)
    }

    /// The entity by which its random streams are found.
    pub(super) fn entity(&self, address: StreamAddress) -> u64 {
        address.stream_named(&self.name, Purpose::Backoff).next_u64()
    }

    /// The names of its ports: `wifi.laptop-down` and `wifi.laptop-up` of the station `laptop`.
    fn port_name(&self, port: Port) -> String {
        let direction = if port.is_up() { "up" } else { "down" };
        format!("{}.{}-{direction}", self.name, self.stations[port.station()])
    }
}

impl CarrierModel for RadioConfig {
    fn ports(&self) -> Vec<PortShape> {
        let both = |station: &medium::Station| [station.down, station.up];
        let radios = self.cell.stations.iter().flat_map(both);
        (0..)
            .map(Port::new)
            .zip(radios)
            .map(|(port, radio)| PortShape {
                name: self.port_name(port),
                delay: Span::ZERO,
                rate: radio.mode.rate(),
                // How much of the medium other stations leave is not known.
                mean: None,
            })
            .collect()
    }

    fn port_count(&self) -> usize {
        2 * self.cell.stations.len()
    }

    fn longest_packet(&self) -> Option<u32> {
        Some(MSDU_MAX - LLC_SNAP)
    }

    fn build(&self, first: PortId, address: StreamAddress) -> Box<dyn Carrier<Packet>> {
        Box::new(Radio::new(self, first, address))
    }

    fn canonical(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = self.write_canonical(&mut text);
        text
    }
}

impl RadioConfig {
    fn write_canonical(&self, f: &mut String) -> fmt::Result {
        write!(f, "radio \"{}\" ", self.name.escape_default())?;
        canonical::write_cell(f, &self.cell)?;
        for (name, station) in self.stations.iter().zip(&self.cell.stations) {
            write!(f, " station \"{}\" ", name.escape_default())?;
            canonical::write_station(f, station)?;
        }
        Ok(())
    }
}

impl From<RadioConfig> for CarrierConfig {
    fn from(radio: RadioConfig) -> Self {
        Self::External(ExternalCarrier(Arc::new(radio)))
    }
}
