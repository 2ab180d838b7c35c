//! Random worlds, each run between kernels and simulated, and compared number by number: Linux as the oracle.

use std::fmt::Write as _;
use std::num::NonZero;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use sojourn_core::{Stream, StreamAddress};
use sojourn_metrics::RunMetrics;
use sojourn_study::engine::{Engine, Measured, Sim};
use sojourn_study::{Overrides, Study};

use crate::engine::Kernels;

/// What is to be compared.
#[derive(Clone, Debug)]
pub struct Validation {
    /// Without it the usual one.
    pub kernel: Option<String>,
    /// What congestion controls are called in it, where that is not their name here.
    pub names: Option<String>,
    pub worlds: usize,
    /// Which worlds are drawn.
    pub seed: u64,
    /// Runs of each world between kernels.
    pub repeats: u64,
    pub jobs: usize,
}

impl Default for Validation {
    fn default() -> Self {
        Self { kernel: None, names: None, worlds: 20, seed: 1, repeats: 3, jobs: 1 }
    }
}

/// A world: one bottleneck and the flows that share it.
#[derive(Clone, Debug, PartialEq)]
pub struct World {
    pub number: usize,
    /// In kbit/s and ms.
    pub rate: u64,
    pub rtt: u64,
    pub queue: String,
    /// Random loss on the way, in tenths of a per cent.
    pub loss: u64,
    /// Congestion control, and when it starts in ms.
    pub flows: Vec<(&'static str, u64)>,
    /// In seconds.
    pub duration: u64,
    pub warmup: u64,
}

/// What a compared number says, and how far kernel and simulation may be apart: the bounds of `tests/fidelity/README.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    TotalGoodput,
    Goodput,
    Srtt,
    Delay,
    Retransmissions,
}

impl Kind {
    pub const ALL: [Self; 5] =
        [Self::TotalGoodput, Self::Goodput, Self::Srtt, Self::Delay, Self::Retransmissions];

    pub const fn name(self) -> &'static str {
        match self {
            Self::TotalGoodput => "goodput_sum_mbps",
            Self::Goodput => "goodput_mbps",
            Self::Srtt => "srtt_p50_ms",
            Self::Delay => "owd_p50_ms",
            Self::Retransmissions => "retransmits",
        }
    }

    /// How far from what a kernel does another number may be, at a rate in Mbit/s.
    pub fn bound(self, kernel: f64, rate: f64) -> f64 {
        match self {
            Self::TotalGoodput => 0.015 * kernel,
            Self::Goodput => (0.1 * kernel).max(0.02 * rate),
            Self::Srtt | Self::Delay => (0.07 * kernel).max(1.0),
            Self::Retransmissions if kernel < 250.0 => f64::INFINITY,
            Self::Retransmissions => 0.2 * kernel,
        }
    }

    /// Whether another number is inside; a few retransmissions may be twice as many or half, and one more or less is chance.
    pub fn is_inside(self, kernel: f64, other: f64, rate: f64) -> bool {
        let (low, high) = (kernel.min(other), kernel.max(other));
        match self {
            Self::Retransmissions if kernel < 250.0 => high <= 2.0 * low || high - low <= 1.0,
            _ => (kernel - other).abs() <= self.bound(kernel, rate),
        }
    }

    /// How many bounds it is away.
    pub fn distance(self, kernel: f64, other: f64, rate: f64) -> f64 {
        match self {
            Self::Retransmissions if kernel < 250.0 => {
                let (low, high) = (kernel.min(other), kernel.max(other));
                (high / low.max(1.0)).log2()
            }
            _ => (kernel - other).abs() / self.bound(kernel, rate),
        }
    }
}

/// One number of a world.
#[derive(Clone, Debug, PartialEq)]
pub struct Number {
    pub kind: Kind,
    /// Of which flow; none of all together.
    pub flow: Option<usize>,
    /// Means over the seeds: between kernels, simulated, and simulated with as many other seeds as the kernels had.
    pub kernel: f64,
    pub simulated: f64,
    pub again: f64,
    /// The least and the most of the kernels' runs.
    pub range: (f64, f64),
}

