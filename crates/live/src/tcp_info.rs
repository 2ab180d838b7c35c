//! `TCP_INFO` and `TCP_CC_INFO` as the kernel gives them (`struct tcp_info` of `linux/tcp.h`,
//! `union tcp_cc_info` of `linux/inet_diag.h`), read into what the series have.
//!
//! Newer kernels append fields and older ones give fewer bytes; what is not there is unknown.

use sojourn_core::{EcnMode, FlowSample, Rate, Span};

/// Room for the structure of any kernel so far.
pub(crate) const ROOM: usize = 512;

/// `TCP_CA_Recovery` and `TCP_CA_Loss`.
const RECOVERY: u8 = 3;
const LOSS: u8 = 4;

/// `TCP_ESTABLISHED`.
const ESTABLISHED: u8 = 1;

/// What `tcpi_options` says.
const ECN: u8 = 8;
const ECN_SEEN: u8 = 16;

/// `TCP_INFINITE_SSTHRESH`.
const NO_SSTHRESH: u32 = 0x7fff_ffff;

/// What `info` says of a connection with congestion control `cca`, of which the kernel says `own`.
pub(crate) fn sample(info: &[u8], cca: &str, own: &[u8]) -> FlowSample {
    let byte = |at: usize| info.get(at).copied().unwrap_or(0);
    let us = |at| Span::from_micros(u64::from(word(info, at).unwrap_or(0)));
    let count = |at| word(info, at).unwrap_or(0);
    let total = |at| double(info, at).unwrap_or(0);
    let rate = |at| double(info, at).map(rate_of);
    let srtt = us(68);
    let (cwnd, ssthresh) = (count(80), count(76));
    let has_ssthresh = ssthresh < NO_SSTHRESH;
    let own = Own::of(cca, own);
    // The kernel computes a rate also for those that do not pace.
    let pacing_rate = rate(104).filter(|rate| is_bbr(cca) && !rate.is_unlimited());
    FlowSample {
        cwnd,
        ssthresh: has_ssthresh.then_some(ssthresh),
        pacing_rate,
        delivery_rate: rate(160).unwrap_or(Rate::from_bps(0)),
        delivery_rate_app_limited: byte(7) & 1 != 0,
        srtt,
        rttvar: us(72),
        min_rtt: word(info, 148)
            .filter(|us| *us != u32::MAX && !srtt.is_zero())
            .map(|us| Span::from_micros(us.into())),
        rto: us(8),
        unacked: count(24),
        sacked: count(28),
        lost: count(32),
        retrans: count(36),
        retrans_total: count(100).into(),
        timeouts_total: half(info, 240).unwrap_or(0).into(),
        delivered: count(192).into(),
        delivered_ce: count(196).into(),
        bytes_sent: total(200),
        bytes_retrans: total(208),
        bytes_acked: total(120).saturating_sub(1),
        not_sent: count(144).into(),
        rwnd: count(228).into(),
        busy: Span::from_nanos(total(168).saturating_mul(1000)),
        rwnd_limited: Span::from_nanos(total(176).saturating_mul(1000)),
        sndbuf_limited: Span::from_nanos(total(184).saturating_mul(1000)),
        ecn: if byte(5) & ECN == 0 { EcnMode::Disabled } else { EcnMode::Rfc3168 },
        ecn_seen: byte(5) & ECN_SEEN != 0,
        phase: match (&own, byte(1)) {
            (Own::Bbr { phase, .. }, _) => phase,
            // It has no such phases as follow.
            _ if is_bbr(cca) => "",
            (_, RECOVERY | LOSS) => "recovery",
            _ if !has_ssthresh || cwnd < ssthresh => "slow_start",
            _ => "avoidance",
        },
        bw: match own {
            Own::Bbr { bw, .. } => Some(bw),
            Own::Nothing => None,
        },
        model_min_rtt: match own {
            Own::Bbr { min_rtt, .. } => Some(min_rtt),
            Own::Nothing => None,
        },
        ..FlowSample::default()
    }
}

/// Whether both ends can send.
pub(crate) fn is_established(info: &[u8]) -> bool {
    info.first() == Some(&ESTABLISHED)
}

/// Whether it is BBR of any version.
fn is_bbr(cca: &str) -> bool {
    cca.starts_with("bbr")
}

/// What a congestion control says of itself.
#[derive(Debug, PartialEq)]
enum Own {
    Nothing,
    /// `struct tcp_bbr_info`.
    Bbr {
        bw: Rate,
        min_rtt: Span,
        phase: &'static str,
    },
}

