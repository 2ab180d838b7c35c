// SPDX-License-Identifier: MIT OR Apache-2.0
//
// BBR version 3 (draft-ietf-ccwg-bbr-06) and BBR-n+ for the Linux kernel, as BPF struct_ops. A translation of crates/cca/src/bbr3 and
// crates/cca/src/bbr_n_plus, with their names, which are the draft's, and their order of steps; section numbers are the draft's. Nothing is
// taken from the kernel's own BBR. What the kernel does not tell a program is made up for where it is used: see `Memory`.
//
// Compiled by `sojourn live cca load` with:
//   NAME      what the kernel calls the control
//   STATE     the name of the map that has the state of each connection
//   RATE      the argument of cong_control that is the rate sample: 3 since Linux 6.10, 1 before
//   SMART     for BBR-n+

#include "kernel.h"

#define call static __attribute__((always_inline)) inline
#define text_of(name) #name
#define as_text(name) text_of(name)

// Programs that call these helpers must say that their licence is compatible with the kernel's.
char licence[] section("license") = "Dual MIT/GPL";

#define INFINITY (~0u)
#define NEVER (~0ull)

// Bandwidths are in 1024ths of a segment per second, gains in percent, times in microseconds.
typedef u64 bandwidth;
#define UNIT_BITS 10
#define SECOND 1000000ull
#define NO_BOUND (~0ull)
// Longer times are taken for this, so that no product overflows.
#define LONGEST (20 * SECOND)

// Parameters, as in crates/cca/src/bbr3/mod.rs; shares in percent, too.
#define STARTUP_PACING_GAIN 277
#define CWND_GAIN 200
#define DRAIN_PACING_GAIN 50
#define DRAIN_MAX_ROUNDS 3
#define PROBE_UP_PACING_GAIN 125
#define PROBE_UP_CWND_GAIN 225
#define PROBE_DOWN_PACING_GAIN 90
#define FULL_BW_THRESH 125
#define FULL_BW_ROUNDS 3
#define FULL_LOSS_CNT 6
#define LOSS_THRESH 2
#define BETA 70
#define HEADROOM 15
#define PROBE_WAIT_BASE (2 * SECOND)
#define PROBE_WAIT_RANDOM SECOND
#define PROBE_MAX_ROUNDS 63
#define MIN_RTT_WINDOW (10 * SECOND)
#define PROBE_RTT_INTERVAL (5 * SECOND)
#define PROBE_RTT_DURATION (200 * 1000)
#define PROBE_RTT_CWND_GAIN 50
#define MIN_PIPE_CWND 4
#define EXTRA_ACKED_WINDOW 10
#define PACED_PERCENT 99
#define MAX_UP_ROUNDS 30
#define MAX_QUANTUM (64 * 1024)
#define MIN_QUANTUM 2
#define QUANTA_IN_HOSTS 3
// RFC 6928.
#define INITIAL_WINDOW 10

// The same of crates/cca/src/bbr_n_plus/smart_exit.rs, with mode=hold.
#define RWND_ROUND_SHARE 50
#define RWND_RTT_FACTOR 125
#define RWND_LOSS_THRESH 2
#define RWND_GROWTH 125
#define RWND_ROUNDS 3
#define RWND_HEADROOM 200
#define REARM_ROUNDS 10

enum state { STARTUP, DRAIN, PROBE_BW_DOWN, PROBE_BW_CRUISE, PROBE_BW_REFILL, PROBE_BW_UP, PROBE_RTT };
enum ack_phase { INIT, REFILLING, PROBE_STARTING, PROBE_FEEDBACK, PROBE_STOPPING };
enum undo { UNDO_NONE, UNDO_STARTUP, UNDO_PROBE_BW_UP };

// The connection between two acknowledgements. A packet that leaves takes with it in `delivered` how much had been delivered by then, which
// the kernel gives back when the packet is delivered. By that number this finds what a packet of the draft has with it, and one of the
// kernel's has not: what had been lost when it left, and how much was in flight.
struct memory {
	u32 delivered;
	u32 lost;
	// In flight after the first acknowledgement, and before the next.
	u32 least_in_flight;
	u32 most_in_flight;
	u32 is_rwnd_limited;
};

#define MEMORIES 512

// An approximate windowed maximum of three samples, as crates/cca/src/bbr/max_filter.rs.
struct dated {
	u32 round;
	u32 value;
};

struct bbr {
	// What crates/live/src/cca/state.rs reads, in this order.
	u32 state;
	u32 smss;
	bandwidth bw;
	u32 min_rtt;
	u32 inflight_longterm;
	u32 extra_acked;
	u32 round_count;

	u32 initial_cwnd;
	u32 cwnd;
	u32 send_quantum;
	u32 pacing_gain;
	u32 cwnd_gain;
	u32 has_seen_rtt;
	u64 pacing_rate;

	// Rounds, section 5.5.1.
	u32 round_start;
	u32 next_round_delivered;

	// Bandwidth and losses, sections 5.5.2 to 5.5.6 and 5.5.10.
	bandwidth max_bw;
	bandwidth max_bw_previous;
	bandwidth max_bw_present;
	bandwidth bw_shortterm;
	bandwidth bw_latest;
	u32 inflight_shortterm;
	u32 inflight_latest;
	u32 is_loss_in_round;
	u32 loss_round_delivered;
	u32 loss_round_start;
	u32 loss_events;

	// The full pipe, section 5.3.1.2.
	bandwidth full_bw;
	u32 full_bw_reached;
	u32 full_bw_now;
	u32 full_bw_count;
	u32 is_plateau_held;
	u32 drain_start_round;

	// ProbeBW, section 5.3.3.
	u64 cycle_stamp;
	u64 bw_probe_wait;
	u32 ack_phase;
	u32 rounds_since_probe_up;
	u32 is_bw_probe_sample;
	u32 prev_probe_too_high;
	u32 prev_probe_precautionary;
	u32 up_rounds;
	u32 up_acked;
	u32 up_acked_per_inc;

	// Round-trip times and ProbeRTT, sections 5.3.4 and 5.5.7.
	u64 min_rtt_stamp;
	u64 probe_rtt_min_stamp;
	u64 probe_rtt_done_stamp;
	u32 probe_rtt_min_delay;
	u32 probe_rtt_round_done;
	u32 idle_restart;

