//! Carriers that can be asked for by name: the built-in ones, a line each, and those from outside.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use sojourn_core::{Kind, Kinds, Params, SpecError};

use crate::switch::Sharing;
use crate::{CarrierConfig, CarrierModel, ExternalCarrier, Link, SwitchConfig};

/// The built-in kinds, to which others can be added.
pub fn kinds() -> Kinds<NamedCarrier> {
    Kinds::new("carrier", carriers().iter().copied())
}

/// Every built-in kind, in the order of the documentation.
pub fn carriers() -> &'static [Kind<NamedCarrier>] {
    const ALL: &[Kind<NamedCarrier>] = &[kind::<Sharing>()];
    ALL
}

/// A kind of carrier by its parameters: what a crate of its own implements to register one with
/// [`external`].
pub trait CarrierKind: Params + Send + Sync + 'static {
    /// The carrier that joins the nodes of `site`.
    ///
    /// # Errors
    /// The study file gives it other nodes or ports than this kind needs.
    fn join(&self, site: Site<'_>) -> Result<Joined, SpecError>;
}

/// A kind from outside this crate, for [`Kinds::add`].
pub const fn external<K: CarrierKind>() -> Kind<NamedCarrier> {
    kind::<K>()
}

const fn kind<K: CarrierKind>() -> Kind<NamedCarrier> {
    Kind::of::<K>(|words| Ok(NamedCarrier(Arc::new(K::parse(words)?))))
}

/// A carrier's kind and parameters, before its ports are known.
#[derive(Clone, Debug)]
pub struct NamedCarrier(Arc<dyn AnyKind>);

impl NamedCarrier {
    /// The carrier that joins the nodes of `site`.
    ///
    /// # Errors
    /// The study file gives it other nodes or ports than this kind needs; or a kind from outside gives
    /// ports that can't be.
    pub fn join(&self, site: Site<'_>) -> Result<Joined, SpecError> {
        let (name, nodes) = (site.name, site.nodes);
        let joined = self.0.join(site)?;
        joined.check(name, nodes.len())?;
        Ok(joined)
    }
}

/// A [`CarrierKind`] whose type is not known here.
trait AnyKind: fmt::Debug + Send + Sync {
    fn join(&self, site: Site<'_>) -> Result<Joined, SpecError>;
}

impl<K: CarrierKind> AnyKind for K {
    fn join(&self, site: Site<'_>) -> Result<Joined, SpecError> {
        CarrierKind::join(self, site)
    }
}

/// Where a carrier stands: what a study file says of it beside its kind and parameters.
#[derive(Clone, Debug)]
pub struct Site<'a> {
    /// Its own; the names of its ports begin with it and a dot.
    pub name: &'a str,
    /// The names of the nodes that it joins.
    pub nodes: &'a [String],
    /// The ports that are written one by one. A carrier that has none may make its own.
    pub ports: Vec<Port>,
}

/// A port that is written as the queue, transmitter and line of a link.
#[derive(Clone, Debug)]
pub struct Port {
    pub link: Link,
    pub leads: Leads,
}

/// Between which nodes a port leads, by their positions in [`Site::nodes`]: whose packets enter it,
/// and where they may come out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leads {
    pub from: Vec<usize>,
    pub to: Vec<usize>,
}

/// A carrier, and where each of its ports leads.
#[derive(Clone, Debug)]
pub struct Joined {
    pub carrier: CarrierConfig,
    pub leads: Vec<Leads>,
}

impl Joined {
    /// A carrier from outside.
    pub fn external(carrier: impl CarrierModel + 'static, leads: Vec<Leads>) -> Self {
        let carrier = CarrierConfig::External(ExternalCarrier(Arc::new(carrier)));
        Self { carrier, leads }
    }

    /// A carrier from outside may say anything of its ports.
    fn check(&self, name: &str, nodes: usize) -> Result<(), SpecError> {
        let ports = self.carrier.ports();
        if ports.len() != self.leads.len() {
            let problem = format!(
                "it has {} ports, of which {} lead somewhere",
                ports.len(),
                self.leads.len()
            );
            return Err(SpecError::new(problem).allow(["as many as ports"]));
        }
        let is_inside = |port: &str| {
            port.strip_prefix(name).and_then(|rest| rest.strip_prefix('.')).is_some_and(|own| {
                !own.is_empty()
                    && own.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
            })
        };
        if let Some(port) = ports.iter().find(|port| !is_inside(&port.name)) {
            return Err(SpecError::new(format!("its port is called '{}'", port.name))
                .allow([format!("'{name}.' and letters, digits, '-', '_' and '.'")]));
        }
        for (port, leads) in ports.iter().zip(&self.leads) {
            if leads.from.iter().chain(&leads.to).any(|node| *node >= nodes) {
                let problem = format!("its port '{}' leads where no node is", port.name);
                return Err(SpecError::new(problem).allow([format!("one of {nodes} nodes")]));
            }
        }
        Ok(())
    }
}

impl CarrierKind for Sharing {
    fn join(&self, site: Site<'_>) -> Result<Joined, SpecError> {
        if site.ports.is_empty() {
            let problem = SpecError::new(format!("the switch '{}' has no port", site.name));
            return Err(problem.allow(["[[scenario.carrier.port]], one for each node"]));
        }
        let (links, leads) = site.ports.into_iter().map(|port| (port.link, port.leads)).unzip();
        let switch = SwitchConfig::new(links, self.clone())?;
        Ok(Joined { carrier: CarrierConfig::Switch(switch), leads })
    }
}
