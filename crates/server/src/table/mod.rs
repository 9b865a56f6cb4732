//! This role's table of calls: Argo CD's public services. Main function: [`table`]. `calls` has the
//! rows; each names the permissions that it needs, and its handler gets a guard limited to those.
//! Every reply passes through [`Shown::conceal`].

mod calls;
mod charts;

use crate::{
    ApiError, Code,
    access::{Access, Guard},
    auth::Caller,
    shown::Shown,
    state::State,
};
use futures::stream::BoxStream;
use std::sync::Arc;
use tiphys_rpc::{
    Call, Table,
    table::{self, Answer, Encoded, Encoding, Query},
};

/// The table.
pub fn table() -> Table<State> {
    Table::new(calls::all())
}

/// A row whose reply is one message, for callers with the permissions it names.
fn unary<Q, R, F, Fut>(rpc: &str, rest: &[&str], access: Access, f: F) -> Call<State>
where
    Q: Query,
    R: Answer + Shown,
    F: Fn(Arc<State>, Guard, Q) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, ApiError>> + Send + 'static,
{
    let guarded = move |state: Arc<State>, caller, q| {
        let guard = state.guard(caller, access);
        f(state, guard, q)
    };
    table::unary(rpc, rest, access, Shown::conceal, guarded)
}

/// A row whose reply is one message that the handler encodes, without secrets, for callers with the
/// permissions it names.
fn encoded<Q, R, F, Fut>(rpc: &str, rest: &[&str], access: Access, f: F) -> Call<State>
where
    Q: Query,
    R: Answer + Shown,
    F: Fn(Arc<State>, Guard, Q, Encoding) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Encoded<R>, ApiError>> + Send + 'static,
{
    let guarded = move |state: Arc<State>, caller, q, encoding| {
        let guard = state.guard(caller, access);
        f(state, guard, q, encoding)
    };
    table::encoded(rpc, rest, access, guarded)
}

/// A row whose reply is a stream of messages, for callers with the permissions it names.
fn stream<Q, R, F, Fut>(rpc: &str, rest: &[&str], access: Access, f: F) -> Call<State>
where
    Q: Query,
    R: Answer + Shown,
    F: Fn(Arc<State>, Guard, Q) -> Fut + Send + Sync + 'static,
    Fut:
        Future<Output = Result<BoxStream<'static, Result<R, ApiError>>, ApiError>> + Send + 'static,
{
    let guarded = move |state: Arc<State>, caller, q| {
        let guard = state.guard(caller, access);
        f(state, guard, q)
    };
    table::server_stream(rpc, rest, access, Shown::conceal, guarded)
}

/// A row that takes a stream of messages, for callers with the permissions it names. Its REST
/// bindings only say that REST has no such calls.
fn client_stream<Q, R, F, Fut>(rpc: &str, rest: &[&str], access: Access, f: F) -> Call<State>
where
    Q: Query,
    R: Answer + Shown,
    F: Fn(Arc<State>, Guard, BoxStream<'static, Result<Q, ApiError>>) -> Fut
        + Send
        + Sync
        + 'static,
    Fut: Future<Output = Result<R, ApiError>> + Send + 'static,
{
    let guarded = move |state: Arc<State>, caller, messages| {
        let guard = state.guard(caller, access);
        f(state, guard, messages)
    };
    table::client_stream(rpc, access, Shown::conceal, guarded).with_rest(rest)
}

/// A public row.
fn public<Q, R, F, Fut>(rpc: &str, rest: &[&str], f: F) -> Call<State>
where
    Q: Query,
    R: Answer + Shown,
    F: Fn(Arc<State>, Caller, Q) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, ApiError>> + Send + 'static,
{
    table::unary(rpc, rest, Access::Public, Shown::conceal, f)
}

/// A row for any logged-in caller.
fn signed_in<Q, R, F, Fut>(rpc: &str, rest: &[&str], f: F) -> Call<State>
where
    Q: Query,
    R: Answer + Shown,
    F: Fn(Arc<State>, Caller, Q) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, ApiError>> + Send + 'static,
{
    table::unary(rpc, rest, Access::SignedIn, Shown::conceal, f)
}

/// A row for the repositories that the hydrator writes to, which says so where there is none.
fn hydrating<Q, R, F, Fut>(rpc: &str, rest: &[&str], access: Access, f: F) -> Call<State>
where
    Q: Query,
    R: Answer + Shown,
    F: Fn(Arc<State>, Guard, Q) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, ApiError>> + Send + 'static,
{
    unary(rpc, rest, access, move |state: Arc<State>, guard, q| {
        let is_enabled = state.options.hydrator_enabled;
        let answer = is_enabled.then(|| f(state, guard, q));
        async move {
            match answer {
                Some(answer) => answer.await,
                None => Err(ApiError::new(Code::Unimplemented, "hydrator is disabled")),
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::table;
    use http::Method;
    use std::collections::BTreeSet;

    #[test]
    fn every_rpc_is_there_once() {
        let table = table();
        assert_eq!(
            table.calls().len(),
            128,
            "the public services have 109 RPCs, the catalogue 10, and kubeapps 9"
        );
        let names: BTreeSet<&str> = table.calls().iter().map(|c| c.rpc.as_str()).collect();
        assert_eq!(names.len(), 128);
        assert_eq!(
            table.calls().iter().map(|c| c.rest.len()).sum::<usize>(),
            137,
            "pod logs and packages have two paths"
        );
    }

    #[test]
    fn literal_paths_win() {
        let table = table();
        let rpc = |method: Method, path: &str| {
            table
                .by_rest(&method, path)
                .map(|(call, ..)| call.rpc.clone())
        };
        assert_eq!(
            rpc(Method::GET, "/api/v1/session/userinfo").as_deref(),
            Some("/session.SessionService/GetUserInfo")
        );
        assert_eq!(
            rpc(Method::POST, "/api/v1/applications/a/sync").as_deref(),
            Some("/application.ApplicationService/Sync")
        );
        assert_eq!(
            rpc(Method::GET, "/api/v1/repositories").as_deref(),
            Some("/repository.RepositoryService/List")
        );
        assert_eq!(rpc(Method::GET, "/api/v1/nothing"), None);
    }
}
