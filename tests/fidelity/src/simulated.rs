//! The same world in simulation.

use std::collections::BTreeMap;

use sojourn_core::{Body, Direction, Event, Observer, Rate, Span, StreamAddress, Time, Who};
use sojourn_host::apps::{BulkConfig, PingConfig, UdpConfig};
use sojourn_host::tcp::{Config as Transport, EcnOffer};
use sojourn_link::{LossConfig, RateConfig, RateSpec};
use sojourn_scenario::{App, Flow, Host, Link, Scenario, Traffic, Until};

use crate::measured::Situation;

/// A discipline or controller that a situation needs and that does not exist here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Needs(pub String);

/// The results, each number the mean over seeds.
#[derive(Clone, Debug, Default)]
pub struct Simulated {
    pub by_cc: BTreeMap<String, SimulatedGroup>,
    pub ping_p50_ms: f64,
    pub udp_owd_p50_ms: f64,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct SimulatedGroup {
    pub goodput_mbps: f64,
    pub retransmits: f64,
    pub srtt_p50_ms: f64,
    pub cwnd_p50: f64,
}

/// The world of `situation`.
///
/// # Errors
/// [`Needs`] names a discipline or controller that does not exist here.
pub fn scenario(situation: &Situation) -> Result<Scenario, Needs> {
    let params = &situation.params;
    let is_native = situation.platform.starts_with("native");
    let rtt = Span::from_secs_f64(params.base_rtt_ms / 1e3);
    // The native bottleneck delays half on each side; the others delay acknowledgements only.
    let (forward_delay, reverse_delay) =
        if is_native { (rtt / 2, rtt / 2) } else { (Span::ZERO, rtt) };
    let bottleneck = if is_native { native_link(situation) } else { kernel_link(situation)? };

    let mut flows = Vec::new();
    for (index, group) in params.flows.iter().enumerate() {
        let cca = sojourn_cca::Config::parse(controller(&group.cc)?)
            .map_err(|error| Needs(error.to_string()))?;
        for copy in 0..group.n.unwrap_or(1) {
            flows.push(Flow {
                name: format!("{} {index} {copy}", group.cc),
                app: App::Tcp {
                    traffic: Traffic::Bulk(BulkConfig::default()),
                    cca: cca.clone(),
                    transport: transport(situation),
                },
                start_jitter: start_jitter(situation),
                ..flow(forward_delay, reverse_delay)
            });
        }
    }
    flows.push(Flow {
        name: "ping".into(),
        app: App::Ping(PingConfig {
            interval: Span::from_secs_f64(1.0 / params.ping_hz),
            size: 56,
        }),
        // Half a second later, and out of step with everything periodic.
        start: Span::from_micros(503_711),
        ..flow(forward_delay, reverse_delay)
    });
    if let Some(udp) = &params.udp {
        flows.push(Flow {
            name: "udp".into(),
            app: App::Udp(UdpConfig {
                interval: Span::from_secs_f64(1.0 / udp.fps),
                frame: (udp.bps / 8.0 / udp.fps) as u32,
                datagrams: 2,
                header: 28,
            }),
            start: Span::from_micros(4_907),
            ..flow(forward_delay, reverse_delay)
        });
    }
    Ok(Scenario {
        duration: Span::from_secs_f64(params.duration_s),
        until: Until::Duration,
        warmup: Span::from_secs_f64(params.warm_s),
        step: Span::from_millis(100),
        hosts: ["senders", "receiver"].map(|name| Host { name: name.into() }).into(),
        links: vec![bottleneck],
        carriers: Vec::new(),
        changes: Vec::new(),
        flows,
    })
}

/// Runs the world of a situation under `seeds` seeds.
///
/// # Errors
/// As [`scenario`].
pub fn simulate(situation: &Situation, seeds: u64) -> Result<Simulated, Needs> {
    let situated = scenario(situation)?;
    let mut total = Simulated::default();
    for run in 0..seeds {
        let scenario = at_phase(&situated, run as f64 / seeds as f64);
        let mut watch = Watch::new(&scenario);
        let scenario = scenario.checked().unwrap_or_else(|e| panic!("{}: {e}", situation.id));
        sojourn_sim::run(&scenario, StreamAddress { seed: 1, run }, &mut watch)
            .unwrap_or_else(|violation| panic!("{}: {violation}", situation.id));
        watch.add_to(&mut total, &scenario);
    }
    let n = seeds as f64;
    for group in total.by_cc.values_mut() {
        group.goodput_mbps /= n;
        group.retransmits /= n;
        group.srtt_p50_ms /= n;
        group.cwnd_p50 /= n;
    }
    total.ping_p50_ms /= n;
    total.udp_owd_p50_ms /= n;
    Ok(total)
}

/// The runs of a situation meet the kernel's ticks at different moments: everything starts a part
/// of a tick later.
pub fn at_phase(scenario: &Scenario, share: f64) -> Scenario {
    let mut scenario = scenario.clone();
    let tick = scenario.flows.iter().find_map(|flow| match &flow.app {
        App::Tcp { transport, .. } => Some(transport.tick),
        _ => None,
    });
    let later = Span::from_secs_f64(tick.unwrap_or_default().as_secs_f64() * share);
    for flow in &mut scenario.flows {
        flow.start += later;
    }
    scenario
}

/// How far apart the flows start. The programs on a real machine start one after another: where
/// both flows of a pair have statistics from the first window on, these show a tenth of a second
/// between them. In the user-mode kernel computing takes no time, so all flows connect at once: in
/// all runs the second flow's smallest round-trip time includes the wait behind the first one's
/// initial window.
/// window makes it wait.
fn start_jitter(situation: &Situation) -> Span {
    if situation.platform.starts_with("uml") { Span::ZERO } else { Span::from_millis(100) }
}

fn flow(forward_delay: Span, reverse_delay: Span) -> Flow {
    let app = App::Ping(PingConfig::default());
    Flow { forward_delay, reverse_delay, ..Flow::new("", app, &[0], &[]) }
}

/// A user-space FIFO that serialises exactly and counts the packet in transmission against its
/// limit, behind random loss.
fn native_link(situation: &Situation) -> Link {
    let params = &situation.params;
    let limit = params.limit_packets.expect("a native situation states its limit") - 1;
    link(
        &format!("pfifo limit {limit}"),
        RateConfig::fixed(Rate::from_bps(params.rate_bps as u64)).expect("a positive rate"),
        params.random_loss_forward.unwrap_or(0.0),
    )
}

/// What `tc` printed of the bottleneck: CAKE shapes by itself, everything else hangs below HTB.
fn kernel_link(situation: &Situation) -> Result<Link, Needs> {
    let text = &situation.params.bottleneck;
    let rate = Rate::from_bps(situation.params.rate_bps as u64);
    let disciplines: Vec<Vec<&str>> = text
        .split(';')
        .map(|part| part.split_whitespace().skip_while(|word| *word == "qdisc").collect())
        .collect();
    let leaf = disciplines.last().expect("tc printed a discipline");
    let kind = leaf[0];
    if kind == "cake" {
        let queue = format!("cake bandwidth {rate}");
        return Ok(link(&queue, RateSpec::Unlimited.complete(None).expect("no file"), 0.0));
    }
    let htb = RateSpec::parse(&format!("htb rate {rate}"))
        .and_then(|spec| spec.complete(None))
        .expect("htb with a rate");
    // `kind handle: parent major:minor options`, with what only the counters show cut off.
    let options: Vec<&str> = leaf.iter().skip(4).copied().collect();
    let options = options.join(" ");
    match kind {
        "pfifo" => Ok(link(&format!("pfifo {}", options.trim_end_matches('p')), htb, 0.0)),
        "netem" => Ok(link("pfifo limit 1000", htb, 0.01)),
        "codel" => Ok(link("codel", htb, 0.0)),
        "fq_codel" => Ok(link("fq_codel", htb, 0.0)),
        "pie" => Ok(link(&format!("pie {}", options.replace("p ", " ")), htb, 0.0)),
        "dualpi2" => Ok(link("dualpi2", htb, 0.0)),
        other => Err(Needs(other.to_owned())),
    }
}

fn link(queue: &str, rate: RateConfig, entry_loss: f64) -> Link {
    let entry_loss = match entry_loss {
        0.0 => LossConfig::parse("none"),
        share => LossConfig::parse(&format!("{}%", share * 100.0)),
    };
    let queue =
        sojourn_qdisc::Config::parse(queue).unwrap_or_else(|error| panic!("'{queue}': {error}"));
    Link {
        entry_loss: entry_loss.expect("a share"),
        ..Link::new("bottleneck", queue, rate, Span::ZERO)
    }
}

fn controller(cc: &str) -> Result<&'static str, Needs> {
    match cc {
        "reno" => Ok("reno"),
        "cubic" => Ok("cubic-linux"),
        "bbr1" => Ok("bbr"),
        "bbr3" => Ok("bbr3-linux"),
        other => Err(Needs(other.to_owned())),
    }
}