	// Recovery, sections 5.5.11 and 5.6.4.4.
	u32 in_loss_recovery;
	u32 is_saved;
	u32 prior_cwnd;
	u32 undo_state;
	u32 undo_inflight_shortterm;
	u32 undo_inflight_longterm;
	bandwidth undo_bw_shortterm;

	// Aggregation, section 5.5.9.
	u64 extra_acked_interval_start;
	u32 extra_acked_delivered;
	struct dated extra_acked_best[3];

	// What the connection had counted at the acknowledgement before.
	u32 seen_lost;
	u32 seen_delivered;
	// Delivered counts whose memories share a place are 2^this apart.
	u32 memory_bits;
	// The receiver was the limit, until so much is delivered.
	u32 rwnd_limited;
	u32 is_rwnd_limited;

#ifdef SMART
	// The round of smart_exit.rs, and its receive windows in segments.
	u32 seen_ce;
	u32 acked;
	u32 limited;
	u32 lost;
	u32 round_rtt;
	u32 has_marks;
	u32 rwnd;
	u32 rwnd_before;
	u32 rwnd_base;
	u32 flat_rounds;
	u32 is_waiting;
	u32 rwnd_at_exit;
	u32 last_startup_round;
#endif

	struct memory memories[MEMORIES];
};

// Maps are described by the types of these members (libbpf).
struct {
	int (*type)[BPF_MAP_TYPE_SK_STORAGE];
	int (*map_flags)[BPF_F_NO_PREALLOC];
	int *key;
	struct bbr *value;
} STATE section(".maps");

// The rate sample of one acknowledgement, section 4.1.
struct sample {
	u64 now;
	bandwidth delivery_rate;
	u32 has_data;
	// The interval was long enough for a rate.
	u32 has_rate;
	u32 delivered;
	u32 prior_delivered;
	u32 is_app_limited;
	u32 is_rwnd_limited;
	u32 tx_in_flight;
	u32 lost;
	// Of the acknowledgement itself.
	u32 acked;
	u32 newly_lost;
	u32 rtt;
	u32 prior_in_flight;
	u32 in_flight;
	u32 was_cwnd_full;
	u32 ca_state;
};

call u32 min_of(u32 a, u32 b)
{
	return a < b ? a : b;
}

call u32 max_of(u32 a, u32 b)
{
	return a > b ? a : b;
}

// Sums of counts that don't reach INFINITY by accident.
call u32 sum_of(u32 a, u32 b)
{
	return b > INFINITY - a ? INFINITY : a + b;
}

// Whether a count that wraps is not before another.
call bool is_reached(u32 count, u32 by)
{
	return (s32)(by - count) >= 0;
}

call bool is_probe_bw(u32 state)
{
	return state >= PROBE_BW_DOWN && state <= PROBE_BW_UP;
}

call bool is_probing_bw(u32 state)
{
	return state == STARTUP || state == PROBE_BW_REFILL || state == PROBE_BW_UP;
}

call u32 in_flight_of(struct tcp_sock *tp)
{
	return tp->packets_out - (tp->sacked_out + tp->lost_out) + tp->retrans_out;
}

call struct bbr *state_of(struct tcp_sock *tp)
{
	return sk_storage_get(&STATE, tp, 0, 0);
}

// Segments times microseconds that pass in `us`.
call u64 volume_in(bandwidth bw, u64 us)
{
	return bw * (us < LONGEST ? us : LONGEST) >> UNIT_BITS;
}

call u32 bdp_multiple(struct bbr *b, bandwidth bw, u32 gain)
{
	if (b->min_rtt == INFINITY)
		return b->initial_cwnd;
	return (volume_in(bw, b->min_rtt) * gain + 100 * SECOND - 1) / (100 * SECOND);
}

call u32 quantization_budget(struct bbr *b, u32 inflight_cap)
{
	u32 cap = max_of(max_of(inflight_cap, QUANTA_IN_HOSTS * b->send_quantum), MIN_PIPE_CWND);

	return b->state == PROBE_BW_UP ? sum_of(cap, 2) : cap;
}

call u32 inflight(struct bbr *b, bandwidth bw, u32 gain)
{
	return quantization_budget(b, bdp_multiple(b, bw, gain));
}

call u32 target_inflight(struct bbr *b)
{
	return min_of(bdp_multiple(b, b->bw, 100), b->cwnd);
}

call u32 inflight_with_headroom(struct bbr *b)
{
	u32 bound = b->inflight_longterm;
	u32 headroom;

	if (bound == INFINITY)
		return INFINITY;
	headroom = max_of((u64)bound * HEADROOM / 100, 1);
	return max_of(bound > headroom ? bound - headroom : 0, MIN_PIPE_CWND);
}

call bool is_inflight_too_high(u32 lost, u32 tx_in_flight)
{
	return (u64)lost * 100 > (u64)tx_in_flight * LOSS_THRESH;
}

call void start_round(struct bbr *b, struct tcp_sock *tp)
{
	b->next_round_delivered = tp->delivered;
}

call void reset_full_bw(struct bbr *b, bandwidth baseline)
{
	b->full_bw = baseline;
	b->full_bw_count = 0;
	b->full_bw_now = 0;
}

call void reset_short_term_model(struct bbr *b)
{
	b->bw_shortterm = NO_BOUND;
	b->inflight_shortterm = INFINITY;
}

call void enter(struct bbr *b, u32 state, u32 pacing_gain, u32 cwnd_gain)
{
	b->state = state;
	b->pacing_gain = pacing_gain;
	b->cwnd_gain = cwnd_gain;
}

// Pacing and window, section 5.6. Pacing rates are bytes per second.

call void set_send_quantum(struct bbr *b)
{
	u32 smss = b->smss ? b->smss : 1;
	u64 quantum = b->pacing_rate / 1000 / smss;

	if (quantum > MAX_QUANTUM / smss)
		quantum = MAX_QUANTUM / smss;
	b->send_quantum = max_of(quantum, MIN_QUANTUM);
}

