//! The lines of `tc -s qdisc show` for CAKE.

use alloc::vec;
use alloc::vec::Vec;

use sojourn_core::Queued;

use super::Cake;
use super::tin::Tin;

/// The columns of a tin, under its title.
macro_rules! columns {
    ($title:literal) => {
        [
            concat!($title, " thresh"),
            concat!($title, " target"),
            concat!($title, " interval"),
            concat!($title, " pk_delay"),
            concat!($title, " av_delay"),
            concat!($title, " sp_delay"),
            concat!($title, " backlog"),
            concat!($title, " pkts"),
            concat!($title, " bytes"),
            concat!($title, " way_inds"),
            concat!($title, " way_miss"),
            concat!($title, " way_cols"),
            concat!($title, " drops"),
            concat!($title, " marks"),
            concat!($title, " ack_drop"),
            concat!($title, " sp_flows"),
            concat!($title, " bk_flows"),
            concat!($title, " un_flows"),
            concat!($title, " max_len"),
            concat!($title, " quantum"),
        ]
    };
}

const COLUMNS: usize = 20;

static TITLED: [(&str, [&str; COLUMNS]); 12] = [
    ("Bulk", columns!("Bulk")),
    ("Best Effort", columns!("Best Effort")),
    ("Video", columns!("Video")),
    ("Voice", columns!("Voice")),
    ("Tin 0", columns!("Tin 0")),
    ("Tin 1", columns!("Tin 1")),
    ("Tin 2", columns!("Tin 2")),
    ("Tin 3", columns!("Tin 3")),
    ("Tin 4", columns!("Tin 4")),
    ("Tin 5", columns!("Tin 5")),
    ("Tin 6", columns!("Tin 6")),
    ("Tin 7", columns!("Tin 7")),
];

pub(crate) fn lines<P: Queued>(cake: &Cake<P>) -> Vec<(&'static str, u64)> {
    let mut lines = vec![
        ("overlimits", cake.shaper.overlimits),
        ("memory_used", cake.store.totals.buffer_max_used),
        ("memory_limit", cake.buffer_limit),
    ];
    for (index, title) in cake.config.priority.shown() {
        let names = TITLED.iter().find(|(titled, _)| titled == title);
        if let Some((_, names)) = names {
            lines.extend(names.iter().copied().zip(values(&cake.tins[*index])));
        }
    }
    lines
}

/// In the order of [`columns`].
fn values(tin: &Tin) -> [u64; COLUMNS] {
    let stats = &tin.stats;
    [
        if tin.rate.is_unlimited() { 0 } else { tin.rate.as_bps() },
        tin.cobalt.target.as_nanos(),
        tin.cobalt.interval.as_nanos(),
        stats.peak_delay,
        stats.average_delay,
        stats.base_delay,
        tin.backlog,
        stats.packets,
        stats.bytes,
        stats.way_hits,
        stats.way_misses,
        stats.way_collisions,
        stats.drops,
        stats.marks,
        stats.ack_drops,
        u64::from(tin.sparse + tin.decaying),
        u64::from(tin.bulk),
        u64::from(tin.unresponsive),
        u64::from(stats.max_len),
        u64::from(tin.turns.quantum()),
    ]
}
