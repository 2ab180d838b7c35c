//! Random worlds, each run between kernels and simulated, and compared number by number: Linux as the oracle.

mod number;
mod page;
mod table;
mod world;

use std::fs;
use std::io;
use std::ops::RangeInclusive;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use sojourn_core::{Span, SpecError, StreamAddress};
use sojourn_metrics::RunMetrics;
use sojourn_scenario::Checked;
use sojourn_study::engine::{Engine, Measured, Sim};
use sojourn_study::{Overrides, Study};

use crate::app::Kernel;
use crate::ends;
use crate::engine::Kernels;
use crate::install;
use crate::settings::kernel_digest;

pub use number::{Kind, Number, Side};
pub use page::{Line, html, lines};
pub use table::{Compared, csv};
pub use world::World;

/// What is to be compared.
#[derive(Clone, Debug)]
pub struct Validation {
    /// Without it the usual one.
    pub kernel: Option<String>,
    /// What congestion controls are called in it, where that is not their name here.
    pub names: Option<String>,
    /// Settings of all kernels.
    pub sysctl: Option<String>,
    /// The congestion controls that flows have, by their names in the simulator; one that is here twice is drawn twice as often.
    pub controls: Vec<String>,
    pub worlds: usize,
    /// Which worlds are drawn.
    pub seed: u64,
    /// Runs of each world between kernels.
    pub repeats: u64,
    pub jobs: usize,
}

impl Default for Validation {
    fn default() -> Self {
        Self {
            kernel: None,
            names: None,
            sysctl: None,
            controls: ["cubic-linux", "cubic-linux", "bbr", "reno"].map(str::to_owned).to_vec(),
            worlds: 20,
            seed: 1,
            repeats: 3,
            jobs: 1,
        }
    }
}