call void init_pacing_rate(struct bbr *b, u32 srtt)
{
	u64 interval = srtt ? srtt : 1000;

	b->has_seen_rtt = srtt != 0;
	b->pacing_rate = (u64)b->initial_cwnd * b->smss * SECOND / 100 * STARTUP_PACING_GAIN / interval;
	set_send_quantum(b);
}

call u64 pacing_rate_of(struct bbr *b, bandwidth bw, u32 gain, u32 percent)
{
	return (bw * b->smss >> UNIT_BITS) * gain / 100 * percent / 100;
}

call void set_pacing_rate_with_gain(struct bbr *b, u32 gain)
{
	u64 rate = pacing_rate_of(b, b->bw, gain, PACED_PERCENT);

	if (b->full_bw_reached || rate > b->pacing_rate) {
		b->pacing_rate = rate;
		set_send_quantum(b);
	}
}

call u32 probe_rtt_cwnd(struct bbr *b)
{
	return max_of(bdp_multiple(b, b->bw, PROBE_RTT_CWND_GAIN), MIN_PIPE_CWND);
}

call void set_cwnd(struct bbr *b, struct tcp_sock *tp, struct sample *rs)
{
	u32 cap = bdp_multiple(b, b->bw, b->cwnd_gain);
	u32 max_inflight = quantization_budget(b, sum_of(cap, b->extra_acked));
	u32 grown = sum_of(b->cwnd, rs->acked);

	if (b->full_bw_reached)
		b->cwnd = min_of(grown, max_inflight);
	else if (b->cwnd < max_inflight || tp->delivered < b->initial_cwnd)
		b->cwnd = grown;
	b->cwnd = max_of(b->cwnd, MIN_PIPE_CWND);
	if (b->state == PROBE_RTT)
		b->cwnd = min_of(b->cwnd, probe_rtt_cwnd(b));

	cap = INFINITY;
	if (b->state == PROBE_BW_CRUISE || b->state == PROBE_RTT)
		cap = inflight_with_headroom(b);
	else if (is_probe_bw(b->state))
		cap = b->inflight_longterm;
	cap = max_of(min_of(cap, b->inflight_shortterm), MIN_PIPE_CWND);
	b->cwnd = min_of(b->cwnd, cap);
}

// Tells the kernel what follows.
call void answer(struct bbr *b, struct tcp_sock *tp)
{
	struct sock *sk = (struct sock *)tp;
	u64 rate = b->pacing_rate;

	if (rate > sk->sk_max_pacing_rate)
		rate = sk->sk_max_pacing_rate;
	sk->sk_pacing_rate = rate;
	tp->snd_cwnd = min_of(b->cwnd, tp->snd_cwnd_clamp);
}

// Recovery, section 5.6.4.4.

call void save_cwnd(struct bbr *b)
{
	u32 prior = b->in_loss_recovery || b->state == PROBE_RTT ? b->prior_cwnd : 0;

	b->prior_cwnd = max_of(prior, b->cwnd);
}

call void restore_cwnd(struct bbr *b)
{
	b->cwnd = max_of(b->cwnd, b->prior_cwnd);
}

call void save_state_upon_loss(struct bbr *b)
{
	if (b->is_saved)
		return;
	save_cwnd(b);
	b->is_saved = 1;
	b->undo_state = UNDO_NONE;
	b->undo_bw_shortterm = b->bw_shortterm;
	b->undo_inflight_shortterm = b->inflight_shortterm;
	b->undo_inflight_longterm = b->inflight_longterm;
}

call void follow_recovery(struct bbr *b, u32 ca_state)
{
	if (ca_state == TCP_CA_Recovery || ca_state == TCP_CA_Loss)
		return;
	if (b->in_loss_recovery) {
		b->in_loss_recovery = 0;
		restore_cwnd(b);
	}
	if (!b->is_loss_in_round)
		b->is_saved = 0;
}

// ProbeBW, section 5.3.3.

call void start_probe_bw_down(struct bbr *b, struct tcp_sock *tp, u64 now)
{
	b->is_loss_in_round = 0;
	b->bw_latest = 0;
	b->inflight_latest = 0;
	b->up_acked_per_inc = INFINITY;
	b->rounds_since_probe_up = prandom() & 1;
	b->bw_probe_wait = PROBE_WAIT_BASE + prandom() % PROBE_WAIT_RANDOM;
	b->cycle_stamp = now;
	b->ack_phase = PROBE_STOPPING;
	start_round(b, tp);
	enter(b, PROBE_BW_DOWN, PROBE_DOWN_PACING_GAIN, CWND_GAIN);
}

call void start_probe_bw_cruise(struct bbr *b)
{
	enter(b, PROBE_BW_CRUISE, 100, CWND_GAIN);
}

call void start_probe_bw_refill(struct bbr *b, struct tcp_sock *tp)
{
	reset_short_term_model(b);
	b->up_rounds = 0;
	b->up_acked = 0;
	b->prev_probe_precautionary = 0;
	b->ack_phase = REFILLING;
	start_round(b, tp);
	enter(b, PROBE_BW_REFILL, 100, CWND_GAIN);
}

call void raise_inflight_longterm_slope(struct bbr *b)
{
	u32 growth = 1u << (b->up_rounds & 31);

	b->up_rounds = min_of(b->up_rounds + 1, MAX_UP_ROUNDS);
	b->up_acked_per_inc = max_of(b->cwnd / growth, 1);
}

call void start_probe_bw_up(struct bbr *b, struct tcp_sock *tp, struct sample *rs)
{
	b->ack_phase = PROBE_STARTING;
	start_round(b, tp);
	reset_full_bw(b, rs->delivery_rate);
	enter(b, PROBE_BW_UP, PROBE_UP_PACING_GAIN, PROBE_UP_CWND_GAIN);
	raise_inflight_longterm_slope(b);
}

call bool is_time_to_probe_bw(struct bbr *b, u64 now)
{
	return now > b->cycle_stamp + b->bw_probe_wait ||
	       b->rounds_since_probe_up >= min_of(target_inflight(b), PROBE_MAX_ROUNDS);
}

call bool is_time_to_cruise(struct bbr *b, u32 in_flight)
{
	return in_flight <= inflight_with_headroom(b) && in_flight <= inflight(b, b->max_bw, 100);
}

