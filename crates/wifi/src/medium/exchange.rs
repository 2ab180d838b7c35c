//! Frame exchanges: who sends, what happens to the frames, and when the medium is free again
//! (section 10.23.2, and 10.3.2 for the times of responses).

use sojourn_core::{Span, Time};
use sojourn_qdisc::Reshape;

use super::attempt::{Attempt, Ppdu, Serving, What, Within};
use super::link::Sending;
use super::{CATEGORIES, Medium, Reserved, Txop};
use crate::mac::aggregation::Decoding;
use crate::mac::block_ack::Fate;
use crate::mac::edca::AccessCategory;
use crate::mac::frames;
use crate::phy::{Format, Mode};
use crate::port::Listener;

/// How an exchange ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    Answered,
    /// A node could not read a frame that was for it.
    Unread {
        recipient: u16,
        /// In which an answer would have come.
        answer: Format,
    },
    /// No answer came from several stations.
    Nothing,
}

impl<P: Reshape + Send> Medium<P> {
    /// The countdown of one or several functions is over.
    pub(super) fn contend(&mut self, now: Time, listener: &mut impl Listener<P>) {
        let (first, second) = {
            let mut due = self.due(now);
            (due.next(), due.next())
        };
        match (first, second) {
            (None, _) => self.rearm(),
            (Some(winner), None) => match self.attempt(now, winner, listener) {
                None => self.rearm(),
                Some(attempt) => self.win(now, &attempt, &[winner], listener),
            },
            (Some(_), Some(_)) => self.contend_with_others(now, listener),
        }
    }

    /// The functions with frames whose countdown is over.
    #[inline]
    fn due(&self, now: Time) -> impl Iterator<Item = u16> {
        let slot = self.config.slot;
        self.active.iter().copied().filter(move |index| {
            let edcaf = &self.edcafs[usize::from(*index)];
            edcaf.has_frames && edcaf.sends_at(slot) <= now
        })
    }

    /// The countdown of several functions is over. Inside a station the higher priority wins (section 10.23.2.2) if it has
    /// something to send after all, and equal categories of different stations collide.
    #[inline(never)]
    fn contend_with_others(&mut self, now: Time, listener: &mut impl Listener<P>) {
        let mut winners = core::mem::take(&mut self.winners);
        let mut attempts = core::mem::take(&mut self.attempts);
        winners.clear();
        attempts.clear();
        winners.extend(self.due(now));
        winners.sort_unstable();
        let is_same = |one: &u16, other: &u16| one / CATEGORIES as u16 == other / CATEGORIES as u16;
        for station in winners.chunk_by(is_same) {
            let mut functions = station.iter().rev();
            attempts.extend(functions.find_map(|winner| self.attempt(now, *winner, listener)));
        }
        winners.retain(|winner| self.edcafs[usize::from(*winner)].has_frames);
        match attempts.as_slice() {
            [] => self.rearm(),
            [attempt] => self.win(now, attempt, &winners, listener),
            several => self.collide(now, several, &winners),
        }
        self.winners = winners;
        self.attempts = attempts;
    }

    /// One function has the medium.
    #[inline]
    fn win(
        &mut self,
        now: Time,
        attempt: &Attempt,
        winners: &[u16],
        listener: &mut impl Listener<P>,
    ) {
        let limit = self.edcafs[usize::from(attempt.edcaf)].parameters.txop_limit;
        let txop = Txop { edcaf: attempt.edcaf, until: now + limit };
        self.exchange(now, attempt, txop, winners, listener);
    }

    /// What an EDCA function sends first; it has no frames after all if that is nothing.
    fn attempt(
        &mut self,
        now: Time,
        index: u16,
        listener: &mut impl Listener<P>,
    ) -> Option<Attempt> {
        let limit = self.edcafs[usize::from(index)].parameters.txop_limit;
        let left = if limit.is_zero() { Span::from_secs(1) } else { limit };
        let attempt = self.next_frame(now, index, Within { left, is_first: true }, listener);
        if attempt.is_none() {
            self.edcafs[usize::from(index)].has_frames = false;
        }
        attempt
    }

