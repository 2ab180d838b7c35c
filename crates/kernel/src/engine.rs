//! `engine = "kernel"`: the TCP flows of a scenario between Linux kernels, everything else as it is simulated.

use std::sync::Arc;

use sojourn_core::param::{Maybe, Style, Truth, time};
use sojourn_core::{Params, Span, SpecError, StreamAddress};
use sojourn_host::apps::BulkConfig;
use sojourn_host::tcp::{self, EcnOffer};
use sojourn_metrics::{Collector, RunMetrics};
use sojourn_scenario::{App, Checked, ExternalApp, Scenario, Traffic, Until};
use sojourn_study::engine::{Engine, Measured, end_states, forget_other_engines, told};
use sojourn_study::runner::shape;

use crate::app::Kernel;
use crate::{install, settings};

sojourn_core::params! {
    /// Which kernels.
    pub struct Kernels: "kernel", "Linux kernels at both ends of every TCP flow, in virtual time; queues, links and other flows as in sim" {
        pub kernel: Option<String> as Maybe<String> = "", "a kernel built for user mode: its path, or its name from `sojourn kernel build --name`; without it that of SOJOURN_KERNEL or of `sojourn kernel build`";
        pub names: Option<String> as Maybe<String> = "", "what congestion controls are called in that kernel, where it is not their name: `bbr3-linux:bbr,bbr2:bbr`";
        pub offload: bool as Truth = "false", "the kernels' cards cut what they send into segments (TSO)";
        pub coalesce: Span = "0ms", time(Span::ZERO, Span::from_millis(10)), "an arrival waits so long for more before its kernel is interrupted, as with `ethtool -C rx-usecs`; the kernel then joins segments (GRO)";
        pub sysctl: Option<String> as Maybe<String> = "", "settings of all kernels: `net.ipv4.tcp_sack:0,net.ipv4.tcp_reordering:5`";
    }
}

impl Engine for Kernels {
    const VERSION: u32 = 1000 * sojourn_sim::MODEL_VERSION + crate::VERSION;

    fn check_scenario(&self, scenario: &Checked) -> Result<(), SpecError> {
        self.replace(scenario).map(drop)
    }

    fn prepare(&self, _: &Checked) -> Result<(), String> {
        let found = install::kernel(self.kernel.as_deref());
        found.map(drop).map_err(|missing| missing.to_string())
    }

    fn simulated(&self, scenario: &Checked) -> Option<Checked> {
        self.replace(scenario).and_then(Scenario::checked).ok()
    }

    fn forget(&self, run: &mut RunMetrics) {
        forget_other_engines(run);
    }

    fn run(&self, scenario: &Checked, address: StreamAddress) -> Result<Measured, String> {
        let world = self.replace(scenario).and_then(Scenario::checked);
        let world = world.map_err(|problem| problem.to_string())?;
        let mut collector = Collector::new(shape(scenario));
        let outcome = sojourn_sim::run_any(&world, address, &mut collector)
            .map_err(|violation| told(&world, &violation))?;
        let metrics = collector.finish(outcome.end);
        let links = outcome.links.iter().zip(outcome.queue_details.iter().map(Vec::as_slice));
        let end_states = end_states(&world, &metrics, &outcome.flows, links);
        Ok(Measured { metrics, end_states, is_stopped: false, troubles: Vec::new() })
    }

    fn depends_on(&self) -> Option<String> {
        Some(format!("digest={}", settings::kernel_digest(self.kernel.as_deref())))
    }
}

impl Kernels {
    /// The same world with kernels at the ends of TCP flows.
    fn replace(&self, scenario: &Checked) -> Result<Scenario, SpecError> {
        if scenario.until != Until::Duration {
            let problem =
                SpecError::new(format!("until = '{}' between kernels", scenario.until.name()));
            return Err(problem.allow([Until::Duration.name()]));
        }
        if scenario.changes.iter().any(|change| change.starts().is_some()) {
            return Err(SpecError::new(
                "a flow between kernels that a phase of another one starts",
            ));
        }
        let mut world = scenario.clone().into_inner();
        for index in 0..world.flows.len() {
            if scenario.is_watched(sojourn_core::FlowId(index as u32)) {
                return Err(SpecError::new("a change waits for a phase, which kernels don't tell"));
            }
            let flow = &mut world.flows[index];
            let App::Tcp { traffic, cca, transport } = &flow.app else { continue };
            if flow.reads.is_some() {
                return Err(SpecError::new(format!(
                    "flow '{}' is read at a rate, which is simulated only",
                    flow.name
                )));
            }
            let named = |problem: SpecError| problem.within(&format!("flow '{}'", flow.name));
            let app = self.app(traffic, cca, transport, scenario).map_err(named)?;
            Params::check(&app).map_err(named)?;
            app.settings().map_err(named)?;
            flow.app = App::External(ExternalApp(Arc::new(app)));
        }
        Ok(world)
    }

