use proptest::prelude::*;
use sojourn_core::{
    Body, Direction, DropReason, Ecn, FlowSample, FrameEvent, FrameStage, HostId, Packet,
    QueueSample, Rate, RateControl, RtpBody, RtpStream, SegmentBody, TcpEcn,
};

use super::*;
use crate::{STALL_THRESHOLDS_MS, qoe};

const A: Who = Who::Flow(FlowId(0));
const B: Who = Who::Flow(FlowId(1));
const LINK: Who = Who::Port(PortId(0));

fn at(ms: u64) -> Time {
    Time::ZERO + ms_span(ms)
}

fn ms_span(ms: u64) -> Span {
    Span::from_millis(ms)
}

/// Ten seconds, two of them warm-up, a row each 100 ms; a link; two flows.
fn collector(kinds: [fn(&'static str) -> FlowShape; 2]) -> Collector {
    Collector::new(Shape {
        flows: vec![kinds[0]("a"), kinds[1]("b")],
        links: vec![LinkShape { name: "down".into() }],
        duration: Span::from_secs(10),
        warmup: Span::from_secs(2),
        step: ms_span(100),
    })
}

fn tcp() -> Collector {
    collector([FlowShape::tcp, FlowShape::tcp])
}

fn segment(flow: u32, first: u32, retransmission: bool, sent: Time) -> Packet {
    packet(
        flow,
        sent,
        1500,
        Body::Segment(SegmentBody {
            first,
            byte: u64::from(first) * 1448,
            payload: 1448,
            retransmission,
            ecn: TcpEcn::NONE,
            push: false,
            fin: false,
            echo: Time::ZERO,
        }),
    )
}

fn datagram(number: u32, frame: u32, last: bool, sent: Time) -> Packet {
    packet(0, sent, 1200, Body::Datagram { number, frame, last })
}

fn packet(flow: u32, sent: Time, ip_len: u32, body: Body) -> Packet {
    Packet {
        flow: FlowId(flow),
        connection: 0,
        direction: Direction::Forward,
        ecn: Ecn::NotEct,
        dscp: 0,
        segments: 1,
        wire_len: ip_len + 14,
        hop: 0,
        src: HostId(0),
        dst: HostId(1),
        sent,
        body,
    }
}

fn value(run: &RunMetrics, name: &str) -> f64 {
    run.flows[0].value(name).unwrap_or(f64::NAN)
}

#[track_caller]
fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() <= expected.abs() * 0.004 + 1e-9, "{found}, not {expected}");
}

#[test]
fn goodput_counts_from_the_end_of_the_warm_up_on() {
    let mut collector = tcp();
    for ms in [500, 1999, 2000, 2001, 9999] {
        collector.record(at(ms), A, &Event::Delivered { bytes: 1_000_000 });
    }
    let run = collector.finish(at(10_000));
    assert_eq!(value(&run, "goodput_mbps"), 3.0);
    assert_eq!(value(&run, "goodput_total_mbps"), 4.0);
    assert_eq!(value(&run, "delivered_bytes"), 5e6);
}

/// The first request is lost, the second one answered; another connection comes in between.
#[test]
fn connecting_takes_from_the_first_request_to_its_answer() {
    let mut collector = tcp();
    let shake = |connection: u32, asked: u64| Packet {
        connection,
        ..packet(0, at(asked), 60, Body::Handshake { asked: at(asked), ecn: TcpEcn::NONE })
    };
    for (connection, asked) in [(1, 100), (2, 600), (1, 1100)] {
        collector.record(at(asked), A, &Event::Sent { packet: &shake(connection, asked) });
    }
    for (connection, asked) in [(2, 600), (1, 1100)] {
        let answer = Packet { direction: Direction::Reverse, ..shake(connection, asked) };
        collector.record(at(asked + 40), A, &Event::Arrived { packet: &answer });
    }
    assert_eq!(value(&collector.finish(at(10_000)), "connect_ms"), 1040.0);
}

/// Of twenty transfers ten end, after 1 to 10 s, and ten are as old as the run.
#[test]
fn transfers_that_did_not_end_are_counted_and_estimated() {
    let mut collector = collector([FlowShape::arrivals, FlowShape::tcp]);
    for number in 0..20 {
        collector.record(at(2001 + number), A, &Event::Opened { bytes: 1000 + number });
    }
    for number in 0..10 {
        let took = ms_span(700 * (number + 1));
        let event = Event::Completed { bytes: 1000 + number, took };
        collector.record(at(2001 + number) + took, A, &event);
    }
    let run = collector.finish(at(10_000));
    assert_eq!((value(&run, "fct_n"), value(&run, "fct_of")), (10.0, 20.0));
    assert_eq!((value(&run, "completion_n"), value(&run, "completion_of")), (10.0, 20.0));
    assert_eq!((value(&run, "fct_small_n"), value(&run, "fct_small_of")), (10.0, 20.0));
    near(value(&run, "fct_mean_ms"), 3850.0);
    // Half of all twenty have ended with the tenth.
    near(value(&run, "fct_km_p50_ms"), 7000.0);
    assert_eq!(run.flows[0].value("fct_km_p95_ms"), None);
    assert_eq!(run.flows[1].value("fct_of"), None);
}

/// A bulk flow of limited size says that it is one.
#[test]
fn a_single_transfer_that_does_not_end_is_none_of_one() {
    let shape = |name| FlowShape { transfer: Some(5000), ..FlowShape::tcp(name) };
    let mut collector = collector([shape, FlowShape::tcp]);
    let asked = Body::Handshake { asked: at(100), ecn: TcpEcn::NONE };
    collector.record(at(100), A, &Event::Sent { packet: &packet(0, at(100), 60, asked) });
    let run = collector.finish(at(10_000));
    assert_eq!((value(&run, "completion_n"), value(&run, "completion_of")), (0.0, 1.0));
    assert_eq!(run.flows[0].transfers.open_in_run.max(), Some(9_900_000_000));
    assert_eq!(run.flows[0].value("completion_km_p50_ms"), None);
}

#[test]
fn a_row_has_percentiles_of_its_own_delays_and_losses() {
    let mut collector = tcp();
    for (ms, rtt) in [(3010, 20), (3020, 30), (3030, 40), (3110, 400)] {
        collector.record(at(ms), A, &Event::Rtt { rtt: ms_span(rtt) });
        let packet = segment(0, ms as u32, false, at(ms - rtt / 2));
        collector.record(at(ms), A, &Event::Sent { packet: &packet });
        collector.record(at(ms), A, &Event::Arrived { packet: &packet });
    }
    let lost = segment(0, 7, false, at(3100));
    collector.record(at(3100), LINK, &Event::Dropped { packet: &lost, why: DropReason::Full });
    let run = collector.finish(at(10_000));
    let row = &run.series.flows[0];
    near(f64::from(row.rtt_p50_ms[30]), 30.0);
    near(f64::from(row.rtt_p95_ms[30]), 40.0);
    near(f64::from(row.rtt_p50_ms[31]), 400.0);
    near(f64::from(row.owd_p50_ms[30]), 15.0);
    near(f64::from(row.owd_max_ms[31]), 200.0);
    assert!(row.rtt_p50_ms[32].is_nan() && row.owd_max_ms[32].is_nan());
    assert_eq!(
        (row.dropped_pkts[30], row.dropped_pkts[31], row.dropped_share[31]),
        (0.0, 1.0, 1.0)
    );
}

#[test]
fn a_run_that_ends_within_its_warm_up_has_no_rates() {
    let mut collector = tcp();
    collector.record(at(500), A, &Event::Delivered { bytes: 1_000_000 });
    collector.record(at(500), A, &Event::Rtt { rtt: ms_span(20) });
    let run = collector.finish(at(1000));
    let flow = &run.flows[0];
    assert_eq!((flow.value("goodput_mbps"), flow.value("rtt_p50_ms")), (None, None));
    assert_eq!(flow.value("goodput_total_mbps"), Some(8.0));
    assert_eq!(run.series.t_s.len(), 10);
}

