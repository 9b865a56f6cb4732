//! Renders of local files that need something from elsewhere: it is fetched, without credentials but
//! those that `ssh` finds by itself, and the render is repeated until nothing is missing.
//!
//! Main function: [`complete`].

use std::io;
use tiphys_render::{RenderError, SourceRef};
use tiphys_repo::{ManifestRequest, Obtained, RepoError, RepoOptions, Repos};

/// Why there is no result.
pub enum Incomplete {
    Render(RenderError),
    /// What the render needs cannot be fetched.
    Missing(Box<Missing>),
    /// The render needs more than is fetched for one.
    TooMuch(RepoError),
    /// There is no folder for what is fetched.
    Folder(io::Error),
}

pub struct Missing {
    pub needed: SourceRef,
    /// The file that needs it, if that is known.
    pub file: Option<String>,
    pub error: RepoError,
}

/// Fetches what a render needs, and renders again, until everything is there. `needed`: what the
/// first attempt was lacking; `file_of`: which file needs something, for a message. Of `request`,
/// only what says how something is reached is looked at.
pub async fn complete<T>(
    request: &ManifestRequest,
    mut needed: Vec<SourceRef>,
    attempt: impl Fn(&Obtained) -> Result<T, RenderError>,
    file_of: impl Fn(&Obtained, &SourceRef) -> Option<String>,
) -> Result<T, Incomplete> {
    let folder = tempfile::Builder::new().prefix("tiphys-local-").tempdir();
    let folder = folder.map_err(Incomplete::Folder)?;
    let options = RepoOptions {
        allow_local: false,
        ..RepoOptions::default()
    };
    let repos = Repos::with_options(folder.path(), options);
    let mut obtained = Obtained::default();
    loop {
        let failed = needed.iter().find_map(|one| {
            let error = obtained.failure(one)?.clone();
            Some((one.clone(), error))
        });
        if let Some((needed, error)) = failed {
            let file = file_of(&obtained, &needed);
            let missing = Missing {
                needed,
                file,
                error,
            };
            return Err(Incomplete::Missing(Box::new(missing)));
        }
        let more = repos.obtain(request, &obtained, needed).await;
        obtained = more.map_err(Incomplete::TooMuch)?;
        match attempt(&obtained) {
            Err(RenderError::Need(next)) => needed = next,
            outcome => return outcome.map_err(Incomplete::Render),
        }
    }
}