call bool is_time_to_go_down(struct bbr *b, struct sample *rs)
{
	if (b->prev_probe_too_high && rs->prior_in_flight >= b->inflight_longterm) {
		b->prev_probe_precautionary = 1;
		return true;
	}
	if (rs->was_cwnd_full && b->cwnd >= b->inflight_longterm) {
		reset_full_bw(b, rs->delivery_rate);
		return false;
	}
	return b->full_bw_now;
}

call void probe_inflight_longterm_upward(struct bbr *b, struct sample *rs)
{
	if (!rs->was_cwnd_full || b->cwnd < b->inflight_longterm)
		return;
	b->up_acked += rs->acked;
	if (b->up_acked_per_inc && b->up_acked >= b->up_acked_per_inc) {
		u32 delta = b->up_acked / b->up_acked_per_inc;

		b->up_acked -= delta * b->up_acked_per_inc;
		b->inflight_longterm = sum_of(b->inflight_longterm, delta);
	}
	if (b->round_start)
		raise_inflight_longterm_slope(b);
}

// True if it changed the state.
call bool adapt_long_term_model(struct bbr *b, struct tcp_sock *tp, struct sample *rs)
{
	if (b->ack_phase == PROBE_STARTING && b->round_start)
		b->ack_phase = PROBE_FEEDBACK;
	if (b->ack_phase == PROBE_STOPPING && b->round_start) {
		b->is_bw_probe_sample = 0;
		b->ack_phase = INIT;
		if (is_probe_bw(b->state)) {
			if (!rs->is_app_limited) {
				b->max_bw_previous = b->max_bw_present;
				b->max_bw_present = 0;
			}
			if (b->prev_probe_precautionary && !b->prev_probe_too_high) {
				start_probe_bw_refill(b, tp);
				return true;
			}
		}
	}
	// Of no packet that has arrived, what was in flight is not known to be safe.
	if (rs->has_data && !is_inflight_too_high(rs->lost, rs->tx_in_flight) && b->inflight_longterm != INFINITY) {
		b->inflight_longterm = max_of(b->inflight_longterm, rs->tx_in_flight);
		if (b->state == PROBE_BW_UP)
			probe_inflight_longterm_upward(b, rs);
	}
	return false;
}

call void update_probe_bw_cycle_phase(struct bbr *b, struct tcp_sock *tp, struct sample *rs)
{
	if (!b->full_bw_reached || adapt_long_term_model(b, tp, rs))
		return;
	if (b->state == PROBE_BW_DOWN) {
		if (is_time_to_probe_bw(b, rs->now))
			start_probe_bw_refill(b, tp);
		else if (is_time_to_cruise(b, rs->in_flight))
			start_probe_bw_cruise(b);
	} else if (b->state == PROBE_BW_CRUISE) {
		if (is_time_to_probe_bw(b, rs->now))
			start_probe_bw_refill(b, tp);
	} else if (b->state == PROBE_BW_REFILL) {
		if (b->round_start) {
			b->is_bw_probe_sample = 1;
			start_probe_bw_up(b, tp, rs);
		}
	} else if (b->state == PROBE_BW_UP) {
		if (is_time_to_go_down(b, rs)) {
			b->prev_probe_too_high = 0;
			start_probe_bw_down(b, tp, rs->now);
		}
	}
}

// Losses, section 5.5.10.

call void handle_inflight_too_high(struct bbr *b, struct tcp_sock *tp, struct sample *rs, u32 tx_in_flight)
{
	b->prev_probe_too_high = 1;
	b->is_bw_probe_sample = 0;
	if (!rs->is_app_limited)
		b->inflight_longterm = max_of(tx_in_flight, (u64)target_inflight(b) * BETA / 100);
	if (b->state == PROBE_BW_UP) {
		b->undo_state = UNDO_PROBE_BW_UP;
		start_probe_bw_down(b, tp, rs->now);
	}
}

// InflightAtLoss.
call u32 inflight_at_loss(u32 lost, u32 tx_in_flight)
{
	u64 before = tx_in_flight ? tx_in_flight - 1 : 0;
	s64 left = LOSS_THRESH * (s64)before - 100 * ((s64)lost - 1);

	return left > 0 ? before + (u64)left / (100 - LOSS_THRESH) : before;
}

// HandleLostPacket for all that the kernel has marked since the acknowledgement before. Which ones these are it doesn't say. They left shortly
// before the newest packet that is delivered, whose memory stands for theirs.
call void handle_lost_packets(struct bbr *b, struct tcp_sock *tp, struct sample *rs)
{
	u32 first;

	if (!rs->newly_lost)
		return;
	if (!b->is_loss_in_round) {
		b->loss_round_delivered = tp->delivered;
		save_state_upon_loss(b);
	}
	b->is_loss_in_round = 1;
	if (!b->is_bw_probe_sample || !is_inflight_too_high(rs->lost, rs->tx_in_flight))
		return;
	// The first of them that was too much.
	first = rs->lost > rs->newly_lost ? rs->lost - rs->newly_lost + 1 : 1;
	first = max_of(first, (u64)rs->tx_in_flight * LOSS_THRESH / 100 + 1);
	handle_inflight_too_high(b, tp, rs, inflight_at_loss(first, rs->tx_in_flight));
}

call void update_latest_delivery_signals(struct bbr *b, struct tcp_sock *tp, struct sample *rs)
{
	b->loss_round_start = 0;
	if (!rs->has_data)
		return;
	if (rs->delivery_rate > b->bw_latest)
		b->bw_latest = rs->delivery_rate;
	b->inflight_latest = max_of(b->inflight_latest, rs->delivered);
	if (is_reached(b->loss_round_delivered, rs->prior_delivered)) {
		b->loss_round_delivered = tp->delivered;
		b->loss_round_start = 1;
	}
}

call void adapt_lower_bounds_from_congestion(struct bbr *b)
{
	bandwidth kept;

	if (is_probing_bw(b->state) || !b->is_loss_in_round)
		return;
	if (b->bw_shortterm == NO_BOUND)
		b->bw_shortterm = b->max_bw;
	if (b->inflight_shortterm == INFINITY)
		b->inflight_shortterm = b->cwnd;
	kept = b->bw_shortterm * BETA / 100;
	b->bw_shortterm = b->bw_latest > kept ? b->bw_latest : kept;
	b->inflight_shortterm = max_of(b->inflight_latest, (u64)b->inflight_shortterm * BETA / 100);
}

