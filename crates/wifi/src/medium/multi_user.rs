//! Exchanges with several stations at once (802.11ax-2021 clause 26.5). One event each, as with one
//! station: it begins, and its frames arrive.

use alloc::boxed::Box;
use alloc::vec::Vec;

use sojourn_core::{Span, Stream, Time};
use sojourn_qdisc::Reshape;

use super::attempt::{Attempt, Ppdu, Serving, Several, What, Within};
use super::exchange::{Heard, lowest_rate};
use super::{CATEGORIES, Config, LinkCounts, Medium, Txop};
use crate::mac::aggregation::Psdu;
use crate::mac::edca::{AccessCategory, Parameters};
use crate::mac::frames;
use crate::mac::response::control_mode;
use crate::ofdma::{
    ASKED_BLOCK_ACK, ASKED_REQUEST, Acknowledgement, Answers, Layout, Ofdma, RandomAccess,
    STATUS_REPORT, Scheduler, Sizes, Trigger, multi_station_block_ack,
};
use crate::phy::{Format, GuardInterval, HeLtf, Mode, Ru, Scheduled, Width};
use crate::port::Listener;

/// Queue sizes are reported in units of so many octets (section 9.2.4.5.6).
const REPORTED_IN: u32 = 256;
/// HE-SIG-B has the first six modulations (table 27-55).
const SIG_B_HIGHEST: u8 = 5;
/// A Basic Trigger frame is not sent when less than so many octets would fit the rest of a TXOP.
const LEAST_ASKED: u32 = 500;

/// What the access point keeps.
pub(crate) struct MultiUser {
    config: Ofdma,
    down: Scheduler,
    up: Scheduler,
    /// By station.
    access: Vec<RandomAccess>,
    /// Stations that the PPDU which is put together is for.
    chosen: Vec<u16>,
    psdus: Vec<MuPsdu>,
    /// When it asks for the medium for a Trigger frame.
    trigger_at: Time,
    pub(super) is_trigger_due: bool,
    /// When it last asked stations, or could have.
    asked_at: Time,
    last: Last,
    /// No station had anything to send when it was asked last.
    is_polling_over: bool,
    random: Stream,
}

/// What the access point had the medium for last, where Trigger frames go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    Uplink,
    /// It sent to several stations.
    Several,
    /// It sent to one station.
    One,
}

/// What one resource unit carries.
#[derive(Clone, Copy, Debug)]
struct MuPsdu {
    station: u16,
    ppdu: Ppdu,
    mode: Mode,
    /// The unit of random access.
    random_unit: Option<u32>,
    /// It is no data but a BlockAckReq.
    is_request: bool,
}

impl MultiUser {
    pub(super) fn new(config: &Config, random: &mut Stream) -> Option<Box<Self>> {
        let ofdma = config.ofdma.clone()?;
        let stations = config.stations.len();
        let mut random = random.fork();
        let scheduler = || Scheduler::new(ofdma.schedule, stations, ofdma.rate_window);
        Some(Box::new(Self {
            down: scheduler(),
            up: scheduler(),
            access: (0..stations).map(|_| RandomAccess::new(&ofdma, &mut random)).collect(),
            chosen: Vec::new(),
            psdus: Vec::new(),
            trigger_at: match ofdma.uplink && ofdma.poll {
                true => Time::ZERO + ofdma.interval,
                false => Time::NEVER,
            },
            is_trigger_due: false,
            asked_at: Time::ZERO,
            last: Last::One,
            is_polling_over: true,
            random,
            config: ofdma,
        }))
    }

    pub(super) fn trigger_at(&self) -> Time {
        self.trigger_at
    }

    /// A station has something to send. The access point finds out when it asks next, an interval or several after it last
    /// did; when it would be told that nobody has anything, it does not.
    pub(super) fn wants_trigger(&mut self, now: Time) {
        if self.lacks_trigger() {
            let interval = self.config.interval;
            let passed = now.since(self.asked_at).as_nanos().div_ceil(interval.as_nanos());
            self.trigger_at = self.asked_at + interval * passed;
        }
    }

    /// Whether a Trigger frame must be asked for when a station has something to send.
    pub(super) fn lacks_trigger(&self) -> bool {
        self.config.uplink && !self.is_trigger_due && self.trigger_at.is_never()
    }

    /// The access point has had the medium in a TXOP for which there is a limit until `now`: it waits from here on until it
    /// asks again.
    pub(super) fn has_had_medium(&mut self, now: Time) {
        self.asked_at = now;
        if self.config.uplink && !self.is_trigger_due && !self.trigger_at.is_never() {
            self.trigger_at = now + self.config.interval;
        }
    }

    /// Whether it draws a backoff to ask for the medium while that is busy.
    pub(super) fn backs_off(&self) -> bool {
        self.config.trigger_backoff
    }

    /// Whether it asks stations again in the rest of a TXOP.
    pub(super) fn goes_on_polling(&self) -> bool {
        self.config.poll && self.last == Last::Uplink && !self.is_polling_over
    }

