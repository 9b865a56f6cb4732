//! Renders in worker processes: hands them the files that they ask for, and believes nothing that
//! they answer.
//!
//! Main type: [`Isolated`]. What a worker asks for is read through the files of the render, which
//! record it, so that results are remembered just as those of this process are.

mod fuzzed;
#[cfg(test)]
mod tests;

pub use fuzzed::read_worker;

use super::{Commits, ManifestRequest, charts};
use crate::{
    git::{GitFiles, Seen},
    isolation::{
        Ahead, Answer, Connection, Deadline, GRACE, Known, LONGEST_EXPECTED, Lost, MOST_EXPECTED,
        MOST_INSIDE, Order, Purpose, Question, Report, Task, What, Workers, read_objects,
    },
    traced::{Files, Key, Traced},
};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::{Duration, Instant},
};
use tiphys_render::{
    Budget, Details, FileKind, HelmDetails, ManifestError, Prepared, RenderError, RenderParams,
    Rendered, SourceFiles as _, SourceKind, SourceRef, helm::Limits,
};

/// Bytes of all paths that one render may ask for, each with some more for its record.
const MAX_ASKED: usize = 256 << 20;
const COST: usize = 100;
/// Bytes of files that one render is sent ahead.
const MAX_AHEAD: usize = 64 << 20;
/// Errors and warnings of a render, and bytes of their texts. They are remembered.
const MAX_MESSAGES: usize = 20_000;
const MAX_MESSAGE_BYTES: usize = 8 << 20;
/// Bytes of an error because of which there is no result.
const MAX_ERROR_BYTES: usize = 1 << 20;
/// Files that are sent ahead: at the first question about a folder, when it is listed, and at most.
/// They double with every further question.
const FIRST: usize = 1;
const LISTED: usize = 64;
const MOST: usize = 512;
/// Paths that are looked up, and bytes of files that are sent, because one report expects them.
const MOST_LOOKS: usize = 4000;
const MAX_EXPECTED: usize = 4 << 20;

/// What is known of the charts that workers have parsed, and what was read for them.
pub(super) type KnownCharts = Traced<()>;

/// Memory for what is known of charts (estimated).
const KNOWN_BYTES: u64 = 4 << 20;

pub(super) fn known_charts() -> KnownCharts {
    Traced::new(KNOWN_BYTES, |_| 100)
}

/// A render in a worker.
pub(super) struct Isolated<'a> {
    pub workers: &'a Workers,
    pub charts: &'a KnownCharts,
    pub files: &'a Files,
    pub folder: &'a str,
    pub commits: &'a Commits,
    pub request: &'a ManifestRequest,
    pub budget: &'a Budget,
    pub limit: Duration,
}

/// What came of it.
enum Outcome {
    Rendered(Rendered),
    Details(Option<HelmDetails>, Vec<String>),
}

impl Isolated<'_> {
    /// What [`tiphys_render::render`] makes.
    pub fn render(&self, prepared: &Prepared) -> Result<Rendered, RenderError> {
        match self.run(What::Manifests(Box::new(prepared.clone())))? {
            Outcome::Rendered(rendered) => Ok(Rendered {
                kind: prepared.tool.kind(),
                ..rendered
            }),
            Outcome::Details(..) => Err(another_answer().error(self.limit)),
        }
    }

    /// What [`tiphys_render::details`] makes of a source of this kind.
    pub fn details(&self, params: RenderParams, kind: SourceKind) -> Result<Details, RenderError> {
        match self.run(What::Details(Box::new(params)))? {
            Outcome::Details(helm, images) => Ok(Details {
                kind,
                helm,
                images,
                parameters: Vec::new(),
            }),
            Outcome::Rendered(_) => Err(another_answer().error(self.limit)),
        }
    }

    fn run(&self, what: What) -> Result<Outcome, RenderError> {
        let purpose = Purpose {
            project: &self.request.project,
            folder: self.files.own.look(self.folder),
        };
        let asked = Instant::now();
        let lent = self.workers.lend(purpose, self.limit);
        // The time in which no worker was free or ready is not that of the render.
        self.commits.has_waited(asked.elapsed());
        let mut lent = lent?;
        let deadline = Deadline {
            begun: self.commits.begun(),
            limit: self.limit.saturating_add(GRACE),
        };
        let outcome = lent.connection().and_then(|connection| {
            let mut session = Session::new(self, connection, deadline);
            let outcome = session.run(what);
            let reports = session.reports;
            tracing::debug!(folder = self.folder, reports, "rendered in a worker");
            outcome
        });
        match outcome {
            Ok(outcome) => {
                lent.give_back();
                outcome
            }
            Err(lost) => Err(lent.end(lost).error(self.limit)),
        }
    }
}

