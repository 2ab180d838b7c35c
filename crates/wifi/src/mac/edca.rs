//! Enhanced distributed channel access (section 10.23.2), and DCF (section 10.3.4) for stations
//! without QoS.

use alloc::format;

use sojourn_core::{Span, SpecError, Stream, Time, Words};

/// In rising order of priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum AccessCategory {
    Bk,
    #[default]
    Be,
    Vi,
    Vo,
}

impl AccessCategory {
    pub const COUNT: usize = 4;
    pub const ALL: [Self; Self::COUNT] = [Self::Bk, Self::Be, Self::Vi, Self::Vo];

    pub const fn name(self) -> &'static str {
        ["bk", "be", "vi", "vo"][self as usize]
    }
}

/// The parameters of an access category (table 9-155).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    pub cw_min: u16,
    pub cw_max: u16,
    /// Slots after SIFS that the medium must be idle. DCF's DIFS is 2.
    pub aifsn: u8,
    /// How long the medium is kept once it is won; zero for one exchange.
    pub txop_limit: Span,
}

impl Parameters {
    pub const fn new(cw_min: u16, cw_max: u16, aifsn: u8) -> Self {
        Self { cw_min, cw_max, aifsn, txop_limit: Span::ZERO }
    }

    /// CWmin 15 and CWmax 1023 after DIFS, the DCF of the OFDM PHYs.
    pub const DCF: Self = Self::new(15, 1023, 2);

    /// By access category, without TXOP limits.
    pub const EDCA: [Self; AccessCategory::COUNT] =
        [Self::new(15, 1023, 7), Self::new(15, 1023, 3), Self::new(7, 15, 2), Self::new(3, 7, 2)];
}

/// Access parameters as a study writes them; what is left out is as usual.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WrittenParameters {
    cw: Option<(u16, u16)>,
    aifsn: Option<u8>,
    txop_limit: Option<Span>,
}

impl WrittenParameters {
    /// Reads `cw 15 1023 aifsn 3 txop 2.528ms`.
    ///
    /// # Errors
    /// An unknown word or a number out of range; names what is allowed.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        let words = &mut Words::new(text);
        let mut written = Self::default();
        while let Some(word) = words.next() {
            match word {
                "cw" => {
                    let least = words.count(word, 0, 32_767)? as u16;
                    written.cw = Some((least, words.count(word, 0, 32_767)? as u16));
                }
                "aifsn" => written.aifsn = Some(words.count(word, 1, 15)? as u8),
                "txop" => written.txop_limit = Some(words.parse(word, str::parse)?),
                _ => {
                    return Err(SpecError::new(format!("access parameters have no '{word}'"))
                        .near(word, ["cw", "aifsn", "txop"])
                        .allow(["cw MIN MAX", "aifsn N", "txop TIME"]));
                }
            }
        }
        let parameters = written.complete(Parameters::DCF);
        parameters.check()?;
        if !parameters.txop_limit.as_nanos().is_multiple_of(TXOP_UNIT.as_nanos()) {
            let problem = format!("a TXOP of {}", parameters.txop_limit);
            return Err(SpecError::new(problem).allow([format!(
                "whole multiples of {TXOP_UNIT}: 2528us, 4096us, 2080us, 1504us"
            )]));
        }
        Ok(written)
    }

    /// With `usual` for what is left out.
    pub fn complete(self, usual: Parameters) -> Parameters {
        let (cw_min, cw_max) = self.cw.unwrap_or((usual.cw_min, usual.cw_max));
        Parameters {
            cw_min,
            cw_max,
            aifsn: self.aifsn.unwrap_or(usual.aifsn),
            txop_limit: self.txop_limit.unwrap_or(usual.txop_limit),
        }
    }
}

impl Parameters {
    /// # Errors
    /// Windows that are no powers of two less one or in the wrong order, no slot of AIFS, or a TXOP too long.
    pub fn check(&self) -> Result<(), SpecError> {
        let Self { cw_min, cw_max, aifsn, txop_limit } = *self;
        if !(1..=15).contains(&aifsn) {
            return Err(SpecError::new(format!("an AIFSN of {aifsn}")).allow(["1 to 15"]));
        }
        let is_window = |cw: u16| (u32::from(cw) + 1).is_power_of_two();
        if cw_min > cw_max || !is_window(cw_min) || !is_window(cw_max) {
            return Err(SpecError::new(format!("windows of {cw_min} to {cw_max}"))
                .allow(["two powers of two less one, the smaller one first: cw 15 1023"]));
        }
        if txop_limit > MOST_TXOP {
            return Err(SpecError::new(format!("a TXOP of {txop_limit}"))
                .allow([format!("at most {MOST_TXOP}")]));
        }
        Ok(())
    }
}

