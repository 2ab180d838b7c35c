//! Two interfaces of this machine with a study's links between them: what comes in at one goes out at the other.

use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use sojourn_core::{ETHERNET_HEADER, NoObserver, Span, StreamAddress};
use sojourn_scenario::Checked;

use crate::bottleneck::{Between, Bottleneck, Ends, Known};
use crate::clock::Clock;
use crate::{shell, sys};

/// Carries packets between the interfaces until `length` has passed or Ctrl-C was pressed: from `near` to `far` over the way of
/// the first flow, and back over its way back. Gives back what `tc -s` would then show of each queue.
///
/// # Errors
/// An interface is not there, or the caller may not; or it is gone while packets are carried.
pub fn run(
    scenario: &Checked,
    seed: StreamAddress,
    [near, far]: [&str; 2],
    length: Option<Duration>,
) -> Result<Vec<String>, String> {
    let mut world = scenario.clone().into_inner();
    world.duration = Span::from_secs(1_000_000);
    world.step = world.duration;
    world.warmup = Span::ZERO;
    // What comes is no flow's, and all goes this one's way.
    world.flows.truncate(1);
    let open = |name: &str| {
        let socket =
            sys::open_interface(name).map_err(|error| format!("interface '{name}': {error}"))?;
        Ok::<File, String>(socket.into())
    };
    let devices = [open(near)?, open(far)?];
    let between = Between {
        devices: devices.iter().collect(),
        offloads: true,
        before: ETHERNET_HEADER as usize,
        who: Known::Nothing,
    };
    let stop = sys::watch_interrupts();
    let (is_over, never) = (AtomicBool::new(false), AtomicBool::new(false));
    let (sender, notices) = channel();
    drop(sender);
    let began = Instant::now();
    let clock = Clock::from(began);
    let bottleneck = Bottleneck::new(&world, between, seed);
    let passed = thread::scope(|scope| {
        let ends = Ends { is_over: &is_over, lingers: &never };
        let carries = scope.spawn(move || bottleneck.run(&clock, &notices, &ends, &mut NoObserver));
        let is_time = || length.is_some_and(|length| began.elapsed() >= length);
        while !carries.is_finished() && !stop.load(Ordering::Relaxed) && !is_time() {
            thread::sleep(Duration::from_millis(50));
        }
        is_over.store(true, Ordering::Relaxed);
        carries.join()
    });
    let passed = passed.map_err(|_| "the bottleneck panicked".to_owned())??;
    let mut shown = shell::shown(&world, &passed);
    if passed.refused > 0 {
        shown.push(format!(
            "{} packets were too long for their interface, or it was full",
            passed.refused
        ));
    }
    Ok(shown)
}