fn another_answer() -> Lost {
    Lost::Broken("its process does not keep to the rules".to_owned())
}

/// One render of a worker.
struct Session<'a> {
    render: &'a Isolated<'a>,
    connection: &'a mut Connection,
    deadline: Deadline,
    /// Frames that the worker has sent: with each but the last it waited for an order.
    reports: usize,
    /// Bytes of paths that were asked for.
    asked: usize,
    /// Bytes of files that may still be sent ahead.
    ahead: usize,
}

/// Why a chart is not loaded.
enum NoChart {
    /// The worker says why.
    Broken,
    Lost(Lost),
}

impl From<Lost> for NoChart {
    fn from(lost: Lost) -> Self {
        Self::Lost(lost)
    }
}

impl<'a> Session<'a> {
    fn new(render: &'a Isolated<'a>, connection: &'a mut Connection, deadline: Deadline) -> Self {
        Self {
            render,
            connection,
            deadline,
            reports: 0,
            asked: 0,
            ahead: MAX_AHEAD,
        }
    }

    fn run(&mut self, what: What) -> Result<Result<Outcome, RenderError>, Lost> {
        let render = self.render;
        let is_details = matches!(what, What::Details(_));
        let order = Order::Render(Box::new(Task {
            what,
            refs: render.files.refs.keys().cloned().collect(),
            fetched: render.files.fetched.keys().cloned().collect(),
            several: render.request.several,
            budget: *render.budget,
            limit: render.limit,
            left: self.deadline.left()?.saturating_sub(GRACE),
        }));
        match self.send(&order, &[]) {
            // Nothing was sent, and the next attempt would not be different.
            Err(Lost::TooLarge(cause)) => return Ok(Err(cause.into())),
            sent => sent?,
        }
        let mut scope = Scope::new(render.files.all().map(Some));
        loop {
            match self.next(&mut scope)? {
                (Report::Chart { files, folder }, _) => self.chart(files, &folder)?,
                (Report::CompleteChart { folder }, _) => self.complete_chart(&folder)?,
                (Report::Failed(error), _) => return Ok(Err(checked(error)?)),
                (
                    Report::Manifests {
                        objects,
                        errors,
                        warnings,
                    },
                    body,
                ) if !is_details => {
                    if let Err(error) = limited(&errors, &warnings) {
                        return Ok(Err(error));
                    }
                    let objects = read_objects(&body, objects, render.budget.objects);
                    let rendered = Rendered {
                        objects: objects.map_err(Lost::Broken)?,
                        errors,
                        warnings,
                        ..Rendered::default()
                    };
                    return Ok(Ok(Outcome::Rendered(rendered)));
                }
                (Report::Details { helm, images }, _) if is_details => {
                    return Ok(Ok(Outcome::Details(helm, images)));
                }
                _ => return Err(another_answer()),
            }
        }
    }

    fn send(&mut self, order: &Order, body: &[u8]) -> Result<(), Lost> {
        self.connection.send(order, body, self.deadline)
    }