impl Own {
    fn of(cca: &str, bytes: &[u8]) -> Self {
        if !is_bbr(cca) {
            return Self::Nothing;
        }
        let words = [0, 4, 8, 12, 16].map(|at| word(bytes, at));
        let [Some(low), Some(high), Some(min_rtt), Some(pacing_gain), Some(cwnd_gain)] = words
        else {
            return Self::Nothing;
        };
        // Gains are in 256ths (`BBR_UNIT`): 2/ln 2 in STARTUP, its inverse in DRAIN.
        let phase = match (pacing_gain, cwnd_gain) {
            (700.., _) => "STARTUP",
            (..128, _) => "DRAIN",
            (_, ..=256) => "PROBE_RTT",
            (257.., _) => "PROBE_BW:1.25",
            (..=255, _) => "PROBE_BW:0.75",
            _ => "PROBE_BW:1",
        };
        Self::Bbr {
            bw: rate_of(u64::from(high) << 32 | u64::from(low)),
            min_rtt: Span::from_micros(min_rtt.into()),
            phase,
        }
    }
}

/// Of bytes per second.
fn rate_of(bytes: u64) -> Rate {
    match bytes.checked_mul(8) {
        Some(bits) => Rate::from_bps(bits),
        None => Rate::UNLIMITED,
    }
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn double(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A structure in which each of these places has a word.
    fn info(words: &[(usize, u32)]) -> [u8; 248] {
        let mut bytes = [0; 248];
        for (at, word) in words {
            bytes[*at..at + 4].copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    #[test]
    fn fields_are_where_the_kernel_has_them() {
        let mut bytes =
            info(&[(24, 20), (68, 40_000), (72, 500), (76, 15), (80, 30), (100, 4), (148, 20_100)]);
        bytes[160..168].copy_from_slice(&1_250_000_u64.to_ne_bytes());
        bytes[120..128].copy_from_slice(&1449_u64.to_ne_bytes());
        bytes[240..242].copy_from_slice(&2_u16.to_ne_bytes());
        let sample = sample(&bytes, "cubic", &[]);
        assert_eq!((sample.cwnd, sample.ssthresh, sample.unacked), (30, Some(15), 20));
        assert_eq!((sample.srtt, sample.rttvar), (Span::from_millis(40), Span::from_micros(500)));
        assert_eq!(sample.min_rtt, Some(Span::from_micros(20_100)));
        assert_eq!(sample.delivery_rate, Rate::from_bps(10_000_000));
        assert_eq!((sample.bytes_acked, sample.retrans_total, sample.timeouts_total), (1448, 4, 2));
        assert_eq!((sample.phase, sample.pacing_rate, sample.bw), ("avoidance", None, None));
    }

    #[test]
    fn an_older_kernel_s_shorter_structure_leaves_the_rest_unknown() {
        let bytes = info(&[(68, 40_000), (76, NO_SSTHRESH), (80, 10), (148, 20_000)]);
        let sample = sample(&bytes[..104], "reno", &[]);
        assert_eq!((sample.cwnd, sample.min_rtt, sample.ssthresh), (10, None, None));
        assert_eq!(sample.phase, "slow_start");
    }

    #[test]
    fn bbr_that_says_nothing_paces_in_an_unknown_phase() {
        let mut bytes = info(&[(76, NO_SSTHRESH), (80, 30)]);
        // No rate yet.
        bytes[104..112].fill(0xff);
        assert_eq!(sample(&bytes, "bbr3", &[]).pacing_rate, None);
        bytes[104..112].copy_from_slice(&1_250_000_u64.to_ne_bytes());
        for state in [0, RECOVERY, LOSS] {
            bytes[1] = state;
            for cca in ["bbr3", "bbr_n_plus"] {
                let sample = sample(&bytes, cca, &[]);
                assert_eq!(sample.phase, "");
                assert_eq!(sample.pacing_rate, Some(Rate::from_bps(10_000_000)));
            }
        }
        assert_eq!(sample(&bytes, "cubic", &[]).pacing_rate, None);
    }

    #[test]
    fn the_gains_of_bbr_tell_its_phase() {
        for (pacing, cwnd, phase) in [
            (739, 739, "STARTUP"),
            (88, 739, "DRAIN"),
            (320, 512, "PROBE_BW:1.25"),
            (192, 512, "PROBE_BW:0.75"),
            (256, 512, "PROBE_BW:1"),
            (256, 256, "PROBE_RTT"),
        ] {
            let words = [1_250_000_u32, 0, 20_000, pacing, cwnd];
            let own: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
            let sample = sample(&info(&[(80, 30)]), "bbr", &own);
            assert_eq!(sample.phase, phase);
            assert_eq!(sample.bw, Some(Rate::from_bps(10_000_000)));
            assert_eq!(sample.model_min_rtt, Some(Span::from_millis(20)));
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(
            info in prop::collection::vec(any::<u8>(), 0..300),
            cca in "bbr|cubic|\\PC{0,4}",
            own in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let _ = sample(&info, &cca, &own);
        }
    }
}
