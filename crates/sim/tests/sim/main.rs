//! The engine from outside, in worlds that are built in code.

mod changes;
mod ecn;
mod handshake;
mod order;
mod outage;
mod outside;
mod reads;
mod repair;
mod until;
mod utilisation;
mod words;
mod worlds;