    /// The next report that is no question about files. Those are answered.
    fn next(&mut self, scope: &mut Scope<'_>) -> Result<(Report, Vec<u8>), Lost> {
        loop {
            let (report, body) = self.connection.receive(self.deadline)?;
            self.reports += 1;
            match report {
                Report::Ask {
                    files,
                    question,
                    path,
                } => {
                    self.count(COST.saturating_add(path.len()))?;
                    let place = scope.place(files)?;
                    let (answer, body) = place.answer(question, &path);
                    let more = place.ahead(question, &answer, &path, self.ahead);
                    self.answer(answer, body, more)?;
                }
                Report::Expect {
                    files,
                    paths,
                    inside,
                } => {
                    let names: usize = inside.iter().map(|name| COST + name.len()).sum();
                    let one = |path: &String| {
                        let cost = COST + path.len();
                        let all = cost.saturating_mul(1 + inside.len());
                        all.saturating_add(names)
                    };
                    self.count(paths.iter().map(one).fold(COST, usize::saturating_add))?;
                    let place = scope.place(files)?;
                    let more = place.expected(&paths, &inside, self.ahead, self.deadline)?;
                    self.answer(Answer::Expected, Vec::new(), more)?;
                }
                report => return Ok((report, body)),
            }
        }
    }

    /// What is asked for costs so much.
    fn count(&mut self, bytes: usize) -> Result<(), Lost> {
        self.asked = self.asked.saturating_add(bytes);
        if self.asked > MAX_ASKED {
            return Err(Lost::Exceeded("it asks for too many files"));
        }
        Ok(())
    }

    /// With what is sent ahead.
    fn answer(
        &mut self,
        answer: Answer,
        mut body: Vec<u8>,
        more: Vec<(String, Seen)>,
    ) -> Result<(), Lost> {
        let content = body.len();
        let mut ahead = Vec::new();
        for (path, seen) in more {
            let known = match seen {
                Seen::File(content) => {
                    let size = content.len();
                    self.ahead = self.ahead.saturating_sub(size);
                    body.extend(content);
                    Known::File { size }
                }
                Seen::Folder => Known::Folder,
                Seen::Nothing => Known::Nothing,
            };
            ahead.push(Ahead { path, known });
        }
        let order = Order::Answer {
            answer,
            content,
            ahead,
        };
        self.send(&order, &body)
    }

    /// The chart of a folder.
    fn chart(&mut self, number: usize, folder: &str) -> Result<(), Lost> {
        let render = self.render;
        let ours = render.files.all().nth(number);
        let ours = ours.ok_or_else(another_answer)?;
        let alone = Files::new(ours.beside(Some(folder)));
        let scope = (0..=number).map(|n| (n == number).then_some(&alone.own));
        let is_there = self.load("chart", folder, &alone, Scope::new(scope))?;
        if is_there {
            charts::note_chart(ours, folder, &alone);
        }
        Ok(())
    }

    /// The same of the source, with the dependencies that are fetched.
    fn complete_chart(&mut self, folder: &str) -> Result<(), Lost> {
        let all = self.render.files;
        if folder != self.render.folder {
            return Err(another_answer());
        }
        let files = charts::with_dependencies(all, folder);
        let refs = all.refs.keys().map(|_| None);
        let fetched = all.fetched.keys().map(|needed| files.fetched.get(needed));
        let scope = [Some(&files.own)].into_iter().chain(refs).chain(fetched);
        let scope = Scope::new(scope);
        let what = charts::what_is_complete(&files);
        if self.load(&what, folder, &files, scope)? {
            charts::note(all, &files);
        }
        Ok(())
    }