/// A world that was compared, or why it could not be.
#[derive(Clone, Debug)]
pub struct Compared {
    pub world: World,
    pub numbers: Result<Vec<Number>, String>,
}

impl Compared {
    /// The number that is farthest off, in bounds; none if all are inside.
    pub fn worst(&self) -> Option<(f64, &Number)> {
        let rate = self.world.rate as f64 / 1e3;
        let numbers = self.numbers.as_ref().ok()?;
        let outside = numbers.iter().filter(|n| !n.kind.is_inside(n.kernel, n.simulated, rate));
        outside
            .map(|n| (n.kind.distance(n.kernel, n.simulated, rate), n))
            .max_by(|(one, _), (other, _)| one.total_cmp(other))
    }
}

impl World {
    /// A world that depends on nothing but the seed and its number.
    pub fn draw(seed: u64, number: usize) -> Self {
        let mut stream = StreamAddress { seed, run: number as u64 }
            .stream(0, sojourn_core::Purpose::Application);
        let mut between = |low: f64, high: f64| {
            let log = stream.uniform(low.ln(), high.ln());
            log.exp()
        };
        let rate = round(between(1_000.0, 40_000.0));
        let rtt = round(between(4.0, 200.0));
        let share = between(0.3, 5.0);
        let bdp = rate as f64 * rtt as f64 / 8.0 / 1514.0;
        let limit = ((bdp * share) as u64).clamp(10, 2_000);
        let queue = match stream.below(20) {
            0..11 => format!("pfifo limit {limit}"),
            11..15 => "fq_codel".to_owned(),
            15..18 => "codel".to_owned(),
            _ => "pie".to_owned(),
        };
        let loss = if stream.below(4) == 0 { 1 + stream.below(10) } else { 0 };
        let flows = 1 + [0, 0, 1, 1, 1, 2][stream.below(6) as usize];
        let flow = |index: u64, stream: &mut Stream| {
            let cca = ["cubic", "cubic", "bbr", "reno"][stream.below(4) as usize];
            (cca, if index == 0 { 0 } else { stream.below(20) * 100 })
        };
        let flows = (0..flows).map(|index| flow(index, &mut stream)).collect();
        Self { number, rate, rtt, queue, loss, flows, duration: 24, warmup: 6 }
    }

    /// The world as a study, for the two engines if `with_engines`.
    pub fn study(&self, with_engines: bool) -> String {
        let mut text = format!(
            "schema = 1\ntitle = \"World {}: a kernel and the simulator\"\n\
             question = \"Do Linux and the simulator agree?\"\n\n[scenario]\nduration = \"{}s\"\nwarmup = \"{}s\"\n\n\
             [scenario.path]\nrate = \"{}kbps\"\nrtt = \"{}ms\"\nqueue = \"{}\"\n",
            self.number, self.duration, self.warmup, self.rate, self.rtt, self.queue
        );
        if self.loss > 0 {
            let _ = writeln!(text, "loss = \"random {}.{}%\"", self.loss / 10, self.loss % 10);
        }
        for (index, (cca, start)) in self.flows.iter().enumerate() {
            let _ = write!(
                text,
                "\n[[scenario.flow]]\nname = \"flow{index}\"\napp = \"bulk\"\ncca = \"{cca}\"\n\
                 start = \"{start}ms\"\ntick = \"10ms\"\n"
            );
        }
        if with_engines {
            text += "\n[factors]\nengine = [\"sim\", \"kernel\"]\n";
        }
        text
    }

