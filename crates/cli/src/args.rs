//! What can be asked of `sojourn`. The comments are its help, and `docs/cli.md`.

use std::ffi::OsString;
use std::num::NonZero;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Parser, Subcommand, ValueEnum};
use sojourn_core::{Bytes, Rate, Span};
use sojourn_study::runner::Shard;
use sojourn_study::{Overrides, Registry, Study};

use crate::failure::Failure;

const ENDINGS: &str = "Exit codes:
  0  done; every claim holds or is untestable
  1  done, but a claim failed, a comparison found something worse, or a run has no result
  2  something that was given is wrong: an option, a study, a trace, a folder
  3  this machine cannot: a full disk, no permission

Data goes to standard output; progress and messages go to standard error.";

/// TOML has no larger numbers.
const MAX_SEED: u64 = i64::MAX as u64;

/// A laboratory for the last mile: congestion control, queues and links, packet by packet
#[derive(Debug, Parser)]
#[command(name = "sojourn", version, after_help = ENDINGS, max_term_width = 100)]
pub(crate) struct Cli {
    /// Say nothing but errors on standard error
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a study, check its claims and write its report
    ///
    /// What is finished is kept whatever happens: after a kill, Ctrl-C or a full disk, the same
    /// command goes on where it stopped.
    Run(RunArgs),
    /// Read studies as `run` would, without running anything
    ///
    /// Prints what each would do; ends with 2 when one is wrong.
    Check(CheckArgs),
    /// Join the result folders of shards into one, check the claims and write the report
    Join(JoinArgs),
    /// Write the report of a result folder again
    Report(ReportArgs),
    /// Show the results of a folder, or of one of its runs
    Show(ShowArgs),
    /// Compare two result folders, before and after a change, run by run
    ///
    /// Scenarios are paired by their factors and runs by their seeds. Ends with 1 when something
    /// became worse by more than chance explains. With one run of each, nothing tells what chance explains, and
    /// it ends with 1 when something is worse by enough to act on.
    Compare(CompareArgs),
    /// Compare a kernel with the simulation, number by number: this machine's, or one in virtual time
    ///
    /// Without --kernel ten situations of 20 s run live and simulated, and four more if `sojourn live cca load bbr3` was called; that needs Linux and root, and ends with 1 when
    /// a number differs. With --kernel random worlds (rates, delays, queues, loss, congestion controls, windows, starts)
    /// run between guest kernels and simulated: a page shows where the two differ, and what differs most becomes a study
    /// as simple as possible. That ends with 1 when fewer than 90 % of all numbers are inside. The bounds are those of
    /// the project's own fidelity tests.
    Validate(ValidateArgs),
    /// Play in a study's world with this machine's own programs
    #[command(subcommand)]
    Live(LiveCommand),
    /// Write results in the formats of other tools
    ///
    /// `pcap`, `mahimahi` and `call` need every packet, so the run is simulated once more; it is the same
    /// run, or the command says that it is not.
    Export(ExportArgs),
    /// Replay a recorded call through a rate controller, and lay its targets beside the original's
    ///
    /// Packets leave and arrive as they did, whatever the controller decides: the table says what it would have
    /// decided, not how the call would have gone. FILE is what `export --format call` writes, a dump of
    /// chrome://webrtc-internals, or results of getStats.
    Replay(ReplayArgs),
    /// Name what studies are made of: congestion controls, queues, applications, links, metrics
    List(ListArgs),
    /// Begin a study: a file that says what can be written in it
    New(NewArgs),
    /// Look at capacity traces, convert them, make them
    #[command(subcommand)]
    Trace(TraceCommand),
    /// Evaluate a closed form: BBR's share (Ware et al.), response functions, Bianchi, uplink OFDMA …
    Model(ModelArgs),
    /// Say where a study's worlds come to rest, and whether they stay there
    #[command(subcommand, subcommand_value_name = "equilibrium|portrait")]
    Fluid(FluidCommand),
    /// Print the JSON Schema of study files, for editors that complete and check
    Schema,
    /// Print the completions of a shell
    Completions { shell: clap_complete::Shell },
    /// Print the man page, or write one for each verb
    Man(ManArgs),
    /// Build, list and remove Linux kernels that can be the ends of flows
    #[command(subcommand)]
    Kernel(KernelCommand),
    /// Say what this build and this machine can do
    Doctor(DoctorArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// A folder for the pages of all verbs; only sojourn.1 is printed if left out
    #[arg(short, long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

/// Which study, and what is changed in it.
#[derive(Debug, Args)]
pub(crate) struct StudyArgs {
    /// A study file, or a folder with a study.toml
    pub(crate) study: PathBuf,
    /// Change a key or a factor: path.rate=40mbps, flow.bbr.cca=bbr3, 'path.queue=["fq_codel","cake"]'
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// How many seeds (5 is 1 to 5), or which ones: 1,4,7-9
    #[arg(long, value_name = "N|LIST", allow_hyphen_values = true)]
    pub(crate) seeds: Option<SeedChoice>,
    /// This one seed
    #[arg(long, value_name = "SEED", conflicts_with = "seeds", value_parser = clap::value_parser!(u64).range(..=MAX_SEED))]
    pub(crate) seed: Option<u64>,
    /// The engine of every run: sim simulates packets, fluid integrates rates and queues, live sends real packets through this machine's kernel (Linux), kernel puts Linux kernels at the ends of TCP flows in virtual time (Linux)
    #[arg(long, value_name = "ENGINE")]
    pub(crate) engine: Option<String>,
    /// Run live, with the study's hosts on the machines that this file names, reached by ssh, and the bottleneck on this one (Linux, root)
    #[arg(long, value_name = "FILE")]
    pub(crate) hosts: Option<String>,
    /// Make runs at most this long; warm-up, starts and stops shrink in proportion, and traces, steps, changes and the times of stations stay as they are
    #[arg(long, value_name = "TIME")]
    pub(crate) shorten: Option<Span>,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) study: StudyArgs,
    /// Runs at the same time, and threads that make the report; as many as there are cores if left out
    #[arg(short, long, value_name = "N", value_parser = jobs)]
    pub(crate) jobs: Option<NonZero<usize>>,
    /// Only a part of the runs: 2/8 is the second of eight parts, which `join` puts together
    #[arg(long, value_name = "K/N")]
    pub(crate) shard: Option<Shard>,
    /// The result folder; results/STUDY-DIGEST if left out, so that another study or other
    /// settings never meet old results
    #[arg(short, long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print what would be run, and write nothing
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
    /// Write no report.html
    #[arg(long)]
    pub(crate) no_report: bool,
    /// Write the packets of every run too, as RUN.pcapng for Wireshark
    #[arg(long, conflicts_with = "shard")]
    pub(crate) pcap: bool,
    /// Write what each guest kernel prints on its console into this folder (Linux)
    #[arg(long, value_name = "DIR")]
    pub(crate) consoles: Option<PathBuf>,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Study files, or folders with a study.toml
    #[arg(required = true)]
    pub(crate) study: Vec<PathBuf>,
    /// Change a key or a factor, as in `run`
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct JoinArgs {
    /// Result folders of shards
    #[arg(required = true, value_name = "DIR")]
    pub(crate) folders: Vec<PathBuf>,
    /// The folder of the whole; results/STUDY-DIGEST if left out
    #[arg(short, long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Write no report.html
    #[arg(long)]
    pub(crate) no_report: bool,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// A result folder
    pub(crate) folder: PathBuf,
    /// Where the page goes; report.html in the folder if left out, standard output if `-`
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,

    /// One figure of the page instead, to FILE or else to standard output: a view of the study by its
    /// name, or a standard figure (goodput). A drawing is SVG; a table is Markdown, or LaTeX if FILE ends
    /// with .tex
    #[arg(long, value_name = "NAME")]
    pub(crate) figure: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// A result folder, finished or not
    pub(crate) folder: PathBuf,
    /// One run: its number, as `run --dry-run` has it, or the beginning of its name
    pub(crate) run: Option<String>,
    /// One scenario, seed by seed: its number, from 0
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["run", "metric"])]
    pub(crate) scenario: Option<usize>,
    /// Metrics to show, instead of the usual ones: goodput, rtt_p95, queue_max_pkts
    #[arg(short, long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) metric: Vec<String>,
    /// List every scenario and flow, every bound that does not hold, and every line of a run; without it the first 300 of each
    #[arg(long, conflicts_with = "scenario")]
    pub(crate) all: bool,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// The result folder of before
    pub(crate) before: PathBuf,
    /// The result folder of after
    pub(crate) after: PathBuf,
    /// End with 1 only if something is worse by more than this share of what it was: 5%
    #[arg(long, value_name = "SHARE", default_value = "0%")]
    pub(crate) tolerance: Share,
    /// Write a page of the comparison too
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct ValidateArgs {
    /// The result folder
    #[arg(short, long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Make runs at most this long; numbers of shorter ones scatter more. Not with --kernel, whose worlds have lengths of their own
    #[arg(long, value_name = "TIME", conflicts_with = "kernel")]
    pub(crate) shorten: Option<Span>,
    /// Runs of each situation and engine, whose means are compared: numbers of one run scatter where packets are lost at random
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u8).range(1..))]
    pub(crate) seeds: u8,
    /// A kernel built for user mode, in random worlds; without PATH the one of SOJOURN_KERNEL or of `sojourn kernel build`
    #[arg(long, value_name = "PATH", num_args = 0..=1, default_missing_value = "")]
    pub(crate) kernel: Option<String>,
    #[command(flatten)]
    pub(crate) worlds: WorldsArgs,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// Which random worlds a kernel is compared in.
