#![allow(clippy::print_stdout)]
use std::path::Path;
use sojourn_study::{Overrides, Study, runner};
fn main() {
    let mut args = std::env::args().skip(1);
    let path = args.next().unwrap();
    let out = args.next().unwrap();
    let mut o = Overrides::default();
    if let Some(s) = args.next() { o.seeds = Some(s.parse().unwrap()); }
    if let Some(s) = args.next() { o.shorten = Some(s.parse().unwrap()); }
    o.set = args.collect();
    let study = match Study::load(Path::new(&path), &o) { Ok(s) => s, Err(e) => { println!("{e}"); std::process::exit(2) } };
    let s = runner::run(&study, &runner::Options::new(out), &|p| eprint!("\r{p:?}")).unwrap();
    eprintln!();
    for f in &s.failed { println!("{f:?}"); }
    for c in s.claims.unwrap().claims {
        println!("{} {} {}", c.id, c.verdict.name(), c.reason.unwrap_or_default());
        for k in c.checks { println!("   [{}] {} | {} | {:?} {} bound {:?} miss {:?} {}", k.verdict.name(), k.label, k.expression.chars().take(60).collect::<String>(), k.value.map(|v| (v.mean, v.half_width, v.unit)), k.wanted.chars().take(40).collect::<String>(), k.bound.map(|v| v.mean), k.miss.map(|m| (m.by, m.share)), k.reason.unwrap_or_default()); }
    }
    println!("{:?} {}", s.progress, s.wall_s);
}