    /// What an EDCA function sends next.
    fn next_frame(
        &mut self,
        now: Time,
        index: u16,
        within: Within,
        listener: &mut impl Listener<P>,
    ) -> Option<Attempt> {
        let (node, ac) = (usize::from(index) / CATEGORIES, usize::from(index) % CATEGORIES);
        let sifs = self.config.sifs;
        if node > 0 && !self.is_present(node - 1, now) {
            return None;
        }
        if let Some(station) = self.choose_request(node, ac) {
            let number = Self::link_index(node, station, ac);
            let sending = &self.links[number].sending;
            let time = sending.block_ack_req;
            let whole = time + sifs + sending.block_ack;
            let what = What::BlockAckReq { link: number as u32 };
            return within.holds(whole).then_some(Attempt { edcaf: index, what, time });
        }
        let ppdu = if node == 0 && self.multi.is_some() {
            match self.serve(now, ac, within, listener)? {
                Serving::Several(attempt) => return Some(attempt),
                Serving::One(ppdu) => ppdu,
            }
        } else {
            self.serve_one(now, node, ac, within, listener)?
        };
        let sending = &self.links[ppdu.link as usize].sending;
        let octets = ppdu.psdu.octets(&sending.mode);
        let has_rts = octets > sending.rts_threshold;
        let time = if has_rts { sending.rts } else { sending.mode.txtime(octets) };
        Some(Attempt { edcaf: index, what: What::Data { ppdu, has_rts }, time })
    }

    /// A PPDU for one station.
    pub(super) fn serve_one(
        &mut self,
        now: Time,
        node: usize,
        ac: usize,
        within: Within,
        listener: &mut impl Listener<P>,
    ) -> Option<Ppdu> {
        if self.is_prepared(node) {
            let first = *self.prepared[ac].first()?;
            self.use_choice(&first.ppdu);
            let sending = &self.links[first.ppdu.link as usize].sending;
            let response = self.config.sifs + sending.block_ack;
            let whole = sending.protection(&self.config) + first.airtime + response;
            return within.holds(whole).then_some(first.ppdu);
        }
        if node == 0 && self.staged.is_some() {
            return self.put_together_staged(now, ac, within, listener);
        }
        self.put_together(now, node, ac, within, listener)
    }

    /// A PPDU for the station whose turn it is.
    fn put_together(
        &mut self,
        now: Time,
        node: usize,
        ac: usize,
        within: Within,
        listener: &mut impl Listener<P>,
    ) -> Option<Ppdu> {
        self.in_turn(node, ac, |medium, station| {
            medium.put_together_for(now, (node, station, ac), within, listener)
        })
    }

    /// Offers the turn to one station after the other until something comes of it: CoDel may have dropped all packets of one.
    pub(super) fn in_turn<S>(
        &mut self,
        node: usize,
        ac: usize,
        mut serve: impl FnMut(&mut Self, usize) -> Option<S>,
    ) -> Option<S> {
        for _ in 0..=self.config.stations.len() {
            let station = self.choose(node, ac)?;
            let served = serve(self, station);
            if served.is_some() {
                return served;
            }
        }
        None
    }

    /// A PPDU of what is in the hardware for the station whose packets came first.
    fn put_together_staged(
        &mut self,
        now: Time,
        ac: usize,
        within: Within,
        listener: &mut impl Listener<P>,
    ) -> Option<Ppdu> {
        let mut turn = None;
        loop {
            let links = &self.links;
            let repeats = |s| links[Self::link_index(0, s, ac)].agreement.to_repeat > 0;
            turn = self.staged.as_ref()?.next_after(ac, turn, repeats, &self.store);
            let (_, station) = turn?;
            let ppdu = self.put_together_for(now, (0, station, ac), within, listener);
            if ppdu.is_some() {
                return ppdu;
            }
        }
    }

