//! Guests that speak nonsense, hang or end, and commands that are killed: the run learns why, and nothing is left.
//!
//! The program of this test is the hostile guest itself: it is given to [`Kernel`] as a kernel.

#[cfg(target_os = "linux")]
fn main() {
    linux::main();
}

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    use std::path::{Path, PathBuf};
    use std::process::{Command, Stdio};
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use sojourn_core::{NoObserver, Span, StreamAddress};
    use sojourn_kernel::Kernel;
    use sojourn_link::RateConfig;
    use sojourn_scenario::{App, ExternalApp, Flow, Host, Link, Scenario, Until};

    pub(crate) fn main() {
        let first = std::env::args().nth(1).unwrap_or_default();
        if first.starts_with("mem=") {
            let own = std::env::args().next().unwrap_or_default();
            match own.rsplit('/').next() {
                Some("talker") => return talk().unwrap_or(()),
                Some("walker") => return walk().unwrap_or(()),
                Some("dier") => return print_and_die(),
                _ => {}
            }
            let seed = std::env::var("SOJOURN_SEED").ok().and_then(|seed| seed.parse().ok());
            return hostile(seed.unwrap_or(1)).unwrap_or(());
        }
        if first == "victim" {
            let kernel = std::env::args().nth(2).expect("the kernel's path");
            let _ = run(Kernel { kernel: Some(kernel), ..Kernel::default() }, 10_000, 1);
            return;
        }
        // It knows no release.
        if first == "--list" || first == "--version" {
            return;
        }
        nonsense_is_named();
        a_guest_that_never_waits_is_named();
        a_guest_that_gets_nowhere_is_named();
        a_guest_that_was_killed_is_named();
        nothing_is_left_after_kills();
    }

    fn run(kernel: Kernel, seconds: u64, seed: u64) -> Result<(), String> {
        let queue = sojourn_qdisc::Config::parse("pfifo limit 50").expect("a shipped discipline");
        let link = |name: &str| {
            Link::new(name, queue.clone(), RateConfig::Unlimited, Span::from_millis(10))
        };
        let app = App::External(ExternalApp(Arc::new(kernel)));
        let scenario = Scenario {
            duration: Span::from_secs(seconds),
            until: Until::Duration,
            warmup: Span::ZERO,
            step: Span::from_millis(100),
            hosts: ["server", "client"].map(|name| Host { name: name.into() }).into(),
            links: vec![link("there"), link("back")],
            carriers: Vec::new(),
            changes: Vec::new(),
            flows: vec![Flow::new("flow", app, &[0], &[1])],
        };
        let scenario = scenario.checked().expect("a sound scenario");
        let address = StreamAddress { seed, run: 1 };
        let outcome = sojourn_sim::run(&scenario, address, &mut NoObserver);
        outcome.map(drop).map_err(|violation| violation.to_string())
    }

    fn nonsense_is_named() {
        const NAMES: [&str; 5] =
            ["breaks the protocol", "guest kernel ended", "has hung", "spins", "a guest"];
        let own = std::env::current_exe().expect("a test has a path");
        let mut seen = [0; NAMES.len()];
        for seed in 0..60 {
            let began = Instant::now();
            let kernel = Kernel {
                kernel: Some(own.display().to_string()),
                patience: Span::from_millis(250),
                ..Kernel::default()
            };
            let problem = run(kernel, 1, seed).expect_err("it is no kernel");
            let name = NAMES.iter().position(|name| problem.contains(name));
            seen[name.unwrap_or_else(|| panic!("seed {seed}: {problem}"))] += 1;
            assert!(began.elapsed() < Duration::from_secs(20), "seed {seed}: {problem}");
        }
        eprintln!("nonsense_is_named ... ok ({NAMES:?}: {seen:?})");
        assert!(seen[..4].iter().all(|count| *count > 0), "{seen:?}");
    }

    fn a_guest_that_never_waits_is_named() {
        let problem = run_as("talker", Span::from_secs(20));
        assert!(problem.contains("more than 100000 messages at one moment"), "{problem}");
        eprintln!("a_guest_that_never_waits_is_named ... ok");
    }

    fn a_guest_that_gets_nowhere_is_named() {
        let problem = run_as("walker", Span::from_secs(20));
        assert!(problem.contains("busy for 1000 ms of its own time"), "{problem}");
        eprintln!("a_guest_that_gets_nowhere_is_named ... ok");
    }

    fn a_guest_that_was_killed_is_named() {
        let problem = run_as("dier", Span::from_secs(20));
        assert!(problem.contains("was killed by signal 9 (SIGKILL"), "{problem}");
        assert!(problem.contains("last words"), "{problem}");
        eprintln!("a_guest_that_was_killed_is_named ... ok");
    }

    /// What goes wrong with the guest that knows itself by this name.
    fn run_as(name: &str, patience: Span) -> String {
        let own = std::env::current_exe().expect("a test has a path");
        let folder = std::env::temp_dir().join(format!("sojourn-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder for a test");
        let link = folder.join(name);
        std::os::unix::fs::symlink(own, &link).expect("a link can be made");
        let kernel = Some(link.display().to_string());
        let problem = run(Kernel { kernel, patience, ..Kernel::default() }, 1, 1);
        fs::remove_dir_all(&folder).expect("nobody uses it");
        problem.expect_err("it is no kernel")
    }

    /// Its clock moves on with each answer, and it never has a pause: a loop that waits for what does not come.
    fn walk() -> std::io::Result<()> {
        const ACK: u32 = 0;
        const RUN: u32 = 6;
        let mut clock = UnixStream::connect("/proc/self/fd/9/clock")?;
        let mut answer = [0; 16];
        let mut now = 0;
        clock.write_all(&message(1, 1, 0))?;
        clock.read_exact(&mut answer)?;
        loop {
            for (kind, time) in [(2, now + 1), (3, 0)] {
                clock.write_all(&message(kind, 1, time))?;
                clock.read_exact(&mut answer)?;
            }
            // How long it need not ask, if it need not, and that it may run.
            let mut may_run = false;
            while !may_run {
                clock.read_exact(&mut answer)?;
                may_run = answer[..4] == RUN.to_ne_bytes();
                let time = answer[8..].try_into().expect("eight bytes");
                now = now.max(u64::from_ne_bytes(time));
                answer[..4].copy_from_slice(&ACK.to_ne_bytes());
                clock.write_all(&answer)?;
            }
        }
    }

    /// It prints, and is killed.
    fn print_and_die() {
        let _ = std::io::stdout().write_all(b"its last words\n");
        end(std::process::id());
    }

    /// It says for ever when it wants to run, and never that it waits.
    fn talk() -> std::io::Result<()> {
        let mut clock = UnixStream::connect("/proc/self/fd/9/clock")?;
        let mut answer = [0; 16];
        clock.write_all(&message(1, 1, 0))?;
        clock.read_exact(&mut answer)?;
        for number in 2.. {
            clock.write_all(&message(2, number, 0))?;
            clock.read_exact(&mut answer)?;
        }
        Ok(())
    }

    /// What a guest's kernel would not do, as the seed has it.
    fn hostile(seed: u64) -> std::io::Result<()> {
        let mut state = seed | 1;
        let mut draw = |bound: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % bound
        };
        if draw(8) == 0 {
            // It never says anything.
            std::thread::sleep(Duration::from_secs(60));
        }
        let folder = Path::new("/proc/self/fd/9");
        let mut clock = UnixStream::connect(folder.join("clock"))?;
        let mut ack = [0; 16];
        clock.write_all(&message(1, 1, 0))?;
        clock.read_exact(&mut ack)?;
        if draw(8) == 0 {
            return spin(&mut clock);
        }
        let mut card = UnixStream::connect(folder.join("card"))?;
        for step in 0..50 {
            match draw(12) {
                0 => return Ok(()),
                1 => std::thread::sleep(Duration::from_secs(60)),
                2 => clock.write_all(&[7; 5])?,
                3 => clock.write_all(&message(draw(12) as u32, step, draw(u64::MAX)))?,
                4 => card.write_all(&bytes(draw(200) as usize, &mut draw))?,
                // It asks for what a card has, and is answered.
                5..9 => {
                    let header = [[1, 11, 15, 24][draw(4) as usize], 1 | (8 * draw(2) as u32), 8];
                    card.write_all(&header.map(u32::to_ne_bytes).concat())?;
                    card.write_all(&[0; 8])?;
                    card.read_exact(&mut [0; 12])?;
                }
                _ => {
                    let kind = draw(40) as u32;
                    let payload = bytes(draw(80) as usize, &mut draw);
                    let header = [kind, 1 | (8 * draw(2) as u32), payload.len() as u32];
                    card.write_all(&header.map(u32::to_ne_bytes).concat())?;
                    card.write_all(&payload)?;
                }
            }
        }
        Ok(())
    }

    /// It always wants to go on at once, and its clock stands still.
    fn spin(clock: &mut UnixStream) -> std::io::Result<()> {
        const ACK: u32 = 0;
        const REQUEST: u32 = 2;
        const WAIT: u32 = 3;
        let mut answer = [0; 16];
        loop {
            for kind in [REQUEST, WAIT] {
                clock.write_all(&message(kind, 1, 0))?;
                clock.read_exact(&mut answer)?;
            }
            // That it need not ask for the time, and that it may run.
            for _ in 0..2 {
                clock.read_exact(&mut answer)?;
                answer[..4].copy_from_slice(&ACK.to_ne_bytes());
                clock.write_all(&answer)?;
            }
        }
    }

    fn message(kind: u32, number: u32, time: u64) -> Vec<u8> {
        [&kind.to_ne_bytes()[..], &number.to_ne_bytes(), &time.to_ne_bytes()].concat()
    }

    fn bytes(len: usize, draw: &mut impl FnMut(u64) -> u64) -> Vec<u8> {
        (0..len).map(|_| draw(256) as u8).collect()
    }

    fn nothing_is_left_after_kills() {
        let kernel = match sojourn_kernel::usual_kernel() {
            Ok(kernel) => kernel,
            Err(reason) => return eprintln!("nothing_is_left_after_kills is skipped: {reason}"),
        };
        // Its processes are known by the path of their program.
        let folder = std::env::temp_dir().join(format!("sojourn-kills-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder for a test");
        let copy = folder.join("linux");
        fs::copy(&kernel, &copy).expect("the kernel can be copied");
        let own = std::env::current_exe().expect("a test has a path");
        let kills = std::env::var("SOJOURN_KILLS").ok().and_then(|kills| kills.parse().ok());
        let kills = kills.unwrap_or(10);
        let mut most = 0;
        let mut swept = Vec::new();
        for kill in 0..kills {
            let mut command = Command::new(&own);
            command.arg("victim").arg(&copy).stdout(Stdio::null()).stderr(Stdio::null());
            let mut victim = command.spawn().expect("a test can start itself");
            std::thread::sleep(Duration::from_millis(kill * 137 % 1200));
            let guests = processes(&copy);
            most = most.max(guests.len());
            // Now and then a guest dies; then the run ends by itself.
            let killed = guests.first().copied().filter(|_| kill % 4 == 2);
            if let Some(process) = killed {
                end(process);
                let until = Instant::now() + Duration::from_secs(5);
                while victim.try_wait().is_ok_and(|ended| ended.is_none()) && Instant::now() < until
                {
                    std::thread::sleep(Duration::from_millis(5));
                }
            }
            // Now and then whoever would clean up dies first. If the command then has no time to, the next run does.
            let has_keepers = kill % 4 != 3;
            for keeper in children(victim.id()).into_iter().filter(|_| !has_keepers) {
                end(keeper);
            }
            victim.kill().expect("it runs");
            victim.wait().expect("it was killed");
            let until = Instant::now() + Duration::from_secs(5);
            let name = format!("sojourn-{}-", victim.id());
            while (!processes(&copy).is_empty() || has_keepers && !left(&name).is_empty())
                && Instant::now() < until
            {
                std::thread::sleep(Duration::from_millis(5));
            }
            let (alive, left) = (processes(&copy), left(&name));
            assert!(alive.is_empty(), "after kill {kill}: {alive:?}");
            assert!(left.is_empty() || !has_keepers, "after kill {kill}: {left:?}");
            swept.push(name);
        }
        assert!(most >= 2, "no guest ever ran");
        run(Kernel { kernel: Some(copy.display().to_string()), ..Kernel::default() }, 1, 1)
            .expect("a guest runs after others were killed");
        assert_eq!(processes(&copy), Vec::<u32>::new());
        swept.iter().for_each(|name| assert!(left(name).is_empty(), "{:?}", left(name)));
        fs::remove_dir_all(&folder).expect("nobody uses it");
        eprintln!(
            "nothing_is_left_after_kills ... ok ({kills} kills, up to {most} processes of guests)"
        );
    }

    fn end(process: u32) {
        let process =
            rustix::process::Pid::from_raw(process as i32).expect("a number of a process");
        let _ = rustix::process::kill_process(process, rustix::process::Signal::KILL);
    }

    fn children(parent: u32) -> Vec<u32> {
        let threads = fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
        let texts = threads.filter_map(|own| fs::read_to_string(own.path().join("children")).ok());
        let numbers = |text: String| text.split_whitespace().map(str::parse).collect::<Vec<_>>();
        texts.flat_map(numbers).flatten().collect()
    }

    /// Of whom `program` is the program, and who is no zombie.
    fn processes(program: &Path) -> Vec<u32> {
        let entries = fs::read_dir("/proc").expect("there is /proc");
        let number = |name: PathBuf| name.file_name()?.to_str()?.parse().ok();
        let numbers = entries.flatten().filter_map(|entry| number(entry.path()));
        numbers
            .filter(|process: &u32| {
                fs::read_link(format!("/proc/{process}/exe")).is_ok_and(|exe| exe == program)
            })
            .collect()
    }

    fn left(name: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
        let of_name = |path: &PathBuf| {
            path.file_name().is_some_and(|file| file.to_string_lossy().starts_with(name))
        };
        entries.map(|entry| entry.path()).filter(of_name).collect()
    }
}
