//! Distributions of delays, for single runs and for all runs of a scenario together.

use std::collections::{BTreeMap, BTreeSet};

use sojourn_metrics::stats::product_limit;
use sojourn_study::results::{Bucket, Delays, Kind, PlannedScenario};

use crate::data::{Data, Subject};
use crate::nearby::nearby;

/// The ends of a bucket, nanoseconds, the upper one first, and how many samples are between them.
type Between = ((u64, u64), u64);

/// Buckets of samples, to which others are added. However many there are, one more costs the logarithm of that.
#[derive(Clone, Default)]
struct Samples {
    /// In ascending order.
    settled: Vec<Between>,
    /// Those that are not among them, in any order, several with the same ends included.
    new: Vec<Between>,
}

impl Samples {
    /// Adds buckets in ascending order.
    fn add(&mut self, buckets: impl Iterator<Item = Between>) {
        let mut at = 0;
        for (ends, samples) in buckets {
            at += self.settled[at..].partition_point(|(own, _)| *own < ends);
            match self.settled.get_mut(at) {
                Some((own, sum)) if *own == ends => *sum += samples,
                _ => self.new.push((ends, samples)),
            }
        }
        // Each time there are half as many more, so that a bucket is moved seldom.
        if self.new.len() * 2 > self.settled.len() {
            self.settle();
        }
    }

    fn settle(&mut self) {
        self.settled.append(&mut self.new);
        // Most are in order already, which a stable sort makes use of.
        self.settled.sort_by_key(|(ends, _)| *ends);
        self.settled.dedup_by(|next, kept| {
            let is_same = next.0 == kept.0;
            kept.1 += if is_same { next.1 } else { 0 };
            is_same
        });
    }

    /// All buckets in ascending order.
    fn ordered(mut self) -> Vec<Between> {
        self.settle();
        self.settled
    }

    fn count(&self) -> u64 {
        self.settled.iter().chain(&self.new).map(|(_, samples)| samples).sum()
    }
}

/// Points of a distribution: a value in milliseconds and the share of samples up to it, from the
/// least sample with share 0 to the largest, with share 1 unless some had not ended.
pub(crate) type Shares = Vec<(f64, f64)>;

/// A delay of a flow, group or queue in one scenario.
#[derive(Default)]
pub(crate) struct Spread {
    pub(crate) runs: Vec<(u32, Shares)>,
    pooled: Durations,
}

/// Delays, and the ages of what had not ended, such as transfers.
#[derive(Default)]
struct Durations {
    known: Samples,
    open: Samples,
}

impl Spread {
    /// Over the samples of all runs together.
    pub(crate) fn pooled(&self) -> Shares {
        self.pooled.shares()
    }

    pub(crate) fn samples(&self) -> u64 {
        self.pooled.known.count()
    }

    /// How many had not ended.
    pub(crate) fn open(&self) -> u64 {
        self.pooled.open.count()
    }
}

/// The spreads of a study.
#[derive(Default)]
pub(crate) struct Spreads {
    /// By scenario (where scenarios are pooled, by the first of those together), by the word with which the names
    /// of the delay's quantiles begin, and by subject.
    all: BTreeMap<usize, BTreeMap<String, BTreeMap<Subject, Spread>>>,
    pooled: Option<Pooled>,
    /// Flows of groups that have one for themselves, too.
    singles: BTreeSet<String>,
}

/// Scenarios that have their distributions together, because there are too many for one each.
pub(crate) struct Pooled {
    /// The factor whose values are kept apart.
    pub(crate) factor: Option<usize>,
    /// For each scenario the first one that is pooled with it.
    first: Vec<usize>,
}

impl Pooled {
    /// The first scenario of each pool, and how many are in it.
    pub(crate) fn pools(&self) -> BTreeMap<usize, usize> {
        let mut pools = BTreeMap::new();
        self.first.iter().for_each(|first| *pools.entry(*first).or_default() += 1);
        pools
    }
}

/// The most scenarios with a distribution each: more curves can't be told apart.
pub(crate) const MOST_APART: usize = 1_000;