    pub(super) fn put_together_for(
        &mut self,
        now: Time,
        (node, station, ac): (usize, usize, usize),
        within: Within,
        listener: &mut impl Listener<P>,
    ) -> Option<Ppdu> {
        self.adapt(now, Self::link_index(node, station, ac));
        let sending = &self.links[Self::link_index(node, station, ac)].sending;
        let is_aggregating = self.config.limits.is_aggregating();
        let ack = sending.ack;
        let response = if is_aggregating { sending.block_ack } else { ack };
        let others = sending.protection(&self.config) + self.config.sifs;
        let room = |response| within.left.saturating_sub(others + response);
        let is_first = within.is_first;
        let ppdu = self.build(now, node, station, ac, room(response), is_first, listener);
        if ppdu.is_some() {
            return ppdu;
        }
        // One frame alone has the shorter response.
        self.build(now, node, station, ac, room(ack), is_first, listener)
    }

    /// One station has the medium.
    fn exchange(
        &mut self,
        now: Time,
        attempt: &Attempt,
        txop: Txop,
        winners: &[u16],
        listener: &mut impl Listener<P>,
    ) {
        let sifs = self.config.sifs;
        let mut at = now;
        let link;
        // The end of what it sent, if no response follows.
        let mut unanswered = None;
        match attempt.what {
            What::Data { ppdu, has_rts } => {
                link = ppdu.link as usize;
                let Sending { mode, ack, block_ack, rts, cts, .. } = &self.links[link].sending;
                let airtime = match has_rts {
                    true => mode.txtime(ppdu.psdu.octets(mode)),
                    false => attempt.time,
                };
                let (ack, block_ack, rts, cts) = (*ack, *block_ack, *rts, *cts);
                self.air.attempts += 1;
                self.counts[link / CATEGORIES].attempts += 1;
                if usize::from(attempt.edcaf) < CATEGORIES
                    && let Some(multi) = &mut self.multi
                {
                    multi.has_served_one(link % CATEGORIES);
                }
                if has_rts {
                    at += rts + sifs + cts + sifs;
                    self.air.rts += rts;
                    self.air.cts += cts;
                }
                self.count_data(&ppdu, airtime);
                self.charge(link, airtime);
                at += airtime;
                let received = self.receive(&ppdu, at - airtime, at);
                let recipient = self.recipient(link);
                self.answering = (recipient, if received > 0 { at } else { Time::NEVER });
                let is_single = ppdu.psdu.mpdus == 1 || !self.config.limits.is_aggregating();
                let response = if is_single { ack } else { block_ack };
                if received > 0 {
                    let kind = if is_single { &mut self.air.ack } else { &mut self.air.block_ack };
                    *kind += response;
                } else {
                    self.ask_for_block_ack(link, is_single);
                    unanswered = Some((at, recipient));
                }
                at += sifs + response;
            }
            What::BlockAckReq { link: number } => {
                link = number as usize;
                let Sending { block_ack_req, block_ack, .. } = self.links[link].sending;
                self.air.block_ack_req += block_ack_req;
                self.air.block_ack += block_ack;
                self.set_bar_due(link, false);
                at += block_ack_req + sifs + block_ack;
            }
            What::Several(several) => {
                self.exchange_several(now, attempt, several, txop, winners, listener);
                return;
            }
        }
        let (end, heard) = match unanswered {
            Some((end, recipient)) => {
                let answer = self.links[link].sending.answer(false);
                (end, Heard::Unread { recipient, answer })
            }
            None => (at, Heard::Answered),
        };
        self.counts[link / CATEGORIES].exchanges += end.since(now);
        let has_request = self.links[link].agreement.bar_due;
        self.conclude(now, attempt.edcaf, txop, winners, (end, at), heard, has_request);
    }