    /// Has the worker load a chart, or use the one that it has loaded before. Whether it is there.
    fn load(
        &mut self,
        what: &str,
        folder: &str,
        files: &Files,
        mut scope: Scope<'_>,
    ) -> Result<bool, Lost> {
        let render = self.render;
        // A worker decides what is recorded of the charts of its project only.
        let what = format!("{what} in {:?}", render.request.project);
        let key = charts::key(&what, folder, files, &Limits::default());
        let mut is_loaded = false;
        let found = render.charts.get(key, files, render.request.no_cache, || {
            is_loaded = true;
            self.loading(None, &mut scope)?;
            Ok::<_, NoChart>(Arc::new(()))
        });
        let outcome = match found {
            // It was loaded before, though perhaps by another worker.
            Ok((whole, _)) if !is_loaded => self.loading(Some(whole), &mut scope).map(|()| whole),
            found => found.map(|(whole, _)| whole),
        };
        let key = match outcome {
            // What could not be read of a torn copy counts as missing in it.
            Ok(_) if files.all().any(GitFiles::is_damaged) => None,
            Ok(whole) => Some(whole),
            Err(NoChart::Broken) => {
                self.send(&Order::Keep(None), &[])?;
                return Ok(false);
            }
            Err(NoChart::Lost(lost)) => return Err(lost),
        };
        self.send(&Order::Keep(key), &[])?;
        Ok(true)
    }

    fn loading(&mut self, known: Option<Key>, scope: &mut Scope<'_>) -> Result<(), NoChart> {
        self.send(&Order::Load(known), &[])?;
        match self.next(scope)? {
            (Report::Loaded, _) => Ok(()),
            (Report::NotLoaded, _) => Err(NoChart::Broken),
            _ => Err(NoChart::Lost(another_answer())),
        }
    }
}

fn limited(errors: &[ManifestError], warnings: &[String]) -> Result<(), RenderError> {
    let of_error = |error: &ManifestError| error.file.len() + error.message.len();
    let bytes = errors.iter().map(of_error).sum::<usize>()
        + warnings.iter().map(String::len).sum::<usize>();
    for (number, limit, what) in [
        (errors.len() + warnings.len(), MAX_MESSAGES, "number"),
        (bytes, MAX_MESSAGE_BYTES, "size"),
    ] {
        if number > limit {
            return Err(RenderError::OverBudget {
                what: format!("the {what} of errors and warnings"),
                limit: limit as u64,
            });
        }
    }
    Ok(())
}

/// A failure that a worker may report.
fn checked(error: RenderError) -> Result<RenderError, Lost> {
    match &error {
        // That is for its owner to say.
        RenderError::Lost(_) | RenderError::Stopped(_) => Err(another_answer()),
        // Nothing more would be known at the next attempt; plugins are asked elsewhere.
        RenderError::Need(needed)
            if needed.is_empty()
                || needed.iter().any(|one| matches!(one, SourceRef::Plugin(_))) =>
        {
            Err(another_answer())
        }
        _ => {
            let bytes = serde_json::to_vec(&error).map_or(usize::MAX, |text| text.len());
            if bytes > MAX_ERROR_BYTES {
                return Ok(RenderError::OverBudget {
                    what: "the size of the error".to_owned(),
                    limit: MAX_ERROR_BYTES as u64,
                });
            }
            Ok(error)
        }
    }
}

/// The files that a worker may read, by their numbers.
struct Scope<'s> {
    places: Vec<Option<Place<'s>>>,
}

impl<'s> Scope<'s> {
    fn new(files: impl Iterator<Item = Option<&'s GitFiles>>) -> Self {
        let place = |files: &'s GitFiles| Place {
            files,
            windows: HashMap::new(),
            sent: HashSet::new(),
        };
        Self {
            places: files.map(|files| files.map(place)).collect(),
        }
    }

    fn place(&mut self, files: usize) -> Result<&mut Place<'s>, Lost> {
        let place = self.places.get_mut(files).and_then(Option::as_mut);
        place.ok_or_else(another_answer)
    }
}

struct Place<'s> {
    files: &'s GitFiles,
    /// How many files the next question about a folder brings.
    windows: HashMap<String, usize>,
    /// The paths about which something was sent ahead.
    sent: HashSet<String>,
}

