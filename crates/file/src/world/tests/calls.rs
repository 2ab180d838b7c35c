//! Mistakes in a call and in its frame traces name the file, the place in it, and what is allowed.

use std::fs;

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

#[test]
fn rates_that_the_encoder_does_not_reach_are_refused_at_their_key() {
    for (words, says) in [
        (
            "control = \"fixed rate=4mbit\"",
            "t.toml:12:11: scenario.flow.0.control: 'fixed': its rate of 4mbit is more than max_rate, 2500kbit of payload, makes \
             (allowed: 2642560bit or less, headers included, or a larger max_rate)",
        ),
        (
            "start_rate = \"5mbit\"",
            "t.toml:12:14: scenario.flow.0.start_rate: 5mbit is more than max_rate, 2500kbit of payload, makes \
             (allowed: 2642560bit or less, headers included, or a larger max_rate)",
        ),
    ] {
        is_refused(words, "", says);
    }
}