    /// An exchange ends at `end`; bystanders have read that it lasts until `expected`.
    #[expect(clippy::too_many_arguments, reason = "what there is to know of an exchange")]
    pub(super) fn conclude(
        &mut self,
        now: Time,
        holder: u16,
        txop: Txop,
        winners: &[u16],
        (end, expected): (Time, Time),
        heard: Heard,
        has_request: bool,
    ) {
        let index = usize::from(holder);
        self.air.idle += now.since(self.idle_since);
        self.air.exchanges += end.since(now);
        self.idle_since = end;
        self.extended = Span::ZERO;
        // The recipient of a frame that it can't read waits for EIFS, and the others for their NAV.
        let deaf = match heard {
            Heard::Unread { recipient, .. } => Some((recipient, end + self.eifs_extension())),
            Heard::Answered | Heard::Nothing => None,
        };
        self.reserved = Reserved { holder: holder / CATEGORIES as u16, until: expected, deaf };
        self.suspend(now, expected, deaf, winners);
        if winners.len() > 1 {
            self.back_off_beaten(holder, expected, winners);
        }
        let has_frames = self.edcafs[index].pending > 0 || has_request || self.owes_trigger(index);
        let edcaf = &mut self.edcafs[index];
        edcaf.has_frames = has_frames;
        if heard != Heard::Answered {
            edcaf.fail(self.config.most_failures());
            let answer = match heard {
                Heard::Unread { answer, .. } => answer,
                Heard::Answered | Heard::Nothing => Format::NonHt,
            };
            self.time_out(holder, end, end, answer);
        } else {
            edcaf.succeed();
            if txop.until > expected {
                self.txop = Some(txop);
                self.next_access = expected;
                return;
            }
            edcaf.back_off(expected + edcaf.ifs);
        }
        self.txop = None;
        self.rearm();
    }

    /// The holder of the medium sends another frame, or ends its TXOP.
    pub(super) fn continue_txop(&mut self, now: Time, txop: Txop, listener: &mut impl Listener<P>) {
        let sifs = self.config.sifs;
        let index = usize::from(txop.edcaf);
        let start = now + sifs;
        let within = Within { left: txop.until.since(start), is_first: false };
        let polls = index == AccessCategory::Be as usize
            && self.multi.as_ref().is_some_and(|multi| multi.goes_on_polling());
        if index < CATEGORIES
            && let Some(multi) = &mut self.multi
        {
            multi.has_had_medium(start);
        }
        if (self.edcafs[index].has_frames || polls)
            && let Some(attempt) = self.next_frame(now, txop.edcaf, within, listener)
        {
            self.air.idle += sifs;
            self.idle_since = start;
            self.exchange(start, &attempt, txop, &[], listener);
            return;
        }
        let mut end = now;
        let cf_end = self.cf_end_time();
        if self.config.cf_end && sifs + cf_end <= txop.until.since(now) {
            end = start + cf_end;
            self.air.cf_end += cf_end;
            self.air.exchanges += end.since(now);
            self.counts_of_holder(txop).exchanges += end.since(now);
            self.idle_since = end;
            self.suspend(now, end, None, &[txop.edcaf]);
        } else if self.config.cf_end {
            self.keep_reserved(now, txop);
        }
        self.txop = None;
        let has_frames = self.edcafs[index].pending > 0 || self.owes_trigger(index);
        let edcaf = &mut self.edcafs[index];
        edcaf.has_frames = has_frames;
        edcaf.back_off(end + edcaf.ifs);
        self.rearm();
    }

    /// A TXOP ends at `now` with no time for a CF-End. Those whom its frames were not for have read that it lasts until its limit
    /// (section 9.2.5.2), and wait for that.
    fn keep_reserved(&mut self, now: Time, txop: Txop) {
        let (holder, recipient) = (txop.edcaf / CATEGORIES as u16, self.answering.0);
        self.reserved = Reserved { holder, until: txop.until, deaf: Some((recipient, now)) };
        let slot = self.config.slot;
        for index in &self.active {
            let node = *index / CATEGORIES as u16;
            if node != holder && node != recipient {
                let edcaf = &mut self.edcafs[usize::from(*index)];
                edcaf.come_back(txop.until);
                edcaf.suspend(now, txop.until + edcaf.ifs, slot, self.countdown);
            }
        }
    }

