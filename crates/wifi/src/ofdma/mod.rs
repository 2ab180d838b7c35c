//! Several stations in one PPDU (802.11ax-2021 clause 26.5): what an access point may do, whom it
//! serves, and how stations that it has not asked get a resource unit.

mod access;
mod frames;
mod scheduler;
#[cfg(test)]
mod tests;

pub(crate) use access::RandomAccess;
pub(crate) use frames::{
    ASKED_BLOCK_ACK, ASKED_REQUEST, Answers, STATUS_REPORT, Trigger, multi_station_block_ack,
};
pub(crate) use scheduler::Scheduler;

use sojourn_core::param::{number, time, whole};
use sojourn_core::{Params, Span, SpecError, Words};

use crate::phy::{GuardInterval, Ru, Width};

sojourn_core::params! {
    /// What an access point of 802.11ax does with several stations at once.
    pub struct Ofdma: "ofdma", "downlink and uplink OFDMA of 802.11ax-2021", check check {
        /// PPDUs for several stations.
        pub downlink: bool as Switch = "on", "send to several stations in one PPDU";
        pub uplink: bool as Switch = "on", "ask several stations for one PPDU with Trigger frames";
        pub schedule: Policy as Order = "round-robin", "who is served when not all fit";
        pub sizes: Sizes as Sizing = "equal-units", "resource units of a PPDU for several stations";
        pub mu_rts: bool as Switch = "off", "begin with an MU-RTS Trigger, which all that are meant answer with CTS at once";
        pub stations: u32 = "9", whole(0, 74), "most stations that a PPDU has room for; 0 leaves the uplink to random access";
        pub acknowledgement: Acknowledgement as Acknowledging = "mu-bar", "how the stations of a downlink PPDU acknowledge it";
        pub status: bool as Switch = "on", "ask for buffer status (BSRP) before every Basic Trigger";
        pub interval: Span = "2ms", time(Span::from_micros(100), Span::from_secs(10)), "after winning the medium, ask for it again so much later if a station has something to send";
        pub poll: bool as Switch = "off", "ask every interval, whether or not a station has something to send, so that nobody asks because a packet came";
        pub trigger_backoff: bool as Switch = "on", "draw a backoff when it is time to ask while the medium is busy, as for a packet that comes then";
        pub slow_triggers: bool as Switch = "off", "send Trigger frames for data and buffer status of several stations at 6Mbps, the lowest rate, and not at the highest mandatory one that these stations' modes allow";
        pub all_ack: bool as Switch = "off", "acknowledge a station whose frames all came without a bitmap (All Ack), in two octets";
        pub guard: GuardInterval as Guard = "gi-1.6us", "guard interval of trigger-based PPDUs";
        pub ppdu_time: Span = "5484us", time(Span::from_micros(100), crate::phy::PPDU_MAX_TIME), "longest trigger-based PPDU that is asked for";
        pub random_units: u32 = "0", whole(0, 74), "resource units for random access in every Basic Trigger";
        pub ocw_min: u32 = "7", whole(0, 127), "smallest window of random access (OCWmin), one less than a power of two";
        pub ocw_max: u32 = "31", whole(0, 127), "largest window of random access (OCWmax), one less than a power of two";
        pub restart_after: u32 = "0", whole(0, 255), "failures in a row after which random access begins with the smallest window again; 0 for never, as in the standard";
        pub mu_edca_time: Span = "0s", time(Span::from_nanos(0), Span::from_micros(255 * 8192)), "after a trigger-based PPDU was acknowledged, contend with mu_aifsn and mu_cw for so long (MUEDCATimer); 0s for never";
        pub mu_aifsn: u32 = "0", whole(0, 15), "slots of the interframe space while the timer runs; 0 for no contention at all";
        pub mu_cw_min: u32 = "15", whole(0, 32_767), "smallest window while the timer runs, one less than a power of two";
        pub mu_cw_max: u32 = "1023", whole(0, 32_767), "largest window while the timer runs, one less than a power of two";
        pub rate_window: f64 = "20", number(1.0, 100_000.0), "PPDUs over which the proportional scheduler averages a station's rate";
    }
}

use sojourn_core::param::Switch;

/// Whom the access point serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    #[default]
    RoundRobin,
    /// The stations whose rate is highest in proportion to what they have had.
    ProportionalFair,
}

sojourn_core::keywords! {
    /// Whom the access point serves.
    pub Order for Policy {
        "round-robin" = Policy::RoundRobin, "stations take turns";
        "proportional-fair" = Policy::ProportionalFair, "the highest rate in proportion to what a station has had goes first";
    }
}

/// Which resource units a PPDU has, random access apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sizes {
    /// All of one size: the smallest of which the channel has no more units than there are stations.
    #[default]
    Equal,
    /// Some of these are halved for stations that would have none.
    Mixed,
}

sojourn_core::keywords! {
    /// Which resource units a PPDU has.
    pub Sizing for Sizes {
        "equal-units" = Sizes::Equal, "all of one size: the smallest of which the channel has no more than there are stations";
        "mixed-units" = Sizes::Mixed, "some of these halved, so that more stations have one; with round-robin all have whole ones equally often, with proportional-fair the stations that come first";
    }
}

