//! The commands of the tour work as they are written.

use std::process::{Command, Stdio};

use crate::scratch::{PROGRAM, Scratch};

/// Lines that begin with `$ sojourn`; a `# ends with 1` after one says that it should.
fn commands(page: &str) -> Vec<(String, i32)> {
    let lines = page.lines().filter_map(|line| line.strip_prefix("$ "));
    let lines = lines.filter(|line| line.contains("sojourn "));
    lines
        .map(|line| match line.split_once("# ends with ") {
            Some((line, code)) => (line.to_owned(), code.trim().parse().expect("an exit code")),
            None => (line.to_owned(), 0),
        })
        .collect()
}

#[test]
fn every_command_of_the_tour_works() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tour.md");
    let page = std::fs::read_to_string(path).expect("the tour is there");
    let commands = commands(&page);
    assert!(commands.len() > 8, "{commands:?}");
    let scratch = Scratch::new();
    let programs = std::path::Path::new(PROGRAM).parent().expect("it is in a folder");
    let search = std::env::var("PATH").unwrap_or_default();
    for (line, code) in commands {
        let output = Command::new("sh")
            .args(["-c", &line])
            .env("PATH", format!("{}:{search}", programs.display()))
            .current_dir(scratch.path(""))
            .stdin(Stdio::null())
            .output()
            .expect("there is a shell");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{line}\n{said}");
    }
}
