//! Where the measuring program departs from the standard, so that differences are expected.

use super::Situation;

/// The departure that affects a situation, if there is a visible one.
pub fn departure(situation: &Situation) -> Option<&'static str> {
    let setup = &situation.setup;
    if setup["guard_interval_ns"] == 400 {
        return Some(
            "measured without the last whole symbol of 4 µs that HT's TXTIME has with a short \
             guard interval: up to 3.6 µs less for each PPDU",
        );
    }
    None
}