#[derive(Debug, Args)]
#[command(next_help_heading = "Random worlds")]
pub(crate) struct WorldsArgs {
    /// How many; a folder that has some of them goes on with the others
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..), requires = "kernel")]
    pub(crate) worlds: u32,
    /// Draws other worlds
    #[arg(long, value_name = "N", default_value_t = 1, requires = "kernel")]
    pub(crate) seed: u64,
    /// Runs of each world between kernels; as against nine simulated ones
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=100), requires = "kernel")]
    pub(crate) repeats: u64,
    /// Congestion controls of the flows, by their names in studies; one that is named twice is drawn twice as often
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "cubic-linux,cubic-linux,bbr,reno",
        requires = "kernel"
    )]
    pub(crate) cca: Vec<String>,
    /// What congestion controls are called in that kernel, where it is not their name in studies: bbr3-linux:bbr
    #[arg(long, value_name = "PAIRS", requires = "kernel")]
    pub(crate) names: Option<String>,
    /// Settings of the kernels: net.ipv4.tcp_sack:0,net.ipv4.tcp_reordering:5
    #[arg(long, value_name = "SETTINGS", requires = "kernel")]
    pub(crate) sysctl: Option<String>,
    /// So many of the worlds that differ most become studies as simple as possible
    #[arg(long, value_name = "N", default_value_t = 1, requires = "kernel")]
    pub(crate) shrink: usize,
    /// Worlds at a time
    #[arg(long, value_name = "N", default_value_t = 1, requires = "kernel")]
    pub(crate) jobs: usize,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LiveCommand {
    /// Start a shell, or a command, in a host of the study: its links carry what the host sends
    ///
    /// The study's hosts and links stand until the command ends; its flows don't send. SOJOURN_ADDRESS_NAME is the
    /// address of host NAME, and `nsenter --net=$SOJOURN_NET_NAME COMMAND` runs a command there. Needs Linux and root.
    Shell {
        #[command(flatten)]
        study: StudyArgs,
        /// In which host; the second if left out, which is the client of a path
        #[arg(long, value_name = "NAME")]
        host: Option<String>,
        /// What to run there; a shell if left out
        #[arg(last = true, value_name = "COMMAND")]
        command: Vec<OsString>,
    },
    /// Put a study's links and queues between two interfaces of this machine, until Ctrl-C
    ///
    /// What comes in at NEAR takes the way of the study's first flow to FAR, and what comes in there its way back, as
    /// over a bridge. Without it, nothing passes between the two. Their settings are not changed; give them no addresses.
    /// Needs Linux and root.
    Attach {
        #[command(flatten)]
        study: StudyArgs,
        /// The interface on the side of the flow's sender
        near: String,
        /// That on the side of its receiver
        far: String,
        /// End after this time
        #[arg(long = "for", value_name = "TIME")]
        time: Option<Span>,
    },
    /// Congestion controls of this project in this machine's kernel, as BPF programs: bbr3 and bbr-n+
    ///
    /// One that is loaded is like a module of the kernel: studies whose engine is live have it by its name, other programs as `iperf3 -C
    /// bbr3`, and it stays until it is unloaded or the machine is started anew. Needs Linux and root; to load also clang and bpftool.
    #[command(subcommand)]
    Cca(CcaCommand),
    /// What `run --hosts FILE` starts on each host: the ends of flows there, as it is told over standard input
    #[command(hide = true)]
    Agent,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CcaCommand {
    /// Compile congestion controls for the running kernel, and load them
    ///
    /// The source is in this program, and is compiled with clang each time. One that is loaded already stays as it is, unless another version
    /// of this program has loaded it.
    Load {
        /// bbr3, bbr-n+
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
    },
    /// Unload congestion controls
    ///
    /// Connections that have one keep it until they end; new ones can't have it.
    Unload {
        /// bbr3, bbr-n+
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
    },
    /// What can be loaded, what is, and how many sockets use it
    List {
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// A result folder
    pub(crate) folder: PathBuf,
    /// One run: its number or the beginning of its name. `csv` can do without: it then writes a
    /// row for each run, flow and queue, else the time series of the run
    pub(crate) run: Option<String>,
    #[arg(long, value_enum)]
    pub(crate) format: ExportFormat,
    /// mahimahi: the link whose log is written
    #[arg(long, value_name = "NAME", default_value = "queue")]
    pub(crate) link: String,
    /// call: the flow whose rate controller is recorded; the first call if left out
    #[arg(long, value_name = "NAME")]
    pub(crate) flow: Option<String>,
    /// pcap: where packets are captured
    #[arg(long, value_enum, default_value = "senders")]
    pub(crate) taps: Tapped,
    /// Where it goes; standard output if left out
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// The recording; standard input if `-`
    pub(crate) file: PathBuf,
    /// Which controller, with its parameters, as a call's `control`: gcc, 'gcc beta=0.9', nada
    #[arg(short, long, value_name = "NAME")]
    pub(crate) controller: String,
    /// The time over which rates are averaged
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub(crate) step: Span,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Of which kind: cca, queue, carrier, app, control, source, voice, sizes, engine, model, radio, mode, rate, loss,
    /// jitter, reorder, policer, metric or study; a summary if left out. Or a name, of whatever kind: `list cake`. Or what one calls it: `list latency`
    pub(crate) kind: Option<String>,
    /// Only this one, or what is called so: `list queue cake`, `list metric completion`
    #[arg(requires = "kind")]
    pub(crate) name: Option<String>,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct NewArgs {
    /// A folder to make, with a study.toml in it; or a file that ends in .toml
    pub(crate) name: PathBuf,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) template: Template,
    /// The congestion control that the template ccwg is about, with its parameters [default: bbr3]
    #[arg(long, value_name = "NAME")]
    pub(crate) cca: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Template {
    /// Two flows and a call over one bottleneck, with a word on all that can be written
    #[default]
    Study,
    /// A new congestion control by RFC 9743's criteria, against CUBIC
    Ccwg,
}

#[derive(Debug, Args)]
pub(crate) struct ModelArgs {
    /// Which formula; `sojourn list model` names them
    pub(crate) formula: String,
    /// Its parameters, each with one value or several: buffer=1,2,4 flows=1. Without any: the table of
    /// the paper, if it has one
    #[arg(value_name = "KEY=VALUE")]
    pub(crate) params: Vec<String>,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FluidCommand {
    /// Print for each scenario the queue, windows and rates at which nothing changes, and whether a small
    /// disturbance dies away: the roots of the linearised equations with their delays
    Equilibrium(EquilibriumArgs),
    /// Print as CSV how windows and queue move from several starts: a phase portrait
    Portrait(PortraitArgs),
}

#[derive(Debug, Args)]
pub(crate) struct EquilibriumArgs {
    #[command(flatten)]
    pub(crate) study: StudyArgs,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct PortraitArgs {
    #[command(flatten)]
    pub(crate) study: StudyArgs,
    /// Which scenario, in the order of `check`
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) scenario: usize,
    /// Starts, as multiples of the state at rest
    #[arg(long, value_name = "FACTOR,…", value_delimiter = ',', default_values_t = [0.25, 0.5, 1.01, 2.0], value_parser = factor)]
    pub(crate) start: Vec<f64>,
    /// How long
    #[arg(long, value_name = "TIME", default_value = "20s")]
    pub(crate) time: Span,
    /// Rows of each start
    #[arg(long, value_name = "N", default_value_t = 400, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) rows: u32,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// End with 3 if this machine can't run the engine live
    #[arg(long)]
    pub(crate) live: bool,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KernelCommand {
    /// Build a kernel from the distribution's source package, or from a source tree
    ///
    /// Takes five minutes on two cores. Prints where the kernel is: `engine = "kernel"` uses the first one that was built, `engine =
    /// "kernel kernel=PATH"` any other. As root it installs the package linux-source if there is none.
    Build(KernelBuildArgs),
    /// Name the kernels in the cache: release, digest, size
    List {
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
    /// Remove a kernel from the cache, and what lies there for its next build
    Remove {
        /// What `sojourn kernel list` calls it
        name: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct KernelBuildArgs {
    /// A source tree of a kernel, patched or not
    #[arg(long, value_name = "DIR")]
    pub(crate) source: Option<PathBuf>,
    /// What the kernel is called in the cache; `linux`, or the name of the source tree's folder, if left out
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// Say how long a trace is, what its rates are and when it is blocked
    Info {
        #[command(flatten)]
        trace: TraceArgs,
        /// When and how long the rate is below this; half the median if left out
        #[arg(long, value_name = "RATE")]
        below: Vec<Rate>,
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
    /// Write a trace in another format
    Convert {
        #[command(flatten)]
        trace: TraceArgs,
        /// The format to write
        #[arg(long, value_enum, value_name = "FORMAT")]
        to: TraceFormat,
        #[command(flatten)]
        units: UnitArgs,
        /// Play it as a published testbed did: `witest-2020`
        #[arg(long, value_name = "NAME")]
        playback: Option<PlaybackName>,
        /// Where it goes; standard output if left out
        #[arg(short, long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Make a trace: of a 60 GHz link that is blocked now and then, of a cellular link, of a test case
    Synth {
        /// static, short-blockages, long-blockages or mobility-and-blockages; or a rate as a study
        /// has it: `brownian max 12mbit`, `rfc8867 5.1`, `steps 10mbit 5s 0 500ms 10mbit 5s`
        #[arg(required = true, value_name = "MODEL")]
        model: Vec<String>,
        /// How long it is to be; 120s if the model has no length of its own
        #[arg(long, value_name = "TIME")]
        duration: Option<Span>,
        /// Which trace: the one that the link meets in a run with this seed
        #[arg(long, value_name = "SEED", default_value_t = 1)]
        seed: u64,
        /// `repeat.study_seed` of that study
        #[arg(long, value_name = "SEED", default_value_t = 1)]
        study_seed: u64,
        /// Name of the link there; a path's is `queue`
        #[arg(long, value_name = "NAME", default_value = "queue")]
        link: String,
        /// The lowest scheme's capacity where a blockage would leave none
        #[arg(long)]
        no_outages: bool,
        /// The format to write; what the model is made of if left out
        #[arg(long, value_enum, value_name = "FORMAT")]
        to: Option<TraceFormat>,
        #[command(flatten)]
        units: UnitArgs,
        /// Where it goes; standard output if left out
        #[arg(short, long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Draw a trace in the terminal, or as a picture
    Plot {
        #[command(flatten)]
        trace: TraceArgs,
        #[arg(long, value_name = "COLUMNS", default_value_t = 80, value_parser = clap::value_parser!(u16).range(20..=500))]
        width: u16,
        #[arg(long, value_name = "LINES", default_value_t = 16, value_parser = clap::value_parser!(u16).range(4..=100))]
        height: u16,
        /// Write a picture instead, in SVG
        #[arg(long, value_name = "FILE")]
        svg: Option<PathBuf>,
        /// The time over which opportunities are counted to make a rate
        #[arg(long, value_name = "TIME", default_value = "100ms")]
        step: Span,
    },
}

#[derive(Debug, Args)]
pub(crate) struct TraceArgs {
    /// The trace; standard input if `-`
    pub(crate) file: PathBuf,
    /// What it is written in; seen from its first lines if left out
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) from: Option<TraceFormat>,
    /// What to take as the rate: a column of a CSV, `uplink` or `downlink` of gym
    #[arg(long, value_name = "NAME")]
    pub(crate) column: Option<String>,
}

/// How delivery opportunities and rates become one another.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct UnitArgs {
    /// What one delivery opportunity carries
    #[arg(long, value_name = "SIZE", default_value = "1500B")]
    pub(crate) opportunity: Bytes,
    /// The time over which opportunities are counted to make a rate
    #[arg(long, value_name = "TIME", default_value = "100ms")]
    pub(crate) step: Span,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    #[default]
    Table,
    Json,
    Csv,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TraceFormat {
    /// Lines of rate_mbps,interval_s
    Steps,
    /// Lines of a time in seconds and a rate in Mbit/s, as Lumos5G's
    Samples,
    /// Columns under a head: Timestamp,DL_bitrate and the like
    Csv,
    /// The JSON of OpenNetLab's gym
    Gym,
    /// A line for each delivery opportunity, with its millisecond
    Mahimahi,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// Spreadsheets, pandas
    Csv,
    /// A .flent.gz for flent's plots
    Flent,
    /// What `iperf3 --json` prints
    Iperf3Json,
    /// What `mm-link --uplink-log` writes, for mm-throughput-graph and mm-delay-graph
    Mahimahi,
    /// A .pcapng for Wireshark
    Pcap,
    /// What the rate controller of a call was told and what it decided, for `sojourn replay`
    Call,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Tapped {
    /// As tcpdump at every sender would
    Senders,
    /// At senders and receivers, before and after every queue
    All,
}

/// Runs at the same time.
fn factor(text: &str) -> Result<f64, String> {
    let factor = text.trim().parse().ok().filter(|factor| (0.001..=1000.0).contains(factor));
    factor.ok_or_else(|| format!("'{text}' is no start (allowed: 0.001 to 1000)"))
}

fn jobs(text: &str) -> Result<NonZero<usize>, String> {
    const MOST: usize = 4096;
    let jobs = text.trim().parse().ok().filter(|jobs: &NonZero<usize>| jobs.get() <= MOST);
    jobs.ok_or_else(|| format!("'{text}' is no number of runs (allowed: 1 to {MOST})"))
}

/// Seeds, as many or which ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SeedChoice {
    Count(u64),
    List(Vec<u64>),
}

impl FromStr for SeedChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const MOST: u64 = 100_000;
        let wrong = || {
            format!(
                "'{text}' names no seeds (allowed: a number such as 5, for 1 to 5; a list such as 1,4,7-9)"
            )
        };
        let number = |text: &str| {
            let number = text.trim().parse::<u64>().ok().filter(|number| *number <= MAX_SEED);
            number.ok_or_else(wrong)
        };
        if !text.contains([',', '-']) {
            return match number(text)? {
                count @ 1..=MOST => Ok(Self::Count(count)),
                _ => Err(format!("{text} seeds are none or too many (allowed: 1 to {MOST})")),
            };
        }
        let mut list = Vec::new();
        for part in text.split(',').filter(|part| !part.trim().is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (number(first)?, number(last)?);
            if last < first {
                return Err(wrong());
            }
            if last - first >= MOST - list.len() as u64 {
                return Err(format!("'{text}' names too many seeds (allowed: at most {MOST})"));
            }
            list.extend(first..=last);
        }
        match list.is_empty() {
            true => Err(wrong()),
            false => Ok(Self::List(list)),
        }
    }
}

/// A share, written as `5%` or `0.05`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Share(pub(crate) f64);

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let share = match text.trim().strip_suffix('%') {
            Some(percent) => percent.trim_end().parse::<f64>().map(|percent| percent / 100.0),
            None => text.trim().parse(),
        };
        match share {
            Ok(share) if share.is_finite() && share >= 0.0 => Ok(Self(share)),
            _ => Err(format!("'{text}' is no share (allowed: 5%, 0.05)")),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlaybackName {
    Nominal,
    #[value(name = "witest-2020")]
    Witest2020,
}

impl StudyArgs {
    pub(crate) fn load(&self, registry: &Registry) -> Result<Study, Failure> {
        let mut set = self.set.clone();
        set.extend(self.engine()?.map(|engine| format!("engine={engine}")));
        let mut seeds = None;
        match (&self.seeds, self.seed) {
            (Some(SeedChoice::Count(count)), _) => seeds = Some(*count),
            (Some(SeedChoice::List(list)), _) => set.push(set_seeds(list)),
            (None, Some(seed)) => set.push(set_seeds(&[seed])),
            (None, None) => {}
        }
        let overrides = Overrides { set, seeds, shorten: self.shorten };
        Ok(Study::load_with(registry, &self.study, &overrides)?)
    }

    fn engine(&self) -> Result<Option<String>, Failure> {
        let Some(path) = &self.hosts else { return Ok(self.engine.clone()) };
        let engine = self.engine.as_deref().unwrap_or("live");
        if engine.split(' ').next() != Some("live") {
            let problem = format!("--hosts needs the live engine, and --engine is '{engine}'");
            return Err(Failure::Input(format!("{problem} (allowed: live, or no --engine)")));
        }
        if path.is_empty() || path.contains(char::is_whitespace) {
            let problem = format!("--hosts '{path}' is no path that an engine can have");
            return Err(Failure::Input(format!("{problem} (allowed: one without blanks)")));
        }
        Ok(Some(format!("{engine} hosts={path}")))
    }
}

fn set_seeds(list: &[u64]) -> String {
    let list: Vec<String> = list.iter().map(u64::to_string).collect();
    format!("repeat.seeds=[{}]", list.join(","))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_argument_makes_a_parser_panic(text in "[-0-9,./ %a-z]{0,16}|\\PC{0,12}") {
            let _ = text.parse::<SeedChoice>();
            let _ = text.parse::<Share>();
            let _ = jobs(&text);
            let _ = text.parse::<Shard>();
            let _ = text.parse::<Span>();
            let _ = text.parse::<Rate>();
            let _ = text.parse::<Bytes>();
        }

        #[test]
        fn no_words_make_the_command_line_panic(
            words in prop::collection::vec(
                prop::sample::select(vec![
                    "run", "check", "list", "queue", "trace", "info", "synth", "--set", "--shard", "1/2",
                    "0/0", "--seeds", "1-3", "--seed", "-1", "--jobs", "0", "--shorten", "1ns", "--out",
                    "--", "-", "", "é", "--format", "json", "--tolerance", "5%", "study.toml", "-q", "=",
                ]),
                0..8,
            )
        ) {
            let _ = Cli::try_parse_from(std::iter::once("sojourn").chain(words));
        }

        #[test]
        fn seeds_are_those_that_are_written(seeds in prop::collection::vec(0..=MAX_SEED, 2..20)) {
            let text = seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
            prop_assert_eq!(text.parse(), Ok(SeedChoice::List(seeds)));
        }
    }

    #[test]
    fn a_number_is_how_many_seeds_and_a_list_is_which() {
        let read = |text: &str| text.parse::<SeedChoice>();
        assert_eq!(read("5"), Ok(SeedChoice::Count(5)));
        assert_eq!(read("1,4,7-9"), Ok(SeedChoice::List(vec![1, 4, 7, 8, 9])));
        assert_eq!(read("3,"), Ok(SeedChoice::List(vec![3])));
        assert_eq!(read("1-100000").map(|choice| matches!(choice, SeedChoice::List(_))), Ok(true));
        for text in [
            "0",
            "x",
            "",
            ",",
            "1,x",
            "9-1",
            "1-99999999",
            "-3",
            "1000000",
            "1-60000,1-60000",
            "0-18446744073709551615",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_share_is_a_number_or_per_cent() {
        assert_eq!("5%".parse(), Ok(Share(0.05)));
        assert_eq!("0.05".parse(), Ok(Share(0.05)));
        for text in ["", "x", "-1%", "nan", "inf"] {
            assert!(text.parse::<Share>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_description_of_the_arguments_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }
}