#[test]
fn shares_and_fairness_are_among_tcp_flows() {
    let mut collector = collector([FlowShape::tcp, FlowShape::udp]);
    collector.record(at(3000), A, &Event::Delivered { bytes: 3_000_000 });
    collector.record(at(3000), B, &Event::Delivered { bytes: 1_000_000 });
    let run = collector.finish(at(10_000));
    assert_eq!((value(&run, "share"), run.flows[1].value("share")), (1.0, None));
    assert_eq!((run.value("goodput_sum_mbps"), run.value("jain")), (Some(4.0), Some(1.0)));

    let mut collector = tcp();
    collector.record(at(3000), A, &Event::Delivered { bytes: 3_000_000 });
    collector.record(at(3000), B, &Event::Delivered { bytes: 1_000_000 });
    let run = collector.finish(at(10_000));
    assert_eq!((value(&run, "share"), run.flows[1].value("share")), (0.75, Some(0.25)));
    assert_eq!((run.value("jain"), run.value("min_max")), (Some(0.8), Some(1.0 / 3.0)));
    assert_eq!(run.value("jain_1s_min"), Some(0.8));
}

#[test]
fn fairness_is_parted_by_falls_of_the_capacity_and_dips_show_in_seconds_and_steps() {
    let mut collector = tcp();
    // 1 Mbit in each of 20 s for either flow, but none for the second in the ninth second, after
    // the capacity had fallen to a fifth for a step at 8.0 s.
    for step in 1..200 {
        let capacity =
            if step == 80 { Rate::from_bps(2_000_000) } else { Rate::from_bps(10_000_000) };
        let sample = QueueSample { capacity, ..QueueSample::default() };
        collector.record(at(step * 100), LINK, &Event::QueueSample(&sample));
        collector.record(at(step * 100 + 50), A, &Event::Delivered { bytes: 12_500 });
        if !(80..90).contains(&step) {
            collector.record(at(step * 100 + 50), B, &Event::Delivered { bytes: 12_500 });
        }
    }
    let run = collector.finish(at(20_000));
    assert_eq!((run.value("jain_1s_min"), run.value("jain_1s_p50")), (Some(0.5), Some(1.0)));
    let [after, apart] = &run.totals.jain_1s_by_drop;
    // The fall is in the row that ends at 8.0 s; the five seconds after it count as following the
    // fall.
    assert_eq!((after.len(), apart.len()), (6, 12));
    assert!(after.contains(&0.5) && !apart.contains(&0.5));
    assert_eq!(run.flows[1].value("goodput_1s_min_mbps"), Some(0.0));
    assert_eq!(run.flows[0].value("goodput_1s_p50_mbps"), Some(1.0));
    assert_eq!(run.value("tcp_goodput_step_min_mbps"), Some(1.0));
    assert_eq!(run.value("tcp_goodput_step_p50_mbps"), Some(2.0));
    assert_eq!(run.flows[0].value("probe_rtt_count"), None);
}

#[test]
fn visits_to_probe_rtt_are_counted() {
    let mut collector = tcp();
    let phase = |from, to| Event::Phase { from, to };
    collector.record(at(500), A, &phase("STARTUP", "PROBE_BW:1"));
    collector.record(at(2000), A, &phase("PROBE_BW:1", "PROBE_RTT"));
    collector.record(at(2200), A, &phase("PROBE_RTT", "PROBE_BW:1"));
    collector.record(at(7000), A, &phase("PROBE_BW:1", "PROBE_RTT"));
    collector.record(at(7200), A, &phase("PROBE_RTT", "PROBE_BW:1"));
    let run = collector.finish(at(10_000));
    let flow = &run.flows[0];
    assert_eq!(
        (flow.value("probe_rtt_count"), flow.value("probe_rtt_ms")),
        (Some(2.0), Some(400.0))
    );
}

#[test]
fn distributions_forget_the_warm_up_and_rows_do_not() {
    let mut collector = Collector::new(Shape {
        flows: vec![FlowShape::tcp("a")],
        links: vec![],
        duration: Span::from_secs(1),
        warmup: ms_span(150),
        step: ms_span(100),
    });
    for (ms, rtt) in [(110, 10), (120, 50), (160, 30), (170, 30), (250, 70)] {
        collector.record(at(ms), A, &Event::Rtt { rtt: ms_span(rtt) });
    }
    let run = collector.finish(at(1000));
    assert_eq!(run.flows[0].rtt.count(), 3);
    assert_eq!((value(&run, "rtt_min_ms"), value(&run, "rtt_max_ms")), (30.0, 70.0));
    let series = &run.series.flows[0];
    assert_eq!(series.rtt_mean_ms[1..3], [30.0, 70.0]);
    assert_eq!(series.rtt_max_ms[1..3], [50.0, 70.0]);
    assert!(series.rtt_mean_ms[0].is_nan() && series.rtt_max_ms[0].is_nan());
}

#[test]
fn retransmissions_count_the_packets_they_stand_for() {
    let mut collector = tcp();
    let big = Packet { segments: 4, wire_len: 6056, ..segment(0, 0, true, at(0)) };
    collector.record(at(1000), A, &Event::Sent { packet: &big });
    collector.record(at(3000), A, &Event::Sent { packet: &segment(0, 4, true, at(3000)) });
    collector.record(at(3001), A, &Event::Sent { packet: &segment(0, 5, false, at(3001)) });
    let run = collector.finish(at(10_000));
    assert_eq!((value(&run, "retransmits"), value(&run, "retransmits_after_warmup")), (5.0, 1.0));
    assert_eq!((value(&run, "sent_packets"), value(&run, "sent_bytes")), (6.0, 9000.0));
    assert_eq!(value(&run, "retransmit_share"), 0.5);
    assert_eq!(run.series.flows[0].retransmits[10], 4.0);
}

#[test]
fn one_way_delay_is_from_sender_to_receiver_and_marks_are_seen() {
    let mut collector = tcp();
    for (n, delay) in [(0, 10), (1, 20), (2, 60)] {
        let sent = at(3000 + u64::from(n));
        let packet = Packet { ecn: Ecn::Ce, ..segment(0, n, false, sent) };
        collector.record(sent + ms_span(delay), A, &Event::Arrived { packet: &packet });
    }
    let run = collector.finish(at(10_000));
    assert_eq!((value(&run, "owd_min_ms"), value(&run, "owd_max_ms")), (10.0, 60.0));
    near(value(&run, "owd_p50_ms"), 20.0);
    near(value(&run, "pdv_p50_ms"), 10.0);
    near(value(&run, "owd_mean_ms"), 30.0);
    assert_eq!(value(&run, "ce_packets"), 3.0);
    assert_eq!(run.flows[0].value("jitter_ms"), None);
    assert_eq!(run.value("data_packets"), Some(3.0));
}

/// Sends datagrams, each a frame, every 20 ms from 3 s on; `delay` says when one arrives.
fn stream(count: u32, delay: impl Fn(u32) -> Option<u64>) -> RunMetrics {
    let mut events: Vec<(Time, u32, bool)> = Vec::new();
    for n in 0..count {
        let sent = at(3000 + 20 * u64::from(n));
        events.push((sent, n, false));
        events.extend(delay(n).map(|ms| (sent + ms_span(ms), n, true)));
    }
    events.sort_by_key(|event| event.0);
    let mut collector = collector([FlowShape::udp, FlowShape::tcp]);
    for (now, n, arrives) in events {
        let packet = datagram(n, n, true, at(3000 + 20 * u64::from(n)));
        let packet = &packet;
        let event = if arrives { Event::Arrived { packet } } else { Event::Sent { packet } };
        collector.record(now, A, &event);
    }
    collector.finish(at(10_000))
}

