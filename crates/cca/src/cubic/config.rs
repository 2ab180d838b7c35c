//! Parameters of [`super::Cubic`].

use alloc::format;
use core::fmt;

use sojourn_core::words::unknown_param;
use sojourn_core::{Param, ParamKind, SpecError, Words};

use super::hystart_plus_plus::HyStartConfig;

/// RFC 9438 section 4 and RFC 9406 section 4.3, with the recommended values as defaults.
pub const PARAMS: &[Param] = &[
    Param {
        name: "beta",
        kind: ParamKind::Number,
        default: "0.7",
        doc: "share of the window that is kept on congestion (RFC 9438 section 4.6)",
    },
    Param {
        name: "C",
        kind: ParamKind::Number,
        default: "0.4",
        doc: "steepness of the cubic function, segments per second cubed (RFC 9438 section 5)",
    },
    Param {
        name: "fast_convergence",
        kind: ParamKind::Choice,
        default: "on",
        doc: "on or off: release capacity when the window shrinks twice (RFC 9438 section 4.7)",
    },
    Param {
        name: "tcp_friendliness",
        kind: ParamKind::Choice,
        default: "on",
        doc: "on or off: be no slower than Reno (RFC 9438 section 4.3)",
    },
    Param {
        name: "ssthresh_from",
        kind: ParamKind::Choice,
        default: "flight",
        doc: "flight or cwnd: what is multiplied by beta (RFC 9438 section 4.6)",
    },
    Param {
        name: "hystart",
        kind: ParamKind::Choice,
        default: "on",
        doc: "on or off: HyStart++ in the initial slow start (RFC 9406)",
    },
    Param {
        name: "min_rtt_thresh",
        kind: ParamKind::Span,
        default: "4ms",
        doc: "least rise of the round-trip time that counts (RFC 9406 section 4.3)",
    },
    Param {
        name: "max_rtt_thresh",
        kind: ParamKind::Span,
        default: "16ms",
        doc: "a rise of the round-trip time that always counts (RFC 9406 section 4.3)",
    },
    Param {
        name: "min_rtt_divisor",
        kind: ParamKind::Count,
        default: "8",
        doc: "share of the round-trip time that its rise must reach (RFC 9406 section 4.3)",
    },
    Param {
        name: "n_rtt_sample",
        kind: ParamKind::Count,
        default: "8",
        doc: "samples before a round is judged (RFC 9406 section 4.3)",
    },
    Param {
        name: "css_growth_divisor",
        kind: ParamKind::Count,
        default: "4",
        doc: "how much slower conservative slow start grows (RFC 9406 section 4.3)",
    },
    Param {
        name: "css_rounds",
        kind: ParamKind::Count,
        default: "5",
        doc: "rounds of conservative slow start (RFC 9406 section 4.3)",
    },
    Param {
        name: "L",
        kind: ParamKind::Count,
        default: "8",
        doc: "most segments one acknowledgement adds in slow start; inf where packets are paced \
              (RFC 9406 section 4.3)",
    },
];

/// Checked parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    pub(super) beta: f64,
    /// Segments per second cubed.
    pub(super) c: f64,
    pub(super) fast_convergence: bool,
    pub(super) tcp_friendliness: bool,
    pub(super) ssthresh_from: SsthreshFrom,
    /// `None` is plain slow start.
    pub(super) hystart: Option<HyStartConfig>,
}

/// What beta is applied to on congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SsthreshFrom {
    /// Segments in flight, as the RFC wants it.
    Flight,
    /// The window, as the RFC allows where growth depends on its use.
    Cwnd,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            beta: 0.7,
            c: 0.4,
            fast_convergence: true,
            tcp_friendliness: true,
            ssthresh_from: SsthreshFrom::Flight,
            hystart: Some(HyStartConfig::default()),
        }
    }
}

