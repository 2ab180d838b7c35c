//! ECN against the tables and examples of its specifications, and what acknowledgements show of
//! loss.

use sojourn_cca::{Config as CcaConfig, EcnFeedback, EcnRequest};
use sojourn_core::{
    AckBody, AckFlags, AckKind, Body, CeBytes, Direction, Ecn, FlowId, FlowSample, HostId,
    NoObserver, Packet, Purpose, SackBlock, SegmentBody, Span, Stream, StreamAddress, TcpEcn, Time,
};

use super::accecn::Marks;
use super::ecn::Echo;
use super::*;
use crate::apps::Source;

const MSS: u32 = 1460;

fn bits(bits: u8) -> TcpEcn {
    TcpEcn::from_bits(bits)
}

/// RFC 9768 table 2: what A asks, what B supports, the flags of SYN and SYN/ACK (AE, CWR, ECE), and
/// what A concludes.
#[test]
fn the_handshake_agrees_as_table_2_says() {
    use EcnOffer as A;
    use EcnSupport as B;
    let not_ect = Ecn::NotEct;
    let rows = [
        (A::Accurate, B::Accurate, not_ect, 0b111, 0b010, EcnFeedback::Accurate),
        (A::Accurate, B::Accurate, Ecn::Ect1, 0b111, 0b011, EcnFeedback::Accurate),
        (A::Accurate, B::Accurate, Ecn::Ect0, 0b111, 0b100, EcnFeedback::Accurate),
        (A::Accurate, B::Accurate, Ecn::Ce, 0b111, 0b110, EcnFeedback::Accurate),
        (A::Accurate, B::Classic, not_ect, 0b111, 0b001, EcnFeedback::Classic),
        (A::Accurate, B::MarkByMark, not_ect, 0b111, 0b001, EcnFeedback::Classic),
        (A::Accurate, B::Off, not_ect, 0b111, 0b000, EcnFeedback::Off),
        (A::Classic, B::Accurate, not_ect, 0b011, 0b001, EcnFeedback::Classic),
        (A::Off, B::Accurate, not_ect, 0b000, 0b000, EcnFeedback::Off),
        // Not in the table, but of the same kind (RFC 3168 section 6.1.1).
        (A::Classic, B::Classic, not_ect, 0b011, 0b001, EcnFeedback::Classic),
        (A::Classic, B::MarkByMark, not_ect, 0b011, 0b001, EcnFeedback::Classic),
        (A::Classic, B::Off, not_ect, 0b011, 0b000, EcnFeedback::Off),
        (A::Off, B::Classic, not_ect, 0b000, 0b000, EcnFeedback::Off),
        (A::Off, B::Off, not_ect, 0b000, 0b000, EcnFeedback::Off),
    ];
    for (a, b, arrived, syn, syn_ack, feedback) in rows {
        let asked = a.flags(0);
        assert_eq!(asked.bits(), syn, "{a:?} asks");
        let answer = b.agrees_to(asked, EcnRequest::Host).answer(arrived);
        assert_eq!(answer.bits(), syn_ack, "{a:?} {b:?} {arrived:?}");
        assert_eq!(a.agreed(answer), feedback, "{a:?} {b:?} {arrived:?}");
    }
}

/// Table 2, block four, and section 3.1.3.
#[test]
fn answers_that_nobody_should_give_are_read_as_section_3_1_says() {
    let reads = |answer| EcnOffer::Accurate.agreed(bits(answer));
    assert_eq!(reads(0b111), EcnFeedback::Off, "a broken host repeats the question");
    assert_eq!(reads(0b101), EcnFeedback::Accurate, "reserved");
    for answer in 0..8 {
        assert_eq!(EcnOffer::Off.agreed(bits(answer)), EcnFeedback::Off, "{answer:03b}");
    }
    for (asked, echo) in [
        (0b001, Echo::Counters),
        (0b010, Echo::Counters),
        (0b100, Echo::Counters),
        (0b101, Echo::Counters),
        (0b110, Echo::Counters),
    ] {
        let agreed = EcnSupport::Accurate.agrees_to(bits(asked), EcnRequest::Host);
        assert_eq!(agreed, echo, "{asked:03b}");
    }
}

/// RFC 8257 section 3.2: both ends run DCTCP.
#[test]
fn classic_feedback_is_mark_by_mark_where_the_controller_wants_it() {
    let asked = EcnOffer::Classic.flags(0);
    for (support, request, echo) in [
        (EcnSupport::Accurate, EcnRequest::MarkByMark, Echo::MarkByMark),
        (EcnSupport::Accurate, EcnRequest::Host, Echo::Latched),
        (EcnSupport::Accurate, EcnRequest::L4s, Echo::Latched),
        (EcnSupport::Classic, EcnRequest::MarkByMark, Echo::Latched),
        (EcnSupport::MarkByMark, EcnRequest::Host, Echo::MarkByMark),
        (EcnSupport::Off, EcnRequest::MarkByMark, Echo::Off),
    ] {
        assert_eq!(support.agrees_to(asked, request), echo, "{support:?} {request:?}");
    }
}

/// RFC 9768 section 3.1.4.1, RFC 3168 section 6.1.1.1.
#[test]
fn a_request_that_gets_no_answer_gives_up_ecn() {
    let asks = |offer: EcnOffer| [0, 1, 2, 3].map(|repeats| offer.flags(repeats).bits());
    assert_eq!(asks(EcnOffer::Accurate), [0b111, 0b111, 0, 0]);
    assert_eq!(asks(EcnOffer::Classic), [0b011, 0, 0, 0]);
    assert_eq!(asks(EcnOffer::Off), [0, 0, 0, 0]);
}

/// One acknowledgement without an option.
fn told(marks: &mut Marks, ace: u8, delivered: u32) -> u32 {
    marks.on_ack(bits(ace), None, delivered, MSS).marked
}

/// Section 3.2.1.
#[test]
fn counting_begins_at_five_and_goes_round_at_eight() {
    let mut marks = Marks::default();
    for (ace, marked) in [(5, 0), (6, 1), (7, 1), (0, 1), (0, 0), (3, 3), (2, 7)] {
        assert_eq!(told(&mut marks, ace, 7), marked, "{ace}");
    }
}

/// Appendix A.2.1: 9 segments and 2 more in the field are 2 marks, 10 segments are 10.
#[test]
fn many_segments_at_once_may_hide_a_round_of_the_field() {
    for (delivered, marked) in [(2, 2), (7, 2), (8, 2), (9, 2), (10, 10), (17, 10), (18, 18)] {
        let mut marks = usual();
        assert_eq!(told(&mut marks, 5 + 2, delivered), marked, "{delivered} segments");
    }
}

/// Acknowledgements of two segments each, so far.
fn usual() -> Marks {
    let mut marks = Marks::default();
    told(&mut marks, 5, 2);
    marks
}

