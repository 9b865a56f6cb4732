//! The refs of a repository on this machine: all of them, or the one that a revision names.

use super::Store;
use crate::{RepoError, revision::Reference};
use gix::refs::TargetRef;

/// Symbolic refs followed from `HEAD`.
const MAX_STEPS: usize = 5;

impl Store {
    /// All refs, as `ls-remote` would list them; `HEAD` first.
    pub fn references(&self) -> Result<Vec<Reference>, RepoError> {
        let repo = self.local();
        let mut out = Vec::new();
        let platform = repo.references().map_err(|e| self.corrupt(&e))?;
        for reference in platform.all().map_err(|e| self.corrupt(&e))? {
            // A ref that cannot be read or leads nowhere is as good as absent, as for `git ls-remote`.
            let Ok(mut reference) = reference else { continue };
            let name = reference.name().as_bstr().to_string();
            // Only a tag may be an object that stands for a commit.
            let sha = match reference.target().try_id() {
                Some(id) if !name.starts_with("refs/tags/") && repo.has_object(id) => id.to_string(),
                _ => match reference.peel_to_id() {
                    Ok(id) => id.to_string(),
                    Err(_) => continue,
                },
            };
            out.push(Reference { name, sha, target: None });
        }
        let head = repo.head().map_err(|e| self.corrupt(&e))?;
        let target = head.referent_name().map(|n| n.as_bstr().to_string());
        let known = target.as_ref().and_then(|target| out.iter().find(|r| r.name == *target)).map(|r| r.sha.clone());
        if let Some(sha) = known.or_else(|| repo.head_id().ok().map(|id| id.to_string())) {
            out.insert(0, Reference { name: "HEAD".to_owned(), sha, target });
        }
        Ok(out)
    }

    /// The commit of a revision that names a branch, a tag or `HEAD`, read from that ref alone, if it is the one that was found last:
    /// it usually is, and then neither the other refs nor the object database need be asked.
    pub fn last_of(&self, revision: &str) -> Option<String> {
        let candidates = match revision {
            full if full.starts_with("refs/") => vec![full.to_owned()],
            "HEAD" => vec!["refs/tags/HEAD".to_owned(), "refs/heads/HEAD".to_owned(), "HEAD".to_owned()],
            short => vec![format!("refs/tags/{short}"), format!("refs/heads/{short}")],
        };
        let mut name = candidates.into_iter().find_map(|name| self.target(&name).transpose()).transpose().ok()??;
        for _ in 0..MAX_STEPS {
            match name {
                Target::Object(id) => return self.last_is(id).then(|| id.to_string()),
                Target::Ref(next) => name = self.target(&next).ok()??,
            }
        }
        None
    }

    /// What a ref says; `None`: there is none of exactly this name.
    fn target(&self, name: &str) -> Result<Option<Target>, gix::Error> {
        let Some(found) = self.repo.refs.try_find(name)?.filter(|r| r.name.as_bstr() == name) else { return Ok(None) };
        Ok(Some(match found.target.to_ref() {
            TargetRef::Object(id) => Target::Object(id.to_owned()),
            TargetRef::Symbolic(next) => Target::Ref(next.as_bstr().to_string()),
        }))
    }
}

enum Target {
    Object(gix::ObjectId),
    Ref(String),
}
