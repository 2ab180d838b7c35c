//! A number that is compared, and how far kernel and simulation may be apart.

/// What a compared number says; the bounds are those of `tests/fidelity/README.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    TotalGoodput,
    Goodput,
    Srtt,
    Delay,
    Retransmissions,
}

impl Kind {
    pub const ALL: [Self; 5] =
        [Self::TotalGoodput, Self::Goodput, Self::Srtt, Self::Delay, Self::Retransmissions];

    pub const fn name(self) -> &'static str {
        match self {
            Self::TotalGoodput => "goodput_sum_mbps",
            Self::Goodput => "goodput_mbps",
            Self::Srtt => "srtt_p50_ms",
            Self::Delay => "owd_p50_ms",
            Self::Retransmissions => "retransmits",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// How far from what a kernel does another number may be, at a rate in Mbit/s.
    pub fn bound(self, kernel: f64, rate: f64) -> f64 {
        match self {
            Self::TotalGoodput => 0.015 * kernel,
            Self::Goodput => (0.1 * kernel).max(0.02 * rate),
            Self::Srtt | Self::Delay => (0.07 * kernel).max(1.0),
            Self::Retransmissions if kernel < 250.0 => f64::INFINITY,
            Self::Retransmissions => 0.2 * kernel,
        }
    }

    /// Whether another number is inside; a few retransmissions may be twice as many or half, and one more or less is chance.
    pub fn is_inside(self, kernel: f64, other: f64, rate: f64) -> bool {
        let (low, high) = (kernel.min(other), kernel.max(other));
        match self {
            Self::Retransmissions if kernel < 250.0 => high <= 2.0 * low || high - low <= 1.0,
            _ => (kernel - other).abs() <= self.bound(kernel, rate),
        }
    }

    /// How many bounds it is away.
    pub fn distance(self, kernel: f64, other: f64, rate: f64) -> f64 {
        match self {
            Self::Retransmissions if kernel < 250.0 => {
                let (low, high) = (kernel.min(other), kernel.max(other));
                (high.max(1.0) / low.max(1.0)).log2()
            }
            _ if kernel == other => 0.0,
            _ => (kernel - other).abs() / self.bound(kernel, rate),
        }
    }
}

/// The runs of one side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Side {
    pub mean: f64,
    pub least: f64,
    pub most: f64,
}

impl Side {
    pub(crate) fn of(values: &[f64]) -> Self {
        Self {
            mean: values.iter().sum::<f64>() / values.len().max(1) as f64,
            least: values.iter().copied().fold(f64::INFINITY, f64::min),
            most: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        }
    }
}

/// One number of a world.
#[derive(Clone, Debug, PartialEq)]
pub struct Number {
    pub kind: Kind,
    /// Of all flows with this congestion control; empty of all together.
    pub of: String,
    /// At the rate of this world, in Mbit/s.
    pub rate: f64,
    pub kernel: Side,
    pub simulated: Side,
    /// The mean of as many other simulated runs as there were between kernels.
    pub again: f64,
}

impl Number {
    pub fn is_inside(&self) -> bool {
        self.kind.is_inside(self.kernel.mean, self.simulated.mean, self.rate)
    }

    /// How many bounds the simulated number is away from the kernel's.
    pub fn distance(&self) -> f64 {
        self.kind.distance(self.kernel.mean, self.simulated.mean, self.rate)
    }

    /// Whether so few runs of the simulator agree with many of its own.
    pub fn is_steady(&self) -> bool {
        self.kind.is_inside(self.again, self.simulated.mean, self.rate)
    }

    /// Whether runs between kernels and simulated ones have values in common: then it may be chance.
    pub fn overlaps(&self) -> bool {
        self.kernel.least <= self.simulated.most && self.simulated.least <= self.kernel.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_those_of_the_fidelity_tests() {
        let inside = |kind: Kind, other| kind.is_inside(10.0, other, 10.0);
        assert!(inside(Kind::TotalGoodput, 10.14) && !inside(Kind::TotalGoodput, 10.16));
        assert!(inside(Kind::Goodput, 11.0) && !inside(Kind::Goodput, 11.1));
        assert!(
            Kind::Goodput.is_inside(0.5, 0.7, 10.0) && !Kind::Goodput.is_inside(0.5, 0.71, 10.0)
        );
        assert!(inside(Kind::Srtt, 11.0) && !inside(Kind::Srtt, 11.1));
        assert!(
            Kind::Delay.is_inside(100.0, 107.0, 10.0) && !Kind::Delay.is_inside(100.0, 107.1, 10.0)
        );
        assert!(inside(Kind::Retransmissions, 20.0) && !inside(Kind::Retransmissions, 21.0));
        assert!(Kind::Retransmissions.is_inside(300.0, 360.0, 1.0));
        assert!(!Kind::Retransmissions.is_inside(300.0, 361.0, 1.0));
        assert!(
            Kind::Retransmissions.is_inside(0.0, 1.0, 1.0)
                && !Kind::Retransmissions.is_inside(0.0, 2.0, 1.0)
        );
    }
}