/// Appendix A.2.1: "only if the average is well below 8".
#[test]
fn acknowledgements_that_are_always_rare_hide_nothing() {
    let mut marks = Marks::default();
    assert_eq!(told(&mut marks, 5 + 2, 10), 2);
    // When they are frequent again, a rare one is suspicious.
    for _ in 0..200 {
        assert_eq!(told(&mut marks, 5 + 2, 2), 0);
    }
    assert_eq!(told(&mut marks, 5 + 4, 10), 10);
}

/// Section 3.2.2.5.2: more marks than segments are believed.
#[test]
fn the_field_counts_what_the_sender_does_not() {
    assert_eq!(told(&mut usual(), 5 + 3, 1), 3);
}

/// Appendix A.2.2, its three examples.
#[test]
fn marked_bytes_decide_whether_the_field_went_round() {
    for (d_cep, delivered, d_ceb, marked) in
        [(0, 8, 1460, 8), (2, 10, 1460, 2), (7, 15, 10_200, 7), (2, 10, 14_600, 10), (0, 8, 0, 0)]
    {
        let told =
            usual().on_ack(bits(5 + d_cep), Some(CeBytes::new(d_ceb)), delivered, MSS).marked;
        assert_eq!(told, marked, "{d_cep} {delivered} {d_ceb}");
    }
}

#[test]
fn marked_bytes_tell_how_often_the_field_went_round() {
    for truth in 0..=44 {
        let mut marks = usual();
        let bytes = Some(CeBytes::new(truth * MSS));
        let told = marks.on_ack(bits(5u8.wrapping_add(truth as u8)), bytes, 44, MSS);
        assert_eq!(told.marked, truth);
        assert!(!told.is_inconsistent);
    }
}

/// An option that was left out for lack of room comes with the next acknowledgement.
#[test]
fn bytes_of_marks_that_are_counted_already_are_not_counted_again() {
    let mut marks = usual();
    assert_eq!(marks.on_ack(bits(5 + 2), None, 2, MSS).marked, 2);
    let told = marks.on_ack(bits(5 + 2), Some(CeBytes::new(2 * MSS)), 16, MSS);
    assert_eq!(told.marked, 0);
}

/// Section 3.2.3.2.5.
#[test]
fn marked_bytes_without_a_marked_packet_are_inconsistent() {
    let told = usual().on_ack(bits(5), Some(CeBytes::new(MSS)), 2, MSS);
    assert_eq!((told.marked, told.is_inconsistent), (0, true));
}

const ENDS: Endpoints =
    Endpoints { flow: FlowId(0), sender: HostId(0), receiver: HostId(1), dscp: 0 };

fn at(millis: u64) -> Time {
    Time::from_nanos(millis * 1_000_000)
}

fn stream() -> Stream {
    StreamAddress { seed: 1, run: 0 }.stream_named("ecn", Purpose::Controller)
}

fn sender(cca: &str, config: &Config) -> Sender {
    let cca = CcaConfig::parse(cca).expect("a controller");
    let source = Source::Bulk { bytes: None, stop: Time::NEVER };
    Sender::new(config.clone(), cca, ENDS, source, Time::ZERO, stream())
}

fn receiver(cca: &str, config: &Config) -> Receiver {
    let request = CcaConfig::parse(cca).expect("a controller").ecn_request();
    Receiver::new(config.clone(), request, ENDS)
}

/// A connection whose answer passes `alter`; returns both ends and the first flight.
fn connect(
    cca: &str,
    config: &Config,
    alter: impl Fn(&mut Packet),
) -> (Sender, Receiver, Vec<Packet>) {
    let (mut sender, mut receiver) = (sender(cca, config), receiver(cca, config));
    let request = sender.poll_transmit(Time::ZERO).expect("a request");
    assert_eq!(request.ecn, Ecn::NotEct);
    receiver.on_packet(at(5), &request, &mut NoObserver);
    let mut answer = receiver.poll_transmit(at(5)).expect("an answer");
    assert_eq!(answer.ecn, Ecn::NotEct);
    alter(&mut answer);
    sender.on_packet(at(10), &answer, &mut NoObserver);
    confirm(&mut sender);
    let flight = std::iter::from_fn(|| sender.poll_transmit(at(10))).collect();
    (sender, receiver, flight)
}

/// The handshake's third packet leaves before data.
fn confirm(sender: &mut Sender) {
    let third = sender.poll_transmit(at(10)).expect("an acknowledgement");
    assert_eq!((third.wire_len, third.ecn), (66, Ecn::NotEct));
    assert!(matches!(third.body, Body::Ack(ack) if ack.flags == AckFlags::HANDSHAKE));
}

/// What data bears by controller, offer and support (RFC 9331 sections 4.1 and 4.2).
#[test]
fn only_accurate_feedback_allows_ect1() {
    let of = |cca: &str, ecn: Option<EcnOffer>, receiver_ecn: EcnSupport| {
        let config = Config { ecn, receiver_ecn, ..Config::default() };
        let (sender, _, flight) = connect(cca, &config, |_| {});
        (flight[0].ecn, sender.ecn.repeated)
    };
    use EcnOffer as A;
    use EcnSupport as B;
    for cca in ["prague", "prague-linux", "prague-udp"] {
        assert_eq!(of(cca, None, B::Accurate), (Ecn::Ect1, Ecn::Ect1), "{cca}");
        assert_eq!(of(cca, None, B::Classic), (Ecn::Ect0, Ecn::NotEct), "{cca}");
        assert_eq!(of(cca, Some(A::Classic), B::Accurate), (Ecn::Ect0, Ecn::NotEct), "{cca}");
        assert_eq!(of(cca, None, B::Off), (Ecn::NotEct, Ecn::NotEct), "{cca}");
        assert_eq!(of(cca, Some(A::Off), B::Accurate), (Ecn::NotEct, Ecn::NotEct), "{cca}");
    }
    assert_eq!(of("dctcp", None, B::Accurate), (Ecn::Ect0, Ecn::Ect0));
    assert_eq!(of("cubic", None, B::Accurate), (Ecn::NotEct, Ecn::NotEct));
    assert_eq!(of("cubic", Some(A::Classic), B::Accurate), (Ecn::Ect0, Ecn::NotEct));
    assert_eq!(of("cubic", Some(A::Accurate), B::Accurate), (Ecn::Ect0, Ecn::Ect0));
}

/// Section 3.2.2.3: the request came with a codepoint that it did not have.
#[test]
fn a_codepoint_put_in_on_the_way_ends_ecn_but_not_the_feedback() {
    for answer in [0b011, 0b100, 0b110] {
        let (sender, _, flight) = connect("prague", &Config::default(), |packet| {
            if let Body::Handshake { ecn, .. } = &mut packet.body {
                *ecn = bits(answer);
            }
        });
        assert_eq!(flight[0].ecn, Ecn::NotEct);
        assert_eq!(sender.ecn.feedback, EcnFeedback::Accurate);
        // Section 3.2.2.2: a mark on the request is congestion.
        let is_reducing = sender.state == sojourn_cca::RecoveryState::Cwr;
        assert_eq!(is_reducing, answer == 0b110, "{answer:03b}");
    }
}

