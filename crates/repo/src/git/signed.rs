//! The signatures of commits and annotated tags, and which commits of a history are looked at.
//!
//! Main function: [`Store::signatures`].

use super::Store;
use crate::RepoError;
use gix::{ObjectId, bstr::ByteSlice};
use std::collections::{BTreeSet, BinaryHeap, HashMap, HashSet};
use tiphys_signatures::{Check, Keyring, Verdict, check};

/// A checked signature of a commit or a tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The SHA of the commit, or the name of the tag.
    pub revision: String,
    /// `Name <email>`; of a tag, as Argo CD shows it, `Name "<email>"`.
    pub author: String,
    pub check: Check,
}

impl Signature {
    pub(crate) fn new(revision: String, author: String, check: Check) -> Self {
        Self {
            revision,
            author,
            check,
        }
    }
}

/// Commits of one history that are looked at.
const MAX_COMMITS: usize = 200_000;
/// Problems after which no more are searched for.
const MAX_REFUSED: usize = 200;
/// Longest commit or tag object that is read.
const MAX_OBJECT: u64 = 4 << 20;
/// A commit whose message has this, and a good signature, vouches for everything before it.
const SEAL: &[u8] = b"argocd-gpg-seal:";

/// The annotated tag that names a commit.
#[derive(Clone, Debug)]
pub(crate) struct Tag {
    pub name: String,
    pub id: ObjectId,
}

/// What is asked about signatures.
pub(crate) struct Question<'a> {
    pub commit: ObjectId,
    pub tag: Option<Tag>,
    /// Also all commits before it.
    pub deep: bool,
    pub keyring: &'a Keyring,
    pub permits: &'a (dyn Fn(&Signature) -> bool + Send + Sync),
    pub now: i64,
}

/// What was found. There is always a first one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signatures {
    /// Of the tag, or of the commit itself.
    pub first: Signature,
    /// Those that are not permitted, the newest first. Not all of many.
    pub refused: Vec<Signature>,
}

/// Why there is no answer.
pub(crate) enum NoAnswer {
    /// Commits of the history are not in the copy.
    History,
    Failed(RepoError),
}

impl From<RepoError> for NoAnswer {
    fn from(e: RepoError) -> Self {
        Self::Failed(e)
    }
}

/// What is kept of a commit of a history.
struct Known {
    parents: Vec<ObjectId>,
    time: i64,
    is_seal: bool,
}

/// The signatures of the commits that count, as far as they have to be known.
#[derive(Default)]
struct Found {
    first: Option<Signature>,
    refused: Vec<Signature>,
}

impl Found {
    /// Whether there may be more.
    fn add(&mut self, signature: Signature, question: &Question<'_>) -> bool {
        if !(question.permits)(&signature) {
            self.refused.push(signature.clone());
        }
        self.first.get_or_insert(signature);
        self.refused.len() < MAX_REFUSED
    }
}

impl Store {
    /// The signature of an annotated tag, and those of commits. Blocks.
    pub fn signatures(&self, question: &Question<'_>) -> Result<Signatures, NoAnswer> {
        let repo = self.local();
        let mut found = Found::default();
        if let Some(tag) = &question.tag {
            found.add(self.tag_signature(&repo, tag, question)?, question);
        }
        if question.deep {
            self.history(&repo, question, &mut found)?;
        } else if question.tag.is_none() {
            let data = self.object(&repo, question.commit)?;
            found.add(
                self.commit_signature(question.commit, &data, question)?,
                question,
            );
        }
        match found.first {
            Some(first) => Ok(Signatures {
                first,
                refused: found.refused,
            }),
            None => Err(self.broken("a commit has no signature to look at").into()),
        }
    }

    fn broken(&self, reason: &str) -> RepoError {
        RepoError::Corrupt {
            url: self.url.to_string(),
            reason: reason.to_owned(),
        }
    }

    fn object(&self, repo: &gix::Repository, id: ObjectId) -> Result<Vec<u8>, NoAnswer> {
        let Some(header) = repo.try_find_header(id).map_err(|e| self.corrupt(&e))? else {
            return Err(NoAnswer::History);
        };
        if header.size() > MAX_OBJECT {
            return Err(self
                .broken(&format!("{id} is larger than {MAX_OBJECT} bytes"))
                .into());
        }
        let mut object = repo.find_object(id).map_err(|e| self.corrupt(&e))?;
        Ok(std::mem::take(&mut object.data))
    }