    /// The time for a Trigger frame has come.
    pub(super) fn come_due(&mut self) {
        (self.trigger_at, self.is_trigger_due) = (Time::NEVER, true);
    }

    pub(super) fn sends_down(&self) -> bool {
        self.config.downlink
    }

    /// The access point has sent to one station.
    pub(super) fn has_served_one(&mut self, ac: usize) {
        if ac == AccessCategory::Be as usize {
            self.last = Last::One;
        }
    }

    /// Whether it is the uplink's turn: the two directions take turns, but the uplink has to wait for a Trigger
    /// frame to be due if the access point sends to one station at a time.
    fn is_turn_of_uplink(&self) -> bool {
        match self.last {
            Last::Uplink => false,
            Last::Several => true,
            Last::One => self.is_trigger_due,
        }
    }
}

/// A downlink PPDU that is planned.
struct DownPlan {
    layout: Layout,
    width: Width,
    scheduled: Scheduled,
    guard: GuardInterval,
    ltf: HeLtf,
    /// The longest of those of its units.
    preamble: Span,
    response: Span,
    protection: Span,
    /// Octets of each PSDU that are kept for a Trigger frame.
    reserved: u32,
    /// How long the PPDU may take.
    room: Span,
}

impl DownPlan {
    /// The mode of a unit, for a station that has `own` on the whole channel.
    fn mode(&self, own: Mode, number: usize) -> Mode {
        let (ru, guard, ltf) = (self.layout.unit(number), self.guard, self.ltf);
        Mode::he_mu(own.mcs(), own.streams(), self.width, ru, guard, ltf, self.scheduled)
            .expect("a mode for the whole channel has one for each of its units")
    }
}

fn is_he(mode: &Mode) -> bool {
    mode.format() == Format::HeSu
}

impl<P: Reshape + Send> Medium<P> {
    /// What the access point sends: to several stations, for several stations, or to one.
    pub(super) fn serve(
        &mut self,
        now: Time,
        ac: usize,
        within: Within,
        listener: &mut impl Listener<P>,
    ) -> Option<Serving> {
        let mut multi = self.multi.take()?;
        let is_best_effort = ac == AccessCategory::Be as usize;
        let mut serving = None;
        if is_best_effort && (multi.is_turn_of_uplink() || self.edcafs[ac].pending == 0) {
            serving = self.serve_up(&mut multi, now, within);
        }
        serving = serving.or_else(|| self.serve_down(&mut multi, now, ac, within, listener));
        if serving.is_none() && is_best_effort && multi.is_trigger_due {
            serving = self.serve_up(&mut multi, now, within);
        }
        self.multi = Some(multi);
        serving
    }

    fn serve_up(&mut self, multi: &mut MultiUser, now: Time, within: Within) -> Option<Serving> {
        let attempt = self.plan_uplink(multi, now, within);
        // If nothing came of it, the station for which a Trigger was due has left, or has sent by
        // itself.
        multi.is_trigger_due &= attempt.is_some();
        if attempt.is_none() && multi.config.poll && multi.trigger_at.is_never() {
            multi.trigger_at = now + multi.config.interval;
        }
        attempt.map(Serving::Several)
    }

    /// The station whose turn it is by the order of the queues decides: if it fits a PPDU for several stations, others
    /// join it; if not, it is served alone.
    fn serve_down(
        &mut self,
        multi: &mut MultiUser,
        now: Time,
        ac: usize,
        within: Within,
        listener: &mut impl Listener<P>,
    ) -> Option<Serving> {
        if !multi.config.downlink {
            return self.serve_one(now, 0, ac, within, listener).map(Serving::One);
        }
        self.in_turn(0, ac, |medium, station| {
            let leader = station as u16;
            let several = medium.plan_downlink(multi, now, ac, leader, within.left, listener);
            if let Some(attempt) = several {
                return Some(Serving::Several(attempt));
            }
            let ppdu = medium.put_together_for(now, (0, station, ac), within, listener)?;
            let mode = medium.links[ppdu.link as usize].sending.mode;
            let bits = 8.0 * f64::from(ppdu.psdu.octets(&mode));
            multi.down.serve([(leader, bits)].into_iter());
            Some(Serving::One(ppdu))
        })
    }

