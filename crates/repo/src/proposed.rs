//! A change of one file that is proposed: committed on top of a branch, in a branch of its own.
//!
//! Main function: [`Repos::propose`]. Nothing is checked out, and the branch that the change is for
//! never moves. A repository without any branch has nothing to compare with: the change becomes the
//! first commit of the branch that it is for.

use crate::{
    RepoAccess, RepoError, Repos, Since,
    git::{self, Additions, Author, CommitId, Place, RefUpdate, Store},
    ground::blocking,
    hydrated::cleaned,
    revision::Reference,
};
use std::collections::BTreeMap;

/// The default branch of a repository that does not name one, because it has none.
const FIRST: &str = "main";

/// What to propose.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proposal {
    /// The branch that the change is for; empty: the repository's default one.
    pub base: String,
    /// The branch to make.
    pub branch: String,
    /// The file, from the root of the repository.
    pub path: String,
    /// Of the commit.
    pub message: String,
    /// Who commits: name and address; no name means Tiphys.
    pub author: (String, String),
}

/// What was pushed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proposed {
    /// The branch that the change is for.
    pub base: String,
    /// The branch that has the commit: the base itself if this is the repository's first one.
    pub branch: String,
    pub commit: String,
}

impl Repos {
    /// Commits a file and pushes the commit as a new branch; the first commit of a repository goes to
    /// the base. `edit` gets what the file contains on the base, `None` where there is none, and says
    /// what it is to contain. `access` is for pushing; `now` in seconds since 1970.
    ///
    /// # Errors
    /// The branch exists, the base does not, the path is taken, `edit` refuses or changes nothing,
    /// or the repository does. Nothing was pushed then.
    pub async fn propose(
        &self,
        access: &RepoAccess,
        proposal: Proposal,
        edit: impl FnOnce(Option<Vec<u8>>) -> Result<Vec<u8>, String> + Send + 'static,
        now: i64,
    ) -> Result<Proposed, RepoError> {
        let of_branch = |branch: &str| format!("refs/heads/{branch}");
        let mut branch = proposal.branch;
        git::check_name(&of_branch(&branch))?;
        let path = crate::hydrated_folder(&proposal.path);
        let path = path.map_err(|e| RepoError::Unsupported(e.to_string()))?;
        let entry = self.entry(access)?;
        let refs = entry.refs(Since::now()).await?;
        if refs.iter().any(|known| known.name == of_branch(&branch)) {
            let why = format!("the repository has a branch {branch:?} already");
            return Err(RepoError::Unsupported(why));
        }
        let (base, store, on): (String, Store, Option<CommitId>) =
            match base_of(&refs, &proposal.base)? {
                Some((base, sha)) => {
                    let (store, on) = entry.commit(&sha).await?;
                    (base, store, Some(on))
                }
                None => {
                    let store = entry.store().await?;
                    let head = entry.is_local().then(|| Additions::new(&store).head());
                    branch = match proposal.base.as_str() {
                        "" => head.flatten().unwrap_or_else(|| FIRST.to_owned()),
                        named => named.to_owned(),
                    };
                    (branch.clone(), store, None)
                }
            };
        let name = of_branch(&branch);
        git::check_name(&name)?;
        let (name_of, email) = proposal.author;
        let author = match name_of.as_str() {
            "" => Author::own(now),
            _ => Author {
                name: name_of,
                email,
                seconds: now,
            },
        };
        let (at, message) = (store.clone(), cleaned(&proposal.message)?);
        let (commit, objects) = blocking(move || {
            let refused = RepoError::Unsupported;
            let mut additions = Additions::new(&at);
            let place = match on {
                Some(on) => additions.place(on, &path)?,
                None => Place::Free,
            };
            let before = match place {
                Place::Free => None,
                Place::File(id) => Some(additions.content(id)?),
                Place::Taken => {
                    let why = format!("{path} is taken by a link, a submodule or a folder");
                    return Err(refused(why));
                }
            };
            let after = edit(before.clone()).map_err(|why| refused(format!("{path}: {why}")))?;
            if before.as_ref() == Some(&after) {
                return Err(refused(format!("{path} is already so")));
            }
            let files = BTreeMap::from([(path, after)]);
            let made = additions.commit(on, &files, &message, &author)?;
            Ok((made.commit, additions.objects().to_vec()))
        })
        .await?;
        let update = RefUpdate {
            name,
            old: None,
            new: commit,
        };
        entry.push(store, update, objects).await?;
        Ok(Proposed {
            base,
            branch,
            commit: commit.to_string(),
        })
    }
}

/// The name of a branch and its commit; `None`: the repository has no branch at all.
fn base_of(refs: &[Reference], wanted: &str) -> Result<Option<(String, String)>, RepoError> {
    let find = |name: &str| refs.iter().find(|known| known.name == name);
    let name = if wanted.is_empty() {
        find("HEAD").and_then(|head| head.target.clone())
    } else {
        Some(format!("refs/heads/{wanted}"))
    };
    if let Some(name) = name.as_deref()
        && let Some(found) = find(name)
    {
        let short = name.strip_prefix("refs/heads/").unwrap_or(name);
        return Ok(Some((short.to_owned(), found.sha.clone())));
    }
    let mut branches = refs
        .iter()
        .filter_map(|r| r.name.strip_prefix("refs/heads/"));
    let why = match (branches.next(), wanted) {
        (None, _) => return Ok(None),
        (Some(one), "") => format!(
            "the repository has no default branch: name the one that the change is for, such as \
             {one:?}"
        ),
        (Some(_), named) => format!("the repository has no branch {named:?}"),
    };
    Err(RepoError::Unsupported(why))
}
