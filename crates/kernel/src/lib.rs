//! Linux kernels as end systems: user-mode guests whose clock is the simulator's.
#![cfg(target_os = "linux")]

mod app;
mod builder;
mod card_messages;
mod clock_messages;
mod console;
mod conversation;
mod ends;
mod engine;
mod fault;
mod frame;
mod guest;
mod install;
mod memory;
mod orders;
mod rings;
mod router;
mod scratch;
mod seat;
mod segments;
mod settings;
mod splat;
mod symbols;
mod tcp_info;
mod used;
pub mod validate;

pub use app::Kernel;
pub use builder::{Build, missing_tools};
pub use console::keep_consoles;
pub use engine::Kernels;
pub use fault::Fault;
pub use install::{Built, built, cache, kernel, release, remove, usual_kernel};
pub use memory::Memory;
pub use router::Router;
pub use used::used;

/// Raised whenever the same scenario, seed and kernel give other numbers.
pub const VERSION: u32 = 5;