impl Spreads {
    /// Without any yet.
    pub(crate) fn new(data: &Data<'_>) -> Self {
        let scenarios = data.plan.scenarios.len();
        let pooled = (scenarios > MOST_APART).then(|| {
            let factor = data.telling_factor();
            let mut firsts: BTreeMap<&str, usize> = BTreeMap::new();
            let first = (0..scenarios).map(|scenario| {
                let value = factor.map_or("", |factor| data.value(scenario, factor));
                *firsts.entry(value).or_insert(scenario)
            });
            Pooled { factor, first: first.collect() }
        });
        let singles = data.singles.iter().map(|single| single.name.clone()).collect();
        Self { all: BTreeMap::new(), pooled, singles }
    }

    pub(crate) fn pooled(&self) -> Option<&Pooled> {
        self.pooled.as_ref()
    }

    /// Adds the delays of a run.
    pub(crate) fn add(
        &mut self,
        scenario: usize,
        planned: &PlannedScenario,
        run: u32,
        delays: &[Delays],
    ) {
        let scenario = self.pooled.as_ref().map_or(scenario, |pooled| pooled.first[scenario]);
        // The flows of a group have one distribution together.
        let mut of_run: BTreeMap<(&str, Kind, &str), Durations> = BTreeMap::new();
        let mut last = 0;
        for delays in delays {
            let name = match delays.kind {
                Kind::Flow => {
                    match nearby(&planned.flows, &mut last, |flow| flow.name == delays.name) {
                        Some(flow) => &planned.flows[flow].group,
                        None => continue,
                    }
                }
                Kind::Queue | Kind::Run => &delays.name,
            };
            let (metric, is_open) = match delays.metric.strip_suffix("_open") {
                Some(metric) => (metric, true),
                None => (&delays.metric[..], false),
            };
            let single = Some(&delays.name).filter(|name| self.singles.contains(*name));
            for name in [name].into_iter().chain(single) {
                let of_run = of_run.entry((metric, delays.kind, name)).or_default();
                let samples_of = if is_open { &mut of_run.open } else { &mut of_run.known };
                samples_of.add(delays.buckets.iter().map(|bucket| {
                    let Bucket { low_ns, high_ns, samples } = *bucket;
                    ((high_ns, low_ns), samples)
                }));
            }
        }
        for ((metric, kind, name), durations) in of_run {
            let of_scenario = self.all.entry(scenario).or_default();
            if !of_scenario.contains_key(metric) {
                of_scenario.insert(metric.to_owned(), BTreeMap::new());
            }
            let Some(of_metric) = of_scenario.get_mut(metric) else { continue };
            let spread = of_metric.entry(Subject { kind, name: name.to_owned() }).or_default();
            let is_apart = self.pooled.is_none();
            spread.runs.push((run, if is_apart { durations.shares() } else { Shares::new() }));
            spread.pooled.known.add(durations.known.ordered().into_iter());
            spread.pooled.open.add(durations.open.ordered().into_iter());
        }
    }

    pub(crate) fn of(&self, scenario: usize, subject: &Subject, metric: &str) -> Option<&Spread> {
        self.all.get(&scenario)?.get(metric)?.get(subject)
    }

    /// Whether the delay was measured of the subject in any scenario.
    pub(crate) fn has(&self, subject: &Subject, metric: &str) -> bool {
        let mut of_metric = self.all.values().filter_map(|of_scenario| of_scenario.get(metric));
        of_metric.any(|spreads| spreads.contains_key(subject))
    }
}

impl Durations {
    /// By Kaplan and Meier: of what had not ended, a part ended later than its age. If nothing is
    /// open, these are the shares of the samples.
    fn shares(&self) -> Shares {
        let buckets = |samples: &Samples| -> Vec<(u64, u64, u64)> {
            let ordered = samples.clone().ordered().into_iter();
            ordered.map(|((high, low), count)| (low, high, count)).collect()
        };
        let (known, open) = (buckets(&self.known), buckets(&self.open));
        let all = known.iter().chain(&open).map(|(_, _, count)| count).sum();
        let ms = |ns: u64| ns as f64 / 1e6;
        let mut out: Shares = Vec::with_capacity(known.len() + 1);
        out.extend(known.first().map(|(low, ..)| (ms(*low), 0.0)));
        let curve = product_limit(known.into_iter(), open.into_iter(), all);
        out.extend(curve.map(|(_, high, share)| (ms(high), share)));
        out
    }
}