#[test]
fn an_answer_without_flags_turns_prague_into_reno() {
    let (sender, _, flight) = connect("prague", &Config::default(), |packet| {
        if let Body::Handshake { ecn, .. } = &mut packet.body {
            *ecn = TcpEcn::NONE;
        }
    });
    assert_eq!((flight[0].ecn, sender.ecn.feedback), (Ecn::NotEct, EcnFeedback::Off));
    assert!(!sender.pacer.is_on, "Reno does not pace");
}

#[test]
fn an_offloaded_burst_is_cut_where_the_card_was_polled() {
    let sizes = |offload, offload_segments| {
        let config = Config { offload, offload_segments, initial_cwnd: 100, ..Config::default() };
        let (_, _, flight) = connect("reno", &config, |_| {});
        for packet in &flight {
            let Body::Segment(segment) = &packet.body else { panic!("data") };
            assert_eq!(segment.payload, 1448 * u32::from(packet.segments));
            assert_eq!(packet.wire_len, 1514 * u32::from(packet.segments));
        }
        flight.iter().map(|packet| packet.segments).collect::<Vec<_>>()
    };
    let bursts = sizes(true, u32::from(u16::MAX));
    assert!(bursts.iter().any(|burst| *burst > 6), "{bursts:?}");
    let pieces = |burst: u16| (0..burst.div_ceil(3)).map(move |piece| (burst - 3 * piece).min(3));
    let cut: Vec<_> = bursts.iter().flat_map(|burst| pieces(*burst)).collect();
    assert_eq!(sizes(true, 3), cut);
    let singles = vec![1; usize::from(bursts.iter().sum::<u16>())];
    assert_eq!(sizes(true, 1), singles);
    assert_eq!(sizes(false, 3), singles);
}

/// Section 3.2.2.4.
#[test]
fn a_counter_that_is_cleared_on_the_way_is_not_believed() {
    let (mut sender, _, _) = connect("prague", &Config::default(), |_| {});
    sender.on_packet(at(20), &ack(1, 0b000, 20), &mut NoObserver);
    assert_eq!(sender.ecn.fresh, Ecn::NotEct);
    sender.on_packet(at(21), &ack(2, 0b011, 21), &mut NoObserver);
    assert_eq!(sender.sample(at(21)).delivered_ce, 0);
}

fn ack(next: u32, ace: u8, sent: u64) -> Packet {
    Packet {
        flow: FlowId(0),
        connection: 0,
        direction: Direction::Reverse,
        ecn: Ecn::NotEct,
        dscp: 0,
        segments: 1,
        wire_len: 66,
        hop: 0,
        src: HostId(1),
        dst: HostId(0),
        sent: at(sent),
        body: Body::Ack(AckBody {
            ack: next,
            window: 1 << 20,
            echo: at(10),
            sack: [SackBlock::default(); 3],
            sack_count: 0,
            flags: AckFlags::NONE,
            ecn: bits(ace),
            ce_bytes: None,
            kind: AckKind::Ack,
        }),
    }
}

/// Appendix A.1: an acknowledgement of nothing new that left earlier is ignored.
#[test]
fn an_overtaken_acknowledgement_tells_nothing() {
    let (mut sender, _, _) = connect("prague", &Config::default(), |_| {});
    sender.on_packet(at(20), &ack(4, 7, 20), &mut NoObserver);
    assert_eq!(sender.sample(at(20)).delivered_ce, 2);
    sender.on_packet(at(21), &ack(4, 6, 19), &mut NoObserver);
    assert_eq!(sender.sample(at(21)).delivered_ce, 2);
    sender.on_packet(at(22), &ack(4, 0, 22), &mut NoObserver);
    assert_eq!(sender.sample(at(22)).delivered_ce, 3);
}

/// Section 3.1.5: CWR is not used with accurate feedback; the field of data says that no
/// acknowledgement was marked. With classic feedback it is sent once.
#[test]
fn a_reduction_is_announced_with_classic_feedback_only() {
    for (offer, during, after) in
        [(EcnOffer::Accurate, bits(5), bits(5)), (EcnOffer::Classic, TcpEcn::CWR, TcpEcn::NONE)]
    {
        let config = Config { ecn: Some(offer), ..Config::default() };
        let (mut sender, _, _) = connect("reno", &config, |_| {});
        let marked = if offer == EcnOffer::Classic { 0b001 } else { 6 };
        sender.on_packet(at(20), &ack(6, marked, 20), &mut NoObserver);
        assert_eq!(sender.state, sojourn_cca::RecoveryState::Cwr);
        let mut sent = Vec::new();
        for next in 7..=10 {
            sender.on_packet(at(20), &ack(next, marked, 20), &mut NoObserver);
            while let Some(packet) = sender.poll_transmit(at(20)) {
                let Body::Segment(segment) = packet.body else { panic!("data") };
                sent.push(segment.ecn);
            }
        }
        assert_eq!(sent[0], during, "{offer:?}");
        assert!(sent[1..].iter().all(|flags| *flags == after), "{offer:?} {sent:?}");
    }
}

/// DCTCP responds to a loss whatever it did for marks; Reno does not reduce twice in a flight. The
/// reduction under way smooths the result.
#[test]
fn a_loss_during_a_reduction_for_marks_is_told_to_the_controller() {
    use sojourn_cca::RecoveryState;
    for (cca, ssthresh) in [("dctcp", 2), ("reno", 5)] {
        let config = Config { ecn: Some(EcnOffer::Accurate), ..Config::default() };
        let (mut sender, _, _) = connect(cca, &config, |_| {});
        sender.on_packet(at(20), &ack(1, 6, 20), &mut NoObserver);
        assert_eq!(sender.state, RecoveryState::Cwr);
        assert_eq!(sender.sample(at(20)).ssthresh, Some(5));
        let mut loss = ack(1, 6, 25);
        let Body::Ack(body) = &mut loss.body else { panic!() };
        body.sack[0] = SackBlock { start: 4, end: 10 };
        body.sack_count = 1;
        sender.on_packet(at(25), &loss, &mut NoObserver);
        assert_eq!(sender.state, RecoveryState::Recovery);
        let sample = sender.sample(at(25));
        assert_eq!((sample.lost, sample.ssthresh), (3, Some(ssthresh)), "{cca}");
        assert!(sample.cwnd <= 5, "{cca}: {}", sample.cwnd);
        // Everything arrives: the window is the threshold, and may grow by one at once.
        sender.on_packet(at(40), &ack(10, 6, 40), &mut NoObserver);
        assert_eq!(sender.state, RecoveryState::Open);
        assert!((ssthresh..=ssthresh + 1).contains(&sender.cwnd()), "{cca}: {}", sender.cwnd());
    }
}

