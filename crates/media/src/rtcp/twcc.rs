//! Transport-wide feedback (draft-holmer-rmcat-transport-wide-cc-extensions-01 section 3.1): which
//! packets arrived, and when, to 250 µs.

use alloc::vec::Vec;

use sojourn_core::{Span, Time};

use super::{RECEIVER, SENDER, TRANSPORT_FEEDBACK, begin, finish, put_u32, u16_at, u32_at};

pub(super) const FORMAT: u8 = 15;

/// A tick of arrival times, and of the reference time.
const TICK: u64 = 250_000;
const REFERENCE: u64 = 64_000_000;
/// Symbols of a vector chunk with one bit each and with two.
const ONE_BIT: usize = 14;
const TWO_BITS: usize = 7;
const MOST_IN_RUN: usize = 0x1fff;

/// A report on packets with successive numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Twcc {
    /// The lowest 16 bits of the first packet's number.
    pub base: u16,
    /// Counts the reports.
    pub count: u8,
    /// When each packet arrived; the format's time wraps after 12 days.
    pub arrivals: Vec<Option<Time>>,
}

/// How a packet's fate is written: missing, or with a small or large difference of arrival times.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Symbol {
    Missing = 0,
    Small = 1,
    Large = 2,
}

impl Twcc {
    /// The report as bytes; the first arrival gives the reference time. Arrivals must be within 8 s of
    /// their neighbours.
    pub fn write(&self) -> Vec<u8> {
        write(self.base, self.count, &self.arrivals)
    }

    pub(super) fn read(body: &[u8]) -> Option<Self> {
        let base = u16_at(body, 8)?;
        let packets = usize::from(u16_at(body, 10)?);
        let word = u32_at(body, 12)?;
        let ticks = u64::from(word >> 8) * (REFERENCE / TICK);
        if let Some(arrivals) = read_run(body, packets, ticks) {
            return Some(Self { base, count: word as u8, arrivals });
        }
        let mut at = 16;
        let mut symbols = Vec::with_capacity(packets);
        while symbols.len() < packets {
            let chunk = u16_at(body, at)?;
            at += 2;
            let left = packets - symbols.len();
            let bits = |shift: usize, mask: u16| chunk >> shift & mask;
            match chunk >> 14 {
                0b10 => {
                    let take = left.min(ONE_BIT);
                    symbols.extend((0..take).map(|n| bits(ONE_BIT - 1 - n, 1)));
                }
                0b11 => {
                    let take = left.min(TWO_BITS);
                    symbols.extend((0..take).map(|n| bits(2 * (TWO_BITS - 1 - n), 3)));
                }
                _ => {
                    let take = left.min(usize::from(chunk) & MOST_IN_RUN);
                    if take == 0 {
                        return None;
                    }
                    symbols.extend(core::iter::repeat_n(chunk >> 13 & 3, take));
                }
            }
        }
        let mut ticks = ticks as i64;
        let mut arrivals = Vec::with_capacity(packets);
        for symbol in symbols {
            let delta = match symbol {
                1 => {
                    at += 1;
                    i64::from(*body.get(at - 1)?)
                }
                2 => {
                    at += 2;
                    i64::from(u16_at(body, at - 2)? as i16)
                }
                _ => {
                    arrivals.push(None);
                    continue;
                }
            };
            ticks += delta;
            arrivals.push(Some(Time::from_nanos(ticks.max(0) as u64 * TICK)));
        }
        Some(Self { base, count: word as u8, arrivals })
    }
}

#[inline(always)]
fn write(base: u16, count: u8, arrivals: &[Option<Time>]) -> Vec<u8> {
    let first = arrivals.iter().flatten().next().copied().unwrap_or(Time::ZERO);
    let reference = first.as_nanos() / REFERENCE;
    let mut message = begin(FORMAT, TRANSPORT_FEEDBACK);
    put_u32(&mut message, RECEIVER);
    put_u32(&mut message, SENDER);
    message.extend(base.to_be_bytes());
    message.extend((arrivals.len() as u16).to_be_bytes());
    put_u32(&mut message, (reference as u32) << 8 | u32::from(count));
    let ticks = reference * REFERENCE / TICK;
    let is_run = (1..=MOST_IN_RUN).contains(&arrivals.len());
    if !(is_run && write_run(arrivals, ticks, &mut message)) {
        write_any(arrivals, ticks as i64, &mut message);
    }
    finish(message)
}

