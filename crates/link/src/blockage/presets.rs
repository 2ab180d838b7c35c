//! The fitted parameters.
//!
//! Four traces of about two minutes each, published with a study of TCP over 60 GHz links (2020),
//! were reduced to statistics: shares of time at each scheme, quantiles of the values between
//! schemes, lengths of constant stretches, onsets and lengths of blockages.

use sojourn_core::Span;

use super::Preset;

/// How capacity behaves under a preset. Lengths are in steps.
pub(super) struct Shape {
    pub(super) step: Span,
    /// How long the capacity stays the same in clear sight.
    pub(super) dwell: (u32, u32),
    /// The capacities of clear sight.
    pub(super) views: &'static [View],
    pub(super) blocked: Option<Blocked>,
}

/// A capacity and how often it is drawn.
pub(super) struct View {
    pub(super) weight: u32,
    pub(super) level_mbps: f64,
    /// `None` if the capacity is exactly the level.
    pub(super) quality: Option<Quality>,
}

/// How far the signal's quality keeps the capacity below its level: a share of the level between
/// `best` and `worst`, more often near `best` the greater `skew` is.
pub(super) struct Quality {
    pub(super) best: f64,
    pub(super) worst: f64,
    pub(super) skew: f64,
}

pub(super) struct Blocked {
    /// When the first one begins, in seconds.
    pub(super) lead: (f64, f64),
    /// From onset to onset, in seconds, plus or minus `spread`.
    pub(super) period: f64,
    pub(super) spread: f64,
    /// The chance that sight is only grazed: a single step a little below 2310 Mbit/s.
    pub(super) graze_chance: f64,
    /// Ramps included.
    pub(super) length: (u32, u32),
    pub(super) ramp_down: (u32, u32),
    pub(super) ramp_up: (u32, u32),
    pub(super) plateaus: &'static [Plateau],
    /// Where capacities below [`DEEP_MBPS`] lie in a blockage: within the first share x of it with
    /// probability x to this power. With `None` they lie anywhere.
    pub(super) deep_late: Option<f64>,
    /// The chance that one step of it has no capacity at all.
    pub(super) outage_chance: f64,
    /// The chance that the link stays at 2310 Mbit/s for a while afterwards, and for how long.
    pub(super) recovery_chance: f64,
    pub(super) recovery: (u32, u32),
}

pub(super) struct Plateau {
    pub(super) view: View,
    pub(super) steps: (u32, u32),
}

/// In the recording of long blockages seven steps were below this; the others below 1500 Mbit/s lay
/// anywhere.
pub(super) const DEEP_MBPS: f64 = 800.0;

impl Preset {
    pub(super) const fn shape(self) -> &'static Shape {
        match self {
            Self::Static => &STATIC,
            Self::ShortBlockages => &SHORT_BLOCKAGES,
            Self::LongBlockages => &LONG_BLOCKAGES,
            Self::MobilityAndBlockages => &MOBILITY_AND_BLOCKAGES,
        }
    }
}

const fn at(weight: u32, level_mbps: f64) -> View {
    View { weight, level_mbps, quality: None }
}

const fn below(weight: u32, level_mbps: f64, best: f64, worst: f64, skew: f64) -> View {
    View { weight, level_mbps, quality: Some(Quality { best, worst, skew }) }
}

const fn plateau(view: View, least: u32, most: u32) -> Plateau {
    Plateau { view, steps: (least, most) }
}

static STATIC: Shape = Shape {
    step: Span::from_millis(300),
    dwell: (9, 11),
    views: &[
        at(6, 2310.0),
        below(14, 3080.0, 0.06, 0.13, 1.0),
        below(80, 3080.0, 0.0055, 0.062, 1.0),
    ],
    blocked: None,
};

static SHORT_BLOCKAGES: Shape = Shape {
    step: Span::from_millis(300),
    dwell: (9, 11),
    views: &[at(18, 2310.0), at(12, 3080.0), below(70, 3080.0, 0.005, 0.12, 4.0)],
    blocked: Some(Blocked {
        lead: (19.0, 22.0),
        period: 15.0,
        spread: 2.0,
        graze_chance: 0.0,
        length: (2, 7),
        ramp_down: (0, 1),
        ramp_up: (0, 2),
        plateaus: &[plateau(at(55, 962.5), 7, 7), plateau(at(45, 1155.0), 7, 7)],
        deep_late: None,
        outage_chance: 0.0,
        recovery_chance: 0.3,
        recovery: (9, 11),
    }),
};

static LONG_BLOCKAGES: Shape = Shape {
    step: Span::from_millis(300),
    dwell: (9, 11),
    views: &[at(4, 2310.0), at(14, 3080.0), below(82, 3080.0, 0.005, 0.1, 4.0)],
    blocked: Some(Blocked {
        lead: (20.0, 24.0),
        period: 20.8,
        spread: 2.0,
        graze_chance: 0.0,
        length: (18, 22),
        ramp_down: (0, 1),
        ramp_up: (0, 1),
        plateaus: &[
            plateau(below(47, 1925.0, 0.0, 0.14, 1.0), 2, 8),
            plateau(at(17, 1540.0), 2, 6),
            plateau(at(14, 1155.0), 1, 3),
            plateau(at(9, 962.5), 1, 4),
            plateau(at(10, 770.0), 1, 1),
            plateau(at(3, 385.0), 1, 1),
        ],
        deep_late: Some(3.7),
        outage_chance: 0.2,
        recovery_chance: 1.0,
        recovery: (10, 20),
    }),
};

static MOBILITY_AND_BLOCKAGES: Shape = Shape {
    step: Span::from_millis(250),
    dwell: (4, 16),
    views: &[
        at(21, 2310.0),
        below(20, 3080.0, 0.005, 0.095, 1.9),
        at(10, 3850.0),
        below(49, 3850.0, 0.0057, 0.0623, 2.35),
    ],
    blocked: Some(Blocked {
        lead: (7.0, 11.0),
        period: 8.75,
        spread: 7.0,
        graze_chance: 0.2,
        length: (1, 5),
        ramp_down: (0, 1),
        ramp_up: (0, 1),
        plateaus: &[
            plateau(at(55, 1155.0), 1, 4),
            plateau(at(25, 962.5), 2, 4),
            plateau(at(8, 1925.0), 1, 1),
            plateau(at(6, 770.0), 1, 1),
            plateau(at(6, 385.0), 1, 1),
        ],
        deep_late: None,
        outage_chance: 0.2,
        recovery_chance: 0.9,
        recovery: (4, 12),
    }),
};
