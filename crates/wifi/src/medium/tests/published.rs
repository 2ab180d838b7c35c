//! Cases of other projects' published test suites, by the names that they have there. Where the standard and a suite differ,
//! the standard's figure stands and the suite's is named.

use super::*;
use crate::mac::block_ack::{Agreement, Msdu};

/// Mbit/s of UDP payloads, in IP packets of 1500 octets, that the access point sends to its only station, or that station if `up`.
fn alone(config: Config, up: bool, dscp: u8) -> f64 {
    alone_with(config, up, dscp, 1500)
}

/// The same with IP packets of `ip_len` octets.
fn alone_with(config: Config, up: bool, dscp: u8, ip_len: u32) -> f64 {
    let mut config = config;
    config.queue = DriverConfig { limit: 1000, ..QUEUE }.into();
    config.stations[0].queue.limit = 1000;
    let mut medium = Medium::new(config, ADDRESS, 1).unwrap();
    let mut drops = Drops::default();
    let port = if up { Port::up(0) } else { Port::down(0) };
    let packet = Numbered { number: 0, ip_len, dscp, flow: 0 };
    for _ in 0..600 {
        medium.offer(Time::ZERO, port, &packet, &mut drops);
    }
    let delivered = refilled(&mut medium, &mut drops, 10);
    delivered as f64 * f64::from(ip_len - 28) * 8.0 / 10e6
}

/// The first PPDU of the station when so many packets of this length wait: its MPDUs, its octets, and the packets that stay behind.
fn first_ppdu(config: Config, packets: u64, ip_len: u32, dscp: u8) -> (u64, u64, u64) {
    let mut config = config;
    config.stations[0].queue.limit = 1000;
    let mut medium = Medium::new(config, ADDRESS, 1).unwrap();
    for number in 0..packets {
        let packet = Numbered { number, ip_len, dscp, flow: 0 };
        medium.offer(Time::ZERO, Port::up(0), &packet, &mut Drops::default());
    }
    let mut counts = LinkCounts::default();
    while counts.delivered == 0 {
        let now = medium.next_wake();
        medium.on_wake(now, &mut Drops::default());
        while medium.poll_deliver(now).is_some() {}
        counts = medium.counts(Port::up(0));
    }
    assert_eq!(counts.ppdus, 1);
    (counts.mpdus, counts.psdu_octets, packets - counts.delivered)
}

/// `wifi-aggregation`, `wifi-txop-aggregation` and `wifi-80211e-txop` of ns-3, with the bounds that these hold their results
/// to. Their cells have beacons, which ours have not: half a percent.
#[test]
fn a_sender_alone_gets_what_ns3_expects_of_its_examples() {
    const VI: u8 = 40;
    let ht = |limits| cell(Mode::parse("ht mcs 7").unwrap(), 1, limits);
    let aggregations = [
        Limits::HT,
        Limits::NONE,
        Limits { amsdu_octets: 7935, ..Limits::NONE },
        Limits { ampdu_octets: 32_768, amsdu_octets: 3839, ..Limits::HT },
    ];
    let with_txop = |mut config: Config, limit: u64| {
        let limit = Span::from_micros(limit);
        for parameters in config.access_point.iter_mut().chain(&mut config.station) {
            parameters.txop_limit = limit;
        }
        config.cf_end = !limit.is_zero();
        config
    };
    let mut cases = Vec::new();
    for (limit, bounds) in [
        (0, [(58.5, 59.5), (30.0, 31.0), (51.0, 52.0), (58.0, 59.0)]),
        (3520, [(57.5, 58.5), (38.0, 39.0), (52.0, 53.0), (58.0, 59.0)]),
    ] {
        for (limits, bounds) in aggregations.into_iter().zip(bounds) {
            let name = format!("802.11n {limits:?}, TXOP {limit} µs");
            cases.push((name, with_txop(ht(limits), limit), false, 0, bounds));
        }
    }
    for (dscp, limit, bounds) in [
        (0, 0, (28.0, 29.0)),
        (0, 4096, (36.5, 37.0)),
        (VI, 4096, (36.5, 37.5)),
        (VI, 0, (31.5, 32.5)),
    ] {
        let config = cell(Mode::non_ht(54).unwrap(), 1, Limits::NONE);
        let name = format!("802.11a, DSCP {dscp}, TXOP {limit} µs");
        cases.push((name, with_txop(config, limit), true, dscp, bounds));
    }
    for (name, config, up, dscp, (least, most)) in cases {
        let mbps = alone(config, up, dscp);
        assert!((least..=1.005 * most).contains(&mbps), "{name}: {mbps} for {least} to {most}");
    }
}