#[test]
fn datagrams_under_way_at_the_end_are_not_lost() {
    // 7 never arrives; 98 and 99 have not arrived yet.
    let run = stream(100, |n| (n != 7 && n < 98).then_some(30));
    assert_eq!((value(&run, "lost_packets"), value(&run, "loss_share")), (1.0, 1.0 / 98.0));
    let run = stream(100, |_| None);
    assert_eq!((value(&run, "lost_packets"), value(&run, "loss_share")), (100.0, 1.0));
    assert_eq!(value(&run, "mos"), 1.0);
}

/// A stream of a second whose last 300 datagrams, sent over a dead line, were dropped, but for two that are still under way.
#[test]
fn what_is_dropped_at_the_end_is_lost_though_nothing_arrives_after_it() {
    let mut collector = collector([FlowShape::udp, FlowShape::ping]);
    let sent = |n: u32| at(1500 + 5 * u64::from(n));
    for n in 0..500 {
        let datagram = datagram(n, n, true, sent(n));
        let echo = packet(1, sent(n), 84, Body::Echo { number: n, asked: sent(n) });
        let reply = Packet { direction: Direction::Reverse, ..echo };
        for (flow, packet, back) in [(A, &datagram, &datagram), (B, &echo, &reply)] {
            collector.record(sent(n), flow, &Event::Sent { packet });
            let event = match n {
                0..200 => Some((flow, Event::Arrived { packet: back })),
                498.. => None,
                _ => Some((LINK, Event::Dropped { packet, why: DropReason::Medium })),
            };
            if let Some((who, event)) = event {
                collector.record(sent(n), who, &event);
            }
        }
    }
    let run = collector.finish(at(10_000));
    assert_eq!((value(&run, "lost_packets"), value(&run, "loss_share")), (298.0, 298.0 / 398.0));
    assert_eq!((value(&run, "frames_lost"), value(&run, "owd_of")), (298.0, 398.0));
    let ping = |name| run.flows[1].value(name).expect("it counts");
    assert_eq!((ping("ping_lost"), ping("ping_sent")), (298.0, 400.0));
}

/// A stream with a datagram every 20 ms; of each it is told whether it is dropped at once or when it arrives.
fn told_stream(
    count: u32,
    fate: impl Fn(u32) -> Option<u64>,
    dropped: impl Fn(u32) -> bool,
) -> RunMetrics {
    let mut events: Vec<(Time, u32, u8)> = Vec::new();
    let sent = |n: u32| at(3000 + 20 * u64::from(n));
    for n in 0..count {
        events.push((sent(n), n, 0));
        match fate(n) {
            _ if dropped(n) => events.push((sent(n), n, 1)),
            Some(ms) => events.push((sent(n) + ms_span(ms), n, 2)),
            None => {}
        }
    }
    events.sort_by_key(|event| event.0);
    let mut collector = collector([FlowShape::udp, FlowShape::tcp]).expecting_all_drops();
    let end = at(10_000);
    for (now, n, kind) in events.into_iter().filter(|event| event.0 <= end) {
        let packet = &datagram(n, n, true, sent(n));
        let (who, event) = match kind {
            0 => (A, Event::Sent { packet }),
            1 => (LINK, Event::Dropped { packet, why: DropReason::Medium }),
            _ => (A, Event::Arrived { packet }),
        };
        collector.record(now, who, &event);
    }
    collector.finish(end)
}

#[test]
fn frames_that_are_dropped_behind_a_queue_that_stands_still_are_lost() {
    // From the 200th on twenty stay in the queue, and what finds it full is dropped.
    let run = told_stream(350, |n| (n < 200).then_some(40), |n| n >= 220);
    assert_eq!((value(&run, "lost_packets"), value(&run, "frames_lost")), (130.0, 130.0));
    // The last one left within the last 40 ms.
    near(value(&run, "loss_share"), 129.0 / 329.0);
    near(value(&run, "frame_loss_share"), 129.0 / 329.0);
}

#[test]
fn frames_that_arrive_late_are_not_lost_however_late() {
    let run = told_stream(300, |n| Some(if n % 2 == 0 { 3000 } else { 30 }), |_| false);
    let late = f64::from((0..300).filter(|n| n % 2 == 0 && 20 * n + 3000 <= 7000).count() as u32);
    assert_eq!((value(&run, "frames_lost"), value(&run, "frames_complete")), (0.0, 150.0 + late));
}

#[test]
fn shares_of_losses_are_of_what_left_early_enough_to_have_arrived() {
    // Each tenth is dropped as it leaves, and the others take 3 s: at the end, 150 of them are under way.
    let run = told_stream(350, |_| Some(3000), |n| n % 10 == 9);
    assert_eq!(value(&run, "lost_packets"), 35.0);
    // Of the first 201, which left by 7 s.
    near(value(&run, "loss_share"), 20.0 / 201.0);
    near(value(&run, "frame_loss_share"), 20.0 / 201.0);
}

#[test]
fn loss_after_the_warm_up_is_of_what_was_sent_after_it() {
    let mut collector = collector([FlowShape::udp, FlowShape::tcp]);
    // Sent before the end of the warm-up and lost, or arriving after it: not counted.
    for (n, sent) in [(0, 1000), (1, 1990), (2, 2010), (3, 2020), (4, 2030)] {
        collector.record(at(sent), A, &Event::Sent { packet: &datagram(n, n, true, at(sent)) });
        if n == 1 || n == 2 || n == 4 {
            let packet = datagram(n, n, true, at(sent));
            collector.record(at(sent + 5), A, &Event::Arrived { packet: &packet });
        }
    }
    let run = collector.finish(at(10_000));
    assert_eq!((value(&run, "lost_packets"), value(&run, "loss_share")), (2.0, 1.0 / 3.0));
}

#[test]
fn variation_is_between_neighbours_and_jitter_between_arrivals() {
    // Delays 10, 14, lost, 18, 10.
    let delays = [Some(10), Some(14), None, Some(18), Some(10)];
    let run = stream(5, |n| delays[n as usize]);
    // |IPDV|: 4 and 8 ms; J: 4/16, then 4, then 8.
    near(value(&run, "ipdv_mean_ms"), 6.0);
    let j1 = 4.0 / 16.0;
    let j2 = j1 + (4.0 - j1) / 16.0;
    let j3 = j2 + (8.0 - j2) / 16.0;
    near(value(&run, "jitter_ms"), j3);
    near(value(&run, "jitter_mean_ms"), (j1 + j2 + j3) / 3.0);
    // Mean delay 13 ms, twice 6 ms of variation, one of five lost.
    near(value(&run, "mos"), qoe::mos_g107(25.0, 0.2));
}

/// Every second one takes 30 ms more and is overtaken by the next one.
#[test]
fn variation_is_between_neighbours_in_the_order_of_sending() {
    let run = stream(100, |n| Some(if n % 2 == 0 { 40 } else { 10 }));
    near(value(&run, "ipdv_mean_ms"), 30.0);
    assert_eq!(run.flows[0].ipdv.count(), 99);
}

#[test]
fn a_run_is_the_same_whatever_its_warm_up() {
    let digest = |warmup| {
        let mut collector = Collector::new(Shape {
            flows: vec![FlowShape::tcp("a")],
            links: vec![LinkShape { name: "queue".into() }],
            duration: Span::from_secs(2),
            warmup: ms_span(warmup),
            step: ms_span(100),
        });
        for n in 0..100 {
            let packet = segment(0, n, false, at(u64::from(n) * 10));
            let sojourn = ms_span(u64::from(n % 7));
            collector.record(
                at(u64::from(n) * 10 + 9),
                LINK,
                &Event::Dequeued { packet: &packet, sojourn },
            );
        }
        collector.finish(at(2000)).digest
    };
    assert_eq!(digest(0), digest(500));
    assert_eq!(digest(0), digest(5000));
}