/// Writes chunks and differences of any packets.
fn write_any(arrivals: &[Option<Time>], mut ticks: i64, message: &mut Vec<u8>) {
    let mut symbols = Vec::with_capacity(arrivals.len());
    let mut deltas = Vec::with_capacity(arrivals.len());
    for arrival in arrivals {
        let Some(arrival) = arrival else {
            symbols.push(Symbol::Missing);
            continue;
        };
        let at = (arrival.as_nanos() / TICK) as i64;
        let delta = at - ticks;
        if let Ok(delta) = u8::try_from(delta) {
            symbols.push(Symbol::Small);
            deltas.push(delta);
            ticks = at;
        } else {
            let delta = delta.clamp(i64::from(i16::MIN), i64::from(i16::MAX));
            symbols.push(Symbol::Large);
            deltas.extend((delta as i16).to_be_bytes());
            ticks += delta;
        }
    }
    let mut left = &symbols[..];
    while !left.is_empty() {
        let (chunk, taken) = chunk(left);
        message.extend(chunk.to_be_bytes());
        left = &left[taken..];
    }
    message.extend(deltas);
}

/// Writes packets that all came, none of them long after the one before it: one chunk and a byte for each. False if they are others.
fn write_run(arrivals: &[Option<Time>], mut ticks: u64, message: &mut Vec<u8>) -> bool {
    let begins = message.len();
    message.extend(((Symbol::Small as u16) << 13 | arrivals.len() as u16).to_be_bytes());
    message.resize(begins + 2 + arrivals.len(), 0);
    for (byte, arrival) in message[begins + 2..].iter_mut().zip(arrivals) {
        let at = arrival.map_or(u64::MAX, |arrival| arrival.as_nanos() / TICK);
        let delta = at.wrapping_sub(ticks);
        if delta > u64::from(u8::MAX) {
            message.truncate(begins);
            return false;
        }
        *byte = delta as u8;
        ticks = at;
    }
    true
}

/// Reads what [`write_run`] writes; `None` if the packets are others.
fn read_run(body: &[u8], packets: usize, mut ticks: u64) -> Option<Vec<Option<Time>>> {
    let chunk = u16_at(body, 16)?;
    let is_run = (1..=MOST_IN_RUN).contains(&packets);
    if !is_run || chunk != (Symbol::Small as u16) << 13 | packets as u16 {
        return None;
    }
    let deltas = body.get(18..18 + packets)?;
    let arrivals = deltas.iter().map(|delta| {
        ticks += u64::from(*delta);
        Some(Time::from_nanos(ticks * TICK))
    });
    Some(arrivals.collect())
}

/// The next chunk, and how many symbols it stands for.
fn chunk(symbols: &[Symbol]) -> (u16, usize) {
    let first = symbols[0];
    let run = symbols.iter().take(MOST_IN_RUN).take_while(|symbol| **symbol == first).count();
    // No vector holds more.
    if run >= ONE_BIT.min(symbols.len()) {
        return ((first as u16) << 13 | run as u16, run);
    }
    let one_bit = symbols.iter().take(ONE_BIT).take_while(|s| **s != Symbol::Large).count();
    let fits_one_bit = one_bit == symbols.len().min(ONE_BIT);
    let vector = if fits_one_bit { ONE_BIT } else { TWO_BITS };
    if run >= vector.min(symbols.len()) {
        return ((first as u16) << 13 | run as u16, run);
    }
    let (taken, width, kind) = match fits_one_bit {
        true => (symbols.len().min(ONE_BIT), 1, 0b10_u16),
        false => (symbols.len().min(TWO_BITS), 2, 0b11_u16),
    };
    let place = |n: usize| width * (vector - 1 - n);
    let vector = symbols[..taken].iter().enumerate();
    let bits = vector.fold(0, |bits, (n, symbol)| bits | (*symbol as u16) << place(n));
    (kind << 14 | bits, taken)
}

