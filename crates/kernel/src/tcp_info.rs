//! What a guest's socket says of itself: `tcp_info` of `linux/tcp.h`, as a flow's sample.

use sojourn_core::{EcnMode, FlowSample, Rate, Span};

/// Reads an answer to a report: `tcp_info` and what the congestion control says, each after its length. `None` if it is
/// too short to be one.
pub(crate) fn read(answer: &[u8], cc: &str) -> Option<FlowSample> {
    let (info, rest) = piece(answer)?;
    let control = piece(rest).map_or(&[][..], |(control, _)| control);
    // Older kernels tell less, newer ones more.
    let word = |at: usize| {
        let bytes = info.get(at..at + 4).and_then(|four| four.try_into().ok());
        bytes.map_or(0, u32::from_ne_bytes)
    };
    let long = |at: usize| {
        let bytes = info.get(at..at + 8).and_then(|eight| eight.try_into().ok());
        bytes.map_or(0, u64::from_ne_bytes)
    };
    if info.len() < 104 {
        return None;
    }
    let micros = |at| Span::from_micros(u64::from(word(at)));
    // No run is longer than this; a kernel may say anything.
    let long_time = |at| Span::from_micros(long(at).min(1 << 50));
    let rate = |bytes: u64| match bytes.checked_mul(8) {
        Some(_) if bytes > 0 => Some(Rate::from_bytes_per_sec(bytes)),
        _ => None,
    };
    let (options, app_limited) = (info[5], info[7] & 1 != 0);
    let bw = || {
        let half = |at: usize| Some(u32::from_ne_bytes(control.get(at..at + 4)?.try_into().ok()?));
        let bw = u64::from(half(0)?) | u64::from(half(4)?) << 32;
        rate(bw).filter(|_| cc.starts_with("bbr"))
    };
    let model_min_rtt = || {
        let micros = u32::from_ne_bytes(control.get(8..12)?.try_into().ok()?);
        cc.starts_with("bbr").then(|| Span::from_micros(u64::from(micros)))
    };
    Some(FlowSample {
        cwnd: word(80),
        ssthresh: Some(word(76)).filter(|ssthresh| *ssthresh < 0x7fff_ffff),
        pacing_rate: rate(long(104)),
        delivery_rate: rate(long(160)).unwrap_or(Rate::from_bps(0)),
        delivery_rate_app_limited: app_limited,
        srtt: micros(68),
        rttvar: micros(72),
        min_rtt: Some(micros(148)).filter(|rtt| *rtt < Span::from_secs(4000)),
        rto: micros(8),
        unacked: word(24),
        sacked: word(28),
        lost: word(32),
        retrans: word(36),
        retrans_total: u64::from(word(100)),
        delivered: u64::from(word(192)),
        delivered_ce: u64::from(word(196)),
        bytes_sent: long(200),
        bytes_retrans: long(208),
        bytes_acked: long(120),
        not_sent: u64::from(word(144)),
        rwnd: u64::from(word(228)),
        busy: long_time(168),
        rwnd_limited: long_time(176),
        sndbuf_limited: long_time(184),
        ecn: if options & 8 != 0 { EcnMode::Rfc3168 } else { EcnMode::Disabled },
        ecn_seen: options & 16 != 0,
        bw: bw(),
        model_min_rtt: model_min_rtt(),
        ..FlowSample::default()
    })
}

fn piece(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let len = usize::from(u16::from_le_bytes(bytes.get(..2)?.try_into().ok()?));
    bytes[2..].split_at_checked(len)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_answer_is_read_or_refused(bytes in vec(any::<u8>(), 0..600)) {
            let _ = read(&bytes, "bbr");
        }
    }

    #[test]
    fn the_fields_are_where_the_kernel_has_them() {
        let mut info = vec![0; 232];
        info[68..72].copy_from_slice(&20_000u32.to_ne_bytes());
        info[80..84].copy_from_slice(&10u32.to_ne_bytes());
        info[104..112].copy_from_slice(&u64::MAX.to_ne_bytes());
        info[228..232].copy_from_slice(&65_535u32.to_ne_bytes());
        let mut answer = 232u16.to_le_bytes().to_vec();
        answer.extend(info);
        let sample = read(&answer, "cubic").expect("it is complete");
        assert_eq!((sample.srtt, sample.cwnd), (Span::from_millis(20), 10));
        assert_eq!((sample.pacing_rate, sample.rwnd, sample.bw), (None, 65_535, None));
    }
}
