//! The servers of plugins: programs beside this one that render what no built-in tool does, each
//! with a unix socket in one folder. It speaks Argo CD's protocol for them.
//!
//! Main type: [`Plugins`], which answers the questions of a render. Archives of the files are in
//! `archive`, the calls in `client`; `credentials` has what a plugin may be told to fetch more from
//! the source's repository. It must not know what is done with the answers.

mod archive;
mod client;
mod credentials;

pub use archive::ArchiveLimits;
pub use credentials::{ASK_PASS_NONCE, ASK_PASS_SOCKET, ask_pass};

use crate::{
    ManifestRequest, RepoError, busy::Busy, common::Common, git::Commit, ground::blocking,
    ground::hex, net, tokens::Tokens,
};
use archive::Archives;
use client::{CallError, Client, Sent};
use credentials::AskPass;
use sha2::{Digest, Sha256};
use std::{
    io,
    os::unix::fs::{FileTypeExt, MetadataExt},
    path::{Component, Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tiphys_render::{PluginAnswer, PluginQuestion, PluginTask};

/// Cache size for answers (estimated), and for how many files it is known whose they are.
const ANSWER_BYTES: u64 = 128 << 20;
const VERDICTS: u64 = 50_000;
const SUFFIX: &str = ".sock";

/// Where the servers of plugins are, and what they get.
#[derive(Clone, Debug)]
pub struct PluginSettings {
    /// The folder with their sockets. None: plugins are not asked.
    pub dir: Option<PathBuf>,
    /// Globs of paths that are not sent to them.
    pub exclude: Vec<String>,
    pub limits: ArchiveLimits,
    /// The socket on which a plugin's programs ask for a repository's password.
    pub ask_pass: PathBuf,
}

impl Default for PluginSettings {
    fn default() -> Self {
        Self {
            dir: None,
            exclude: Vec::new(),
            limits: ArchiveLimits::default(),
            ask_pass: ASK_PASS_SOCKET.into(),
        }
    }
}

type Key = [u8; 32];

pub(crate) struct Plugins {
    dir: Option<PathBuf>,
    /// For each call.
    limit: Duration,
    archives: Archives,
    answers: moka::sync::Cache<Key, Arc<PluginAnswer>>,
    /// Whether a plugin is for the files.
    verdicts: moka::sync::Cache<Key, bool>,
    asking: Busy<Key>,
    ask_pass: AskPass,
    common: Arc<Common>,
    tokens: Arc<Tokens>,
}

/// What a render knows of plugins before it needs one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    pub is_open: bool,
    pub is_any: bool,
}

/// What came of looking for the plugin of a source.
enum Search {
    Found(String),
    /// None of them, and the failure of the last one that failed.
    NotFound(Option<Probe>),
}

/// Why it is not known whether a plugin is for the files.
struct Probe {
    text: String,
    /// The plugin said so itself; it counts as a no.
    is_answer: bool,
}

impl Plugins {
    pub fn new(
        settings: &PluginSettings,
        limit: Duration,
        common: Arc<Common>,
        tokens: Arc<Tokens>,
    ) -> Self {
        let weight = |_: &Key, answer: &Arc<PluginAnswer>| {
            let bytes = match &**answer {
                PluginAnswer::Generated { manifests, .. } => {
                    manifests.iter().map(|text| 50 + text.len()).sum()
                }
                _ => 1000,
            };
            u32::try_from(bytes).unwrap_or(u32::MAX)
        };
        Self {
            dir: settings.dir.clone(),
            limit,
            archives: Archives::new(&settings.exclude, settings.limits),
            answers: moka::sync::Cache::builder()
                .weigher(weight)
                .max_capacity(ANSWER_BYTES)
                .build(),
            verdicts: moka::sync::Cache::new(VERDICTS),
            asking: Busy::default(),
            ask_pass: AskPass::new(settings.ask_pass.clone()),
            common,
            tokens,
        }
    }

    /// Whether plugins can be asked, and whether there are some.
    pub fn state(&self) -> State {
        State {
            is_open: self.dir.is_some(),
            is_any: self.is_any(),
        }
    }

    /// Whether there is a plugin. A folder that cannot be read counts as one: what is in it is not
    /// known.
    pub fn is_any(&self) -> bool {
        !self.names().is_ok_and(|names| names.is_empty())
    }

    /// The names of the plugins, sorted.
    pub fn names(&self) -> Result<Vec<String>, RepoError> {
        let Some(dir) = &self.dir else {
            return Ok(Vec::new());
        };
        match sockets(dir) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(e) => Err(failed(format!(
                "failed to get plugins from dir {}, error={}",
                dir.display(),
                net::reason(&e)
            ))),
            Ok(names) => Ok(names),
        }
    }

    /// Asks a plugin about the files of a commit.
    pub async fn ask(
        &self,
        question: &PluginQuestion,
        commit: &Commit,
        request: &ManifestRequest,
    ) -> Result<Arc<PluginAnswer>, RepoError> {
        let Some(dir) = &self.dir else {
            return Err(failed("plugins are not asked here".to_owned()));
        };
        let asked = match question.task {
            PluginTask::Detect => self.detect(dir, question, commit, request).await,
            PluginTask::Generate => self
                .made(dir, question, commit, request)
                .await
                .map_err(|e| {
                    within(
                        &format!(
                            "CMP processing failed for application {:?}",
                            request.app_name
                        ),
                        e,
                    )
                }),
            PluginTask::Announce => self
                .made(dir, question, commit, request)
                .await
                .map_err(|e| within("failed to populate plugin app details", e)),
        };
        asked.inspect_err(|e| tracing::debug!(question = ?question.task, "a plugin failed: {e}"))
    }

    /// The plugin that is for a source which does not name one. As long as one of them cannot be
    /// asked it is not known: another tool might render something else.
    async fn detect(
        &self,
        dir: &Path,
        question: &PluginQuestion,
        commit: &Commit,
        request: &ManifestRequest,
    ) -> Result<Arc<PluginAnswer>, RepoError> {
        let names = self.names()?;
        let found = match self.search(dir, &names, question, commit, request).await? {
            Search::Found(name) => Some(name),
            Search::NotFound(_) => None,
        };
        Ok(Arc::new(PluginAnswer::Detected(found)))
    }

    /// What the plugin that is for a source makes of it.
    async fn made(
        &self,
        dir: &Path,
        question: &PluginQuestion,
        commit: &Commit,
        request: &ManifestRequest,
    ) -> Result<Arc<PluginAnswer>, RepoError> {
        let names = if question.plugin.is_empty() {
            sockets(dir).map_err(|e| {
                let (dir, reason) = (dir.display(), net::reason(&e));
                failed(format!(
                    "failed to list all plugins in dir: open {dir}: {reason}"
                ))
            })?
        } else {
            vec![question.plugin.clone()]
        };
        let name = match self.search(dir, &names, question, commit, request).await? {
            Search::Found(name) => name,
            Search::NotFound(probe) => {
                let retryable = probe.as_ref().is_some_and(|probe| !probe.is_answer);
                let reason = probe.map_or_else(String::new, |probe| format!(": {}", probe.text));
                let which = match question.plugin.as_str() {
                    "" => "plugin".to_owned(),
                    name => format!("cmp-server plugin with name {name:?}"),
                };
                return Err(RepoError::Plugin {
                    message: format!(
                        "could not find {which} supporting the given repository{reason}"
                    ),
                    retryable,
                });
            }
        };
        let socket = socket(dir, &name).map_err(failed)?;
        let key = key(&socket, question, commit).await?;
        let known = || self.answers.get(&key).filter(|_| !request.no_cache);
        if let Some(known) = known() {
            return Ok(known);
        }
        let _alone = self.asking.wait(&key).await;
        if let Some(known) = known() {
            return Ok(known);
        }
        let call = self.call(&name, &socket, question, commit, request);
        let answer = Arc::new(self.in_turn(&name, &request.project, call).await??);
        self.answers.insert(key, Arc::clone(&answer));
        Ok(answer)
    }

    async fn call(
        &self,
        name: &str,
        socket: &Path,
        question: &PluginQuestion,
        commit: &Commit,
        request: &ManifestRequest,
    ) -> Result<PluginAnswer, RepoError> {
        let told = |before: &str, e: CallError| RepoError::Plugin {
            message: format!("{before}: {}", e.text(name, self.limit)),
            retryable: !e.is_answer(),
        };
        let mut sent = self.sent(question, commit).await?;
        let client = Client::connect(socket, self.limit).await.map_err(|e| {
            told(
                &format!("error dialing to cmp-server for plugin {name}{SUFFIX}"),
                e,
            )
        })?;
        if question.task == PluginTask::Announce {
            let answer = client.parameters(&sent).await;
            let answer = answer.map_err(|e| told("failed to get parameter announcement", e))?;
            return Ok(PluginAnswer::Announced(answer.parameter_announcements));
        }
        let configured = client.check().await;
        let configured =
            configured.map_err(|e| told("error calling cmp-server checkPluginConfiguration", e))?;
        // Until the plugin has answered.
        let lent = match configured.provide_git_creds {
            true => {
                let access = self.tokens.signed_in(&request.access).await?;
                Some(self.ask_pass.lend(&access).await?)
            }
            false => None,
        };
        sent.env
            .extend(lent.iter().flat_map(|lent| lent.env().to_vec()));
        let answer = client.generate(&sent).await;
        let answer = answer.map_err(|e| told("error generating manifests in cmp", e))?;
        // It may be a hundred megabytes.
        blocking(move || {
            let mut hash = Sha256::new();
            for text in &answer.manifests {
                hash.update(text.len().to_le_bytes());
                hash.update(text);
            }
            Ok(PluginAnswer::Generated {
                manifests: answer.manifests.into(),
                digest: hash.finalize().into(),
            })
        })
        .await
    }

    async fn search(
        &self,
        dir: &Path,
        names: &[String],
        question: &PluginQuestion,
        commit: &Commit,
        request: &ManifestRequest,
    ) -> Result<Search, RepoError> {
        let named = !question.plugin.is_empty();
        let mut last = None;
        for name in names {
            match self
                .supports(dir, name, named, question, commit, request)
                .await?
            {
                Ok(true) => return Ok(Search::Found(name.clone())),
                Ok(false) => {}
                Err(probe) => {
                    let text = &probe.text;
                    tracing::warn!(plugin = name, "{text}");
                    if !probe.is_answer && !named {
                        return Err(RepoError::Plugin {
                            message: format!(
                                "could not find out whether a plugin is for this source: {text}"
                            ),
                            retryable: true,
                        });
                    }
                    last = Some(probe);
                }
            }
        }
        Ok(Search::NotFound(last))
    }

    /// Whether a plugin is for these files. One that looks for nothing is only for those who name
    /// it.
    async fn supports(
        &self,
        dir: &Path,
        name: &str,
        named: bool,
        question: &PluginQuestion,
        commit: &Commit,
        request: &ManifestRequest,
    ) -> Result<Result<bool, Probe>, RepoError> {
        let socket = match socket(dir, name) {
            Ok(socket) => socket,
            Err(text) => {
                let is_answer = true;
                return Ok(Err(Probe { text, is_answer }));
            }
        };
        let file = format!("{name}{SUFFIX}");
        let told = |before: &str, e: CallError| Probe {
            text: format!("{before} {file}: {}", e.text(name, self.limit)),
            is_answer: e.is_answer(),
        };
        let of_files = PluginQuestion {
            plugin: if named {
                name.to_owned()
            } else {
                String::new()
            },
            task: PluginTask::Detect,
            ..question.clone()
        };
        let key = match key(&socket, &of_files, commit).await {
            Ok(key) => key,
            Err(_) if !socket.exists() => {
                let gone = CallError::Unreachable(format!(
                    "dial unix {}: connect: no such file or directory",
                    socket.display()
                ));
                return Ok(Err(told("error dialing to cmp-server for plugin", gone)));
            }
            Err(e) => return Err(e),
        };
        let known = || self.verdicts.get(&key).filter(|_| !request.no_cache);
        if let Some(known) = known() {
            return Ok(Ok(known));
        }
        let _alone = self.asking.wait(&key).await;
        if let Some(known) = known() {
            return Ok(Ok(known));
        }
        let probe = async {
            let client = match Client::connect(&socket, self.limit).await {
                Ok(client) => client,
                Err(e) => return Ok(Err(told("error dialing to cmp-server for plugin", e))),
            };
            let configured = match client.check().await {
                Ok(configured) => configured,
                Err(e) => return Ok(Err(told("error checking plugin configuration", e))),
            };
            if !configured.is_discovery_configured {
                return Ok(Ok(named));
            }
            let sent = self.sent(question, commit).await?;
            Ok(match client.matches(&sent).await {
                Ok(answer) => Ok(answer.is_supported || named && !answer.is_discovery_enabled),
                Err(e) => Err(told("error checking repository support for plugin", e)),
            })
        };
        let verdict: Result<Result<bool, Probe>, RepoError> =
            self.in_turn(name, &request.project, probe).await?;
        if let Ok(Ok(verdict)) = &verdict {
            self.verdicts.insert(key, *verdict);
        }
        verdict
    }

    async fn sent(&self, question: &PluginQuestion, commit: &Commit) -> Result<Sent, RepoError> {
        Ok(Sent {
            archive: self.archives.of(commit).await?,
            folder: question.folder.clone(),
            env: question.env.clone(),
        })
    }

    /// Waits until a plugin has time for a project, then works. One that is slow leaves the places
    /// of the others.
    async fn in_turn<T>(
        &self,
        name: &str,
        project: &str,
        work: impl Future<Output = T>,
    ) -> Result<T, RepoError> {
        let host = format!("plugin {name}");
        let contact = self.common.shares.contact(&host, project);
        let contact = match tokio::time::timeout(self.limit, contact).await {
            Ok(place) => place.map_err(|e| RepoError::Internal(e.to_string()))?,
            Err(_) => {
                return Err(RepoError::Plugin {
                    message: format!("plugin {name} has too many other requests to answer"),
                    retryable: true,
                });
            }
        };
        let mut work = std::pin::pin!(work);
        tokio::select! {
            done = &mut work => return Ok(done),
            () = contact.slow_down() => {}
        }
        Ok(work.await)
    }
}

