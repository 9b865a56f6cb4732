//! `cargo xtask fuzz [TARGET] [--seconds N]`: mutated inputs for every parser of external content,
//! on stable Rust.
//!
//! Main function: [`run`]. A worker process of this program runs the inputs with a memory limit of
//! 512 MiB; the parent process watches its progress. Input number `i` depends only on the seed and
//! `i`, so a failure can be repeated with `--seed S --only I`. Seeds are in `seeds/`.

mod helm;
mod inputs;
mod kustomize;
mod mutate;
mod nested;
mod outside;
mod plugin;
mod signed;
mod targets;
mod worker;

use anyhow::{Context, bail};
use clap::Args;
use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Command, Stdio},
    sync::mpsc,
    time::{Duration, Instant},
};
use targets::Target;

/// In KiB, for `ulimit -v`; the address space is larger than the memory really in use.
const MEMORY: u64 = 512 * 1024;
/// The longest time for an input; more in a debug build on a busy machine.
const SLOWEST: Duration = Duration::from_secs(if cfg!(debug_assertions) { 60 } else { 2 });

/// The stack size of threads that handle requests and render: the default of Rust and of tokio. The
/// program itself gives its workers more.
const STACK: usize = 2 << 20;

#[derive(Args, Clone)]
pub struct Fuzz {
    /// json, json-patch, strategic-merge, fields-v1, crd-schema, template, chart-archive, chart,
    /// index, oci-manifest, oci-layer, oci-challenge, pgp, strvals, yaml, jq, lua, selector,
    /// values-schema, toml, query, kube-body, expr, jsonnet, grpc, tree, kustomization,
    /// plugin-frames or worker-frames; all of them without it
    target: Option<String>,
    /// How long, for each target
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// How many inputs, for each target, however long they take
    #[arg(long, conflicts_with_all = ["seconds", "nested"])]
    inputs: Option<u64>,
    /// Another seed, other inputs
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Run this one input, and print it
    #[arg(long)]
    only: Option<u64>,
    /// Instead of mutated inputs, some that are nested in up to this many levels
    #[arg(long, value_name = "LEVELS")]
    nested: Option<usize>,
    /// Be the process that runs the inputs
    #[arg(long, hide = true)]
    worker: bool,
}

pub fn run(args: &Fuzz) -> anyhow::Result<()> {
    let wanted = |t: &&Target| args.target.as_ref().is_none_or(|name| name == t.name);
    let chosen: Vec<&'static Target> = targets::ALL.iter().filter(wanted).collect();
    if chosen.is_empty() {
        let names: Vec<&str> = targets::ALL.iter().map(|t| t.name).collect();
        bail!("no such target; there are {}", names.join(", "));
    }
    for target in chosen {
        if args.nested.is_some() && nested::of(target.name).is_empty() {
            anyhow::ensure!(
                args.target.is_none(),
                "{} has no nested inputs",
                target.name
            );
            continue;
        }
        match (args.worker, args.only) {
            (true, _) => on_a_small_stack(target, args, work)?,
            (false, Some(index)) => on_a_small_stack(target, args, move |target, args| {
                one(target, args, index);
                Ok(())
            })?,
            (false, None) => watch(target, args)?,
        }
    }
    Ok(())
}

fn on_a_small_stack(
    target: &'static Target,
    args: &Fuzz,
    run: impl FnOnce(&Target, &Fuzz) -> anyhow::Result<()> + Send + 'static,
) -> anyhow::Result<()> {
    let args = args.clone();
    let thread = std::thread::Builder::new()
        .stack_size(STACK)
        .spawn(move || run(target, &args))
        .context("no thread")?;
    thread.join().map_err(|_| anyhow::anyhow!("it panicked"))?
}

fn one(target: &Target, args: &Fuzz, index: u64) {
    let input = match args.nested {
        Some(most) => inputs_nested(target, most)
            .into_iter()
            .nth(index as usize)
            .unwrap_or_default(),
        None => mutate::input(target.seeds, args.seed, index),
    };
    println!("{}", String::from_utf8_lossy(&input));
    match (target.run)(&input) {
        Ok(()) => println!("ok"),
        Err(why) => println!("fails: {why}"),
    }
}

