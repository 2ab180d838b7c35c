use sojourn_core::{Params, Purpose, Rate, StreamAddress, Words};

use super::*;

fn source() -> Box<dyn Source> {
    let words = "files=500kbit:a,1mbit:b skip=1 scale_t=0";
    let mut config = Config::parse(&mut Words::new(words)).expect("well written");
    config.read("a", "9000\n2000\n2100").expect("sizes");
    config.read("b", "18000\n4000\n4200").expect("sizes");
    config.build(Setup {
        start: Time::ZERO,
        frames_per_second: 30.0,
        min_rate: Rate::from_bps(150_000),
        max_rate: Rate::from_bps(1_500_000),
        random: StreamAddress { seed: 3, run: 0 }.stream(1, Purpose::Application),
    })
}

fn sizes(source: &mut dyn Source, kbps: u64, count: usize) -> Vec<u32> {
    let wanted = Wanted { rate: Rate::from_bps(kbps * 1000), key: false };
    (0..count).map(|_| source.capture(&wanted).expect("no frame is dropped").size).collect()
}

#[test]
fn steady_frames_come_from_the_files() {
    let mut source = source();
    assert_eq!(sizes(&mut *source, 1000, 5), [18_000, 4000, 4200, 4000, 4200]);
}

/// K_B, then (8·4167 - 13500)/7 seven times; the sequence goes on meanwhile.
#[test]
fn a_large_change_is_a_transient_and_a_small_one_is_not() {
    let mut source = source();
    sizes(&mut *source, 500, 9);
    assert_eq!(sizes(&mut *source, 540, 2), [2160, 2268]);
    sizes(&mut *source, 540, 8);
    let sizes = sizes(&mut *source, 1000, 10);
    assert_eq!(sizes[0], 13_500);
    assert!(sizes[1..8].iter().all(|size| *size == 2833), "{sizes:?}");
    assert!(sizes[8..].iter().all(|size| [4000, 4200].contains(size)), "{sizes:?}");
}

#[test]
fn a_key_frame_on_demand_is_the_sequences_first() {
    let mut source = source();
    sizes(&mut *source, 1000, 9);
    let wanted = Wanted { rate: Rate::from_bps(1_000_000), key: true };
    let frame = source.capture(&wanted).expect("a frame");
    assert_eq!((frame.size, frame.is_key), (18_000, true));
    assert_eq!(sizes(&mut *source, 1000, 2), [4000, 4200]);
}
