//! Every metric by name: what results, claims and `sojourn list` share.

use sojourn_core::{DropReason, FlowSample, Span};

use crate::histogram::Distribution;
use crate::outcome::{FlowMetrics, LinkMetrics, RunMetrics};
use crate::qoe;
use crate::stats;

/// A number with a name.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Unique within its scope; ends in the unit, where it has one that is not a count.
    pub name: &'static str,
    /// Empty for shares, scores and indices.
    pub unit: &'static str,
    pub scope: Scope,
    pub doc: &'static str,
    pub of: Of,
}

/// What a metric is a metric of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    Flow,
    Link,
    Run,
}

impl Scope {
    pub const ALL: [Self; 3] = [Self::Flow, Self::Link, Self::Run];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Flow => "flow",
            Self::Link => "link",
            Self::Run => "run",
        }
    }
}

/// How a metric is read off; `None` where it has no value, such as a delay that nobody measured.
#[derive(Clone, Copy, Debug)]
pub enum Of {
    Flow(fn(&FlowMetrics) -> Option<f64>),
    Link(fn(&LinkMetrics) -> Option<f64>),
    Run(fn(&RunMetrics) -> Option<f64>),
}

impl Metric {
    /// `None` for a metric of another scope, like the two that follow.
    pub fn of_flow(&self, flow: &FlowMetrics) -> Option<f64> {
        match self.of {
            Of::Flow(of) => of(flow),
            Of::Link(_) | Of::Run(_) => None,
        }
    }

    pub fn of_link(&self, link: &LinkMetrics) -> Option<f64> {
        match self.of {
            Of::Link(of) => of(link),
            Of::Flow(_) | Of::Run(_) => None,
        }
    }

    pub fn of_run(&self, run: &RunMetrics) -> Option<f64> {
        match self.of {
            Of::Run(of) => of(run),
            Of::Flow(_) | Of::Link(_) => None,
        }
    }
}

/// A metric by name.
pub fn metric(scope: Scope, name: &str) -> Option<&'static Metric> {
    metrics(scope).find(|metric| metric.name == name)
}

/// The metrics of a scope, in the order of the table.
pub fn metrics(scope: Scope) -> impl Iterator<Item = &'static Metric> {
    METRICS.iter().filter(move |metric| metric.scope == scope)
}

/// The whole table, flows first.
pub const METRICS: &[Metric] = &flatten::<{ length(GROUPS) }>(GROUPS);

const fn length(groups: &[&[Metric]]) -> usize {
    let (mut sum, mut at) = (0, 0);
    while at < groups.len() {
        sum += groups[at].len();
        at += 1;
    }
    sum
}

const fn flatten<const N: usize>(groups: &[&[Metric]]) -> [Metric; N] {
    let mut flat = [groups[0][0]; N];
    let (mut next, mut group) = (0, 0);
    while group < groups.len() {
        let mut at = 0;
        while at < groups[group].len() {
            flat[next] = groups[group][at];
            next += 1;
            at += 1;
        }
        group += 1;
    }
    flat
}

macro_rules! group {
    ($scope:ident, $($name:literal $unit:literal $doc:literal $of:expr,)*) => {
        &[$(Metric {
            name: $name,
            unit: $unit,
            scope: Scope::$scope,
            doc: $doc,
            of: Of::$scope($of),
        },)*]
    };
}

/// Quantiles of a distribution; `$scale` takes its integers to the unit.
macro_rules! quantiles {
    ($scope:ident, $prefix:literal, $suffix:literal, $unit:literal, $scale:expr, $what:literal,
     $of:expr) => {
        group! { $scope,
            concat!($prefix, "_min", $suffix) $unit concat!("Least ", $what)
                |of| whole($of(of).min(), $scale),
            concat!($prefix, "_mean", $suffix) $unit concat!("Mean ", $what)
                |of| $of(of).mean().map(|value| value * $scale),
            concat!($prefix, "_p1", $suffix) $unit concat!("1st percentile of the ", $what)
                |of| quantile($of(of), 0.01, $scale),
            concat!($prefix, "_p5", $suffix) $unit concat!("5th percentile of the ", $what)
                |of| quantile($of(of), 0.05, $scale),
            concat!($prefix, "_p25", $suffix) $unit concat!("25th percentile of the ", $what)
                |of| quantile($of(of), 0.25, $scale),
            concat!($prefix, "_p50", $suffix) $unit concat!("Median ", $what)
                |of| quantile($of(of), 0.5, $scale),
            concat!($prefix, "_p75", $suffix) $unit concat!("75th percentile of the ", $what)
                |of| quantile($of(of), 0.75, $scale),
            concat!($prefix, "_p95", $suffix) $unit concat!("95th percentile of the ", $what)
                |of| quantile($of(of), 0.95, $scale),
            concat!($prefix, "_p99", $suffix) $unit concat!("99th percentile of the ", $what)
                |of| quantile($of(of), 0.99, $scale),
            concat!($prefix, "_p999", $suffix) $unit concat!("99.9th percentile of the ", $what)
                |of| quantile($of(of), 0.999, $scale),
            concat!($prefix, "_max", $suffix) $unit concat!("Largest ", $what)
                |of| whole($of(of).max(), $scale),
        }
    };
}
