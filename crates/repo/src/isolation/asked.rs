//! What a worker asks its owner for: files, and which of the charts that it has parsed are still
//! what they were.
//!
//! Main types: [`Asked`], the files, and [`Provided`], the charts.

use super::{
    TIME_HINT, chance,
    wire::{
        Ahead, Answer, ChartKey, FROM_OWNER, FROM_WORKER, Known, LONGEST_EXPECTED, MOST_EXPECTED,
        MOST_INSIDE, Order, Question, Report, receive, send,
    },
};
use crate::ground::chart_weight;
use serde_json::Value;
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    io,
    os::unix::net::UnixStream,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use tiphys_gocompat::sprig;
use tiphys_render::{
    Charts, EvaluateJsonnet, FileEntry, FileError, FileKind, JsonnetError, JsonnetFile,
    SourceFiles, SourceRef, SourceSet, evaluate_jsonnet_here,
    helm::{Deadline, HelmError, Limits, ParsedChart, chart::Chart, dependencies},
};

/// Memory for parsed charts (estimated).
const CHART_BYTES: u64 = 64 << 20;

/// The connection to the owner, and what came over it.
pub(super) struct Line {
    pub socket: UnixStream,
    ahead: SentAhead,
    charts: KeptCharts,
}

/// What came without having been asked for by itself.
#[derive(Default)]
struct SentAhead {
    /// By the number of the files, and the path.
    there: HashMap<usize, HashMap<String, There>>,
    /// What was announced, whether or not anything came: large files must be asked for.
    announced: HashSet<(usize, String)>,
}

/// What is at a path.
enum There {
    File(Vec<u8>),
    Folder,
    Nothing,
}

impl Line {
    pub fn new(socket: UnixStream) -> Self {
        Self {
            socket,
            ahead: SentAhead::default(),
            charts: KeptCharts::default(),
        }
    }

    pub fn send(&mut self, report: &Report, body: &[u8]) -> io::Result<()> {
        send(&mut self.socket, report, body, FROM_WORKER)
    }

    pub fn receive(&mut self) -> io::Result<Option<(Order, Vec<u8>)>> {
        receive(&mut self.socket, FROM_OWNER)
    }

    /// What was sent ahead of one render is not there for the next.
    pub fn forget(&mut self) {
        self.ahead = SentAhead::default();
    }

    fn say(&mut self, report: &Report) -> Result<(Order, Vec<u8>), String> {
        self.send(report, &[]).map_err(|e| e.to_string())?;
        let order = self.receive().map_err(|e| e.to_string())?;
        order.ok_or_else(|| "nobody answers".to_owned())
    }

    fn there(&self, files: usize, path: &str) -> Option<&There> {
        self.ahead.there.get(&files)?.get(path)
    }

    /// Those that are neither known nor were announced before, so many as may be announced at once.
    fn announce(&mut self, files: usize, paths: &[String]) -> Vec<String> {
        let mut new = Vec::new();
        for path in paths {
            if new.len() == MOST_EXPECTED {
                break;
            }
            let is_wanted = path.len() <= LONGEST_EXPECTED && self.there(files, path).is_none();
            if is_wanted && self.ahead.announced.insert((files, path.clone())) {
                new.push(path.clone());
            }
        }
        new
    }

    /// Splits what came with an answer. `None`: it is not whole.
    fn unpack(
        &mut self,
        files: usize,
        body: Vec<u8>,
        content: usize,
        ahead: Vec<Ahead>,
    ) -> Option<Vec<u8>> {
        if ahead.is_empty() {
            return (body.len() == content).then_some(body);
        }
        let (own, mut rest) = body.split_at_checked(content)?;
        let known = self.ahead.there.entry(files).or_default();
        for one in ahead {
            let there = match one.known {
                Known::File { size } => {
                    let (content, more) = rest.split_at_checked(size)?;
                    rest = more;
                    There::File(content.to_vec())
                }
                Known::Folder => There::Folder,
                Known::Nothing => There::Nothing,
            };
            known.insert(one.path, there);
        }
        Some(own.to_vec())
    }
}

pub(super) fn lock(line: &Mutex<Line>) -> MutexGuard<'_, Line> {
    line.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Files of the owner.
pub(super) struct Asked<'a> {
    /// Their number.
    pub files: usize,
    pub line: &'a Mutex<Line>,
}

fn unreadable(path: &str, reason: impl Into<String>) -> FileError {
    FileError::Unreadable {
        path: path.to_owned(),
        reason: reason.into(),
    }
}

