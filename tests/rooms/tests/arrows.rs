//! Rooms depend on each other in one direction only.

use std::collections::BTreeMap;

/// The rooms that each room may use. A room that is not listed here is not allowed.
const ROOMS: &[(&str, &[&str])] = &[
    ("core", &[]),
    ("cca", &["core"]),
    ("qdisc", &["core"]),
    ("link", &["core"]),
    ("model", &["core"]),
    ("metrics", &["core"]),
    ("wire", &["core", "qdisc", "link"]),
    ("wifi", &["core", "qdisc", "wire"]),
    ("host", &["core", "cca"]),
    ("media", &["core", "host"]),
    ("scenario", &["core", "cca", "qdisc", "link", "wire", "host"]),
    ("sim", &["core", "cca", "qdisc", "link", "wire", "host", "scenario"]),
    ("measure", &["core", "fluid", "metrics", "scenario", "sim"]),
    ("fluid", &["core", "cca", "qdisc", "link", "wire", "host", "scenario"]),
    (
        "file",
        &["core", "cca", "qdisc", "link", "model", "wire", "wifi", "host", "media", "scenario"],
    ),
    (
        "study",
        &[
            "core", "cca", "qdisc", "link", "wire", "host", "media", "scenario", "sim", "fluid",
            "metrics", "measure", "model", "file",
        ],
    ),
    ("report", &["core", "metrics", "scenario", "study"]),
    ("replay", &["core", "media"]),
    ("py", &["core", "cca", "qdisc", "model", "file", "metrics", "study", "report"]),
    ("live", &["core", "cca", "qdisc", "link", "wire", "host", "metrics", "scenario", "study"]),
    ("kernel", &["core", "cca", "qdisc", "host", "metrics", "scenario", "sim", "study"]),
];

/// Outside libraries behind the determinism wall; `docs/decisions.md` has the reason for each.
const WALLED: &[&str] = &[
    "core", "cca", "qdisc", "link", "model", "metrics", "wire", "wifi", "host", "media",
    "scenario", "sim", "fluid", "measure",
];
const ALLOWED_OUTSIDE: &[&str] = &["libm", "nalgebra", "rand_core", "rand_pcg", "thiserror"];

#[test]
fn arrows_run_one_way() {
    let known: BTreeMap<&str, &[&str]> = ROOMS.iter().copied().collect();
    for (room, needs) in dependencies() {
        if matches!(room.as_str(), "cli" | "str0m" | "benches" | "fidelity" | "rooms" | "targets") {
            continue;
        }
        let allowed = known.get(room.as_str()).unwrap_or_else(|| panic!("unknown room '{room}'"));
        for need in needs {
            if let Some(other) = need.strip_prefix("sojourn-") {
                assert!(allowed.contains(&other), "{room} must not know {other}");
            } else if WALLED.contains(&room.as_str()) {
                assert!(
                    ALLOWED_OUTSIDE.contains(&need.as_str()),
                    "{room} is behind the wall and must not use {need}"
                );
            }
        }
    }
}

/// The wall is the `clippy.toml` of the workspace, which a crate's own one would replace.
#[test]
fn walled_rooms_have_no_lints_of_their_own() {
    let root = env!("CARGO_MANIFEST_DIR").to_owned() + "/../..";
    for room in WALLED {
        let own = format!("{root}/crates/{room}/clippy.toml");
        assert!(!std::path::Path::new(&own).exists(), "{own} opens the wall");
        let manifest = std::fs::read_to_string(format!("{root}/crates/{room}/Cargo.toml"))
            .expect("every room has a manifest");
        assert!(manifest.contains("[lints]\nworkspace = true"), "{room} does not take the lints");
    }
    let wall = std::fs::read_to_string(format!("{root}/clippy.toml")).expect("there is a wall");
    for forbidden in ["Instant::now", "SystemTime::now", "HashMap", "f64::powf", "thread::spawn"] {
        assert!(wall.contains(forbidden), "the wall does not forbid {forbidden}");
    }
}

/// Without the standard library there is no clock, no file and no thread to be called. Only tests
/// have it.
#[test]
fn walled_rooms_are_built_without_the_standard_library() {
    let root = env!("CARGO_MANIFEST_DIR").to_owned() + "/../..";
    for room in WALLED {
        let path = format!("{root}/crates/{room}/src/lib.rs");
        let text = std::fs::read_to_string(&path).expect("every room has a lib.rs");
        let says_so = ["#![no_std]", "#![cfg_attr(not(test), no_std)]"];
        assert!(text.lines().any(|line| says_so.contains(&line)), "{room} is not no_std");
        assert!(!text.contains("extern crate std"), "{room} takes the standard library back");
    }
}

/// Every other crate forbids it; this one has it in one file.
#[test]
fn only_the_live_engine_s_calls_to_the_kernel_are_unsafe() {
    let root = env!("CARGO_MANIFEST_DIR").to_owned() + "/../../crates";
    for room in std::fs::read_dir(&root).expect("there are rooms") {
        let room = room.expect("it can be read").path();
        let manifest = std::fs::read_to_string(room.join("Cargo.toml")).expect("a manifest");
        let is_live = room.ends_with("live");
        assert_eq!(manifest.contains("[lints]\nworkspace = true"), !is_live, "{}", room.display());
        assert!(!is_live || manifest.contains("unsafe_code = \"deny\""));
    }
    let lib = std::fs::read_to_string(root + "/live/src/lib.rs").expect("a library");
    assert_eq!(lib.matches("expect(unsafe_code").count(), 1);
    assert!(lib.contains("for these\")]\nmod sys;"));
}

/// Rooms of the workspace with what they need when they are built, tests left out.
fn dependencies() -> Vec<(String, Vec<String>)> {
    sojourn_rooms::packages(&["--no-deps"])
        .iter()
        .map(|package| {
            let name = package["name"].as_str().expect("a package has a name");
            let room = name.strip_prefix("sojourn-").unwrap_or("cli");
            let needs = package["dependencies"]
                .as_array()
                .expect("a list")
                .iter()
                .filter(|dependency| dependency["kind"].is_null())
                .map(|dependency| dependency["name"].as_str().expect("a name").to_owned())
                .collect();
            (room.to_owned(), needs)
        })
        .collect()
}
