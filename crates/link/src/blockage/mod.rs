//! A synthetic 60 GHz link: the capacity of an 802.11ad connection whose line of sight people now
//! and then block.
//!
//! The transmitter settles on one modulation and coding scheme. The capacity stays at the scheme's
//! level, or somewhat below by the signal's quality, for a few seconds. A blockage takes it down to
//! a low scheme for some steps, and up again over the schemes between. The parameters were fitted
//! to statistics of four measured traces (see `presets`); no measured value is contained.

mod presets;

#[cfg(test)]
mod tests;

use alloc::format;
use alloc::vec::Vec;

use sojourn_core::param::{Bounds, time};
use sojourn_core::{Rate, Span, SpecError, Stream};

use crate::trace::{MAX_STEP, Step, Trace};
use presets::{Blocked, DEEP_MBPS, Quality, Shape, View};

/// Capacities of the modulation and coding schemes that the process moves between, in kbit/s.
pub const LEVELS_KBPS: [u64; 9] =
    [385_000, 770_000, 962_500, 1_155_000, 1_540_000, 1_925_000, 2_310_000, 3_080_000, 3_850_000];

/// What happens between the two ends of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// Both ends at rest, and nobody blocks the line of sight.
    Static,
    /// Somebody crosses the line of sight every 15 s, for 0.6 to 2.1 s.
    ShortBlockages,
    /// Somebody stands in the line of sight every 21 s, for about 6 s.
    LongBlockages,
    /// One end is carried around, so that blockages are frequent, short and irregular.
    MobilityAndBlockages,
}

impl Preset {
    pub const ALL: [Self; 4] =
        [Self::Static, Self::ShortBlockages, Self::LongBlockages, Self::MobilityAndBlockages];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Static => "static",
            Self::ShortBlockages => "short-blockages",
            Self::LongBlockages => "long-blockages",
            Self::MobilityAndBlockages => "mobility-and-blockages",
        }
    }

    /// # Errors
    /// An unknown name.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        let names = || Self::ALL.into_iter().map(Self::name);
        Self::ALL.into_iter().find(|preset| preset.name() == text).ok_or_else(|| {
            let error = SpecError::new(format!("unknown preset '{text}'")).allow(names());
            match sojourn_core::nearest(text, names()) {
                Some(name) => error.near(name, [name]),
                None => error,
            }
        })
    }
}

/// How long a trace may be that is drawn.
pub(crate) const DURATIONS: Bounds = time(Span::from_nanos(1), MAX_STEP);

/// A blockage process, checked and complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blockage {
    preset: Preset,
    duration: Span,
    outages: bool,
}

impl Blockage {
    /// Two minutes, with the preset's outages.
    pub const fn new(preset: Preset) -> Self {
        Self { preset, duration: Span::from_secs(120), outages: true }
    }

    /// Draws a trace of this length.
    ///
    /// # Errors
    /// Zero, or longer than eleven days.
    pub fn lasting(self, duration: Span) -> Result<Self, SpecError> {
        if !DURATIONS.hold_time(duration) {
            return Err(SpecError::new(format!("duration {duration} is out of range"))
                .allow(DURATIONS.allowed()));
        }
        Ok(Self { duration, ..self })
    }

    /// Uses the lowest scheme's capacity in steps that would have none.
    pub const fn without_outages(self) -> Self {
        Self { outages: false, ..self }
    }

    pub const fn preset(&self) -> Preset {
        self.preset
    }

    /// Length of the trace that is drawn.
    pub const fn duration(&self) -> Span {
        self.duration
    }

    /// Whether some steps have no capacity.
    pub const fn has_outages(&self) -> bool {
        self.outages
    }

    /// The fastest scheme, without any shortfall.
    pub fn peak(&self) -> Rate {
        let fastest =
            self.preset.shape().views.iter().map(|view| view.level_mbps).fold(0.0, f64::max);
        Rate::from_bps((fastest * 1e6) as u64)
    }

    /// Draws a trace.
    pub fn generate(&self, random: &mut Stream) -> Trace {
        let shape = self.preset.shape();
        let step = shape.step.as_nanos();
        let whole = self.duration.as_nanos();
        let mut capacity = Capacity::new(shape, whole.div_ceil(step) as usize);
        capacity.draw(random, self.outages);
        let steps = capacity.rates.iter().enumerate().map(|(index, rate)| {
            let start = index as u64 * step;
            Step { rate: *rate, duration: Span::from_nanos(step.min(whole - start)) }
        });
        Trace::new(steps).expect("a trace begins in clear view, and its length was checked")
    }
}

/// A trace that is being drawn.
struct Capacity {
    shape: &'static Shape,
    rates: Vec<Rate>,
    /// Steps it will have.
    length: usize,
}

impl Capacity {
    fn new(shape: &'static Shape, length: usize) -> Self {
        Self { shape, rates: Vec::with_capacity(length), length }
    }

