//! Converts values to pixels.

use crate::number::number;

/// A linear or logarithmic axis between two pixels; `from` may lie beyond `to`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    min: f64,
    max: f64,
    log: bool,
    from: f64,
    to: f64,
}

impl Scale {
    /// Covers the values and, if linear, zero if that is not far.
    pub(crate) fn linear(values: impl IntoIterator<Item = f64>, from: f64, to: f64) -> Self {
        let (mut min, mut max) = extent(values);
        if min > 0.0 && min < max * 0.7 || min == max {
            min = min.min(0.0);
        }
        if max < 0.0 {
            max = 0.0;
        }
        if min == max {
            max = min + 1.0;
        }
        let step = step((max - min) / 10.0);
        Self {
            min: (min / step).floor() * step,
            max: (max / step).ceil() * step,
            log: false,
            from,
            to,
        }
    }

    /// Exactly these limits.
    pub(crate) fn exact(min: f64, max: f64, from: f64, to: f64) -> Self {
        let max = if max > min { max } else { min + 1.0 };
        Self { min, max, log: false, from, to }
    }

    /// Logarithmic over the positive values.
    pub(crate) fn log(values: impl IntoIterator<Item = f64>, from: f64, to: f64) -> Self {
        let (mut min, mut max) = extent(values.into_iter().filter(|value| *value > 0.0));
        if min <= 0.0 || min >= max {
            let middle = if max > 0.0 { max } else { 1.0 };
            (min, max) = (middle / 2.0, middle * 2.0);
        }
        let margin = (max / min).powf(0.04);
        Self { min: min / margin, max: max * margin, log: true, from, to }
    }

    /// Logarithmic if the values span more than a factor of `spread`, otherwise linear.
    pub(crate) fn fitting(values: &[f64], spread: f64, from: f64, to: f64) -> Self {
        let (min, max) = extent(values.iter().copied());
        if min > 0.0 && max / min > spread {
            Self::log(values.iter().copied(), from, to)
        } else {
            Self::linear(values.iter().copied(), from, to)
        }
    }

    pub(crate) fn at(&self, value: f64) -> f64 {
        let share = if self.log {
            (value.max(self.min) / self.min).ln() / (self.max / self.min).ln()
        } else {
            (value - self.min) / (self.max - self.min)
        };
        self.from + share * (self.to - self.from)
    }

    pub(crate) fn clamped(&self, value: f64) -> f64 {
        let (low, high) =
            if self.from < self.to { (self.from, self.to) } else { (self.to, self.from) };
        self.at(value).clamp(low, high)
    }

    pub(crate) fn ticks(&self) -> Vec<(f64, String)> {
        if self.log { self.log_ticks() } else { self.linear_ticks() }
    }

    fn linear_ticks(&self) -> Vec<(f64, String)> {
        let room = ((self.to - self.from).abs() / 60.0).clamp(2.0, 8.0);
        let step = step((self.max - self.min) / room);
        let first = (self.min / step - 1e-9).ceil() as i64;
        let last = (self.max / step + 1e-9).floor() as i64;
        (first..=last)
            .map(|tick| tick as f64 * step)
            .map(|tick| {
                let text = if tick == 0.0 { "0".into() } else { number(tick) };
                (tick, text)
            })
            .collect()
    }

    fn log_ticks(&self) -> Vec<(f64, String)> {
        let decades = (self.max / self.min).log10();
        let steps: &[f64] = if decades > 3.5 {
            &[1.0]
        } else if decades > 1.6 {
            &[1.0, 3.0]
        } else if decades > 0.8 {
            &[1.0, 2.0, 5.0]
        } else {
            &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0]
        };
        let mut ticks = Vec::new();
        for power in self.min.log10().floor() as i32..=self.max.log10().ceil() as i32 {
            for step in steps {
                let tick = step * 10f64.powi(power);
                if tick >= self.min * 0.999 && tick <= self.max * 1.001 {
                    ticks.push((tick, number(tick)));
                }
            }
        }
        if ticks.len() < 2 {
            return vec![(self.min, number(self.min)), (self.max, number(self.max))];
        }
        ticks
    }
}

/// The values on which a scale over all of them depends: the least, the least positive and the largest.
pub(crate) fn ends(values: impl IntoIterator<Item = f64>) -> [f64; 3] {
    let mut ends = [f64::INFINITY, f64::INFINITY, f64::NEG_INFINITY];
    for value in values.into_iter().filter(|value| value.is_finite()) {
        ends[0] = ends[0].min(value);
        ends[1] = if value > 0.0 { ends[1].min(value) } else { ends[1] };
        ends[2] = ends[2].max(value);
    }
    ends
}

/// 1, 2 or 5 times a power of ten, not below the argument.
fn step(rough: f64) -> f64 {
    if !(rough.is_finite() && rough > 0.0) {
        return 1.0;
    }
    let power = 10f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|f| f * power >= rough * 0.999);
    factor.unwrap_or(10.0) * power
}

fn extent(values: impl IntoIterator<Item = f64>) -> (f64, f64) {
    let finite = values.into_iter().filter(|value| value.is_finite());
    let (min, max) =
        finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(min, max), v| (min.min(v), max.max(v)));
    if min > max { (0.0, 1.0) } else { (min, max) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ticks_are_round() {
        let scale = Scale::linear([0.3, 9.2], 0.0, 400.0);
        let ticks: Vec<String> = scale.ticks().into_iter().map(|(_, text)| text).collect();
        assert_eq!(ticks, ["0", "2", "4", "6", "8", "10"]);
        let scale = Scale::log([19.0, 70.0], 0.0, 400.0);
        let ticks: Vec<String> = scale.ticks().into_iter().map(|(_, text)| text).collect();
        assert_eq!(ticks, ["20", "30", "40", "50", "60"]);
        let scale = Scale::log([1.0, 1000.0], 0.0, 400.0);
        let ticks: Vec<String> = scale.ticks().into_iter().map(|(_, text)| text).collect();
        assert_eq!(ticks, ["1", "3", "10", "30", "100", "300", "1000"]);
    }

    #[test]
    fn a_reversed_axis_runs_to_the_left() {
        let scale = Scale::log([10.0, 100.0], 300.0, 0.0);
        assert!(scale.at(10.0) > scale.at(100.0));
    }

    proptest! {
        #[test]
        fn every_scale_has_a_few_ticks_inside(
            values in proptest::collection::vec(-1e9f64..1e9, 0..5), log: bool,
        ) {
            let scale = if log {
                Scale::log(values, 10.0, 310.0)
            } else {
                Scale::linear(values, 10.0, 310.0)
            };
            let ticks = scale.ticks();
            prop_assert!((1..40).contains(&ticks.len()), "{ticks:?}");
            for (tick, _) in ticks {
                let at = scale.at(tick);
                prop_assert!((9.0..=311.0).contains(&at), "{tick} at {at} of {scale:?}");
            }
        }
    }
}
