//! Parameters of [`super::Cubic`].

use alloc::vec;
use alloc::vec::Vec;

use alloc::format;
use core::fmt;

use sojourn_core::param::{Bounds, Form, Switch, number, whole};
use sojourn_core::{Param, ParamKind, Span, SpecError};

use super::Cubic;
use super::hystart_plus_plus::HyStartConfig;
use crate::{Algorithm, Setup};

sojourn_core::params! {
    /// RFC 9438 section 4 and RFC 9406 section 4.3, with the recommended values as defaults.
    pub struct Config: "cubic", "CUBIC (RFC 9438) with HyStart++ (RFC 9406)", check check_thresholds {
        pub(super) beta: f64 = "0.7", number(0.05, 0.99), "share of the window that is kept on congestion (RFC 9438 section 4.6)";
        pub(super) c: f64 = Param::of::<f64>("C", "0.4", "steepness of the cubic function, segments per second cubed (RFC 9438 section 5)").within(number(1e-3, 1e3));
        pub(super) fast_convergence: bool as Switch = "on", "release capacity when the window shrinks twice (RFC 9438 section 4.7)";
        pub(super) tcp_friendliness: bool as Switch = "on", "be no slower than Reno (RFC 9438 section 4.3)";
        pub(super) ssthresh_from: SsthreshFrom = "flight", "flight or cwnd: what is multiplied by beta (RFC 9438 section 4.6)";
        pub(super) hystart: bool as Switch = "on", "HyStart++ in the initial slow start (RFC 9406)";
        pub(super) min_rtt_thresh: Span = "4ms", "least rise of the round-trip time that counts (RFC 9406 section 4.3)";
        pub(super) max_rtt_thresh: Span = "16ms", "a rise of the round-trip time that always counts (RFC 9406 section 4.3)";
        pub(super) min_rtt_divisor: u32 = "8", whole(1, 1_000), "share of the round-trip time that its rise must reach (RFC 9406 section 4.3)";
        pub(super) n_rtt_sample: u32 = "8", whole(1, 1_000), "samples before a round is judged (RFC 9406 section 4.3)";
        pub(super) css_growth_divisor: u32 = "4", whole(1, 1_000), "how much slower conservative slow start grows (RFC 9406 section 4.3)";
        pub(super) css_rounds: u32 = "5", whole(1, 1_000), "rounds of conservative slow start (RFC 9406 section 4.3)";
        pub(super) l: Option<u32> as BurstLimit = Param::of::<BurstLimit>("L", "8", "most segments one acknowledgement adds in slow start; inf where packets are paced (RFC 9406 section 4.3)");
    }
}

/// What is multiplied by beta on congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SsthreshFrom {
    /// Segments in flight, as the RFC wants it.
    Flight,
    /// The window, which the RFC allows if growth depends on the window's use.
    Cwnd,
}

sojourn_core::choice! { SsthreshFrom { "flight" = SsthreshFrom::Flight, "cwnd" = SsthreshFrom::Cwnd } }

fn check_thresholds(config: &Config) -> Result<(), SpecError> {
    let (least, most) = (config.min_rtt_thresh, config.max_rtt_thresh);
    if least > most {
        return Err(SpecError::new(format!("min_rtt_thresh {least} is above {most}"))
            .allow(["at most max_rtt_thresh"]));
    }
    Ok(())
}

impl Config {
    /// The additive increase with which an AIMD flow of this beta gets the same share as Reno
    /// (section 4.3).
    pub(super) fn alpha(&self) -> f64 {
        3.0 * (1.0 - self.beta) / (1.0 + self.beta)
    }

    /// `None` means plain slow start.
    pub(super) fn hystart(&self) -> Option<HyStartConfig> {
        self.hystart.then_some(HyStartConfig {
            min_rtt_thresh: self.min_rtt_thresh,
            max_rtt_thresh: self.max_rtt_thresh,
            min_rtt_divisor: self.min_rtt_divisor,
            n_rtt_sample: self.n_rtt_sample,
            css_growth_divisor: self.css_growth_divisor,
            css_rounds: self.css_rounds,
            l: self.l,
        })
    }
}

impl Algorithm for Config {
    type Controller = Cubic;

    fn build(&self, setup: Setup) -> Cubic {
        Cubic::new(self.clone(), setup)
    }

    fn phases(&self) -> Vec<&'static str> {
        let mut phases = vec!["slow_start", "avoidance", "reno_friendly", "concave", "convex"];
        if self.hystart {
            phases.insert(1, "css");
        }
        phases
    }
}

/// A number of segments, or `inf` for no limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct BurstLimit;

impl Form for BurstLimit {
    type Value = Option<u32>;
    const KIND: ParamKind = ParamKind::Count;
    const BOUNDS: Bounds = Bounds::Said("a whole number from 1 to 1000000, or inf");

    fn read(text: &str, param: &Param) -> Result<Option<u32>, SpecError> {
        match text.parse() {
            _ if text == "inf" => Ok(None),
            Ok(l) if (1..=1_000_000).contains(&l) => Ok(Some(l)),
            _ => Err(SpecError::new(format!("'{}' is '{text}'", param.name))
                .allow(["a whole number from 1 to 1000000", "inf"])),
        }
    }

    fn show(value: &Option<u32>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match value {
            Some(l) => fmt::Display::fmt(l, f),
            None => f.write_str("inf"),
        }
    }
}