fn transport(situation: &Situation) -> Transport {
    let params = &situation.params;
    let is_user_mode = situation.platform.starts_with("uml");
    let is_native = situation.platform.starts_with("native");
    let locked = situation.id.split("rcvbuf").nth(1).map(|rest| {
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().expect("a number follows rcvbuf in an id")
    });
    Transport {
        // The user-mode kernel ran with HZ=100.
        tick: if is_user_mode { Span::from_millis(10) } else { Span::from_millis(4) },
        // Only the emulated machine has the kernel of a distribution, and one before 6.10.
        header_room: if is_user_mode || is_native { 192 } else { 320 },
        buffer_bound: !is_user_mode && !is_native,
        buffer_overhead: (!is_user_mode && !is_native).then_some(1280),
        // The delay is on the way back, so answers to address requests wait in it too.
        address_resolution: if is_native {
            Span::ZERO
        } else {
            Span::from_secs_f64(params.base_rtt_ms / 1e3)
        },
        ecn: match &params.ecn {
            Some(ecn) if ecn.starts_with("tcp_ecn=1") => Some(EcnOffer::Classic),
            Some(ecn) if ecn.starts_with("tcp_ecn=3") => Some(EcnOffer::Accurate),
            _ => None,
        },
        offload: params.offloads.as_deref().is_some_and(|text| text.contains("on")),
        // There BBR was the default controller. A socket is paced from then on, also when a program
        // chooses another after it has connected, as iperf3 does.
        pacing: is_native,
        receive_buffer: locked,
        ..Transport::default()
    }
}