impl Validation {
    /// Compares all worlds that `folder` does not have yet. `tell` is told of each when it is done, from any thread, and how
    /// many are done.
    ///
    /// # Errors
    /// The kernel lacks what is asked for; the folder has worlds of another validation, or can't be written.
    pub fn run(
        &self,
        folder: &Path,
        tell: impl Fn(&Compared, usize) + Sync,
    ) -> Result<Vec<Compared>, String> {
        let keys = self.keys()?;
        self.try_out()?;
        self.claim(folder)?;
        let next = AtomicUsize::new(0);
        let (done, problem) = (Mutex::new(Vec::new()), Mutex::new(None));
        std::thread::scope(|scope| {
            for _ in 0..self.jobs.clamp(1, self.worlds.max(1)) {
                scope.spawn(|| {
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= self.worlds || problem.lock().is_ok_and(|p| p.is_some()) {
                            return;
                        }
                        match self.world(folder, number, &keys) {
                            Ok(compared) => {
                                if let Ok(mut done) = done.lock() {
                                    tell(&compared, done.len() + 1);
                                    done.push(compared);
                                }
                            }
                            Err(why) => {
                                if let Ok(mut problem) = problem.lock() {
                                    *problem = Some(why);
                                }
                            }
                        }
                    }
                });
            }
        });
        if let Some(problem) = problem.into_inner().unwrap_or_default() {
            return Err(problem);
        }
        let mut done: Vec<Compared> = done.into_inner().unwrap_or_default();
        done.sort_by_key(|compared| compared.world.number);
        write(&folder.join("worlds.csv"), &csv(&done))?;
        Ok(done)
    }

    /// Whether a guest has the settings and the congestion controls that are asked for, before there is any world.
    fn try_out(&self) -> Result<(), String> {
        let told = |problem: SpecError| problem.to_string();
        let kernels = self.kernels();
        for pair in self.names.iter().flat_map(|names| names.split(',')) {
            let known = pair.split_once(':').map_or(pair, |(known, _)| known);
            sojourn_cca::Config::parse(known).map_err(|p| told(p.within("--names")))?;
        }
        let name =
            |control: &String| kernels.name_of(control).map_err(|p| told(p.within("--names")));
        let names = self.controls.iter().map(name).collect::<Result<Vec<String>, String>>()?;
        let one = Kernel {
            kernel: self.kernel.clone(),
            sysctl: self.sysctl.clone(),
            ..Kernel::default()
        };
        let settings = one.settings().map_err(|p| told(p.within("--sysctl")))?;
        ends::try_out(&settings, &names).map_err(|fault| fault.to_string())
    }

    fn kernels(&self) -> Kernels {
        Kernels {
            offload: false,
            coalesce: Span::ZERO,
            kernel: self.kernel.clone(),
            names: self.names.clone(),
            sysctl: self.sysctl.clone(),
        }
    }

    /// What must be the same for results to be of one validation.
    fn identity(&self) -> String {
        format!(
            "kernel = {}\nnames = {}\nsysctl = {}\ncca = {}\nseed = {}\nrepeats = {}\nmodels = {}\nengine = {}\n",
            kernel_digest(self.kernel.as_deref()),
            self.names.as_deref().unwrap_or_default(),
            self.sysctl.as_deref().unwrap_or_default(),
            self.controls.join(","),
            self.seed,
            self.repeats,
            sojourn_sim::MODEL_VERSION,
            crate::VERSION,
        )
    }

    /// How flows are simulated that stand for this kernel's, where kernels of another age or configuration differ.
    fn keys(&self) -> Result<String, String> {
        let path = install::kernel(self.kernel.as_deref()).map_err(|fault| fault.to_string())?;
        let release = install::release(&path).map_err(|fault| fault.to_string())?;
        let mut numbers = release.split(['.', '-', '+']).map_while(|part| part.parse::<u32>().ok());
        let release = numbers.next().zip(numbers.next()).unwrap_or_default();
        // `kernel-options` has neither wireless networks nor tunnels; a guest's card is one of virtio.
        let mut keys = "header_room = 192\npacket_buffers = \"linear\"\n".to_owned();
        if release < (6, 5) {
            keys += "buffer_overhead = 768\n";
        }
        if release < (6, 6) {
            keys += "adv_win_scale = 1\n";
        }
        if release < (6, 10) {
            keys += "buffer_bound = true\n";
        }
        Ok(keys)
    }

    fn claim(&self, folder: &Path) -> Result<(), String> {
        let worlds = folder.join("worlds");
        fs::create_dir_all(&worlds)
            .map_err(|why| format!("{} can't be made: {why}", worlds.display()))?;
        let path = folder.join("validation.txt");
        let own = self.identity();
        match fs::read_to_string(&path) {
            Ok(there) if there == own => Ok(()),
            Ok(there) => {
                let differs = own.lines().zip(there.lines()).find(|(own, there)| own != there);
                let differs = differs.map_or(String::new(), |(own, there)| {
                    format!(": it has {there}, and this is {own}")
                });
                Err(format!(
                    "{} holds another validation{differs}; give another folder",
                    folder.display()
                ))
            }
            Err(why) if why.kind() == io::ErrorKind::NotFound => write(&path, &own),
            Err(why) => Err(format!("{} can't be read: {why}", path.display())),
        }
    }

    /// A world that the folder has, or that is compared now and written there.
    fn world(&self, folder: &Path, number: usize, keys: &str) -> Result<Compared, String> {
        let world =
            World { keys: keys.to_owned(), ..World::draw(self.seed, number, &self.controls) };
        let path = folder.join(format!("worlds/{number:04}.csv"));
        let known = fs::read_to_string(&path).ok().and_then(|text| table::read(&text, &world));
        // What failed is tried again.
        if let Some(known) = known.filter(|known| known.numbers.is_ok()) {
            return Ok(known);
        }
        let compared = self.compare(world);
        write(&path, &csv(std::slice::from_ref(&compared)))?;
        Ok(compared)
    }

    /// The simplest world found in which the same kind of number is outside, after at most so many comparisons.
    pub fn shrink(&self, compared: &Compared, mut most: usize) -> Compared {
        let mut smallest = compared.clone();
        let Some(kind) = compared.worst().map(|number| number.kind) else { return smallest };
        'again: while most > 0 {
            for simpler in smallest.world.simpler() {
                most = most.saturating_sub(1);
                let tried = self.compare(simpler);
                if tried.worst().is_some_and(|number| number.kind == kind) {
                    smallest = tried;
                    continue 'again;
                }
                if most == 0 {
                    break;
                }
            }
            break;
        }
        smallest
    }

    /// Writes the world as a study of both engines; says where it is.
    ///
    /// # Errors
    /// The folder can't be written.
    pub fn keep(&self, folder: &Path, compared: &Compared) -> Result<PathBuf, String> {
        let path = folder.join(format!("world-{}.toml", compared.world.number));
        let mut engine = "kernel".to_owned();
        for (key, value) in
            [("kernel", &self.kernel), ("names", &self.names), ("sysctl", &self.sysctl)]
        {
            if let Some(value) = value {
                engine += &format!(" {key}={value}");
            }
        }
        let study = compared.world.study(true).replace("\"kernel\"]", &format!("\"{engine}\"]"));
        write(&path, &study)?;
        Ok(path)
    }

    fn compare(&self, world: World) -> Compared {
        // A world that breaks the simulator is a finding too, and the others go on.
        let numbers = catch_unwind(AssertUnwindSafe(|| self.numbers(&world)))
            .unwrap_or_else(|_| Err("the run panicked".to_owned()));
        Compared { world, numbers }
    }

    fn numbers(&self, world: &World) -> Result<Vec<Number>, String> {
        /// The mean of so many simulated runs.
        const SIMULATED: u64 = 9;
        let study =
            Study::parse("world", &world.study(false), Path::new(""), &Overrides::default());
        let study = study.map_err(|problem| problem.to_string())?;
        let scenario = &study.scenarios.first().ok_or("no scenario")?.scenario;
        let kernels = self.kernels();
        let run = |engine: &dyn Fn(StreamAddress) -> Result<Measured, String>,
                   seeds: RangeInclusive<u64>| {
            let runs =
                seeds.map(|seed| engine(study.address(seed)).map(|measured| measured.metrics));
            runs.collect::<Result<Vec<RunMetrics>, String>>()
        };
        let simulate = |address: StreamAddress| {
            let scenario = at_phase(scenario, address.run).map_err(|p| p.to_string())?;
            Engine::run(&Sim::default(), &scenario, address)
        };
        let kernel = run(&|address| Engine::run(&kernels, scenario, address), 1..=self.repeats)?;
        let simulated = run(&simulate, 1..=SIMULATED)?;
        let again = run(&simulate, 101..=100 + self.repeats)?;
        let mut groups: Vec<&str> = vec![""];
        for (control, _) in &world.flows {
            if !groups.contains(&control.as_str()) {
                groups.push(control);
            }
        }
        let mut numbers = Vec::new();
        for of in groups {
            let flows: Vec<usize> = (0..world.flows.len())
                .filter(|flow| of.is_empty() || world.flows[*flow].0 == of)
                .collect();
            for kind in Kind::ALL {
                if of.is_empty() != (kind == Kind::TotalGoodput) {
                    continue;
                }
                let side = |runs: &[RunMetrics]| -> Option<Side> {
                    let values = runs.iter().map(|run| value(run, kind, &flows));
                    values.collect::<Option<Vec<f64>>>().map(|values| Side::of(&values))
                };
                let (Some(kernel), Some(simulated), Some(again)) =
                    (side(&kernel), side(&simulated), side(&again))
                else {
                    continue;
                };
                numbers.push(Number {
                    kind,
                    of: of.to_owned(),
                    rate: world.rate as f64 / 1e3,
                    kernel,
                    simulated,
                    again: again.mean,
                });
            }
        }
        Ok(numbers)
    }
}

