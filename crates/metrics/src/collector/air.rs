//! Ports that share a medium: what each had of it after the warm-up.

use alloc::vec::Vec;

use sojourn_core::{AirSample, PortId, Span};

use crate::outcome::{AirMetrics, LinkMetrics};
use crate::stats;

/// What a port's counters were when the warm-up ended, and last.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Air {
    before: Option<AirSample>,
    after: Option<AirSample>,
}

impl Air {
    pub(super) fn set(&mut self, sample: Option<AirSample>, is_warm: bool) {
        if !is_warm {
            self.before = sample;
        }
        self.after = sample;
    }

    /// What was counted in between. Shares are filled in later, when all ports are known.
    pub(super) fn finish(self) -> Option<AirMetrics> {
        let after = self.after?;
        let before = self.before.unwrap_or_default();
        Some(AirMetrics {
            sent: after.since(&before),
            share: None,
            station_share: None,
            jain: None,
        })
    }
}

/// Finds the shares of all ports of each medium.
pub(super) fn share_out(links: &mut [LinkMetrics]) {
    let mut cells: Vec<PortId> =
        links.iter().filter_map(|link| Some(link.air?.sent.cell)).collect();
    cells.dedup();
    for cell in cells {
        let mut stations: Vec<Span> = Vec::new();
        for air in links.iter().filter_map(|link| link.air.filter(|air| air.sent.cell == cell)) {
            let station = usize::from(air.sent.station);
            stations.resize(stations.len().max(station + 1), Span::ZERO);
            stations[station] += air.sent.airtime;
        }
        let whole: Span = stations.iter().fold(Span::ZERO, |sum, time| sum + *time);
        if whole.is_zero() {
            continue;
        }
        let part = |time: Span| time.as_secs_f64() / whole.as_secs_f64();
        let shares: Vec<f64> = stations.iter().map(|time| part(*time)).collect();
        let jain = stats::jain(&shares);
        for air in links.iter_mut().filter_map(|link| link.air.as_mut()) {
            if air.sent.cell == cell {
                air.share = Some(part(air.sent.airtime));
                air.station_share = Some(shares[usize::from(air.sent.station)]);
                air.jain = jain;
            }
        }
    }
}