    fn tag_signature(
        &self,
        repo: &gix::Repository,
        tag: &Tag,
        question: &Question<'_>,
    ) -> Result<Signature, NoAnswer> {
        let data = self.object(repo, tag.id)?;
        let parsed = gix::objs::TagRef::from_bytes(&data, gix::hash::Kind::Sha1)
            .map_err(|e| self.broken(&format!("tag {}: {e}", tag.name)))?;
        let object = repo.find_object(tag.id).map_err(|e| self.corrupt(&e))?;
        let peeled = object.peel_to_commit().map_err(|e| self.corrupt(&e))?;
        if peeled.id != question.commit {
            return Err(self
                .broken(&format!("tag {} is of another commit", tag.name))
                .into());
        }
        let author = parsed.tagger().ok().flatten();
        let author = author.map_or_else(String::new, |tagger| {
            format!(
                "{} \"<{}>\"",
                tagger.name.to_str_lossy(),
                tagger.email.to_str_lossy()
            )
        });
        let (text, signature) = split_tag(&data);
        let mut checked = check(question.keyring, signature, text, question.now);
        // A tag that was made for another version must not pass as this one.
        if checked.verdict == Verdict::Good && parsed.name != tag.name.as_bytes() {
            checked.verdict = Verdict::Bad;
        }
        Ok(Signature::new(tag.name.clone(), author, checked))
    }

    fn commit_signature(
        &self,
        id: ObjectId,
        data: &[u8],
        question: &Question<'_>,
    ) -> Result<Signature, NoAnswer> {
        let parsed = gix::objs::CommitRef::from_bytes(data, gix::hash::Kind::Sha1)
            .map_err(|e| self.broken(&format!("commit {id}: {e}")))?;
        let author = parsed.author().map_err(|e| self.broken(&e.to_string()))?;
        let author = format!(
            "{} <{}>",
            author.name.to_str_lossy(),
            author.email.to_str_lossy()
        );
        Ok(Signature::new(
            id.to_string(),
            author,
            checked(data, question),
        ))
    }

    /// All commits before the commit, up to and with the seals, as
    /// `git rev-list --boundary COMMIT --not SEAL...`.
    fn history(
        &self,
        repo: &gix::Repository,
        question: &Question<'_>,
        found: &mut Found,
    ) -> Result<(), NoAnswer> {
        let known = self.commits(repo, question)?;
        let is_seal = |id: &ObjectId| known.get(id).is_some_and(|known| known.is_seal);
        let parents = |id: &ObjectId| known.get(id).map_or(&[][..], |known| &known.parents);
        let mut listed: BTreeSet<ObjectId> = BTreeSet::new();
        if is_seal(&question.commit) {
            listed.insert(question.commit);
        } else {
            let mut before: HashSet<ObjectId> = HashSet::new();
            let mut todo: Vec<ObjectId> = known.keys().filter(|id| is_seal(id)).copied().collect();
            while let Some(id) = todo.pop() {
                if before.insert(id) {
                    todo.extend(parents(&id));
                }
            }
            for id in known.keys().filter(|id| !before.contains(*id)) {
                listed.insert(*id);
                let boundary = parents(id).iter().filter(|parent| before.contains(*parent));
                listed.extend(boundary);
            }
        }
        let mut newest: BinaryHeap<(i64, ObjectId)> = listed
            .into_iter()
            .map(|id| (known.get(&id).map_or(0, |known| known.time), id))
            .collect();
        while let Some((_, id)) = newest.pop() {
            let data = self.object(repo, id)?;
            if !found.add(self.commit_signature(id, &data, question)?, question) {
                break;
            }
        }
        Ok(())
    }

