use proptest::prelude::*;
use sojourn_core::{Params, Purpose, Rate, StreamAddress, Words};

use super::*;

fn config(words: &str) -> Result<Config, SpecError> {
    Config::parse(&mut Words::new(words))
}

fn read(words: &str, files: &[(&str, &str)]) -> Result<Config, SpecError> {
    let mut config = config(words)?;
    for (name, text) in files {
        config.read(name, text)?;
    }
    Ok(config)
}

fn two_rates(words: &str) -> Config {
    let words = format!("files=200kbit:a,400kbit:b {words}");
    read(&words, &[("a", "4000\n800\n900\n700"), ("b", "8000\n1600\n1700\n1500")])
        .expect("well written")
}

fn setup(fps: f64) -> Setup {
    Setup {
        start: Time::ZERO,
        frames_per_second: fps,
        min_rate: Rate::from_bps(1000),
        max_rate: Rate::from_bps(100_000_000),
        random: StreamAddress { seed: 3, run: 0 }.stream(1, Purpose::Application),
    }
}

fn play(config: &Config, fps: f64, kbps: u64, count: usize) -> Vec<u32> {
    let mut source = config.build(setup(fps));
    let wanted = Wanted { rate: Rate::from_bps(kbps * 1000), key: false };
    (0..count).map(|_| source.capture(&wanted).expect("no frame is dropped").size).collect()
}

#[test]
fn least_above_most_is_refused() {
    let words = "files=200kbit:a least=2000B most=100B";
    let error = read(words, &[("a", "4000")]).expect_err("out of order");
    assert_eq!(error.parameter(), Some("least"), "{error}");
}

/// RFC 8593 section 6.2.
#[test]
fn sizes_are_interpolated_within_the_ladder_and_scaled_outside_it() {
    let config = two_rates("skip=0");
    assert_eq!(play(&config, 30.0, 200, 4), [4000, 800, 900, 700]);
    assert_eq!(play(&config, 30.0, 400, 4), [8000, 1600, 1700, 1500]);
    assert_eq!(play(&config, 30.0, 250, 4), [5000, 1000, 1100, 900]);
    assert_eq!(play(&config, 30.0, 100, 4), [2000, 400, 450, 350]);
    assert_eq!(play(&config, 30.0, 800, 4), [16_000, 3200, 3400, 3000]);
}

#[test]
fn the_sequence_begins_again_behind_the_frames_that_are_skipped() {
    let config = two_rates("skip=2");
    assert_eq!(play(&config, 30.0, 200, 8), [4000, 800, 900, 700, 900, 700, 900, 700]);
    assert_eq!(play(&two_rates("skip=0"), 30.0, 200, 5)[4], 4000);
}

#[test]
fn a_key_frame_on_demand_is_the_first_of_the_sequence() {
    let mut source = two_rates("skip=2").build(setup(30.0));
    let wanted = Wanted { rate: Rate::from_bps(200_000), key: false };
    let first = source.capture(&wanted).expect("a frame");
    let second = source.capture(&wanted).expect("a frame");
    let key = source.capture(&Wanted { key: true, ..wanted }).expect("a frame");
    let frames = [first, second, key].map(|frame| (frame.size, frame.is_key));
    assert_eq!(frames, [(4000, true), (800, false), (4000, true)]);
    assert_eq!(key.captured.as_nanos(), 66_666_666);
}

#[test]
fn sizes_are_clipped_and_another_frame_rate_keeps_the_rate() {
    assert_eq!(play(&two_rates("skip=0 least=850B most=3kB"), 30.0, 200, 3), [3000, 850, 900]);
    assert_eq!(play(&two_rates("skip=0"), 60.0, 200, 3), [2000, 400, 450]);
    let large = "files=1kbit:a skip=0";
    let large = read(large, &[("a", "900000\n1")]).expect("well written");
    assert_eq!(play(&large, 30.0, 2, 2), [1_000_000, 10]);
}

#[test]
fn traces_of_syncodecs_are_read_too() {
    let text = "# n type x t size\n1 I 0 0 4000\n2 P 0 33 800\n\n3 P 0 66 900\n";
    let config = read("files=200kbit:a skip=0", &[("a", text)]).expect("well written");
    assert_eq!(play(&config, 30.0, 200, 3), [4000, 800, 900]);
}

#[test]
fn a_ladder_is_printed_as_it_is_read() {
    let config = config("files=200kbit:a,1500kbit:deep/b.txt").expect("well written");
    let written = config.values(sojourn_core::param::Style::Canonical);
    assert_eq!(written, "files=200kbit:a,1500kbit:deep/b.txt");
    assert_eq!(SourceModel::files(&config), ["a", "deep/b.txt"]);
}

#[test]
fn the_contents_of_the_files_are_part_of_what_it_is() {
    let one = read("files=1kbit:a skip=0", &[("a", "1\n2")]).expect("well written");
    let other = read("files=1kbit:a skip=0", &[("a", "2\n1")]).expect("well written");
    assert_ne!(one.fingerprint(), other.fingerprint());
}

