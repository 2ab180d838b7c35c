//! The command as a user meets it: what it prints, what it writes, and how it ends.

mod bad_input;
mod exports;
mod formats;
mod help;
mod interrupted;
mod many;
mod repeats;
mod replay;
mod scratch;
mod shards;
mod tour;
mod verbs;