/// Collects the same quantities as the measurements, by the same definitions.
struct Watch {
    warmup: Time,
    flows: Vec<Watched>,
}

#[derive(Default)]
struct Watched {
    srtt_ms: Vec<f64>,
    cwnd: Vec<f64>,
    acked_at_warmup: Option<(Time, u64)>,
    last: (Time, u64),
    retransmits: u64,
    delays_ms: Vec<f64>,
}

impl Watch {
    fn new(scenario: &Scenario) -> Self {
        Self {
            warmup: Time::ZERO + scenario.warmup,
            flows: scenario.flows.iter().map(|_| Watched::default()).collect(),
        }
    }

    fn add_to(mut self, total: &mut Simulated, scenario: &Scenario) {
        for (flow, watched) in scenario.flows.iter().zip(&mut self.flows) {
            match &flow.app {
                App::Ping(_) => total.ping_p50_ms += median(&mut watched.delays_ms),
                App::Udp(_) => total.udp_owd_p50_ms += median(&mut watched.delays_ms),
                App::Tcp { .. } | App::External(_) => {}
            }
        }
        let mut names: Vec<&str> = Vec::new();
        for flow in &scenario.flows {
            if let (App::Tcp { .. }, Some(cc)) = (&flow.app, flow.name.split(' ').next())
                && !names.contains(&cc)
            {
                names.push(cc);
            }
        }
        for cc in names {
            let group = total.by_cc.entry(cc.to_owned()).or_default();
            let mut srtt = Vec::new();
            let mut cwnd = Vec::new();
            for (flow, watched) in scenario.flows.iter().zip(&mut self.flows) {
                if flow.name.split(' ').next() != Some(cc) {
                    continue;
                }
                let (since, before) = watched.acked_at_warmup.unwrap_or_default();
                let (end, acked) = watched.last;
                group.goodput_mbps +=
                    (acked - before) as f64 * 8e-6 / end.since(since).as_secs_f64();
                group.retransmits += watched.retransmits as f64;
                srtt.push(median(&mut watched.srtt_ms));
                cwnd.push(median(&mut watched.cwnd));
            }
            group.srtt_p50_ms += median(&mut srtt);
            group.cwnd_p50 += median(&mut cwnd);
        }
    }
}

impl Observer for Watch {
    fn record(&mut self, now: Time, who: Who, event: &Event<'_>) {
        let Who::Flow(flow) = who else {
            return;
        };
        let watched = &mut self.flows[flow.0 as usize];
        match event {
            Event::FlowSample(sample) => {
                watched.last = (now, sample.bytes_acked);
                watched.retransmits = sample.retrans_total;
                if now >= self.warmup {
                    watched.acked_at_warmup.get_or_insert((now, sample.bytes_acked));
                    watched.srtt_ms.push(sample.srtt.as_millis_f64());
                    watched.cwnd.push(f64::from(sample.cwnd));
                }
            }
            Event::Ping { rtt } if now >= self.warmup => {
                watched.delays_ms.push(rtt.as_millis_f64());
            }
            Event::Arrived { packet }
                if now >= self.warmup
                    && matches!(packet.body, Body::Datagram { .. })
                    && packet.direction == Direction::Forward =>
            {
                watched.delays_ms.push(now.since(packet.sent).as_millis_f64());
            }
            _ => {}
        }
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[n / 2],
        n => (values[n / 2 - 1] + values[n / 2]) / 2.0,
    }
}
