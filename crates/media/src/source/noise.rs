//! Noise that several sources add.

use sojourn_core::Stream;

/// A draw from Laplace's distribution with mean zero, held within one on either side so that
/// `1 + noise` is never negative and keeps its mean.
pub(super) fn laplace(random: &mut Stream, scale: f64) -> f64 {
    if scale == 0.0 {
        return 0.0;
    }
    let side = random.uniform(-1.0, 1.0);
    let size = -scale * libm::log(1.0 - libm::fabs(side));
    libm::copysign(size, side).clamp(-1.0, 1.0)
}

/// Sizes with noise, some of which the next ones save.
#[derive(Clone, Debug)]
pub(super) struct Corrected {
    scale: f64,
    /// The part of `above` that the next size saves.
    part: f64,
    /// By how much noise has made the sizes too large so far.
    above: f64,
}

impl Corrected {
    pub(super) fn new(scale: f64, part: f64) -> Self {
        Self { scale, part, above: 0.0 }
    }

    pub(super) fn around(&mut self, mean: f64, random: &mut Stream) -> f64 {
        let saved = self.part * self.above;
        let size = mean * (1.0 + laplace(random, self.scale)) - saved;
        self.above += size - mean;
        size
    }
}

#[cfg(test)]
mod tests {
    use sojourn_core::{Purpose, StreamAddress};

    use super::*;

    #[test]
    fn it_has_the_moments_of_laplace() {
        let mut random = StreamAddress { seed: 1, run: 0 }.stream(1, Purpose::Application);
        let draws: Vec<f64> = (0..200_000).map(|_| laplace(&mut random, 0.05)).collect();
        let n = draws.len() as f64;
        let mean = draws.iter().sum::<f64>() / n;
        let size = draws.iter().map(|x| x.abs()).sum::<f64>() / n;
        let variance = draws.iter().map(|x| x * x).sum::<f64>() / n;
        let fourth = draws.iter().map(|x| x * x * x * x).sum::<f64>() / n;
        assert!(mean.abs() < 0.002, "{mean}");
        // The mean distance is the scale, the variance twice its square, the kurtosis six.
        assert!((size - 0.05).abs() < 0.0005, "{size}");
        assert!((variance - 0.005).abs() < 0.0001, "{variance}");
        assert!((fourth / variance / variance - 6.0).abs() < 0.4, "{fourth}");
    }

    #[test]
    fn no_scale_is_no_noise_and_draws_nothing() {
        let mut random = StreamAddress { seed: 1, run: 0 }.stream(1, Purpose::Application);
        let mut twin = random.clone();
        assert_eq!(laplace(&mut random, 0.0), 0.0);
        assert_eq!(random.next_u64(), twin.next_u64());
    }
}