call void update_congestion_signals(struct bbr *b, struct tcp_sock *tp, struct sample *rs)
{
	b->round_start = rs->has_data && is_reached(b->next_round_delivered, rs->prior_delivered);
	if (b->round_start) {
		start_round(b, tp);
		b->round_count++;
		b->rounds_since_probe_up++;
	}
	if (rs->has_rate && (rs->delivery_rate >= b->max_bw || !rs->is_app_limited)) {
		if (rs->delivery_rate > b->max_bw_present)
			b->max_bw_present = rs->delivery_rate;
		b->max_bw = b->max_bw_present > b->max_bw_previous ? b->max_bw_present : b->max_bw_previous;
	}
	if (b->loss_round_start) {
		adapt_lower_bounds_from_congestion(b);
		b->is_loss_in_round = 0;
	}
}

// Aggregation, section 5.5.9.

call u32 age(struct bbr *b, u32 index)
{
	return b->round_count - b->extra_acked_best[index].round;
}

call void promote(struct bbr *b, struct dated new)
{
	b->extra_acked_best[0] = b->extra_acked_best[1];
	b->extra_acked_best[1] = b->extra_acked_best[2];
	b->extra_acked_best[2] = new;
}

call void filter_extra_acked(struct bbr *b, u32 window, u32 value)
{
	struct dated new = { b->round_count, value };
	struct dated *best = b->extra_acked_best;

	if (value >= best[0].value || age(b, 2) > window) {
		best[0] = best[1] = best[2] = new;
	} else {
		if (value >= best[1].value)
			best[1] = best[2] = new;
		else if (value >= best[2].value)
			best[2] = new;
		if (age(b, 0) > window) {
			promote(b, new);
			if (age(b, 0) > window)
				promote(b, new);
		} else if (best[1].round == best[0].round && age(b, 0) > window / 4) {
			best[1] = best[2] = new;
		} else if (best[2].round == best[1].round && age(b, 0) > window / 2) {
			best[2] = new;
		}
	}
	b->extra_acked = best[0].value;
}

call void update_ack_aggregation(struct bbr *b, struct sample *rs)
{
	u64 expected, acked, extra;

	if (!rs->acked)
		return;
	expected = volume_in(b->bw, rs->now - b->extra_acked_interval_start);
	if (b->extra_acked_delivered * SECOND <= expected) {
		b->extra_acked_interval_start = rs->now;
		b->extra_acked_delivered = 0;
		expected = 0;
	}
	b->extra_acked_delivered = sum_of(b->extra_acked_delivered, rs->acked);
	acked = b->extra_acked_delivered * SECOND;
	extra = acked > expected ? (acked - expected) / SECOND : 0;
	if (extra > b->cwnd)
		extra = b->cwnd;
	filter_extra_acked(b, b->full_bw_reached ? EXTRA_ACKED_WINDOW : 1, extra);
}

// Startup and Drain, sections 5.3.1 and 5.3.2.

call void enter_startup(struct bbr *b)
{
	enter(b, STARTUP, STARTUP_PACING_GAIN, CWND_GAIN);
}

call void enter_drain(struct bbr *b)
{
	b->drain_start_round = b->round_count;
	enter(b, DRAIN, DRAIN_PACING_GAIN, CWND_GAIN);
}

call void check_full_bw_reached(struct bbr *b, struct sample *rs)
{
	if (b->full_bw_now || !b->round_start || rs->is_app_limited || !rs->has_rate)
		return;
	if (rs->delivery_rate * 100 >= b->full_bw * FULL_BW_THRESH) {
		reset_full_bw(b, rs->delivery_rate);
		return;
	}
	if (b->is_plateau_held)
		return;
	b->full_bw_count++;
	b->full_bw_now = b->full_bw_count >= FULL_BW_ROUNDS;
	b->full_bw_reached |= b->full_bw_now;
}

call void check_startup_high_loss(struct bbr *b, struct sample *rs)
{
	u32 loss_events;

	if (b->full_bw_reached)
		return;
	b->loss_events += rs->newly_lost > 0;
	if (!b->loss_round_start)
		return;
	loss_events = b->loss_events;
	b->loss_events = 0;
	if (rs->ca_state == TCP_CA_Recovery && loss_events >= FULL_LOSS_CNT &&
	    is_inflight_too_high(rs->lost, rs->tx_in_flight)) {
		b->undo_state = UNDO_STARTUP;
		b->full_bw_reached = 1;
		b->full_bw_now = 1;
		b->inflight_longterm = max_of(bdp_multiple(b, b->bw, 100), b->inflight_latest);
	}
}

call void check_startup_done(struct bbr *b, struct sample *rs)
{
	check_startup_high_loss(b, rs);
	if (b->state == STARTUP && b->full_bw_reached)
		enter_drain(b);
}

call void check_drain_done(struct bbr *b, struct tcp_sock *tp, struct sample *rs)
{
	if (b->state != DRAIN)
		return;
	if (rs->in_flight <= inflight(b, b->bw, 100) || b->round_count - b->drain_start_round > DRAIN_MAX_ROUNDS)
		start_probe_bw_down(b, tp, rs->now);
}

// The smallest round-trip time, section 5.5.7. True when ProbeRTT is due.
call bool update_min_rtt(struct bbr *b, struct sample *rs)
{
	bool is_due = rs->now > b->probe_rtt_min_stamp + PROBE_RTT_INTERVAL;

	if (rs->rtt != INFINITY && (is_due || rs->rtt < b->probe_rtt_min_delay)) {
		b->probe_rtt_min_delay = rs->rtt;
		b->probe_rtt_min_stamp = rs->now;
	}
	if (b->probe_rtt_min_delay != INFINITY &&
	    (rs->now > b->min_rtt_stamp + MIN_RTT_WINDOW || b->probe_rtt_min_delay < b->min_rtt)) {
		b->min_rtt = b->probe_rtt_min_delay;
		b->min_rtt_stamp = b->probe_rtt_min_stamp;
	}
	return is_due;
}

// ProbeRTT, section 5.3.4.

