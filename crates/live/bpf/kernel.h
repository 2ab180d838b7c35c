// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Of the kernel's types what bbr.bpf.c uses. Where a member is in the running kernel's is found by its name when the program is loaded.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;
typedef long long s64;
typedef _Bool bool;
#define true 1
#define false 0

#define section(name) __attribute__((section(name), used))
#define found_by_name __attribute__((preserve_access_index))

struct sock {
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
	u32 sk_pacing_status;
} found_by_name;

struct inet_connection_sock {
	u8 icsk_ca_state : 5;
} found_by_name;

struct tcp_sock {
	u32 app_limited;
	u8 chrono_type : 2;
	u32 delivered;
	u32 delivered_ce;
	u8 is_cwnd_limited : 1;
	u32 lost;
	u32 lost_out;
	u32 mss_cache;
	u32 packets_out;
	u32 retrans_out;
	u32 sacked_out;
	u32 snd_cwnd;
	u32 snd_cwnd_clamp;
	u32 snd_ssthresh;
	u32 snd_wnd;
	u32 srtt_us;
	u64 tcp_mstamp;
} found_by_name;

struct rate_sample {
	u64 prior_mstamp;
	u32 prior_delivered;
	s32 delivered;
	long interval_us;
	long rtt_us;
	u32 acked_sacked;
	u32 prior_in_flight;
	bool is_app_limited;
} found_by_name;

struct tcp_congestion_ops {
	void (*init)(void);
	void (*cong_control)(void);
	void (*ssthresh)(void);
	void (*set_state)(void);
	void (*undo_cwnd)(void);
	void (*cwnd_event)(void);
	void (*sndbuf_expand)(void);
	char name[16];
} found_by_name;

enum {
	TCP_CA_Recovery = 3,
	TCP_CA_Loss = 4,
	CA_EVENT_TX_START = 0,
	TCP_CHRONO_RWND_LIMITED = 2,
	TCP_INFINITE_SSTHRESH = 0x7fffffff,
	SK_PACING_NONE = 0,
	SK_PACING_NEEDED = 1,
	BPF_MAP_TYPE_SK_STORAGE = 24,
	BPF_F_NO_PREALLOC = 1,
	BPF_SK_STORAGE_GET_F_CREATE = 1,
};

// Helpers of the kernel, by their numbers (linux/bpf.h).
static void *(*sk_storage_get)(void *map, void *sk, void *value, u64 flags) = (void *)107;
static u32 (*prandom)(void) = (void *)7;

// A member that may have bits of its own, or be whole: where it is, how many bytes are read, and by how much these are shifted there and back.
#define bits_of(pointer, member)                                                                  \
	({                                                                                        \
		const void *at = (const void *)pointer + __builtin_preserve_field_info(pointer->member, 0); \
		u64 value = 0;                                                                    \
		asm("" : "=r"(at) : "0"(at));                                                     \
		switch (__builtin_preserve_field_info(pointer->member, 1)) {                      \
		case 1: value = *(const u8 *)at; break;                                           \
		case 2: value = *(const u16 *)at; break;                                          \
		case 4: value = *(const u32 *)at; break;                                          \
		case 8: value = *(const u64 *)at; break;                                          \
		}                                                                                 \
		value <<= __builtin_preserve_field_info(pointer->member, 4);                      \
		value >> __builtin_preserve_field_info(pointer->member, 5);                       \
	})