/// How the stations of a downlink PPDU acknowledge it (802.11ax-2021 section 26.4.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Acknowledgement {
    /// The first at once, each other after a BlockAckReq.
    InTurn,
    /// All together, after an MU-BAR Trigger.
    #[default]
    MuBar,
    /// All together, asked for by a Trigger frame in each PSDU.
    Aggregated,
}

sojourn_core::keywords! {
    /// How the stations of a downlink PPDU acknowledge it.
    pub Acknowledging for Acknowledgement {
        "in-turn" = Acknowledgement::InTurn, "the first station at once, the others after a BlockAckReq each";
        "mu-bar" = Acknowledgement::MuBar, "all together after an MU-BAR Trigger";
        "aggregated" = Acknowledgement::Aggregated, "all together, asked for in each PSDU";
    }
}

sojourn_core::keywords! {
    /// The guard intervals of trigger-based PPDUs.
    pub Guard for GuardInterval {
        "gi-1.6us" = GuardInterval::Ns1600, "1.6 µs with twice the basic training symbol";
        "gi-3.2us" = GuardInterval::Ns3200, "3.2 µs with four times the basic training symbol";
    }
}

fn check(ofdma: &Ofdma) -> Result<(), SpecError> {
    let windows = [
        ("ocw_min", ofdma.ocw_min),
        ("ocw_max", ofdma.ocw_max),
        ("mu_cw_min", ofdma.mu_cw_min),
        ("mu_cw_max", ofdma.mu_cw_max),
    ];
    for (name, window) in windows {
        if !(window + 1).is_power_of_two() {
            return Err(SpecError::new(alloc::format!("'{name}' is {window}"))
                .allow(["one less than a power of two"]));
        }
    }
    for (least, most) in [(windows[0], windows[1]), (windows[2], windows[3])] {
        if least.1 > most.1 {
            return Err(SpecError::new(alloc::format!(
                "'{}' is {} and '{}' {}",
                least.0,
                least.1,
                most.0,
                most.1
            ))
            .allow(["a smallest window not above the largest"]));
        }
    }
    if !ofdma.uplink && !ofdma.downlink {
        return Err(SpecError::new("OFDMA in neither direction").allow(["'off' for none"]));
    }
    if ofdma.uplink && ofdma.stations + ofdma.random_units == 0 {
        return Err(SpecError::new("a Trigger frame has no resource unit for anybody")
            .allow(["'stations' or 'random_units' above 0"]));
    }
    Ok(())
}

impl Ofdma {
    /// Reads `off`, or `on` and parameters: `on uplink off proportional-fair`.
    ///
    /// # Errors
    /// Another word, an unknown parameter or a value out of bounds.
    pub fn parse_switched(text: &str) -> Result<Option<Self>, SpecError> {
        let mut words = Words::new(text);
        let error = |problem| SpecError::new(problem).allow(["off", "on [PARAMETER ...]"]);
        match (words.next(), words.clone().next()) {
            (Some("off"), None) => Ok(None),
            (Some("on"), _) => Self::parse(&mut words).map(Some),
            (Some("off"), Some(word)) => Err(error(alloc::format!("'{word}' after 'off'"))),
            (word, _) => {
                let word = word.unwrap_or_default();
                Err(error(alloc::format!("'{word}' is neither on nor off")))
            }
        }
    }

    /// What a channel of `width` has room for.
    ///
    /// # Errors
    /// More resource units are asked for than it has.
    pub(crate) fn check_width(&self, width: Width) -> Result<(), SpecError> {
        let most = Ru::Tones26.per_channel(width);
        if self.random_units + u32::from(self.stations > 0) > most {
            return Err(SpecError::new(alloc::format!(
                "{} units for random access in {width}",
                self.random_units
            ))
            .allow([alloc::format!("0 to {}", most - u32::from(self.stations > 0))]));
        }
        Ok(())
    }
}

/// The resource units of a PPDU, in the order in which stations are given them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    whole: Ru,
    pub(crate) wholes: u32,
    /// The size of the others.
    half: Ru,
    pub(crate) units: u32,
}

impl Layout {
    pub(crate) const fn equal(ru: Ru, units: u32) -> Self {
        Self { whole: ru, wholes: units, half: ru, units }
    }

    /// Units for as many of `stations` as leave none of them empty.
    pub(crate) fn filled(sizes: Sizes, width: Width, stations: u32) -> Option<Self> {
        let all = Ru::ALL.into_iter().map(|ru| (ru, ru.per_channel(width)));
        let filled = all.filter(|(_, units)| (1..=stations).contains(units));
        let (ru, units) = filled.max_by_key(|(_, units)| *units)?;
        match (sizes, ru.half()) {
            (Sizes::Mixed, Some(half)) => {
                let halved = (stations - units).min(units);
                Some(Self { whole: ru, wholes: units - halved, half, units: units + halved })
            }
            _ => Some(Self::equal(ru, units)),
        }
    }

    pub(crate) const fn unit(&self, number: usize) -> Ru {
        if number < self.wholes as usize { self.whole } else { self.half }
    }
}
