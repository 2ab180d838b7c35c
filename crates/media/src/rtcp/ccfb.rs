//! Congestion control feedback (RFC 8888 section 3.1): of each stream, which packets arrived, when, to
//! 1/1024 s, and with what mark.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use sojourn_core::{Ecn, Span, Time};

use super::{RECEIVER, TRANSPORT_FEEDBACK, begin, finish, ntp_middle, put_u32, u16_at, u32_at};

pub(super) const FORMAT: u8 = 11;

const ARRIVED: u16 = 0x8000;
/// Values of the 13 bits of an arrival time: the largest offset; an arrival before that; a time that is
/// unknown or after the report's.
pub(crate) const LARGEST_OFFSET: u16 = 0x1ffd;
const EARLIER: u16 = 0x1ffe;
const UNKNOWN: u16 = 0x1fff;

/// A report on the packets of several streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ccfb {
    /// When it was sent, in 1/65536 s: the middle of an NTP timestamp.
    pub sent: u32,
    pub streams: Vec<CcfbStream>,
}

/// A report on successive packets of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CcfbStream {
    pub source: u32,
    /// The first packet's sequence number.
    pub begin: u16,
    pub packets: Vec<Option<CcfbArrival>>,
}

/// An arrival: its mark, and how long before the report it was, in 1/1024 s; `None` if that is longer than
/// the format can say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CcfbArrival {
    pub ecn: Ecn,
    pub before: Option<u16>,
}

impl Ccfb {
    #[inline(always)]
    pub fn write(&self) -> Vec<u8> {
        let mut message = begin(FORMAT, TRANSPORT_FEEDBACK);
        put_u32(&mut message, RECEIVER);
        for stream in &self.streams {
            put_u32(&mut message, stream.source);
            message.extend(stream.begin.to_be_bytes());
            message.extend((stream.packets.len() as u16).to_be_bytes());
            message.extend(
                stream.packets.iter().flat_map(|p| p.as_ref().map_or(0, word).to_be_bytes()),
            );
            if !stream.packets.len().is_multiple_of(2) {
                message.extend([0, 0]);
            }
        }
        put_u32(&mut message, self.sent);
        finish(message)
    }

    pub(super) fn read(body: &[u8]) -> Option<Self> {
        let end = body.len().checked_sub(4)?;
        let sent = u32_at(body, end)?;
        // Most reports are on one stream.
        let mut streams = Vec::with_capacity(1);
        let mut at = 4;
        while at < end {
            let packets = usize::from(u16_at(body, at + 6)?);
            let (source, first) = (u32_at(body, at)?, u16_at(body, at + 4)?);
            at += 8;
            if at + 2 * packets > end {
                return None;
            }
            let words = body[at..at + 2 * packets].chunks_exact(2);
            let packets = words.map(|word| arrival(u16::from_be_bytes([word[0], word[1]])));
            let packets: Vec<_> = packets.collect();
            at += 2 * packets.len().next_multiple_of(2);
            streams.push(CcfbStream { source, begin: first, packets });
        }
        Some(Self { sent, streams })
    }
}

fn word(arrival: &CcfbArrival) -> u16 {
    let ecn: u16 = match arrival.ecn {
        Ecn::NotEct => 0b00,
        Ecn::Ect1 => 0b01,
        Ecn::Ect0 => 0b10,
        Ecn::Ce => 0b11,
    };
    ARRIVED | ecn << 13 | arrival.before.unwrap_or(EARLIER)
}

fn arrival(word: u16) -> Option<CcfbArrival> {
    if word & ARRIVED == 0 {
        return None;
    }
    let ecn = match word >> 13 & 0b11 {
        0b00 => Ecn::NotEct,
        0b01 => Ecn::Ect1,
        0b10 => Ecn::Ect0,
        _ => Ecn::Ce,
    };
    let before = match word & UNKNOWN {
        EARLIER | UNKNOWN => None,
        before => Some(before),
    };
    Some(CcfbArrival { ecn, before })
}

/// Collects arrivals at the receiver until the next report.
#[derive(Clone, Debug, Default)]
pub struct CcfbArrivals {
    streams: Vec<Collected>,
}