impl Place<'_> {
    fn answer(&self, question: Question, path: &str) -> (Answer, Vec<u8>) {
        let files = self.files;
        let answer = match question {
            Question::Kind => files
                .kind(path)
                .map(|kind| (Answer::Kind(kind), Vec::new())),
            Question::Read => files.read(path).map(|content| {
                let exists = content.is_some();
                (Answer::File { exists }, content.unwrap_or_default())
            }),
            Question::List => files
                .list(path)
                .map(|entries| (Answer::Entries(entries), Vec::new())),
            Question::Resolved => files
                .resolved(path)
                .map(|resolved| (Answer::Path(resolved), Vec::new())),
        };
        answer.unwrap_or_else(|error| (Answer::Failed(error), Vec::new()))
    }

    /// What is sent with an answer: the file whose kind was asked for, as it is read then, and
    /// files of the same folder that are probably asked for next. A folder is mostly read as a
    /// whole, and each question takes the time of two switches between processes.
    fn ahead(
        &mut self,
        question: Question,
        answer: &Answer,
        path: &str,
        mut bytes: usize,
    ) -> Vec<(String, Seen)> {
        let mut found = Vec::new();
        if matches!(answer, Answer::Kind(Some(FileKind::File { .. }))) {
            self.look(path, &mut bytes, &mut found);
        }
        let beside = self.beside(question, path, bytes);
        let beside = beside.into_iter();
        found.extend(beside.map(|(path, content)| (path, Seen::File(content))));
        found
    }

    fn beside(&mut self, question: Question, path: &str, bytes: usize) -> Vec<(String, Vec<u8>)> {
        let (folder, name) = match question {
            Question::List => (path, ""),
            _ => path.rsplit_once('/').unwrap_or(("", path)),
        };
        let first = match question {
            Question::List => LISTED,
            _ => FIRST,
        };
        let window = self.windows.entry(folder.to_owned()).or_insert(first);
        if *window == 0 || bytes == 0 {
            return Vec::new();
        }
        let sent = &self.sent;
        // What is read now is not asked for again.
        let is_wanted =
            |other: &str| !sent.contains(other) && (question != Question::Read || other != path);
        let found = self.files.ahead(folder, name, *window, is_wanted);
        *window = match found.len() {
            0 => 0,
            _ => (*window * 2).min(MOST),
        };
        self.sent.extend(found.iter().map(|(path, _)| path.clone()));
        found
    }

    /// What is at these paths, and in those that are folders at these names.
    ///
    /// # Errors
    /// There are more than a worker that keeps to the rules announces, or the time is over.
    fn expected(
        &mut self,
        paths: &[String],
        inside: &[String],
        bytes: usize,
        deadline: Deadline,
    ) -> Result<Vec<(String, Seen)>, Lost> {
        if paths.len() > MOST_EXPECTED || inside.len() > MOST_INSIDE {
            return Err(another_answer());
        }
        let (mut bytes, mut looks) = (bytes.min(MAX_EXPECTED), MOST_LOOKS);
        let mut found = Vec::new();
        for path in paths {
            // What is looked up in vain, such as large files, takes as long as what is sent.
            deadline.left()?;
            if looks == 0 || bytes == 0 {
                break;
            }
            looks -= 1;
            if !self.look(path, &mut bytes, &mut found) {
                continue;
            }
            for name in inside.iter().take(looks) {
                looks -= 1;
                if path.len() + name.len() >= LONGEST_EXPECTED {
                    continue;
                }
                let path = match path.as_str() {
                    "" => name.clone(),
                    folder => format!("{folder}/{name}"),
                };
                self.look(&path, &mut bytes, &mut found);
            }
        }
        Ok(found)
    }

    /// Adds what is at a path, unless that or the path has too many bytes. Whether it is a folder.
    fn look(&mut self, path: &str, bytes: &mut usize, found: &mut Vec<(String, Seen)>) -> bool {
        if path.len() > LONGEST_EXPECTED {
            return false;
        }
        let Some(seen) = self.files.seen(path) else {
            return false;
        };
        let size = match &seen {
            Seen::File(content) => content.len(),
            Seen::Folder | Seen::Nothing => 0,
        };
        let Some(left) = bytes.checked_sub(size) else {
            return false;
        };
        *bytes = left;
        let is_folder = seen == Seen::Folder;
        self.sent.insert(path.to_owned());
        found.push((path.to_owned(), seen));
        is_folder
    }
}
