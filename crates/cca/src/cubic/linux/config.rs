//! Parameters of [`super::CubicLinux`], by the names of the kernel module's.

use core::fmt;

use sojourn_core::words::unknown_param;
use sojourn_core::{Param, ParamKind, Span, SpecError, Words};

use crate::cubic::config::{on_off, switch};

/// As under `/sys/module/tcp_cubic/parameters`.
pub const LINUX_PARAMS: &[Param] = &[
    Param {
        name: "beta",
        kind: ParamKind::Count,
        default: "717",
        doc: "share of the window that is kept on congestion, in 1/1024",
    },
    Param {
        name: "bic_scale",
        kind: ParamKind::Count,
        default: "41",
        doc: "steepness of the cubic function, C = 10/1024 of it",
    },
    Param {
        name: "fast_convergence",
        kind: ParamKind::Choice,
        default: "on",
        doc: "on or off: release capacity when the window shrinks twice",
    },
    Param {
        name: "tcp_friendliness",
        kind: ParamKind::Choice,
        default: "on",
        doc: "on or off: be no slower than Reno",
    },
    Param {
        name: "hystart",
        kind: ParamKind::Choice,
        default: "on",
        doc: "on or off: leave slow start before loss",
    },
    Param {
        name: "hystart_detect",
        kind: ParamKind::Choice,
        default: "3",
        doc: "what ends slow start: 1 the length of a train of acknowledgements, 2 a rise of the \
              delay, 3 either",
    },
    Param {
        name: "hystart_low_window",
        kind: ParamKind::Count,
        default: "16",
        doc: "smallest window, in segments, at which HyStart looks",
    },
    Param {
        name: "hystart_ack_delta_us",
        kind: ParamKind::Count,
        default: "2000",
        doc: "widest gap within a train of acknowledgements, in microseconds",
    },
];

/// Checked parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct LinuxConfig {
    /// In 1/1024; from 1 to 1023.
    pub(super) beta: u32,
    pub(super) bic_scale: u32,
    pub(super) fast_convergence: bool,
    pub(super) tcp_friendliness: bool,
    pub(super) hystart: bool,
    pub(super) hystart_detect: Detect,
    /// Segments.
    pub(super) hystart_low_window: u32,
    pub(super) hystart_ack_delta: Span,
}

/// What HyStart looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Detect {
    AckTrain,
    Delay,
    Both,
}

impl Default for LinuxConfig {
    fn default() -> Self {
        Self {
            beta: 717,
            bic_scale: 41,
            fast_convergence: true,
            tcp_friendliness: true,
            hystart: true,
            hystart_detect: Detect::Both,
            hystart_low_window: 16,
            hystart_ack_delta: Span::from_millis(2),
        }
    }
}

impl LinuxConfig {
    /// Reads parameters up to the end of `words`.
    ///
    /// # Errors
    /// An unknown parameter or a value out of range; names what is allowed.
    pub fn parse(words: &mut Words<'_>) -> Result<Self, SpecError> {
        let mut config = Self::default();
        while let Some(name) = words.next() {
            match name {
                "beta" => config.beta = words.count(name, 1, 1_023)? as u32,
                "bic_scale" => config.bic_scale = words.count(name, 1, 65_535)? as u32,
                "fast_convergence" => config.fast_convergence = switch(words, name)?,
                "tcp_friendliness" => config.tcp_friendliness = switch(words, name)?,
                "hystart" => config.hystart = switch(words, name)?,
                "hystart_detect" => {
                    config.hystart_detect = words.choice(
                        name,
                        &[("1", Detect::AckTrain), ("2", Detect::Delay), ("3", Detect::Both)],
                    )?;
                }
                "hystart_low_window" => {
                    config.hystart_low_window = words.count(name, 0, 1_000_000)? as u32;
                }
                "hystart_ack_delta_us" => {
                    config.hystart_ack_delta = Span::from_micros(words.count(name, 0, 10_000_000)?);
                }
                _ => return Err(unknown_param("cubic-linux", name, LINUX_PARAMS)),
            }
        }
        Ok(config)
    }
}

impl fmt::Display for LinuxConfig {
    /// The name, then what [`LinuxConfig::parse`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "cubic-linux beta={} bic_scale={} fast_convergence={} tcp_friendliness={} hystart={} \
             hystart_detect={} hystart_low_window={} hystart_ack_delta_us={}",
            self.beta,
            self.bic_scale,
            on_off(self.fast_convergence),
            on_off(self.tcp_friendliness),
            on_off(self.hystart),
            match self.hystart_detect {
                Detect::AckTrain => 1,
                Detect::Delay => 2,
                Detect::Both => 3,
            },
            self.hystart_low_window,
            self.hystart_ack_delta.as_micros(),
        )
    }
}
