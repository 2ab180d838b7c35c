//! Studies: from a file that a person writes to runs, numbers and claims.

pub mod results;
