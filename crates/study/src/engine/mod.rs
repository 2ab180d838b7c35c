//! Engines: what makes numbers of a scenario and a seed.
//!
//! The built-in engine simulates packets. Another may solve equations or drive real machines: it is given
//! a checked scenario and gives back the same metrics, so claims and reports need not know which
//! engine it was.

mod end_state;
mod fluid;
mod look;
mod sim;
mod trouble;

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use sojourn_core::param::Style;
use sojourn_core::{Kind, Params, SpecError, StreamAddress};
use sojourn_file::{NamedEngine, Registry, StudyScenario};
use sojourn_metrics::{Reported, RunMetrics, Series, Timing};
use sojourn_scenario::{App, Checked, Scenario};
use sojourn_sim::Violation;

pub use end_state::end_states;
pub use fluid::Fluid;
use look::reach;
pub use look::{Ended, look, reached, watched};
pub use sim::Sim;
pub(crate) use trouble::begin;
pub use trouble::{note, present_run};

/// An engine by its parameters: what a crate of its own implements to register one with [`add`].
pub trait Engine: Params + Send + Sync + 'static {
    /// Raised whenever the same scenario and seed would give other numbers.
    const VERSION: u32;

    /// Refuses a world that this engine can't compute.
    ///
    /// # Errors
    /// What it can't compute, and what it can.
    fn check_scenario(&self, scenario: &Checked) -> Result<(), SpecError> {
        let _ = scenario;
        Ok(())
    }

    /// Whether a run needs the machine for itself, because it lasts as long as it says.
    const RUNS_ALONE: bool = false;

    /// Looks whether this machine can run it, before anything starts.
    ///
    /// # Errors
    /// What the machine lacks, and what to do about it.
    fn prepare(&self, scenario: &Checked) -> Result<(), String> {
        let _ = scenario;
        Ok(())
    }

    /// What else its numbers depend on, such as a file that a parameter names: part of the name of a run.
    fn depends_on(&self) -> Option<String> {
        None
    }

    /// The world whose packets are simulated when it computes `scenario`, so that they can be shown; `None` if it simulates none.
    /// Flows and links are those of the scenario, by number and name.
    fn simulated(&self, scenario: &Checked) -> Option<Checked> {
        let _ = scenario;
        None
    }

    /// Removes from the numbers of a run what this engine can't know, whatever the scenario. A claim on such a metric is refused
    /// before anything runs.
    fn forget(&self, run: &mut RunMetrics) {
        let _ = run;
    }

    /// Computes one run. The same arguments give the same numbers, if the engine promises to be
    /// deterministic; several runs may be under way at once.
    ///
    /// # Errors
    /// The run failed, and why. The other runs of the study go on.
    fn run(&self, scenario: &Checked, address: StreamAddress) -> Result<Measured, String>;

    /// The same, but the rows of the time series are handed on in pieces while the run goes on, so that
    /// a long run takes no more memory than a short one. What is returned has the rows that follow
    /// the last piece; of an engine that does not implement this, all of them.
    ///
    /// # Errors
    /// As [`Engine::run`].
    fn run_in_pieces(
        &self,
        scenario: &Checked,
        address: StreamAddress,
        pieces: &mut dyn FnMut(Series),
    ) -> Result<Measured, String> {
        let _ = pieces;
        self.run(scenario, address)
    }
}

/// What an engine found out in a run.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Flows and links in the order of the scenario's flows and ports.
    pub metrics: RunMetrics,
    /// What `ss` and `tc` would print at the end, of every flow and then of every port. May be empty.
    pub end_states: Vec<String>,
    /// Somebody asked the run to stop, so it ended before its time. Only of engines that run alone and hand
    /// on nothing in pieces.
    pub is_stopped: bool,
    /// What went wrong without making measurements worthless: when the run was over, or a change that did not
    /// come.
    pub troubles: Vec<String>,
}

/// Every built-in engine, in the order of the documentation. Scenarios that name none have the first.
pub fn engines() -> &'static [Kind<Arc<dyn NamedEngine>>] {
    const ALL: &[Kind<Arc<dyn NamedEngine>>] = &[kind::<Sim>(), kind::<Fluid>()];
    ALL
}

/// Lets scenarios have `engine = "NAME"`, with the parameters of `E` after the name.
///
/// # Errors
/// The name is taken, or is none.
pub fn add<E: Engine>(registry: &mut Registry) -> Result<(), SpecError> {
    let mut all = with_built_in(registry);
    all.add_engine(kind::<E>())?;
    *registry = all;
    Ok(())
}

/// The same registry, with the built-in engines.
pub fn with_built_in(registry: &Registry) -> Registry {
    let mut all = registry.clone();
    for engine in engines() {
        // Adding it fails only if it is there already.
        let _ = all.add_engine(*engine);
    }
    all
}

const fn kind<E: Engine>() -> Kind<Arc<dyn NamedEngine>> {
    Kind::of::<E>(|words| Ok(Arc::new(Chosen(Box::new(E::parse(words)?)))))
}

/// Computes one run of `scenario` with the engine that it names, in pieces if somebody takes them.
///
/// # Errors
/// As [`Engine::run`].
pub(crate) fn run(
    scenario: &StudyScenario,
    address: StreamAddress,
    pieces: Option<&mut dyn FnMut(Series)>,
) -> Result<Measured, String> {
    let world = &scenario.scenario;
    trouble::take();
    let mut measured = match (&scenario.engine, pieces) {
        (None, None) => Engine::run(&Sim::default(), world, address),
        (None, Some(pieces)) => Engine::run_in_pieces(&Sim::default(), world, address, pieces),
        (Some(engine), None) => chosen(&**engine)?.0.run(world, address),
        (Some(engine), Some(pieces)) => chosen(&**engine)?.0.run_in_pieces(world, address, pieces),
    }?;
    measured.troubles.extend(trouble::take());
    Ok(measured)
}