/// What is equal for equal questions to the same server: one that was started again may be another.
async fn key(socket: &Path, question: &PluginQuestion, (_, id): &Commit) -> Result<Key, RepoError> {
    let found = tokio::fs::metadata(socket)
        .await
        .map_err(|e| RepoError::Plugin {
            message: format!(
                "dial unix {}: connect: {}",
                socket.display(),
                net::reason(&e)
            ),
            retryable: true,
        })?;
    let server = (found.dev(), found.ino(), found.ctime(), found.ctime_nsec());
    let mut hash = Sha256::new();
    hash.update(format!("{server:?} {} ", hex(id.tree.as_bytes())));
    hash.update(format!("{socket:?} {question:?}"));
    Ok(hash.finalize().into())
}

/// The names of the sockets in a folder, sorted. Links are none.
fn sockets(dir: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if let Some(name) = name.strip_suffix(SUFFIX)
            && entry.file_type()?.is_socket()
        {
            names.push(name.to_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// The socket of a plugin, which is in the folder.
fn socket(dir: &Path, name: &str) -> Result<PathBuf, String> {
    let file = format!("{name}{SUFFIX}");
    let mut parts = Path::new(&file).components();
    match (parts.next(), parts.next()) {
        (Some(Component::Normal(_)), None) if !name.contains(['/', '\0']) => Ok(dir.join(file)),
        _ => Err(format!(
            "invalid socket file path, {file:?} is outside plugin socket dir {:?}",
            dir.display().to_string()
        )),
    }
}

fn failed(message: String) -> RepoError {
    RepoError::Plugin {
        message,
        retryable: false,
    }
}

/// The same failure, and what it was for.
fn within(what: &str, e: RepoError) -> RepoError {
    RepoError::Plugin {
        retryable: e.retryable(),
        message: format!("{what}: {e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_file_in_the_folder() {
        let dir = Path::new("/plugins");
        for (name, want) in [
            ("a", "/plugins/a.sock"),
            ("a-v1.0", "/plugins/a-v1.0.sock"),
            ("..", "/plugins/...sock"),
        ] {
            assert_eq!(socket(dir, name), Ok(PathBuf::from(want)));
        }
        for name in ["../a", "/etc/a", "a/b", "a/../../b", "a\0"] {
            let refused = socket(dir, name).expect_err(name);
            assert!(
                refused.starts_with("invalid socket file path, "),
                "{refused}"
            );
            assert!(
                refused.ends_with("is outside plugin socket dir \"/plugins\""),
                "{refused}"
            );
        }
    }
}
