//! stub
use crate::{RepoAccess, RepoError, revision::Reference, url::Location};
use std::{path::Path, sync::atomic::AtomicBool, time::Duration};
pub(crate) struct Remote<'a> {
    pub location: &'a Location,
    pub access: &'a RepoAccess,
    pub timeout: Duration,
}
impl Remote<'_> {
    pub fn list_refs(&self, _copy: &Path) -> Result<Vec<Reference>, RepoError> {
        Err(RepoError::Unsupported(format!("{:?} {:?} {:?}", self.location, self.access, self.timeout)))
    }
    pub fn fetch(&self, _copy: &Path, _sha: &str, _stop: &AtomicBool) -> Result<(), RepoError> {
        Err(RepoError::Unsupported("later".to_owned()))
    }
}