/// Collects arrivals at the receiver until the next report. A report begins with the first packet that came since the last one, and
/// so one on a packet that was overtaken says again what came behind it.
#[derive(Clone, Debug, Default)]
pub struct TwccArrivals {
    /// The number of the first packet in `arrivals`.
    first: u32,
    /// Those of some time before the next report, too.
    arrivals: Vec<Option<Time>>,
    /// The number of the packet with which the next report begins.
    next: u32,
    count: u8,
}

/// Arrivals further apart than this are in different reports.
const FARTHEST: Span = Span::from_secs(8);
/// Most packets of a report, so that it fits a datagram.
const MOST_PACKETS: usize = 400;
/// How long an arrival is kept after it was reported, as libwebrtc does, and how many are forgotten at once at least.
const KEPT: Span = Span::from_millis(500);
const FORGOTTEN: usize = 64;
/// A packet that was overtaken by more than these is not reported.
const OVERTAKEN: u32 = 1 << 15;

impl TwccArrivals {
    #[inline(always)]
    pub fn on_packet(&mut self, number: u32, now: Time) {
        match number.checked_sub(self.first) {
            Some(ahead) if ahead as usize == self.arrivals.len() => self.arrivals.push(Some(now)),
            _ => self.on_other_packet(number, now),
        }
    }

    /// One that is not the next.
    #[inline(never)]
    fn on_other_packet(&mut self, number: u32, now: Time) {
        if number < self.first {
            if self.first - number > OVERTAKEN {
                return;
            }
            self.arrivals.splice(..0, (number..self.first).map(|_| None));
            self.first = number;
        }
        let place = (number - self.first) as usize;
        if place >= self.arrivals.len() {
            self.arrivals.resize(place + 1, None);
        }
        if self.arrivals[place].is_none() {
            self.arrivals[place] = Some(now);
            self.next = self.next.min(number);
        }
    }

    /// The next report on what arrived, as bytes; `None` if there is nothing to report.
    #[inline(always)]
    pub fn report(&mut self) -> Option<Vec<u8>> {
        let fresh = &self.arrivals[(self.next - self.first) as usize..];
        let first = fresh.iter().flatten().next().copied()?;
        // Of one that came earlier than the first the difference wraps.
        let farthest = FARTHEST.as_nanos() - 1;
        let off = |at: Time| at.as_nanos().wrapping_sub(first.as_nanos()).wrapping_add(farthest);
        let near = |at: &Option<Time>| at.is_none_or(|at| off(at) <= 2 * farthest);
        let packets = fresh.iter().take(MOST_PACKETS).take_while(|at| near(at)).count();
        let report = write(self.next as u16, self.count, &fresh[..packets]);
        self.count = self.count.wrapping_add(1);
        self.next += packets as u32;
        self.forget();
        Some(report)
    }

