//! The refs of a local repository: all of them, or the one that a revision names.

use super::Store;
use crate::{
    RepoError,
    revision::{Reference, candidates},
};
use gix::refs::{FullName, Target, file::loose, packed};
use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

/// Symbolic refs followed from `HEAD`.
const MAX_STEPS: usize = 5;
/// A ref's file is a hash, or the name of another ref.
const MAX_LENGTH: u64 = 4096;

impl Store {
    /// All refs, as listed by `ls-remote`; `HEAD` first.
    pub fn references(&self) -> Result<Vec<Reference>, RepoError> {
        let repo = self.local();
        let mut out = Vec::new();
        let platform = repo.references().map_err(|e| self.corrupt(&e))?;
        for reference in platform.all().map_err(|e| self.corrupt(&e))? {
            // As in `git ls-remote`, a ref that cannot be read or points nowhere is ignored.
            let Ok(mut reference) = reference else {
                continue;
            };
            let name = reference.name().as_bstr().to_string();
            // Only a tag may be an object that refers to a commit.
            let direct = reference.target().try_id().map(|id| id.to_string());
            let sha = match reference.target().try_id() {
                Some(id) if !name.starts_with("refs/tags/") && repo.has_object(id) => {
                    id.to_string()
                }
                _ => match reference.peel_to_id() {
                    Ok(id) => id.to_string(),
                    Err(_) => continue,
                },
            };
            out.push(Reference {
                tag: direct.filter(|id| *id != sha && name.starts_with("refs/tags/")),
                name,
                sha,
                target: None,
            });
        }
        let head = repo.head().map_err(|e| self.corrupt(&e))?;
        let target = head.referent_name().map(|n| n.as_bstr().to_string());
        let known = target
            .as_ref()
            .and_then(|target| out.iter().find(|r| r.name == *target))
            .map(|r| r.sha.clone());
        if let Some(sha) = known.or_else(|| repo.head_id().ok().map(|id| id.to_string())) {
            out.insert(
                0,
                Reference {
                    name: "HEAD".to_owned(),
                    sha,
                    target,
                    tag: None,
                },
            );
        }
        Ok(out)
    }

    /// The commit of a revision that names a branch, a tag or `HEAD`, read from that ref alone, if
    /// it is the last commit found. It usually is, and then neither other refs nor the object
    /// database need to be read.
    pub fn last_of(&self, revision: &str) -> Option<String> {
        let packed = self.repo.refs.cached_packed_buffer().ok()?;
        let target = |name: &str| self.target(name, packed.as_ref().map(|buffer| &***buffer));
        let mut found = candidates(revision)
            .into_iter()
            .find_map(|name| target(&name).transpose())?
            .ok()?;
        for _ in 0..MAX_STEPS {
            match found {
                Target::Object(id) => return self.last_is(id).then(|| id.to_string()),
                Target::Symbolic(next) => found = target(&next.as_bstr().to_string()).ok()??,
            }
        }
        None
    }

    /// The target of the ref with exactly this name; `None` if there is none. (`try_find` would
    /// search nine paths for a missing one.)
    fn target(
        &self,
        name: &str,
        packed: Option<&packed::Buffer>,
    ) -> Result<Option<Target>, RepoError> {
        let refs = &self.repo.refs;
        let full = FullName::try_from(name)
            .map_err(|e| RepoError::Internal(format!("ref {name:?}: {e}")))?;
        let folder = if name == "HEAD" {
            refs.git_dir()
        } else {
            refs.common_dir_resolved()
        };
        match first_bytes(&folder.join(name)) {
            Ok(text) => {
                let read =
                    loose::Reference::try_from_path(full, &text, self.repo.objects.object_hash());
                read.map(|found| Some(found.target))
                    .map_err(|e| self.corrupt(&e))
            }
            Err(_) => {
                let found = packed
                    .map(|all| all.try_find(name))
                    .transpose()
                    .map_err(|e| self.corrupt(&e))?
                    .flatten();
                Ok(found.map(|found| Target::Object(found.target())))
            }
        }
    }
}

fn first_bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(128);
    File::open(path)?.take(MAX_LENGTH).read_to_end(&mut bytes)?;
    Ok(bytes)
}