/// Runs inputs until the time is over; prints the number of each block of inputs before it begins,
/// and that of a failing input.
fn work(target: &Target, args: &Fuzz) -> anyhow::Result<()> {
    let end = Instant::now() + Duration::from_secs(args.seconds);
    let mut out = std::io::stdout();
    std::panic::set_hook(Box::new(|_| {}));
    let mut slowest = (Duration::ZERO, 0);
    let mut nested = args
        .nested
        .map(|most| inputs_nested(target, most).into_iter());
    for index in 0.. {
        let input = match &mut nested {
            Some(inputs) => inputs.next(),
            None => {
                let is_wanted = match args.inputs {
                    Some(inputs) => index < inputs,
                    None => Instant::now() <= end,
                };
                is_wanted.then(|| mutate::input(target.seeds, args.seed, index))
            }
        };
        let Some(input) = input else {
            writeln!(
                out,
                "done {index} {} {} {}",
                peak_memory(),
                slowest.0.as_millis(),
                slowest.1
            )?;
            return Ok(());
        };
        // The parent must know the input if this process is killed.
        writeln!(out, "at {index}")?;
        let began = Instant::now();
        let verdict = std::panic::catch_unwind(|| (target.run)(&input))
            .unwrap_or_else(|_| Err("panicked".into()));
        slowest = slowest.max((began.elapsed(), index));
        if let Err(why) = verdict {
            writeln!(out, "fail {index} {}", why.replace('\n', " "))?;
            return Ok(());
        }
    }
    Ok(())
}

/// Around the existing limits, and far beyond them.
const LEVELS: [usize; 10] = [1, 60, 99, 126, 199, 399, 450, 999, 20_000, 100_000];
/// Fewer, for targets that start a server for each input.
const FEW: [usize; 4] = [60, 126, 999, 100_000];

fn inputs_nested(target: &Target, most: usize) -> Vec<Vec<u8>> {
    let all = if matches!(target.name, "kube-body" | "plugin-frames") {
        &FEW[..]
    } else {
        &LEVELS[..]
    };
    let levels = || all.iter().copied().filter(|levels| *levels <= most);
    nested::of(target.name)
        .iter()
        .flat_map(|make| levels().map(|levels| make(levels).into_bytes()))
        .collect()
}

/// Peak memory of this process in KiB; 0 if the system does not report it.
#[allow(
    clippy::disallowed_methods,
    reason = "a task of the repository reads what the system says of it"
)]
fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.and_then(|l| l.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

fn watch(target: &Target, args: &Fuzz) -> anyhow::Result<()> {
    let program = std::env::current_exe().context("this program has no path")?;
    let mut worker = worker(&program, target, args)
        .spawn()
        .context("cannot start the worker")?;
    let output = worker.stdout.take().context("the worker has no output")?;
    let (send, receive) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if send.send(line).is_err() {
                break;
            }
        }
    });
    let mut last = 0;
    let verdict = loop {
        match receive.recv_timeout(SLOWEST) {
            Ok(line) => {
                let mut words = line.splitn(3, ' ');
                match (words.next(), words.next(), words.next()) {
                    (Some("at"), Some(index), _) => last = index.parse().unwrap_or(last),
                    (Some("done"), Some(count), rest) => {
                        break Ok(format!("{count} inputs, {}", figures(rest)));
                    }
                    (Some("fail"), _, why) => break Err(why.unwrap_or("failed").to_owned()),
                    _ => {}
                }
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {
                break Err(format!("took longer than {} s", SLOWEST.as_secs()));
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                break Err("the process ended: out of memory, or the stack overflowed".into());
            }
        }
    };
    // It may already have ended.
    let _ = worker.kill();
    worker.wait().context("cannot wait for the worker")?;
    drop(receive);
    reader.join().ok();
    match verdict {
        Ok(text) => {
            println!("{}: {text}", target.name);
            Ok(())
        }
        Err(why) => bail!(
            "{}: input {last}: {why}; repeat it with `cargo xtask fuzz {} --seed {}{} --only {last}`",
            target.name,
            target.name,
            args.seed,
            args.nested
                .map_or(String::new(), |levels| format!(" --nested {levels}"))
        ),
    }
}

fn figures(rest: Option<&str>) -> String {
    let mut words = rest.unwrap_or_default().split(' ');
    let mut next = || words.next().unwrap_or("0");
    let (memory, slowest, which) = (next().parse::<u64>().unwrap_or(0), next(), next());
    format!(
        "at most {} MiB, slowest {slowest} ms (input {which})",
        memory / 1024
    )
}

/// The shell sets the limit, which needs no unsafe code.
fn worker(program: &Path, target: &Target, args: &Fuzz) -> Command {
    let mut command = Command::new("sh");
    // Errors of libraries with a backtrace would load this program's debug information, which takes
    // half of the memory.
    command.env("RUST_LIB_BACKTRACE", "0");
    command
        .args(["-c", &format!("ulimit -v {MEMORY}; exec \"$0\" \"$@\"")])
        .arg(program);
    command.args(["fuzz", target.name, "--worker"]);
    command.args(["--seed", &args.seed.to_string()]);
    match args.inputs {
        Some(inputs) => command.args(["--inputs", &inputs.to_string()]),
        None => command.args(["--seconds", &args.seconds.to_string()]),
    };
    if let Some(levels) = args.nested {
        command.args(["--nested", &levels.to_string()]);
    }
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command
}