/// An acknowledgement of everything before `next` and of `blocks`, answering what left at `echo`.
fn selective(next: u32, blocks: &[(u32, u32)], echo: u64, sent: u64) -> Packet {
    let mut packet = ack(next, 0, sent);
    let Body::Ack(body) = &mut packet.body else { panic!("an acknowledgement") };
    for (slot, (start, end)) in body.sack.iter_mut().zip(blocks) {
        *slot = SackBlock { start: *start, end: *end };
    }
    body.sack_count = blocks.len() as u8;
    body.echo = at(echo);
    packet
}

/// A delayed acknowledgement that a hole triggered, and one of two blocks, the newest first:
/// neither is reordering, so three segments above a hole are enough to deem it lost (RFC 8985
/// section 6.2 step 4).
#[test]
fn what_one_acknowledgement_tells_is_no_reordering() {
    for (told, then, lost) in [
        (selective(2, &[(3, 4)], 10, 20), selective(2, &[(3, 6)], 10, 20), 1),
        (selective(1, &[(6, 7), (3, 4)], 10, 20), selective(1, &[(6, 8), (3, 4)], 10, 20), 4),
    ] {
        let (mut sender, _, _) = connect("reno", &Config::default(), |_| {});
        sender.on_packet(at(20), &told, &mut NoObserver);
        assert_eq!(sender.sample(at(20)).lost, 0);
        sender.on_packet(at(20), &then, &mut NoObserver);
        assert_eq!(sender.sample(at(20)).lost, lost);
    }
}

/// A segment above two holes that was not reported before is reordering: then a hole waits a
/// quarter of the smallest round trip.
#[test]
fn a_segment_that_is_told_of_late_is_reordering() {
    let (mut sender, _, _) = connect("reno", &Config::default(), |_| {});
    sender.on_packet(at(20), &selective(1, &[(6, 7)], 10, 20), &mut NoObserver);
    sender.on_packet(at(20), &selective(1, &[(3, 4), (6, 7)], 10, 20), &mut NoObserver);
    sender.on_packet(at(20), &selective(1, &[(3, 4), (6, 8)], 10, 20), &mut NoObserver);
    assert_eq!(sender.sample(at(20)).lost, 0);
}

/// A tail loss probe does not affect a timeout that comes later: acknowledgements of originals that
/// were only late undo the timeout (RFC 3522).
#[test]
fn a_timeout_is_taken_back_whatever_a_probe_did_before() {
    for has_probe in [false, true] {
        let (mut sender, _, _) = connect("reno", &Config::default(), |_| {});
        let send = |sender: &mut Sender, now| {
            std::iter::from_fn(|| sender.poll_transmit(at(now))).for_each(drop);
        };
        if has_probe {
            sender.on_packet(at(20), &selective(9, &[], 10, 20), &mut NoObserver);
            // No room for new data: the last segment is sent again.
            let window_end = std::mem::replace(&mut sender.window_end, sender.nxt_byte);
            sender.on_probe_timeout(at(60));
            assert!(sender.probe.is_some_and(|probe| probe.repeats));
            send(&mut sender, 60);
            sender.window_end = window_end;
        }
        sender.on_packet(at(70), &selective(10, &[], 60, 70), &mut NoObserver);
        for now in [70, 80, 90] {
            send(&mut sender, now);
            let everything = selective(sender.outstanding().1, &[], now, now + 10);
            sender.on_packet(at(now + 10), &everything, &mut NoObserver);
        }
        send(&mut sender, 100);
        let first = sender.outstanding().0;
        sender.on_retransmission_timeout(at(1100));
        send(&mut sender, 1100);
        sender.on_packet(at(1101), &selective(first + 2, &[], 100, 1101), &mut NoObserver);
        assert_eq!(sender.sample(at(1101)).spurious_total, Some(1), "with a probe: {has_probe}");
    }
}

/// A buffer of 22 segments is begun while there is memory. An application that is awake fills it up again as its beginning
/// leaves, so ten segments of the window and 22 more are written into memory for five. Then it sleeps until three are
/// left, however wide the window is, and a tail loss probe repeats what was sent.
#[test]
fn an_application_that_sleeps_for_memory_gives_the_window_nothing() {
    for offload in [false, true] {
        let config =
            Config { send_buffer: SendBuffer::Bytes(5 * 1448), offload, ..Config::default() };
        let (mut sender, _, _) = connect("reno", &config, |_| {});
        assert_eq!((sender.outstanding(), sender.sample(at(10)).not_sent), ((0, 10), 22 * 1448));
        let acknowledge = |sender: &mut Sender, next: u32, ms| {
            sender.on_packet(at(ms), &selective(next, &[], 10, 10), &mut NoObserver);
            std::iter::from_fn(|| sender.poll_transmit(at(ms))).for_each(drop);
            sender.outstanding()
        };
        assert_eq!(acknowledge(&mut sender, 10, 20), (10, 30));
        assert_eq!(acknowledge(&mut sender, 11, 30), (11, 32));
        assert_eq!(acknowledge(&mut sender, 29, 40), (29, 32), "4344 bytes and what buffers take");
        sender.on_probe_timeout(at(90));
        assert!(sender.probe.is_some_and(|probe| probe.repeats));
        assert_eq!(sender.outstanding(), (29, 32));
        let (first, end) = acknowledge(&mut sender, 30, 100);
        assert!(first == 30 && end > 60, "the window is 40 wide, and {end}");
        // The receiver has offered more by then.
        assert_eq!(sender.sample(at(100)).not_sent, 45 * 1448);
    }
}

/// PSH is on the last segment of every burst of several, and on a single one where the application slept. Only before
/// Linux 6.10 a burst ends there whatever the window has room for.
#[test]
fn a_lone_segment_is_pushed_where_a_marked_buffer_ends() {
    let lone = |buffer_bound| {
        let config = Config { buffer_bound, ..Config::default() };
        let (mut sender, _, flight) = connect("reno", &config, |_| {});
        let mut pushed = Vec::new();
        let mut note = |packet: &Packet| {
            if let Body::Segment(segment) = &packet.body
                && segment.push
            {
                pushed.push(segment.first);
            }
        };
        flight.iter().for_each(&mut note);
        for next in 1..300 {
            let now = at(20 + u64::from(next));
            sender.on_packet(now, &selective(next, &[], 10, 10), &mut NoObserver);
            std::iter::from_fn(|| sender.poll_transmit(now)).for_each(|packet| note(&packet));
        }
        assert!(pushed.len() > 100);
        pushed.windows(2).filter(|two| two[1] == two[0] + 1).count()
    };
    let alone = lone(true);
    assert!(alone > 2, "{alone}");
    assert_eq!(lone(false), 0);
}

