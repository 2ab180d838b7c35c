//! `fq`'s parameters in `tc`'s notation.

use alloc::format;

use sojourn_core::param::{Bounds, Maybe, whole};
use sojourn_core::{Bytes, Param, Rate, Span, SpecError};

use crate::built_in;
use crate::codel;
use crate::notation::{Lapse, Length, Packets, Speed, at_least, at_most};

sojourn_core::params! {
    /// `fq`'s parameters.
    pub struct Config:
        "fq", "FQ: a queue and a limit for each flow, as Linux has it for packets from outside",
        refuse refuse_left_out
    {
        pub limit: u32 as Packets = "10000", "packets that may wait, all flows together";
        pub flow_limit: u32 as Packets = "100", "packets that may wait of one flow";
        pub buckets: u32 = "1024", whole(1, 256 * 1024), "of the table in which flows are looked up";
        pub orphan_mask: u32 = "1023", whole(0, u32::MAX as i64),
            "bits of a packet's hash that make its flow";
        pub pacing: bool as Pacing = Param::of::<Pacing>("pacing", "pacing", "").quiet();
        pub quantum: Bytes as Length = "3028", CREDITS, "bytes that a flow may send a round";
        pub initial_quantum: Bytes as Length = "15140", CREDITS,
            "bytes that a flow's first round allows";
        pub maxrate: Option<Rate> as Maybe<Speed> =
            "", at_least(Rate::from_bps(1)), "rate that no flow exceeds";
        pub low_rate_threshold: Rate as Speed = "550kbit",
            "up to this rate flows are paced packet by packet, above it by quanta";
        pub refill_delay: Span as Lapse = "40ms", "rest after which a flow has a quantum again";
        pub ce_threshold: Option<Span> as Maybe<Lapse> = codel::CE_THRESHOLD;
    }
}

const CREDITS: Bounds = at_most(i32::MAX as u32);

sojourn_core::keywords! {
    Pacing for bool {
        "pacing" = true, "hold flows to 'maxrate'";
        "nopacing" = false, "ignore 'maxrate'";
    }
}

built_in::written_as_it_is!(Config);

/// Says why a word that `tc` knows is not known here.
fn refuse_left_out(word: &str) -> Result<(), SpecError> {
    let why = match word {
        "horizon" | "horizon_cap" | "horizon_drop" | "offload_horizon" | "timer_slack" => {
            "no socket sets departure times here"
        }
        "bands" | "priomap" | "weights" => "packets carry no priority",
        "defrate" => "the kernel ignores it",
        _ => return Ok(()),
    };
    Err(SpecError::new(format!("fq's '{word}' is left out: {why}")))
}
