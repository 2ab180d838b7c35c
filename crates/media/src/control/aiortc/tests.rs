//! The vectors of aiortc's own tests, which are libwebrtc's.

use super::aimd::Aimd;
use super::filter::{Filter, Usage};
use super::*;
use crate::control::Arrival;

fn aimd(rate: f64) -> Aimd {
    let mut aimd = Aimd::new(&Config::default());
    aimd.set(0.0, rate);
    aimd
}

#[test]
fn a_normal_update_at_once_adds_a_kilobit() {
    assert_eq!(aimd(300_000.0).update(0.0, Usage::Normal, Some(300_000.0)), Some(301_000.0));
}

#[test]
fn over_use_leaves_85_per_cent() {
    assert_eq!(aimd(300_000.0).update(0.0, Usage::Over, Some(300_000.0)), Some(255_000.0));
}

#[test]
fn the_rate_stays_below_one_and_a_half_times_the_throughput() {
    let mut aimd = aimd(100_000.0);
    for tenth in 0..200 {
        aimd.update(f64::from(tenth) * 100.0, Usage::Normal, Some(100_000.0));
    }
    assert_eq!(aimd.update(20_000.0, Usage::Normal, Some(100_000.0)), Some(160_000.0));
}

#[test]
fn after_over_use_it_holds_and_then_rises_by_a_packet_a_response_time() {
    let mut aimd = aimd(100_000.0);
    assert_eq!(aimd.update(0.0, Usage::Over, Some(100_000.0)), Some(85_000.0));
    assert_eq!(aimd.update(0.0, Usage::Under, Some(100_000.0)), Some(85_000.0));
    assert_eq!(aimd.update(0.0, Usage::Normal, Some(100_000.0)), Some(86_000.0));
    let mut aimd = self::aimd(100_000.0);
    aimd.update(0.0, Usage::Over, Some(100_000.0));
    aimd.update(1000.0, Usage::Under, Some(100_000.0));
    // 85 000 / 30 bits a packet, 1000 / 300 of them a second.
    let rises =
        [aimd.update(1000.0, Usage::Normal, None), aimd.update(2000.0, Usage::Normal, None)];
    let risen = rises[1].expect("known") - rises[0].expect("known");
    assert!((risen - 86_000.0 / 30.0 / 0.3).abs() < 1.0, "{risen}");
}

/// Groups that come `drift` ms later each, after 100 000 that did not.
fn until_over_use(period: f64, drift: f64) -> u32 {
    let mut filter = Filter::new(&Config::default());
    let mut now = 0.0;
    for _ in 0..100_000 {
        now += period;
        filter.on_group(now, period, period, 0.0);
        assert_ne!(filter.usage(), Usage::Over);
    }
    for group in 1..1000 {
        now += period + drift;
        filter.on_group(now, period + drift, period, 0.0);
        if filter.usage() == Usage::Over {
            return group;
        }
    }
    1000
}

/// aiortc's test counts two frames more: the first one, which is in time, and the one that ends the last group.
#[test]
fn a_drift_of_a_millisecond_a_frame_is_over_use_in_the_seventh_frame() {
    assert_eq!(until_over_use(33.0, 1.0) + 2, 7);
    assert_eq!(until_over_use(100.0, 1.0) + 2, 7);
}

#[test]
fn the_encoder_follows_within_its_limits_and_nothing_happens_before_three_seconds() {
    let mut sender = Aiortc { config: Config::default(), target: Config::default().start };
    for (estimate, target) in [(10_000, 500_000), (700_000, 700_000), (9_000_000, 3_000_000)] {
        sender.on_remb(Time::ZERO, Rate::from_bps(estimate));
        assert_eq!(sender.outputs().target.as_bps(), target);
    }
    let mut receiver = RemoteEstimator::new(&Config::default());
    // 1 Mbit/s: 1250 bytes every 10 ms.
    let estimates: Vec<(u64, u64)> = (0..2000)
        .filter_map(|packet| {
            let at = Time::from_nanos(packet * 10_000_000);
            let ticks = ((u128::from(at.as_nanos()) << 18) / 1_000_000_000) as u32 & 0xff_ffff;
            let arrival = Arrival {
                now: at + Span::from_millis(20),
                abs_send_time: ticks,
                size: 1290,
                payload: 1250,
                ecn: sojourn_core::Ecn::NotEct,
                rtp_timestamp: 0,
                stream: 0,
            };
            receiver.on_arrival(&arrival).map(|rate| (packet / 100, rate.as_bps()))
        })
        .collect();
    assert!((3..=4).contains(&estimates[0].0), "{estimates:?}");
    // The rate rises by 8 % a second, up to 1.5 times the arriving rate plus 10 kbit/s.
    let last = estimates.last().expect("estimates").1;
    assert!((1_500_000..=1_515_000).contains(&last), "{last}");
}
