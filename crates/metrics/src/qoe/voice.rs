//! Voice quality by the E-model, ITU-T G.107 (06/2015), narrow band.
//!
//! Every input except delay and loss is at its default. flent's VoIP test does the same, so numbers
//! can be compared: today's flent by [`Scorer::G107`], that of 2016 to 2018, with which papers of these
//! years were written, by [`Scorer::Flent2016`]. Names are the Recommendation's.

/// Which computation of the E-model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scorer {
    /// The Recommendation's.
    G107,
    /// flent's from September 2016 to July 2018, which departs from it twice. The second sixth root in
    /// the impairment by delay is a sixth part, so a delay above 100 ms costs 62 points at once; and
    /// loss is that of a codec with no robustness at all (Bpl 1).
    Flent2016,
}

/// Mean opinion score, 1 to 4.5, of a call with this one-way delay (see [`voice_delay_ms`]) and
/// this share of lost packets (0 to 1).
pub fn mos(scorer: Scorer, delay_ms: f64, loss_share: f64) -> f64 {
    mos_of_r(r(scorer, delay_ms, loss_share))
}

/// [`mos`] by the Recommendation.
pub fn mos_g107(delay_ms: f64, loss_share: f64) -> f64 {
    mos(Scorer::G107, delay_ms, loss_share)
}

/// The delay that a call effectively has with jitter: mean one-way delay and twice the mean |IPDV|.
pub fn voice_delay_ms(mean_owd_ms: f64, mean_abs_ipdv_ms: f64) -> f64 {
    mean_owd_ms + 2.0 * mean_abs_ipdv_ms
}

/// The rating factor R: R = Ro − Is − Id − Ie,eff, with no advantage factor.
pub fn r(scorer: Scorer, delay_ms: f64, loss_share: f64) -> f64 {
    let ro = 15.0 - 1.5 * (SLR + NO);
    ro - IS - id(scorer, ro, delay_ms) - ie_eff(scorer, loss_share)
}

/// Annex B: from R to a mean opinion score. Below R = 6.5 the Recommendation's cubic falls to 0.99,
/// off the scale that begins at 1; there the score is 1.
pub fn mos_of_r(r: f64) -> f64 {
    if r < 0.0 {
        1.0
    } else if r > 100.0 {
        4.5
    } else {
        (1.0 + 0.035 * r + r * (r - 60.0) * (100.0 - r) * 7e-6).max(1.0)
    }
}

/// Send and receive loudness ratings.
const SLR: f64 = 8.0;
const RLR: f64 = 2.0;
/// Sum of the noise sources at their defaults, dBm0p.
const NO: f64 = -61.179_21;
/// Simultaneous impairments (too loud, side tone, quantising) at their defaults.
const IS: f64 = 1.413_57;
/// Weighted echo path loss and talker echo loudness rating, dB.
const WEPL: f64 = 110.0;
const TELR: f64 = 65.0;
/// Packet-loss robustness of G.711 without concealment; its own impairment Ie is 0, and losses
/// are random (BurstR 1).
const BPL: f64 = 4.3;
const BPL_FLENT_2016: f64 = 1.0;
/// Delay that is not noticed, ms.
const MT: f64 = 100.0;

/// Delay impairment: talker echo, listener echo, and delay without echo.
fn id(scorer: Scorer, ro: f64, t: f64) -> f64 {
    let (ta, tr) = (t, 2.0 * t);

    let terv = TELR - 40.0 * libm::log10((1.0 + t / 10.0) / (1.0 + t / 150.0))
        + 6.0 * libm::exp(-0.3 * t * t);
    let roe = -1.5 * (NO - RLR);
    let re = 80.0 + 2.5 * (terv - 14.0);
    let half = (roe - re) / 2.0;
    let idte = if t < 1.0 {
        0.0
    } else {
        (half + libm::sqrt(half * half + 100.0) - 1.0) * (1.0 - libm::exp(-t))
    };

    let rle = 10.5 * (WEPL + 7.0) * libm::pow(tr + 1.0, -0.25);
    let half = (ro - rle) / 2.0;
    let idle = half + libm::sqrt(half * half + 169.0);

    let idd = if ta <= MT {
        0.0
    } else {
        let x = libm::log2(ta / MT);
        let sixth = |x: f64| libm::pow(1.0 + libm::pow(x, 6.0), 1.0 / 6.0);
        let second = match scorer {
            Scorer::G107 => sixth(x / 3.0),
            Scorer::Flent2016 => (1.0 + libm::pow(x / 3.0, 6.0)) / 6.0,
        };
        25.0 * (sixth(x) - 3.0 * second + 2.0)
    };

    idte + idle + idd
}

