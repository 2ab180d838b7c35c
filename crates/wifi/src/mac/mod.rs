//! Medium access control (clauses 9, 10 and 26).

pub mod frames;
pub mod response;
