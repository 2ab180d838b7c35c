use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use super::*;
use crate::bbr::harness::{Lab, Path, setup, torment};
use crate::{Memo, RateSample, Sent};
use sojourn_core::StreamAddress;

struct Digest { inner: Bbr3Linux, hash: Arc<AtomicU64> }
impl Digest {
    fn note(&self) {
        let c = &self.inner;
        let mut h = self.hash.load(Ordering::Relaxed);
        let q = match c.send_quantum() { Quantum::Auto { least } => u64::from(least) << 32, Quantum::Segments(n) => u64::from(n) };
        let phase: u64 = c.phase().bytes().map(u64::from).sum();
        for v in [u64::from(c.cwnd()), c.ssthresh().map_or(7, u64::from), c.pacing_rate().unwrap().as_bps(), q, phase,
            c.bandwidth().map_or(3, |b| b.as_bps()), c.model_min_rtt().map_or(5, |r| r.as_nanos())] {
            h = sojourn_core::random::mix(h ^ v);
        }
        self.hash.store(h, Ordering::Relaxed);
    }
}
impl Controller for Digest {
    fn on_sent(&mut self, s: &Sent) { self.inner.on_sent(s); }
    fn on_ack(&mut self, a: &Ack) { self.inner.on_ack(a); self.note(); }
    fn on_lost(&mut self, l: &Lost) { self.inner.on_lost(l); self.note(); }
    fn on_congestion(&mut self, c: &Congestion) { self.inner.on_congestion(c); self.note(); }
    fn on_recovered(&mut self, n: Time) { self.inner.on_recovered(n); self.note(); }
    fn on_undo(&mut self, u: &Undo) { self.inner.on_undo(u); self.note(); }
    fn on_restart(&mut self, r: &Restart) { self.inner.on_restart(r); self.note(); }
    fn cwnd(&self) -> u32 { self.inner.cwnd() }
    fn ssthresh(&self) -> Option<u32> { self.inner.ssthresh() }
    fn pacing_rate(&self) -> Option<Rate> { self.inner.pacing_rate() }
    fn send_quantum(&self) -> Quantum { self.inner.send_quantum() }
    fn uses_prr(&self) -> bool { self.inner.uses_prr() }
    fn phase(&self) -> &'static str { self.inner.phase() }
    fn bandwidth(&self) -> Option<Rate> { self.inner.bandwidth() }
    fn model_min_rtt(&self) -> Option<Span> { self.inner.model_min_rtt() }
}
#[test]
fn digest() {
    let hash = Arc::new(AtomicU64::new(1));
    let specs = ["", "ecn_low", "probe_up_exit=inflight", "full_bw_sample=filtered", "ecn_low probe_rtt_interval=1s ecn_max_rtt=50ms"];
    for (index, spec) in specs.iter().enumerate() {
        for (mbps, rtt, buffer, drop) in [(20, 40, 1000, None), (20, 40, 15, None), (100, 10, 60, Some(150)), (5, 5, 30, Some(37)), (200, 2, 20, None)] {
            let config = Config::parse(&mut Words::new(spec)).unwrap();
            let mut path = Path::new(mbps, rtt, buffer);
            path.drop_every = drop;
            let cc = Digest { inner: Bbr3Linux::new(config, setup(index as u64, Some(path.rtt))), hash: hash.clone() };
            let mut lab = Lab::new(cc, path);
            lab.run(Span::from_secs(12));
            lab.time_out();
            lab.run(Span::from_secs(3));
        }
        println!("lab {index} {:016x}", hash.load(Ordering::Relaxed));
        let mut random = StreamAddress { seed: 77, run: index as u64 }.stream(3, sojourn_core::Purpose::Loss);
        for round in 0..400u64 {
            let config = Config::parse(&mut Words::new(spec)).unwrap();
            let bytes: Vec<u8> = (0..3000).map(|_| random.next_u32() as u8).collect();
            let mut setup = setup(round, (round % 2 == 0).then(|| Span::from_millis(round % 9)));
            setup.tick = Span::from_millis(round % 11);
            torment(Digest { inner: Bbr3Linux::new(config, setup), hash: hash.clone() }, &bytes);
        }
        println!("torment {index} {:016x}", hash.load(Ordering::Relaxed));
    }
    let _ = (Memo::default(), None::<RateSample>);
}
