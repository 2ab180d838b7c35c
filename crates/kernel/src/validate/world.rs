//! A world at random: one bottleneck and the flows that share it.

use std::fmt::Write as _;

use sojourn_core::StreamAddress;

#[derive(Clone, Debug, PartialEq)]
pub struct World {
    pub number: usize,
    /// In kbit/s and ms.
    pub rate: u64,
    pub rtt: u64,
    pub queue: String,
    /// Random loss on the way, in tenths of a per cent.
    pub loss: u64,
    /// What receivers ask for with `SO_RCVBUF`, in bytes; else their windows grow.
    pub window: Option<u64>,
    /// Up to how many bytes send buffers grow; else up to 4 MiB, which is more than these worlds need.
    pub send_buffer: Option<u64>,
    /// Whether packets can be marked.
    pub ecn: bool,
    /// Other keys of all flows, a line each: what differs between kernels of different age.
    pub keys: String,
    /// Congestion control, by its name in the simulator, and when it starts in ms.
    pub flows: Vec<(String, u64)>,
    /// In seconds.
    pub duration: u64,
    pub warmup: u64,
}

impl World {
    /// A world that depends on nothing but the seed, its number and the congestion controls to choose from.
    pub fn draw(seed: u64, number: usize, controls: &[String]) -> Self {
        let mut stream = StreamAddress { seed, run: number as u64 }
            .stream(0, sojourn_core::Purpose::Application);
        let mut between = |low: f64, high: f64| stream.uniform(low.ln(), high.ln()).exp();
        let rate = round(between(1_000.0, 20_000.0));
        let rtt = round(between(4.0, 200.0));
        let share = between(0.3, 5.0);
        let windows = between(0.3, 3.0);
        let bdp = rate as f64 * rtt as f64 / 8.0;
        let limit = ((bdp / 1514.0 * share) as u64).clamp(10, 2_000);
        let queue = match stream.below(20) {
            0..11 => format!("pfifo limit {limit}"),
            11..15 => "fq_codel".to_owned(),
            15..18 => "codel".to_owned(),
            _ => "pie".to_owned(),
        };
        let loss = if stream.below(4) == 0 { 1 + stream.below(10) } else { 0 };
        let window = stream.below(6) == 0;
        let window = window.then(|| round((bdp * windows).clamp(8_000.0, 1e6)));
        let ecn = !queue.starts_with("pfifo") && stream.below(4) == 0;
        let count = 1 + [0, 0, 1, 1, 1, 2][stream.below(6) as usize];
        let flows = (0..count).map(|index| {
            let control = &controls[stream.below(controls.len() as u64) as usize];
            (control.clone(), if index == 0 { 0 } else { stream.below(20) * 100 })
        });
        let flows = flows.collect();
        let is_short = stream.below(6) == 0;
        let windows = stream.uniform(0.5f64.ln(), 6f64.ln()).exp();
        let send_buffer = is_short.then(|| round((bdp * windows).clamp(20_000.0, 4e6)));
        // Slow links need longer for as many packets; all runs of a world take a few seconds of one processor.
        let duration = (150_000 / rate).clamp(12, 30);
        Self {
            number,
            rate,
            rtt,
            queue,
            loss,
            window,
            send_buffer,
            ecn,
            keys: String::new(),
            flows,
            duration,
            warmup: duration / 4,
        }
    }

    /// The world as a study, for the two engines if `with_engines`.
    pub fn study(&self, with_engines: bool) -> String {
        let mut text = format!(
            "schema = 1\ntitle = \"World {}: a kernel and the simulator\"\n\
             question = \"Do Linux and the simulator agree?\"\n\n[scenario]\nduration = \"{}s\"\nwarmup = \"{}s\"\n\n\
             [scenario.path]\nrate = \"{}kbps\"\nrtt = \"{}ms\"\nqueue = \"{}\"\n",
            self.number, self.duration, self.warmup, self.rate, self.rtt, self.queue
        );
        if self.loss > 0 {
            let _ = writeln!(text, "loss = \"random {}.{}%\"", self.loss / 10, self.loss % 10);
        }
        for (index, (control, start)) in self.flows.iter().enumerate() {
            let _ = write!(
                text,
                "\n[[scenario.flow]]\nname = \"flow{index}\"\napp = \"bulk\"\ncca = \"{control}\"\n\
                 start = \"{start}ms\"\ntick = \"10ms\"\ntick_phase = \"7017us\"\n"
            );
            if let Some(window) = self.window {
                let _ = writeln!(text, "receive_buffer = \"{window}B\"");
            }
            if let Some(most) = self.send_buffer {
                let _ = writeln!(text, "most_send_buffer = \"{most}B\"");
            }
            if self.ecn {
                text += "ecn = \"classic\"\n";
            }
            text += &self.keys;
        }
        if with_engines {
            text += "\n[factors]\nengine = [\"sim\", \"kernel\"]\n";
        }
        text
    }