/// All of it lies in the warm-up, so nothing was measured.
#[test]
fn a_run_that_ends_in_its_warm_up_has_no_sums_of_goodput() {
    let mut collector = tcp();
    collector.record(at(500), A, &Event::Delivered { bytes: 1_000_000 });
    let run = collector.finish(at(1000));
    assert_eq!((run.value("goodput_sum_mbps"), run.value("tcp_goodput_sum_mbps")), (None, None));
}

#[test]
fn a_frame_is_complete_with_its_last_datagram_whichever_that_is() {
    let mut collector = collector([FlowShape::udp, FlowShape::tcp]);
    for frame in 0..3 {
        let sent = at(3000 + 20 * u64::from(frame));
        for part in 0..2 {
            let packet = datagram(2 * frame + part, frame, part == 1, sent);
            collector.record(sent, A, &Event::Sent { packet: &packet });
        }
    }
    // Frame 0 in order, frame 1 loses one, frame 2 turned round.
    for (ms, number) in [(3050, 0), (3055, 1), (3060, 3), (3100, 5), (3130, 4)] {
        let frame = number / 2;
        let packet = datagram(number, frame, number % 2 == 1, at(3000 + 20 * u64::from(frame)));
        collector.record(at(ms), A, &Event::Arrived { packet: &packet });
        if number == 3 {
            let lost = datagram(2, 1, false, at(3020));
            let why = DropReason::Medium;
            collector.record(at(ms), LINK, &Event::Dropped { packet: &lost, why });
        }
    }
    let run = collector.finish(at(10_000));
    assert_eq!((value(&run, "frames_complete"), value(&run, "frames_lost")), (2.0, 1.0));
    assert_eq!(
        (value(&run, "frame_delay_min_ms"), value(&run, "frame_delay_max_ms")),
        (55.0, 90.0)
    );
    assert_eq!(value(&run, "frame_gap_max_ms"), 75.0);
    assert_eq!((value(&run, "stall50_ms"), value(&run, "stall50_excess_ms")), (75.0, 25.0));
    assert_eq!((value(&run, "stall100_ms"), value(&run, "stall33_count")), (0.0, 1.0));
}

#[test]
fn a_frame_is_given_up_when_much_later_ones_are_complete() {
    let run = stream(200, |n| (n != 3).then_some(30));
    assert_eq!((value(&run, "frames_lost"), value(&run, "frames_complete")), (1.0, 199.0));
    near(value(&run, "frame_gap_max_ms"), 40.0);
    near(value(&run, "harmonic_fps"), (199.0 * 0.02) / (197.0 * 0.0004 + 0.0016));
}

#[test]
fn a_gap_that_nothing_ends_is_a_stall_while_frames_are_sent() {
    // Frames 0 to 49 arrive, the last at 4000 ms; those up to 7 s, at 20 ms, never do.
    let run = stream(201, |n| (n < 50).then_some(20));
    let index = STALL_THRESHOLDS_MS.iter().position(|ms| *ms == 500).expect("500 ms is one");
    assert_eq!(run.flows[0].frames.stalls[index].whole, Span::from_secs(3));
    // The last frame left at 7 s.
    assert_eq!((value(&run, "freeze_count"), value(&run, "freeze_ms")), (1.0, 3000.0));
    // A stream that ended is not stalled.
    let run = stream(50, |_| Some(20));
    assert_eq!(run.flows[0].frames.stalls[index].count, 0);
    // Where nothing is ever shown, nothing stands still.
    let run = stream(50, |_| None);
    assert_eq!((run.flows[0].value("freeze_ms"), run.flows[0].value("stall500_ms")), (None, None));
}

#[test]
fn pings_count_by_when_they_were_asked() {
    let mut collector = collector([FlowShape::ping, FlowShape::tcp]);
    // Asked, round-trip time; 3 never comes back.
    let pings = [(0, 1900, Some(200)), (1, 2100, Some(50)), (2, 2200, None), (3, 2300, Some(70))];
    let mut events: Vec<(Time, u32, Option<u64>)> = Vec::new();
    for (n, asked, rtt) in pings {
        events.push((at(asked), n, None));
        events.extend(rtt.map(|rtt| (at(asked + rtt), n, Some(rtt))));
    }
    events.sort_by_key(|event| event.0);
    for (now, number, rtt) in events {
        let request = packet(0, now, 84, Body::Echo { number, asked: now });
        match rtt {
            None => collector.record(now, A, &Event::Sent { packet: &request }),
            Some(rtt) => {
                let reply = Packet { direction: Direction::Reverse, ..request };
                collector.record(now, A, &Event::Arrived { packet: &reply });
                collector.record(now, A, &Event::Ping { rtt: ms_span(rtt) });
            }
        }
    }
    let run = collector.finish(at(10_000));
    assert_eq!((value(&run, "ping_min_ms"), value(&run, "ping_max_ms")), (50.0, 70.0));
    assert_eq!((value(&run, "ping_sent"), value(&run, "ping_lost")), (3.0, 1.0));
    assert_eq!(value(&run, "ping_loss_share"), 1.0 / 3.0);
    assert_eq!(run.series.flows[0].rtt_max_ms[21], 200.0);
}

#[test]
fn phases_share_the_time_after_the_warm_up() {
    let mut collector = tcp();
    collector.record(at(0), A, &Event::Sent { packet: &segment(0, 0, false, at(0)) });
    collector.record(at(1000), A, &Event::Phase { from: "Startup", to: "Drain" });
    collector.record(at(3000), A, &Event::Phase { from: "Drain", to: "ProbeBW" });
    collector.record(at(9000), A, &Event::Phase { from: "ProbeBW", to: "ProbeRTT" });
    let sample = FlowSample { phase: "Cubic", ..FlowSample::default() };
    collector.record(at(4900), B, &Event::Sent { packet: &segment(1, 0, false, at(4900)) });
    collector.record(at(5000), B, &Event::FlowSample(&sample));
    let run = collector.finish(at(10_000));
    let flow = &run.flows[0];
    assert_eq!(flow.phase_share("Drain"), Some(0.125));
    assert_eq!(flow.phase_share("ProbeBW"), Some(0.75));
    assert_eq!(flow.phase_share("ProbeRTT"), Some(0.125));
    assert_eq!(flow.phase_share("Startup"), Some(0.0));
    assert_eq!(run.flows[1].phase_share("Cubic"), Some(1.0));
}

fn flow_sample(cwnd: u32, srtt: u64, bytes_acked: u64) -> FlowSample {
    FlowSample {
        cwnd,
        srtt: ms_span(srtt),
        bytes_acked,
        unacked: 30,
        sacked: 5,
        lost: 10,
        retrans: 4,
        pacing_rate: Some(Rate::from_bps(8_000_000)),
        busy: ms_span(4000),
        rwnd_limited: ms_span(1000),
        sndbuf_limited: ms_span(2000),
        not_sent: bytes_acked,
        phase: "Cubic",
        ..FlowSample::default()
    }
}

#[test]
fn what_an_application_without_a_limit_has_written_is_missing_unless_it_is_counted() {
    let mean = |not_sent: u64, writes_without_limit: bool| {
        let flow = FlowShape { writes_without_limit, ..FlowShape::tcp("a") };
        let mut collector = Collector::new(Shape {
            flows: vec![flow],
            links: vec![],
            duration: ms_span(10_000),
            warmup: ms_span(2_000),
            step: ms_span(100),
        });
        let sample = FlowSample { not_sent, ..flow_sample(10, 20, 0) };
        collector.record(at(2000), A, &Event::FlowSample(&sample));
        collector.finish(at(10_000)).flows[0].value("notsent_mean_bytes")
    };
    assert_eq!([mean(0, true), mean(5, true), mean(0, false)], [None, Some(5.0), Some(0.0)]);
}