/// What ns-3's manual (chapter on tests of Wi-Fi) has for 802.11n: `wifi-spectrum-saturation-example` with packets of 1500
/// octets, and `wifi-spectrum-per-interference` without interference, of 1000, at MCS 0 to 7; its cells have beacons.
#[test]
fn a_sender_alone_gets_what_ns3s_manual_says() {
    let published = [
        (1500, [5.81, 11.83, 17.79, 23.80, 35.73, 47.62, 53.61, 59.55]),
        (1000, [5.77, 11.58, 17.39, 23.23, 34.90, 46.51, 52.39, 58.18]),
    ];
    let row = |(ip_len, row): (u32, [f64; 8])| {
        let modes = (0..).map(|mcs| format!("ht mcs {mcs}"));
        row.into_iter().zip(modes).map(move |(published, mode)| (mode, ip_len, published))
    };
    let fastest = (String::from("ht mcs 15 width 40MHz sgi"), 1500, 254.902);
    for (mode, ip_len, published) in published.into_iter().flat_map(row).chain([fastest]) {
        let config = cell(Mode::parse(&mode).unwrap(), 1, Limits::HT);
        let mbps = alone_with(config, false, 0, ip_len);
        assert!((mbps / published - 1.0).abs() < 0.01, "{mode}, {ip_len}: {mbps} for {published}");
    }
}

/// `wifi-aggregation` of ns-3's tests. Its packets are MSDUs, ours have LLC and SNAP in them, too.
#[test]
fn aggregates_are_those_of_ns3s_tests() {
    const LLC_SNAP: u32 = 8;
    const VI: u8 = 40;
    let with = |mode: &str, limits| cell(Mode::parse(mode).unwrap(), 1, limits);
    // Three MPDUs of 1530 octets, the first two with delimiter and padding.
    let ht = |amsdu_octets| with("ht mcs 7", Limits { amsdu_octets, ..Limits::HT });
    assert_eq!(first_ppdu(ht(0), 3, 1500 - LLC_SNAP, 0), (3, 4606, 0));
    // An A-MSDU of two is 3030 octets; of three it would be 4544. ns-3 sets 4095, more than an MPDU in an A-MPDU has room for.
    assert_eq!(first_ppdu(ht(4065), 3, 1500 - LLC_SNAP, 0), (2, 3064 + 1534, 0));
    // MPDUs of 2660, 2660 and 1330 octets in the TXOP of video that 802.11-2012 has; five of ten packets stay.
    let mut video = with("ht mcs 2", Limits { amsdu_octets: 3050, ..Limits::HT });
    video.station[AccessCategory::Vi as usize].txop_limit = Span::from_micros(3008);
    assert_eq!(first_ppdu(video, 10, 1300 - LLC_SNAP, VI), (3, 6662, 5));
    for window in [64, 256] {
        let he = with("he mcs 11", Limits { window, ..Limits::HE });
        let (mpdus, _, left) = first_ppdu(he, 300, 100 - LLC_SNAP, 0);
        assert_eq!((mpdus, left), (u64::from(window), u64::from(300 - window)));
    }
    // ns-3 has four MSDUs of 1008 octets in an MPDU of 4124; a delimiter of HT says 4095 at most.
    let limits = Limits { ampdu_octets: 7500, amsdu_octets: 4065, ..Limits::HT };
    assert_eq!(first_ppdu(with("ht mcs 7", limits), 8, 1000, 0), (3, 2 * 3104 + 1042, 1));
}

/// An agreement whose MSDUs are numbered as sent.
struct Sent {
    agreement: Agreement,
    store: Store<Numbered>,
    out: Chain,
    next: u64,
}

impl Sent {
    fn new() -> Self {
        Self { agreement: Agreement::new(), store: Store::new(), out: Chain::EMPTY, next: 0 }
    }

    /// Another MPDU of so many MSDUs has a number.
    fn send(&mut self, msdus: u32) {
        for msdu in 0..msdus {
            let packet = Numbered { number: self.next, ip_len: 100, dscp: 0, flow: 0 };
            self.agreement.append(Msdu {
                packet: self.store.put(&packet, Port::up(0), self.next, Time::ZERO),
                ip_len: 100,
                order: self.next,
                mpdu_octets: if msdu == 0 { 138 } else { 0 },
                attempts: 0,
                ppdu: 0,
                fate: Fate::Open,
                received: Time::NEVER,
                is_passed_on: false,
            });
            self.next += 1;
        }
    }

