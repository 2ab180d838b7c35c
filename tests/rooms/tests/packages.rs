//! What is built in from outside: under which licences, from where, and each once.

use std::collections::{BTreeMap, BTreeSet};

/// Licences that ask for no more than to be named, and none that reaches beyond its own files.
const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Packages of which there is more than one version, and who asks for the older one.
const TWICE: &[(&str, &[&str])] = &[
    // Of postcard, which uses neither as it is built here.
    ("embedded-io", &["0.4.0", "0.6.1"]),
    // The cryptography of str0m's endpoints, which the command does not have; const-random's, which only the lock
    // knows; ahash's, which is in the command; tempfile's.
    ("getrandom", &["0.2.17", "0.3.4", "0.4.3"]),
    // Of nalgebra, which uses none of them as it is built here.
    ("glam", &["0.30.10", "0.31.1", "0.32.1", "0.33.12"]),
    // The two of getrandom, on systems without an operating system.
    ("r-efi", &["5.3.0", "6.0.0"]),
    // For zerocopy-derive, which runs when ahash is compiled.
    ("syn", &["2.0.119", "3.0.9"]),
    // Of the following the older ones are str0m's, which only `sojourn-str0m` has.
    ("bit-vec", &["0.9.1", "0.10.1"]),
    ("block-buffer", &["0.10.4", "0.12.1"]),
    ("chacha20", &["0.9.1", "0.10.2"]),
    ("cpufeatures", &["0.2.17", "0.3.1"]),
    ("crypto-common", &["0.1.7", "0.2.2"]),
    ("digest", &["0.10.7", "0.11.3"]),
    ("num-bigint", &["0.4.8", "0.5.1"]),
    ("rand", &["0.9.5", "0.10.3"]),
    ("rand_core", &["0.6.4", "0.9.5", "0.10.1"]),
    ("sha2", &["0.10.9", "0.11.1"]),
    // Both of str0m's endpoints.
    ("nom", &["7.1.3", "8.0.0"]),
];

/// Packages that nobody looks after, by the RustSec database or their own words.
const ABANDONED: &[&str] = &[
    "ansi_term",
    "atty",
    "bincode",
    "derivative",
    "failure",
    "fxhash",
    "instant",
    "number_prefix",
    "paste",
    "proc-macro-error",
    "serde_yaml",
    "structopt",
    "term_size",
];

/// Only on other systems than Linux. Cargo need not have fetched them, so it can't be asked for their
/// licences; these were read by hand.
const ELSEWHERE: &[(&str, &[&str])] = &[
    (
        "MIT OR Apache-2.0",
        &[
            "android_system_properties",
            "anstyle-wincon",
            "bumpalo",
            "core-foundation-sys",
            "encode_unicode",
            "fiat-crypto",
            "futures-core",
            "futures-task",
            "futures-util",
            "iana-time-zone-haiku",
            "js-sys",
            "once_cell_polyfill",
            "rustversion",
            "wasm-bindgen",
            "wasm-bindgen-macro",
            "wasm-bindgen-macro-support",
            "wasm-bindgen-shared",
            "windows-core",
            "windows-implement",
            "windows-interface",
            "windows-link",
            "windows-result",
            "windows-strings",
            "windows-sys",
        ],
    ),
    ("MIT OR Apache-2.0 OR LGPL-2.1-or-later", &["r-efi"]),
    ("Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT", &["wasi", "wasip2", "wit-bindgen"]),
];

#[test]
fn every_package_has_a_licence_that_is_allowed() {
    let mut licences = licences_on_linux();
    for (licence, names) in ELSEWHERE {
        for name in *names {
            licences.entry((*name).to_owned()).or_insert_with(|| (*licence).to_owned());
        }
    }
    for Package { name, .. } in locked() {
        let licence = licences.get(&name).unwrap_or_else(|| {
            panic!("{name} is not built on Linux, and ELSEWHERE does not say its licence")
        });
        assert!(is_allowed(licence), "{name} is under '{licence}'");
    }
}