    /// A PPDU with a PSDU for each of several stations, if it can be one of `leader` and others.
    fn plan_downlink(
        &mut self,
        multi: &mut MultiUser,
        now: Time,
        ac: usize,
        leader: u16,
        left: Span,
        listener: &mut impl Listener<P>,
    ) -> Option<Attempt> {
        let category = AccessCategory::ALL[ac];
        let width = self.width()?;
        if !is_he(&self.config.stations[usize::from(leader)].down.mode) {
            return None;
        }
        multi.chosen.clear();
        for station in 0..self.config.stations.len() {
            let number = Self::link_index(0, station, ac);
            self.adapt(now, number);
            let link = &self.links[number];
            let has_frames =
                link.agreement.to_repeat > 0 || self.queues[0].has_packets(station, category);
            if has_frames && !link.agreement.bar_due && is_he(&link.sending.mode) {
                multi.chosen.push(station as u16);
            }
        }
        if !multi.chosen.contains(&leader) {
            return None;
        }
        let rate = |station: u16| {
            let link = Self::link_index(0, usize::from(station), ac);
            self.links[link].sending.mode.rate().as_mbps()
        };
        multi.down.order(&mut multi.chosen, rate);
        multi.down.lead(&mut multi.chosen, leader);
        // Whoever does not fit its unit takes part in none, and the others' units are larger without it.
        let plan = loop {
            let plan = self.lay_out(multi, ac, left, width)?;
            let count = plan.layout.units as usize;
            let last = multi.chosen[count - 1];
            multi.down.sort_by_owed(&mut multi.chosen[..count]);
            let mut unfit = Vec::new();
            for number in 0..count {
                let station = multi.chosen[number];
                if !self.fits(now, &plan, (number, station), ac, listener) {
                    unfit.push(station);
                }
            }
            if unfit.contains(&leader) {
                self.forget_dropped(0);
                return None;
            }
            if unfit.is_empty() {
                multi.chosen.truncate(count);
                multi.down.passes(last);
                multi.down.note_sizes(&multi.chosen, plan.layout.wholes as usize);
                break plan;
            }
            multi.chosen.retain(|station| !unfit.contains(station));
        };
        let DownPlan { layout, preamble, reserved, response, protection, .. } = plan;
        multi.psdus.clear();
        let mut longest = Span::ZERO;
        for number in 0..multi.chosen.len() {
            let station = multi.chosen[number];
            let (mode, limit) = self.on_unit(&plan, (number, station), ac);
            let place = (0, usize::from(station), ac);
            let ppdu = self.build_in(now, place, &mode, limit, reserved, false, listener);
            let Some(mut ppdu) = ppdu else { continue };
            if reserved > 0 {
                ppdu.psdu.add_control(Trigger::BlockAck.octets(1));
            }
            let time = mode.txtime(ppdu.psdu.octets(&mode)) + (preamble - mode.preamble());
            longest = longest.max(time);
            multi.psdus.push(MuPsdu { station, ppdu, mode, random_unit: None, is_request: false });
        }
        debug_assert_eq!(multi.psdus.len(), layout.units as usize);
        let bits = |psdu: &MuPsdu| 8.0 * f64::from(psdu.ppdu.psdu.octets(&psdu.mode));
        multi.down.serve(multi.psdus.iter().map(|psdu| (psdu.station, bits(psdu))));
        let what = What::Several(Several::Down { protection, time: longest, response });
        let time = self.first_frame(multi, longest);
        Some(Attempt { edcaf: ac as u16, what, time })
    }

    /// Units for as many of the chosen stations as come first; `None` if that is one.
    fn lay_out(&self, multi: &MultiUser, ac: usize, left: Span, width: Width) -> Option<DownPlan> {
        let wanted = multi.config.stations.min(multi.chosen.len() as u32);
        let layout = Layout::filled(multi.config.sizes, width, wanted)?;
        let count = layout.units;
        if count < 2 {
            return None;
        }
        let chosen = &multi.chosen[..count as usize];
        let mode_of =
            |station: &u16| self.links[Self::link_index(0, usize::from(*station), ac)].sending.mode;
        let lowest = chosen.iter().map(|station| mode_of(station).mcs()).min()?;
        // Guard interval and training are those of all.
        let (ltf, guard) = HeLtf::of_all(chosen.iter().map(mode_of));
        let mut plan = DownPlan {
            layout,
            width,
            scheduled: Scheduled { stations: count, sig_b_mcs: lowest.min(SIG_B_HIGHEST) },
            guard,
            ltf,
            preamble: Span::ZERO,
            response: self.downlink_response(multi, chosen, ac, &layout),
            protection: self.protection(multi, chosen),
            reserved: match multi.config.acknowledgement {
                Acknowledgement::Aggregated => frames::subframe(Trigger::BlockAck.octets(1)),
                _ => 0,
            },
            room: Span::ZERO,
        };
        plan.room = left.saturating_sub(plan.response + plan.protection);
        plan.preamble =
            chosen.iter().map(|station| plan.mode(mode_of(station), 0).preamble()).max()?;
        Some(plan)
    }

    /// How a station is sent to on its unit, and how long that may take.
    fn on_unit(&self, plan: &DownPlan, (number, station): (usize, u16), ac: usize) -> (Mode, Span) {
        let own = self.links[Self::link_index(0, usize::from(station), ac)].sending.mode;
        let mode = plan.mode(own, number);
        (mode, plan.room.saturating_sub(plan.preamble - mode.preamble()))
    }

    /// Whether the next frame of a station fits its unit; false if there is none after all, because CoDel dropped it.
    fn fits(
        &mut self,
        now: Time,
        plan: &DownPlan,
        (number, station): (usize, u16),
        ac: usize,
        listener: &mut impl Listener<P>,
    ) -> bool {
        let (mode, limit) = self.on_unit(plan, (number, station), ac);
        let place = (0, usize::from(station), ac);
        self.next_fits(now, place, &mode, limit, plan.reserved, listener)
    }

