//! The engine that integrates rates and queues in place of packets.

use sojourn_core::param::{Maybe, Switch, time};
use sojourn_core::{Span, SpecError, StreamAddress};
use sojourn_metrics::{Collector, FlowMetrics, Histogram, Rest, RunMetrics};
use sojourn_scenario::Checked;

use super::{Engine, Measured, forget_other_engines, look};
use crate::shape::shape;

sojourn_core::params! {
    /// How the equations are integrated.
    pub struct Fluid: "fluid", "Rates and queues as delay-differential equations, in milliseconds a run; deterministic" {
        pub step: Option<Span> as Maybe<Span> = "", time(Span::from_micros(1), Span::from_secs(1)),
            "fixed step of the integration; without it steps are as long as their error allows, or 10 µs with 'scherrer' and 'as-printed'";
        pub form: self::Form = "corrected",
            "equations: 'corrected', the project's own, or 'scherrer', those of Scherrer et al. (IMC 2022) as their authors integrate them, or 'as-printed', equations 9 to 24 of 'TCP BBR Performance over Wi-Fi 6' with their defects";
        pub rest: bool as Switch = "off",
            "also solve for the point at rest and its stability: metrics rest_*; a world that has none is a failed run";
    }
}

/// [`sojourn_fluid::Form`] as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Corrected,
    Scherrer,
    AsPrinted,
}

sojourn_core::choice! {
    Form { "corrected" = Form::Corrected, "scherrer" = Form::Scherrer, "as-printed" = Form::AsPrinted }
}

impl Fluid {
    fn options(&self) -> sojourn_fluid::Options {
        let form = match self.form {
            Form::Corrected => sojourn_fluid::Form::Corrected,
            Form::Scherrer => sojourn_fluid::Form::Scherrer,
            Form::AsPrinted => sojourn_fluid::Form::AsPrinted,
        };
        sojourn_fluid::Options { step: self.step, form, ..sojourn_fluid::Options::default() }
    }
}

impl Engine for Fluid {
    const VERSION: u32 = sojourn_fluid::VERSION;

    fn check_scenario(&self, scenario: &Checked) -> Result<(), SpecError> {
        sojourn_fluid::check(scenario, &self.options())
    }

    fn forget(&self, run: &mut RunMetrics) {
        let rest: Vec<Option<Rest>> = run.links.iter().map(|link| link.rest).collect();
        forget_other_engines(run);
        run.flows.iter_mut().for_each(forget);
        if self.rest {
            run.links.iter_mut().zip(rest).for_each(|(link, rest)| link.rest = rest);
        }
    }

    fn run(&self, scenario: &Checked, address: StreamAddress) -> Result<Measured, String> {
        let rest = match self.rest {
            true => Some(sojourn_fluid::equilibrium(scenario).map_err(|error| error.to_string())?),
            false => None,
        };
        let collector = Collector::new(shape(scenario)).expecting_all_drops();
        let options = self.options();
        let (mut metrics, ran) =
            sojourn_measure::solve(scenario, address, &options, collector, &mut |_, _| look())?;
        for queue in &ran.queues {
            let link = &mut metrics.links[queue.port];
            link.queue_mean_pkts = Some(queue.packets);
            link.queue_mean_bytes = Some(queue.bytes);
            link.drop_share = queue.drop_share;
        }
        if let Some(rest) = rest {
            let stability = rest.stability.as_ref();
            metrics.links[rest.port].rest = Some(Rest {
                queue_pkts: rest.queue,
                damping_per_s: stability.and_then(|stability| stability.damping()),
                period: stability
                    .and_then(|stability| stability.period())
                    .map(|seconds| Span::from_nanos((seconds * 1e9) as u64)),
            });
        }
        metrics.flows.iter_mut().for_each(forget);
        metrics.series.flows.iter_mut().for_each(|flow| flow.rwnd_bytes.fill(f32::NAN));
        // A link without data has no queue in a fluid; zeros would say that it had an empty one.
        let has_queue: Vec<bool> = (0..scenario.links.len())
            .map(|place| sojourn_fluid::has_queue(scenario, place))
            .collect();
        let mut places = has_queue.iter();
        metrics.links.retain(|_| places.next() == Some(&true));
        let mut places = has_queue.iter();
        metrics.series.links.retain(|_| places.next() == Some(&true));
        Ok(Measured { metrics, end_states: Vec::new(), is_stopped: false, troubles: Vec::new() })
    }
}

