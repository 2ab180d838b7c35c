//! Medium access control (clauses 9, 10 and 26).

pub mod aggregation;
pub mod block_ack;
pub mod classify;
pub mod edca;
pub mod frames;
pub mod response;
