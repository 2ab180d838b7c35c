//! Plays a recording to a controller and lays what it decides beside what was decided.

use std::collections::VecDeque;
use std::io::BufRead;

use sojourn_core::{Span, Time};
use sojourn_media::control::{Config, Entry, Estimates, Outputs, Player};

use crate::error::ReplayError;
use crate::form::{Head, Line};
use crate::read::{self, Checker, Decision, Event, LONGEST};
use crate::stats;

/// What a replay came to.
#[derive(Clone, Debug)]
pub struct Replay {
    /// What the recording says of its call: the flow, the controller.
    pub flow: String,
    pub original: String,
    /// Whether packets were laid out evenly because the recording has none.
    pub is_laid_out: bool,
    pub step: Span,
    pub steps: Vec<Step>,
    /// Packets sent and, of these, reported as arrived.
    pub packets: u64,
    pub arrived: u64,
    /// Decisions of the original and of the replay, and how many are the same, at the same moment, before the first that differ.
    pub original_decisions: u64,
    pub decisions: u64,
    pub same: u64,
    /// Since the start of the call: when the first decisions differ.
    pub differs: Option<Span>,
}

/// What happened in a step. Rates are in bit/s, averages over the step's time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Step {
    /// Since the start of the call, in seconds.
    pub start: f64,
    pub sent: f64,
    /// Whole packets that are reported as arrived, by the time of the report.
    pub arrived: f64,
    /// Of the packets reported on, those that did not arrive.
    pub lost: Option<f64>,
    /// The target of the original; `None` before one is known.
    pub original: Option<f64>,
    pub replayed: f64,
    /// The estimates of the replayed controller at the step's end.
    pub delay_based: Option<f64>,
    pub loss_based: Option<f64>,
    pub acknowledged: Option<f64>,
}

impl Replay {
    /// The mean target of the original while it is known, and of the replay in the same time.
    pub fn means(&self) -> Option<(f64, f64)> {
        let known: Vec<_> =
            self.steps.iter().filter_map(|step| Some((step.original?, step.replayed))).collect();
        let count = known.len() as f64;
        let sum = known.iter().fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
        (!known.is_empty()).then_some((sum.0 / count, sum.1 / count))
    }

    /// The mean of the steps' ratios, replayed over original.
    pub fn mean_ratio(&self) -> Option<f64> {
        let ratios: Vec<f64> = self
            .steps
            .iter()
            .filter_map(|step| {
                step.original.filter(|was| *was > 0.0).map(|was| step.replayed / was)
            })
            .collect();
        (!ratios.is_empty()).then(|| ratios.iter().sum::<f64>() / ratios.len() as f64)
    }

    /// Every decision of the original was made again, at the same moment, and no other.
    pub fn is_identical(&self) -> bool {
        self.differs.is_none()
    }
}

/// Steps of a replay at most.
const MOST_STEPS: u64 = 1_000_000;

/// Replays what `input` has through the controller `config` and compares the targets in steps of `step`.
///
/// # Errors
/// A line that is no part of a recording, or the controller needs reports that the recording doesn't have.
pub fn replay(mut input: impl BufRead, config: &Config, step: Span) -> Result<Replay, ReplayError> {
    if step.is_zero() || LONGEST.as_nanos() / step.as_nanos() > 1_000 * MOST_STEPS {
        return Err(ReplayError::whole(format!("a step of {step} (allowed: 1ms and more)")));
    }
    let start = input.fill_buf().map_err(|error| ReplayError::whole(error.to_string()))?;
    if stats::begins(start) {
        let (head, lines) = stats::read(input)?;
        let mut run = Run::new(&head, config, step, true)?;
        for (count, line) in (1..).zip(lines) {
            run.take(count, line)?;
        }
        return Ok(run.finish());
    }
    let (mut number, mut line) = (0, Vec::new());
    read::next_line(&mut input, &mut number, &mut line)?;
    let head = read::head(number, read::parse(number, &line)?)?;
    let mut run = Run::new(&head, config, step, false)?;
    while read::next_line(&mut input, &mut number, &mut line)? {
        run.take(number, read::parse(number, &line)?)?;
    }
    Ok(run.finish())
}