#[test]
fn samples_of_the_sender_are_summed_up_and_fill_the_row_they_end() {
    let mut collector = tcp();
    for (ms, cwnd, srtt, acked) in
        [(1000, 999, 5, 0), (2000, 10, 20, 1000), (2100, 20, 30, 251_000), (2200, 60, 40, 501_000)]
    {
        let sample = flow_sample(cwnd, srtt, acked);
        collector.record(at(ms), A, &Event::FlowSample(&sample));
    }
    let run = collector.finish(at(10_000));
    assert_eq!((value(&run, "cwnd_p50_pkts"), value(&run, "cwnd_mean_pkts")), (20.0, 30.0));
    near(value(&run, "srtt_p50_ms"), 30.0);
    assert_eq!(value(&run, "inflight_p50_pkts"), 19.0);
    near(value(&run, "pacing_p50_mbps"), 8.0);
    assert_eq!(value(&run, "acked_mbps"), 20.0);
    assert_eq!((value(&run, "busy_share"), value(&run, "rwnd_limited_share")), (0.4, 0.25));
    assert_eq!(value(&run, "sndbuf_limited_share"), 0.5);
    assert_eq!(value(&run, "notsent_mean_bytes"), (1_000.0 + 251_000.0 + 501_000.0) / 3.0);
    let series = &run.series;
    let row = series.t_s.iter().position(|t| *t == 2.1).expect("a row ends at 2.1 s");
    assert_eq!(series.flows[0].cwnd_pkts[row], 20.0);
    assert!(series.flows[0].cwnd_pkts[row + 2].is_nan());
    assert!(series.flows[0].ssthresh_pkts[row].is_nan());
    assert_eq!(series.phases[series.flows[0].phase[row] as usize], "Cubic");
}

/// A sender that is there from 4 to 7 s, of which the last sample is taken at 7.1 s; before, it has a state that
/// nobody can see.
#[test]
fn a_flow_has_no_state_and_no_phase_before_its_first_packet_and_after_its_last_sample() {
    let mut collector = tcp();
    for step in 0..=71 {
        let sample = flow_sample(20, if step > 40 { 30 } else { 0 }, 0);
        collector.record(at(step * 100), A, &Event::FlowSample(&sample));
        if step == 40 {
            let packet = segment(0, 0, false, at(4050));
            collector.record(at(4050), A, &Event::Sent { packet: &packet });
        }
    }
    let run = collector.finish(at(10_000));
    let series = &run.series;
    let there: Vec<f64> = series
        .t_s
        .iter()
        .zip(&series.flows[0].phase)
        .filter(|(_, phase)| !phase.is_nan())
        .map(|(t, _)| *t)
        .collect();
    assert_eq!((there.first(), there.last(), there.len()), (Some(&4.1), Some(&7.1), 31));
    assert!(series.flows[0].cwnd_pkts[20].is_nan() && series.flows[0].cwnd_pkts[80].is_nan());
    let phases: Vec<u64> =
        run.flows[0].phases.iter().map(|phase| phase.time.as_nanos() / 1_000_000).collect();
    assert_eq!(phases, [3050]);
}

/// Two flows that compete only from 6 to 8 s, unevenly.
#[test]
fn fairness_in_a_second_is_among_the_flows_that_are_there() {
    let run = |b_begins: u64| {
        let mut collector = tcp();
        for step in 1..=100 {
            let flows = [(A, 30_000, 0..80), (B, 10_000, b_begins..100)];
            let there = || flows.iter().filter(|(.., steps)| steps.contains(&(step - 1)));
            for (who, bytes, _) in there() {
                let event = Event::Delivered { bytes: *bytes };
                collector.record(at(step * 100 - 50), *who, &event);
            }
            for (who, ..) in there() {
                let sample = flow_sample(20, 30, 0);
                collector.record(at(step * 100), *who, &Event::FlowSample(&sample));
            }
        }
        collector.finish(at(10_000))
    };
    let values = |run: &RunMetrics| ["jain_1s_p50", "jain_1s_min"].map(|name| run.value(name));
    let together = run(60);
    assert_eq!(together.totals.jain_1s.len(), 2);
    // (30 + 10)² / (2 · (30² + 10²)), of numbers of 32 bits.
    for value in values(&together) {
        assert!((value.expect("they compete") - 0.8).abs() < 1e-6, "{value:?}");
    }
    // They never compete.
    assert_eq!(values(&run(80)), [None; 2]);
}

fn queue_sample(packets: u32, mbps: u64) -> QueueSample {
    QueueSample {
        packets,
        bytes: u64::from(packets) * 1514,
        capacity: Rate::from_bps(mbps * 1_000_000),
        ..QueueSample::default()
    }
}

#[test]
fn only_what_came_to_a_queue_is_dropped_by_it() {
    let mut collector = tcp();
    let packet = segment(0, 0, false, at(0));
    for why in DropReason::ALL {
        collector.record(at(3000), LINK, &Event::Dropped { packet: &packet, why });
    }
    let sojourn = ms_span(10);
    for ms in 3001..3005 {
        collector.record(at(ms), LINK, &Event::Dequeued { packet: &packet, sojourn });
    }
    let run = collector.finish(at(10_000));
    let value = |name| run.links[0].value(name);
    // The policer and the losses before and behind the queue are not the queue.
    assert_eq!((value("drops"), value("drop_share")), (Some(7.0), Some(0.5)));
    assert_eq!((value("sojourn_n"), value("sojourn_of")), (Some(4.0), Some(8.0)));
    let others = ["drops_policed", "drops_entry", "drops_medium"].map(value);
    assert_eq!(others, [Some(1.0); 3]);
}

#[test]
fn a_link_counts_waits_drops_and_marks() {
    let mut collector = tcp();
    let packet = segment(0, 0, false, at(0));
    let other = segment(1, 0, false, at(0));
    let drop_and_mark = |collector: &mut Collector, ms, packet| {
        for why in [DropReason::Full, DropReason::Aqm] {
            collector.record(at(ms), LINK, &Event::Dropped { packet, why });
        }
        collector.record(at(ms), LINK, &Event::Marked { packet });
    };
    let dequeue = |collector: &mut Collector, ms, sojourn| {
        let (packet, sojourn) = (&packet, ms_span(sojourn));
        collector.record(at(ms), LINK, &Event::Dequeued { packet, sojourn });
    };
    drop_and_mark(&mut collector, 1000, &packet);
    dequeue(&mut collector, 1500, 900);
    drop_and_mark(&mut collector, 3000, &packet);
    drop_and_mark(&mut collector, 3001, &other);
    dequeue(&mut collector, 3100, 10);
    dequeue(&mut collector, 3150, 30);
    let run = collector.finish(at(10_000));
    let link = &run.links[0];
    let value = |name| link.value(name).unwrap_or(f64::NAN);
    assert_eq!((value("drops"), value("drops_after_warmup"), value("drops_full")), (6.0, 4.0, 3.0));
    assert_eq!((value("marks"), value("marks_after_warmup")), (3.0, 2.0));
    assert_eq!((link.flows[0].drops, link.flows[1].drops, link.flows[0].marks), (4, 2, 2));
    assert_eq!((value("sojourn_min_ms"), value("sojourn_max_ms")), (10.0, 30.0));
    assert_eq!((value("sent_packets"), value("sent_bytes")), (3.0, 3.0 * 1514.0));
    near(value("drop_share"), 4.0 / 6.0);
    assert_eq!(run.flows[0].value("dropped_packets"), Some(4.0));
    assert_eq!(run.flows[0].value("marked_packets"), Some(2.0));
    let series = &run.series.links[0];
    assert_eq!((series.sojourn_mean_ms[31], series.sojourn_max_ms[31]), (20.0, 30.0));
    assert_eq!((series.drops[30], series.marks[30]), (4.0, 2.0));
}