    fn commits(
        &self,
        repo: &gix::Repository,
        question: &Question<'_>,
    ) -> Result<HashMap<ObjectId, Known>, NoAnswer> {
        let mut known: HashMap<ObjectId, Known> = HashMap::new();
        let mut todo = vec![question.commit];
        while let Some(id) = todo.pop() {
            if known.contains_key(&id) {
                continue;
            }
            if known.len() == MAX_COMMITS {
                return Err(NoAnswer::Failed(RepoError::OverLimit {
                    url: self.url.to_string(),
                    excess: format!("more than {MAX_COMMITS} commits to verify"),
                }));
            }
            let data = self.object(repo, id)?;
            let parsed = gix::objs::CommitRef::from_bytes(&data, gix::hash::Kind::Sha1)
                .map_err(|e| self.broken(&format!("commit {id}: {e}")))?;
            let parents: Vec<ObjectId> = parsed.parents().collect();
            let is_seal = parsed.message.to_ascii_lowercase().contains_str(SEAL)
                && checked(&data, question).verdict == Verdict::Good;
            todo.extend(&parents);
            let time = parsed.time().map_or(0, |time| time.seconds);
            known.insert(
                id,
                Known {
                    parents,
                    time,
                    is_seal,
                },
            );
        }
        Ok(known)
    }
}

fn checked(data: &[u8], question: &Question<'_>) -> Check {
    let (text, signature) = split_commit(data);
    check(question.keyring, &signature, &text, question.now)
}

/// A commit without its signatures, and the one of its header `gpgsig`, as git reads it.
fn split_commit(data: &[u8]) -> (Vec<u8>, Vec<u8>) {
    enum Within {
        Text,
        Signature,
        Other,
    }
    let (mut text, mut signature) = (Vec::with_capacity(data.len()), Vec::new());
    let mut within = Within::Text;
    let mut rest = data;
    while !rest.is_empty() {
        let end = rest.find_byte(b'\n').map_or(rest.len(), |at| at + 1);
        let (line, after) = rest.split_at(end);
        if line == b"\n" {
            break;
        }
        rest = after;
        if let Some(more) = line.strip_prefix(b" ") {
            match within {
                Within::Text => text.extend_from_slice(line),
                Within::Signature => signature.extend_from_slice(more),
                Within::Other => {}
            }
        } else if let Some(first) = line.strip_prefix(b"gpgsig ") {
            within = Within::Signature;
            signature.extend_from_slice(first);
        } else if line.starts_with(b"gpgsig") {
            within = Within::Other;
        } else {
            within = Within::Text;
            text.extend_from_slice(line);
        }
    }
    text.extend_from_slice(rest);
    (text, signature)
}

/// A tag up to its signature, and the signature: it begins with the last line that can begin one.
fn split_tag(data: &[u8]) -> (&[u8], &[u8]) {
    const BEGIN: [&[u8]; 3] = [
        b"-----BEGIN PGP SIGNATURE-----",
        b"-----BEGIN PGP MESSAGE-----",
        b"-----BEGIN SSH SIGNATURE-----",
    ];
    let (mut at, mut start) = (0, data.len());
    for line in data.split_inclusive(|b| *b == b'\n') {
        if BEGIN.iter().any(|begin| line.starts_with(begin)) {
            start = at;
        }
        at += line.len();
    }
    data.split_at(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_cut_out_of_commits() {
        let data = b"tree t\nparent p\ngpgsig A\n B\n  C\n \ngpgsig-sha256 X\n Y\nencoding e\nmergetag m\n n\n\nmessage\ngpgsig Z\n";
        let (text, signature) = split_commit(data);
        assert_eq!(
            text.as_bstr(),
            "tree t\nparent p\nencoding e\nmergetag m\n n\n\nmessage\ngpgsig Z\n"
        );
        assert_eq!(signature.as_bstr(), "A\nB\n C\n\n");
        let unsigned = b"tree t\n\nmessage";
        assert_eq!(split_commit(unsigned), (unsigned.to_vec(), Vec::new()));
        assert_eq!(split_commit(b""), (Vec::new(), Vec::new()));
        // Two headers are one signature, of which nobody knows whose it is.
        let (_, both) = split_commit(b"tree t\ngpgsig A\ngpgsig B\n\nm");
        assert_eq!(both.as_bstr(), "A\nB\n");
    }

    #[test]
    fn the_signature_of_a_tag_is_the_last_one() {
        let data =
            b"object o\n\n-----BEGIN PGP SIGNATURE-----\nx\n-----BEGIN SSH SIGNATURE-----\ny\n";
        let (text, signature) = split_tag(data);
        assert!(text.ends_with(b"x\n") && signature.starts_with(b"-----BEGIN SSH"));
        assert_eq!(
            split_tag(b"object o\n\nm\n"),
            (&b"object o\n\nm\n"[..], &b""[..])
        );
    }
}
