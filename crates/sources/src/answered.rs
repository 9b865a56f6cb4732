//! What became of a question that a generator asks of the outside.

use tiphys_appset::{Answer, NeedError};
use tiphys_cluster::records::{Readable, Store};

pub(crate) type Answered = Result<Answer, NeedError>;

pub(crate) fn current<T: Readable>(store: &Store<T>, what: &str) -> Result<(), NeedError> {
    match store.problem() {
        None if store.is_current() => Ok(()),
        problem => Err(NeedError::failed(format!(
            "{what} cannot be read now: {}",
            problem.unwrap_or_else(|| "they are being listed".to_owned())
        ))),
    }
}