/// Between kernels each run meets the ticks at another moment. So do simulated ones, of which each begins a part of a tick later.
fn at_phase(scenario: &Checked, seed: u64) -> Result<Checked, SpecError> {
    const TICK: f64 = 0.01;
    /// The golden ratio spreads any number of runs evenly.
    const STEP: f64 = 0.618_033_988_749_895;
    let later = Span::from_secs_f64(TICK * (STEP * seed as f64).fract());
    let mut scenario = scenario.clone().into_inner();
    scenario.flows.iter_mut().for_each(|flow| flow.start += later);
    scenario.checked()
}

/// Goodput and retransmissions of flows with one congestion control together, and the mean of their delays.
fn value(run: &RunMetrics, kind: Kind, flows: &[usize]) -> Option<f64> {
    let values = flows.iter().map(|flow| {
        run.flows.get(*flow)?.value(match kind {
            Kind::TotalGoodput => Kind::Goodput.name(),
            _ => kind.name(),
        })
    });
    let sum: f64 = values.sum::<Option<f64>>()?;
    Some(match kind {
        Kind::Srtt | Kind::Delay => sum / flows.len().max(1) as f64,
        Kind::TotalGoodput | Kind::Goodput | Kind::Retransmissions => sum,
    })
}

/// Whole, or not at all.
fn write(path: &Path, text: &str) -> Result<(), String> {
    let new = path.with_extension("new");
    fs::write(&new, text)
        .and_then(|()| fs::rename(&new, path))
        .map_err(|why| format!("{} can't be written: {why}", path.display()))
}
