//! `on_off`: as much as fits for a while, then nothing for a while, again and again.

use sojourn_core::Span;
use sojourn_core::param::{Bounds, Needed, Truth, time};

use crate::bounds::LONGEST;

sojourn_core::params! {
    /// When an application sends.
    pub struct OnOffConfig: "on_off", "as much as fits for a while, then nothing for a while, over TCP" {
        pub on: Span as Needed<Span> = "", LENGTHS, "how long it sends";
        pub off: Span as Needed<Span> = "", LENGTHS, "how long it is silent";
        pub random: bool as Truth = "false",
            "times are exponentially distributed, with `on` and `off` as means";
    }
}

const LENGTHS: Bounds = time(Span::from_nanos(1), LONGEST);
