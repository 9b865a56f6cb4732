//! Carries out the steps of a scenario, in order. Main function: [`run`].

use super::{compare, world::World};
use anyhow::{Context, bail};
use regex::Regex;
use serde_json::{Value, json};
use std::{
    cell::RefCell,
    collections::BTreeMap,
    fs,
    io::{Read, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// How long a command may take.
const PATIENCE: Duration = Duration::from_secs(40);
/// How long something is waited for.
const WAIT: Duration = Duration::from_secs(12);

/// What a difference is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The code that a command ends with.
    Code,
    /// What it prints or writes.
    Words,
    /// What is waited for does not happen.
    Wait,
}

/// What differs in a scenario.
#[derive(Clone, Debug)]
pub struct Differs {
    pub step: usize,
    pub kind: Kind,
    pub what: String,
}

/// What differs, of each command.
pub fn run(world: &World, case: &Value) -> anyhow::Result<Vec<Differs>> {
    let saved = RefCell::new(BTreeMap::new());
    let mut found = Vec::new();
    let rules = case["normalize"].as_array().into_iter().flatten();
    let spaces = rules.into_iter().any(|rule| rule == "spaces");
    for (number, step) in case["steps"].as_array().into_iter().flatten().enumerate() {
        if step["args"].is_array() {
            let ran = command(world, step, &saved, spaces);
            let ran = ran.with_context(|| format!("step {number} {}", step["args"]))?;
            let name = || format!("step {number} {}", step["args"]);
            found.extend(ran.into_iter().map(|(kind, why)| Differs {
                step: number,
                kind,
                what: format!("{}: {why}", name()),
            }));
        } else if !step["wait"].is_null() {
            // What follows depends on it; the reason is often in what came before.
            if let Err(why) = world.wait(&step["wait"], WAIT) {
                found.push(Differs {
                    step: number,
                    kind: Kind::Wait,
                    what: format!("step {number}: {why}"),
                });
                break;
            }
        } else if step["kubectl"].is_array() {
            kubectl(world, &step["kubectl"])?;
        } else if step["apply"].is_object() {
            world.apply(&step["apply"])?;
        }
    }
    Ok(found)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// What differs.
fn command(
    world: &World,
    step: &Value,
    saved: &RefCell<BTreeMap<String, String>>,
    spaces: bool,
) -> anyhow::Result<Vec<(Kind, String)>> {
    let real = |text: &str| {
        let mut text = world.real(text);
        for (name, value) in saved.borrow().iter() {
            text = text.replace(&format!("<SAVED:{name}>"), value);
        }
        text
    };
    for (name, content) in step["files"].as_object().into_iter().flatten() {
        world.write(&real(name), &real(text(content)))?;
    }
    let words = step["args"].as_array().into_iter().flatten();
    let mut command = match step["tty"].as_bool() {
        Some(true) => at_a_terminal(&world.command()),
        _ => world.command(),
    };
    command.args(words.map(|word| real(text(word))));
    for (name, value) in step["env"].as_object().into_iter().flatten() {
        command.env(name, real(text(value)));
    }
    let ended = ran(command, step["stdin"].as_str().map(real))?;
    let mut found = Vec::new();
    if json!(ended.code) != step["exit"] {
        let why = format!("exit {:?}, wanted {}", ended.code, step["exit"]);
        found.push((Kind::Code, why));
    }
    for (stream, printed) in [("stdout", &ended.stdout), ("stderr", &ended.stderr)] {
        let differs = compare::output(step, stream, printed, &world.normaliser, spaces);
        found.extend(differs.map(|why| (Kind::Words, why)));
    }
    for (name, wanted) in step["shows"].as_object().into_iter().flatten() {
        let shown = fs::read_to_string(world.folder().join(real(name))).ok();
        let shown = shown.map(|shown| world.normaliser.text(&shown));
        if shown.as_deref() != wanted.as_str() {
            let why = format!("file {name} is {shown:?}, wanted {wanted}");
            found.push((Kind::Words, why));
        }
    }
    if let Some(name) = step["save"]["name"].as_str() {
        let kept = match step["save"]["regex"].as_str() {
            None => ended.stdout.split_whitespace().last().map(str::to_owned),
            Some(pattern) => Regex::new(pattern)?
                .captures(&ended.stdout)
                .and_then(|found| Some(found.get(1)?.as_str().to_owned())),
        };
        saved
            .borrow_mut()
            .insert(name.to_owned(), kept.unwrap_or_default());
    }
    Ok(found)
}

/// Runs a command whose standard output is a terminal of 200 columns, and passes on what it prints.
const TERMINAL: &str = r"
import fcntl, os, pty, struct, subprocess, sys, termios, tty
master, slave = pty.openpty()
tty.setraw(slave)
fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack('HHHH', 50, 200, 0, 0))
child = subprocess.Popen(sys.argv[1:], stdout=slave)
os.close(slave)
try:
    while part := os.read(master, 65536):
        os.write(1, part)
except OSError:
    pass
sys.exit(child.wait())
";

/// The same command at a terminal.
fn at_a_terminal(command: &Command) -> Command {
    let mut outer = Command::new("python3");
    outer.args(["-c", TERMINAL]).arg(command.get_program());
    outer.args(command.get_args()).env_clear();
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            outer.env(name, value);
        }
    }
    if let Some(folder) = command.get_current_dir() {
        outer.current_dir(folder);
    }
    outer
}

struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

/// Runs a command to its end, or kills it.
fn ran(mut command: Command, stdin: Option<String>) -> anyhow::Result<Ended> {
    let input = if stdin.is_some() {
        Stdio::piped()
    } else {
        Stdio::null()
    };
    command
        .stdin(input)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().context("it does not start")?;
    if let (Some(text), Some(mut pipe)) = (stdin, child.stdin.take()) {
        thread::spawn(move || pipe.write_all(text.as_bytes()));
    }
    let read = |pipe: Option<Box<dyn Read + Send>>| {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            if let Some(mut pipe) = pipe {
                let _ = pipe.read_to_end(&mut bytes);
            }
            String::from_utf8_lossy(&bytes).into_owned()
        })
    };
    let stdout = read(
        child
            .stdout
            .take()
            .map(|pipe| Box::new(pipe) as Box<dyn Read + Send>),
    );
    let stderr = read(
        child
            .stderr
            .take()
            .map(|pipe| Box::new(pipe) as Box<dyn Read + Send>),
    );
    let code = code_of(&mut child)?;
    let joined = |thread: thread::JoinHandle<String>| thread.join().unwrap_or_default();
    Ok(Ended {
        code,
        stdout: joined(stdout),
        stderr: joined(stderr),
    })
}

fn code_of(child: &mut Child) -> anyhow::Result<Option<i32>> {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.code());
        }
        if begun.elapsed() > PATIENCE {
            child.kill()?;
            child.wait()?;
            bail!("it does not end within {} s", PATIENCE.as_secs());
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// The two commands of kubectl that scenarios use: merge patches, and deletions of what may be
/// missing.
fn kubectl(world: &World, words: &Value) -> anyhow::Result<()> {
    let all: Vec<&str> = words.as_array().into_iter().flatten().map(text).collect();
    let mut words = all.iter().copied();
    let (mut namespace, mut patch, mut rest) = ("", "", Vec::new());
    while let Some(word) = words.next() {
        match word {
            "-n" => namespace = words.next().unwrap_or_default(),
            "-p" => patch = words.next().unwrap_or_default(),
            "--type" => drop(words.next()),
            "--ignore-not-found" => {}
            other => rest.push(other),
        }
    }
    match rest.as_slice() {
        ["patch", kind, name] => world.merge(kind, namespace, name, &serde_json::from_str(patch)?),
        ["delete", kinds, names @ ..] => {
            for kind in kinds.split(',') {
                for name in names {
                    world.delete(kind, namespace, name)?;
                }
            }
            Ok(())
        }
        other => bail!("kubectl {other:?} is not known here"),
    }
}

/// A file below a folder; one that begins as a script may be run.
pub fn write(path: &Path, content: &str) -> anyhow::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, content)?;
    let mode = if content.starts_with("#!") {
        0o755
    } else {
        0o644
    };
    Ok(fs::set_permissions(path, fs::Permissions::from_mode(mode))?)
}
