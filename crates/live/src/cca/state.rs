//! What the programs of `bpf/bbr.bpf.c` keep of a connection, and the kernel of a control.

use sojourn_core::{FlowSample, Rate, Span};

/// `enum state`.
const PHASES: [&str; 7] = [
    "STARTUP",
    "DRAIN",
    "PROBE_BW:DOWN",
    "PROBE_BW:CRUISE",
    "PROBE_BW:REFILL",
    "PROBE_BW:UP",
    "PROBE_RTT",
];

/// There is no such bound, or no sample yet.
const INFINITY: u32 = u32::MAX;

/// A bandwidth is in so many parts of a segment per second.
const PARTS: u128 = 1024;

/// Adds to `sample` what the beginning of `struct bbr` says; nothing if it is too short or makes no sense.
pub(super) fn add(value: &[u8], sample: &mut FlowSample) {
    let word = |at: usize| Some(u32::from_ne_bytes(value.get(at..at + 4)?.try_into().ok()?));
    let double = |at: usize| Some(u64::from_ne_bytes(value.get(at..at + 8)?.try_into().ok()?));
    let words = (word(0), word(4), double(8), word(16), word(20), word(24), word(28));
    let (Some(state), Some(smss), Some(bw), Some(rtt), Some(bound), Some(extra), Some(rounds)) =
        words
    else {
        return;
    };
    let Some(phase) = PHASES.get(state as usize) else { return };
    sample.phase = phase;
    let bits = u128::from(bw) * u128::from(smss) * 8 / PARTS;
    sample.bw = (bw > 0).then(|| u64::try_from(bits).map_or(Rate::UNLIMITED, Rate::from_bps));
    sample.model_min_rtt = (rtt != INFINITY).then(|| Span::from_micros(rtt.into()));
    sample.inflight_longterm = (bound != INFINITY).then_some(bound);
    sample.extra_acked = Some(extra);
    sample.rounds = Some(rounds.into());
}

/// From the kernel's `struct bpf_struct_ops_common_value`: how many use a control, and whether it is registered.
pub(super) fn of_control(value: &[u8]) -> (Option<u32>, bool) {
    const IN_USE: u32 = 1;
    let word = |at: usize| Some(u32::from_ne_bytes(value.get(at..at + 4)?.try_into().ok()?));
    (word(0), word(4) == Some(IN_USE))
}

/// Whether the kernel's `struct tcp_congestion_ops` in such a value has this name.
pub(super) fn is_named(value: &[u8], name: &str) -> bool {
    let whole = [b"\0", name.as_bytes(), b"\0"].concat();
    value.windows(whole.len()).any(|bytes| bytes == whole)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn value(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn the_state_of_a_connection_becomes_what_the_series_of_a_simulation_have() {
        // 863 segments of 1448 bytes a second are 10 Mbit/s.
        let bw = (863_u32 * 1024).to_ne_bytes().map(u32::from);
        let bw = bw.iter().rev().fold(0, |sum, byte| sum << 8 | byte);
        let mut sample = FlowSample::default();
        add(&value(&[3, 1448, bw, 0, 20_100, 31, 2, 77]), &mut sample);
        assert_eq!(sample.phase, "PROBE_BW:CRUISE");
        assert_eq!(sample.bw, Some(Rate::from_bps(863 * 1448 * 8)));
        assert_eq!(sample.model_min_rtt, Some(Span::from_micros(20_100)));
        assert_eq!((sample.inflight_longterm, sample.extra_acked), (Some(31), Some(2)));
        assert_eq!(sample.rounds, Some(77));
    }

    #[test]
    fn what_is_not_known_yet_is_not_told() {
        let mut sample = FlowSample::default();
        add(&value(&[0, 1448, 0, 0, INFINITY, INFINITY, 0, 0]), &mut sample);
        assert_eq!((sample.phase, sample.bw, sample.model_min_rtt), ("STARTUP", None, None));
        assert_eq!(sample.inflight_longterm, None);
    }

    #[test]
    fn a_control_is_known_by_its_whole_name() {
        let value = b"\x01\0\0\0bbr3\0\0\0\0";
        assert!(is_named(value, "bbr3") && !is_named(value, "bbr") && !is_named(value, "br3"));
        assert!(!is_named(b"", "bbr3"));
    }

    #[test]
    fn the_phases_are_those_of_the_simulation() {
        use sojourn_cca::Algorithm;
        assert_eq!(sojourn_cca::bbr3::Config::default().phases(), PHASES);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..50)) {
            add(&bytes, &mut FlowSample::default());
            let _ = of_control(&bytes);
        }
    }
}
