use std::collections::BTreeSet;

use sojourn_core::{
    AckBody, AckFlags, AckKind, ContentId, DropReason, Ecn, FlowId, HostId, RtpBody, RtpStream,
    SackBlock, SegmentBody, Span, TcpEcn,
};

use super::*;

fn packet(flow: u32, direction: Direction, at: u64, ip_len: u32, body: Body) -> Packet {
    Packet {
        flow: FlowId(flow),
        connection: 0,
        direction,
        ecn: Ecn::Ect0,
        dscp: 0,
        segments: 1,
        wire_len: ip_len + 14,
        hop: 0,
        src: HostId(u16::from(direction == Direction::Reverse)),
        dst: HostId(u16::from(direction == Direction::Forward)),
        sent: Time::from_nanos(at),
        body,
    }
}

fn data(at: u64, first: u32, segments: u16, retransmission: bool) -> Packet {
    let segment = SegmentBody {
        first,
        byte: u64::from(first) * 1448,
        payload: u32::from(segments) * 1448,
        retransmission,
        ecn: TcpEcn::NONE,
        push: false,
        fin: false,
        echo: Time::ZERO,
    };
    let wire_len = u32::from(segments) * 1514;
    let single = packet(0, Direction::Forward, at, 1500, Body::Segment(segment));
    Packet { segments, wire_len, ..single }
}

fn ack(at: u64, ack: u32, sack: &[(u32, u32)]) -> Packet {
    let mut blocks = [SackBlock::default(); 3];
    for (block, (start, end)) in blocks.iter_mut().zip(sack) {
        *block = SackBlock { start: *start, end: *end };
    }
    let body = AckBody {
        ack,
        window: 65_536,
        echo: Time::ZERO,
        sack: blocks,
        sack_count: sack.len() as u8,
        flags: AckFlags::NONE,
        ecn: TcpEcn::NONE,
        ce_bytes: None,
        kind: AckKind::Ack,
    };
    let options = if sack.is_empty() { 0 } else { 4 + 8 * sack.len() as u32 };
    packet(0, Direction::Reverse, at, 52 + options, Body::Ack(body))
}

fn observer(taps: Taps) -> PcapObserver<Vec<u8>> {
    let config = PcapConfig {
        flows: vec!["bulk".into()],
        links: vec!["queue".into()],
        taps,
        ..PcapConfig::default()
    };
    PcapObserver::new(Vec::new(), config).unwrap()
}

/// (interface, nanoseconds, captured bytes, length on the wire, comments) of each packet block.
type Block = (u32, u64, Vec<u8>, u32, Vec<String>);

fn blocks(file: &[u8]) -> Vec<Block> {
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
    let half = |at: usize| u16::from_le_bytes(file[at..at + 2].try_into().unwrap());
    let mut out = Vec::new();
    let mut at = 0;
    while at < file.len() {
        let length = word(at + 4) as usize;
        assert_eq!(length % 4, 0);
        assert_eq!(word(at + length - 4) as usize, length, "both lengths of a block agree");
        if word(at) == 6 {
            let captured = word(at + 20) as usize;
            let bytes = file[at + 28..at + 28 + captured].to_vec();
            let mut comments = Vec::new();
            let mut option = at + 28 + captured.next_multiple_of(4);
            while option < at + length - 4 && half(option) != 0 {
                let size = usize::from(half(option + 2));
                let text = file[option + 4..option + 4 + size].to_vec();
                comments.push(String::from_utf8(text).unwrap());
                option += 4 + size.next_multiple_of(4);
            }
            let nanos = u64::from(word(at + 12)) << 32 | u64::from(word(at + 16));
            out.push((word(at + 8), nanos, bytes, word(at + 24), comments));
        }
        at += length;
    }
    out
}