#[test]
fn every_package_is_of_the_workspace_or_from_crates_io() {
    for Package { name, source, .. } in locked() {
        match source {
            Some(source) => assert_eq!(source, CRATES_IO, "{name}"),
            None => {
                let is_own = name.starts_with("sojourn") || name.starts_with("own-");
                assert!(is_own, "{name} is a path outside the workspace");
            }
        }
    }
}

#[test]
fn no_package_is_there_twice_without_being_listed() {
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for Package { name, version, .. } in locked() {
        versions.entry(name).or_default().insert(version);
    }
    let twice: BTreeMap<String, BTreeSet<String>> =
        versions.into_iter().filter(|(_, versions)| versions.len() > 1).collect();
    let own = |text: &&str| (*text).to_owned();
    let listed = TWICE
        .iter()
        .map(|(name, versions)| (own(name), versions.iter().map(own).collect()))
        .collect();
    assert_eq!(twice, listed, "TWICE has to say what Cargo.lock does");
}

#[test]
fn no_package_is_abandoned() {
    for Package { name, .. } in locked() {
        assert!(!ABANDONED.contains(&name.as_str()), "nobody looks after {name}");
    }
}

#[test]
fn a_licence_is_allowed_if_one_of_its_choices_is_and_all_that_it_joins_are() {
    for allowed in ["MIT", "MIT/Apache-2.0", "MIT OR GPL-2.0", "(MIT OR GPL-3.0) AND Zlib"] {
        assert!(is_allowed(allowed), "{allowed}");
    }
    for refused in ["GPL-3.0-only", "MIT AND LGPL-2.1", "(MIT AND AGPL-3.0) OR MPL-2.0", "", "(MIT"]
    {
        assert!(!is_allowed(refused), "{refused}");
    }
}

struct Package {
    name: String,
    version: String,
    /// None of the workspace itself.
    source: Option<String>,
}

/// What `Cargo.lock` lists: all that any system could ever build.
fn locked() -> Vec<Package> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.lock");
    let text = std::fs::read_to_string(path).expect("the lock is committed");
    let packages: Vec<Package> = text
        .split("[[package]]")
        .skip(1)
        .map(|block| {
            let value = |key: &str| {
                let line = block.lines().find_map(|line| line.strip_prefix(key))?;
                Some(line.trim_matches(['=', ' ', '"']).to_owned())
            };
            Package {
                name: value("name").expect("a package has a name"),
                version: value("version").expect("a package has a version"),
                source: value("source"),
            }
        })
        .collect();
    assert!(packages.len() > 100, "{} packages in the lock", packages.len());
    packages
}

/// Of all that the workspace and its tests need on Linux; to build them, cargo has fetched them.
fn licences_on_linux() -> BTreeMap<String, String> {
    let linux = ["--locked", "--filter-platform", "x86_64-unknown-linux-gnu"];
    sojourn_rooms::packages(&linux)
        .iter()
        .map(|package| {
            let name = package["name"].as_str().expect("a package has a name");
            let licence = package["license"].as_str().unwrap_or("no licence at all");
            (name.to_owned(), licence.to_owned())
        })
        .collect()
}

/// Whether an SPDX expression can be met with licences of the list. A slash is how `OR` used to be written.
fn is_allowed(expression: &str) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut words = spaced.split_whitespace().peekable();
    any_of(&mut words) == Some(true) && words.next().is_none()
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

/// `None` where the expression is none.
fn any_of(words: &mut Words<'_>) -> Option<bool> {
    let mut is_met = all_of(words)?;
    while words.next_if_eq(&"OR").is_some() {
        is_met |= all_of(words)?;
    }
    Some(is_met)
}

fn all_of(words: &mut Words<'_>) -> Option<bool> {
    let mut is_met = one(words)?;
    while words.next_if_eq(&"AND").is_some() {
        is_met &= one(words)?;
    }
    Some(is_met)
}

fn one(words: &mut Words<'_>) -> Option<bool> {
    let first = words.next()?;
    if first == "(" {
        let is_met = any_of(words)?;
        return (words.next()? == ")").then_some(is_met);
    }
    if words.next_if_eq(&"WITH").is_some() {
        let name = format!("{first} WITH {}", words.next()?);
        return Some(ALLOWED.contains(&name.as_str()));
    }
    Some(ALLOWED.contains(&first))
}
