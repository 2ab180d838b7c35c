//! A cell, checked and complete.

use alloc::format;
use alloc::vec::Vec;
use core::num::NonZeroU8;

use sojourn_core::{Params, Span, SpecError};

use crate::mac::aggregation::Limits;
use crate::mac::edca::{AccessCategory, Countdown, Parameters};
use crate::ofdma::Ofdma;
use crate::phy::{Format, Mode};
use crate::queueing::{DriverConfig, QueueConfig, QueueKind, Schedule};
use crate::rate::Rates;

/// What a transmitter does if a BlockAck does not come (section 10.25.6.7 leaves this open).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LostBlockAck {
    /// Sends the frames again.
    #[default]
    Repeat,
    /// Asks for it with a BlockAckReq, and repeats what the answer leaves open.
    Request,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// aSlotTime and aSIFSTime.
    pub slot: Span,
    pub sifs: Span,
    /// QoS stations with EDCA; otherwise DCF with all traffic in one category.
    pub is_qos: bool,
    pub access_point: [Parameters; AccessCategory::COUNT],
    pub station: [Parameters; AccessCategory::COUNT],
    pub limits: Limits,
    /// Attempts before a frame is given up (dot11ShortRetryLimit, 1 to 255); `None` for never.
    pub retry_limit: Option<NonZeroU8>,
    /// PSDUs of more octets are sent behind an RTS (dot11RTSThreshold).
    pub rts_threshold: u32,
    /// The mode of an RTS and its CTS before every PPDU of 802.11n or 802.11ax, so that stations that can't read these
    /// keep their NAV (section 10.27); `None` without such stations.
    pub protection: Option<Mode>,
    pub lost_block_ack: LostBlockAck,
    /// Whether a CF-End gives back the rest of a TXOP (section 10.23.2.9).
    pub cf_end: bool,
    /// Whether bystanders detect a frame in a collision, which they can't read, and so wait for
    /// EIFS (section 10.3.2.3.7). If preambles of equal strength overlap, nobody detects them.
    pub collisions_are_detected: bool,
    /// OFDMA with stations of 802.11ax; `None` for EDCA alone.
    pub ofdma: Option<Ofdma>,
    /// Stations whose modes change; the others keep those that they have.
    pub rates: Vec<Rates>,
    /// How packets wait in the access point.
    pub queue: QueueConfig,
    pub stations: Vec<Station>,
}

/// A station and its radio link.
#[derive(Clone, Debug, PartialEq)]
pub struct Station {
    pub down: Radio,
    pub up: Radio,
    pub queue: DriverConfig,
    /// Its part of the air among stations that are served by airtime, as mac80211 counts it.
    pub weight: u16,
}

impl Station {
    /// mac80211's default weight of every station (`IEEE80211_DEFAULT_AIRTIME_WEIGHT`).
    pub const WEIGHT: u16 = Schedule::WEIGHT;

    /// # Errors
    /// A station that would never be served.
    pub fn check_weight(&self) -> Result<(), SpecError> {
        match self.weight {
            0 => Err(SpecError::new("a weight of 0 has no airtime").allow(["1 to 65535"])),
            _ => Ok(()),
        }
    }

    /// The modes of both directions, downlink first.
    pub fn modes(&self) -> [Mode; 2] {
        [self.down.mode, self.up.mode]
    }
}

/// One direction of a radio link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Radio {
    pub mode: Mode,
    /// Share of data MPDUs that are lost.
    pub error: f64,
    /// The slowest mode to which a driver falls back when an attempt fails. Its aggregates must fit the limit of
    /// time in that mode too.
    pub fallback: Option<Mode>,
}

impl Radio {
    /// A direction that loses nothing and never falls back.
    pub const fn new(mode: Mode) -> Self {
        Self { mode, error: 0.0, fallback: None }
    }

    /// The longest PSDU that the limits allow, whatever its mode.
    pub(crate) fn longest(&self, limits: &Limits) -> u32 {
        let slowest = self.fallback.map(|mode| mode.largest_psdu(limits.ppdu_time));
        let longest = self.mode.format().longest_psdu();
        let longest =
            if limits.is_aggregating() { longest.min(limits.ampdu_octets) } else { longest };
        longest.min(slowest.unwrap_or(u32::MAX))
    }

    /// Frames that may have a sequence number without being acknowledged.
    pub(crate) fn window(&self, limits: &Limits) -> u32 {
        let largest = self.mode.format().largest_window().map_or(u32::MAX, u32::from);
        limits.window().min(largest)
    }
}

impl Config {
    /// Whether some queue may keep a packet although the driver below has room.
    pub(crate) fn may_hold_back(&self) -> bool {
        let above = matches!(&self.queue.kind, QueueKind::Driver(driver) if driver.may_hold_back());
        above || self.stations.iter().any(|station| station.queue.may_hold_back())
    }

    /// In the 5 GHz band.
    pub fn new(stations: Vec<Station>, limits: Limits, queue: impl Into<QueueConfig>) -> Self {
        Self {
            slot: Span::from_micros(9),
            sifs: Span::from_micros(16),
            is_qos: true,
            access_point: Parameters::EDCA,
            station: Parameters::EDCA,
            limits,
            retry_limit: NonZeroU8::new(7),
            rts_threshold: u32::MAX,
            protection: None,
            lost_block_ack: LostBlockAck::default(),
            cf_end: false,
            collisions_are_detected: false,
            ofdma: None,
            rates: Vec::new(),
            queue: queue.into(),
            stations,
        }
    }