    /// Frames overlap and are lost.
    fn collide(&mut self, now: Time, attempts: &[Attempt], winners: &[u16]) {
        let longest = attempts.iter().map(|attempt| attempt.time).max().unwrap_or(Span::ZERO);
        let end = now + longest;
        self.air.idle += now.since(self.idle_since);
        self.air.collisions += longest;
        self.idle_since = end;
        self.extended = match self.config.collisions_are_detected {
            true => self.eifs_extension(),
            false => Span::ZERO,
        };
        self.suspend(now, end, None, winners);
        for attempt in attempts {
            let answer = match attempt.what {
                What::Data { ppdu, has_rts } => {
                    self.links[ppdu.link as usize].sending.answer(has_rts)
                }
                What::BlockAckReq { .. } | What::Several(_) => Format::NonHt,
            };
            let link = match attempt.what {
                What::Data { ppdu, has_rts } => {
                    let link = ppdu.link as usize;
                    self.air.attempts += 1;
                    self.air.collided += 1;
                    let counts = &mut self.counts[link / CATEGORIES];
                    counts.attempts += 1;
                    counts.collided += 1;
                    counts.collisions += attempt.time;
                    counts.failed += if has_rts { 0 } else { u64::from(ppdu.psdu.mpdus) };
                    if has_rts {
                        self.air.rts += attempt.time;
                    } else {
                        self.count_data(&ppdu, attempt.time);
                        if self.edcaf_of(link) < CATEGORIES {
                            self.charge(link, attempt.time);
                        }
                        let is_single = ppdu.psdu.mpdus == 1;
                        self.ask_for_block_ack(link, is_single);
                    }
                    self.lose(&ppdu, end);
                    Some(link)
                }
                What::BlockAckReq { link } => {
                    self.air.block_ack_req += attempt.time;
                    self.counts[link as usize / CATEGORIES].collisions += attempt.time;
                    Some(link as usize)
                }
                What::Several(several) => {
                    self.lose_several(several, attempt.time, end);
                    None
                }
            };
            self.back_off_beaten(attempt.edcaf, end, winners);
            let index = usize::from(attempt.edcaf);
            let own_end = now + attempt.time;
            let idle = if own_end < end { end + self.extended } else { end };
            let is_over = self.edcafs[index].fail(self.config.most_failures());
            self.time_out(attempt.edcaf, own_end, idle, answer);
            let mut has_frames = self.edcafs[index].pending > 0 || self.owes_trigger(index);
            if let Some(link) = link {
                let is_due = self.links[link].agreement.bar_due && !is_over;
                self.set_bar_due(link, is_due);
                has_frames |= is_due;
            }
            self.edcafs[index].has_frames = has_frames;
        }
        self.rearm();
    }

    /// No response comes to a frame that ended at `end`, which would have had the format `answer`. When AckTimeout is over, the function that sent invokes the
    /// backoff procedure (section 10.3.2.11), whose slots follow an interframe space (section 10.23.2.2); the other
    /// functions of its station count theirs from AckTimeout, too (section 10.23.2.4, item c).
    fn time_out(&mut self, function: u16, end: Time, idle: Time, answer: Format) {
        let timeout = end + self.config.sifs + self.config.slot + answer.start_delay();
        let (index, idle) = (usize::from(function), timeout.max(idle));
        let node = index / CATEGORIES;
        self.timeouts[node] = idle;
        for edcaf in &mut self.edcafs[node * CATEGORIES..(node + 1) * CATEGORIES] {
            edcaf.wait_until(idle);
        }
        let edcaf = &mut self.edcafs[index];
        edcaf.back_off(idle + edcaf.ifs);
    }

