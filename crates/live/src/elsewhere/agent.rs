//! What a copy of this program does on a host elsewhere: the ends of flows that are there.

use std::fs;
use std::io::{Read, Write};
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::message::{self, ALIVE, FromAgent, GREETING, Order, ToAgent, Told};
use super::{order, parts};
use crate::cca;
use crate::clock::Clock;
use crate::programs::Programs;
use crate::traffic::{self, Notice, Traffic};
use crate::{sys, testbed};

/// How often what was noticed is sent.
const TICK: Duration = Duration::from_millis(20);

/// How long what is under way may take to end when nobody is there any more.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// What has been said of the end of the run that is under way.
#[derive(Default)]
struct Said {
    is_over: AtomicBool,
    /// Nobody waits for programs any more.
    is_urgent: AtomicBool,
}

impl Said {
    fn end(&self, is_urgent: bool) {
        self.is_urgent.fetch_or(is_urgent, Ordering::Relaxed);
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// What this host has reached in the run that is under way.
#[derive(Default)]
struct Reached {
    transfers_done: AtomicBool,
    senders_done: AtomicBool,
    ended: AtomicBool,
}

/// Does what comes by `input`, run after run, and answers by `output`, until `input` ends. When that has happened, or nothing has come for half a
/// minute, this process ends, and with it all that it has made.
///
/// # Errors
/// `output` is closed.
pub fn serve(
    input: impl Read + Send + 'static,
    mut output: impl Write + Send,
) -> Result<(), String> {
    let began = Instant::now();
    let shown = |error: std::io::Error| error.to_string();
    output.write_all(GREETING).and_then(|()| output.flush()).map_err(shown)?;
    let (sender, mut messages) = channel();
    let said = Arc::new(Said::default());
    let heard = Arc::new(Mutex::new(began));
    let (ends, hears) = (Arc::clone(&said), Arc::clone(&heard));
    thread::spawn(move || listen(input, sender, &ends, &hears));
    thread::spawn(move || {
        while heard.lock().unwrap_or_else(PoisonError::into_inner).elapsed() < ALIVE * 6 {
            thread::sleep(ALIVE);
        }
        process::exit(1);
    });
    while let Ok(message) = messages.recv() {
        match message {
            ToAgent::Prepare(order) => {
                said.is_over.store(false, Ordering::Relaxed);
                said.is_urgent.store(false, Ordering::Relaxed);
                // Nothing that this thread has is changed: what is done to a thread dies with it.
                let done = thread::scope(|scope| {
                    let run = || follow(order, &mut messages, &mut output, began, &said);
                    scope.spawn(run).join()
                });
                let last = match done {
                    Ok(Ok(())) => FromAgent::Done,
                    Ok(Err(Failure::Host(problem))) => FromAgent::Failed(problem),
                    Ok(Err(Failure::Flow(problem))) => FromAgent::FlowFailed(problem),
                    Err(_) => FromAgent::Failed("the ends of flows panicked".to_owned()),
                };
                message::write(&mut output, &last).map_err(shown)?;
            }
            ToAgent::Clock => tell_clock(&mut output, began)?,
            // The run was over already.
            ToAgent::Alive | ToAgent::Speak | ToAgent::Begin(_) | ToAgent::End { .. } => {}
        }
    }
    Ok(())
}

/// Hands on what comes. After the end of it the process ends, too.
fn listen(mut input: impl Read, to: Sender<ToAgent>, said: &Said, heard: &Mutex<Instant>) {
    while let Ok(Some(message)) = message::read(&mut input) {
        *heard.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        if let ToAgent::End { is_urgent } = message {
            said.end(is_urgent);
        }
        let _ = to.send(message);
    }
    drop(to);
    said.end(true);
    thread::sleep(LAST_WORDS);
    process::exit(1);
}

fn tell_clock(output: &mut impl Write, began: Instant) -> Result<(), String> {
    let at = FromAgent::Clock(began.elapsed().as_nanos() as u64);
    message::write(output, &at).map_err(|error| error.to_string())
}

/// Why this host could not do its part of a run.
enum Failure {
    Host(String),
    /// An end of a flow could not, which may have lost its other end.
    Flow(String),
}

impl From<String> for Failure {
    fn from(problem: String) -> Self {
        Self::Host(problem)
    }
}

/// Prepares a run, waits for its beginning, and does it. What programs left is told even if something failed.
fn follow(
    order: Order,
    messages: &mut Receiver<ToAgent>,
    output: &mut (impl Write + Send),
    began: Instant,
    said: &Said,
) -> Result<(), Failure> {
    let mut asked = order::read(order).map_err(|problem| format!("a wrong order: {problem}"))?;
    let host = testbed::on_interface(asked.host, &asked.interface, &asked.kernel, asked.offloads)?;
    let missing: Vec<&str> = testbed::on_thread(|| {
        sys::enter_network(host.namespace()).map_err(|error| error.to_string())?;
        let names = order::controls(&asked).into_iter();
        Ok(names.filter(|name| !traffic::knows_control(name)).collect())
    })?;
    if !missing.is_empty() {
        let names = missing.join("', '");
        let advice = cca::advice(&missing);
        let problem = format!("its kernel has no congestion control '{names}'; there: {advice}");
        return Err(problem.into());
    }
    order::find_states(&mut asked)?;
    let namespaces = asked.scenario.hosts.iter().enumerate();
    let namespaces: Vec<_> = namespaces
        .map(|(number, _)| (number == asked.host.index()).then(|| host.namespace()))
        .collect();
    let scenario = &asked.scenario;
    let mut programs = Programs::new(scenario, namespaces.clone(), asked.address);
    programs.check()?;
    if !asked.is_trial {
        programs.start_receivers()?;
    }
    let mut traffic = Traffic::new(scenario, namespaces, &asked.settings, asked.address)?;
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let ready = FromAgent::Ready(kernel.trim().to_owned());
    message::write(output, &ready).map_err(|error| error.to_string())?;
    let start = loop {
        match messages.recv() {
            Ok(ToAgent::Clock) => tell_clock(output, began)?,
            Ok(ToAgent::Alive) => {}
            Ok(ToAgent::Speak) => testbed::ask_for_another(host.namespace(), asked.host)?,
            Ok(ToAgent::Begin(at)) => break began + Duration::from_nanos(at),
            Ok(ToAgent::End { .. } | ToAgent::Prepare(_)) | Err(_) => return Ok(()),
        }
    };
    thread::sleep(start.saturating_duration_since(Instant::now()));
    let clock = Clock::from(start);
    let (sender, notices) = channel();
    let is_over = &said.is_over;
    let reached = Reached::default();
    // A program has, before the end.
    let has_failed = AtomicBool::new(false);
    let done = thread::scope(|scope| {
        let (told_to, reached) = (&mut *output, &reached);
        let tells = scope.spawn(move || {
            let told = tell(&notices, reached, told_to);
            // Nobody hears the rest.
            is_over.fetch_or(told.is_err(), Ordering::Relaxed);
            told
        });
        let ran = scope.spawn(|| {
            let done = programs.run(&clock, is_over);
            has_failed.store(done.is_err(), Ordering::Release);
            is_over.fetch_or(done.is_err(), Ordering::Release);
            if done.is_ok() && !programs.is_empty() {
                // The receivers' programs are needed until the senders' have ended, on whichever host.
                programs.finish(&clock, |has_time| {
                    reached.senders_done.fetch_or(!has_time, Ordering::Relaxed);
                    !said.is_urgent.load(Ordering::Relaxed)
                });
            }
            done
        });
        let done = traffic.run(&clock, &sender, is_over, &reached.transfers_done);
        let mut done = done.map_err(Failure::Flow);
        if is_over.load(Ordering::Acquire) {
            // Flows lose the hosts that have ended before.
            done = Ok(());
        } else if done.is_err() {
            said.end(true);
        }
        let has_ended = done.is_ok() && !has_failed.load(Ordering::Acquire);
        reached.ended.store(has_ended, Ordering::Relaxed);
        let panicked = |what: &str| Err(format!("what {what} panicked"));
        let ran = ran.join().unwrap_or_else(|_| panicked("keeps programs"));
        drop(sender);
        let told = tells.join().unwrap_or_else(|_| panicked("tells"));
        done.and(told.and(ran).map_err(Failure::Host))
    });
    parts::of(programs.into_left()).try_for_each(|part| {
        message::write(output, &FromAgent::Left(part)).map_err(|error| error.to_string())
    })?;
    done
}

/// Sends what is noticed, until nobody notices anything any more.
fn tell(
    notices: &Receiver<Notice>,
    reached: &Reached,
    output: &mut impl Write,
) -> Result<(), String> {
    let shown = |error: std::io::Error| error.to_string();
    let mut told = Vec::new();
    let mut to_say = vec![
        (&reached.transfers_done, FromAgent::TransfersDone),
        (&reached.senders_done, FromAgent::SendersDone),
        (&reached.ended, FromAgent::Ended),
    ];
    loop {
        let next = notices.recv_timeout(TICK);
        if let Ok(Notice { at, flow, what }) = &next {
            told.extend(Told::new(at.as_nanos(), flow.0, what));
        }
        let is_end = matches!(next, Err(RecvTimeoutError::Disconnected));
        if !told.is_empty() && (next.is_err() || told.len() >= 100) {
            message::write(output, &FromAgent::Notices(std::mem::take(&mut told)))
                .map_err(shown)?;
        }
        let is_reached = |(own, _): &mut (&AtomicBool, FromAgent)| own.load(Ordering::Relaxed);
        for (_, message) in to_say.extract_if(.., is_reached) {
            message::write(output, &message).map_err(shown)?;
        }
        if is_end {
            return Ok(());
        }
    }
}