    /// MU-RTS and CTS with the spaces after them, if they are sent (section 26.2.6).
    fn protection(&self, multi: &MultiUser, stations: &[u16]) -> Span {
        if !multi.config.mu_rts {
            return Span::ZERO;
        }
        let sifs = self.config.sifs;
        self.trigger_time(multi, stations, Trigger::Rts, 0) + sifs + Self::cts_time() + sifs
    }

    /// All answer an MU-RTS at 6 Mbit/s, so that their frames are one.
    fn cts_time() -> Span {
        lowest_rate().txtime(frames::CTS)
    }

    /// How long the first frame of an exchange is on the air, an MU-RTS or what would come first without it.
    fn first_frame(&self, multi: &MultiUser, otherwise: Span) -> Span {
        match multi.config.mu_rts {
            true => self.trigger_time(multi, &multi.chosen, Trigger::Rts, 0),
            false => otherwise,
        }
    }

    /// An exchange was protected.
    fn count_protection(&mut self, protection: Span) {
        if !protection.is_zero() {
            let cts = Self::cts_time();
            self.air.cts += cts;
            self.air.rts += protection - cts - self.config.sifs * 2;
        }
    }

    /// From the end of a downlink PPDU to that of its last acknowledgement (section 26.4.4).
    fn downlink_response(
        &self,
        multi: &MultiUser,
        stations: &[u16],
        ac: usize,
        layout: &Layout,
    ) -> Span {
        let sifs = self.config.sifs;
        let sending =
            |station: &u16| &self.links[Self::link_index(0, usize::from(*station), ac)].sending;
        let window = u32::from(self.config.limits.window);
        let together = || {
            let block_ack = ASKED_BLOCK_ACK + frames::block_ack(window);
            sifs + self.asked_of_all(multi, stations, layout, block_ack)
        };
        match multi.config.acknowledgement {
            Acknowledgement::InTurn => {
                let mut time = Span::ZERO;
                for (number, station) in stations.iter().enumerate() {
                    let sending = sending(station);
                    if number > 0 {
                        time += sifs + sending.block_ack_req;
                    }
                    time += sifs + sending.block_ack;
                }
                time
            }
            Acknowledgement::MuBar => {
                sifs + self.trigger_time(multi, stations, Trigger::BlockAck, 0) + together()
            }
            Acknowledgement::Aggregated => together(),
        }
    }

    /// How a station sends on a unit that it is given.
    fn asked(&self, multi: &MultiUser, mode: &Mode, ru: Ru) -> Mode {
        let guard = multi.config.guard;
        let (mcs, streams, width) = (mode.mcs(), mode.streams(), mode.width());
        let ltf = match guard {
            GuardInterval::Ns3200 => HeLtf::FourTimes,
            _ => HeLtf::Twice,
        };
        Mode::he_tb(mcs, streams, width, ru, guard, ltf)
            .expect("a mode for the whole channel has one for each of its units")
    }

    /// How long it takes when each of these stations is asked for so many octets on its unit.
    fn asked_of_all(
        &self,
        multi: &MultiUser,
        stations: &[u16],
        layout: &Layout,
        octets: u32,
    ) -> Span {
        let modes = stations.iter().enumerate().map(|(number, station)| {
            self.asked(multi, &self.up_mode(usize::from(*station)), layout.unit(number))
        });
        let data = modes.map(|mode| mode.txtime(octets) - mode.preamble());
        self.training(multi, stations) + data.max().unwrap_or(Span::ZERO)
    }

    /// What the PPDUs begin with that these stations are asked for: a Trigger frame has one number of HE-LTFs for all of them
    /// (section 9.3.1.22.1), which must do for the one with most streams.
    fn training(&self, multi: &MultiUser, stations: &[u16]) -> Span {
        let modes = stations.iter().map(|station| self.up_mode(usize::from(*station)));
        let preambles = modes.map(|mode| self.asked(multi, &mode, Ru::Tones26).preamble());
        preambles.max().unwrap_or(Span::ZERO)
    }

    /// A Trigger frame for these stations and for units of random access, in a mode that all of
    /// them understand.
    fn trigger_time(
        &self,
        multi: &MultiUser,
        stations: &[u16],
        trigger: Trigger,
        random_units: u32,
    ) -> Span {
        let mode_of = |station: usize| control_mode(&self.config.stations[station].down.mode);
        let slowest = |modes: &mut dyn Iterator<Item = Mode>| modes.min_by_key(Mode::rate);
        let mode = match random_units {
            0 => slowest(&mut stations.iter().map(|station| mode_of(usize::from(*station)))),
            _ => slowest(&mut (0..self.config.stations.len()).map(mode_of)),
        };
        let users = stations.len() as u32 + random_units;
        let is_slow = users > 1
            && matches!(trigger, Trigger::Basic | Trigger::BufferStatus)
            && multi.config.slow_triggers;
        let mode = if is_slow { Some(lowest_rate()) } else { mode };
        let octets = trigger.octets(users);
        mode.map_or(Span::ZERO, |mode| mode.txtime(octets))
    }