    fn app(
        &self,
        traffic: &Traffic,
        cca: &sojourn_cca::Config,
        transport: &tcp::Config,
        scenario: &Scenario,
    ) -> Result<Kernel, SpecError> {
        let Traffic::Bulk(BulkConfig { rate, bytes }) = *traffic else {
            return Err(SpecError::new("an application other than bulk between kernels").allow([
                "bulk",
                "bulk with a rate",
                "bulk with bytes",
            ]));
        };
        let name = cca.name();
        if sojourn_cca::Config::parse(name).as_ref() != Ok(cca) {
            let problem = format!(
                "'{cca}' between kernels, whose controls have the parameters of their modules"
            );
            return Err(SpecError::new(problem).allow([name]));
        }
        Ok(Kernel {
            cc: self.name_of(name)?,
            kernel: self.kernel.clone(),
            bytes,
            rate,
            sysctl: Some(self.sysctls(transport)?),
            receive_buffer: transport.receive_buffer,
            offload: self.offload,
            coalesce: self.coalesce,
            report: scenario.step,
            ..Kernel::default()
        })
    }

    pub(crate) fn name_of(&self, name: &str) -> Result<String, SpecError> {
        for pair in self.names.iter().flat_map(|names| names.split(',')) {
            let Some((known, there)) = pair.split_once(':') else {
                let problem = SpecError::new(format!("names '{pair}'"));
                return Err(problem.allow(["bbr3-linux:bbr"]));
            };
            if known == name {
                return Ok(there.to_owned());
            }
        }
        // A study's `cubic-linux` is a model of the kernel's `cubic`.
        Ok(name.strip_suffix("-linux").unwrap_or(name).to_owned())
    }

    /// What stands in a flow's keys as settings of the kernel. What the kernel has no setting for must be as usual.
    fn sysctls(&self, transport: &tcp::Config) -> Result<String, SpecError> {
        let usual = tcp::Config::default();
        let rest = tcp::Config {
            ecn: None,
            receiver_ecn: usual.receiver_ecn,
            initial_receive_buffer: usual.initial_receive_buffer,
            most_receive_buffer: usual.most_receive_buffer,
            receive_buffer: None,
            adv_win_scale: None,
            packet_buffers: usual.packet_buffers,
            send_buffer: usual.send_buffer,
            most_send_buffer: usual.most_send_buffer,
            slow_start_after_idle: usual.slow_start_after_idle,
            // A kernel of user mode has 10 ms, and 192 bytes.
            tick: usual.tick,
            tick_phase: usual.tick_phase,
            header_room: usual.header_room,
            buffer_overhead: usual.buffer_overhead,
            buffer_bound: usual.buffer_bound,
            // Without offloading they mean nothing.
            tso_rtt_log: usual.tso_rtt_log,
            gso_max_size: usual.gso_max_size,
            deferral: usual.deferral,
            ..transport.clone()
        };
        if rest != usual {
            let differs = rest.values(Style::Canonical);
            return Err(SpecError::new(format!("{differs} of a flow between kernels")).allow([
                "ecn",
                "receiver_ecn",
                "initial_receive_buffer",
                "most_receive_buffer",
                "receive_buffer",
                "adv_win_scale",
                "packet_buffers",
                "send_buffer",
                "most_send_buffer",
                "slow_start_after_idle",
                "tick",
                "tick_phase",
                "header_room",
                "buffer_overhead",
                "buffer_bound",
                "tso_rtt_log",
                "gso_max_size",
                "deferral",
            ]));
        }
        let ecn = match transport.ecn {
            None => 2,
            Some(EcnOffer::Off) => 0,
            Some(EcnOffer::Classic) => 1,
            Some(EcnOffer::Accurate) => 3,
        };
        let mut all = vec![
            format!("net.ipv4.tcp_ecn:{ecn}"),
            format!(
                "net.ipv4.tcp_rmem:4096+{}+{}",
                transport.initial_receive_buffer, transport.most_receive_buffer
            ),
            format!(
                "net.ipv4.tcp_slow_start_after_idle:{}",
                u8::from(transport.slow_start_after_idle)
            ),
        ];
        if let Some(most) = transport.send_buffer.most(transport.most_send_buffer) {
            all.push(format!("net.ipv4.tcp_wmem:4096+16384+{}", most.max(16_384)));
        }
        all.extend(transport.adv_win_scale.map(|n| format!("net.ipv4.tcp_adv_win_scale:{n}")));
        all.extend(self.sysctl.clone().filter(|text| !text.is_empty()));
        Ok(all.join(","))
    }
}
