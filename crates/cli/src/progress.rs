//! Progress of the runs: a bar on a terminal, otherwise a line for each tenth.

use std::sync::atomic::{AtomicUsize, Ordering};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use sojourn_study::runner::Progress;

use crate::output::Output;

pub(crate) struct Bar {
    output: Output,
    bar: Option<ProgressBar>,
    /// How many tenths have been printed.
    told: AtomicUsize,
}

impl Bar {
    pub(crate) fn new(output: Output) -> Self {
        let bar = output.has_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
            set_style(&bar, "{bar:30} {pos}/{len} runs  {elapsed} so far{msg}");
            bar
        });
        Self { output, bar, told: AtomicUsize::new(0) }
    }

    /// Called after every run, from any thread.
    pub(crate) fn show(&self, progress: Progress) {
        let ended = progress.done + progress.failed;
        let Some(bar) = &self.bar else {
            return self.tell(progress);
        };
        bar.set_length(progress.total as u64);
        if ended == progress.resumed {
            // Runs of an earlier start say nothing about the speed of this one.
            bar.set_position(ended as u64);
            bar.reset_eta();
            bar.enable_steady_tick(std::time::Duration::from_millis(250));
        } else {
            // Before a run has ended nothing tells how long runs take.
            set_style(bar, "{bar:30} {pos}/{len} runs  {elapsed} so far, {eta} to go{msg}");
            bar.set_position(ended as u64);
        }
        if progress.failed > 0 {
            bar.set_message(format!(", {} failed", progress.failed));
        }
    }

    /// Shows how far the only run is, of at most `seconds`, as long as there is a bar.
    pub(crate) fn follow_simulated_run(&self, seconds: f64) {
        self.follow(move || {
            let at = sojourn_study::engine::reached().as_secs_f64();
            (at > 0.0).then(|| format!(", {at:.0} of {seconds:.0} s simulated"))
        });
    }

    /// Shows of a run that takes as long as it says how far it is, as long as there is a bar.
    #[cfg(target_os = "linux")]
    pub(crate) fn follow_live_runs(&self) {
        self.follow(|| {
            let (at, of, mbps) = sojourn_live::machine::under_way()?;
            let (at, of) = (at.as_secs_f64(), of.as_secs_f64());
            Some(format!(", live: {at:.0} of {of:.0} s, {mbps:.1} Mbit/s"))
        });
    }

    fn follow(&self, message: impl Fn() -> Option<String> + Send + 'static) {
        let Some(bar) = self.bar.as_ref().map(ProgressBar::downgrade) else { return };
        std::thread::spawn(move || {
            while let Some(bar) = bar.upgrade().filter(|bar| !bar.is_finished()) {
                if let Some(message) = message() {
                    bar.set_message(message);
                }
                drop(bar);
                std::thread::sleep(std::time::Duration::from_millis(250));
            }
        });
    }

    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn tell(&self, progress: Progress) {
        let ended = progress.done + progress.failed;
        let tenths = ended * 10 / progress.total.max(1);
        if ended > progress.resumed && self.told.fetch_max(tenths, Ordering::Relaxed) < tenths {
            self.output.log(&format_args!("{ended} of {} runs", progress.total));
        }
    }
}

fn set_style(bar: &ProgressBar, template: &str) {
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
}