    /// The width that stations of HE share.
    fn width(&self) -> Option<Width> {
        let modes = self.config.stations.iter().map(|station| &station.down.mode);
        modes.filter(|mode| is_he(mode)).map(Mode::width).min()
    }

    /// The category of highest priority in which a station has something to send.
    fn most_urgent(&self, station: usize, now: Time) -> Option<usize> {
        if !self.is_present(station, now) {
            return None;
        }
        (0..CATEGORIES).rev().find(|ac| self.edcafs[(station + 1) * CATEGORIES + ac].pending > 0)
    }

    /// Plans Trigger frames and what they ask for. Stations send nothing yet: only the first frame is
    /// settled before it is known whether it collides.
    fn plan_uplink(&mut self, multi: &mut MultiUser, now: Time, within: Within) -> Option<Attempt> {
        if !multi.config.uplink {
            return None;
        }
        let width = self.width()?;
        let sifs = self.config.sifs;
        let stations = self.config.stations.len();
        let asks_status = multi.config.status && multi.config.stations > 0;
        let is_pending = |station: usize| self.most_urgent(station, now).is_some();
        let polls = multi.config.poll && asks_status;
        if !polls && !(0..stations).any(is_pending) {
            return None;
        }
        multi.chosen.clear();
        for station in 0..stations {
            // If the access point does not ask, it knows from earlier frames who has more.
            let is_known = asks_status || is_pending(station);
            if is_known && is_he(&self.config.stations[station].up.mode) {
                multi.chosen.push(station as u16);
            }
        }
        let rate = |station: u16| self.up_mode(usize::from(station)).rate().as_mbps();
        multi.up.order(&mut multi.chosen, rate);
        let random_units = multi.config.random_units;
        let most = Ru::Tones26.per_channel(width) - random_units;
        let wanted = multi.config.stations.min(multi.chosen.len() as u32).min(most);
        let layout = layout(multi.config.sizes, width, wanted, random_units)?;
        multi.chosen.truncate(layout.units as usize);
        let mut status = Span::ZERO;
        let mut time = Span::ZERO;
        if asks_status {
            time = self.trigger_time(multi, &multi.chosen, Trigger::BufferStatus, 0);
            let reports = self.asked_of_all(multi, &multi.chosen, &layout, STATUS_REPORT);
            status = time + sifs + reports;
        }
        if status.is_zero() {
            time = self.trigger_time(multi, &multi.chosen, Trigger::Basic, random_units);
        }
        let protection = self.protection(multi, &multi.chosen);
        // What is asked for must fit the TXOP, or it is asked for in the next one.
        let reports = if status.is_zero() { Span::ZERO } else { status + sifs };
        let is_limited = !self.edcafs[AccessCategory::Be as usize].parameters.txop_limit.is_zero();
        let least = || protection + reports + self.least(multi, &layout, random_units);
        if is_limited && least() > within.left {
            return None;
        }
        let time = self.first_frame(multi, time);
        let what = What::Several(Several::Up { protection, status, layout, random_units });
        Some(Attempt { edcaf: AccessCategory::Be as u16, what, time })
    }

    /// Several stations are served, and nobody else sends.
    pub(super) fn exchange_several(
        &mut self,
        now: Time,
        attempt: &Attempt,
        several: Several,
        txop: Txop,
        winners: &[u16],
        listener: &mut impl Listener<P>,
    ) {
        let Some(mut multi) = self.multi.take() else { return };
        let protection = several.protection();
        self.count_protection(protection);
        let start = now + protection;
        let (end, at, is_answered) = match several {
            Several::Down { time, response, .. } => {
                self.settle_down(&mut multi, start, time, response)
            }
            Several::Up { status, layout, random_units, .. } => {
                self.settle_up(&mut multi, start, (status, layout, random_units), txop, listener)
            }
        };
        let is_down = matches!(several, Several::Down { .. });
        if is_down {
            multi.last = Last::Several;
        } else {
            multi.last = Last::Uplink;
            multi.is_polling_over = multi.psdus.is_empty();
            multi.asked_at = now;
        }
        // The next request for the medium counts from here.
        if multi.config.uplink {
            let is_pending = (0..self.config.stations.len())
                .any(|station| self.most_urgent(station, now).is_some());
            multi.is_trigger_due &= is_down && is_pending;
            if !multi.is_trigger_due {
                let asks = is_pending || multi.config.poll;
                multi.trigger_at = if asks { now + multi.config.interval } else { Time::NEVER };
            }
        }
        let stations = multi.psdus.len();
        self.share(&multi, !is_down, stations, end.since(now), |counts| &mut counts.exchanges);
        self.multi = Some(multi);
        let heard = if is_answered { Heard::Answered } else { Heard::Nothing };
        self.conclude(now, attempt.edcaf, txop, winners, (end, at), heard, false);
    }

