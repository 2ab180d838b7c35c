//! A call between real endpoints over real packets, beside the same call in virtual time. It needs the right to make
//! networks; where that is missing, it says so and does nothing.

#![cfg(target_os = "linux")]

#[path = "../../live/tests/tries/mod.rs"]
mod tries;

use std::path::Path;
use std::process::{Command, Output};

use sojourn_study::results::{Folder, Kind};

const STUDY: &str = r#"
schema = 1
title = "a call, simulated and live"
[scenario]
duration = "9s"
warmup = "5s"
path = { rate = "2mbit", rtt = "40ms", queue = "bfifo limit 300ms" }
[[scenario.flow]]
name = "call"
app = "str0m max_rate=800kbit share=0.8"
[factors]
engine = ["sim", "live"]
"#;

fn sojourn(folder: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sojourn-str0m"));
    command.current_dir(folder).args(words).output().expect("it starts")
}

#[test]
fn a_call_over_sockets_is_the_call_of_the_simulation() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("live");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let doctor = sojourn(&folder, &["doctor", "--live", "-q"]);
    if !doctor.status.success() {
        eprintln!("skipped: {}", String::from_utf8_lossy(&doctor.stderr));
        return;
    }
    std::fs::write(folder.join("t.toml"), STUDY).unwrap();
    tries::until_it_passes(|left| is_the_call_of_the_simulation(&folder, &format!("out-{left}")));
}

fn is_the_call_of_the_simulation(folder: &Path, out: &str) {
    let ran = sojourn(folder, &["run", "t.toml", "--out", out, "-q"]);
    assert!(ran.status.success(), "{ran:?}");
    let results = Folder::open(folder.join(out)).unwrap();
    let of = |run: u32, metric: &str| {
        let rows = results.table.run(run);
        let call = rows.iter().find(|row| row.kind == Kind::Flow).unwrap();
        results.table.value(call, metric).unwrap_or_else(|| panic!("no {metric} of run {run}"))
    };
    // 30 frames a second for four seconds, both with all that the application wants to send.
    for run in [0, 1] {
        let [made, shown] = ["frames_encoded", "frames_rendered"].map(|metric| of(run, metric));
        assert!((110.0..=122.0).contains(&made) && shown > 0.9 * made, "{shown} of {made}");
    }
    let [simulated, live] = [0, 1].map(|run| of(run, "frame_delay_p50_ms"));
    assert!((live - simulated).abs() < 0.3 * simulated, "{live} and {simulated} ms");
}
