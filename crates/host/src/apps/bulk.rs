//! `bulk`: as much as fits, or a number of bytes.

use sojourn_core::Rate;
use sojourn_core::param::{self, Maybe, Octets, size};

sojourn_core::params! {
    /// What a bulk transfer sends.
    pub struct BulkConfig: "bulk", "as much as fits, or a number of bytes, over TCP" {
        pub rate: Option<Rate> as Maybe<Rate> = "", param::rate(SLOWEST, FASTEST),
            "what the application writes a second, as `iperf3 -b` does: whole segments every 10 ms, or less \
             often if a segment takes longer; without it as much as fits";
        pub bytes: Option<u64> as Maybe<Octets> = "", size(1, MOST),
            "how much to transfer; without it there is no end";
    }
}

const SLOWEST: Rate = Rate::from_bps(1);
const FASTEST: Rate = Rate::from_bps(1_000_000_000_000);
/// Far from where sums could wrap.
const MOST: u64 = 1_000_000_000_000_000_000;