    /// Functions that count down stop while a station sends, from `busy` to `idle`, and those of a node that
    /// could not read it until another time.
    fn suspend(&mut self, busy: Time, idle: Time, deaf: Option<(u16, Time)>, winners: &[u16]) {
        let slot = self.config.slot;
        let mut are_all_active = true;
        for index in &self.active {
            let edcaf = &mut self.edcafs[usize::from(*index)];
            // Winners are due, too.
            if edcaf.sends_at(slot) <= busy {
                if winners.iter().any(|winner| winner == index) {
                    continue;
                }
                if !edcaf.has_frames {
                    edcaf.is_active = false;
                    are_all_active = false;
                    continue;
                }
            }
            let idle = match deaf {
                Some((node, until)) if node == *index / CATEGORIES as u16 => until,
                _ => idle,
            };
            edcaf.come_back(idle);
            let start = idle + edcaf.ifs + self.extended;
            edcaf.suspend(busy, start, slot, self.countdown);
        }
        if !are_all_active {
            self.active.retain(|index| self.edcafs[usize::from(*index)].is_active);
        }
    }

    /// An internal collision: other functions of the winning station were due as well (section
    /// 10.23.2.4).
    fn back_off_beaten(&mut self, winner: u16, idle: Time, winners: &[u16]) {
        for other in winners {
            let is_same = usize::from(*other) / CATEGORIES == usize::from(winner) / CATEGORIES;
            if *other != winner && is_same {
                let edcaf = &mut self.edcafs[usize::from(*other)];
                edcaf.fail(self.config.most_failures());
                edcaf.back_off(idle + edcaf.ifs + self.extended);
            }
        }
    }

    /// Counts a data PPDU that is on the air for `time`.
    fn count_data(&mut self, ppdu: &Ppdu, time: Span) {
        let link = ppdu.link as usize;
        let octets = ppdu.psdu.octets(&self.links[link].sending.mode);
        self.air.data += time;
        let counts = &mut self.counts[link / CATEGORIES];
        counts.airtime += time;
        counts.ppdus += 1;
        counts.mpdus += u64::from(ppdu.psdu.mpdus);
        counts.psdu_octets += u64::from(octets);
    }

    /// Decides of each MPDU whether it arrives, and gives how many do. A recipient decodes them one
    /// by one from `start` on while the PPDU is on the air.
    pub(super) fn receive(&mut self, ppdu: &Ppdu, start: Time, end: Time) -> u32 {
        let link = ppdu.link as usize;
        let Sending { error, mode, .. } = &self.links[link].sending;
        let mut decoding = Decoding::new(mode, start);
        let is_adaptive = self.rates.get(link / CATEGORIES).is_some_and(Option::is_some);
        if *error > 0.0 || is_adaptive {
            return self.receive_some(ppdu, decoding, start, end);
        }
        let Self { links, store, outbox, .. } = self;
        let out = store.appender(outbox);
        let (mpdus, done) = links[link].agreement.settle(ppdu.key(), end, out, |msdu| {
            (Fate::Received, end.min(decoding.next(msdu.mpdu_octets)))
        });
        self.note_settled(ppdu, done, mpdus, end);
        mpdus
    }

    /// The same where frames may get lost.
    #[inline(never)]
    fn receive_some(&mut self, ppdu: &Ppdu, mut decoding: Decoding, start: Time, end: Time) -> u32 {
        let link = ppdu.link as usize;
        let sending = self.links[link].sending;
        let retry_limit = self.config.retry_limit;
        let random = &mut self.random;
        let mut adaptive = self.rates.get_mut(link / CATEGORIES).and_then(Option::as_deref_mut);
        let (mut error, mut octets) = (sending.error, 0);
        let mut received = 0;
        let out = self.store.appender(&mut self.outbox);
        let (mpdus, done) = self.links[link].agreement.settle(ppdu.key(), end, out, |msdu| {
            if let Some(adaptive) = &mut adaptive
                && octets != msdu.mpdu_octets
            {
                octets = msdu.mpdu_octets;
                error = adaptive.error(start, &sending, octets);
            }
            let fate = match error > 0.0 && random.chance(error) {
                true if retry_limit.is_some_and(|limit| msdu.attempts >= limit.get()) => {
                    Fate::Discarded
                }
                true => Fate::Open,
                false => Fate::Received,
            };
            received += u32::from(fate == Fate::Received);
            (fate, end.min(decoding.next(msdu.mpdu_octets)))
        });
        self.counts[link / CATEGORIES].failed += u64::from(mpdus - received);
        self.note_settled(ppdu, done, received, end);
        received
    }