    /// Divides time for which the medium was used among the ports that it was used for.
    fn share(
        &mut self,
        multi: &MultiUser,
        is_up: bool,
        stations: usize,
        time: Span,
        of: fn(&mut LinkCounts) -> &mut Span,
    ) {
        let share = time / stations.max(1) as u64;
        let mut rest = time;
        for psdu in multi.psdus[..stations].iter().skip(1) {
            *of(&mut self.counts[2 * usize::from(psdu.station) + usize::from(is_up)]) += share;
            rest = rest.saturating_sub(share);
        }
        let first = multi.psdus[..stations].first().map(|psdu| psdu.station);
        let first = first.or(multi.chosen.first().copied()).unwrap_or(0);
        *of(&mut self.counts[2 * usize::from(first) + usize::from(is_up)]) += rest;
    }

    /// Settles a downlink PPDU: returns the end of what was sent, the end that bystanders expect, and
    /// whether anybody answered.
    fn settle_down(
        &mut self,
        multi: &mut MultiUser,
        now: Time,
        time: Span,
        response: Span,
    ) -> (Time, Time, bool) {
        let end = now + time;
        self.air.attempts += 1;
        self.count_several(multi, time, multi.psdus.len() as u64);
        let mut received = 0;
        for psdu in &multi.psdus {
            let link = psdu.ppdu.link as usize;
            self.counts[link / CATEGORIES].attempts += 1;
            let arrived = self.receive(&psdu.ppdu, end, end);
            if arrived == 0 {
                self.ask_for_block_ack(link, false);
            }
            received += arrived;
        }
        self.answering = (0, Time::NEVER);
        if received == 0 {
            return (end, end + response, false);
        }
        let sifs = self.config.sifs;
        match multi.config.acknowledgement {
            Acknowledgement::InTurn => {
                for (number, psdu) in multi.psdus.iter().enumerate() {
                    let sending = &self.links[psdu.ppdu.link as usize].sending;
                    self.air.block_ack += sending.block_ack;
                    if number > 0 {
                        self.air.block_ack_req += sending.block_ack_req;
                    }
                }
            }
            Acknowledgement::MuBar => {
                let trigger = self.trigger_time(multi, &multi.chosen, Trigger::BlockAck, 0);
                self.air.trigger += trigger;
                self.air.block_ack += response - trigger - sifs * 2;
            }
            Acknowledgement::Aggregated => self.air.block_ack += response - sifs,
        }
        (end + response, end + response, true)
    }

    /// Counts PSDUs that are on the air together for `time`, on one of `units` each.
    fn count_several(&mut self, multi: &MultiUser, time: Span, units: u64) {
        self.air.data += time;
        for psdu in multi.psdus.iter().filter(|psdu| !psdu.is_request) {
            let link = psdu.ppdu.link as usize;
            let counts = &mut self.counts[link / CATEGORIES];
            counts.airtime += time / units;
            counts.ppdus += 1;
            counts.mpdus += u64::from(psdu.ppdu.psdu.mpdus);
            counts.psdu_octets += u64::from(psdu.ppdu.psdu.octets(&psdu.mode));
            self.charge(link, time / units);
        }
    }