call void check_probe_rtt_done(struct bbr *b, struct tcp_sock *tp, u64 now)
{
	if (b->probe_rtt_done_stamp == NEVER || now <= b->probe_rtt_done_stamp)
		return;
	b->probe_rtt_min_stamp = now;
	restore_cwnd(b);
	reset_short_term_model(b);
	if (b->full_bw_reached) {
		start_probe_bw_down(b, tp, now);
		start_probe_bw_cruise(b);
	} else {
		enter_startup(b);
	}
}

call void check_probe_rtt(struct bbr *b, struct tcp_sock *tp, struct sample *rs, bool is_due)
{
	if (b->state != PROBE_RTT && is_due && !b->idle_restart) {
		save_cwnd(b);
		enter(b, PROBE_RTT, 100, PROBE_RTT_CWND_GAIN);
		b->probe_rtt_done_stamp = NEVER;
		b->probe_rtt_round_done = 0;
		b->ack_phase = PROBE_STOPPING;
		start_round(b, tp);
	}
	if (b->state == PROBE_RTT) {
		// MarkConnectionAppLimited.
		tp->app_limited = max_of(tp->delivered + rs->in_flight, 1);
		if (b->probe_rtt_done_stamp == NEVER) {
			if (rs->in_flight <= probe_rtt_cwnd(b)) {
				b->probe_rtt_done_stamp = rs->now + PROBE_RTT_DURATION;
				b->probe_rtt_round_done = 0;
				start_round(b, tp);
			}
		} else {
			b->probe_rtt_round_done |= b->round_start;
			if (b->probe_rtt_round_done)
				check_probe_rtt_done(b, tp, rs->now);
		}
	}
	if (rs->has_data && rs->delivered)
		b->idle_restart = 0;
}

// What a packet that leaves now will have with it, and what the newest that is delivered had: see `struct memory`.

call struct memory *memory_at(struct bbr *b, u32 delivered)
{
	return &b->memories[(delivered >> (b->memory_bits & 31)) % MEMORIES];
}

call void remember(struct bbr *b, struct tcp_sock *tp)
{
	struct memory *now = memory_at(b, tp->delivered);
	u32 in_flight = in_flight_of(tp);

	if (now->delivered != tp->delivered || now->most_in_flight != INFINITY)
		now->least_in_flight = in_flight;
	now->delivered = tp->delivered;
	now->lost = tp->lost;
	now->most_in_flight = INFINITY;
	now->is_rwnd_limited = b->is_rwnd_limited;
	b->seen_delivered = tp->delivered;
}

// Sets what the packet had with it that is the newest delivered one.
call void recall(struct bbr *b, struct tcp_sock *tp, struct sample *rs)
{
	struct memory *last = memory_at(b, b->seen_delivered);
	struct memory *sent;
	u32 apart;

	// Since the acknowledgement before as much was in flight as before this one.
	if (last->delivered == b->seen_delivered)
		last->most_in_flight = rs->prior_in_flight;
	// A flight must not come around to its own beginning.
	if (rs->prior_in_flight >> (b->memory_bits & 31) >= MEMORIES / 2 && b->memory_bits < 16)
		b->memory_bits++;
	rs->lost = rs->newly_lost;
	rs->tx_in_flight = rs->has_data ? rs->delivered + rs->lost : rs->prior_in_flight;
	if (!rs->has_data)
		return;
	sent = memory_at(b, rs->prior_delivered);
	apart = sent->delivered - rs->prior_delivered;
	if ((s32)apart < 0)
		apart = -apart;
	if (apart >> (b->memory_bits & 31))
		return;
	rs->lost = tp->lost - sent->lost;
	rs->is_rwnd_limited = sent->is_rwnd_limited;
	// What is delivered or lost since it left was in flight then, but for holes that are not yet known as losses.
	rs->tx_in_flight = max_of(rs->delivered + rs->lost, sum_of(sent->least_in_flight, 1));
	rs->tx_in_flight = min_of(rs->tx_in_flight, max_of(sent->most_in_flight, 1));
}

// The receiver is the limit until all is delivered that is in flight at the moment.
call void follow_receiver(struct bbr *b, struct tcp_sock *tp, struct sample *rs)
{
	if (b->is_rwnd_limited && !is_reached(tp->delivered, b->rwnd_limited))
		b->is_rwnd_limited = 0;
	if (bits_of(tp, chrono_type) == TCP_CHRONO_RWND_LIMITED) {
		b->is_rwnd_limited = 1;
		b->rwnd_limited = tp->delivered + rs->in_flight;
	}
}

#ifdef SMART
// BBR-n+: when STARTUP waits for a receiver, when it ends because of one, and when it begins again (crates/cca/src/bbr_n_plus).

call bool is_receiver_limited(struct bbr *b)
{
	return b->limited && (u64)b->limited * 100 >= (u64)b->acked * RWND_ROUND_SHARE;
}

call bool shows_no_queue(struct bbr *b)
{
	bool is_short = b->round_rtt == INFINITY || b->min_rtt == INFINITY ||
			(u64)b->round_rtt * 100 <= (u64)b->min_rtt * RWND_RTT_FACTOR;

	return is_short && (u64)b->lost * 100 <= ((u64)b->acked + b->lost) * RWND_LOSS_THRESH && !b->has_marks;
}

call void hold_plateau(struct bbr *b)
{
	b->is_plateau_held = is_receiver_limited(b) && shows_no_queue(b);
}

call void end_smart_round(struct bbr *b, struct tcp_sock *tp, struct sample *rs)
{
	bool is_limited = is_receiver_limited(b);
	u32 rwnd = b->rwnd;

	b->is_waiting = is_limited && shows_no_queue(b);
	b->acked = b->limited = b->lost = b->has_marks = 0;
	b->round_rtt = INFINITY;
	b->rwnd_before = rwnd;
	if (!is_limited || (u64)rwnd * 100 >= (u64)b->rwnd_base * RWND_GROWTH) {
		b->rwnd_base = rwnd;
		b->flat_rounds = 0;
	} else {
		b->flat_rounds++;
	}
	if (b->flat_rounds < RWND_ROUNDS || b->state != STARTUP)
		return;
	b->full_bw_reached = 1;
	b->full_bw_now = 1;
	if (rs->in_flight > bdp_multiple(b, b->bw, 100)) {
		enter_drain(b);
	} else {
		start_probe_bw_down(b, tp, rs->now);
		start_probe_bw_cruise(b);
	}
	b->rwnd_at_exit = rwnd;
}