    /// In one line, for people.
    pub fn brief(&self) -> String {
        let mut text = format!("{} kbit/s, {} ms, {}", self.rate, self.rtt, self.queue);
        if self.loss > 0 {
            let _ = write!(text, ", {}.{} % loss", self.loss / 10, self.loss % 10);
        }
        if let Some(window) = self.window {
            let _ = write!(text, ", SO_RCVBUF {window}");
        }
        if let Some(most) = self.send_buffer {
            let _ = write!(text, ", send buffers up to {most}");
        }
        if self.ecn {
            text += ", ECN";
        }
        let flows: Vec<&str> = self.flows.iter().map(|(control, _)| control.as_str()).collect();
        text + ": " + &flows.join(" + ")
    }

    /// The bandwidth-delay product in packets.
    pub fn bdp(&self) -> f64 {
        self.rate as f64 * self.rtt as f64 / 8.0 / 1514.0
    }

    /// Simpler worlds, the simplest first.
    pub(crate) fn simpler(&self) -> Vec<Self> {
        let mut all = Vec::new();
        for index in (0..self.flows.len()).filter(|_| self.flows.len() > 1) {
            let mut flows = self.flows.clone();
            flows.remove(index);
            flows[0].1 = 0;
            all.push(Self { flows, ..self.clone() });
        }
        if self.loss > 0 {
            all.push(Self { loss: 0, ..self.clone() });
        }
        if self.window.is_some() {
            all.push(Self { window: None, ..self.clone() });
        }
        if self.send_buffer.is_some() {
            all.push(Self { send_buffer: None, ..self.clone() });
        }
        if self.ecn {
            all.push(Self { ecn: false, ..self.clone() });
        }
        if !self.queue.starts_with("pfifo") {
            all.push(Self { queue: "pfifo limit 100".to_owned(), ecn: false, ..self.clone() });
        }
        if self.flows.iter().any(|(_, start)| *start > 0) {
            let flows = self.flows.iter().map(|(control, _)| (control.clone(), 0)).collect();
            all.push(Self { flows, ..self.clone() });
        }
        if (self.rate, self.rtt) != (10_000, 20) {
            all.push(Self { rate: 10_000, rtt: 20, ..self.clone() });
        }
        all
    }
}

/// Two digits.
fn round(value: f64) -> u64 {
    let unit = 10f64.powf((value.log10().floor() - 1.0).max(0.0));
    ((value / unit).round() * unit) as u64
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;
    use sojourn_study::engine::Engine;
    use sojourn_study::{Overrides, Study};

    use super::*;
    use crate::engine::Kernels;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn every_world_is_a_study_of_both_engines(seed: u64, number in 0usize..1000) {
            let controls = ["cubic-linux", "bbr"].map(str::to_owned);
            let world = World::draw(seed, number, &controls);
            let parsed = |text: &str| Study::parse("world", text, Path::new(""), &Overrides::default());
            for world in [world.clone()].into_iter().chain(world.simpler()) {
                let study = parsed(&world.study(false));
                prop_assert!(study.is_ok(), "{:?}\n{}", study.err(), world.study(false));
                let scenario = &study.expect("it was read").scenarios.get(0).expect("it is one of them").scenario;
                prop_assert!(Kernels::default().check_scenario(scenario).is_ok());
            }
            prop_assert_eq!(World::draw(seed, number, &controls), world);
        }
    }
}
