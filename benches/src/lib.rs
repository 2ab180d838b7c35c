//! Speed on a few fixed worlds, the yardsticks: how many data segments a second of processor time
//! delivers, and how many instructions one takes.
//!
//! Every packet is fully modelled and every run is observed as a study observes it, so the figures
//! are those of real use on one thread.

mod call;
mod cell;
mod grown;
mod guard;
mod measure;
mod yardstick;

pub use call::Call;
pub use cell::Cell;
pub use grown::Grown;
pub use guard::{Ceiling, Ceilings, Guarded, read_ceilings};
pub use measure::{Figures, count, measure};
pub use yardstick::{World, YARDSTICKS, Yardstick};
