use super::*;
use crate::bbr::harness::{Lab, Path, setup};

fn lab(path: Path) -> Lab<Bbr3Linux> {
    let rtt = path.rtt;
    Lab::new(Bbr3Linux::new(Config::default(), setup(1, Some(rtt))), path)
}

#[test]
fn look() {
    let mut lab = lab(Path::new(10, 20, 5));
    let mut last = 0;
    lab.run_while(|lab| {
        let r = lab.rows.last();
        if let Some(r) = r { eprintln!("{} {} ifl {} cwnd {} lost {} st {:?} ev {:?} lrs {} lrd bounds {:?}", r.at, r.phase, r.in_flight, r.cwnd, r.lost, lab.state, lab.cc.full_pipe, lab.cc.bounds.loss_round_start, lab.cc.bounds);}
        lab.cc.phase() == "STARTUP"});
    let _ = last; last = 1; let _ = last;
}