/// The least value such that at least `share` of the samples are up to it.
pub(crate) fn quantile(shares: &Shares, share: f64) -> Option<f64> {
    shares.iter().find(|(_, up_to)| *up_to >= share).map(|(value, _)| *value)
}

#[cfg(test)]
mod tests {
    use sojourn_study::results::PlannedFlow;

    use super::*;

    #[test]
    fn buckets_that_come_in_any_order_are_put_in_order_and_added_up() {
        let mut samples = Samples::default();
        let mut expected = BTreeMap::new();
        for run in 0..100u64 {
            let of_run: BTreeMap<(u64, u64), u64> =
                (0..20).map(|at| ((at * 7919 * (run % 7 + 1) % 500, run % 3), at)).collect();
            samples.add(of_run.clone().into_iter());
            of_run
                .into_iter()
                .for_each(|(ends, count)| *expected.entry(ends).or_default() += count);
        }
        samples.add([((999, 0), 5)].into_iter());
        expected.insert((999, 0), 5);
        assert_eq!(samples.new, [((999, 0), 5)]);
        assert_eq!(samples.count(), expected.values().sum::<u64>());
        assert_eq!(samples.ordered(), Vec::from_iter(expected));
    }

    #[test]
    fn flows_of_a_group_and_runs_of_a_scenario_make_one_distribution() {
        let flow = |name: &str| PlannedFlow {
            name: name.into(),
            group: "b".into(),
            app: "bulk".into(),
            cca: None,
            base_rtt_ms: 10.0,
            bytes: None,
            is_up: false,
        };
        let planned = PlannedScenario {
            factors: vec![],
            duration_s: 1.0,
            until: None,
            engine: None,
            warmup_s: 0.0,
            step_s: 0.1,
            flows: [flow("b.1"), flow("b.2")].into(),
            queues: [].into(),
        };
        let delays = |run, name: &str, ms: u64, samples| Delays {
            run,
            kind: Kind::Flow,
            name: name.into(),
            metric: "rtt".into(),
            buckets: vec![Bucket {
                low_ns: ms * 1_000_000,
                high_ns: ms * 1_000_000 + 10_000,
                samples,
            }],
        };
        let mut spreads = Spreads::default();
        spreads.add(0, &planned, 0, &[delays(0, "b.1", 10, 1), delays(0, "b.2", 20, 3)]);
        spreads.add(0, &planned, 1, &[delays(1, "b.1", 10, 4)]);
        let subject = Subject { kind: Kind::Flow, name: "b".into() };
        let spread = spreads.of(0, &subject, "rtt").unwrap();
        assert_eq!(spread.runs[0].1, [(10.0, 0.0), (10.01, 0.25), (20.01, 1.0)]);
        assert_eq!(spread.pooled(), [(10.0, 0.0), (10.01, 0.625), (20.01, 1.0)]);
        assert_eq!(quantile(&spread.pooled(), 0.6), Some(10.01));
        assert_eq!(spread.samples(), 8);
        assert!(spreads.has(&subject, "rtt") && !spreads.has(&subject, "owd"));
        // Of five transfers one had not ended after 15 ms, so a median among 20 ms and more.
        let open = Delays { metric: "rtt_open".into(), ..delays(2, "b.1", 15, 1) };
        spreads.add(0, &planned, 2, &[delays(2, "b.1", 10, 1), delays(2, "b.2", 20, 3), open]);
        let spread = spreads.of(0, &subject, "rtt").unwrap();
        let one_in_five = spread.runs[2].1[1];
        assert!(one_in_five.0 == 10.01 && (one_in_five.1 - 0.2).abs() < 1e-9, "{one_in_five:?}");
        assert_eq!(spread.runs[2].1[2], (20.01, 1.0));
        assert_eq!((spread.samples(), spread.open()), (12, 1));
        // One that is open at the end leaves the curve below 100 %.
        let open = Delays { metric: "rtt_open".into(), ..delays(3, "b.1", 30, 1) };
        spreads.add(0, &planned, 3, &[delays(3, "b.1", 10, 1), open]);
        let spread = spreads.of(0, &subject, "rtt").unwrap();
        assert_eq!(spread.runs[3].1, [(10.0, 0.0), (10.01, 0.5)]);
        assert_eq!(quantile(&spread.runs[3].1, 0.9), None);
    }
}