impl Asked<'_> {
    fn ask(&self, question: Question, path: &str) -> Result<(Answer, Vec<u8>), FileError> {
        let mut line = lock(self.line);
        let report = Report::Ask {
            files: self.files,
            question,
            path: path.to_owned(),
        };
        let (order, body) = line.say(&report).map_err(|e| unreadable(path, e))?;
        let Order::Answer {
            answer,
            content,
            ahead,
        } = order
        else {
            return Err(unreadable(path, "no answer"));
        };
        let content = line.unpack(self.files, body, content, ahead);
        let content = content.ok_or_else(|| unreadable(path, "the answer is not whole"))?;
        match answer {
            Answer::Failed(error) => Err(error),
            answer => Ok((answer, content)),
        }
    }

    fn unexpected<T>(path: &str) -> Result<T, FileError> {
        Err(unreadable(path, "another answer"))
    }
}

impl SourceFiles for Asked<'_> {
    fn kind(&self, path: &str) -> Result<Option<FileKind>, FileError> {
        if let Some(there) = lock(self.line).there(self.files, path) {
            return Ok(match there {
                There::File(content) => Some(FileKind::File {
                    size: content.len() as u64,
                }),
                There::Folder => Some(FileKind::Dir),
                There::Nothing => None,
            });
        }
        match self.ask(Question::Kind, path)?.0 {
            Answer::Kind(kind) => Ok(kind),
            _ => Self::unexpected(path),
        }
    }

    fn read(&self, path: &str) -> Result<Option<Vec<u8>>, FileError> {
        if let Some(there) = lock(self.line).there(self.files, path) {
            return Ok(match there {
                There::File(content) => Some(content.clone()),
                There::Folder | There::Nothing => None,
            });
        }
        match self.ask(Question::Read, path)? {
            (Answer::File { exists }, content) => Ok(exists.then_some(content)),
            _ => Self::unexpected(path),
        }
    }

    fn list(&self, path: &str) -> Result<Option<Vec<FileEntry>>, FileError> {
        match self.ask(Question::List, path)?.0 {
            Answer::Entries(entries) => Ok(entries),
            _ => Self::unexpected(path),
        }
    }

    fn resolved(&self, path: &str) -> Result<Option<String>, FileError> {
        // Only what is reached without links is sent ahead.
        if let Some(there) = lock(self.line).there(self.files, path) {
            let is_there = !matches!(there, There::Nothing);
            return Ok(is_there.then(|| path.to_owned()));
        }
        match self.ask(Question::Resolved, path)?.0 {
            Answer::Path(resolved) => Ok(resolved),
            _ => Self::unexpected(path),
        }
    }

    fn expect(&self, paths: &[String], inside: &[&str]) {
        let mut line = lock(self.line);
        let paths = line.announce(self.files, paths);
        if paths.is_empty() {
            return;
        }
        let report = Report::Expect {
            files: self.files,
            paths,
            inside: inside
                .iter()
                .take(MOST_INSIDE)
                .map(|name| (*name).to_owned())
                .collect(),
        };
        // What does not come is asked for, which says what is wrong.
        if let Ok((Order::Answer { content, ahead, .. }, body)) = line.say(&report) {
            line.unpack(self.files, body, content, ahead);
        }
    }
}

/// Parsed charts, the last used one last.
#[derive(Default)]
struct KeptCharts(Vec<(ChartKey, u64, Arc<ParsedChart>)>);

impl KeptCharts {
    fn get(&mut self, key: &ChartKey) -> Option<Arc<ParsedChart>> {
        let found = self.0.iter().position(|(known, ..)| known == key)?;
        let chart = self.0.remove(found);
        let parsed = Arc::clone(&chart.2);
        self.0.push(chart);
        Some(parsed)
    }

    fn keep(&mut self, key: ChartKey, chart: &Arc<ParsedChart>) {
        self.0.retain(|(known, ..)| *known != key);
        let weight = u64::from(chart_weight(chart.chart()));
        self.0.push((key, weight, Arc::clone(chart)));
        let mut all: u64 = self.0.iter().map(|(_, weight, _)| weight).sum();
        while all > CHART_BYTES && !self.0.is_empty() {
            all -= self.0.remove(0).1;
        }
    }
}

/// The charts of one render, and what else it takes from outside.
pub(super) struct Provided<'a> {
    pub line: &'a Mutex<Line>,
    pub files: &'a [Asked<'a>],
    pub begun: Instant,
    /// Of the render, and what was left of it when it began here.
    pub limit: Duration,
    pub left: Duration,
}