    /// # Errors
    /// No station, more than 16 000, access parameters, a queue, a window or a share out of range.
    pub fn check(&self) -> Result<(), SpecError> {
        let count = self.stations.len();
        if count == 0 || count > 16_000 {
            return Err(SpecError::new(format!("a cell of {count} stations"))
                .allow(["1 to 16000 stations"]));
        }
        if self.slot.is_zero() {
            return Err(SpecError::new("slots of 0s").allow(["a longer time"]));
        }
        for (who, categories) in
            [("the access point", &self.access_point), ("the stations", &self.station)]
        {
            for (category, parameters) in AccessCategory::ALL.iter().zip(categories) {
                let place = format!("{category:?} of {who}");
                parameters.check().map_err(|error| error.within(&place))?;
            }
        }
        self.queue.check().map_err(|error| error.within("the access point"))?;
        let limits = &self.limits;
        if limits.ppdu_time.is_zero() {
            return Err(SpecError::new("aggregates that last 0s").allow(["a longer time"]));
        }
        if !(1..=1024).contains(&limits.window) || limits.mpdus == 0 {
            return Err(SpecError::new(format!(
                "a block ack window of {} frames, {} in an aggregate",
                limits.window, limits.mpdus
            ))
            .allow(["1 to 1024 frames"]));
        }
        let longest = limits.longest_amsdu(self.stations.iter().flat_map(Station::modes));
        if limits.amsdu_octets > longest {
            return Err(SpecError::new(format!("an A-MSDU of {} octets", limits.amsdu_octets))
                .allow([format!("0 to {longest} with the modes of these stations")]));
        }
        for (number, rates) in self.rates.iter().enumerate() {
            let station = rates.station;
            let Some(own) = self.stations.get(usize::from(station)) else {
                return Err(SpecError::new(format!("rates of station {station}"))
                    .allow([format!("stations 0 to {}", count - 1)]));
            };
            rates
                .check(own.modes())
                .map_err(|error| error.within(&format!("rates of station {station}")))?;
            if self.rates[..number].iter().any(|before| before.station == station) {
                return Err(SpecError::new(format!("rates of station {station} are given twice")));
            }
        }
        self.check_protection()?;
        self.check_ofdma()?;
        for (index, station) in self.stations.iter().enumerate() {
            station.queue.check().map_err(|error| error.within(&format!("station {index}")))?;
            station.check_weight().map_err(|error| error.within(&format!("station {index}")))?;
            for radio in [station.down, station.up] {
                if !(0.0..1.0).contains(&radio.error) {
                    return Err(SpecError::new(format!(
                        "station {index} loses {} of its frames",
                        radio.error
                    ))
                    .allow(["a share from 0 to below 1"]));
                }
            }
        }
        Ok(())
    }

    /// # Errors
    /// Protection in a mode that older stations can't read, or together with OFDMA.
    pub fn check_protection(&self) -> Result<(), SpecError> {
        let Some(mode) = self.protection else { return Ok(()) };
        if mode.format() > Format::NonHt {
            let problem = format!("protection by '{mode}', which older stations can't read");
            return Err(SpecError::new(problem).allow(["dsss 1 to dsss 11", "ofdm 6 to ofdm 54"]));
        }
        match &self.ofdma {
            None => Ok(()),
            Some(_) => Err(SpecError::new("protection and OFDMA in one cell")
                .allow(["OFDMA with 'mu_rts on', without protection"])),
        }
    }

    /// # Errors
    /// OFDMA that these stations can't do.
    pub fn check_ofdma(&self) -> Result<(), SpecError> {
        let Some(ofdma) = &self.ofdma else { return Ok(()) };
        ofdma.check()?;
        if !self.is_qos || !self.limits.is_aggregating() {
            return Err(SpecError::new("OFDMA without QoS or without aggregation")
                .allow(["stations of 802.11ax with A-MPDUs"]));
        }
        let is_he = |mode: Mode| mode.format() == Format::HeSu;
        let is_half = |station: &Station| {
            let [down, up] = station.modes();
            is_he(down) != is_he(up)
        };
        if let Some(station) = self.stations.iter().position(is_half) {
            let [down, up] = self.stations[station].modes();
            return Err(SpecError::new(format!(
                "OFDMA, and station {station} with '{down}' downwards and '{up}' upwards"
            ))
            .allow(["modes of 802.11ax in both directions or in none"]));
        }
        let modes = self.stations.iter().flat_map(Station::modes);
        let widths = modes.filter(|mode| is_he(*mode)).map(|mode| mode.width());
        match (widths.clone().min(), widths.max()) {
            (Some(narrowest), Some(widest)) if narrowest == widest => ofdma.check_width(widest),
            (Some(narrowest), Some(widest)) => {
                Err(SpecError::new(format!("OFDMA among stations of {narrowest} and {widest}"))
                    .allow(["one width for all stations of 802.11ax"]))
            }
            _ => Err(SpecError::new("OFDMA in a cell without 802.11ax")
                .allow(["a station whose mode begins with 'he'"])),
        }
    }

    /// Failures in a row with which a window grows. QSRC of EDCA reaches the retry limit before the next failure resets
    /// it and the window (section 10.23.2.2); the window of DCF is reset as soon as SSRC reaches it (section 10.3.3).
    pub(crate) fn most_failures(&self) -> Option<u8> {
        let limit = self.retry_limit.map(NonZeroU8::get);
        limit.map(|limit| if self.is_qos { limit } else { limit - 1 })
    }

    pub(crate) fn countdown(&self) -> Countdown {
        if self.is_qos { Countdown::Boundaries } else { Countdown::IdleSlots }
    }
}