    /// No frame of a PPDU arrives.
    pub(super) fn lose(&mut self, ppdu: &Ppdu, end: Time) {
        let retry_limit = self.config.retry_limit;
        let Self { links, store, outbox, .. } = self;
        let out = store.appender(outbox);
        let (_, discarded) =
            links[ppdu.link as usize].agreement.settle(ppdu.key(), end, out, |msdu| {
                let is_over = retry_limit.is_some_and(|limit| msdu.attempts >= limit.get());
                (if is_over { Fate::Discarded } else { Fate::Open }, msdu.received)
            });
        self.note_settled(ppdu, discarded, 0, end);
    }

    /// So many MSDUs of a PPDU are finished, and so many of its MPDUs were received.
    fn note_settled(&mut self, ppdu: &Ppdu, done: u32, received: u32, end: Time) {
        let index = self.edcaf_of(ppdu.link as usize);
        self.report(ppdu, received);
        self.edcafs[index].pending -= done;
        self.complete(ppdu, done > 0, end);
    }

    /// The PPDU leaves the hardware at `end`, when its finished frames are forgotten.
    fn complete(&mut self, ppdu: &Ppdu, is_done: bool, end: Time) {
        let index = self.edcaf_of(ppdu.link as usize);
        let is_prepared = self.is_prepared(index / CATEGORIES);
        if is_done || is_prepared {
            self.arriving.push(ppdu.link);
            self.arrive_at = end;
        }
    }

    /// A station has used the medium, in either direction; the access point charges it.
    pub(super) fn charge(&mut self, link: usize, airtime: Span) {
        let (port, ac) = (link / CATEGORIES, link % CATEGORIES);
        self.queues[0].charge(AccessCategory::ALL[ac], port / 2, airtime);
    }

    /// After an A-MPDU whose BlockAck did not come.
    pub(super) fn ask_for_block_ack(&mut self, link: usize, is_single: bool) {
        if !is_single && self.config.lost_block_ack == super::LostBlockAck::Request {
            self.set_bar_due(link, true);
        }
    }

    /// Whether a BlockAck of this link must be requested.
    pub(super) fn set_bar_due(&mut self, link: usize, is_due: bool) {
        let was_due = core::mem::replace(&mut self.links[link].agreement.bar_due, is_due);
        self.bars_due = self.bars_due + u32::from(is_due) - u32::from(was_due);
    }

    fn recipient(&self, link: usize) -> u16 {
        let port = link / CATEGORIES;
        if port % 2 == 1 { 0 } else { (port / 2 + 1) as u16 }
    }

    pub(super) fn edcaf_of(&self, link: usize) -> usize {
        let (port, ac) = (link / CATEGORIES, link % CATEGORIES);
        let node = if port % 2 == 1 { port / 2 + 1 } else { 0 };
        node * CATEGORIES + ac
    }

    fn counts_of_holder(&mut self, txop: Txop) -> &mut super::LinkCounts {
        let node = usize::from(txop.edcaf) / CATEGORIES;
        // The rest of the access point's TXOP is counted for its first station.
        let port = if node == 0 { 0 } else { 2 * (node - 1) + 1 };
        &mut self.counts[port]
    }

    fn cf_end_time(&self) -> Span {
        lowest_rate().txtime(frames::CF_END)
    }

    /// EIFS − DIFS: SIFS and an Ack at the lowest rate (section 10.3.2.3.7).
    fn eifs_extension(&self) -> Span {
        self.config.sifs + lowest_rate().txtime(frames::ACK)
    }
}

pub(super) fn lowest_rate() -> Mode {
    Mode::non_ht(6).expect("6 Mbit/s is in the table")
}