impl Provided<'_> {
    /// The chart that `report` asks for. The owner records what is read while it is loaded apart
    /// from what else is read, so a chart that is still there has its record.
    fn loaded(
        &self,
        report: &Report,
        folder: &str,
        load: impl FnOnce() -> Result<Chart, HelmError>,
    ) -> Result<Arc<ParsedChart>, HelmError> {
        let failed = |reason: String| HelmError::File(unreadable(folder, reason));
        let no_answer = || failed("no answer".to_owned());
        let mut line = lock(self.line);
        let Order::Load(key) = line.say(report).map_err(failed)?.0 else {
            return Err(no_answer());
        };
        if let Some(chart) = key.and_then(|key| line.charts.get(&key)) {
            line.say(&Report::Loaded).map_err(failed)?;
            return Ok(chart);
        }
        // What was sent ahead for one record must not be left out of the other.
        let before = std::mem::take(&mut line.ahead);
        drop(line);
        let made = load();
        let mut line = lock(self.line);
        line.ahead = before;
        let report = match &made {
            Ok(_) => Report::Loaded,
            Err(_) => Report::NotLoaded,
        };
        let Order::Keep(key) = line.say(&report).map_err(failed)?.0 else {
            return Err(no_answer());
        };
        let chart = Arc::new(ParsedChart::new(made?));
        if let Some(key) = key {
            line.charts.keep(key, &chart);
        }
        Ok(chart)
    }
}

impl Charts for Provided<'_> {
    fn chart(
        &self,
        files: &dyn SourceFiles,
        folder: &str,
        limits: &Limits,
    ) -> Result<Arc<ParsedChart>, HelmError> {
        let load =
            || -> Result<Chart, HelmError> { Ok(Chart::from_folder(files, folder, limits)?.chart) };
        let is_it = |own: &Asked<'_>| std::ptr::addr_eq(own, files);
        match self.files.iter().position(is_it) {
            // The owner takes it that charts have these limits.
            Some(files) if *limits == Limits::default() => {
                let folder = folder.to_owned();
                let report = Report::Chart {
                    files,
                    folder: folder.clone(),
                };
                self.loaded(&report, &folder, load)
            }
            _ => Ok(Arc::new(ParsedChart::new(load()?))),
        }
    }

    fn completed(
        &self,
        sources: &SourceSet<'_>,
        folder: &str,
        chart: &ParsedChart,
        limits: &Limits,
    ) -> Result<Arc<ParsedChart>, HelmError> {
        let fetched = sources.fetched.iter();
        let fetched = fetched.filter(|(needed, _)| matches!(needed, SourceRef::Chart { .. }));
        let fetched: BTreeMap<SourceRef, &dyn SourceFiles> = fetched
            .map(|(needed, files)| (needed.clone(), *files))
            .collect();
        let load = || {
            let own = chart.chart().clone();
            dependencies::complete(own, sources.files, folder, &fetched, limits)
        };
        let report = Report::CompleteChart {
            folder: folder.to_owned(),
        };
        self.loaded(&report, folder, load)
    }

    fn sources(&self) -> Arc<dyn Fn() -> sprig::Sources + Send + Sync> {
        chance()
    }

    fn jsonnet(&self) -> &dyn EvaluateJsonnet {
        self
    }

    fn deadline(&self) -> Option<Deadline> {
        let (begun, left) = (self.begun, self.left);
        Some(Deadline {
            limit: self.limit,
            hint: TIME_HINT,
            passed: Arc::new(move || begun.elapsed() > left),
        })
    }
}

impl EvaluateJsonnet for Provided<'_> {
    fn evaluate(
        &self,
        files: &dyn SourceFiles,
        file: JsonnetFile<'_>,
    ) -> Result<Value, JsonnetError> {
        // This thread has the stack for it. A fault of the library is one of the file.
        let evaluated = catch_unwind(AssertUnwindSafe(|| evaluate_jsonnet_here(files, file)));
        evaluated.unwrap_or_else(|_| {
            Err(JsonnetError::Program(
                "the evaluation has failed".to_owned(),
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_announced_takes_no_room_of_the_rest() {
        let (socket, _owner) = UnixStream::pair().expect("a pair");
        let mut line = Line::new(socket);
        let paths: Vec<String> = (0..=MOST_EXPECTED).map(|n| n.to_string()).collect();
        assert_eq!(line.announce(0, &paths), paths[..MOST_EXPECTED]);
        assert_eq!(line.announce(0, &paths), paths[MOST_EXPECTED..]);
        assert!(line.announce(0, &paths).is_empty(), "it is announced again");
        let long = ["x".repeat(LONGEST_EXPECTED + 1)];
        assert!(line.announce(0, &long).is_empty(), "its owner says nothing");
    }
}