#[derive(Clone, Debug)]
struct Collected {
    source: u32,
    /// The number of the first packet in `arrivals`.
    first: u32,
    arrivals: VecDeque<Option<(Time, Ecn)>>,
    /// How many of them were reported on; some of these are kept in case one arrives late.
    reported: usize,
    /// The next report begins here if a packet came late.
    late: Option<usize>,
}

/// A late packet is reported on if it is at most this far behind the newest report.
const OVERLAP: usize = 64;
/// Most packets in a report, so that it fits a datagram.
const MOST_PACKETS: usize = 400;

/// An arrival this long ago is beyond what the format can say.
const FARTHEST: Span = Span::from_secs(16);

impl CcfbArrivals {
    #[inline(always)]
    pub fn on_packet(&mut self, source: u32, number: u32, now: Time, ecn: Ecn) {
        let at = self.streams.iter().position(|stream| stream.source == source);
        let at = at.unwrap_or_else(|| {
            let arrivals = VecDeque::new();
            // A stream begins with its first packet, even if that is lost.
            let stream = Collected { source, first: 0, arrivals, reported: 0, late: None };
            self.streams.push(stream);
            self.streams.len() - 1
        });
        let stream = &mut self.streams[at];
        let Some(ahead) = number.checked_sub(stream.first) else { return };
        let ahead = ahead as usize;
        // Nearly always by one.
        while stream.arrivals.len() <= ahead {
            stream.arrivals.push_back(None);
        }
        // Of duplicates the first arrival is reported, but a CE mark on any of them counts (section 3.1).
        let arrival = &mut stream.arrivals[ahead];
        match arrival {
            Some((_, known)) if ecn == Ecn::Ce => *known = Ecn::Ce,
            Some(_) => {}
            None => {
                *arrival = Some((now, ecn));
                if ahead < stream.reported {
                    stream.late = Some(stream.late.map_or(ahead, |late| late.min(ahead)));
                }
            }
        }
    }

    /// The next report; `None` if there is nothing new.
    #[inline(always)]
    pub fn report(&mut self, now: Time) -> Option<Ccfb> {
        let mut streams = Vec::with_capacity(self.streams.len());
        let mut left = MOST_PACKETS;
        for stream in self.streams.iter_mut().filter_map(|stream| stream.report(now, &mut left)) {
            streams.push(stream);
        }
        (!streams.is_empty()).then(|| Ccfb { sent: ntp_middle(now), streams })
    }
}

impl Collected {
    /// A report on at most as many packets as are `left`, which it takes from these.
    fn report(&mut self, now: Time, left: &mut usize) -> Option<CcfbStream> {
        let begin = self.late.unwrap_or(self.reported);
        let end = self.arrivals.len().min(begin + *left);
        if begin >= end {
            return None;
        }
        self.late = None;
        *left -= end - begin;
        let packet = |arrival: &Option<(Time, Ecn)>| {
            arrival.map(|(at, ecn)| {
                let before = (now.since(at).min(FARTHEST).as_nanos() << 10) / 1_000_000_000;
                let before = Some(before as u16).filter(|before| *before <= LARGEST_OFFSET);
                CcfbArrival { ecn, before }
            })
        };
        let packets = self.arrivals.range(begin..end).map(packet).collect();
        let report =
            CcfbStream { source: self.source, begin: (self.first + begin as u32) as u16, packets };
        self.reported = self.reported.max(end);
        let done = self.reported.saturating_sub(OVERLAP);
        self.arrivals.drain(..done);
        self.first += done as u32;
        self.reported -= done;
        Some(report)
    }
}