/// In which the standard counts TXOP limits (section 9.4.2.28).
const TXOP_UNIT: Span = Span::from_micros(32);

/// The field of an EDCA parameter record has 16 bits of 32 µs each (section 9.4.2.28); this is what the
/// default sets of table 9-155 stay below.
const MOST_TXOP: Span = Span::from_millis(10);

/// When counters step down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Countdown {
    /// EDCA: at every slot boundary, including the one at the end of AIFS. There, only a function
    /// whose counter is zero sends.
    #[default]
    Boundaries,
    /// DCF: after every whole slot that was idle, so that a counter stands still while somebody
    /// sends.
    IdleSlots,
}

/// One EDCA function: what contends for the medium for an access category of a station.
#[derive(Clone, Debug)]
pub(crate) struct Edcaf {
    pub(crate) parameters: Parameters,
    /// The medium must be idle this long before the first slot (AIFS or DIFS).
    pub(crate) ifs: Span,
    cw: u16,
    /// Failures since the last success.
    qsrc: u8,
    /// Slots left.
    backoff: u32,
    /// When the first of these slots begins; if there is none, when the frame is sent.
    start: Time,
    /// Packets that wait to be sent.
    pub(crate) pending: u32,
    /// Whether a frame waits.
    pub(crate) has_frames: bool,
    /// Whether it counts down.
    pub(crate) is_active: bool,
    /// Parameters and interframe space to go back to when the MU EDCA timer has run out, and when.
    usual: Option<(Parameters, Span, Time)>,
    /// It does not contend before.
    barred_until: Time,
    random: Stream,
}

impl Edcaf {
    pub(crate) fn new(parameters: Parameters, sifs: Span, slot: Span, random: Stream) -> Self {
        Self {
            ifs: sifs + slot * u64::from(parameters.aifsn),
            cw: parameters.cw_min,
            qsrc: 0,
            backoff: 0,
            start: Time::ZERO,
            pending: 0,
            has_frames: false,
            is_active: false,
            usual: None,
            barred_until: Time::ZERO,
            random,
            parameters,
        }
    }

    /// When it sends if the medium stays idle.
    #[inline]
    pub(crate) fn sends_at(&self, slot: Span) -> Time {
        self.start + slot * u64::from(self.backoff)
    }

    /// Draws a backoff, to be counted from `start`.
    pub(crate) fn back_off(&mut self, start: Time) {
        self.backoff = self.random.below(u64::from(self.cw) + 1) as u32;
        self.start = start.max(self.barred_until);
    }

    /// The medium was idle until `busy` and will count as idle again from `start`.
    #[inline]
    pub(crate) fn suspend(&mut self, busy: Time, start: Time, slot: Span, countdown: Countdown) {
        if busy >= self.start {
            let slots = busy.since(self.start).as_nanos() / slot.as_nanos();
            let steps = match countdown {
                Countdown::Boundaries => slots + 1,
                Countdown::IdleSlots => slots,
            };
            self.backoff = self.backoff.saturating_sub(steps as u32);
        }
        self.start = start.max(self.barred_until);
    }

    /// The medium counts as idle from then on only, since a response did not come.
    pub(crate) fn wait_until(&mut self, idle: Time) {
        self.start = (idle + self.ifs).max(self.barred_until);
    }

    /// A frame arrives at a function without frames, while the medium has been idle long enough, or
    /// will have been at `earliest`. EDCA sends at a slot boundary, DCF at once.
    pub(crate) fn send_soon(&mut self, now: Time, earliest: Time, slot: Span, rule: Countdown) {
        self.backoff = 0;
        self.start = match rule {
            _ if now <= earliest => earliest,
            Countdown::IdleSlots => now,
            Countdown::Boundaries => {
                let slots = now.since(earliest).as_nanos().div_ceil(slot.as_nanos());
                earliest + slot * slots
            }
        };
        self.start = self.start.max(self.barred_until);
    }

    /// Contends with other parameters until then; not at all if their AIFSN is zero
    /// (802.11ax-2021 section 26.2.7).
    pub(crate) fn retreat(&mut self, other: Parameters, sifs: Span, slot: Span, until: Time) {
        let (usual, ifs, _) = self.usual.unwrap_or((self.parameters, self.ifs, until));
        self.usual = Some((usual, ifs, until));
        if other.aifsn == 0 {
            self.barred_until = until;
            return;
        }
        self.parameters = Parameters { txop_limit: usual.txop_limit, ..other };
        self.ifs = sifs + slot * u64::from(other.aifsn);
        self.cw = self.cw.clamp(other.cw_min, other.cw_max);
    }