#[test]
fn time_without_room_in_the_send_buffer_counts_if_the_window_has_room() {
    let limited = |buffer: u64| {
        let config = Config { send_buffer: SendBuffer::Bytes(buffer * 1448), ..Config::default() };
        let (mut sender, _, _) = connect("reno", &config, |_| {});
        // The window is 20 then, and what was written 32.
        sender.on_packet(at(40), &selective(10, &[], 10, 10), &mut NoObserver);
        std::iter::from_fn(|| sender.poll_transmit(at(40))).for_each(drop);
        sender.on_packet(at(50), &selective(20, &[], 40, 40), &mut NoObserver);
        std::iter::from_fn(|| sender.poll_transmit(at(50))).for_each(drop);
        let between = |sample: fn(&FlowSample) -> Span| {
            sample(&sender.sample(at(70))) - sample(&sender.sample(at(60)))
        };
        (between(|sample| sample.sndbuf_limited), between(|sample| sample.busy))
    };
    assert_eq!(limited(5), (Span::from_millis(10), Span::from_millis(10)));
    assert_eq!(limited(50), (Span::ZERO, Span::from_millis(10)));
}

/// Acknowledges all that is out once a round trip of 20 ms; the windows of so many rounds, and the sender.
fn rounds(cca: &str, config: &Config, rounds: u64) -> (Vec<u32>, Sender) {
    let (mut sender, _, _) = connect(cca, config, |_| {});
    sender.window_end = 1 << 40;
    let mut flights = Vec::new();
    for round in 0..rounds {
        let (sent, arrives) = (at(10 + 20 * round), at(30 + 20 * round));
        std::iter::from_fn(|| sender.poll_transmit(sent)).for_each(drop);
        let (first, end) = sender.outstanding();
        flights.push(end - first);
        for next in first + 1..=end {
            let told = selective(next, &[], 10 + 20 * round, 20 + 20 * round);
            sender.on_packet(arrives, &told, &mut NoObserver);
            std::iter::from_fn(|| sender.poll_transmit(arrives)).for_each(drop);
        }
    }
    (flights, sender)
}

#[test]
fn a_tuned_send_buffer_grows_with_the_window_and_ends_at_the_most() {
    let tuned = Config { send_buffer: SendBuffer::Auto, ..Config::default() };
    let unlimited = Config { send_buffer: SendBuffer::UNLIMITED, ..Config::default() };
    let (flights, sender) = rounds("reno", &tuned, 7);
    assert_eq!(flights, rounds("reno", &unlimited, 7).0, "it never holds the window back");
    assert_eq!(flights[6], 640);
    let at_most = 2 * 640 * 4352;
    let memory = sender.queue.most_memory();
    assert!((640 * 1448..=at_most).contains(&memory), "{memory}");
    assert_eq!(sender.sample(at(150)).sndbuf_limited, Span::ZERO);
    // Bounded by its most, it is what limits.
    let bounded = Config { most_send_buffer: 200_000, ..tuned };
    let (flights, sender) = rounds("reno", &bounded, 7);
    assert_eq!(sender.queue.most_memory(), 200_000);
    assert!(flights[6] < 300, "{flights:?}");
    assert!(sender.sample(at(150)).sndbuf_limited > Span::from_millis(20));
}

/// Nothing but memory keeps the application from using the window, so the window stays.
#[test]
fn a_window_that_memory_leaves_unused_is_kept() {
    let bounded = Config { most_send_buffer: 200_000, ..Config::default() };
    let window = |count: u64| rounds("reno", &bounded, count).1.sample(at(20 * count)).cwnd;
    let soon = window(8);
    assert!(soon > 250, "{soon}");
    // Several timeouts later; all of it was never in flight.
    assert!(window(60) >= soon, "{} after {soon}", window(60));
}

#[test]
fn bytes_not_sent_are_those_that_the_application_may_have_written() {
    let not_sent = |send_buffer, notsent_lowat| {
        let config = Config { send_buffer, notsent_lowat, ..Config::default() };
        connect("reno", &config, |_| {}).0.sample(at(10)).not_sent
    };
    // Ten segments are out, and buffers have 22.
    assert_eq!(not_sent(SendBuffer::Bytes(100_000), None), 3 * 22 * 1448);
    assert_eq!(not_sent(SendBuffer::Bytes(100_000), Some(16_384)), 22 * 1448);
    assert_eq!(not_sent(SendBuffer::Bytes(20_000), None), 22 * 1448);
    assert_eq!(not_sent(SendBuffer::Auto, None), 3 * 22 * 1448);
    assert_eq!(not_sent(SendBuffer::UNLIMITED, None), 0);
}

/// The answer of the handshake offers a window; nothing leaves beyond it.
#[test]
fn the_first_flight_keeps_to_the_window_of_the_handshake() {
    let first = |config: Config| connect("cubic", &config, |_| {}).0.outstanding().1;
    let fixed = |bytes: u64| Config { receive_window: Some(bytes.into()), ..Config::default() };
    // The last segment of the second ends with the window.
    assert_eq!([3_000, 10_000, 14_480].map(|bytes| first(fixed(bytes))), [2, 7, 10]);
    // Half of 16 KiB in whole segments; one of them is kept free only later.
    assert_eq!(first(Config { initial_receive_buffer: 16_384, ..Config::default() }), 5);
    // It is not scaled yet.
    let wide = Config { initial_cwnd: 100, ..fixed(1 << 20) };
    assert_eq!(first(wide), 65_535u32.div_ceil(1448));
}

/// A receiver that has never offered anything is probed without being given anything; it answers.
#[test]
fn a_window_that_was_never_open_is_probed() {
    let config = Config::default();
    let (mut sender, mut receiver) = (sender("cubic", &config), receiver("cubic", &config));
    let request = sender.poll_transmit(Time::ZERO).expect("a request");
    receiver.on_packet(at(5), &request, &mut NoObserver);
    let answer = receiver.poll_transmit(at(5)).expect("an answer");
    sender.on_packet(at(10), &answer, &mut NoObserver);
    sender.window_end = 0;
    confirm(&mut sender);
    assert!(sender.poll_transmit(at(10)).is_none());
    let wakes = sender.next_wake();
    assert!(wakes >= at(210), "{wakes}");
    sender.on_wake(wakes, &mut NoObserver);
    let probe = sender.poll_transmit(wakes).expect("a probe");
    assert!(matches!(probe.body, Body::Segment(SegmentBody { payload: 0, .. })));
    receiver.on_packet(wakes, &probe, &mut NoObserver);
    let answer = receiver.poll_transmit(wakes).expect("an acknowledgement at once");
    assert!(matches!(answer.body, Body::Ack(AckBody { ack: 0, .. })), "{answer:?}");
    sender.on_packet(wakes, &answer, &mut NoObserver);
    assert!(sender.poll_transmit(wakes).is_some(), "it offers a window");
}