/// The time of an arrival that was `before` (1/1024 s) earlier than the time `sent` in a report, which came at `now`.
/// The report's clock wraps every 18 hours.
pub fn arrived_at(now: Time, sent: u32, before: u16) -> Time {
    let since = ntp_middle(now).wrapping_sub(sent);
    let since = (u64::from(since) * 1_000_000_000) >> 16;
    let ago = since + u64::from(before) * 1_000_000_000 / 1024;
    Time::from_nanos(now.as_nanos().saturating_sub(ago))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ms(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    /// 8 bytes of headers, 8 of a stream, 2 for each packet, padding, and 4 of the time.
    #[test]
    fn a_report_on_seven_packets_is_36_bytes() {
        let packets = (0..7).map(|n| Some(CcfbArrival { ecn: Ecn::Ect1, before: Some(n) }));
        let stream = CcfbStream { source: 1, begin: 65_533, packets: packets.collect() };
        let report = Ccfb { sent: 7, streams: vec![stream] };
        let bytes = report.write();
        assert_eq!(bytes.len(), 8 + 8 + 16 + 4);
        // V=2, FMT=11, PT=205, 9 words in all; the first packet arrived with ECT(1), 0 ticks ago.
        assert_eq!(&bytes[..4], [0x8b, 205, 0, 8]);
        assert_eq!(&bytes[12..18], [0xff, 0xfd, 0, 7, 0xa0, 0]);
        assert_eq!(Ccfb::read(&bytes[4..]), Some(report));
    }

    #[test]
    fn a_receiver_reports_every_stream_with_marks_and_times() {
        let mut arrivals = CcfbArrivals::default();
        arrivals.on_packet(1, 0, ms(1000), Ecn::Ect1);
        arrivals.on_packet(1, 2, ms(1250), Ecn::Ce);
        arrivals.on_packet(3, 0, ms(1500), Ecn::Ect1);
        let report = arrivals.report(ms(1500)).expect("three arrived");
        let at = |ecn, before| Some(CcfbArrival { ecn, before: Some(before) });
        assert_eq!(report.streams[0].packets, [at(Ecn::Ect1, 512), None, at(Ecn::Ce, 256)]);
        assert_eq!(report.streams[1].packets, [at(Ecn::Ect1, 0)]);
        assert_eq!(arrived_at(ms(1500), report.sent, 512), ms(1000));
        assert_eq!(arrivals.report(ms(1600)), None);
        // A late packet is reported on, with what followed it.
        arrivals.on_packet(1, 1, ms(1700), Ecn::Ect1);
        let late = arrivals.report(ms(1700)).expect("a late one");
        assert_eq!((late.streams[0].begin, late.streams[0].packets.len()), (1, 2));
        assert_eq!(arrivals.report(ms(1800)), None);
    }

    #[test]
    fn reports_on_many_packets_of_several_streams_fit_a_datagram_each() {
        let mut arrivals = CcfbArrivals::default();
        for source in 1..=3 {
            arrivals.on_packet(source, 999, ms(1000), Ecn::Ect1);
        }
        let reports: Vec<Ccfb> = core::iter::from_fn(|| arrivals.report(ms(1000))).collect();
        assert!(reports.iter().all(|report| report.write().len() < 1000));
        let packets =
            reports.iter().flat_map(|report| &report.streams).map(|stream| stream.packets.len());
        assert_eq!((reports.len(), packets.sum::<usize>()), (8, 3000));
    }

    #[test]
    fn an_arrival_long_ago_has_no_time() {
        let mut arrivals = CcfbArrivals::default();
        arrivals.on_packet(1, 0, ms(0), Ecn::NotEct);
        let report = arrivals.report(ms(8000)).expect("one arrived");
        assert_eq!(
            report.streams[0].packets,
            [Some(CcfbArrival { ecn: Ecn::NotEct, before: None })]
        );
    }

    #[test]
    fn the_clock_of_reports_begins_again() {
        let now = Time::from_nanos(65_536 * 1_000_000_000 + 20_000_000);
        let sent = ntp_middle(Time::from_nanos(now.as_nanos() - 40_000_000));
        let at = arrived_at(now, sent, 1024);
        let ago = now.since(at).as_millis_f64();
        assert!((1038.0..=1041.0).contains(&ago), "{ago}");
    }

    fn anything() -> impl Strategy<Value = Ccfb> {
        let ecn = prop::sample::select(vec![Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce]);
        let before = prop::option::of(0..=LARGEST_OFFSET);
        let arrival = (ecn, before).prop_map(|(ecn, before)| CcfbArrival { ecn, before });
        let packets = prop::collection::vec(prop::option::of(arrival), 0..40);
        let stream = (any::<u32>(), any::<u16>(), packets)
            .prop_map(|(source, begin, packets)| CcfbStream { source, begin, packets });
        (any::<u32>(), prop::collection::vec(stream, 0..4))
            .prop_map(|(sent, streams)| Ccfb { sent, streams })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(report in anything()) {
            prop_assert_eq!(Ccfb::read(&report.write()[4..]), Some(report));
        }

        #[test]
        fn anything_else_is_refused_or_read(body in prop::collection::vec(any::<u8>(), 0..64)) {
            Ccfb::read(&body);
        }
    }
}
