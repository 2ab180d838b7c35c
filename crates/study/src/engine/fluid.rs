//! The engine that integrates rates and queues in place of packets.

use sojourn_core::param::{Maybe, time};
use sojourn_core::{Span, SpecError, StreamAddress, Time};
use sojourn_metrics::Collector;
use sojourn_scenario::Checked;

use super::{Engine, Measured};
use crate::shape::shape;

sojourn_core::params! {
    /// How the equations are integrated.
    pub struct Fluid: "fluid", "Rates and queues as delay-differential equations, in milliseconds a run; deterministic" {
        pub step: Option<Span> as Maybe<Span> = "", time(Span::from_micros(1), Span::from_secs(1)),
            "fixed step of the integration; without it steps are as long as their error allows, or 10 µs with 'scherrer'";
        pub form: self::Form = "corrected",
            "equations: 'corrected', the project's own, or 'scherrer', those of Scherrer et al. (IMC 2022) as their authors integrate them";
    }
}

/// [`sojourn_fluid::Form`] as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Corrected,
    Scherrer,
}

sojourn_core::choice! { Form { "corrected" = Form::Corrected, "scherrer" = Form::Scherrer } }

impl Fluid {
    fn options(&self) -> sojourn_fluid::Options {
        let form = match self.form {
            Form::Corrected => sojourn_fluid::Form::Corrected,
            Form::Scherrer => sojourn_fluid::Form::Scherrer,
        };
        sojourn_fluid::Options { step: self.step, form }
    }
}

impl Engine for Fluid {
    const VERSION: u32 = sojourn_fluid::VERSION;

    fn check_scenario(&self, scenario: &Checked) -> Result<(), SpecError> {
        sojourn_fluid::check(scenario, &self.options())
    }

    fn run(&self, scenario: &Checked, address: StreamAddress) -> Result<Measured, String> {
        let mut collector = Collector::new(shape(scenario));
        sojourn_fluid::run(scenario, address, &self.options(), &mut collector)?;
        let mut metrics = collector.finish(Time::ZERO + scenario.duration);
        // A sender's counters of timeouts, of idleness and of what it imagined have no fluid.
        metrics.flows.iter_mut().for_each(|flow| flow.last = None);
        // A link without data has no queue in a fluid; zeros would say that it had an empty one.
        let has_queue: Vec<bool> = (0..scenario.links.len())
            .map(|place| sojourn_fluid::has_queue(scenario, place))
            .collect();
        let mut places = has_queue.iter();
        metrics.links.retain(|_| places.next() == Some(&true));
        let mut places = has_queue.iter();
        metrics.series.links.retain(|_| places.next() == Some(&true));
        Ok(Measured { metrics, end_states: Vec::new() })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use sojourn_file::Overrides;

    use crate::results::{Folder, Kind};
    use crate::runner::{self, Options};
    use crate::study::Study;
    use crate::testing::Scratch;

    #[test]
    fn what_a_fluid_does_not_know_is_missing_and_no_zero() {
        let text = r#"
            schema = 1
            title = "one download"
            [scenario]
            engine = "fluid"
            duration = "5s"
            path = { rate = "8Mbps", rtt = "20ms", queue = "pfifo limit 50", reverse_rate = "1Mbps", reverse_queue = "pfifo" }
            [[scenario.flow]]
            name = "fetch"
            app = "bulk"
        "#;
        let study = Study::parse("fluid.toml", text, Path::new(""), &Overrides::default())
            .unwrap_or_else(|error| panic!("{error}"));
        let scratch = Scratch::new("fluid");
        let out = scratch.path("out");
        let summary = runner::run(&study, &Options::new(&out), &|_| {}).unwrap();
        assert_eq!(summary.failed, []);
        let results = Folder::open(&out).unwrap();
        let rows = results.table.run(0);
        let value = |kind: Kind, metric: &str| {
            let row = rows.iter().find(|row| row.kind == kind).expect("there is a row");
            results.table.value(row, metric)
        };
        let goodput = value(Kind::Flow, "goodput_mbps").expect("a rate is what a fluid knows");
        assert!((6.5..8.0).contains(&goodput), "{goodput}");
        assert_eq!(value(Kind::Flow, "timeouts"), None);
        let queues: Vec<&str> =
            rows.iter().filter(|row| row.kind == Kind::Queue).map(|row| &row.name[..]).collect();
        assert_eq!(queues, ["queue"], "acknowledgements load no queue, so theirs is not shown");
    }
}
