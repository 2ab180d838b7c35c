//! How version 2 of the kernel's BBR behaves differently, beyond the values of its parameters.

/// The behaviour of one version, as far as no parameter of both versions sets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rules {
    pub(crate) version: Version,
    /// DOWN lasts until at most a BDP is in flight; without this, at most a round-trip time.
    pub(crate) drain_to_target: bool,
    /// Marks cut `bw_lo` as well as `inflight_lo`.
    pub(crate) ecn_bw_lo: bool,
    /// A probe that met too many marks and nothing else cuts the bandwidth as well as
    /// `inflight_hi`.
    pub(crate) ecn_bw_hi: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    Two,
    Three,
}

impl Rules {
    pub(super) const V3: Self =
        Self { version: Version::Three, drain_to_target: true, ecn_bw_lo: false, ecn_bw_hi: false };

    pub(super) fn is_v2(self) -> bool {
        self.version == Version::Two
    }
}