/// Whether the runs of `scenario` need the machine for themselves.
pub(crate) fn runs_alone(scenario: &StudyScenario) -> bool {
    let engine = scenario.engine.as_deref().and_then(|engine| chosen(engine).ok());
    engine.is_some_and(|engine| engine.0.runs_alone())
}

/// # Errors
/// As [`Engine::prepare`].
pub(crate) fn prepare(scenario: &StudyScenario) -> Result<(), String> {
    match &scenario.engine {
        None => Ok(()),
        Some(engine) => chosen(&**engine)?.0.prepare(&scenario.scenario),
    }
}

/// Whether packets of the runs of `scenario` are simulated, so that they can be shown.
pub fn is_simulated(scenario: &StudyScenario) -> bool {
    simulated(scenario).is_some()
}

/// The world whose packets are simulated, as [`Engine::simulated`] has it.
pub fn simulated(scenario: &StudyScenario) -> Option<Checked> {
    match &scenario.engine {
        None => Some(scenario.scenario.clone()),
        Some(engine) => chosen(&**engine).ok()?.0.simulated(&scenario.scenario),
    }
}

/// As [`Engine::forget`], of the engine of `scenario`.
pub(crate) fn forget(scenario: &StudyScenario, run: &mut RunMetrics) {
    match &scenario.engine {
        None => Engine::forget(&Sim::default(), run),
        Some(engine) => {
            if let Ok(engine) = chosen(&**engine) {
                engine.0.forget(run);
            }
        }
    }
}

/// Removes what only runs in real time know, and the point at which equations would rest.
pub fn forget_other_engines(run: &mut RunMetrics) {
    run.timing = Timing::default();
    run.flows.iter_mut().for_each(|flow| flow.reported = Reported::default());
    run.links.iter_mut().for_each(|link| link.rest = None);
}

/// Why a run could not go on, with the names of its scenario: a part from outside says so itself, and anything else is a broken
/// invariant of the model.
pub fn told(scenario: &Scenario, violation: &Violation) -> String {
    match violation {
        Violation::Endpoint { flow, problem, .. }
            if let Some(flow) = scenario.flows.get(*flow)
                && let App::External(_) = flow.app =>
        {
            format!("flow '{}': {problem}", flow.name)
        }
        Violation::Link { link, problem, .. }
            if let Some(link) = scenario.links.get(*link)
                && let sojourn_qdisc::Config::External(_) = link.queue =>
        {
            format!("the queue of link '{}': {problem}", link.name)
        }
        other => format!("an invariant was broken: {other}"),
    }
}

fn chosen(engine: &dyn NamedEngine) -> Result<&Chosen, String> {
    let engine: &dyn Any = engine;
    engine
        .downcast_ref()
        .ok_or_else(|| "the engine was not registered as one of a study".to_owned())
}

/// An engine that a scenario names.
#[derive(Debug)]
struct Chosen(Box<dyn AnyEngine>);

impl NamedEngine for Chosen {
    fn canonical(&self) -> Option<String> {
        self.0.canonical()
    }

    fn check(&self, scenario: &Checked) -> Result<(), SpecError> {
        self.0.check(scenario)
    }
}

/// An [`Engine`] whose type is not known here.
trait AnyEngine: fmt::Debug + Send + Sync {
    fn canonical(&self) -> Option<String>;
    fn check(&self, scenario: &Checked) -> Result<(), SpecError>;
    fn runs_alone(&self) -> bool;
    fn prepare(&self, scenario: &Checked) -> Result<(), String>;
    fn simulated(&self, scenario: &Checked) -> Option<Checked>;
    fn forget(&self, run: &mut RunMetrics);
    fn run(&self, scenario: &Checked, address: StreamAddress) -> Result<Measured, String>;
    fn run_in_pieces(
        &self,
        scenario: &Checked,
        address: StreamAddress,
        pieces: &mut dyn FnMut(Series),
    ) -> Result<Measured, String>;
}

impl<E: Engine> AnyEngine for E {
    fn canonical(&self) -> Option<String> {
        // A scenario that names the simulator means the same as one that names no engine; the
        // version of its models is part of every run's name anyway.
        let is_usual = E::NAME == Sim::NAME;
        (!is_usual).then(|| {
            let more = self.depends_on().map(|more| format!(" {more}")).unwrap_or_default();
            format!("{} version={}{more}", self.written(Style::Canonical), E::VERSION)
        })
    }

    fn check(&self, scenario: &Checked) -> Result<(), SpecError> {
        self.check_scenario(scenario)
    }

    fn runs_alone(&self) -> bool {
        E::RUNS_ALONE
    }

    fn prepare(&self, scenario: &Checked) -> Result<(), String> {
        Engine::prepare(self, scenario)
    }

    fn simulated(&self, scenario: &Checked) -> Option<Checked> {
        Engine::simulated(self, scenario)
    }

    fn forget(&self, run: &mut RunMetrics) {
        Engine::forget(self, run);
    }

    fn run(&self, scenario: &Checked, address: StreamAddress) -> Result<Measured, String> {
        Engine::run(self, scenario, address)
    }

    fn run_in_pieces(
        &self,
        scenario: &Checked,
        address: StreamAddress,
        pieces: &mut dyn FnMut(Series),
    ) -> Result<Measured, String> {
        Engine::run_in_pieces(self, scenario, address, pieces)
    }
}
