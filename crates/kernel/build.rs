//! Builds what runs in a guest and beside it. Both are programs without any library, so the compiler that builds the
//! rest is all that is needed.

use std::env;
use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=guest");
    let target = env::var("TARGET").expect("cargo sets it");
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    let (program, seeded) = (out.join("program"), out.join("seeded.so"));
    if !target.starts_with("x86_64-") || !target.contains("linux") {
        // User-mode Linux runs on no other machines; the crate says so when it is asked for a guest.
        for path in [program, seeded] {
            std::fs::write(path, []).expect("the folder of the build can be written");
        }
        return;
    }
    let shared = [
        "--edition=2024",
        "-Cpanic=abort",
        "-Copt-level=s",
        "-Cstrip=symbols",
        "-Clink-arg=-nostdlib",
    ];
    let alone = [
        "--crate-type=bin",
        "-Crelocation-model=static",
        "-Clink-arg=-static",
        "-Clink-arg=-nostartfiles",
    ];
    compile("guest/main.rs", &program, &[&shared[..], &alone].concat());
    compile("guest/seeded.rs", &seeded, &[&shared[..], &["--crate-type=cdylib"]].concat());
}

fn compile(source: &str, out: &std::path::Path, options: &[&str]) {
    let rustc = env::var("RUSTC").expect("cargo sets it");
    let mut command = Command::new(rustc);
    command.args(options).arg(source).arg("-o").arg(out);
    command.env_remove("CARGO_ENCODED_RUSTFLAGS");
    let status = command.status().expect("the compiler that builds this can be started");
    assert!(status.success(), "{source} can't be built: {command:?}");
}