    /// Contends as usual again if the time for other parameters is over at `now`.
    #[inline]
    pub(crate) fn come_back(&mut self, now: Time) {
        if let Some((parameters, ifs, until)) = self.usual
            && until <= now
        {
            (self.parameters, self.ifs, self.usual) = (parameters, ifs, None);
            self.cw = self.cw.clamp(parameters.cw_min, parameters.cw_max);
        }
    }

    pub(crate) fn succeed(&mut self) {
        self.cw = self.parameters.cw_min;
        self.qsrc = 0;
    }

    /// The window doubles with each of the first `most` failures in a row, or with each; the next one makes it small again
    /// (section 10.23.2.2). True if so.
    pub(crate) fn fail(&mut self, most: Option<u8>) -> bool {
        if most.is_some_and(|most| self.qsrc >= most) {
            self.succeed();
            return true;
        }
        self.qsrc = self.qsrc.saturating_add(1);
        self.cw = self.cw.saturating_mul(2).saturating_add(1).min(self.parameters.cw_max);
        false
    }
}

#[cfg(test)]
mod tests {
    use sojourn_core::{Purpose, StreamAddress};

    use super::*;

    const SLOT: Span = Span::from_micros(9);
    const SIFS: Span = Span::from_micros(16);

    fn edcaf() -> Edcaf {
        let random = StreamAddress { seed: 1, run: 0 }.stream(1, Purpose::Backoff);
        Edcaf::new(Parameters::EDCA[AccessCategory::Be as usize], SIFS, SLOT, random)
    }

    fn at(micros: u64) -> Time {
        Time::from_nanos(1000 * micros)
    }

