//! BBR version 2 (Linux branch v2alpha): version 3's machine with other gains, and another end of UP.
//!
//! The fluid of Scherrer et al. (IMC 2022) ends DOWN's predecessor at v > 1.25·w̄ or p > 2 %, which is
//! [`Rules::up_ends_at`] and the loss threshold of the machine.

use super::bbr3::Rules;

pub(super) const RULES: Rules = Rules {
    startup_pacing: 2.887,
    startup_cwnd: 2.887,
    drain_pacing: 0.344,
    down_pacing: 0.75,
    up_cwnd: 2.0,
    up_ends_at: Some(1.25),
    beta: 0.703,
    startup_losses: 8,
};