    /// All that is open is sent in one PPDU, of which these arrive and those are given up; the MSDUs that are passed on.
    fn settle(&mut self, arrive: &[u64], given_up: &[u64]) -> Vec<u64> {
        let mut mpdus = 0;
        for msdu in self.agreement.iter_mut().filter(|msdu| msdu.fate == Fate::Open) {
            msdu.ppdu = 1;
            mpdus += u32::from(msdu.mpdu_octets > 0);
        }
        let end = Time::from_nanos(1);
        let out = self.store.appender(&mut self.out);
        self.agreement.settle((1, mpdus), end, out, |msdu| match msdu.order {
            number if arrive.contains(&number) => (Fate::Received, end),
            number if given_up.contains(&number) => (Fate::Discarded, end),
            _ => (Fate::Open, msdu.received),
        });
        self.agreement.remove_done(|_| ());
        let mut passed = Vec::new();
        while let Some(out) = self.store.come_out_if(&mut self.out, |_| true) {
            passed.push(out.packet.number);
        }
        passed
    }

    fn room(&self) -> u32 {
        self.agreement.room(16)
    }
}

/// The situations of ns-3's test of the originator's window (`wifi-block-ack`), of 16 frames, and what their recipient
/// passes on.
#[test]
fn a_window_moves_to_the_first_frame_that_is_open() {
    let mut sent = Sent::new();
    (0..5).for_each(|_| sent.send(1));
    assert_eq!((sent.settle(&[0, 1, 2, 3, 4], &[]), sent.room()), (alloc::vec![0, 1, 2, 3, 4], 16));
    (5..10).for_each(|_| sent.send(1));
    assert_eq!((sent.settle(&[6, 7, 8, 9], &[]), sent.room()), (alloc::vec![], 11));
    assert_eq!((sent.settle(&[5], &[]), sent.room()), (alloc::vec![5, 6, 7, 8, 9], 16));
    // Holes of three frames and of two.
    (10..22).for_each(|_| sent.send(1));
    assert_eq!((sent.settle(&[13, 14, 15, 16, 19, 20, 21], &[]), sent.room()), (alloc::vec![], 4));
    (22..26).for_each(|_| sent.send(1));
    assert!(!sent.agreement.has_room(16));
    // The last of a hole is given up, so that what is behind it is old.
    assert_eq!(
        (sent.settle(&[10, 11], &[12]), sent.room()),
        (alloc::vec![10, 11, 13, 14, 15, 16], 7)
    );
    assert_eq!((sent.settle(&[18, 22, 23, 24, 25], &[]), sent.room()), (alloc::vec![], 7));
    let rest = alloc::vec![17, 18, 19, 20, 21, 22, 23, 24, 25];
    assert_eq!((sent.settle(&[17], &[]), sent.room()), (rest, 16));
}

/// Those of the tests of a reordering buffer in Linux (`iwlmld-rx`), as far as they are frames of one agreement: what is
/// stored, what arrives, and what is released.
#[test]
fn frames_are_released_up_to_the_next_hole() {
    for (stored, arrives, released) in [
        (alloc::vec![], 0, alloc::vec![0]),
        (alloc::vec![1], 0, alloc::vec![0, 1]),
        (alloc::vec![2], 0, alloc::vec![0]),
        (alloc::vec![1, 2, 3], 0, alloc::vec![0, 1, 2, 3]),
        (alloc::vec![1, 3, 4], 0, alloc::vec![0, 1]),
        (alloc::vec![1, 3], 2, alloc::vec![]),
    ] {
        let mut sent = Sent::new();
        (0..5).for_each(|_| sent.send(1));
        assert_eq!(sent.settle(&stored, &[]), []);
        assert_eq!(sent.settle(&[arrives], &[]), released, "{stored:?}, {arrives}");
    }
    // All MSDUs of an A-MSDU together.
    let mut sent = Sent::new();
    sent.send(1);
    sent.send(3);
    assert_eq!(sent.settle(&[1], &[]), []);
    assert_eq!(sent.settle(&[0], &[]), [0, 1, 2, 3]);
}
