//! From events to numbers.
//!
//! A [`Collector`] is told every [`Event`](sojourn_core::Event) of a run and ends as
//! [`RunMetrics`]: a number for every name in [`METRICS`], a time series, and a digest that tells
//! two runs apart. It reads events and nothing else, so a number means the same whichever engine
//! made the packets. [`stats`] compares numbers over runs; [`qoe`] estimates what a person would
//! have noticed.
//!
//! ```
//! use sojourn_core::{Event, FlowId, Observer, Span, Time, Who};
//! use sojourn_metrics::{Collector, FlowShape, Shape};
//!
//! let mut collector = Collector::new(Shape {
//!     flows: vec![FlowShape::tcp("bulk")],
//!     links: vec![],
//!     duration: Span::from_secs(10),
//!     warmup: Span::from_secs(2),
//!     step: Span::from_millis(100),
//! });
//! let who = Who::Flow(FlowId(0));
//! let delivered = Event::Delivered { bytes: 1_000_000 };
//! collector.record(Time::ZERO + Span::from_secs(1), who, &delivered);
//! collector.record(Time::ZERO + Span::from_secs(3), who, &delivered);
//! let run = collector.finish(Time::ZERO + Span::from_secs(10));
//! assert_eq!(run.flows[0].value("goodput_mbps"), Some(1.0));
//! assert_eq!(run.flows[0].value("goodput_total_mbps"), Some(1.6));
//! ```

#![cfg_attr(not(test), no_std)]

extern crate alloc;

mod collector;
mod delays;
mod histogram;
mod outcome;
mod possible;
pub mod qoe;
mod series;
pub mod stats;
mod table;

pub use collector::{Collector, FlowShape, LinkShape, Shape};
pub use histogram::{Distribution, Histogram};
pub use outcome::{
    AirMetrics, CompletingPacket, Counts, DELAYS, FlowAtLink, FlowKind, FlowMetrics, FrameMetrics,
    Freeze, Heard, LinkCounts, LinkMetrics, LostPacket, Numbered, OPEN, PhaseTime, RepairStep,
    Reported, Rest, RunMetrics, STALL_THRESHOLDS_MS, Stall, Timing, Totals, TransferCounts,
    TransferMetrics,
};
pub use possible::{Doing, fullest};
pub use series::{Column, FLOW_COLUMNS, FlowSeries, LINK_COLUMNS, LinkSeries, Series};
pub use table::{METRICS, Metric, Of, Scope, metric, metrics, sample_columns, survival_columns};