    /// Settles what the stations that were asked send, and its acknowledgement (section 26.5.2).
    fn settle_up(
        &mut self,
        multi: &mut MultiUser,
        now: Time,
        (status, planned, random_units): (Span, Layout, u32),
        txop: Txop,
        listener: &mut impl Listener<P>,
    ) -> (Time, Time, bool) {
        let sifs = self.config.sifs;
        let mut at = now;
        multi.psdus.clear();
        let mut units = planned;
        if !status.is_zero() {
            let asked = self.trigger_time(multi, &multi.chosen, Trigger::BufferStatus, 0);
            self.air.trigger += asked + (status - asked - sifs);
            at += status;
            multi.chosen.retain(|station| self.most_urgent(usize::from(*station), now).is_some());
            if multi.chosen.is_empty() && random_units == 0 {
                return (at, at, true);
            }
            at += sifs;
            // Those that have something share the whole channel.
            let reported = multi.chosen.len() as u32;
            let width = self.width();
            let shared =
                width.and_then(|width| layout(multi.config.sizes, width, reported, random_units));
            units = shared.unwrap_or(planned);
            multi.chosen.truncate(units.units as usize);
        }
        if let Some(last) = multi.chosen.last() {
            multi.up.passes(*last);
        }
        let trigger = self.trigger_time(multi, &multi.chosen, Trigger::Basic, random_units);
        let limit = self.edcafs[usize::from(txop.edcaf)].parameters.txop_limit;
        self.air.trigger += trigger;
        at += trigger;
        let asked_until = at;
        let most_answers =
            Answers { bitmaps: multi.chosen.len() as u32 + random_units, all_acks: 0 };
        let mut room = multi.config.ppdu_time;
        if !limit.is_zero() {
            let response = sifs * 2 + self.block_ack_of_several(most_answers);
            room = room.min(txop.until.since(at).saturating_sub(response));
        }
        multi.up.sort_by_owed(&mut multi.chosen);
        multi.up.note_sizes(&multi.chosen, units.wholes as usize);
        let scheduled = multi.chosen.len();
        if random_units > 0 {
            self.contend_for_units(multi, now, random_units);
        }
        let training = self.training(multi, &multi.chosen);
        let mut time = Span::ZERO;
        let mut random_unit = None;
        for number in 0..multi.chosen.len() {
            let station = multi.chosen[number];
            if number >= scheduled {
                random_unit =
                    multi.access[usize::from(station)].offered(random_units, &mut multi.random);
                if random_unit.is_none() {
                    continue;
                }
            }
            let (station, ru) = (usize::from(station), units.unit(number));
            let Some((psdu, wanted)) =
                self.answer(multi, now, (station, ru), (training, room), listener)
            else {
                continue;
            };
            if number < scheduled {
                time = time.max(wanted);
            }
            multi.psdus.push(MuPsdu { random_unit, ..psdu });
        }
        if multi.psdus.is_empty() {
            // Nobody needs to answer an offer of random access.
            return (asked_until, asked_until, scheduled == 0);
        }
        if scheduled == 0 || time.is_zero() {
            let longest = multi.psdus.iter().map(|psdu| psdu.mode.whole_symbols(training, room));
            time = longest.max().unwrap_or(room);
        }
        at += sifs;
        at += time;
        self.count_several(multi, time, u64::from(scheduled as u32 + random_units).max(1));
        let mut answers = Answers::default();
        for number in 0..multi.psdus.len() {
            let psdu = multi.psdus[number];
            let is_alone = psdu.random_unit.is_none()
                || multi.psdus.iter().filter(|other| other.random_unit == psdu.random_unit).count()
                    == 1;
            let received = match is_alone {
                true if psdu.is_request => 1,
                true => self.receive(&psdu.ppdu, at, at),
                false if psdu.is_request => {
                    self.set_bar_due(psdu.ppdu.link as usize, true);
                    0
                }
                false => {
                    let counts = &mut self.counts[psdu.ppdu.link as usize / CATEGORIES];
                    counts.failed += u64::from(psdu.ppdu.psdu.mpdus);
                    self.lose(&psdu.ppdu, at);
                    0
                }
            };
            if multi.config.all_ack && !psdu.is_request && received == psdu.ppdu.psdu.mpdus {
                answers.all_acks += 1;
            } else if received > 0 {
                answers.bitmaps += 1;
            }
            let station = usize::from(psdu.station);
            if psdu.random_unit.is_some() {
                self.air.random_attempts += 1;
                self.air.random_collided += u64::from(!is_alone);
                let counts = &mut self.counts[psdu.ppdu.link as usize / CATEGORIES];
                counts.attempts += 1;
                counts.collided += u64::from(!is_alone);
                let access = &mut multi.access[station];
                match received > 0 {
                    true => access.succeed(&multi.config, &mut multi.random),
                    false => access.fail(&multi.config, &mut multi.random),
                }
            }
            let index = self.edcaf_of(psdu.ppdu.link as usize);
            self.edcafs[index].has_frames = self.edcafs[index].pending > 0;
            if received > 0 && !multi.config.mu_edca_time.is_zero() {
                let one = Answers { bitmaps: 1, all_acks: 0 };
                let until = at + sifs + self.block_ack_of_several(one) + multi.config.mu_edca_time;
                let slot = self.config.slot;
                self.edcafs[index].retreat(mu_edca(&multi.config), sifs, slot, until);
            }
        }
        let bits = |psdu: &MuPsdu| 8.0 * f64::from(psdu.ppdu.psdu.octets(&psdu.mode));
        let asked =
            multi.psdus.iter().filter(|psdu| psdu.random_unit.is_none() && !psdu.is_request);
        multi.up.serve(asked.map(|psdu| (psdu.station, bits(psdu))));
        self.answering = (0, Time::NEVER);
        if answers == Answers::default() {
            return (at, at, scheduled == 0);
        }
        let response = self.block_ack_of_several(answers);
        self.air.block_ack += response;
        (at + sifs + response, at + sifs + response, true)
    }

    /// How long a Basic Trigger, the least that it asks for and what acknowledges that take.
    fn least(&self, multi: &MultiUser, layout: &Layout, random_units: u32) -> Span {
        let stations = &multi.chosen;
        let trigger = self.trigger_time(multi, stations, Trigger::Basic, random_units);
        let answers = Answers { bitmaps: stations.len() as u32 + random_units, all_acks: 0 };
        let data = self.asked_of_all(multi, stations, layout, LEAST_ASKED);
        trigger + self.config.sifs * 2 + data + self.block_ack_of_several(answers)
    }

    fn block_ack_of_several(&self, answers: Answers) -> Span {
        let window = u32::from(self.config.limits.window);
        self.slowest_control().txtime(multi_station_block_ack(answers, window))
    }