struct Run {
    checker: Checker,
    player: Player,
    start: Time,
    now: Time,
    replay: Replay,
    /// The step that is being filled.
    current: Step,
    reported: (u64, u64),
    original: Option<Decision>,
    outputs: Outputs,
    estimates: Estimates,
    /// Seconds of the step that have passed, and in which the original's target was known.
    passed: f64,
    known: f64,
    /// Decisions of this moment that the other side has not made yet: the original's, and the replay's.
    waiting: VecDeque<Decision>,
    made: VecDeque<Decision>,
}

impl Run {
    fn new(
        head: &Head,
        config: &Config,
        step: Span,
        is_laid_out: bool,
    ) -> Result<Self, ReplayError> {
        let feedback = head.feedback.into();
        let player = Player::new(config, read::setup(head), feedback);
        let wanted = config.feedback();
        let is_enough = wanted == feedback
            || feedback.is_per_packet()
            || wanted == sojourn_media::control::FeedbackKind::ReceiverReports;
        if !is_enough {
            let name = config.name();
            return Err(ReplayError::whole(format!(
                "'{name}' needs reports on each packet, and the recording of '{}' has none (allowed: a \
                 recording with feedback twcc or ccfb)",
                head.control
            )));
        }
        let start = Time::from_nanos(head.start_ns);
        let outputs = player.outputs();
        Ok(Self {
            checker: Checker::new(head),
            player,
            start,
            now: start,
            replay: Replay {
                flow: head.flow.clone(),
                original: head.control.clone(),
                is_laid_out,
                step,
                steps: Vec::new(),
                packets: 0,
                arrived: 0,
                original_decisions: 0,
                decisions: 1,
                same: 0,
                differs: None,
            },
            current: Step::default(),
            reported: (0, 0),
            original: None,
            outputs,
            estimates: Estimates::default(),
            passed: 0.0,
            known: 0.0,
            waiting: VecDeque::new(),
            made: VecDeque::from([decision(start, &outputs)]),
        })
    }

    fn take(&mut self, number: u64, line: Line) -> Result<(), ReplayError> {
        let event = self.checker.check(number, line)?;
        let (at, told) = match &event {
            Event::Told(entry) => (entry.at(), Some(*entry)),
            Event::Decided(decision) => (decision.at, None),
        };
        // The checker keeps the reports, so what belongs to this moment is put together here.
        let bits = |bytes: u32| f64::from(bytes) * 8.0;
        let (mut sent, mut arrived, mut reported) = (0.0, 0.0, (0, 0));
        match told {
            Some(Entry::Sent { sent: packet, .. }) => sent = bits(packet.size),
            Some(Entry::Feedback(feedback)) => {
                for report in feedback.reports {
                    reported.0 += 1;
                    match report.arrived {
                        Some(_) => arrived += bits(report.packet.size),
                        None => reported.1 += 1,
                    }
                }
            }
            _ => {}
        }
        let mut made = Vec::new();
        if let Event::Told(entry) = &event {
            self.player.play(entry, &mut |now, outputs, estimates| {
                made.push((now, outputs, estimates));
            });
        }
        let decided = match event {
            Event::Decided(decision) => Some(decision),
            Event::Told(_) => None,
        };
        for (when, outputs, estimates) in made {
            self.advance(when, number)?;
            self.replay.decisions += 1;
            if self.replay.differs.is_none() {
                self.made.push_back(decision(when, &outputs));
            }
            (self.outputs, self.estimates) = (outputs, estimates);
        }
        self.advance(at, number)?;
        self.replay.packets += u64::from(sent > 0.0);
        self.replay.arrived += reported.0 - reported.1;
        self.current.sent += sent;
        self.current.arrived += arrived;
        self.reported = (self.reported.0 + reported.0, self.reported.1 + reported.1);
        if let Some(decision) = decided {
            self.replay.original_decisions += 1;
            if self.replay.differs.is_none() {
                self.waiting.push_back(decision);
            }
            self.original = Some(decision);
        }
        self.pair(false);
        Ok(())
    }

