//! Mistakes in a call and in its frame traces name the file, the place in it, and what is allowed.

use std::fs;
use std::path::Path;

use super::{PATH, study_in};

const CALL: &str = "[[scenario.flow]]\nname = \"a\"\napp = \"call\"\n";

/// The message for a call with `words` where `frames.txt` has `trace`.
#[track_caller]
fn is_refused(words: &str, trace: &str, says: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("frames.txt"), trace).expect("it can be written to");
    let study = study_in(folder.path(), &format!("{PATH}{CALL}{words}\n"));
    let error = study.map(|_| ()).expect_err("the study is wrong");
    let error = error.replace(&format!("{}/", folder.path().display()), "");
    assert_eq!(error.lines().next(), Some(says), "{error}");
}

#[test]
fn frame_traces_are_refused_with_their_file_and_line() {
    let source = "source = \"frame-trace files=400kbit:frames.txt skip=0\"";
    let begins = "t.toml:12:10: scenario.flow.0.source: ";
    for (trace, says) in [
        ("", "there are no frames (allowed: a size in bytes in every line)"),
        ("5\n-7", "line 2: size '-7' is negative (allowed: whole bytes from 0 to 100000000)"),
        (
            "5\nx",
            "line 2: size 'x' is no whole number of bytes (allowed: whole bytes from 0 to 100000000)",
        ),
        (
            "0 I x 1 5\n0 I x 0 5",
            "line 2: timestamp '0' is before the last frame's (allowed: numbers from 0 that do not decrease)",
        ),
    ] {
        is_refused(source, trace, &format!("{begins}frames.txt: {says}"));
    }
    let says = "t.toml:12:10: scenario.flow.0.source: the frame trace 'none.txt': \
                cannot be read: No such file or directory (os error 2)";
    is_refused("source = \"frame-trace files=400kbit:none.txt\"", "", says);
    let says = "t.toml:12:10: scenario.flow.0.source: files: 200kbit comes after 400kbit (allowed: rates in rising order, each once)";
    is_refused("source = \"frame-trace files=400kbit:frames.txt,200kbit:frames.txt\"", "", says);
}

/// 960 bytes of G.711 fit a packet. Frames of Opus may have twice their mean size unless all have the same.
#[test]
fn voices_have_frames_that_fit_a_packet() {
    for audio in ["g711 frame=120ms", "opus rate=400kbit vbr=off", "opus rate=200kbit"] {
        let world = format!("{PATH}{CALL}audio = \"{audio}\"\n");
        study_in(Path::new(""), &world)
            .map(|_| ())
            .unwrap_or_else(|error| panic!("{audio}: {error}"));
    }
    let says = "t.toml:12:9: scenario.flow.0.audio: 'opus' makes frames of 1275 bytes (510kbit for 20ms), too large for a packet of 1200B \
                (allowed: at most 586 bytes, half of what fits, because a frame may have twice its mean size: a shorter frame, a lower rate \
                or a larger packet)";
    is_refused("audio = \"opus rate=510kbit\"", "", says);
    let says = "scenario.flow.0.control: 'fixed': its rate of 50kbit is less than the ";
    let world = format!("{PATH}{CALL}control = \"fixed rate=50kbit\"\naudio = \"opus\"\n");
    let error = study_in(Path::new(""), &world).map(|_| ()).expect_err("the rate is too low");
    assert!(error.contains(says) && error.contains("30kbit and 58400bit of a voice"), "{error}");
}

/// A switch is written as TOML does, or by its words.
#[test]
fn switches_are_on_or_off_true_or_false() {
    let canonical = |words: &str| {
        let study = study_in(Path::new(""), &format!("{PATH}{CALL}{words}\n"));
        let study = study.unwrap_or_else(|error| panic!("{words}: {error}"));
        study.scenarios.first().expect("there is one").scenario.canonical()
    };
    for off in ["nack = false", "nack = \"off\"", "nack = \"false\""] {
        assert_eq!(canonical(off), canonical("nack = false"), "{off}");
        assert_ne!(canonical(off), canonical(""), "{off}");
    }
    for on in ["nack = true", "nack = \"on\"", "nack = \"true\""] {
        assert_eq!(canonical(on), canonical(""), "{on}");
    }
    let same = |text: &str| canonical(&format!("audio = \"opus dtx={text}\""));
    assert_eq!(same("true"), same("on"));
    let says = "t.toml:12:8: scenario.flow.0.nack: the text 'yes' does not fit (allowed: on or off, true or false)";
    is_refused("nack = \"yes\"", "", says);
}

#[test]
fn rates_that_the_encoder_does_not_reach_are_refused_at_their_key() {
    for (words, says) in [
        (
            "control = \"fixed rate=4mbit\"",
            "t.toml:12:11: scenario.flow.0.control: 'fixed': its rate of 4mbit is more than the 2642560bit of a call with video of max_rate, \
             2500kbit, headers included (allowed: 2642560bit or less, or a larger max_rate)",
        ),
        (
            "start_rate = \"5mbit\"",
            "t.toml:12:14: scenario.flow.0.start_rate: 5mbit is more than the 2642560bit of a call with video of max_rate, \
             2500kbit, headers included (allowed: 2642560bit or less, or a larger max_rate)",
        ),
    ] {
        is_refused(words, "", says);
    }
}