    fn draw(&mut self, random: &mut Stream, outages: bool) {
        let Some(blocked) = &self.shape.blocked else {
            self.clear(self.length, random);
            return;
        };
        let mut onset = self.steps_in(random.uniform(blocked.lead.0, blocked.lead.1));
        while self.rates.len() < self.length {
            self.clear(onset, random);
            self.block(blocked, random, outages);
            let period =
                random.uniform(blocked.period - blocked.spread, blocked.period + blocked.spread);
            // At least one step of clear sight separates two blockages.
            onset = (onset + self.steps_in(period)).max(self.rates.len() + 1);
            if random.chance(blocked.recovery_chance) {
                let steps = between(blocked.recovery, random).min(onset - self.rates.len());
                self.extend(steps, RECOVERED);
            }
        }
        self.rates.truncate(self.length);
    }

    /// Sight is clear until step `until`.
    fn clear(&mut self, until: usize, random: &mut Stream) {
        let until = until.min(self.length);
        while self.rates.len() < until {
            let view = weighted(self.shape.views, |view| view.weight, random);
            let rate = view.rate(random);
            let steps = between(self.shape.dwell, random).min(until - self.rates.len());
            self.extend(steps, rate);
        }
    }

    /// A single step; or down a ramp, along one or several plateaus, and up a ramp.
    fn block(&mut self, blocked: &Blocked, random: &mut Stream, outages: bool) {
        if random.chance(blocked.graze_chance) {
            let view = View { weight: 1, level_mbps: RECOVERED.as_mbps(), quality: Some(GRAZED) };
            self.rates.push(view.rate(random));
            return;
        }
        let start = self.rates.len();
        let total = between(blocked.length, random);
        let down = between(blocked.ramp_down, random).min(total - 1);
        let up = between(blocked.ramp_up, random).min(total - 1 - down);
        let floor = total - down - up;
        self.rates.resize(start + down, Rate::ZERO);
        let (mut left, mut deep) = (floor, Vec::new());
        while left > 0 {
            let plateau = weighted(blocked.plateaus, |plateau| plateau.view.weight, random);
            let rate = plateau.view.rate(random);
            let steps = between(plateau.steps, random).min(left);
            left -= steps;
            match blocked.deep_late {
                Some(power) if plateau.view.level_mbps < DEEP_MBPS => {
                    deep.push((late(power, random), steps, rate));
                }
                _ => self.extend(steps, rate),
            }
        }
        for (share, steps, rate) in deep {
            let others = self.rates.len() - start - down;
            let step = start + down + (share * (others + 1) as f64) as usize;
            self.rates.splice(step..step, core::iter::repeat_n(rate, steps));
        }
        let (first, last) = (self.rates[start + down], self.rates[start + total - up - 1]);
        for step in 0..down {
            self.rates[start + step] = ramp(first, down - step, down);
        }
        for step in 1..=up {
            self.rates.push(ramp(last, step, up));
        }
        if random.chance(blocked.outage_chance) {
            let step = match blocked.deep_late {
                Some(power) => (late(power, random) * floor as f64) as usize,
                None => random.below(floor as u64) as usize,
            };
            let step = start + down + step;
            self.rates[step] = if outages { Rate::ZERO } else { level(0) };
        }
    }

    fn extend(&mut self, steps: usize, rate: Rate) {
        self.rates.resize(self.rates.len() + steps, rate);
    }

    fn steps_in(&self, seconds: f64) -> usize {
        (seconds / self.shape.step.as_secs_f64() + 0.5) as usize
    }
}

/// The rate to which a link returns at first, before it tries a faster scheme.
const RECOVERED: Rate = Rate::from_bps(2_310_000_000);

/// How far the capacity falls if a person only grazes the line of sight.
const GRAZED: Quality = Quality { best: 0.005, worst: 0.03, skew: 1.0 };

/// The `step`-th of `steps` between a blockage's rate and clear sight, over the levels between.
fn ramp(blocked: Rate, step: usize, steps: usize) -> Rate {
    let above =
        |rate: Rate| LEVELS_KBPS.partition_point(|kbps| Rate::from_bps(kbps * 1000) <= rate);
    let between = above(blocked)..above(RECOVERED) - 1;
    if between.is_empty() {
        return blocked;
    }
    level(between.start + between.len() * step / (steps + 1))
}

fn level(index: usize) -> Rate {
    Rate::from_bps(LEVELS_KBPS[index] * 1000)
}

impl View {
    fn rate(&self, random: &mut Stream) -> Rate {
        let mbps = self.level_mbps;
        let Some(quality) = &self.quality else {
            return Rate::from_bps((mbps * 1e6) as u64);
        };
        let worse = libm::pow(random.unit(), quality.skew);
        let shortfall = quality.best + (quality.worst - quality.best) * worse;
        Rate::from_bps((mbps * (1.0 - shortfall) + 0.5) as u64 * 1_000_000)
    }
}

/// A random share of one, which is at most x with probability x to `power`.
fn late(power: f64, random: &mut Stream) -> f64 {
    libm::pow(random.unit(), 1.0 / power)
}

/// Uniform, both ends included.
fn between((least, most): (u32, u32), random: &mut Stream) -> usize {
    (u64::from(least) + random.below(u64::from(most - least) + 1)) as usize
}

fn weighted<'a, T>(items: &'a [T], weight: impl Fn(&T) -> u32, random: &mut Stream) -> &'a T {
    let mut left = random.below(items.iter().map(|item| u64::from(weight(item))).sum());
    items
        .iter()
        .find(|item| {
            let found = left < u64::from(weight(item));
            left = left.saturating_sub(u64::from(weight(item)));
            found
        })
        .expect("the draw is below the sum of the weights")
}