fn sum_of(bytes: &[u8]) -> u16 {
    let mut sum: u32 = bytes
        .chunks(2)
        .map(|p| u32::from(p[0]) << 8 | u32::from(p.get(1).copied().unwrap_or(0)))
        .sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[test]
fn a_dropped_packet_carries_its_fate_and_keeps_its_place() {
    let mut pcap = observer(Taps::default());
    let flow = Who::Flow(FlowId(0));
    let (first, second) = (data(5_000_000_001, 0, 1, false), data(5_000_000_002, 1, 1, false));
    pcap.record(first.sent, flow, &Event::Sent { packet: &first });
    pcap.record(second.sent, flow, &Event::Sent { packet: &second });
    let later = second.sent + Span::from_millis(3);
    pcap.record(later, flow, &Event::Arrived { packet: &second });
    let why = DropReason::Full;
    pcap.record(later, Who::Port(PortId(0)), &Event::Dropped { packet: &first, why });
    let file = pcap.finish().unwrap();
    let blocks = blocks(&file);
    assert_eq!(blocks.len(), 2);
    assert_eq!(blocks[0].1, 5_000_000_001, "nanoseconds survive");
    assert_eq!(blocks[0].4, ["dropped at queue: full"]);
    assert!(blocks[1].4.is_empty());
    assert_eq!(blocks[0].3, 1514);
}

#[test]
fn checksums_are_valid_and_sequence_numbers_count_bytes() {
    let mut pcap = observer(Taps::default());
    let flow = Who::Flow(FlowId(0));
    let burst = data(1_000, 10, 3, false);
    pcap.record(burst.sent, flow, &Event::Sent { packet: &burst });
    let reply = ack(2_000, 10, &[(11, 13)]);
    pcap.record(Time::from_nanos(3_000), flow, &Event::Arrived { packet: &reply });
    let blocks = blocks(&pcap.finish().unwrap());
    assert_eq!(blocks.len(), 4, "an offloaded packet is written as wire packets");
    for (_, _, bytes, length, _) in &blocks {
        let ip = &bytes[14..34];
        assert_eq!(sum_of(ip), 0xffff, "IPv4 header checksum");
        let total = u16::from_be_bytes([ip[2], ip[3]]);
        assert_eq!(u32::from(total) + 14, *length);
        let mut pseudo = ip[12..20].to_vec();
        pseudo.extend([0, 6]);
        pseudo.extend((total - 20).to_be_bytes());
        pseudo.extend(&bytes[34..]);
        assert_eq!(sum_of(&pseudo), 0xffff, "TCP checksum over zeros");
    }
    let word = |bytes: &[u8], at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
    let sequence = |block: &Block| word(&block.2, 38);
    assert_eq!(sequence(&blocks[1]) - sequence(&blocks[0]), 1448);
    let reply = &blocks[3].2;
    assert_eq!(word(reply, 42), 1_000_000_001 + 10 * 1448, "acknowledgement");
    assert_eq!(reply[34 + 20 + 14], 5, "selective acknowledgement option");
    assert_eq!(word(reply, 34 + 36), 1_000_000_001 + 11 * 1448);
    assert_eq!(word(reply, 34 + 40), 1_000_000_001 + 13 * 1448);
}

#[test]
fn every_tap_point_is_an_interface() {
    let mut pcap = observer(Taps::ALL);
    let flow = Who::Flow(FlowId(0));
    let packet = data(10, 0, 1, false);
    pcap.record(Time::from_nanos(10), flow, &Event::Sent { packet: &packet });
    pcap.record(
        Time::from_nanos(20),
        Who::Port(PortId(0)),
        &Event::Enqueued { packet: &packet, backlog: 1 },
    );
    let sojourn = Span::from_millis(5);
    pcap.record(
        Time::from_nanos(30),
        Who::Port(PortId(0)),
        &Event::Dequeued { packet: &packet, sojourn },
    );
    pcap.record(Time::from_nanos(40), flow, &Event::Arrived { packet: &packet });
    let blocks = blocks(&pcap.finish().unwrap());
    let interfaces: Vec<u32> = blocks.iter().map(|block| block.0).collect();
    assert_eq!(interfaces, [0, 2, 3, 1]);
    let times: Vec<u64> = blocks.iter().map(|block| block.1).collect();
    assert_eq!(times, [10, 20, 30, 40], "blocks are in order of time");
    let numbers: Vec<&[u8]> = blocks.iter().map(|block| &block.2[18..20]).collect();
    assert!(numbers.iter().all(|number| *number == numbers[0]), "{numbers:?}");
}

#[test]
fn packets_that_leave_at_one_moment_have_numbers_of_their_own() {
    let mut pcap = observer(Taps::default());
    let flow = Who::Flow(FlowId(0));
    let burst = data(10, 0, 20, false);
    pcap.record(burst.sent, flow, &Event::Sent { packet: &burst });
    for number in 0..20 {
        let datagram =
            packet(0, Direction::Forward, 10, 1500, Body::Opaque { number, content: ContentId(0) });
        pcap.record(datagram.sent, flow, &Event::Sent { packet: &datagram });
    }
    let blocks = blocks(&pcap.finish().unwrap());
    let numbers: BTreeSet<&[u8]> = blocks.iter().map(|block| &block.2[18..20]).collect();
    assert_eq!(numbers.len(), 40);
}

#[test]
fn a_broken_writer_is_reported_at_the_end() {
    struct Full(usize);
    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let config = PcapConfig { flows: vec!["bulk".into()], ..Default::default() };
    let mut pcap = PcapObserver::new(Full(200), config).unwrap();
    for at in 0..10 {
        let packet = data(at, at as u32, 1, false);
        pcap.record(packet.sent, Who::Flow(FlowId(0)), &Event::Sent { packet: &packet });
    }
    assert_eq!(pcap.finish().err().map(|error| error.kind()), Some(io::ErrorKind::StorageFull));
}

#[test]
fn every_connection_of_a_flow_has_ports_and_numbers_of_its_own() {
    let mut observer = observer(Taps::default());
    let on = |connection: u32, packet: Packet| Packet { connection, ..packet };
    let shake = Body::Handshake { asked: Time::ZERO, ecn: TcpEcn::NONE };
    for connection in [1, 2] {
        let request = on(connection, packet(0, Direction::Forward, 10, 60, shake));
        let segment = on(connection, data(20, 0, 1, false));
        for sent in [request, segment] {
            let event = Event::Sent { packet: &sent };
            observer.record(sent.sent, Who::Flow(FlowId(0)), &event);
        }
    }
    // Both segments left at the same time and have the same number: only one is dropped.
    let dropped = on(2, data(20, 0, 1, false));
    let event = Event::Dropped { packet: &dropped, why: DropReason::Full };
    observer.record(Time::from_nanos(30), Who::Port(PortId(0)), &event);
    let found = blocks(&observer.finish().unwrap());
    let port = |block: &Block| u16::from_be_bytes([block.2[36], block.2[37]]);
    let is_dropped = |block: &Block| block.4.iter().any(|comment| comment.contains("dropped"));
    let seen: Vec<(u16, bool)> = found.iter().map(|b| (port(b), is_dropped(b))).collect();
    assert_eq!(seen, [(5002, false), (5002, false), (5003, false), (5003, true)]);
}

/// RFC 9768 section 3.1.1, figure 2: AE, CWR and ECE are bits 7 to 9 of the flags.
#[test]
fn the_flags_of_ecn_are_where_a_dissector_looks_for_them() {
    let mut pcap = observer(Taps::default());
    let flow = Who::Flow(FlowId(0));
    let asked = Time::from_nanos(1_000);
    let request = Body::Handshake { asked, ecn: TcpEcn::from_bits(0b111) };
    let request = packet(0, Direction::Forward, 1_000, 60, request);
    pcap.record(request.sent, flow, &Event::Sent { packet: &request });
    let mut told = ack(2_000, 10, &[]);
    let Body::Ack(body) = &mut told.body else { panic!("an acknowledgement") };
    body.ecn = TcpEcn::from_bits(0b101);
    pcap.record(told.sent, flow, &Event::Arrived { packet: &told });
    let flags: Vec<u16> = blocks(&pcap.finish().unwrap())
        .iter()
        .map(|block| u16::from_be_bytes([block.2[46], block.2[47]]) & 0x1ff)
        .collect();
    assert_eq!(flags, [0x1c2, 0x150]);
}

/// RFC 9293 section 3.10.4: the end of a stream has a number of its own, which its acknowledgement counts.
#[test]
fn both_ends_of_a_connection_close_it_with_numbers_that_follow() {
    let mut pcap = observer(Taps { receivers: true, ..Taps::default() });
    let flow = Who::Flow(FlowId(0));
    let mut go = |at: u64, took: u64, packet: Packet| {
        pcap.record(Time::from_nanos(at), flow, &Event::Sent { packet: &packet });
        let arrived = Time::from_nanos(at + took);
        pcap.record(arrived, flow, &Event::Arrived { packet: &packet });
    };
    let of_sender = |at: u64, number: u32, flags: AckFlags| {
        let one = ack(at, number, &[]);
        let Body::Ack(body) = one.body else { panic!("an acknowledgement") };
        packet(0, Direction::Forward, at, 52, Body::Ack(AckBody { flags, ..body }))
    };
    let of_receiver = |at: u64, number: u32, flags: AckFlags| {
        let mut one = ack(at, number, &[]);
        if let Body::Ack(body) = &mut one.body {
            body.flags = flags;
            body.echo = Time::from_nanos(7_000_000);
        }
        one
    };
    let asked = Time::from_nanos(10);
    let shake = Body::Handshake { asked, ecn: TcpEcn::NONE };
    go(10, 5, packet(0, Direction::Forward, 10, 60, shake));
    go(20, 5, packet(0, Direction::Reverse, 20, 60, shake));
    // The end of the handshake, a segment, another that ends the stream, and that both were received.
    go(30, 5, of_sender(30, 0, AckFlags::NONE));
    go(31, 5, data(31, 0, 1, false));
    let mut last = data(32, 1, 1, false);
    if let Body::Segment(segment) = &mut last.body {
        segment.fin = true;
    }
    go(32, 5, last);
    go(40, 5, of_receiver(40, 3, AckFlags::FIN));
    go(50, 5, of_sender(50, 3, AckFlags::NONE));
    let word = |bytes: &[u8], at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
    let file = pcap.finish().unwrap();
    let all = blocks(&file);
    let of = |interface: u32, at: u64| {
        let (_, _, bytes, ..) = all.iter().find(|b| (b.0, b.1) == (interface, at)).unwrap();
        let relative = [word(bytes, 38), word(bytes, 42)];
        (relative, bytes[47])
    };
    const END: u32 = 1_000_000_001 + 2 * 1448;
    // At the sender as at the receiver.
    for (interface, later) in [(0, 0), (1, 5)] {
        assert_eq!(of(interface, 30 + later), ([1_000_000_001, 2_000_000_001], 0x10));
        assert_eq!(of(interface, 32 + later), ([1_000_000_001 + 1448, 2_000_000_001], 0x11));
        assert_eq!(of(interface, 50 + later), ([END + 1, 2_000_000_002], 0x10));
    }
    assert_eq!(of(1, 40), ([2_000_000_001, END + 1], 0x11));
    let (_, _, closing, ..) = all.iter().find(|b| (b.0, b.1) == (1, 40)).unwrap();
    assert_eq!(word(closing, 34 + 20 + 8), 7, "the time that it echoes");
}

/// RFC 7323 sections 2.2 and 2.3: the handshake says the scale and has an unscaled window. What a sender was offered is never said to be less.
#[test]
fn windows_are_those_that_were_offered_in_units_of_the_scale() {
    let of = |offer: Offer, window: u32| {
        let config =
            PcapConfig { flows: vec!["bulk".into()], offers: vec![offer], ..PcapConfig::default() };
        let mut pcap = PcapObserver::new(Vec::new(), config).unwrap();
        let flow = Who::Flow(FlowId(0));
        let shake = Body::Handshake { asked: Time::from_nanos(10), ecn: TcpEcn::NONE };
        let request = packet(0, Direction::Forward, 10, 60, shake);
        let answer = packet(0, Direction::Reverse, 20, 60, shake);
        let mut reply = ack(50, 1, &[]);
        if let Body::Ack(body) = &mut reply.body {
            body.window = window;
        }
        pcap.record(request.sent, flow, &Event::Sent { packet: &request });
        pcap.record(Time::from_nanos(30), flow, &Event::Arrived { packet: &answer });
        let segment = data(40, 0, 1, false);
        pcap.record(segment.sent, flow, &Event::Sent { packet: &segment });
        pcap.record(Time::from_nanos(60), flow, &Event::Arrived { packet: &reply });
        let blocks = blocks(&pcap.finish().unwrap());
        let windows: Vec<u16> =
            blocks.iter().map(|b| u16::from_be_bytes([b.2[48], b.2[49]])).collect();
        assert_eq!(blocks[1].2[34 + 36..34 + 39], [1, 3, 3]);
        (windows, blocks[1].2[34 + 39])
    };
    let usual = Offer::default();
    assert_eq!(of(usual, 76_744), (vec![65_160, 65_160, 510, 600], 7));
    assert_eq!(of(Offer { first: 64_000, scale: 0 }, 64_000).0, [64_000; 4]);
    assert_eq!(of(Offer { first: 65_535, scale: 10 }, 64_001).0, [65_535, 65_535, 64, 63]);
    assert_eq!(
        of(Offer { first: 65_535, scale: 200 }, u32::MAX),
        (vec![65_535, 65_535, 4, 65_535], 14)
    );
}

/// RFC 3550 section 5.1: packets of a stream have one source and numbers that follow each other; repetitions and padding share theirs.
#[test]
fn packets_of_media_have_the_source_and_the_numbers_of_their_stream() {
    let mut pcap = observer(Taps::default());
    let streams = [
        (RtpStream::Video, 70_000, 4464, 96, 1),
        (RtpStream::Repair, 812, 7, 97, 3),
        (RtpStream::Padding, 0, 8, 98, 3),
        (RtpStream::Audio, 5, 5, 111, 4),
    ];
    for (number, (stream, sequence, header_sequence, ..)) in (0..).zip(streams) {
        let sent = Time::from_nanos(1000 + u64::from(number));
        let body = Body::Rtp(RtpBody {
            number,
            transport: 40 + number,
            sequence,
            header_sequence,
            frame: 0,
            captured: sent,
            stamp: sent,
            part: 0,
            parts: 1,
            stream,
            is_key: false,
        });
        let sent = packet(3, Direction::Forward, sent.as_nanos(), 500, body);
        pcap.record(sent.sent, Who::Flow(FlowId(0)), &Event::Sent { packet: &sent });
    }
    for (block, (.., header, kind, source)) in blocks(&pcap.finish().unwrap()).iter().zip(streams) {
        let rtp = &block.2[42..];
        assert_eq!(rtp[1] & 0x7f, kind);
        assert_eq!(u16::from_be_bytes([rtp[2], rtp[3]]), header);
        assert_eq!(u32::from_be_bytes([rtp[8], rtp[9], rtp[10], rtp[11]]), source);
        if kind == 97 {
            assert_eq!(u16::from_be_bytes([rtp[12], rtp[13]]), 812);
        }
    }
}
