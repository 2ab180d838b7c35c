//! Parts as a crate outside the workspace would write them: an application whose ends carry real bytes,
//! and a carrier.

#[path = "../../../../examples/own-parts/src/application.rs"]
mod application;

use std::sync::Arc;

use sojourn_core::{Packet, PortId, Span, SpecError, StreamAddress};
use sojourn_host::ExternalApp;
use sojourn_scenario::{App, CarrierConfig, Link};
use sojourn_wire::{Carrier, CarrierModel, Exit, ExternalCarrier, PortShape, Wire};

use self::application::Ask;

/// One end asks for the square of a number every so often, the other answers.
pub(crate) fn ask(pause: Span) -> App {
    App::External(ExternalApp(Arc::new(Ask { pause })))
}

/// A carrier with one port, which does what `link` says.
pub(crate) fn tube(link: Link) -> CarrierConfig {
    CarrierConfig::External(ExternalCarrier(Arc::new(Tube(link))))
}

struct Tube(Link);

impl CarrierModel for Tube {
    fn check(&self) -> Result<(), SpecError> {
        self.0.check()
    }

    fn ports(&self) -> Vec<PortShape> {
        vec![PortShape::of(&self.0)]
    }

    fn build(&self, first: PortId, address: StreamAddress) -> Box<dyn Carrier<Packet>> {
        Box::new(Wire::new(&self.0, first, Exit::Onward, address))
    }

    fn canonical(&self) -> String {
        format!("tube {:?}", self.0)
    }
}