    /// Adds the stations that may contend for units: those with something to send who have no unit.
    fn contend_for_units(&self, multi: &mut MultiUser, now: Time, random_units: u32) {
        let scheduled = multi.chosen.len();
        for station in 0..self.config.stations.len() {
            let has_unit = multi.chosen[..scheduled].contains(&(station as u16));
            if !has_unit
                && random_units > 0
                && self.most_urgent(station, now).is_some()
                && is_he(&self.config.stations[station].up.mode)
            {
                multi.chosen.push(station as u16);
            }
        }
    }

    /// What a station sends on its unit in a PPDU that begins with `training`, and how long it would take.
    fn answer(
        &mut self,
        multi: &MultiUser,
        now: Time,
        (station, ru): (usize, Ru),
        (training, room): (Span, Span),
        listener: &mut impl Listener<P>,
    ) -> Option<(MuPsdu, Span)> {
        let ac = self.most_urgent(station, now)?;
        let node = station + 1;
        let link = Self::link_index(node, 0, ac);
        self.adapt(now, link);
        let mode = self.asked(multi, &self.links[link].sending.mode, ru);
        let longer = training.saturating_sub(mode.preamble());
        let own_room = room.saturating_sub(longer);
        let most = mode.whole_symbols(training, room);
        if self.links[link].agreement.bar_due {
            // Before frames are repeated, it asks which of them arrived.
            self.set_bar_due(link, false);
            let choice = self.links[link].choice;
            let ppdu = Ppdu { link: link as u32, number: 0, choice, psdu: Psdu::default() };
            let asked =
                MuPsdu { station: station as u16, ppdu, mode, random_unit: None, is_request: true };
            let has_more = self.links[link].agreement.to_repeat > 0
                || self.queues[node].has_packets(0, AccessCategory::ALL[ac]);
            let request = mode.txtime(ASKED_REQUEST) + longer;
            return Some((asked, if has_more { most } else { request }));
        }
        let ppdu = self.build_in(now, (node, 0, ac), &mode, own_room, 0, false, listener)?;
        let agreement = &self.links[ppdu.link as usize].agreement;
        let has_more =
            agreement.to_repeat > 0 || self.queues[node].has_packets(0, AccessCategory::ALL[ac]);
        // The access point knows what waits, in units, and gives as much time, padding included.
        let octets = ppdu.psdu.octets(&mode).next_multiple_of(REPORTED_IN);
        let wanted = if has_more { most } else { (mode.txtime(octets) + longer).min(most) };
        let station = station as u16;
        Some((MuPsdu { station, ppdu, mode, random_unit: None, is_request: false }, wanted))
    }

    fn slowest_control(&self) -> Mode {
        let modes = self.config.stations.iter().map(|station| control_mode(&station.up.mode));
        modes.min_by_key(Mode::rate).expect("a cell has a station")
    }

    /// A PPDU for several stations, or a Trigger frame, has overlapped with another frame.
    pub(super) fn lose_several(&mut self, several: Several, time: Span, end: Time) {
        let Some(multi) = self.multi.take() else { return };
        let has_rts = !several.protection().is_zero();
        match several {
            _ if has_rts => self.air.rts += time,
            Several::Up { .. } => self.air.trigger += time,
            Several::Down { .. } => {
                self.count_several(&multi, time, multi.psdus.len() as u64);
            }
        }
        let is_down = matches!(several, Several::Down { .. });
        // Of what stations send when they are asked, nothing is known before.
        let stations = if is_down { multi.psdus.len() } else { 0 };
        self.share(&multi, !is_down, stations, time, |counts| &mut counts.collisions);
        if is_down {
            self.air.attempts += 1;
            self.air.collided += 1;
            for psdu in &multi.psdus {
                let link = psdu.ppdu.link as usize;
                let counts = &mut self.counts[link / CATEGORIES];
                counts.attempts += 1;
                counts.collided += 1;
                if !has_rts {
                    counts.failed += u64::from(psdu.ppdu.psdu.mpdus);
                    self.ask_for_block_ack(link, false);
                }
                self.lose(&psdu.ppdu, end);
            }
        }
        self.multi = Some(multi);
    }

    /// Whether the access point's function is to send a Trigger frame.
    pub(super) fn owes_trigger(&self, index: usize) -> bool {
        index == AccessCategory::Be as usize
            && self.multi.as_ref().is_some_and(|multi| multi.is_trigger_due)
    }
}

/// Units for stations that are asked; beside units for random access all are equal.
fn layout(sizes: Sizes, width: Width, wanted: u32, random_units: u32) -> Option<Layout> {
    if random_units == 0 {
        return Layout::filled(sizes, width, wanted);
    }
    let ru = Ru::equal_shares(width, wanted + random_units).ok()?;
    Some(Layout::equal(ru, wanted))
}

/// The MU EDCA parameters (section 26.2.7).
fn mu_edca(config: &Ofdma) -> Parameters {
    let [cw_min, cw_max] = [config.mu_cw_min, config.mu_cw_max].map(|window| window as u16);
    Parameters::new(cw_min, cw_max, config.mu_aifsn as u8)
}
