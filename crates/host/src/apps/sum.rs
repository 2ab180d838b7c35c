//! What `ss` would show of several connections, added up.

use sojourn_core::FlowSample;

/// Adds what counts from a connection's beginning on.
pub(super) fn add_totals(sum: &mut FlowSample, one: &FlowSample) {
    sum.retrans_total += one.retrans_total;
    sum.lost_total = added(sum.lost_total, one.lost_total);
    sum.timeouts_total += one.timeouts_total;
    sum.spurious_total = added(sum.spurious_total, one.spurious_total);
    sum.delivered += one.delivered;
    sum.delivered_ce += one.delivered_ce;
    sum.bytes_sent += one.bytes_sent;
    sum.bytes_retrans += one.bytes_retrans;
    sum.bytes_acked += one.bytes_acked;
    sum.busy += one.busy;
    sum.rwnd_limited += one.rwnd_limited;
    sum.sndbuf_limited += one.sndbuf_limited;
    sum.min_rtt = match (sum.min_rtt, one.min_rtt) {
        (Some(least), Some(rtt)) => Some(least.min(rtt)),
        (least, rtt) => least.or(rtt),
    };
}

/// Adds everything of a connection that is open.
pub(super) fn add_open(sum: &mut FlowSample, one: &FlowSample) {
    add_totals(sum, one);
    sum.cwnd = sum.cwnd.saturating_add(one.cwnd);
    sum.not_sent += one.not_sent;
    sum.unacked += one.unacked;
    sum.sacked += one.sacked;
    sum.lost += one.lost;
    sum.retrans += one.retrans;
    sum.rwnd = sum.rwnd.saturating_add(one.rwnd);
}

/// The sum of what is known.
fn added(sum: Option<u64>, one: Option<u64>) -> Option<u64> {
    one.map_or(sum, |one| Some(sum.unwrap_or(0) + one))
}
