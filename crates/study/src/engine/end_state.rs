//! What `ss -ti` and `tc -s qdisc` would have printed when a run ended, beginning with the line
//! that names the flow or queue.

use std::fmt::Write;

use sojourn_core::{DropReason, EcnMode, FlowSample, PortId, QueueSample, Rate, Span};
use sojourn_metrics::{LinkCounts, RunMetrics};
use sojourn_scenario::{App, Scenario};

/// The length of a line, as far as words allow.
const LINE: usize = 96;

/// The payload of a segment with timestamps on Ethernet: what a connection that is not simulated has.
const ETHERNET_MSS: u32 = 1448;

/// What `ss` and `tc` would print, for every flow, then for every queue: what [`Measured::end_states`]
/// holds. `links` has the last sample of each link, and its queue's own counters.
///
/// [`Measured::end_states`]: super::Measured::end_states
pub fn end_states<'a>(
    scenario: &Scenario,
    metrics: &RunMetrics,
    flows: &[Option<FlowSample>],
    links: impl IntoIterator<Item = (&'a QueueSample, &'a [(&'static str, u64)])>,
) -> Vec<String> {
    let flows = scenario.flows.iter().zip(flows).map(|(flow, sample)| match (&flow.app, sample) {
        (App::Tcp { transport, .. }, Some(sample)) => ss(sample, transport.mss),
        (App::External(app), Some(sample)) if app.0.is_tcp() => ss(sample, ETHERNET_MSS),
        _ => String::new(),
    });
    let links = metrics.links.iter().zip(links).zip((0..).map(PortId));
    let links = links.map(|((link, (sample, details)), port)| {
        let rate = scenario.changes_rate(port).then(|| rate(sample.capacity));
        rate.unwrap_or_default() + &tc(&link.whole, sample, details)
    });
    flows.chain(links).collect()
}

/// The words of `ss -ti` for a sender, and three more: accurate ECN, which `tcp_info` has and `ss`
/// does not print yet, what the sender deemed lost, and the controller's phase.
fn ss(sample: &FlowSample, mss: u32) -> String {
    let mut words = Vec::new();
    if sample.ecn != EcnMode::Disabled {
        words.push("ecn".to_owned());
    }
    if sample.ecn_seen {
        words.push("ecnseen".to_owned());
    }
    if sample.ecn == EcnMode::AccEcn {
        words.push("ecn_mode:accecn".to_owned());
    }
    // The sum over several connections has none of these three: they are of one connection.
    if !sample.rto.is_zero() {
        words.push(format!("rto:{}", ms(sample.rto)));
    }
    if !sample.srtt.is_zero() {
        words.push(format!("rtt:{}/{}", ms(sample.srtt), ms(sample.rttvar)));
    }
    words.push(format!("mss:{mss}"));
    words.push(format!("cwnd:{}", sample.cwnd));
    words.extend(sample.ssthresh.map(|ssthresh| format!("ssthresh:{ssthresh}")));
    words.push(format!("bytes_sent:{}", sample.bytes_sent));
    words.extend(some("bytes_retrans", sample.bytes_retrans));
    words.extend(some("bytes_acked", sample.bytes_acked));
    let known = |rate: &Rate| !rate.is_unlimited();
    words.extend(sample.bw.filter(known).map(|bw| format!("bw:{}", mbps(bw))));
    let pacing = sample.pacing_rate.filter(known);
    words.extend(pacing.map(|rate| format!("pacing_rate {}", mbps(rate))));
    let delivery = Some(sample.delivery_rate).filter(known);
    words.extend(delivery.map(|rate| format!("delivery_rate {}", mbps(rate))));
    words.extend(some("delivered", sample.delivered));
    words.extend(some("delivered_ce", sample.delivered_ce));
    if sample.delivery_rate_app_limited {
        words.push("app_limited".to_owned());
    }
    words.push(format!("busy:{}ms", sample.busy.as_nanos() / 1_000_000));
    if sample.rwnd_limited > Span::ZERO {
        let share = sample.rwnd_limited.as_secs_f64() / sample.busy.as_secs_f64() * 100.0;
        let limited = sample.rwnd_limited.as_nanos() / 1_000_000;
        words.push(format!("rwnd_limited:{limited}ms({share:.1}%)"));
    }
    if sample.sndbuf_limited > Span::ZERO {
        let share = sample.sndbuf_limited.as_secs_f64() / sample.busy.as_secs_f64() * 100.0;
        let limited = sample.sndbuf_limited.as_nanos() / 1_000_000;
        words.push(format!("sndbuf_limited:{limited}ms({share:.1}%)"));
    }
    words.extend(some("notsent", sample.not_sent));
    words.extend(some("unacked", sample.unacked.into()));
    if sample.retrans_total > 0 {
        words.push(format!("retrans:{}/{}", sample.retrans, sample.retrans_total));
    }
    words.extend(some("lost", sample.lost.into()));
    words.extend(some("sacked", sample.sacked.into()));
    words.extend(some("snd_wnd", sample.rwnd));
    words.extend(sample.min_rtt.map(|min| format!("minrtt:{}", ms(min))));
    words.extend(sample.lost_total.and_then(|total| some("lost_total", total)));
    words.extend(some("timeouts", sample.timeouts_total));
    if !sample.phase.is_empty() {
        words.push(format!("phase:{}", sample.phase));
    }
    lines("\t", &words)
}

/// Like `ss`, which leaves out what is zero.
fn some(name: &str, value: u64) -> Option<String> {
    (value > 0).then(|| format!("{name}:{value}"))
}

/// The rate that a link had when the run ended, if a change may have set it.
fn rate(capacity: Rate) -> String {
    format!(" rate {} at the end\n", mbps(capacity))
}

/// The counters of `tc -s qdisc`; `details` are the qdisc's own. Packets that did not come to the queue, or were lost after it,
/// are not its drops and are printed separately. Its backlog is in packets of the kernel, of which an offloaded one is one.
fn tc(counts: &LinkCounts, sample: &QueueSample, details: &[(&'static str, u64)]) -> String {
    let LinkCounts { sent_packets, sent_bytes, marks, .. } = *counts;
    let dropped = counts.drops_of_queue();
    let detail = |name: &str| details.iter().find(|(other, _)| *other == name).map(|(_, n)| *n);
    // RED counts the packets that it drops or marks early; the others count packets that must wait
    // for a rate.
    let overlimits = detail("overlimits")
        .or_else(|| Some(detail("early")? + detail("marked")?))
        .unwrap_or_default();
    let mut out = format!(
        " Sent {sent_bytes} bytes {sent_packets} pkt (dropped {dropped}, overlimits {overlimits} \
         requeues 0)\n backlog {}b {}p requeues 0\n",
        sample.bytes,
        sample.packets - sample.joined
    );
    let (tins, plain): (Vec<_>, Vec<_>) = details
        .iter()
        .filter(|(name, _)| *name != "overlimits")
        .partition(|(name, _)| name.contains(' '));
    let words: Vec<String> =
        plain.iter().map(|(name, value)| format!("{name} {}", quantity(name, *value))).collect();
    if !words.is_empty() {
        out += &lines("  ", &words);
    }
    out += &table(&tins);
    if marks > 0 && detail("ecn_mark").is_none() && tins.is_empty() && detail("marked").is_none() {
        let _ = writeln!(out, "  marked {marks}");
    }
    for (why, words) in NOT_OF_QUEUE {
        let packets = counts.drops_because(why);
        if packets > 0 {
            let _ = writeln!(out, " {words} {packets}");
        }
    }
    out
}

/// How packets are gone that the queue did not drop, in the order of the way.
const NOT_OF_QUEUE: [(DropReason, &str); 3] = [
    (DropReason::Policed, "dropped by the policer"),
    (DropReason::Entry, "lost before the queue"),
    (DropReason::Medium, "lost by the medium"),
];

/// A column for each tin of CAKE, as `tc` prints them.
fn table(tins: &[(&'static str, u64)]) -> String {
    let mut titles: Vec<&str> = Vec::new();
    let mut rows: Vec<(&str, Vec<String>)> = Vec::new();
    for (name, value) in tins {
        let Some((title, row)) = name.rsplit_once(' ') else { continue };
        if !titles.contains(&title) {
            titles.push(title);
        }
        let cell = quantity(row, *value);
        match rows.iter_mut().find(|(name, _)| *name == row) {
            Some((_, cells)) => cells.push(cell),
            None => rows.push((row, vec![cell])),
        }
    }
    let mut out = String::new();
    if !titles.is_empty() {
        let _ = write!(out, "  {:8}", "");
        titles.iter().for_each(|title| out += &format!("{title:>14}"));
        out.push('\n');
    }
    for (name, cells) in rows {
        let _ = write!(out, "  {name:8}");
        cells.iter().for_each(|cell| out += &format!("{cell:>14}"));
        out.push('\n');
    }
    out
}

/// A qdisc's own counter, with the unit that its name implies.
fn quantity(name: &str, value: u64) -> String {
    match name {
        "target" | "interval" | "pk_delay" | "av_delay" | "sp_delay" | "delay" | "ldelay" => {
            match value {
                0..1_000_000 => format!("{}us", value / 1000),
                _ => format!("{}ms", ms(Span::from_nanos(value))),
            }
        }
        "thresh" => Rate::from_bps(value).to_string(),
        "backlog" | "memory_used" | "memory_limit" | "max_memory_used" => format!("{value}b"),
        _ => value.to_string(),
    }
}

/// Arranges words in columns, a new line when one is full.
fn lines(indent: &str, words: &[String]) -> String {
    let mut out = String::new();
    let mut length = 0;
    for word in words {
        if length == 0 || length + word.len() >= LINE {
            if length > 0 {
                out.push('\n');
            }
            out += indent;
            length = 0;
        } else {
            out.push(' ');
        }
        out += word;
        length += word.len() + 1;
    }
    out.push('\n');
    out
}

/// At most three decimals, as `ss` prints it.
fn ms(span: Span) -> String {
    trimmed(span.as_millis_f64())
}

fn mbps(rate: Rate) -> String {
    format!("{}Mbps", trimmed(rate.as_bps() as f64 / 1e6))
}

fn trimmed(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_prints_as_ss_does() {
        let sample = FlowSample {
            cwnd: 30,
            ssthresh: Some(24),
            srtt: Span::from_micros(45_120),
            rttvar: Span::from_micros(3200),
            min_rtt: Some(Span::from_millis(20)),
            rto: Span::from_millis(248),
            bytes_sent: 14_480,
            bytes_acked: 13_032,
            busy: Span::from_millis(2000),
            rwnd_limited: Span::from_millis(500),
            sndbuf_limited: Span::from_millis(300),
            unacked: 1,
            retrans_total: 4,
            delivery_rate: Rate::from_bps(9_500_000),
            phase: "SlowStart",
            ..FlowSample::default()
        };
        let text = ss(&sample, 1448);
        assert_eq!(
            text.split_whitespace().collect::<Vec<_>>().join(" "),
            "rto:248 rtt:45.12/3.2 mss:1448 cwnd:30 ssthresh:24 bytes_sent:14480 bytes_acked:13032 \
             delivery_rate 9.5Mbps busy:2000ms rwnd_limited:500ms(25.0%) sndbuf_limited:300ms(15.0%) unacked:1 retrans:0/4 \
             minrtt:20 phase:SlowStart"
        );
        assert!(text.lines().all(|line| line.starts_with('\t') && line.len() <= LINE + 1));
    }

    /// A page's connections have no round-trip time and no rate in common.
    #[test]
    fn the_sum_over_several_connections_has_no_words_of_a_single_one() {
        let sum = FlowSample {
            cwnd: 23,
            bytes_sent: 5_919_424,
            min_rtt: Some(Span::from_millis(40)),
            delivery_rate: Rate::UNLIMITED,
            ..FlowSample::default()
        };
        let text = ss(&sum, 1448);
        assert_eq!(text.trim(), "mss:1448 cwnd:23 bytes_sent:5919424 busy:0ms minrtt:40");
    }

    /// The words and their order are those of iproute2's `tcp_stats_print`.
    #[test]
    fn ecn_that_was_agreed_on_comes_first() {
        let first = |ecn, ecn_seen| {
            let text = ss(&FlowSample { ecn, ecn_seen, ..FlowSample::default() }, 1448);
            let words = text.split_whitespace().take_while(|word| !word.starts_with("mss"));
            words.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(first(EcnMode::Disabled, false), "");
        assert_eq!(first(EcnMode::Rfc3168, false), "ecn");
        assert_eq!(first(EcnMode::AccEcn, true), "ecn ecnseen ecn_mode:accecn");
    }

    #[test]
    fn what_the_queue_did_not_drop_has_lines_of_its_own() {
        let mut whole = LinkCounts { sent_packets: 90, sent_bytes: 9_000, ..LinkCounts::default() };
        for (why, packets) in DropReason::ALL.into_iter().zip(1..) {
            whole.drops[why as usize] = packets;
        }
        let sample =
            QueueSample { packets: 44, joined: 40, bytes: 66_000, ..QueueSample::default() };
        assert_eq!(
            tc(&whole, &sample, &[]),
            " Sent 9000 bytes 90 pkt (dropped 10, overlimits 0 requeues 0)\n backlog 66000b 4p requeues 0\n \
             dropped by the policer 6\n lost before the queue 7\n lost by the medium 5\n"
        );
    }

    #[test]
    fn tins_stand_beside_each_other() {
        let tins = [
            ("Bulk thresh", 625_000),
            ("Bulk pkts", 3),
            ("Voice thresh", 2_500_000),
            ("Voice pkts", 7),
        ];
        let text = table(&tins);
        let words: Vec<Vec<&str>> =
            text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(
            words,
            [vec!["Bulk", "Voice"], vec!["thresh", "625kbit", "2500kbit"], vec!["pkts", "3", "7"]]
        );
    }

    #[test]
    fn times_bear_units() {
        assert_eq!(quantity("target", 5_000_000), "5ms");
        assert_eq!(quantity("av_delay", 12_345), "12us");
        assert_eq!(quantity("pkts", 12), "12");
    }
}