/// The steps, and the bounds in milliseconds, of the kernel's own test of `tcpi_rwnd_limited`
/// (`tcp_tcp_info_tcp-info-rwnd-limited.pkt` of its packetdrill tests). There the handshake shows a window of
/// zero; here it shows none, and the test closes it.
#[test]
fn time_without_a_window_counts_as_the_kernel_counts_it() {
    let config = Config { mss: 1000, ..Config::default() };
    let cca = CcaConfig::parse("cubic").expect("a controller");
    let mut sender =
        Sender::new(config.clone(), cca, ENDS, Source::when_told(), Time::ZERO, stream());
    let mut receiver = receiver("cubic", &config);
    let request = sender.poll_transmit(Time::ZERO).expect("a request");
    receiver.on_packet(at(5), &request, &mut NoObserver);
    let answer = receiver.poll_transmit(at(5)).expect("an answer");
    sender.on_packet(at(10), &answer, &mut NoObserver);
    confirm(&mut sender);
    sender.window_end = 0;
    let leaves = |sender: &mut Sender, now| {
        let payload = |packet: Packet| match packet.body {
            Body::Segment(segment) => segment.payload,
            _ => 0,
        };
        std::iter::from_fn(|| sender.poll_transmit(at(now))).map(payload).collect::<Vec<_>>()
    };
    let tells = |sender: &mut Sender, now, next, window| {
        let mut told = selective(next, &[], 0, now);
        let Body::Ack(body) = &mut told.body else { panic!("an acknowledgement") };
        body.window = window;
        sender.on_packet(at(now), &told, &mut NoObserver);
    };
    let micros = |span: Span| span.as_nanos() / 1_000;
    let limited = |sender: &Sender, now| micros(sender.sample(at(now)).rwnd_limited);
    let busy = |sender: &Sender, now| micros(sender.sample(at(now)).busy);

    assert_eq!(leaves(&mut sender, 10), []);
    assert_eq!(limited(&sender, 10), 0);
    sender.write(1000);
    assert_eq!(leaves(&mut sender, 10), []);
    assert!((98_000..=110_000).contains(&limited(&sender, 110)), "{}", limited(&sender, 110));
    tells(&mut sender, 210, 0, 2000);
    assert!((198_000..=210_000).contains(&limited(&sender, 210)), "{}", limited(&sender, 210));
    assert_eq!(leaves(&mut sender, 210), [1000]);
    tells(&mut sender, 240, 1, 10);
    assert_eq!(leaves(&mut sender, 240), []);
    sender.write(1000);
    assert_eq!(leaves(&mut sender, 240), []);
    tells(&mut sender, 340, 1, 2000);
    assert!((298_000..=310_000).contains(&limited(&sender, 340)), "{}", limited(&sender, 340));
    assert!((328_000..=340_000).contains(&busy(&sender, 340)), "{}", busy(&sender, 340));
    assert_eq!(leaves(&mut sender, 340), [1000]);
    tells(&mut sender, 360, 2, 2000);
    assert_eq!(leaves(&mut sender, 360), []);
    assert!((348_000..=360_000).contains(&busy(&sender, 360)), "{}", busy(&sender, 360));
}

/// The echo shows which copy arrived. If it was the original, it says nothing about what was sent
/// after it (RFC 8985 section 6.2 step 2).
#[test]
fn an_acknowledgement_of_the_original_does_not_make_rack_deem_the_others_lost() {
    for (echo, lost) in [(10, 0), (400, 9)] {
        let (mut sender, _, _) = connect("reno", &Config::default(), |_| {});
        sender.on_retransmission_timeout(at(400));
        std::iter::from_fn(|| sender.poll_transmit(at(400))).for_each(drop);
        sender.on_packet(at(1200), &selective(1, &[], echo, 1200), &mut NoObserver);
        assert_eq!(sender.sample(at(1200)).lost, lost, "echo of {echo} ms");
    }
}

/// A paced connection whose pacer holds something back at 10 ms.
fn held_by_the_pacer(slack: Span) -> Sender {
    let config =
        Config { pacing: true, pacing_slack: slack, initial_cwnd: 1000, ..Config::default() };
    let (mut sender, _, _) = connect("cubic", &config, |_| {});
    sender.window_end = 1 << 30;
    std::iter::from_fn(|| sender.poll_transmit(at(10))).for_each(drop);
    assert!(sender.pacer.stamp > at(10) && sender.pacer.wake >= sender.pacer.stamp);
    sender
}

#[test]
fn the_pacing_timer_runs_late() {
    let lateness = |slack| {
        let mut sender = held_by_the_pacer(slack);
        let mut late = Vec::new();
        while sender.pacer.wake != Time::NEVER {
            let now = sender.next_wake();
            late.push(now.since(sender.pacer.stamp));
            sender.on_wake(now, &mut NoObserver);
            std::iter::from_fn(|| sender.poll_transmit(now)).for_each(drop);
        }
        assert!(late.len() > 20, "{late:?}");
        late
    };
    assert!(lateness(Span::ZERO).iter().all(|late| *late == Span::ZERO));
    let late = lateness(Span::from_millis(3));
    assert!(late.iter().all(|late| *late < Span::from_millis(3)), "{late:?}");
    let mean = late.iter().map(|late| late.as_nanos()).sum::<u64>() / late.len() as u64;
    assert!((1_000_000..2_000_000).contains(&mean), "{late:?}");
}

/// A call before the timer gets nothing, unless an acknowledgement came; the timer then serves the
/// next burst.
#[test]
fn an_acknowledgement_does_not_wait_for_a_late_pacing_timer() {
    let mut sender = held_by_the_pacer(Span::from_millis(100));
    let (stamp, timer) = (sender.pacer.stamp, sender.pacer.wake);
    assert!(timer.since(stamp) > Span::from_millis(1), "the timer is to run later");
    let sent = sender.outstanding().1;
    sender.on_wake(stamp, &mut NoObserver);
    assert!(sender.poll_transmit(stamp).is_none());
    assert_eq!((sender.outstanding().1, sender.pacer.wake), (sent, timer));
    sender.on_packet(stamp, &selective(4, &[], 10, 20), &mut NoObserver);
    std::iter::from_fn(|| sender.poll_transmit(stamp)).for_each(drop);
    assert!(sender.outstanding().1 > sent, "the acknowledgement releases a burst");
    assert!(sender.pacer.stamp > stamp);
    assert_eq!(sender.pacer.wake, timer);
}

/// Feeds data segments with these codepoints, ten milliseconds apart, and collects the
/// acknowledgements sent at once: next segment expected, flags.
fn acknowledged(receiver: &mut Receiver, codepoints: &[Ecn]) -> Vec<(u32, u8)> {
    let mut acks = Vec::new();
    let first = receiver.next_expected();
    for (segment, ecn) in (first..).zip(codepoints) {
        let now = at(1000 + 10 * u64::from(segment));
        receiver.on_packet(now, &data(segment, *ecn, now), &mut NoObserver);
        // As the engine does: once for the packet, once for a wake that is due now.
        let mut polled = receiver.poll_transmit(now);
        while let Some(packet) = polled {
            let Body::Ack(body) = packet.body else { panic!("an acknowledgement") };
            acks.push((body.ack, body.ecn.bits()));
            polled = None;
            if receiver.next_wake() <= now {
                receiver.on_wake(now, &mut NoObserver);
                polled = receiver.poll_transmit(now);
            }
        }
    }
    acks
}