    /// Lays decisions of both sides beside each other, in their order, until the first that differ.
    fn pair(&mut self, is_over: bool) {
        while let (Some(waiting), Some(made)) = (self.waiting.front(), self.made.front()) {
            if waiting != made {
                let at = waiting.at.min(made.at);
                return self.differ(at);
            }
            self.replay.same += 1;
            self.waiting.pop_front();
            self.made.pop_front();
        }
        let alone = self.waiting.front().or(self.made.front()).map(|decision| decision.at);
        if let Some(at) = alone.filter(|at| *at < self.now || is_over) {
            self.differ(at);
        }
    }

    fn differ(&mut self, at: Time) {
        self.replay.differs.get_or_insert(at.since(self.start));
        self.waiting.clear();
        self.made.clear();
    }

    /// Time goes on to `at`: targets are averaged over it.
    fn advance(&mut self, at: Time, line: u64) -> Result<(), ReplayError> {
        while self.now < at {
            if self.replay.steps.len() as u64 >= MOST_STEPS {
                let problem = format!("more than {MOST_STEPS} steps (allowed: a longer --step)");
                return Err(ReplayError::at(line, problem));
            }
            let end = self.start
                + Span::from_nanos(
                    (self.replay.steps.len() as u64 + 1) * self.replay.step.as_nanos(),
                );
            let until = at.min(end);
            self.weigh(until.since(self.now).as_secs_f64());
            self.now = until;
            if until == end {
                self.close(self.replay.step.as_secs_f64());
            }
        }
        Ok(())
    }

    fn weigh(&mut self, seconds: f64) {
        self.current.replayed += self.outputs.target.as_bps() as f64 * seconds;
        self.passed += seconds;
        if let Some(original) = self.original {
            let bits = original.target.as_bps() as f64 * seconds;
            self.current.original = Some(self.current.original.unwrap_or(0.0) + bits);
            self.known += seconds;
        }
    }

    fn close(&mut self, seconds: f64) {
        let Step { sent, arrived, original, replayed, .. } = self.current;
        let (reported, lost) = std::mem::take(&mut self.reported);
        let (passed, known) = (std::mem::take(&mut self.passed), std::mem::take(&mut self.known));
        self.replay.steps.push(Step {
            start: self.replay.steps.len() as f64 * self.replay.step.as_secs_f64(),
            sent: sent / seconds,
            arrived: arrived / seconds,
            lost: (reported > 0).then(|| lost as f64 / reported as f64),
            original: original.map(|bits| bits / known),
            replayed: replayed / passed,
            delay_based: self.estimates.delay_based,
            loss_based: self.estimates.loss_based,
            acknowledged: self.estimates.acknowledged,
        });
        self.current = Step::default();
    }

    fn finish(mut self) -> Replay {
        self.pair(true);
        // A last step that is less than half full says little.
        let full = self.replay.steps.len() as u64 * self.replay.step.as_nanos();
        let rest = self.now.since(self.start + Span::from_nanos(full)).as_secs_f64();
        if rest > 0.5 * self.replay.step.as_secs_f64() || self.replay.steps.is_empty() && rest > 0.0
        {
            self.close(rest);
        }
        self.replay
    }
}

fn decision(at: Time, outputs: &Outputs) -> Decision {
    Decision {
        at,
        target: outputs.target,
        pacing: outputs.pacing,
        padding: outputs.padding,
        window: outputs.window,
    }
}