call void begin_startup_again(struct bbr *b, struct tcp_sock *tp)
{
	if (b->rwnd_at_exit == INFINITY || (u64)b->rwnd * 100 < (u64)b->rwnd_at_exit * RWND_GROWTH ||
	    b->round_count - b->last_startup_round < REARM_ROUNDS || b->inflight_longterm != INFINITY ||
	    !is_probe_bw(b->state))
		return;
	reset_full_bw(b, 0);
	b->full_bw_reached = 0;
	b->is_bw_probe_sample = 0;
	reset_short_term_model(b);
	start_round(b, tp);
	enter_startup(b);
	b->last_startup_round = b->round_count;
	b->rwnd_at_exit = INFINITY;
	b->rwnd_base = b->rwnd;
	b->flat_rounds = 0;
}

call void follow_smart_exit(struct bbr *b, struct tcp_sock *tp, struct sample *rs)
{
	if (b->round_start)
		end_smart_round(b, tp, rs);
	b->acked += rs->acked;
	if (rs->is_rwnd_limited)
		b->limited += rs->acked;
	b->lost += rs->newly_lost;
	b->round_rtt = min_of(b->round_rtt, rs->rtt);
	b->has_marks |= tp->delivered_ce != b->seen_ce;
	b->seen_ce = tp->delivered_ce;
	b->rwnd = tp->snd_wnd / (b->smss ? b->smss : 1);
	begin_startup_again(b, tp);
}

call void bound_burst(struct bbr *b)
{
	u64 fastest = pacing_rate_of(b, b->max_bw, STARTUP_PACING_GAIN, 100);
	u64 most = (u64)b->rwnd_before * RWND_HEADROOM / 100;

	if (!b->is_waiting || b->state != STARTUP)
		return;
	if (most < b->initial_cwnd)
		most = b->initial_cwnd;
	if (b->cwnd > most)
		b->cwnd = max_of(most, MIN_PIPE_CWND);
	if (fastest && b->pacing_rate > fastest) {
		b->pacing_rate = fastest;
		set_send_quantum(b);
	}
}
#endif

// The round-trip time of the newest packet that was delivered. Of one that was repeated the kernel takes it from the timestamps that came back
// (RFC 7323), whose clock has whole milliseconds: such a time can be a millisecond too short, and would be the smallest one ever after.
call u32 rtt_of(const struct rate_sample *kernel)
{
	u32 rtt = kernel->rtt_us;

	return kernel->rtt_us < 0 || rtt % 1000 == 0 ? INFINITY : rtt;
}

// A socket for whose state there is no memory has its initial window, and after a timeout grows to it again.
call void go_without_state(struct tcp_sock *tp, u32 acked)
{
	u32 most = min_of(INITIAL_WINDOW, tp->snd_cwnd_clamp);

	if (tp->snd_cwnd < most)
		tp->snd_cwnd = min_of(sum_of(tp->snd_cwnd, acked), most);
}

// What a socket has is its own until it is closed, also if it gets another control or another connection in between.
call void forget(struct bbr *b)
{
	u64 *words = (void *)b;
	u32 at;

	for (at = 0; at < sizeof(*b) / sizeof(*words); at++) {
		words[at] = 0;
		// Or else the compiler calls memset, which programs have not.
		asm volatile("" ::: "memory");
	}
}

// What the kernel calls. `context` has the arguments.

section("struct_ops/init") int on_init(u64 *context)
{
	struct tcp_sock *tp = (void *)context[0];
	struct sock *sk = (void *)context[0];
	struct bbr *b = sk_storage_get(&STATE, tp, 0, BPF_SK_STORAGE_GET_F_CREATE);
	u64 now = tp->tcp_mstamp;
	u32 srtt = tp->srtt_us >> 3;
	// See `rtt_of`: so it is of a SYN that was repeated, or of one whose time only its timestamp tells.
	u32 rtt = tp->srtt_us % 8000 ? srtt : INFINITY;

	if (!b)
		return 0;
	forget(b);
	b->smss = tp->mss_cache;
	b->initial_cwnd = tp->snd_cwnd;
	b->cwnd = tp->snd_cwnd;
	b->min_rtt = b->probe_rtt_min_delay = rtt;
	b->min_rtt_stamp = b->probe_rtt_min_stamp = b->cycle_stamp = b->extra_acked_interval_start = now;
	b->probe_rtt_done_stamp = NEVER;
	b->inflight_longterm = INFINITY;
	b->up_acked_per_inc = INFINITY;
	b->undo_bw_shortterm = 0;
	b->seen_lost = tp->lost;
	b->next_round_delivered = b->loss_round_delivered = tp->delivered;
	reset_short_term_model(b);
	enter_startup(b);
#ifdef SMART
	b->seen_ce = tp->delivered_ce;
	b->rwnd = b->rwnd_before = b->rwnd_at_exit = b->round_rtt = INFINITY;
#endif
	init_pacing_rate(b, srtt);
	remember(b, tp);
	sk->sk_pacing_rate = b->pacing_rate;
	if (sk->sk_pacing_status == SK_PACING_NONE)
		sk->sk_pacing_status = SK_PACING_NEEDED;
	// There is no slow start; nor is there a threshold.
	tp->snd_ssthresh = TCP_INFINITE_SSTHRESH;
	return 0;
}