#[test]
fn utilisation_is_of_the_capacity_there_was() {
    let mut collector = tcp();
    // The warm-up ends between the samples of two steps; the observer gets the exact totals then.
    for (ms, medium_bytes, capacity_bytes) in
        [(100, 0, 1e6), (1900, 900_000, 2e6), (2000, 1_000_000, 4e6), (10_000, 4_000_000, 8e6)]
    {
        let capacity_bytes = Some(capacity_bytes);
        let sample = QueueSample { medium_bytes, capacity_bytes, ..queue_sample(5, 10) };
        let event = match ms {
            2000 => Event::WarmQueueSample(&sample),
            _ => Event::QueueSample(&sample),
        };
        collector.record(at(ms), LINK, &event);
    }
    let run = collector.finish(at(10_000));
    near(run.links[0].value("utilisation").expect("sampled"), 0.75);
    // The state in between is no sample of the queue.
    assert_eq!(run.links[0].queue.count(), 1);
}

#[test]
fn an_unlimited_or_unsampled_link_has_no_utilisation() {
    let mut collector = tcp();
    let sample = QueueSample { capacity: Rate::UNLIMITED, ..QueueSample::default() };
    collector.record(at(100), LINK, &Event::QueueSample(&sample));
    let run = collector.finish(at(10_000));
    assert_eq!(run.links[0].value("utilisation"), None);
    assert!(run.series.links[0].capacity_mbps.iter().all(|mbps| mbps.is_nan()));
    assert_eq!(tcp().finish(at(10_000)).links[0].value("utilisation"), None);
}

#[test]
fn backlog_is_meant_over_time_and_its_peak_is_seen_at_arrivals() {
    let mut collector = tcp();
    let packet = segment(0, 0, false, at(0));
    let packet = &packet;
    collector.record(at(1990), LINK, &Event::Enqueued { packet, backlog: 900 });
    for (ms, packets) in [(2000, 10), (4000, 20), (8000, 60)] {
        collector.record(at(ms), LINK, &Event::QueueSample(&queue_sample(packets, 10)));
    }
    collector.record(at(9000), LINK, &Event::Enqueued { packet, backlog: 77 });
    let run = collector.finish(at(10_000));
    let value = |name| run.links[0].value(name).unwrap_or(f64::NAN);
    assert_eq!(value("queue_mean_pkts"), (2.0 * 10.0 + 4.0 * 20.0 + 2.0 * 60.0) / 8.0);
    assert_eq!((value("queue_p50_pkts"), value("queue_max_pkts")), (20.0, 77.0));
    assert_eq!(run.series.links[0].queue_peak_pkts[19], 900.0);
    assert_eq!(run.series.links[0].queue_peak_pkts[79], 60.0);
    assert_eq!(run.series.links[0].queue_peak_pkts[90], 77.0);
}

#[test]
fn transfers_count_whenever_they_end() {
    let mut collector = tcp();
    for (ms, took) in [(1000, 800), (4000, 1000), (5000, 1200)] {
        let took = ms_span(took);
        collector.record(at(ms), A, &Event::Completed { bytes: 1, took });
    }
    let run = collector.finish(at(10_000));
    assert_eq!((value(&run, "completions"), value(&run, "completion_mean_ms")), (3.0, 1000.0));
}