    /// Forgets what was reported some time ago, once that is half of what is kept.
    fn forget(&mut self) {
        let reported = &self.arrivals[..(self.next - self.first) as usize];
        let half = reported.len() / 2;
        let newest = reported.iter().rev().flatten().next().copied().unwrap_or(Time::ZERO);
        let kept_from = Time::ZERO + newest.since(Time::ZERO + KEPT);
        let is_old = |at: &&Option<Time>| at.is_none_or(|at| at < kept_from);
        if half >= FORGOTTEN && is_old(&&reported[half]) {
            let old = reported.iter().take_while(is_old).count();
            self.arrivals.drain(..old);
            self.first += old as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(ms: u64) -> Option<Time> {
        Some(Time::from_nanos(ms * 1_000_000))
    }

    /// 20 bytes of headers, a chunk of 2 and a byte for each packet.
    #[test]
    fn a_report_on_seven_packets_is_32_bytes() {
        let arrivals = (0..7).map(|n| at(1000 + 5 * n)).collect();
        let report = Twcc { base: 65_533, count: 3, arrivals };
        assert_eq!(report.write().len(), 20 + 2 + 7 + 3);
        assert_eq!(Twcc::read(&report.write()[4..]), Some(report));
    }

    #[test]
    fn runs_of_missing_packets_cost_two_bytes() {
        let mut arrivals = vec![at(64)];
        arrivals.extend([None; 300]);
        arrivals.push(at(70));
        let report = Twcc { base: 1, count: 0, arrivals };
        // The vector of 14 takes the first packet; a run and another packet follow.
        assert_eq!(report.write().len(), 20 + 2 + 2 + 2 + 2);
        assert_eq!(Twcc::read(&report.write()[4..]), Some(report));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            base: u16, count: u8, gaps in prop::collection::vec(prop::option::of(-300_i64..2000), 1..200),
        ) {
            let mut now = 40_000_i64;
            let arrivals: Vec<Option<Time>> = gaps.iter().map(|gap| gap.map(|gap| {
                now = (now + gap).max(0);
                Time::from_nanos(now as u64 * TICK)
            })).collect();
            prop_assume!(arrivals.iter().any(Option::is_some));
            let report = Twcc { base, count, arrivals };
            prop_assert_eq!(Twcc::read(&report.write()[4..]), Some(report));
        }

        #[test]
        fn anything_else_is_refused_or_read(body in prop::collection::vec(any::<u8>(), 0..64)) {
            Twcc::read(&body);
        }
    }

    /// The next report, read again.
    fn next_report(arrivals: &mut TwccArrivals) -> Option<Twcc> {
        Twcc::read(&arrivals.report()?[4..])
    }

    #[test]
    fn a_packet_that_was_overtaken_is_reported_with_what_came_behind_it() {
        let mut arrivals = TwccArrivals::default();
        for (number, ms) in [(0, 10), (1, 11), (4, 13)] {
            arrivals.on_packet(number, Time::from_nanos(ms * 1_000_000));
        }
        let report = next_report(&mut arrivals).expect("three arrived");
        assert_eq!((report.base, report.arrivals), (0, vec![at(10), at(11), None, None, at(13)]));
        assert_eq!(next_report(&mut arrivals), None);
        for (number, ms) in [(3, 20), (2, 21), (5, 22)] {
            arrivals.on_packet(number, Time::from_nanos(ms * 1_000_000));
        }
        let late = next_report(&mut arrivals).expect("two late ones");
        assert_eq!((late.base, late.count), (2, 1));
        assert_eq!(late.arrivals, vec![at(21), at(20), at(13), at(22)]);
        assert_eq!(next_report(&mut arrivals), None);
    }

    proptest! {
        /// However packets overtake each other, each that arrives is reported, and what was reported long ago is forgotten.
        #[test]
        fn every_packet_that_arrives_is_reported(
            delays in prop::collection::vec(0u64..400, 1..600), every in 1usize..40,
        ) {
            let mut order: Vec<(u64, u32)> =
                (0u32..).zip(&delays).map(|(number, ms)| (5 * u64::from(number) + ms, number)).collect();
            order.sort_unstable();
            let mut arrivals = TwccArrivals::default();
            let mut reported = std::collections::BTreeMap::new();
            for (place, (ms, number)) in order.iter().enumerate() {
                arrivals.on_packet(*number, Time::from_nanos(ms * 1_000_000));
                if place % every == 0 || place + 1 == order.len() {
                    while let Some(report) = next_report(&mut arrivals) {
                        let numbers = u32::from(report.base)..;
                        let known = numbers.zip(report.arrivals);
                        reported.extend(known.filter_map(|(number, at)| Some((number, at?))));
                    }
                }
            }
            let sent = order.iter().map(|(ms, number)| (*number, Time::from_nanos(ms * 1_000_000)));
            prop_assert_eq!(reported, sent.collect());
            prop_assert!(arrivals.arrivals.len() < 2 * (100 + FORGOTTEN) + 200, "{}", arrivals.arrivals.len());
        }
    }
}