#[test]
fn mistakes_are_named_with_what_is_allowed() {
    let problem = |words: &str, files: &[(&str, &str)]| {
        read(words, files).expect_err("a mistake").to_string()
    };
    for (words, files, says) in [
        ("", &[][..], "files"),
        ("files=a.txt", &[], "'a.txt' is no rate with a file"),
        ("files=400kbit:b,200kbit:a", &[], "200kbit comes after 400kbit"),
        ("files=400kbit:b,400kbit:a", &[], "rates in rising order"),
        ("files=0kbit:b", &[], "a rate above 0"),
        ("files=1kbit:a fps=0", &[], "'0' is out of range"),
        ("files=1kbit:a skip=0", &[("a", "5\n-7")], "line 2: size '-7' is negative"),
        ("files=1kbit:a skip=0", &[("a", "5\nx")], "line 2: size 'x' is no whole number of bytes"),
        ("files=1kbit:a skip=0", &[("a", "1200B")], "size '1200B' is no whole number of bytes"),
        ("files=1kbit:a skip=0", &[("a", "1.2kB")], "size '1.2kB' is no whole number of bytes"),
        ("files=1kbit:a skip=0", &[("a", "1200.5")], "size '1200.5' is no whole number of bytes"),
        ("files=1kbit:a skip=0", &[("a", "NaN")], "size 'NaN' is no whole number of bytes"),
        ("files=1kbit:a skip=0", &[("a", "-")], "size '-' is no whole number of bytes"),
        ("files=1kbit:a skip=0", &[("a", "100000001")], "size '100000001' is too large"),
        ("files=1kbit:a skip=0", &[("a", "99999999999999999999999")], "is too large"),
        (
            "files=1kbit:a skip=0",
            &[("a", "0 I x 0.0 5\n1 P x 0.2 5\n2 P x 0.1 5")],
            "line 3: timestamp '0.1' is before",
        ),
        ("files=1kbit:a skip=0", &[("a", "0 I x zero 5")], "line 1: timestamp 'zero' is no number"),
        ("files=1kbit:a skip=0", &[("a", "0 I x -1 5")], "line 1: timestamp '-1' is no time"),
        ("files=1kbit:a skip=0", &[("a", "0 I x inf 5")], "line 1: timestamp 'inf' is no time"),
        ("files=1kbit:a skip=0", &[("a", "0 I x 0 5\n7")], "line 2: '7' has 1 field"),
        ("files=1kbit:a skip=0", &[("a", "")], "there are no frames"),
        (
            "files=1kbit:a skip=0",
            &[("a", "number type x time size\n")],
            "timestamp 'time' is no number",
        ),
        ("files=1kbit:a skip=0", &[("a", "5\n1 2")], "line 2: '1 2' has 2 fields"),
        ("files=1kbit:a skip=0", &[("a", "# nothing\n")], "there are no frames"),
        ("files=1kbit:a skip=0", &[("a", "0\n0")], "all frames have size 0"),
        ("files=1kbit:a", &[("a", "5\n6")], "more than the 20"),
        ("files=1kbit:a,2kbit:b skip=0", &[("a", "5\n6"), ("b", "7")], "2, as 'a' has"),
    ] {
        let said = problem(words, files);
        assert!(said.contains(says), "{words}: {said}");
    }
}

proptest! {
    #[test]
    fn no_text_breaks_the_parser(text in ".{0,300}") {
        let _ = sizes::parse(&text);
    }

    #[test]
    fn no_lines_of_numbers_break_the_parser(
        lines in prop::collection::vec("(-?[0-9]{1,21} ?){0,6}(#x)?", 0..20),
    ) {
        let _ = sizes::parse(&lines.join("\n"));
    }

    /// Numbers as people and programs write them, in one, five or any number of columns.
    #[test]
    fn what_is_read_has_a_size_for_each_line(
        lines in prop::collection::vec(
            prop_oneof![
                "[0-9]{1,9}",
                "[0-9]{1,3} [IP] x [0-9]{1,2}(\\.[0-9])? [0-9]{1,6}",
                "(NaN|inf|-inf|1e400|-0|0x10|1_000|٣|[0-9]{1,3}(B|kB|k)?)([ ,](NaN|inf|-1|1e9|5)){0,5}",
            ],
            1..6,
        ),
    ) {
        if let Ok(sizes) = sizes::parse(&lines.join("\n")) {
            prop_assert_eq!(sizes.len(), lines.len());
            prop_assert!(sizes.iter().all(|size| *size <= 100_000_000));
        }
    }

    #[test]
    fn no_ladder_breaks_the_parser(text in "[0-9kmbit:,a. =]{0,60}") {
        if let Ok(config) = config(&format!("files={text}")) {
            prop_assert!(!SourceModel::files(&config).is_empty());
        }
    }

    #[test]
    fn whatever_is_read_can_be_played(
        sizes in prop::collection::vec(0u32..200_000, 2..30),
        kbps in 1u64..20_000,
        skip in 0u32..30,
    ) {
        let text = sizes.iter().map(u32::to_string).collect::<Vec<_>>().join("\n");
        let read = read(&format!("files=300kbit:a,900kbit:b skip={skip}"), &[("a", &text), ("b", &text)]);
        if let Ok(config) = read {
            let played = play(&config, 30.0, kbps, 100);
            prop_assert!(played.iter().all(|size| (10..=1_000_000).contains(size)));
        }
    }
}
