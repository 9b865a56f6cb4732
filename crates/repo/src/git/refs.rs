//! The refs of a local repository.

use super::Store;
use crate::{RepoError, revision::Reference};

impl Store {
    /// All refs of a local repository, as `ls-remote` would list them; `HEAD` first.
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
}