/// Effective equipment impairment of loss, which is in per cent here.
fn ie_eff(scorer: Scorer, loss_share: f64) -> f64 {
    let ppl = 100.0 * loss_share;
    let bpl = match scorer {
        Scorer::G107 => BPL,
        Scorer::Flent2016 => BPL_FLENT_2016,
    };
    95.0 * ppl / (ppl + bpl)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (delay ms, loss, score), as flent's function gives them.
    const EXPECTED: &[(f64, f64, f64)] = &[
        (0.0, 0.0, 4.409),
        (5.0, 0.0, 4.406),
        (20.0, 0.0, 4.396),
        (50.0, 0.0, 4.380),
        (100.0, 0.0, 4.355),
        (101.0, 0.0, 4.354),
        (150.0, 0.0, 4.328),
        (200.0, 0.0, 4.223),
        (250.0, 0.0, 3.993),
        (300.0, 0.0, 3.719),
        (400.0, 0.0, 3.216),
        (500.0, 0.0, 2.828),
        (800.0, 0.0, 2.204),
        (1000.0, 0.0, 2.019),
        (5.0, 0.01, 3.827),
        (50.0, 0.01, 3.771),
        (50.0, 0.02, 3.182),
        (50.0, 0.05, 2.097),
        (50.0, 0.10, 1.427),
        (100.0, 0.01, 3.723),
        (400.0, 0.01, 2.280),
        (400.0, 0.05, 1.052),
    ];

    #[test]
    fn scores_are_those_of_the_recommendation_at_its_defaults() {
        for (delay, loss, expected) in EXPECTED {
            let score = mos_g107(*delay, *loss);
            assert!((score - expected).abs() < 6e-4, "{delay} ms, {loss}: {score}, not {expected}");
        }
    }

    /// The same, as flent's function of 2016 to 2018 gave them.
    const EXPECTED_OF_FLENT_2016: &[(f64, f64, f64)] = &[
        (5.0, 0.0, 4.406),
        (50.0, 0.0, 4.380),
        (100.0, 0.0, 4.355),
        (101.0, 0.0, 1.534),
        (150.0, 0.0, 1.491),
        (200.0, 0.0, 1.357),
        (250.0, 0.0, 1.162),
        (300.0, 0.0, 1.037),
        (400.0, 0.0, 1.000),
        (5.0, 0.01, 2.343),
        (50.0, 0.01, 2.277),
        (100.0, 0.01, 2.222),
        (400.0, 0.01, 1.000),
    ];

    #[test]
    fn scores_of_flent_2016_fall_off_at_100_ms_and_with_the_first_loss() {
        for (delay, loss, expected) in EXPECTED_OF_FLENT_2016 {
            let score = mos(Scorer::Flent2016, *delay, *loss);
            assert!((score - expected).abs() < 6e-4, "{delay} ms, {loss}: {score}, not {expected}");
        }
    }

    #[test]
    fn scores_stay_between_1_and_4_5() {
        assert_eq!(mos_of_r(-1.0), 1.0);
        assert_eq!(mos_of_r(101.0), 4.5);
        assert_eq!(mos_of_r(3.0), 1.0);
        assert_eq!(mos_g107(5_000.0, 1.0), 1.0);
    }

    #[test]
    fn more_delay_or_loss_is_never_better() {
        for step in 1..100 {
            let (less, more) = (f64::from(step) * 10.0, f64::from(step + 1) * 10.0);
            assert!(mos_g107(more, 0.0) <= mos_g107(less, 0.0));
            let (less, more) = (f64::from(step) * 0.01, f64::from(step + 1) * 0.01);
            assert!(mos_g107(50.0, more) <= mos_g107(50.0, less));
        }
    }

    #[test]
    fn twice_the_variation_adds_to_the_delay() {
        assert_eq!(voice_delay_ms(20.0, 3.0), 26.0);
    }
}