    #[test]
    fn access_parameters_are_read_or_refused() {
        let of =
            |text| WrittenParameters::parse(text).map(|written| written.complete(Parameters::DCF));
        let read = of("cw 7 15 aifsn 2 txop 4096us").unwrap();
        let txop_limit = Span::from_micros(4096);
        assert_eq!(read, Parameters { txop_limit, ..Parameters::new(7, 15, 2) });
        assert_eq!(of(""), Ok(Parameters::DCF));
        assert_eq!(of("cw 31 63"), Ok(Parameters { cw_min: 31, cw_max: 63, ..Parameters::DCF }));
        for wrong in
            ["cw 15", "cw 15 7", "cw 10 20", "aifsn 0", "txop 1s", "txop 100us", "cwmin 7", "txop"]
        {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn interframe_spaces_are_those_of_5_ghz() {
        let spaces = Parameters::EDCA.map(|parameters| {
            let random = StreamAddress { seed: 1, run: 0 }.stream(1, Purpose::Backoff);
            Edcaf::new(parameters, SIFS, SLOT, random).ifs.as_micros()
        });
        assert_eq!(spaces, [79, 43, 34, 34]);
    }

    /// QSRC grows up to the retry limit, and the window with it up to CWmax; the failure after that resets both. With a limit
    /// of 4 the windows are those of ns-3's `wifi-retransmit`.
    #[test]
    fn the_window_doubles_up_to_its_bound_and_returns_after_the_limit() {
        let windows = |limit, failures: usize| {
            let mut edcaf = edcaf();
            let mut windows = vec![edcaf.cw];
            for _ in 0..failures {
                edcaf.fail(limit);
                windows.push(edcaf.cw);
            }
            windows
        };
        assert_eq!(windows(Some(7), 8), [15, 31, 63, 127, 255, 511, 1023, 1023, 15]);
        assert_eq!(windows(Some(4), 6), [15, 31, 63, 127, 255, 15, 31]);
        assert_eq!(windows(None, 1000).last(), Some(&1023));
    }

    #[test]
    fn edca_counts_the_boundary_at_which_another_sends_and_dcf_does_not() {
        for (rule, left) in [(Countdown::Boundaries, 2), (Countdown::IdleSlots, 3)] {
            let mut edcaf = edcaf();
            edcaf.start = at(43);
            edcaf.backoff = 5;
            // Another function with a backoff of two.
            edcaf.suspend(at(43 + 18), at(1000), SLOT, rule);
            assert_eq!(edcaf.backoff, left);
            assert_eq!(edcaf.sends_at(SLOT), at(1000 + 9 * u64::from(left)));
        }
    }

    #[test]
    fn a_counter_stands_still_while_the_interframe_space_is_cut_short() {
        let mut edcaf = edcaf();
        edcaf.start = at(79);
        edcaf.backoff = 5;
        edcaf.suspend(at(43), at(1000), SLOT, Countdown::Boundaries);
        assert_eq!(edcaf.backoff, 5);
    }

    #[test]
    fn a_frame_for_an_idle_medium_is_sent_at_the_next_boundary() {
        let mut edcaf = edcaf();
        edcaf.send_soon(at(100), at(43), SLOT, Countdown::Boundaries);
        assert_eq!(edcaf.sends_at(SLOT), at(43 + 63));
        edcaf.send_soon(at(100), at(43), SLOT, Countdown::IdleSlots);
        assert_eq!(edcaf.sends_at(SLOT), at(100));
        edcaf.send_soon(at(20), at(43), SLOT, Countdown::IdleSlots);
        assert_eq!(edcaf.sends_at(SLOT), at(43));
    }

    /// When the medium is busy: from, until, and how much longer than AIFS or DIFS bystanders wait afterwards.
    type Busy = (u64, u64, u64);
    /// AIFSN, the medium, when a function is asked to send and its backoff, and when it sends.
    type Access = (u8, &'static [Busy], (u64, u32), u64);

    /// When a function sends that is asked to at `request`, with this backoff if the medium was busy then. SIFS is 6 µs, a
    /// slot 4.
    fn granted(rule: Countdown, aifsn: u8, busy: &[Busy], (request, backoff): (u64, u32)) -> u64 {
        let slot = Span::from_micros(4);
        let random = StreamAddress { seed: 1, run: 0 }.stream(1, Purpose::Backoff);
        let mut edcaf =
            Edcaf::new(Parameters::new(15, 1023, aifsn), Span::from_micros(6), slot, random);
        let idle = |until: u64, more: u64| at(until + more) + edcaf.ifs;
        let begun: Vec<_> = busy.iter().filter(|busy| busy.0 <= request).collect();
        let (_, until, more) = **begun.last().expect("the medium was busy before");
        let first = idle(until, more);
        let others: Vec<_> =
            busy[begun.len()..].iter().map(|busy| (at(busy.0), idle(busy.1, busy.2))).collect();
        if request < until {
            (edcaf.backoff, edcaf.start) = (backoff, first);
        } else {
            edcaf.send_soon(at(request), first, slot, rule);
        }
        for (busy, idle) in others {
            if edcaf.sends_at(slot) > busy {
                edcaf.suspend(busy, idle, slot, rule);
            }
        }
        edcaf.sends_at(slot).since(Time::ZERO).as_micros()
    }

    /// The situations of ns-3's tests of channel access, `wifi-devices-dcf` and `wifi-devices-edca`. EIFS is 16 µs longer
    /// there; a NAV is a busy medium. A DCF that is asked while the medium is idle waits DIFS from then on in ns-3; by section
    /// 10.3.4.2 it has waited already, so that those situations have other answers here.
    #[test]
    fn channels_are_accessed_when_ns3s_tests_have_it() {
        let dcf: [Access; 8] = [
            (1, &[(20, 60, 0), (80, 100, 0)], (30, 4), 118),
            (1, &[(20, 60, 0)], (30, 0), 70),
            (1, &[(20, 60, 0), (60, 100, 0)], (30, 0), 110),
            (1, &[(20, 60, 16)], (30, 4), 102),
            // Its EIFS ends with the next frame.
            (1, &[(20, 60, 16), (69, 75, 0)], (30, 4), 101),
            (1, &[(20, 75, 0)], (30, 2), 93),
            (2, &[(20, 60, 0), (78, 86, 0)], (30, 3), 108),
            // After an internal collision at 78 it draws 1 while the other function sends.
            (3, &[(78, 88, 0)], (78, 1), 110),
        ];
        let edca: [Access; 8] = [
            (1, &[(20, 50, 0)], (52, 0), 60),
            (1, &[(20, 50, 0)], (58, 0), 60),
            (1, &[(20, 50, 0)], (62, 0), 64),
            (1, &[(20, 50, 16)], (55, 0), 76),
            (1, &[(20, 50, 16)], (70, 0), 76),
            (1, &[(20, 50, 16)], (82, 0), 84),
            (1, &[(20, 50, 0)], (30, 4), 76),
            (1, &[(20, 50, 0), (61, 71, 0), (87, 97, 0)], (30, 3), 107),
        ];
        for (rule, cases) in [(Countdown::IdleSlots, dcf), (Countdown::Boundaries, edca)] {
            for (aifsn, busy, asked, expected) in cases {
                let granted = granted(rule, aifsn, busy, asked);
                assert_eq!(granted, expected, "{rule:?}, AIFSN {aifsn}, {busy:?}, {asked:?}");
            }
        }
    }
}