impl Config {
    /// Reads parameters up to the end of `words`.
    ///
    /// # Errors
    /// An unknown parameter or a value out of range; names what is allowed.
    pub fn parse(words: &mut Words<'_>) -> Result<Self, SpecError> {
        let mut config = Self::default();
        let mut hystart = HyStartConfig::default();
        let mut has_hystart = true;
        while let Some(name) = words.next() {
            match name {
                "beta" => config.beta = words.number(name, 0.05, 0.99)?,
                "C" => config.c = words.number(name, 1e-3, 1e3)?,
                "fast_convergence" => config.fast_convergence = switch(words, name)?,
                "tcp_friendliness" => config.tcp_friendliness = switch(words, name)?,
                "ssthresh_from" => {
                    config.ssthresh_from = words.choice(
                        name,
                        &[("flight", SsthreshFrom::Flight), ("cwnd", SsthreshFrom::Cwnd)],
                    )?;
                }
                "hystart" => has_hystart = switch(words, name)?,
                "min_rtt_thresh" => hystart.min_rtt_thresh = words.parse(name, str::parse)?,
                "max_rtt_thresh" => hystart.max_rtt_thresh = words.parse(name, str::parse)?,
                "min_rtt_divisor" => hystart.min_rtt_divisor = words.count(name, 1, 1_000)? as u32,
                "n_rtt_sample" => hystart.n_rtt_sample = words.count(name, 1, 1_000)? as u32,
                "css_growth_divisor" => {
                    hystart.css_growth_divisor = words.count(name, 1, 1_000)? as u32;
                }
                "css_rounds" => hystart.css_rounds = words.count(name, 1, 1_000)? as u32,
                "L" => hystart.l = words.parse(name, burst_limit)?,
                _ => return Err(unknown_param("cubic", name, PARAMS)),
            }
        }
        if hystart.min_rtt_thresh > hystart.max_rtt_thresh {
            let (least, most) = (hystart.min_rtt_thresh, hystart.max_rtt_thresh);
            return Err(SpecError::new(format!("min_rtt_thresh {least} is above {most}"))
                .allow(["at most max_rtt_thresh"]));
        }
        config.hystart = has_hystart.then_some(hystart);
        Ok(config)
    }

    /// Additive increase with which an AIMD flow of this beta shares alike with Reno (section 4.3).
    pub(super) fn alpha(&self) -> f64 {
        3.0 * (1.0 - self.beta) / (1.0 + self.beta)
    }
}

impl fmt::Display for Config {
    /// The name, then what [`Config::parse`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "cubic beta={} C={} fast_convergence={} tcp_friendliness={} ssthresh_from={}",
            self.beta,
            self.c,
            on_off(self.fast_convergence),
            on_off(self.tcp_friendliness),
            match self.ssthresh_from {
                SsthreshFrom::Flight => "flight",
                SsthreshFrom::Cwnd => "cwnd",
            },
        )?;
        let Some(hystart) = &self.hystart else {
            return f.write_str(" hystart=off");
        };
        write!(
            f,
            " hystart=on min_rtt_thresh={} max_rtt_thresh={} min_rtt_divisor={} n_rtt_sample={} \
             css_growth_divisor={} css_rounds={} L=",
            hystart.min_rtt_thresh,
            hystart.max_rtt_thresh,
            hystart.min_rtt_divisor,
            hystart.n_rtt_sample,
            hystart.css_growth_divisor,
            hystart.css_rounds,
        )?;
        match hystart.l {
            Some(l) => write!(f, "{l}"),
            None => f.write_str("inf"),
        }
    }
}

/// `on` or `off` after `name`, or `1` or `0` as module parameters are written.
pub(super) fn switch(words: &mut Words<'_>, name: &str) -> Result<bool, SpecError> {
    words.choice(name, &[("on", true), ("off", false), ("1", true), ("0", false)])
}

pub(super) fn on_off(switch: bool) -> &'static str {
    if switch { "on" } else { "off" }
}

fn burst_limit(text: &str) -> Result<Option<u32>, SpecError> {
    match text.parse() {
        _ if text == "inf" => Ok(None),
        Ok(l) if (1..=1_000_000).contains(&l) => Ok(Some(l)),
        _ => Err(SpecError::new(format!("'{text}' is out of range"))
            .allow(["a whole number from 1 to 1000000", "inf"])),
    }
}
