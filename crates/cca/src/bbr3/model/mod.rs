//! The model of the network path, section 5.5: a file per estimator.

mod extra_acked;
mod loss;
mod max_bw;
mod min_rtt;
mod rounds;
mod sample;

pub(super) use extra_acked::ExtraAcked;
pub(super) use loss::{LongTerm, ShortTerm};
pub(super) use max_bw::MaxBwFilter;
pub(super) use min_rtt::MinRtt;
pub(super) use rounds::Rounds;
pub(super) use sample::Sample;
