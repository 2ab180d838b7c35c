use sojourn_core::{Params, Purpose, Rate, Span, StreamAddress, Time, Words};

use super::*;

fn setup(fps: f64) -> Setup {
    Setup {
        start: Time::from_nanos(5),
        frames_per_second: fps,
        min_rate: Rate::from_bps(150_000),
        max_rate: Rate::from_bps(1_500_000),
        random: StreamAddress { seed: 3, run: 0 }.stream(1, Purpose::Application),
    }
}

fn source(words: &str, fps: f64) -> Box<dyn Source> {
    Config::parse(&mut Words::new(words)).expect("well written").build(setup(fps))
}

fn at(kbps: u64) -> Wanted {
    Wanted { rate: Rate::from_bps(kbps * 1000), key: false }
}

fn frames(source: &mut dyn Source, wanted: Wanted, count: usize) -> Vec<Frame> {
    (0..count).map(|_| source.capture(&wanted).expect("no frame is dropped")).collect()
}

/// RFC 8593 figure 2: B0 = R_v/8/FPS, t0 = 1/FPS, and the noise of both.
#[test]
fn in_the_steady_state_sizes_and_intervals_have_the_models_moments() {
    let mut source = source("", 30.0);
    frames(&mut *source, at(1000), 8);
    let frames = frames(&mut *source, at(1000), 100_000);
    let sizes: Vec<f64> = frames.iter().map(|f| f64::from(f.size) / 4166.7).collect();
    let gaps: Vec<f64> = frames
        .windows(2)
        .map(|w| w[1].captured.since(w[0].captured).as_secs_f64() * 30.0)
        .collect();
    for normalised in [sizes, gaps] {
        let n = normalised.len() as f64;
        let mean = normalised.iter().sum::<f64>() / n;
        let scale = normalised.iter().map(|x| (x - 1.0).abs()).sum::<f64>() / n;
        assert!((mean - 1.0).abs() < 0.003, "{mean}");
        assert!((scale - 0.15).abs() < 0.002, "{scale}");
    }
}

#[test]
fn a_key_frame_of_so_many_mean_frames_changes_nothing_else() {
    let mut source = source("scale_t=0 scale_b=0 key=3", 30.0);
    let first = frames(&mut *source, at(1000), 3);
    let asked = frames(&mut *source, Wanted { key: true, ..at(1000) }, 1);
    let after = frames(&mut *source, at(1000), 2);
    let all = first.iter().chain(&asked).chain(&after);
    let all: Vec<_> = all.map(|frame| (frame.size, frame.is_key)).collect();
    let (key, other) = ((12_500, true), (4167, false));
    assert_eq!(all, [key, other, other, key, other, other]);
}

/// Section 5.3: K_B once, then K_d - 1 frames that restore the mean: (8·4167 - 13500)/7 = 2833.
#[test]
fn a_call_begins_with_a_transient_whose_mean_is_the_targets() {
    let mut source = source("scale_t=0 scale_b=0", 30.0);
    let frames = frames(&mut *source, at(1000), 10);
    let sizes: Vec<u32> = frames.iter().map(|f| f.size).collect();
    assert_eq!(sizes[0], 13_500);
    assert!(sizes[1..8].iter().all(|size| *size == 2833), "{sizes:?}");
    assert_eq!(sizes[8..], [4167, 4167]);
    let keys: Vec<bool> = frames.iter().map(|f| f.is_key).collect();
    assert_eq!(keys.iter().position(|key| *key), Some(0));
    assert_eq!(keys.iter().filter(|key| **key).count(), 1);
}

#[test]
fn targets_within_tau_v_of_the_last_one_are_ignored() {
    let mut source = source("scale_t=0 scale_b=0 change=1000", 25.0);
    frames(&mut *source, at(1000), 30);
    // Taken at once, since the last was taken a second ago.
    assert_eq!(source.capture(&at(600)).expect("a frame").size, 3000);
    // 200 ms are five frames: the next target is taken with the fifth.
    let sizes: Vec<u32> = frames(&mut *source, at(1200), 6).iter().map(|f| f.size).collect();
    assert_eq!(sizes, [3000, 3000, 3000, 3000, 6000, 6000]);
}

#[test]
fn a_small_change_of_the_target_begins_no_transient_and_a_large_one_does() {
    let mut source = source("scale_t=0 scale_b=0", 30.0);
    frames(&mut *source, at(1000), 30);
    let small = source.capture(&at(1090)).expect("a frame");
    assert_eq!((small.size, small.is_key), (4542, false));
    frames(&mut *source, at(1090), 30);
    let large = source.capture(&at(600)).expect("a frame");
    assert_eq!((large.size, large.is_key), (13_500, false));
}

#[test]
fn a_requested_key_frame_is_the_first_of_a_transient() {
    let mut source = source("scale_t=0 scale_b=0", 30.0);
    frames(&mut *source, at(1000), 30);
    let key = source.capture(&Wanted { key: true, ..at(1000) }).expect("a frame");
    assert_eq!((key.size, key.is_key), (13_500, true));
    assert_eq!(source.capture(&at(1000)).expect("a frame").size, 2833);
}

#[test]
fn targets_are_held_within_the_applications_limits() {
    let mut source = source("scale_t=0 scale_b=0 change=1000 k_b=10B", 30.0);
    frames(&mut *source, at(9000), 8);
    assert_eq!(source.capture(&at(9000)).expect("a frame").size, 6250);
    frames(&mut *source, at(9000), 8);
    assert_eq!(source.capture(&at(1)).expect("a frame").size, 625);
}

#[test]
fn frames_leave_the_encoder_when_it_is_done() {
    let mut source = source("encoding=7ms height=360", 30.0);
    let frame = source.capture(&at(500)).expect("a frame");
    assert_eq!(frame.encoded.since(frame.captured), Span::from_millis(7));
    assert_eq!((frame.captured, frame.height), (Time::from_nanos(5), 360));
}

#[test]
fn values_out_of_bounds_are_refused_by_name() {
    for words in ["k_d=1", "scale_b=-0.1", "k_b=0B", "tau_v=11s"] {
        let error = Config::parse(&mut Words::new(words)).expect_err(words);
        let name = words.split('=').next().expect("a name");
        assert!(error.problem().contains(name), "{error}");
    }
}

/// Sums over a second then vary about as much as one frame does, instead of √30 times as much.
#[test]
fn an_encoder_that_corrects_itself_keeps_its_rate_in_every_second() {
    let spread = |words: &str| {
        let mut source = source(words, 30.0);
        frames(&mut *source, at(1000), 8);
        let seconds: Vec<f64> = (0..2000)
            .map(|_| frames(&mut *source, at(1000), 30).iter().map(|f| f64::from(f.size)).sum())
            .collect();
        let mean = seconds.iter().sum::<f64>() / seconds.len() as f64;
        assert!((mean / 125_000.0 - 1.0).abs() < 0.005, "{mean}");
        let off = seconds.iter().map(|second| (second - mean) * (second - mean)).sum::<f64>();
        libm::sqrt(off / seconds.len() as f64) / mean
    };
    let (free, held) = (spread("scale_t=0"), spread("scale_t=0 correct=0.2"));
    assert!((0.035..0.042).contains(&free), "{free}");
    assert!((0.012..0.020).contains(&held), "{held}");
}