#[test]
fn transfers_that_began_before_the_warm_up_do_not_count_and_the_rest_do_by_size() {
    let empty = qoe::EmptyPath { rtt: ms_span(10), rate: Rate::UNLIMITED, initial_window: 14_480 };
    let shape = Shape {
        flows: vec![FlowShape { empty: Some(empty), ..FlowShape::arrivals("a") }],
        links: vec![],
        duration: Span::from_secs(10),
        warmup: Span::from_secs(2),
        step: ms_span(100),
    };
    let mut collector = Collector::new(shape);
    // Opened at, bytes, took; the last one is still open when the run ends.
    let transfers = [
        (1900, 1_000, Some(200)),
        (2100, 1_000, Some(40)),
        (2200, 100_000, Some(80)),
        (2300, 100_001, Some(100)),
        (2600, 5_000_000, Some(4000)),
        (9000, 1_000, None),
    ];
    let mut events: Vec<(u64, Event<'_>)> = Vec::new();
    for (ms, bytes, took) in transfers {
        events.push((ms, Event::Opened { bytes }));
        if let Some(took) = took {
            events.push((ms + took, Event::Completed { bytes, took: ms_span(took) }));
        }
    }
    events.push((1000, Event::Refused { bytes: 1 }));
    events.push((3000, Event::Refused { bytes: 1 }));
    events.sort_by_key(|(ms, _)| *ms);
    for (ms, event) in &events {
        collector.record(at(*ms), A, event);
    }
    let run = collector.finish(at(10_000));
    let value = |name: &str| value(&run, name);
    assert_eq!(
        ["started", "completed", "unfinished", "refused"]
            .map(|what| value(&format!("transfers_{what}"))),
        [5.0, 4.0, 1.0, 1.0]
    );
    assert_eq!(
        (value("fct_min_ms"), value("fct_max_ms"), value("fct_mean_ms")),
        (40.0, 4000.0, 1055.0)
    );
    // What was refused has no time, and is missing among the others.
    assert_eq!((value("fct_n"), value("fct_of"), value("fct_small_of")), (4.0, 6.0, 4.0));
    assert_eq!(value("fct_small_mean_ms"), 60.0);
    assert_eq!((value("fct_medium_mean_ms"), value("fct_large_mean_ms")), (100.0, 4000.0));
    // A round trip to connect, then one for a thousand bytes, three for 100 kB, nine for 5 MB.
    assert_eq!((value("slowdown_min"), value("slowdown_max")), (2.0, 40.0));
    assert_eq!(value("completions"), 5.0);
}

#[test]
fn transfers_that_come_and_go_are_not_compared_with_flows_that_last() {
    let mut collector = collector([FlowShape::tcp, FlowShape::arrivals]);
    collector.record(at(5000), A, &Event::Delivered { bytes: 3_000_000 });
    collector.record(at(5000), B, &Event::Delivered { bytes: 1_000_000 });
    let run = collector.finish(at(10_000));
    assert_eq!((run.totals.jain, run.totals.min_max), (Some(1.0), Some(1.0)));
    assert_eq!(run.totals.tcp_goodput_sum_mbps, 4.0);
    assert_eq!(run.flows[1].value("share"), Some(0.25));
    assert_eq!(run.flows[1].value("transfers_started"), Some(0.0));
}

#[test]
fn a_flow_of_one_connection_has_no_count_of_transfers() {
    let run = tcp().finish(at(10_000));
    assert_eq!(run.flows[0].value("transfers_started"), None);
    assert_eq!(run.flows[0].value("fct_p50_ms"), None);
}

#[test]
fn rows_follow_the_step_to_the_end_of_the_run() {
    let shape = |step| Shape {
        flows: vec![FlowShape::tcp("a")],
        links: vec![],
        duration: ms_span(250),
        warmup: Span::ZERO,
        step,
    };
    let mut collector = Collector::new(shape(ms_span(100)));
    // An event at the very end of a row counts for the next one.
    collector.record(at(100), A, &Event::Delivered { bytes: 100_000 });
    collector.record(at(249), A, &Event::Delivered { bytes: 50_000 });
    let run = collector.finish(at(250));
    assert_eq!(run.series.t_s, [0.1, 0.2, 0.25]);
    assert_eq!(run.series.flows[0].goodput_mbps, [0.0, 8.0, 8.0]);
    let run = Collector::new(shape(ms_span(50))).finish(at(250));
    assert_eq!(run.series.t_s.len(), 5);
    let run = Collector::new(shape(Span::ZERO)).finish(at(250));
    assert!(run.series.t_s.is_empty());
}

#[test]
fn the_last_sample_of_a_run_fills_its_last_row() {
    let mut collector = tcp();
    collector.record(at(10_000), A, &Event::FlowSample(&flow_sample(42, 20, 0)));
    let run = collector.finish(at(10_000));
    assert_eq!(run.series.t_s.len(), 100);
    assert_eq!(run.series.flows[0].cwnd_pkts[99], 42.0);
}

/// A few packets through a queue to their receiver, one of them changed.
fn digest(change: impl Fn(&mut Time, &mut Span, &mut Packet)) -> u64 {
    let mut collector = tcp();
    for n in 0..4 {
        let (mut now, mut sojourn) = (at(100 * n), ms_span(30));
        let mut packet = segment(0, n as u32, false, now - ms_span(40));
        if n == 2 {
            change(&mut now, &mut sojourn, &mut packet);
        }
        let packet = &packet;
        collector.record(now, LINK, &Event::Dequeued { packet, sojourn });
        collector.record(now, A, &Event::Arrived { packet });
    }
    collector.finish(at(10_000)).digest
}

#[test]
fn the_digest_sees_every_change_of_a_packet() {
    let nano = Span::from_nanos(1);
    let mut digests = vec![
        digest(|_, _, _| {}),
        digest(|now, _, _| *now += nano),
        digest(|_, sojourn, _| *sojourn += nano),
        digest(|_, _, packet| packet.sent += nano),
        digest(|_, _, packet| packet.flow = FlowId(1)),
        digest(|_, _, packet| packet.wire_len += 1),
        digest(|_, _, packet| packet.body = segment(0, 9, false, at(0)).body),
    ];
    let all = digests.len();
    digests.sort_unstable();
    digests.dedup();
    assert_eq!(digests.len(), all);
    assert_eq!(digest(|_, _, _| {}), digest(|_, _, _| {}));
}

#[test]
fn the_digest_knows_of_what_is_still_under_way() {
    let mut collector = tcp();
    collector.record(at(9999), A, &Event::Sent { packet: &segment(0, 0, false, at(9999)) });
    assert_ne!(collector.finish(at(10_000)).digest, tcp().finish(at(10_000)).digest);
}

#[test]
fn the_digest_knows_places_kinds_and_order_but_not_the_step() {
    let of = |step, events: &[(Who, bool)]| {
        let mut collector = Collector::new(Shape {
            flows: vec![FlowShape::tcp("a")],
            links: vec![LinkShape { name: "x".into() }, LinkShape { name: "y".into() }],
            duration: Span::from_secs(10),
            warmup: Span::ZERO,
            step: ms_span(step),
        });
        let packet = segment(0, 0, false, at(5));
        let packet = &packet;
        for (who, is_drop) in events {
            let why = DropReason::Full;
            let event =
                if *is_drop { Event::Dropped { packet, why } } else { Event::Marked { packet } };
            collector.record(at(5), *who, &event);
        }
        collector.finish(at(10_000)).digest
    };
    let (x, y) = (Who::Port(PortId(0)), Who::Port(PortId(1)));
    let one = of(100, &[(x, false), (y, true)]);
    assert_eq!(one, of(10, &[(x, false), (y, true)]));
    assert_ne!(one, of(100, &[(y, false), (x, true)]));
    assert_ne!(one, of(100, &[(x, false)]));
    assert_ne!(of(100, &[(x, false), (x, true)]), of(100, &[(x, true), (x, false)]));
    assert_eq!(one, of(100, &[(y, true), (x, false)]), "links may be heard of in any order");
}

proptest! {
    #[test]
    fn rows_lose_no_byte_and_no_peak(
        mut events in prop::collection::vec((0u64..10_000, 1u64..100_000, 1u64..500), 1..200),
    ) {
        events.sort_unstable();
        let mut collector = tcp();
        for (ms, bytes, rtt) in &events {
            collector.record(at(*ms), A, &Event::Delivered { bytes: *bytes });
            collector.record(at(*ms), A, &Event::Rtt { rtt: ms_span(*rtt) });
        }
        let run = collector.finish(at(10_000));
        let series = &run.series.flows[0];
        let carried: f64 = series.goodput_mbps.iter().map(|mbps| f64::from(*mbps) * 0.1e6 / 8.0).sum();
        let delivered: u64 = events.iter().map(|event| event.1).sum();
        prop_assert!((carried / delivered as f64 - 1.0).abs() < 1e-5);
        prop_assert_eq!(run.flows[0].whole.delivered_bytes, delivered);
        let peak = series.rtt_max_ms.iter().copied().fold(0.0, f32::max);
        prop_assert_eq!(peak, events.iter().map(|event| event.2).max().unwrap_or(0) as f32);
        let late = events.iter().filter(|event| event.0 >= 2000).count() as u64;
        prop_assert_eq!(run.flows[0].rtt.count(), late);
    }
}

/// A call of 30 frames a second, each of one packet that takes 20 ms, but the packets of `lost` are dropped and come
/// 400 ms later as repetitions, and frames behind them wait for them.
#[test]
fn a_freeze_names_its_frame_and_the_packets_that_were_lost() {
    let mut collector = collector([FlowShape::udp, FlowShape::udp]);
    let who = Who::Flow(FlowId(0));
    let rtp = |frame: u32, captured: Time, stream| {
        Body::Rtp(RtpBody {
            number: frame,
            transport: frame,
            sequence: 1000 + frame,
            header_sequence: 0,
            frame,
            captured,
            stamp: captured,
            part: 0,
            parts: 1,
            stream,
            is_key: false,
        })
    };
    let lost = 120;
    let mut shown = Vec::new();
    let mut happens: Vec<(Time, u32, u8)> = Vec::new();
    for frame in 0..200 {
        let at = Time::ZERO + ms_span(u64::from(frame) * 33);
        happens.push((at, frame, 0));
        let whole = at + ms_span(if frame == lost { 420 } else { 20 });
        shown.push(shown.last().map_or(whole, |last: &Time| whole.max(*last)));
        happens.push((whole, frame, 1));
        happens.push((shown[frame as usize], frame, 2));
    }
    happens.sort();
    for (now, frame, what) in happens {
        let captured = Time::ZERO + ms_span(u64::from(frame) * 33);
        let tell = |collector: &mut Collector, stage| {
            let frame =
                FrameEvent { stage, captured, bytes: 1000, is_key: false, buffered: Span::ZERO };
            collector.record(now, who, &Event::Frame(&frame));
        };
        match what {
            0 => {
                tell(&mut collector, FrameStage::Encoded);
                tell(&mut collector, FrameStage::Sent);
                let packet = packet(0, now, 1200, rtp(frame, captured, RtpStream::Video));
                collector.record(now, who, &Event::Sent { packet: &packet });
                if frame == lost {
                    let why = DropReason::Full;
                    let event = Event::Dropped { packet: &packet, why };
                    collector.record(now, Who::Port(PortId(0)), &event);
                }
            }
            1 => {
                let is_lost = frame == lost;
                let stream = if is_lost { RtpStream::Repair } else { RtpStream::Video };
                let sent = now - ms_span(20);
                let packet = packet(0, sent, 1200, rtp(frame, captured, stream));
                collector.record(now, who, &Event::Arrived { packet: &packet });
                tell(&mut collector, FrameStage::Received);
            }
            _ => tell(&mut collector, FrameStage::Rendered),
        }
    }
    let run = collector.finish(Time::ZERO + Span::from_secs(10));
    let freezes = &run.flows[0].media.freezes;
    let [freeze] = &freezes[..] else { panic!("{freezes:?}") };
    let captured = Time::ZERO + ms_span(u64::from(lost) * 33);
    assert_eq!((freeze.after, freeze.frame, freeze.never_shown), (lost - 1, lost, 0));
    assert_eq!((freeze.from, freeze.to), (captured - ms_span(13), captured + ms_span(420)));
    assert_eq!((freeze.sent, freeze.received), (Some(captured), Some(freeze.to)));
    let last = freeze.last.expect("a packet completed it");
    assert_eq!((last.sequence, last.is_repair), (1000 + lost, true));
    let [packet] = &freeze.lost[..] else { panic!("{:?}", freeze.lost) };
    assert_eq!((packet.sequence, packet.frame, packet.is_repair), (1000 + lost, lost, false));
    assert_eq!((packet.place, packet.why), (PortId(0), DropReason::Full));
    assert_eq!(value(&run, "freeze_count"), 1.0);
}

/// What becomes of a frame of a call, which has one packet.
#[derive(Clone, Copy)]
enum Fate {
    /// So many milliseconds after its capture.
    Shown(u64),
    Dropped,
    /// It stays in the sender.
    Waits,
    Skipped,
}

/// A call that captures a frame each 10 ms, up to `end` in milliseconds.
fn call(end: u64, fate: impl Fn(u64) -> Fate) -> RunMetrics {
    let mut collector = collector([FlowShape::udp, FlowShape::udp]).expecting_all_drops();
    let mut happens: Vec<(u64, u64, bool)> = Vec::new();
    for frame in 0..end.div_ceil(10) {
        happens.push((10 * frame, frame, false));
        if let Fate::Shown(after) = fate(frame) {
            happens.push((10 * frame + after, frame, true));
        }
    }
    happens.sort();
    let who = Who::Flow(FlowId(0));
    for (now, frame, is_shown) in happens.into_iter().filter(|(now, ..)| *now <= end) {
        let (now, captured) = (at(now), at(10 * frame));
        let mut tell = |stage| {
            let frame =
                FrameEvent { stage, captured, bytes: 1000, is_key: false, buffered: Span::ZERO };
            collector.record(now, who, &Event::Frame(&frame));
        };
        match fate(frame) {
            _ if is_shown => tell(FrameStage::Rendered),
            Fate::Skipped => tell(FrameStage::Skipped),
            Fate::Waits | Fate::Shown(_) => tell(FrameStage::Encoded),
            Fate::Dropped => {
                tell(FrameStage::Encoded);
                let body = Body::Rtp(RtpBody {
                    number: frame as u32,
                    transport: frame as u32,
                    sequence: frame as u32,
                    header_sequence: 0,
                    frame: frame as u32,
                    captured,
                    stamp: captured,
                    part: 0,
                    parts: 1,
                    stream: RtpStream::Video,
                    is_key: false,
                });
                let packet = packet(0, captured, 1200, body);
                let event = Event::Dropped { packet: &packet, why: DropReason::Full };
                collector.record(now, Who::Port(PortId(0)), &event);
            }
        }
    }
    collector.finish(at(end))
}

#[test]
fn a_picture_that_stands_still_at_the_end_is_seen_though_nothing_leaves_the_sender() {
    // The last frame that is shown is of 9.99 s, at 10.09 s; that of 19.99 s is the last.
    let shown = |n: u64| n < 1000;
    for fate in [Fate::Waits, Fate::Skipped] {
        let run = call(20_000, |n| if shown(n) { Fate::Shown(100) } else { fate });
        let frames = &run.flows[0].frames;
        assert_eq!((frames.pauses.count, frames.pauses.total), (1, ms_span(9900)));
        assert_eq!(frames.stalls.last().map(|stall| stall.whole), Some(ms_span(9900)));
    }
    let run = call(20_000, |n| if shown(n) { Fate::Shown(100) } else { Fate::Waits });
    let [freeze] = &run.flows[0].media.freezes[..] else { panic!() };
    assert_eq!((freeze.frame, freeze.never_shown, freeze.to), (1000, 1000, at(19_990)));
    // Those of the last 100 ms may be under way.
    assert_eq!(run.flows[0].frames.lost, 990);
    // A call whose frames are late, and one that ended.
    let run = call(20_000, |_| Fate::Shown(2000));
    let frames = &run.flows[0].frames;
    assert_eq!((frames.lost, frames.stalls[0].count), (0, 0));
}

/// More frames, and more packets, than the log remembers. The first frame after them takes three seconds, and a later one is lost
/// meanwhile.
#[test]
fn a_freeze_after_a_long_outage_names_its_first_packet_and_counts_all() {
    let run = call(230_000, |n| match n {
        0..1000 => Fate::Shown(100),
        1000..21_000 | 21_001 => Fate::Dropped,
        21_000 => Fate::Shown(3000),
        _ => Fate::Shown(3100),
    });
    let freezes = &run.flows[0].media.freezes;
    let [freeze] = &freezes[..] else { panic!("{freezes:?}") };
    assert_eq!((freeze.from, freeze.to), (at(10_090), at(213_000)));
    assert_eq!((freeze.after, freeze.frame, freeze.never_shown), (999, 21_000, 20_000));
    assert_eq!((freeze.lost_packets, freeze.lost.len()), (20_000, 40));
    assert_eq!(freeze.lost[0].sequence, 1000);
    assert_eq!(run.flows[0].frames.pauses.total, ms_span(202_910));
}

#[test]
fn a_freeze_after_a_long_outage_ends_with_the_first_frame_that_waited() {
    let late = |n: u64| 10 * (9000 - n) + 100 + (n - 1000) / 10;
    let is_out = |n: u64| (1000..9000).contains(&n);
    let run = call(100_000, |n| Fate::Shown(if is_out(n) { late(n) } else { 1000 }));
    let freezes = &run.flows[0].media.freezes;
    let [freeze] = &freezes[..] else { panic!("{freezes:?}") };
    assert_eq!((freeze.from, freeze.to), (at(10_990), at(90_100)));
    assert_eq!((freeze.after, freeze.frame, freeze.never_shown), (999, 1000, 0));
    assert_eq!(run.flows[0].frames.pauses.total, ms_span(79_110));
}

#[test]
fn a_call_has_a_target_until_it_stops() {
    let mut collector = Collector::new(Shape {
        flows: vec![FlowShape { stop: Some(ms_span(500)), ..FlowShape::udp("a") }],
        links: vec![],
        duration: Span::from_secs(2),
        warmup: Span::ZERO,
        step: ms_span(100),
    });
    for (now, mbps) in [(0, 1), (250, 3)] {
        let target = Rate::from_bps(mbps * 1_000_000);
        let control = RateControl { target, ..RateControl::default() };
        collector.record(at(now), A, &Event::RateControl(&control));
    }
    let run = collector.finish(at(2000));
    near(value(&run, "target_mean_mbps"), (2.0 * 1.0 + 3.0 * 3.0) / 5.0);
    let rows = &run.series.flows[0];
    assert_eq!(rows.target_mbps[..5], [1.0, 1.0, 3.0, 3.0, 3.0]);
    assert!(rows.target_mbps[5..].iter().all(|target| target.is_nan()));
    assert!(rows.sent_mbps.iter().all(|sent| *sent == 0.0));
}

/// Nothing of a voice arrives, so it has the lowest score. A call without a voice has none.
#[test]
fn a_voice_of_which_nothing_arrives_has_the_lowest_score() {
    let mut collector = collector([FlowShape::udp, FlowShape::udp]);
    for (flow, stream) in [(0, RtpStream::Audio), (1, RtpStream::Video)] {
        let body = Body::Rtp(RtpBody {
            number: 0,
            transport: 0,
            sequence: 0,
            header_sequence: 0,
            frame: 0,
            captured: at(3000),
            stamp: at(3000),
            part: 0,
            parts: 1,
            stream,
            is_key: true,
        });
        let packet = packet(flow, at(3000), 100, body);
        collector.record(at(3000), Who::Flow(FlowId(flow)), &Event::Sent { packet: &packet });
    }
    let run = collector.finish(Time::ZERO + Span::from_secs(10));
    let scores = [0, 1].map(|flow: usize| run.flows[flow].value("mos_voice"));
    assert_eq!(scores, [Some(1.0), None]);
}
