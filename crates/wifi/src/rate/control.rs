//! The mode of the next PPDU of a port.

use alloc::vec::Vec;

use sojourn_core::{Stream, Time};

use super::minstrel::Minstrel;
use super::signal::{Fade, error_rate, metres_at, snr_at};
use super::{Control, Place, Presence, Rates, SignalConfig, Step};
use crate::phy::Mode;

#[derive(Clone, Debug)]
pub(crate) struct PortRate {
    signal: SignalConfig,
    places: Vec<Place>,
    present: Vec<Presence>,
    fade: Option<Fade>,
    /// The modes to choose from, in rising order of rate.
    modes: Vec<Mode>,
    chooser: Chooser,
}

#[derive(Clone, Debug)]
enum Chooser {
    Fixed,
    Ideal,
    Minstrel(Minstrel),
    /// Each step with the position of its mode in `modes`.
    Trace(Vec<(Step, usize)>),
}

impl PortRate {
    pub(crate) fn new(config: &Rates, best: Mode, random: &mut Stream) -> Self {
        let mut modes = match &config.control {
            Control::Fixed => alloc::vec![best],
            Control::Ideal | Control::Minstrel(_) => best.not_above(),
            Control::Trace(steps) => steps.iter().map(|step| step.mode).collect(),
        };
        modes.sort_by_key(Mode::rate);
        modes.dedup();
        let chooser = match &config.control {
            Control::Fixed => Chooser::Fixed,
            Control::Ideal => Chooser::Ideal,
            Control::Minstrel(minstrel) => {
                Chooser::Minstrel(Minstrel::new(minstrel, &modes, random.fork()))
            }
            Control::Trace(steps) => {
                let place = |mode: &Mode| modes.iter().position(|own| own == mode).unwrap_or(0);
                Chooser::Trace(steps.iter().map(|step| (*step, place(&step.mode))).collect())
            }
        };
        Self {
            signal: config.signal.clone(),
            places: config.places.clone(),
            present: config.present.clone(),
            fade: config.fading.clone().map(|fading| Fade::new(fading, random.fork())),
            modes,
            chooser,
        }
    }

    pub(crate) fn modes(&self) -> &[Mode] {
        &self.modes
    }

    /// The position of the mode to use now.
    pub(crate) fn choose(&mut self, now: Time) -> usize {
        match &mut self.chooser {
            Chooser::Fixed => 0,
            Chooser::Minstrel(minstrel) => minstrel.choose(now),
            Chooser::Trace(steps) => {
                let now = now.since(Time::ZERO);
                // After its end the last mode stays.
                let next = steps.partition_point(|(step, _)| step.from <= now);
                steps[next.saturating_sub(1)].1
            }
            Chooser::Ideal => self.best(now),
        }
    }

    /// Probability that an MPDU of so many octets is lost now.
    pub(crate) fn error(&mut self, now: Time, mode: &Mode, octets: u32) -> f64 {
        if !self.is_present(now) {
            return 1.0;
        }
        if self.places.is_empty() {
            return 0.0;
        }
        let fade = self.fade.as_mut().map_or(0.0, |fade| fade.at(now));
        let snr = snr_at(&self.signal, metres_at(&self.places, now), mode) - fade;
        error_rate(&self.signal, snr, mode, octets)
    }

    pub(crate) fn report(&mut self, rate: usize, sent: u32, arrived: u32) {
        if let Chooser::Minstrel(minstrel) = &mut self.chooser {
            minstrel.report(rate, sent, arrived);
        }
    }

    pub(crate) fn is_present(&self, now: Time) -> bool {
        let now = now.since(Time::ZERO);
        self.present.is_empty() || self.present.iter().any(|time| time.from <= now && now < time.to)
    }

    /// When the station comes next, after `now`.
    pub(crate) fn comes_after(&self, now: Time) -> Time {
        let now = now.since(Time::ZERO);
        let next = self.present.iter().map(|time| time.from).find(|from| *from > now);
        next.map_or(Time::NEVER, |from| Time::ZERO + from)
    }

    /// The position of the mode that carries most full packets a second.
    fn best(&mut self, now: Time) -> usize {
        const OCTETS: u32 = 1538;
        let fade = self.fade.as_mut().map_or(0.0, |fade| fade.at(now));
        let metres = metres_at(&self.places, now);
        let (mut best, mut most) = (0, 0.0);
        for (number, mode) in self.modes.iter().enumerate() {
            let snr = snr_at(&self.signal, metres, mode) - fade;
            let arrives = 1.0 - error_rate(&self.signal, snr, mode, OCTETS);
            let goodput = mode.rate().as_bps() as f64 * arrives;
            if goodput > most {
                (best, most) = (number, goodput);
            }
        }
        best
    }
}