fn data(segment: u32, ecn: Ecn, now: Time) -> Packet {
    Packet {
        flow: FlowId(0),
        connection: 0,
        direction: Direction::Forward,
        ecn,
        dscp: 0,
        segments: 1,
        wire_len: 1514,
        hop: 0,
        src: HostId(0),
        dst: HostId(1),
        sent: now,
        body: Body::Segment(SegmentBody {
            first: segment,
            byte: 1448 * u64::from(segment),
            payload: 1448,
            retransmission: false,
            ecn: TcpEcn::NONE,
            push: false,
            fin: false,
            echo: Time::ZERO,
        }),
    }
}

/// A receiver that no longer acknowledges every segment, with nothing left to acknowledge.
fn settled(cca: &str, offer: EcnOffer, codepoint: Ecn) -> Receiver {
    let config = Config { ecn: Some(offer), ..Config::default() };
    let (_, mut receiver, _) = connect(cca, &config, |_| {});
    while acknowledged(&mut receiver, &[codepoint; 2]).len() > 1 {}
    assert_eq!(acknowledged(&mut receiver, &[codepoint; 4]).len(), 2, "every other segment");
    receiver
}

/// Linux: from 64 088 bytes to the 76 892 that the buffer of 128 KiB has room for, two segments with
/// each packet, and sixteen acknowledgements more.
#[test]
fn every_packet_is_acknowledged_while_the_window_grows() {
    let (_, mut receiver, _) = connect("reno", &Config::default(), |_| {});
    let acks = acknowledged(&mut receiver, &[Ecn::NotEct; 25]);
    let expected: Vec<u32> = (1..=21).chain([23, 25]).collect();
    assert_eq!(acks.iter().map(|(ack, _)| *ack).collect::<Vec<_>>(), expected);
}

/// Section 3.2.2.5.1, and Linux for the way back.
#[test]
fn a_change_of_the_codepoint_is_acknowledged_at_once() {
    let mut receiver = settled("prague", EcnOffer::Accurate, Ecn::Ect1);
    let first = receiver.next_expected();
    let (on, off) = (Ecn::Ce, Ecn::Ect1);
    let acks = acknowledged(&mut receiver, &[on, off, off, off, on, on, on, off]);
    let expected = [
        (first + 1, 6), // changed
        (first + 2, 6), // and back
        (first + 4, 6), // the usual two
        (first + 5, 7), // changed
        (first + 7, 1), // two marks
        (first + 8, 1), // changed
    ];
    assert_eq!(acks, expected);
}

#[test]
fn every_second_mark_is_acknowledged_at_once_whatever_else() {
    let mut receiver = settled("prague", EcnOffer::Accurate, Ecn::Ect1);
    let first = receiver.next_expected();
    // A hole: duplicates would be compressed after the first three.
    let mut count = 0;
    for segment in first + 1..first + 41 {
        let now = at(5000);
        receiver.on_packet(now, &data(segment, Ecn::Ce, now), &mut NoObserver);
        count += u32::from(receiver.poll_transmit(now).is_some());
    }
    assert!(count >= 20, "{count}");
}

/// RFC 8257 section 3.2, figure 1.
#[test]
fn dctcp_receivers_close_one_run_of_marks_before_the_next() {
    let mut receiver = settled("dctcp", EcnOffer::Classic, Ecn::Ect0);
    let first = receiver.next_expected();
    let (on, off) = (Ecn::Ce, Ecn::Ect0);
    let acks = acknowledged(&mut receiver, &[off, on, on, on, off, off, off]);
    let expected = [
        (first + 1, 0), // what was delayed, unmarked
        (first + 2, 1), // changed
        (first + 4, 1), // the usual two
        (first + 5, 0), // changed
        (first + 7, 0), // the usual two
    ];
    assert_eq!(acks, expected);
}

/// RFC 3168 section 6.1.3.
#[test]
fn the_classic_echo_lasts_until_it_is_answered() {
    let mut receiver = settled("reno", EcnOffer::Classic, Ecn::Ect0);
    let echoes = |acks: Vec<(u32, u8)>| acks.iter().all(|(_, flags)| *flags == 1);
    assert!(echoes(acknowledged(&mut receiver, &[Ecn::Ce, Ecn::Ect0, Ecn::Ect0, Ecn::Ect0])));
    let now = at(9000);
    let mut answer = data(receiver.next_expected(), Ecn::Ect0, now);
    let Body::Segment(segment) = &mut answer.body else { panic!("data") };
    segment.ecn = TcpEcn::CWR;
    receiver.on_packet(now, &answer, &mut NoObserver);
    let Body::Ack(ack) = receiver.poll_transmit(now).expect("at once").body else { panic!() };
    assert_eq!(ack.ecn, TcpEcn::NONE);
}

/// A receiver that counts packets as its card hands them over: the field moves by one.
#[test]
fn a_receiver_may_count_a_joined_packet_as_one_mark() {
    let config = Config { joined_marks_once: true, ..Config::default() };
    let (_, mut receiver, _) = connect("prague", &config, |_| {});
    for (joined, told) in [(20, 6), (8, 7), (1, 0)] {
        let now = at(5000);
        let mut packet = data(receiver.next_expected(), Ecn::Ce, now);
        packet.segments = joined;
        packet.wire_len = u32::from(joined) * 1514;
        let Body::Segment(segment) = &mut packet.body else { panic!("data") };
        segment.payload = u32::from(joined) * 1448;
        receiver.on_packet(now, &packet, &mut NoObserver);
        let answer = receiver.poll_transmit(now).expect("at once");
        let Body::Ack(ack) = answer.body else { panic!() };
        assert_eq!(ack.ecn, bits(told));
    }
}

/// Sections 3.2 and 3.2.3.3: an offloaded packet counts its segments; blocks have precedence over
/// the option.
#[test]
fn offloaded_packets_count_their_segments_and_bytes() {
    let mut receiver = settled("prague", EcnOffer::Accurate, Ecn::Ect1);
    let now = at(5000);
    let mut packet = data(receiver.next_expected(), Ecn::Ce, now);
    packet.segments = 20;
    packet.wire_len = 20 * 1514;
    let Body::Segment(segment) = &mut packet.body else { panic!("data") };
    segment.payload = 20 * 1448;
    receiver.on_packet(now, &packet, &mut NoObserver);
    let answer = receiver.poll_transmit(now).expect("at once");
    let Body::Ack(ack) = answer.body else { panic!() };
    assert_eq!(ack.ecn, bits((5 + 20) % 8));
    assert_eq!(ack.ce_bytes, Some(CeBytes::new(20 * 1448)));
    assert_eq!((answer.wire_len, answer.ecn), (66 + 12, Ecn::Ect1));
    for (blocks, length) in [(0, 12), (1, 12), (2, 8), (3, 0)] {
        assert_eq!(super::ecn::option_length(blocks), length);
        // All options together fit the 40 bytes.
        let sack = if blocks > 0 { 4 + 8 * u32::from(blocks) } else { 0 };
        assert!(12 + sack + u32::from(length) <= 40);
    }
}

