use super::*;
use crate::bbr::harness::{Lab, Path, setup};

fn lab(path: Path) -> Lab<Bbr3> {
    let rtt = path.rtt;
    Lab::new(Bbr3::new(Config::default(), setup(1, Some(rtt))), path)
}

#[test]
fn look() {
    for buf in [1000, 20, 5] {
    let mut lab = lab(Path::new(10, 20, buf));
    lab.run(Span::from_secs(30));
    for (t, p) in lab.phases().iter().take(40) { eprintln!("{t} {p}"); }
    eprintln!("util {} lost {} cwnd {}", lab.utilisation(Time::from_nanos(1_000_000_000)), lab.lost, lab.cc.cwnd());
    }
}
