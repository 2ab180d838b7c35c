//! `docs/cli.md` says what `--help` says. `UPDATE=1 cargo test -p sojourn --test cli help` renews it.

use std::path::Path;
use std::process::Command;

use crate::scratch::Scratch;

const BEGIN: &str = "<!-- generated: begin -->";
const END: &str = "<!-- generated: end -->";

#[test]
fn the_reference_of_the_command_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cli.md");
    let page = std::fs::read_to_string(&path).expect("the page is there");
    let (before, rest) = page.split_once(BEGIN).expect("the page has its first mark");
    let (_, after) = rest.split_once(END).expect("the page has its second mark");
    let current = format!("{before}{BEGIN}\n\n{}{END}{after}", reference());
    if current == page {
        return;
    }
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, current).expect("the page can be written");
        return;
    }
    panic!("docs/cli.md is stale: run UPDATE=1 cargo test -p sojourn --test cli help");
}

#[test]
fn every_verb_is_explained() {
    let scratch = Scratch::new();
    for words in commands(&scratch, &[]) {
        let help = help(&scratch, &words);
        assert!(help.contains("Usage: sojourn"), "{words:?}\n{help}");
    }
}

#[test]
fn every_verb_has_a_man_page() {
    let scratch = Scratch::new();
    scratch.must(&["man", "--out", "man"]);
    for words in commands(&scratch, &[]) {
        let name = [&["sojourn".to_owned()], &words[..]].concat().join("-");
        let page = scratch.read(&format!("man/{name}.1"));
        assert!(page.contains(&format!(".TH {name} 1")), "{name}\n{page}");
        assert!(page.contains(".SH SYNOPSIS") && page.contains(".SH OPTIONS"), "{name}\n{page}");
    }
    assert_eq!(scratch.must(&["man"]).stdout, scratch.read("man/sojourn.1"));
    scratch.write("file", "");
    let ended = scratch.sojourn(&["man", "--out", "file"]);
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    assert!(ended.stderr.contains("file: cannot be written"), "{}", ended.stderr);
}

/// Shells that this machine doesn't have can't read them; bash is always there.
#[test]
fn shells_read_their_completions() {
    let scratch = Scratch::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = scratch.must(&["completions", shell]).stdout;
        for words in commands(&scratch, &[]) {
            let verb = words.last().map_or("sojourn", String::as_str);
            assert!(script.contains(verb), "{shell} doesn't know {verb}");
        }
        scratch.write("completions", &script);
        let mut read = Command::new(shell);
        match read.arg("-n").arg(scratch.path("completions")).status() {
            Ok(status) => assert!(status.success(), "{shell}"),
            Err(error) => assert!(shell != "bash", "{error}"),
        }
    }
}

fn reference() -> String {
    let scratch = Scratch::new();
    let mut text = String::new();
    for words in commands(&scratch, &[]) {
        let title = [&["sojourn".to_owned()], &words[..]].concat().join(" ");
        let help = help(&scratch, &words);
        text.push_str(&format!("## {title}\n\n```text\n{}\n```\n\n", help.trim_end()));
    }
    text
}

/// Every command, itself before its parts, as its own help names them.
fn commands(scratch: &Scratch, words: &[String]) -> Vec<Vec<String>> {
    let mut all = vec![words.to_vec()];
    let text = help(scratch, words);
    let parts = text.split("Commands:\n").nth(1).unwrap_or_default();
    for line in parts.lines().take_while(|line| line.starts_with("  ")) {
        // Continued lines are indented further.
        let Some(name) = line.strip_prefix("  ").filter(|line| !line.starts_with(' ')) else {
            continue;
        };
        let name = name.split(' ').next().expect("a line has a first word");
        if name != "help" {
            all.extend(commands(scratch, &[words, &[name.to_owned()]].concat()));
        }
    }
    all
}

fn help(scratch: &Scratch, words: &[String]) -> String {
    let words = words.iter().map(String::as_str).chain(["--help"]);
    let output = scratch.command(words).env("COLUMNS", "100").output().expect("it starts");
    let text = String::from_utf8(output.stdout).expect("help is UTF-8");
    text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}