section("struct_ops/cong_control") int on_ack(u64 *context)
{
	struct tcp_sock *tp = (void *)context[0];
	const struct rate_sample *kernel = (void *)context[RATE];
	struct inet_connection_sock *icsk = (void *)tp;
	struct bbr *b = state_of(tp);
	struct sample rs = {};
	bool is_due;

	if (!b) {
		go_without_state(tp, kernel->acked_sacked);
		return 0;
	}
	rs.now = tp->tcp_mstamp;
	rs.acked = kernel->acked_sacked;
	rs.newly_lost = tp->lost - b->seen_lost;
	rs.rtt = rtt_of(kernel);
	rs.prior_in_flight = kernel->prior_in_flight;
	rs.in_flight = in_flight_of(tp);
	rs.was_cwnd_full = bits_of(tp, is_cwnd_limited);
	rs.ca_state = bits_of(icsk, icsk_ca_state);
	rs.has_data = kernel->prior_mstamp != 0 && kernel->delivered >= 0;
	if (rs.has_data) {
		rs.delivered = kernel->delivered;
		rs.prior_delivered = kernel->prior_delivered;
		rs.is_app_limited = kernel->is_app_limited;
		if (kernel->interval_us > 0) {
			rs.has_rate = 1;
			rs.delivery_rate = (u64)rs.delivered * (SECOND << UNIT_BITS) / (u64)kernel->interval_us;
		}
	}
	b->seen_lost = tp->lost;
	b->smss = tp->mss_cache;
	recall(b, tp, &rs);
	follow_receiver(b, tp, &rs);

	handle_lost_packets(b, tp, &rs);
#ifdef SMART
	hold_plateau(b);
#endif
	follow_recovery(b, rs.ca_state);
	update_latest_delivery_signals(b, tp, &rs);
	update_congestion_signals(b, tp, &rs);
	update_ack_aggregation(b, &rs);
	check_full_bw_reached(b, &rs);
	check_startup_done(b, &rs);
	check_drain_done(b, tp, &rs);
	update_probe_bw_cycle_phase(b, tp, &rs);
	is_due = update_min_rtt(b, &rs);
	check_probe_rtt(b, tp, &rs, is_due);
	if (b->loss_round_start) {
		b->bw_latest = rs.delivery_rate;
		b->inflight_latest = rs.delivered;
	}
	b->bw = b->max_bw < b->bw_shortterm ? b->max_bw : b->bw_shortterm;
#ifdef SMART
	follow_smart_exit(b, tp, &rs);
#endif
	if (!b->has_seen_rtt && tp->srtt_us)
		init_pacing_rate(b, tp->srtt_us >> 3);
	set_pacing_rate_with_gain(b, b->pacing_gain);
	set_cwnd(b, tp, &rs);
#ifdef SMART
	bound_burst(b);
#endif
	remember(b, tp);
	answer(b, tp);
	return 0;
}

// There is no threshold.
section("struct_ops/ssthresh") int on_threshold(u64 *context)
{
	return TCP_INFINITE_SSTHRESH;
}

// Recovery begins; or OnEnterRTO: then the kernel has marked what is lost, and lowered its window.
section("struct_ops/set_state") int on_state(u64 *context)
{
	struct tcp_sock *tp = (void *)context[0];
	struct bbr *b = state_of(tp);
	struct sample rs = {};

	if (!b)
		return 0;
	if ((u8)context[1] == TCP_CA_Recovery) {
		save_state_upon_loss(b);
		b->in_loss_recovery = 1;
	}
	if ((u8)context[1] != TCP_CA_Loss)
		return 0;
	rs.now = tp->tcp_mstamp;
	rs.newly_lost = rs.lost = tp->lost - b->seen_lost;
	rs.tx_in_flight = tp->packets_out;
	// Until all is delivered that was in flight when the application had no more, the kernel marks what leaves.
	rs.is_app_limited = tp->app_limited != 0;
	b->seen_lost = tp->lost;
	handle_lost_packets(b, tp, &rs);
	save_state_upon_loss(b);
	save_cwnd(b);
	b->in_loss_recovery = 1;
	b->cwnd = in_flight_of(tp) + 1;
	return 0;
}

// HandleSpuriousLossDetection, section 5.5.11.
section("struct_ops/undo_cwnd") int on_undo(u64 *context)
{
	struct tcp_sock *tp = (void *)context[0];
	struct bbr *b = state_of(tp);
	u32 undo;

	if (!b)
		return tp->snd_cwnd;
	undo = b->undo_state;
	restore_cwnd(b);
	b->is_loss_in_round = 0;
	reset_full_bw(b, 0);
	if (b->undo_bw_shortterm > b->bw_shortterm)
		b->bw_shortterm = b->undo_bw_shortterm;
	b->inflight_shortterm = max_of(b->inflight_shortterm, b->undo_inflight_shortterm);
	b->inflight_longterm = max_of(b->inflight_longterm, b->undo_inflight_longterm);
	b->is_saved = 0;
	b->undo_state = UNDO_NONE;
	if (undo == UNDO_STARTUP && b->state != STARTUP) {
		b->full_bw_reached = 0;
		if (b->state != PROBE_RTT)
			enter_startup(b);
	} else if (undo == UNDO_PROBE_BW_UP && b->state != PROBE_BW_UP && b->state != PROBE_RTT) {
		start_probe_bw_refill(b, tp);
	}
	return min_of(b->cwnd, tp->snd_cwnd_clamp);
}

// HandleRestartFromIdle, section 5.4.1: it sends with nothing in flight.
section("struct_ops/cwnd_event") int on_event(u64 *context)
{
	struct tcp_sock *tp = (void *)context[0];
	struct bbr *b = state_of(tp);

	if (!b || (u32)context[1] != CA_EVENT_TX_START)
		return 0;
	if (!tp->app_limited && b->state != PROBE_RTT)
		return 0;
	b->idle_restart = 1;
	b->extra_acked_interval_start = tp->tcp_mstamp;
	b->extra_acked_delivered = 0;
	if (is_probe_bw(b->state))
		set_pacing_rate_with_gain(b, 100);
	else if (b->state == PROBE_RTT)
		check_probe_rtt_done(b, tp, tp->tcp_mstamp);
	answer(b, tp);
	return 0;
}

// Windows for which a send buffer has room: a third one for recovery.
section("struct_ops/sndbuf_expand") int on_sndbuf(u64 *context)
{
	return 3;
}

struct tcp_congestion_ops NAME section(".struct_ops") = {
	.init = (void *)on_init,
	.cong_control = (void *)on_ack,
	.ssthresh = (void *)on_threshold,
	.set_state = (void *)on_state,
	.undo_cwnd = (void *)on_undo,
	.cwnd_event = (void *)on_event,
	.sndbuf_expand = (void *)on_sndbuf,
	.name = as_text(NAME),
};