/// Feeds a receiver segments that arrive beyond a hole.
fn beyond_a_hole(packet_buffers: PacketBuffers, segments: u32) -> Receiver {
    let config = Config { packet_buffers, ..Config::default() };
    let (_, mut receiver, _) = connect("reno", &config, |_| {});
    for segment in 1..=segments {
        let mut packet = data(segment, Ecn::NotEct, at(1000));
        let Body::Segment(body) = &mut packet.body else { panic!("a segment") };
        body.echo = at(700 + u64::from(segment));
        receiver.on_packet(at(1000), &packet, &mut NoObserver);
    }
    receiver
}

#[test]
fn segments_beyond_a_hole_share_buffers() {
    let held = |packet_buffers| beyond_a_hole(packet_buffers, 40).held();
    assert_eq!(held(PacketBuffers::Pages), 3 * 2416 + 37 * 1448);
    assert_eq!(held(PacketBuffers::Linear), 3 * 2176 + 37 * 1920);
}

/// The buffer is tuned by a round trip's bytes, so it must not think that one is short while there is a hole.
#[test]
fn segments_beyond_a_hole_tell_the_round_trip_time() {
    let mut receiver = beyond_a_hole(PacketBuffers::Pages, 1);
    assert_eq!(receiver.round_trip(), Span::from_millis(299));
    let mut again = data(0, Ecn::NotEct, at(1200));
    let Body::Segment(body) = &mut again.body else { panic!("a segment") };
    body.echo = at(502);
    receiver.on_packet(at(1200), &again, &mut NoObserver);
    assert_eq!(receiver.round_trip().as_nanos(), (299_000_000 * 7 + 698_000_000) / 8);
}

/// A sender that writes when it is told, and has had ten segments acknowledged at 30 ms.
fn answered(config: Config, source: Source) -> Sender {
    let cca = CcaConfig::parse("reno").expect("a controller");
    let mut sender = Sender::new(config.clone(), cca, ENDS, source, Time::ZERO, stream());
    let mut receiver = receiver("reno", &config);
    let request = sender.poll_transmit(Time::ZERO).expect("a request");
    receiver.on_packet(at(5), &request, &mut NoObserver);
    let answer = receiver.poll_transmit(at(5)).expect("an answer");
    sender.on_packet(at(10), &answer, &mut NoObserver);
    sender.on_wake(at(10), &mut NoObserver);
    sender.write(10 * 1448);
    std::iter::from_fn(|| sender.poll_transmit(at(10))).for_each(drop);
    sender.on_packet(at(30), &selective(10, &[], 10, 20), &mut NoObserver);
    std::iter::from_fn(|| sender.poll_transmit(at(30))).for_each(drop);
    sender
}

#[test]
fn the_window_stays_after_idleness_if_it_is_told_to() {
    let sent = |slow_start_after_idle| {
        let config = Config { slow_start_after_idle, ..Config::default() };
        let mut sender = answered(config, Source::when_told());
        sender.write(40 * 1448);
        std::iter::from_fn(|| sender.poll_transmit(at(2000))).count()
    };
    assert_eq!((sent(true), sent(false)), (10, 20));
}

/// Writes from 0 to 15 ms.
fn writes_at_first() -> Source {
    Source::on_off(Span::from_millis(15), Span::from_secs(9), None, Time::ZERO, at(9000))
}

/// Of 131 072 bytes, a call, 91 segments leave.
#[test]
fn what_an_application_has_written_leaves_after_it_has_paused() {
    let all = |send_buffer| {
        let config = Config { send_buffer, ..Config::default() };
        let mut sender = answered(config, writes_at_first());
        for round in 2..9 {
            let now = at(10 + 20 * round);
            let end = sender.outstanding().1;
            sender.on_packet(
                now,
                &selective(end, &[], 20 * round - 10, 20 * round),
                &mut NoObserver,
            );
            std::iter::from_fn(|| sender.poll_transmit(now)).for_each(drop);
        }
        assert_eq!(sender.sample(at(300)).not_sent, 0);
        sender.outstanding().1
    };
    assert_eq!(all(SendBuffer::Bytes(100_000)), 91);
    assert_eq!(all(SendBuffer::UNLIMITED), 10, "who has no limit has written what left");
}

#[test]
fn an_application_that_pauses_waits_for_no_memory() {
    let config = Config { send_buffer: SendBuffer::Bytes(20 * 1448), ..Config::default() };
    let mut sender = answered(config, writes_at_first());
    for now in (50..80).step_by(5) {
        let end = sender.outstanding().1;
        sender.on_packet(at(now), &selective(end, &[], now - 15, now - 5), &mut NoObserver);
        std::iter::from_fn(|| sender.poll_transmit(at(now))).for_each(drop);
    }
    assert_eq!(sender.outstanding(), (91, 91), "its call is over, and all is acknowledged");
    let between = |sample: fn(&FlowSample) -> Span| {
        sample(&sender.sample(at(110))) - sample(&sender.sample(at(80)))
    };
    assert_eq!(between(|sample| sample.sndbuf_limited), Span::ZERO);
    assert_eq!(between(|sample| sample.busy), Span::ZERO);
}

/// Linux counts a burst that waits for more of the receiver's window as waiting for the receiver.
#[test]
fn a_burst_that_waits_for_more_of_the_receivers_window_is_limited_by_it() {
    const WINDOW: u32 = 40;
    let (mut sender, _, _) = connect("reno", &Config::default(), |_| {});
    let half = |halves: u64| Time::from_nanos(halves * 500_000);
    let mut limited = Vec::new();
    for next in 1..=400u32 {
        let now = 40 + 2 * 10 + u64::from(next);
        if sender.outstanding().1 < next {
            break;
        }
        let mut packet = selective(next, &[], 0, 0);
        packet.sent = half(now);
        let Body::Ack(body) = &mut packet.body else { panic!("an acknowledgement") };
        (body.window, body.echo) = (WINDOW * 1448, half(now - 40));
        sender.on_packet(half(now), &packet, &mut NoObserver);
        std::iter::from_fn(|| sender.poll_transmit(half(now))).for_each(drop);
        limited.push(sender.sample(half(now)).rwnd_limited);
    }
    assert_eq!(limited.len(), 400);
    // In the last 50 ms.
    let share = (limited[399] - limited[299]).as_secs_f64() / 0.05;
    assert!(share > 0.8, "{share}");
}

#[test]
fn a_small_window_has_few_segments_that_are_acknowledged_one_by_one() {
    let config = Config { receive_buffer: Some(4_000), ..Config::default() };
    let (_, mut receiver, _) = connect("reno", &config, |_| {});
    let acks = acknowledged(&mut receiver, &[Ecn::NotEct; 9]);
    assert_eq!(acks.iter().map(|(ack, _)| *ack).collect::<Vec<_>>(), [1, 3, 5, 7, 9]);
}
