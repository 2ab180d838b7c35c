//! Parameters of [`super::CubicLinux`], by the names of the kernel module's.

use alloc::vec;
use alloc::vec::Vec;

use sojourn_core::param::{Switch, whole};

use super::CubicLinux;
use crate::{Algorithm, Setup};

sojourn_core::params! {
    /// As under `/sys/module/tcp_cubic/parameters`.
    pub struct Config: "cubic-linux", "CUBIC with the kernel's integer arithmetic and its own HyStart" {
        pub(super) beta: u32 = "717", whole(1, 1_023), "share of the window that is kept on congestion, in 1/1024";
        pub(super) bic_scale: u32 = "41", whole(1, 65_535), "steepness of the cubic function, C = 10/1024 of it";
        pub(super) fast_convergence: bool as Switch = "on", "release capacity when the window shrinks twice";
        pub(super) tcp_friendliness: bool as Switch = "on", "be no slower than Reno";
        pub(super) hystart: bool as Switch = "on", "leave slow start before loss";
        pub(super) hystart_detect: Detect = "3", "what ends slow start: 1 the length of a train of acknowledgements, 2 a rise of the delay, 3 either";
        pub(super) hystart_low_window: u32 = "16", whole(0, 1_000_000), "smallest window, in segments, at which HyStart looks";
        pub(super) hystart_ack_delta_us: u32 = "2000", whole(0, 10_000_000), "widest gap within a train of acknowledgements, in microseconds";
    }
}

/// The signs that end slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Detect {
    AckTrain,
    Delay,
    Both,
}

sojourn_core::choice! { Detect { "1" = Detect::AckTrain, "2" = Detect::Delay, "3" = Detect::Both } }

impl Algorithm for Config {
    type Controller = CubicLinux;

    fn build(&self, setup: Setup) -> CubicLinux {
        CubicLinux::new(self.clone(), setup)
    }

    fn phases(&self) -> Vec<&'static str> {
        vec!["slow_start", "avoidance", "reno_friendly", "concave", "convex"]
    }
}