    /// Simpler worlds, the simplest first.
    fn simpler(&self) -> Vec<Self> {
        let mut all = Vec::new();
        for index in (0..self.flows.len()).filter(|_| self.flows.len() > 1) {
            let mut flows = self.flows.clone();
            flows.remove(index);
            flows[0].1 = 0;
            all.push(Self { flows, ..self.clone() });
        }
        if self.loss > 0 {
            all.push(Self { loss: 0, ..self.clone() });
        }
        if !self.queue.starts_with("pfifo") {
            all.push(Self { queue: "pfifo limit 100".to_owned(), ..self.clone() });
        }
        if self.flows.iter().any(|(_, start)| *start > 0) {
            let flows = self.flows.iter().map(|(cca, _)| (*cca, 0)).collect();
            all.push(Self { flows, ..self.clone() });
        }
        if (self.rate, self.rtt) != (10_000, 20) {
            all.push(Self { rate: 10_000, rtt: 20, ..self.clone() });
        }
        all
    }
}

/// Two digits.
fn round(value: f64) -> u64 {
    let unit = 10f64.powf((value.log10().floor() - 1.0).max(0.0));
    ((value / unit).round() * unit) as u64
}

impl Validation {
    /// Compares all worlds. `tell` is told of each when it is done, from any thread.
    pub fn run(&self, tell: impl Fn(&Compared, usize) + Sync) -> Vec<Compared> {
        let next = AtomicUsize::new(0);
        let done = Mutex::new(Vec::new());
        let jobs = NonZero::new(self.jobs).map_or(1, NonZero::get).min(self.worlds.max(1));
        std::thread::scope(|scope| {
            for _ in 0..jobs {
                scope.spawn(|| {
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= self.worlds {
                            return;
                        }
                        let compared = self.compare(World::draw(self.seed, number));
                        if let Ok(mut done) = done.lock() {
                            tell(&compared, done.len() + 1);
                            done.push(compared);
                        }
                    }
                });
            }
        });
        let mut done = done.into_inner().unwrap_or_default();
        done.sort_by_key(|compared: &Compared| compared.world.number);
        done
    }

    /// The simplest world found in which the same kind of number is outside.
    pub fn shrink(&self, compared: &Compared, mut most: usize) -> Compared {
        let mut smallest = compared.clone();
        let Some((_, number)) = compared.worst() else { return smallest };
        let kind = number.kind;
        'again: while most > 0 {
            for simpler in smallest.world.simpler() {
                most = most.saturating_sub(1);
                let tried = self.compare(simpler);
                if tried.worst().is_some_and(|(_, number)| number.kind == kind) {
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

    fn compare(&self, world: World) -> Compared {
        let numbers = self.numbers(&world);
        Compared { world, numbers }
    }

    fn numbers(&self, world: &World) -> Result<Vec<Number>, String> {
        /// The mean of so many simulated runs.
        const SIMULATED: u64 = 9;
        let study =
            Study::parse("world", &world.study(false), Path::new(""), &Overrides::default());
        let study = study.map_err(|problem| problem.to_string())?;
        let scenario = &study.scenarios.first().ok_or("no scenario")?.scenario;
        let kernels = Kernels {
            kernel: self.kernel.clone(),
            names: self.names.clone(),
            ..Kernels::default()
        };
        let run = |engine: &dyn Fn(StreamAddress) -> Result<Measured, String>,
                   seeds: std::ops::RangeInclusive<u64>| {
            let runs =
                seeds.map(|seed| engine(study.address(seed)).map(|measured| measured.metrics));
            runs.collect::<Result<Vec<RunMetrics>, String>>()
        };
        let simulate = |address| Engine::run(&Sim::default(), scenario, address);
        let kernel = run(&|address| Engine::run(&kernels, scenario, address), 1..=self.repeats)?;
        let simulated = run(&simulate, 1..=SIMULATED)?;
        let again = run(&simulate, 101..=100 + self.repeats)?;
        let mut numbers = Vec::new();
        let flows = (0..world.flows.len()).map(Some);
        for flow in [None].into_iter().chain(flows) {
            for kind in Kind::ALL {
                if flow.is_none() != (kind == Kind::TotalGoodput) {
                    continue;
                }
                let values = |runs: &[RunMetrics]| -> Option<Vec<f64>> {
                    runs.iter().map(|run| value(run, kind, flow)).collect()
                };
                let (Some(kernel), Some(simulated), Some(again)) =
                    (values(&kernel), values(&simulated), values(&again))
                else {
                    continue;
                };
                let least = kernel.iter().copied().fold(f64::INFINITY, f64::min);
                let most = kernel.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                numbers.push(Number {
                    kind,
                    flow,
                    kernel: mean(&kernel),
                    simulated: mean(&simulated),
                    again: mean(&again),
                    range: (least, most),
                });
            }
        }
        Ok(numbers)
    }
}

fn value(run: &RunMetrics, kind: Kind, flow: Option<usize>) -> Option<f64> {
    match flow {
        None => Some(run.totals.tcp_goodput_sum_mbps),
        Some(flow) => run.flows.get(flow)?.value(kind.name()),
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Every number of every world, a line each.
pub fn csv(all: &[Compared]) -> String {
    let mut text = "world,rate_kbps,rtt_ms,queue,loss_permille,flows,number,flow,kernel,kernel_min,kernel_max,simulated,simulated_again,distance_bounds,inside\n".to_owned();
    for compared in all {
        let world = &compared.world;
        let rate = world.rate as f64 / 1e3;
        let flows: Vec<&str> = world.flows.iter().map(|(cca, _)| *cca).collect();
        for n in compared.numbers.iter().flatten() {
            let _ = writeln!(
                text,
                "{},{},{},{},{},{},{},{},{:.4},{:.4},{:.4},{:.4},{:.4},{:.2},{}",
                world.number,
                world.rate,
                world.rtt,
                world.queue,
                world.loss,
                flows.join("+"),
                n.kind.name(),
                n.flow.map_or(String::new(), |flow| flow.to_string()),
                n.kernel,
                n.range.0,
                n.range.1,
                n.simulated,
                n.again,
                n.kind.distance(n.kernel, n.simulated, rate),
                u8::from(n.kind.is_inside(n.kernel, n.simulated, rate)),
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn every_world_is_a_study_of_both_engines(seed: u64, number in 0usize..1000) {
            let world = World::draw(seed, number);
            let parsed = |text: &str| Study::parse("world", text, Path::new(""), &Overrides::default());
            for world in [world.clone()].into_iter().chain(world.simpler()) {
                let study = parsed(&world.study(false));
                prop_assert!(study.is_ok(), "{:?}\n{}", study.err(), world.study(false));
                let scenario = &study.expect("it was read").scenarios[0].scenario;
                prop_assert!(Kernels::default().check_scenario(scenario).is_ok());
            }
            prop_assert_eq!(World::draw(seed, number), world);
        }
    }

    #[test]
    fn bounds_are_those_of_the_fidelity_tests() {
        let inside = |kind: Kind, other| kind.is_inside(10.0, other, 10.0);
        assert!(inside(Kind::TotalGoodput, 10.14) && !inside(Kind::TotalGoodput, 10.16));
        assert!(inside(Kind::Goodput, 11.0) && !inside(Kind::Goodput, 11.1));
        assert!(
            Kind::Goodput.is_inside(0.5, 0.7, 10.0) && !Kind::Goodput.is_inside(0.5, 0.71, 10.0)
        );
        assert!(inside(Kind::Srtt, 11.0) && !inside(Kind::Srtt, 11.1));
        assert!(
            Kind::Delay.is_inside(100.0, 107.0, 10.0) && !Kind::Delay.is_inside(100.0, 107.1, 10.0)
        );
        assert!(inside(Kind::Retransmissions, 20.0) && !inside(Kind::Retransmissions, 21.0));
        assert!(Kind::Retransmissions.is_inside(300.0, 360.0, 1.0));
        assert!(!Kind::Retransmissions.is_inside(300.0, 361.0, 1.0));
        assert!(
            Kind::Retransmissions.is_inside(0.0, 1.0, 1.0)
                && !Kind::Retransmissions.is_inside(0.0, 2.0, 1.0)
        );
    }
}
