//! Shared screens: nothing moves for a while, small things do now and then, and sometimes all of it.
//!
//! A change of the whole screen is one large frame. An encoder of screens does not spread it, since
//! text must be readable at once; it then captures nothing until the bytes that it made too many fit
//! the target again. Sizes and shares are those of the content-sharing codec of syncodecs, which
//! RFC 8593 names as its implementation: frames below 1 kB while nothing changes, 20 to 200 times
//! that for a change.

use alloc::boxed::Box;

use sojourn_core::param::{number, size, time, whole};
use sojourn_core::{Bytes, Span, SpecError, Time};

use super::{Frame, Setup, Source, SourceModel, Wanted};

sojourn_core::params! {
    /// The parameters of shared screens.
    pub struct Config: "screen", "A shared screen: small frames, and now and then a change of all of it", check ratios {
        fps: f64 = "5", number(0.1, 240.0), "Captures a second";
        still: Bytes = "1000B", size(10, 1_000_000), "Largest frame while nothing changes; such frames are equally likely down to a tenth of it";
        change_every: Span = "10s", time(Span::from_millis(1), Span::from_secs(100_000)), "Time between changes of the whole screen, on average; exponentially distributed";
        change_min: f64 = "20", number(1.0, 100_000.0), "Size of a change, in largest still frames: at least";
        change_max: f64 = "200", number(1.0, 100_000.0), "Size of a change, in largest still frames: at most";
        encoding: Span = "0ms", time(Span::ZERO, Span::from_secs(1)), "How long the encoder works on a frame";
        height: u32 = "1080", whole(1, 8640), "Lines of the picture";
    }
}

fn ratios(config: &Config) -> Result<(), SpecError> {
    if config.change_min > config.change_max {
        let Config { change_min, change_max, .. } = config;
        return Err(SpecError::new(alloc::format!("'change_min' is {change_min}"))
            .allow([alloc::format!("up to 'change_max', {change_max}")])
            .about("change_min"));
    }
    Ok(())
}

impl SourceModel for Config {
    fn build(&self, setup: Setup) -> Box<dyn Source> {
        Box::new(Screen {
            next: setup.start,
            // The call begins with a whole screen.
            next_change: setup.start,
            debt: 0.0,
            is_first: true,
            config: self.clone(),
            setup,
        })
    }
}

#[derive(Debug)]
struct Screen {
    config: Config,
    setup: Setup,
    next: Time,
    next_change: Time,
    /// Bytes made before the target allowed them.
    debt: f64,
    is_first: bool,
}

impl Source for Screen {
    fn next_capture(&self) -> Time {
        self.next
    }

    fn capture(&mut self, wanted: &Wanted) -> Option<Frame> {
        let Self { config, setup, .. } = self;
        let now = self.next;
        let interval = 1.0 / config.fps;
        self.next = now + Span::from_secs_f64(interval);
        let rate = wanted.rate.max(setup.min_rate).min(setup.max_rate);
        let budget = rate.as_bps() as f64 / 8.0 * interval;
        let still = config.still.as_u64() as f64;
        let change = |random: &mut sojourn_core::Stream| {
            still * random.uniform(config.change_min, config.change_max)
        };
        if self.debt > budget && !wanted.key {
            self.debt -= budget;
            return None;
        }
        let is_change = now >= self.next_change;
        let size = if is_change || wanted.key {
            change(&mut setup.random)
        } else {
            still * setup.random.uniform(0.1, 1.0)
        };
        if is_change {
            let wait = setup.random.exponential(config.change_every.as_secs_f64());
            self.next_change = now + Span::from_secs_f64(wait);
        }
        self.debt = (self.debt + size - budget).max(0.0);
        Some(Frame {
            captured: now,
            encoded: now + config.encoding,
            size: size as u32,
            is_key: core::mem::take(&mut self.is_first) || wanted.key,
            layer: 0,
            height: config.height as u16,
        })
    }
}

#[cfg(test)]
mod tests {
    use sojourn_core::{Params, Purpose, Rate, StreamAddress, Words};

    use super::*;

    fn source(words: &str) -> Box<dyn Source> {
        Config::parse(&mut Words::new(words)).expect("well written").build(Setup {
            start: Time::ZERO,
            frames_per_second: 30.0,
            min_rate: Rate::from_bps(50_000),
            max_rate: Rate::from_bps(2_500_000),
            random: StreamAddress { seed: 5, run: 0 }.stream(1, Purpose::Application),
        })
    }

    const WANTED: Wanted = Wanted { rate: Rate::from_bps(1_000_000), key: false };

    #[test]
    fn most_frames_are_small_and_changes_come_as_often_as_they_should() {
        let mut source = source("");
        let frames: Vec<_> = (0..500_000).map(|_| source.capture(&WANTED)).collect();
        let sizes = || frames.iter().flatten().map(|frame| frame.size);
        let large: Vec<u32> = sizes().filter(|size| *size > 1000).collect();
        // A hundred thousand seconds, a change every 10, of 110 kB in the mean.
        assert!((9_700..10_300).contains(&large.len()), "{}", large.len());
        assert!(large.iter().all(|size| (20_000..=200_000).contains(size)));
        let mean = large.iter().map(|size| f64::from(*size)).sum::<f64>() / large.len() as f64;
        assert!((mean - 110_000.0).abs() < 2000.0, "{mean}");
    }

    #[test]
    fn after_a_large_frame_nothing_is_captured_until_the_target_has_paid_for_it() {
        let mut source = source("change_every=100000s change_min=100 change_max=100");
        let first = source.capture(&WANTED).expect("a frame");
        assert_eq!((first.size, first.is_key), (100_000, true));
        // 25 kB a frame at 1 Mbit/s: three intervals are dropped.
        let dropped = (0..10).take_while(|_| source.capture(&WANTED).is_none()).count();
        assert_eq!(dropped, 2);
        assert_eq!(source.next_capture(), Time::ZERO + Span::from_millis(200) * 4);
    }

    #[test]
    fn a_change_larger_than_its_largest_is_refused() {
        let error = Config::parse(&mut Words::new("change_min=30 change_max=20"));
        assert!(error.expect_err("refused").to_string().contains("up to 'change_max', 20"));
    }
}
