//! The live engine: a scenario on this machine, with real packets.
//!
//! Every host of the scenario is a network namespace of the kernel, and between them stand the project's own
//! queues and links, the same code that simulates, called with a real clock. Applications are the kernel's
//! sockets. What happens is reported as the events of a simulation, so metrics, claims and reports are the
//! same.
//!
//! | module | what |
//! |---|---|
//! | `engine` | the engine by its name: what it can run, and a run |
//! | `machine` | what this machine can |
//! | `shell` | a scenario's world without its flows, to play in |
//! | `attach` | two interfaces of this machine, shaped |
//! | `strangers` | packets from outside, to the queues |
//! | `cca` | congestion controls of the project's own, in the kernel |
//! | `testbed` | hosts: namespaces and their devices |
//! | `traffic` | applications on the kernel's sockets |
//! | `elsewhere` | hosts that are other machines, reached by ssh |
//! | `programs` | programs of the user's own, and what they say of themselves |
//! | `bottleneck` | the loop that carries packets |
//! | `waiting` | how it waits for the next packet |
//! | `network` | links and their queues |
//! | `ledger` | from packets to flows and events |
//! | `headers`, `tcp_info` | what bytes say |
//! | `offload` | packets of several segments |
//! | `sys` | calls to the kernel |

#![cfg(target_os = "linux")]

mod address;
pub mod attach;
mod bottleneck;
pub mod cca;
mod clock;
mod elsewhere;
mod engine;
mod frame;
mod headers;
mod ledger;
pub mod machine;
mod network;
mod offload;
mod programs;
pub mod shell;
mod strangers;
#[expect(unsafe_code, reason = "nobody else calls the kernel for these")]
mod sys;
mod tcp_info;
mod testbed;
mod traffic;
mod waiting;

pub use elsewhere::serve;
pub use engine::Live;
