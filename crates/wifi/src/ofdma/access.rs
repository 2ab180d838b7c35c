//! Uplink OFDMA random access (UORA, 802.11ax-2021 section 26.5.4).

use sojourn_core::Stream;

use super::Ofdma;

/// What a station keeps for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RandomAccess {
    /// OCW.
    pub(super) window: u32,
    /// OBO.
    pub(super) backoff: u32,
    pub(super) failures: u32,
}

impl RandomAccess {
    pub(crate) fn new(config: &Ofdma, random: &mut Stream) -> Self {
        let mut access = Self { window: config.ocw_min, backoff: 0, failures: 0 };
        access.draw(random);
        access
    }

    /// A Trigger frame offers `units` to whoever draws one; the one that the station sends on, if its
    /// backoff is over.
    pub(crate) fn offered(&mut self, units: u32, random: &mut Stream) -> Option<u32> {
        if self.backoff > units {
            self.backoff -= units;
            return None;
        }
        self.backoff = 0;
        Some(random.below(u64::from(units)) as u32)
    }

    pub(crate) fn succeed(&mut self, config: &Ofdma, random: &mut Stream) {
        (self.window, self.failures) = (config.ocw_min, 0);
        self.draw(random);
    }

    pub(crate) fn fail(&mut self, config: &Ofdma, random: &mut Stream) {
        self.failures += 1;
        if self.failures == config.restart_after {
            (self.window, self.failures) = (config.ocw_min, 0);
        } else {
            self.window = (2 * self.window + 1).min(config.ocw_max);
        }
        self.draw(random);
    }

    fn draw(&mut self, random: &mut Stream) {
        self.backoff = random.below(u64::from(self.window) + 1) as u32;
    }
}