/// Removes what a fluid has no part of.
fn forget(flow: &mut FlowMetrics) {
    // A sender's counters of timeouts, of idleness and of what it imagined have no fluid, nor has what waits to
    // be sent. What it heard of losses and marks stays.
    (flow.last, flow.not_sent_bytes) = (None, None);
    // Datagrams wait for what is ahead of them as a whole, and not for whole packets, which is most of how the
    // delay of one differs from that of the next.
    (flow.jitter, flow.jitter_mean) = (None, None);
    flow.ipdv = Histogram::new().distribution();
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use sojourn_file::Overrides;

    use crate::results::{Folder, Kind, Results};
    use crate::runner::{self, Options, Summary};
    use crate::study::Study;
    use crate::testing::Scratch;

    /// Runs a study; the results are there as long as the last of the three.
    fn ran(name: &str, text: &str) -> (Summary, Results, Scratch) {
        let study = Study::parse("study.toml", text, Path::new(""), &Overrides::default())
            .unwrap_or_else(|error| panic!("{error}"));
        let scratch = Scratch::new(name);
        let out = scratch.path("out");
        let summary = runner::run(&study, &Options::new(&out), &|_| {}).unwrap();
        (summary, Folder::open(&out).unwrap(), scratch)
    }

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
            [[scenario.flow]]
            name = "voice"
            app = "udp"
            rate = "100kbps"
        "#;
        let (summary, results, _scratch) = ran("fluid", text);
        assert_eq!(summary.failed, []);
        let rows = results.table.run(0);
        let value = |kind: Kind, metric: &str| {
            let row = rows.iter().find(|row| row.kind == kind).expect("there is a row");
            results.table.value(row, metric)
        };
        let goodput = value(Kind::Flow, "goodput_mbps").expect("a rate is what a fluid knows");
        assert!((6.5..8.0).contains(&goodput), "{goodput}");
        assert_eq!(value(Kind::Flow, "timeouts"), None);
        assert_eq!(value(Kind::Flow, "notsent_mean_bytes"), None);
        // Losses and marks that the sender hears of are part of the equations.
        let lost = value(Kind::Flow, "lost_total").expect("known");
        let dropped = value(Kind::Flow, "dropped_packets").expect("known");
        assert!(lost > 0.0 && (lost - dropped).abs() <= 2.0, "{lost} of {dropped}");
        assert_eq!(value(Kind::Flow, "delivered_ce"), Some(0.0));
        let voice = rows.iter().find(|row| row.name == "voice").expect("there is a stream");
        for metric in ["jitter_ms", "jitter_mean_ms", "ipdv_mean_ms", "ipdv_p95_ms"] {
            assert_eq!(results.table.value(voice, metric), None, "{metric}");
        }
        assert!(results.table.value(voice, "owd_p95_ms").is_some());
        let series = results.series(0).unwrap();
        let fetch = series.iter().find(|series| series.name == "fetch").expect("it has steps");
        let is_known =
            |column: &str| fetch.column(column).is_some_and(|all| all.known().next().is_some());
        assert!(is_known("cwnd_pkts") && !is_known("rwnd_bytes"));
        let queues: Vec<&str> =
            rows.iter().filter(|row| row.kind == Kind::Queue).map(|row| &row.name[..]).collect();
        assert_eq!(queues, ["queue"], "acknowledgements load no queue, so theirs is not shown");
    }

    /// What a window allows, and what a send buffer does that holds less than the window when its application is woken.
    #[test]
    fn buffers_allow_about_as_much_as_they_allow_packets() {
        let text = r#"
            schema = 1
            title = "buffers"
            [scenario]
            duration = "6s"
            warmup = "2s"
            path = { rate = "100Mbps", rtt = "50ms", queue = "pfifo limit 1000" }
            flow = [{ name = "a", app = "bulk", most_receive_buffer = "256kB" }]
            [factors]
            engine = ["sim", "fluid"]
            "flow.a.adv_win_scale" = [1, 2, 8]
            "flow.a.send_buffer" = ["0", "4MiB"]
        "#;
        let cases = [
            (text.to_owned(), 0.02),
            (text.replace("[1, 2, 8]", "[2]").replace("\"4MiB\"", "\"300kB\", \"330kB\""), 0.05),
        ];
        for (text, bound) in cases {
            let (summary, results, _scratch) = ran("buffers", &text);
            assert_eq!(summary.failed, []);
            let half = results.plan.runs.len() / 2;
            let goodput = |run: usize| {
                let rows = results.table.run(run as u32);
                let row = rows.iter().find(|row| row.kind == Kind::Flow).expect("a flow");
                results.table.value(row, "goodput_mbps").expect("it was measured")
            };
            for run in 0..half {
                let [packets, fluid] = [goodput(run), goodput(half + run)];
                assert!((fluid / packets - 1.0).abs() < bound, "{run}: {fluid} for {packets}");
            }
        }
    }

    #[test]
    fn a_point_at_rest_is_a_metric_and_a_world_without_one_a_failed_run() {
        let text = r#"
            schema = 1
            title = "at rest"
            [scenario]
            engine = "fluid rest=on"
            duration = "2s"
            path = { rate = "20Mbps", rtt = "20ms", queue = "pie" }
            flow = [{ name = "a", app = "bulk", cca = "reno", count = 2 }]
            [factors]
            "flow.a.cca" = ["reno", "bbr3"]
            "path.rtt" = ["20ms", "200ms"]
        "#;
        let (summary, results, _scratch) = ran("rest", text);
        let reasons: Vec<String> = summary.failed.iter().map(|run| format!("{run:?}")).collect();
        assert_eq!(reasons.len(), 2, "{reasons:?}");
        assert!(reasons.iter().all(|reason| reason.contains("BBR version 3")), "{reasons:?}");
        let damping = |run: u32| {
            let rows = results.table.run(run);
            let row = rows.iter().find(|row| row.kind == Kind::Queue).expect("there is a queue");
            results.table.value(row, "rest_damping_per_s").expect("known")
        };
        assert!(damping(0) > 0.0 && damping(1) < 0.0, "{} {}", damping(0), damping(1));
    }
}
