//! `app = "kernel …"`: a flow whose two ends are guests.

use std::any::Any;
use std::time::Duration;

use sojourn_core::param::{Maybe, Octets, Style, Truth, size, time};
use sojourn_core::{Params, Rate, Span, SpecError};
use sojourn_host::{AppModel, Endpoint, FlowSetup};

use crate::ends;
use crate::install;
use crate::settings::{self, Settings, Traffic};

sojourn_core::params! {
    /// A flow between two Linux kernels.
    pub struct Kernel: "kernel", "TCP between two unmodified Linux kernels, whose clock is the simulator's; on Linux with a kernel from `sojourn kernel build`", check pings_alone {
        pub cc: String = "cubic", "congestion control, by its name in that kernel";
        pub kernel: Option<String> as Maybe<String> = "", "a kernel built for user mode: its path, or its name from `sojourn kernel build --name`; without it that of SOJOURN_KERNEL or of `sojourn kernel build`";
        pub bytes: Option<u64> as Maybe<Octets> = "", size(1, 1 << 50), "how much is sent; without it, it never ends";
        pub rate: Option<Rate> as Maybe<Rate> = "", "what the application writes a second, whole segments every 10 ms; without it as fast as it can";
        pub ping: Option<Span> as Maybe<Span> = "", time(Span::from_micros(100), Span::from_secs(1000)), "the kernels exchange echo requests and replies so often, and no TCP";
        pub sysctl: Option<String> as Maybe<String> = "", "settings of both kernels: `net.ipv4.tcp_ecn:1,net.ipv4.tcp_sack:0`; several numbers of one are joined with `+`";
        pub send_buffer: Option<u64> as Maybe<Octets> = "", size(1, 1 << 30), "what the application asks for with `SO_SNDBUF`";
        pub receive_buffer: Option<u64> as Maybe<Octets> = "", size(1, 1 << 30), "what the application asks for with `SO_RCVBUF`";
        pub offload: bool as Truth = "false", "the card cuts what the kernel sends into segments (TSO), which leave one behind the other at once";
        pub coalesce: Span = "0ms", time(Span::ZERO, Span::from_millis(10)), "an arrival waits so long for more before the kernel is interrupted, as with `ethtool -C rx-usecs`; the kernel then joins segments (GRO)";
        pub report: Span = "100ms", time(Span::from_millis(1), Span::from_secs(1000)), "how often the socket's `tcp_info` is read; the step of the time series";
        pub patience: Span = "20s", time(Span::from_millis(10), Span::from_secs(1000)), "real time after which a kernel that says nothing has hung";
    }
}

/// Echo requests are no TCP, and have none of its keys.
fn pings_alone(kernel: &Kernel) -> Result<(), SpecError> {
    if kernel.ping.is_none() {
        return Ok(());
    }
    let usual = Kernel::default();
    let others = [
        ("cc", kernel.cc != usual.cc),
        ("bytes", kernel.bytes.is_some()),
        ("rate", kernel.rate.is_some()),
        ("send_buffer", kernel.send_buffer.is_some()),
        ("receive_buffer", kernel.receive_buffer.is_some()),
    ];
    match others.into_iter().find(|(_, is_set)| *is_set) {
        None => Ok(()),
        Some((name, _)) => Err(SpecError::new(format!("{name} beside ping, which is no TCP"))
            .about(name)
            .allow(["ping alone, or TCP without ping"])),
    }
}

impl Kernel {
    pub(crate) fn settings(&self) -> Result<Settings, SpecError> {
        let traffic = match self.ping {
            Some(pause) => Traffic::Ping { pause },
            None => Traffic::Bulk { bytes: self.bytes, rate: self.rate },
        };
        if self.cc.is_empty()
            || self.cc.len() > 15
            || !self.cc.bytes().all(|b| b.is_ascii_graphic())
        {
            let problem = SpecError::new(format!("congestion control '{}'", self.cc));
            return Err(problem.allow(["a name of at most 15 letters"]).about("cc"));
        }
        let sysctls = settings::sysctls(self.sysctl.as_deref().unwrap_or_default())?;
        // Each connection has its own, whatever stands there.
        const CONTROL: &str = "net.ipv4.tcp_congestion_control";
        if sysctls.iter().any(|(path, _)| path.replace('/', ".") == CONTROL) {
            let problem = SpecError::new(format!(
                "sysctl {CONTROL} beside congestion control '{}', which the connection has",
                self.cc
            ));
            return Err(problem
                .allow(["cc of the application", "cca of the flow"])
                .about("sysctl"));
        }
        Ok(Settings {
            kernel: self.kernel.clone(),
            cc: self.cc.clone(),
            traffic,
            sysctls,
            send_buffer: self.send_buffer.map(|bytes| bytes as u32),
            receive_buffer: self.receive_buffer.map(|bytes| bytes as u32),
            offload: self.offload,
            coalesce: self.coalesce,
            step: self.report,
            patience: Duration::from_nanos(self.patience.as_nanos()),
        })
    }
}

impl AppModel for Kernel {
    fn check(&self) -> Result<(), SpecError> {
        Params::check(self)?;
        self.settings()?;
        install::check(self.kernel.as_deref())
    }

    fn build(&self, flow: &FlowSetup<'_>) -> [Box<dyn Endpoint>; 2] {
        let settings = self.settings().expect("it was checked");
        ends::pair(&settings, flow).map(|end| Box::new(end) as Box<dyn Endpoint>)
    }

    fn canonical(&self) -> String {
        let digest = settings::kernel_digest(self.kernel.as_deref());
        format!("{} digest={digest} version={}", self.written(Style::Canonical), crate::VERSION)
    }

    fn is_tcp(&self) -> bool {
        self.ping.is_none()
    }

    fn transfer(&self) -> Option<u64> {
        self.bytes.filter(|_| self.is_tcp())
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}
