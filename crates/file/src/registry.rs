//! What a study file can name.

use std::sync::Arc;

use sojourn_core::{Kind, Kinds, Params, SpecError, Words};
use sojourn_host::{AppModel, ExternalApp};
use sojourn_media::{control, source};
use sojourn_wire::{CarrierKind, NamedCarrier};

use crate::engine::NamedEngine;
use crate::spec::AppKind;

/// The kinds that a study file can name: the built-in ones, and those that a program adds before it
/// reads the file.
#[derive(Clone, Debug)]
pub struct Registry {
    controllers: Kinds<sojourn_cca::Config>,
    queues: Kinds<sojourn_qdisc::Config>,
    sources: Kinds<source::Config>,
    rate_controllers: Kinds<control::Config>,
    carriers: Kinds<NamedCarrier>,
    /// None at first: the study's room has them.
    engines: Kinds<Arc<dyn NamedEngine>>,
    /// Kinds from outside only: built-in applications have keys of their own in the file.
    applications: Kinds<ExternalApp>,
}

impl Default for Registry {
    /// The built-in kinds.
    fn default() -> Self {
        Self {
            controllers: sojourn_cca::kinds(),
            queues: sojourn_qdisc::kinds(),
            sources: source::kinds(),
            rate_controllers: control::kinds(),
            carriers: sojourn_wire::kinds(),
            engines: Kinds::new("engine", Vec::<Kind<Arc<dyn NamedEngine>>>::new()),
            applications: Kinds::new("application", Vec::<Kind<ExternalApp>>::new()),
        }
    }
}

impl Registry {
    /// Lets flows have `cca = "NAME"`, with the parameters of `A` after the name.
    ///
    /// # Errors
    /// The name is taken, or is not a valid one.
    pub fn add_controller<A: sojourn_cca::Algorithm>(&mut self) -> Result<(), SpecError> {
        self.controllers.add(sojourn_cca::external::<A>())
    }

    /// Lets lines have `queue = "NAME"`, with the parameters of `D` after the name.
    ///
    /// # Errors
    /// The name is taken, or is none.
    pub fn add_queue<D: sojourn_qdisc::Discipline>(&mut self) -> Result<(), SpecError> {
        self.queues.add(sojourn_qdisc::external::<D>())
    }

    /// Lets calls have `source = "NAME"`, with the parameters of `S` after the name.
    ///
    /// # Errors
    /// The name is taken, or is none.
    pub fn add_source<S: source::SourceModel>(&mut self) -> Result<(), SpecError> {
        self.sources.add(source::external::<S>())
    }

    /// Lets calls have `control = "NAME"`, with the parameters of `A` after the name.
    ///
    /// # Errors
    /// The name is taken, or is none.
    pub fn add_rate_controller<A: control::Algorithm>(&mut self) -> Result<(), SpecError> {
        self.rate_controllers.add(control::external::<A>())
    }

    /// Lets carriers have `kind = "NAME"`, with the parameters of `K` after the name.
    ///
    /// # Errors
    /// The name is taken, or is none.
    pub fn add_carrier<K: CarrierKind>(&mut self) -> Result<(), SpecError> {
        self.carriers.add(sojourn_wire::external::<K>())
    }

    /// Lets scenarios have `engine = "NAME"`.
    ///
    /// # Errors
    /// The name is taken, or is none.
    pub fn add_engine(&mut self, engine: Kind<Arc<dyn NamedEngine>>) -> Result<(), SpecError> {
        self.engines.add(engine)
    }

    /// Says of an engine that is not added here who has it.
    pub fn add_engine_elsewhere(&mut self, name: &'static str, who: &'static str) {
        self.engines.add_elsewhere(name, who);
    }

    /// Lets flows have `app = "NAME"`, with the parameters of `A` after the name.
    ///
    /// # Errors
    /// The name is taken, or is not a valid one.
    pub fn add_application<A: AppModel + Params + 'static>(&mut self) -> Result<(), SpecError> {
        if AppKind::named(A::NAME).is_some() {
            let problem = SpecError::new(format!("there is an application '{}'", A::NAME));
            return Err(problem.allow(["another name"]));
        }
        self.applications.add(sojourn_host::external::<A>())
    }

    pub fn controllers(&self) -> &Kinds<sojourn_cca::Config> {
        &self.controllers
    }

    pub fn queues(&self) -> &Kinds<sojourn_qdisc::Config> {
        &self.queues
    }

    pub fn sources(&self) -> &Kinds<source::Config> {
        &self.sources
    }

    pub fn rate_controllers(&self) -> &Kinds<control::Config> {
        &self.rate_controllers
    }

    pub fn carriers(&self) -> &Kinds<NamedCarrier> {
        &self.carriers
    }

    pub fn engines(&self) -> &Kinds<Arc<dyn NamedEngine>> {
        &self.engines
    }

    /// Those from outside.
    pub fn applications(&self) -> &Kinds<ExternalApp> {
        &self.applications
    }

    /// A congestion control with its parameters, as a flow's `cca` names it.
    ///
    /// # Errors
    /// An unknown name or parameter, or a value out of bounds.
    pub fn controller(&self, text: &str) -> Result<sojourn_cca::Config, SpecError> {
        self.controllers.parse(text)
    }

    pub(crate) fn engine(&self, text: &str) -> Result<Arc<dyn NamedEngine>, SpecError> {
        self.engines.parse(text)
    }

    pub(crate) fn source(&self, text: &str) -> Result<source::Config, SpecError> {
        self.sources.parse(text)
    }

    /// A rate controller with its parameters, as a call's `control` names it.
    ///
    /// # Errors
    /// An unknown name or parameter, or a value out of bounds.
    pub fn rate_controller(&self, text: &str) -> Result<control::Config, SpecError> {
        self.rate_controllers.parse(text)
    }

    pub(crate) fn carrier(&self, text: &str) -> Result<NamedCarrier, SpecError> {
        self.carriers.parse(text)
    }

    /// An application from outside.
    pub(crate) fn application(&self, text: &str) -> Result<ExternalApp, SpecError> {
        let name = Words::new(text).next().unwrap_or_default();
        if self.applications.named(name).is_some() {
            return self.applications.parse(text);
        }
        if let Some(app) = AppKind::named(name) {
            let problem = format!("the parameters of '{name}' are keys of the flow");
            return Err(SpecError::new(problem).allow(app.keys()));
        }
        let built_in = AppKind::ALL.iter().map(|app| app.name());
        let names: Vec<_> =
            built_in.chain(self.applications.iter().map(|kind| kind.name)).collect();
        Err(SpecError::new(format!("unknown application '{name}'"))
            .near(name, names.iter().copied())
            .allow(names))
    }
}
