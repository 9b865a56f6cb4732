//! PostgreSQL: a server that other programs may share.
//!
//! Main types: [`Postgres`] and [`PostgresOptions`]. It is used from threads that may block.

use super::{
    sql::{Dialect, Row, Sql, Value},
    tls::{Connector, Ssl},
};
use crate::CatalogError;
use bytes::{BufMut as _, BytesMut};
use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};
use tiphys_repo::Secret;
use tokio::runtime::Handle;
use tokio_postgres::{
    Client, Config, Statement,
    types::{FromSql, IsNull, ToSql, Type, to_sql_checked},
};

const CONNECT: Duration = Duration::from_secs(20);
/// Prepared statements that are kept.
const STATEMENTS: usize = 128;

/// A plan that was made while a table was empty would go on reading all of it when it is large.
const PLANS: &str = "SET plan_cache_mode = force_custom_plan";

/// How long a statement may take, unless it is said otherwise.
const ANSWER: Duration = Duration::from_secs(120);
/// How long a server that is not reachable any more is taken for one that thinks.
const UNSEEN: Duration = Duration::from_secs(30);

/// Where a server is, and who asks.
#[derive(Clone, Debug, Default)]
pub struct PostgresOptions {
    pub host: String,
    pub port: u16,
    pub user: String,
    pub password: Secret,
    pub database: String,
    pub ssl: Ssl,
    /// How long a server may take to answer; `None`: two minutes.
    pub answer: Option<Duration>,
}

/// A connection that is opened again when it was lost.
pub struct Postgres {
    options: PostgresOptions,
    runtime: Handle,
    open: Mutex<Option<Open>>,
}

struct Open {
    client: Client,
    statements: HashMap<String, Statement>,
}

impl Postgres {
    /// Nothing is connected yet. `runtime` drives the connection.
    pub fn new(options: PostgresOptions, runtime: Handle) -> Self {
        Self {
            options,
            runtime,
            open: Mutex::default(),
        }
    }

    async fn connect(&self) -> Result<Open, CatalogError> {
        let mut config = Config::new();
        config
            .host(&self.options.host)
            .port(self.options.port)
            .user(&self.options.user)
            .password(self.options.password.expose())
            .dbname(&self.options.database)
            .application_name("tiphys-catalog")
            .connect_timeout(CONNECT)
            .tcp_user_timeout(UNSEEN)
            .keepalives_idle(UNSEEN);
        let connector = Connector::new(&self.options.ssl)?;
        let mut attempts = self.options.ssl.mode.attempts().iter();
        let (client, connection) = loop {
            let Some(demand) = attempts.next() else {
                return Err(CatalogError::Internal("no attempt".to_owned()));
            };
            config.ssl_mode(*demand);
            match config.connect(connector.clone()).await {
                Err(_) if attempts.len() > 0 => {}
                connected => break connected?,
            }
        };
        tokio::spawn(async move {
            if let Err(e) = connection.await {
                tracing::warn!(error = %CatalogError::from(e), "the database closed the connection");
            }
        });
        // Servers before 12 do not know it.
        if let Err(e) = client.batch_execute(PLANS).await {
            tracing::debug!(error = %CatalogError::from(e), "statements keep their plans");
        }
        Ok(Open {
            client,
            statements: HashMap::new(),
        })
    }

    /// Runs work in a transaction; what it did is undone when it fails.
    pub fn transaction<T>(
        &self,
        work: impl FnOnce(&mut dyn Sql) -> Result<T, CatalogError>,
    ) -> Result<T, CatalogError> {
        self.run("BEGIN", work)
    }

    /// The same without waiting for the disk. A later transaction that waits, waits for this, too.
    pub fn repeatable<T>(
        &self,
        work: impl FnOnce(&mut dyn Sql) -> Result<T, CatalogError>,
    ) -> Result<T, CatalogError> {
        self.run("BEGIN; SET LOCAL synchronous_commit = off", work)
    }

    fn run<T>(
        &self,
        begin: &str,
        work: impl FnOnce(&mut dyn Sql) -> Result<T, CatalogError>,
    ) -> Result<T, CatalogError> {
        let mut kept = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let limit = self.options.answer.unwrap_or(ANSWER);
        // Neither takes work: others wait for this connection meanwhile.
        let soon = limit.min(CONNECT);
        // A connection that was lost meanwhile may show that only when it is used.
        let begun = kept.as_ref().is_some_and(|open| {
            let begin = open.client.batch_execute(begin);
            self.runtime.block_on(answered(soon, begin)).is_ok()
        });
        if !begun {
            *kept = None;
            let open = async {
                let open = self.connect().await?;
                open.client.batch_execute(begin).await?;
                Ok::<_, CatalogError>(open)
            };
            // A server that hangs takes connections and says nothing on them.
            *kept = Some(self.runtime.block_on(answered(soon, open))?);
        }
        let open = kept.as_mut();
        let open = open.ok_or_else(|| CatalogError::Internal("no connection".to_owned()))?;
        let mut running = Running {
            open,
            runtime: &self.runtime,
            limit,
            is_lost: false,
        };
        match work(&mut running) {
            Ok(done) => {
                let committed = running.script("COMMIT");
                if committed.is_err() {
                    // Where the transaction stands is unknown: the next call gets a new connection.
                    *kept = None;
                }
                committed.map(|()| done)
            }
            Err(e) => {
                if running.is_lost || running.script("ROLLBACK").is_err() {
                    *kept = None;
                }
                Err(e)
            }
        }
    }
}

/// A transaction of PostgreSQL.
struct Running<'c> {
    open: &'c mut Open,
    runtime: &'c Handle,
    /// How long an answer may take.
    limit: Duration,
    /// The server did not answer: nothing more is asked of it.
    is_lost: bool,
}

/// What the server says, if it says it in time: a search must not hang with a database that does.
async fn answered<T, E>(
    limit: Duration,
    answer: impl Future<Output = Result<T, E>>,
) -> Result<T, CatalogError>
where
    CatalogError: From<E>,
{
    let answer = tokio::time::timeout(limit, answer).await;
    Ok(answer.map_err(|_| silent(limit))??)
}

fn silent(limit: Duration) -> CatalogError {
    CatalogError::Database(format!("it did not answer within {limit:?}"))
}

impl Running<'_> {
    /// Waits for an answer.
    fn wait<T>(
        &mut self,
        ask: impl AsyncFnOnce(&Client) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, CatalogError> {
        if self.is_lost {
            return Err(silent(self.limit));
        }
        let answer = async { tokio::time::timeout(self.limit, ask(&self.open.client)).await };
        let answer = self.runtime.block_on(answer);
        self.is_lost = answer.is_err();
        Ok(answer.map_err(|_| silent(self.limit))??)
    }

    fn prepared(&mut self, sql: &str) -> Result<Statement, CatalogError> {
        if let Some(known) = self.open.statements.get(sql) {
            return Ok(known.clone());
        }
        let statement = self.wait(async |client| client.prepare(sql).await)?;
        if self.open.statements.len() >= STATEMENTS {
            self.open.statements.clear();
        }
        let kept = statement.clone();
        self.open.statements.insert(sql.to_owned(), kept);
        Ok(statement)
    }
}

fn parameters(values: &[Value]) -> Vec<&(dyn ToSql + Sync)> {
    values.iter().map(|v| v as &(dyn ToSql + Sync)).collect()
}

impl Sql for Running<'_> {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    fn execute(&mut self, sql: &str, values: &[Value]) -> Result<u64, CatalogError> {
        let statement = self.prepared(sql)?;
        let values = parameters(values);
        self.wait(async |client| client.execute(&statement, &values).await)
    }

    fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>, CatalogError> {
        let statement = self.prepared(sql)?;
        let values = parameters(values);
        let rows = self.wait(async |client| client.query(&statement, &values).await)?;
        let row = |row: &tokio_postgres::Row| {
            let value = |column| {
                Ok(row
                    .try_get::<_, Option<Value>>(column)?
                    .unwrap_or(Value::Null))
            };
            (0..row.len())
                .map(value)
                .collect::<Result<_, CatalogError>>()
                .map(Row)
        };
        rows.iter().map(row).collect()
    }

    fn script(&mut self, sql: &str) -> Result<(), CatalogError> {
        self.wait(async |client| client.batch_execute(sql).await)
    }
}

type Fault = Box<dyn std::error::Error + Sync + Send>;

/// The version of the binary form of `jsonb`, which is its text.
const JSONB: u8 = 1;

impl ToSql for Value {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Fault> {
        match (self, kind) {
            (Self::Null, _) => return Ok(IsNull::Yes),
            (Self::Int(number), &Type::INT4) => out.put_i32(i32::try_from(*number)?),
            (Self::Int(number), &Type::INT8) => out.put_i64(*number),
            (Self::Text(text), &Type::JSONB) => {
                out.put_u8(JSONB);
                out.put_slice(text.as_bytes());
            }
            (Self::Text(text), &(Type::TEXT | Type::VARCHAR)) => out.put_slice(text.as_bytes()),
            (Self::Column(values), kind) => return values.to_sql(kind, out),
            _ => return Err(format!("a parameter cannot be a {kind}").into()),
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for Value {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> Result<Self, Fault> {
        match *kind {
            Type::INT4 => i32::from_sql(kind, raw).map(|number| Self::Int(number.into())),
            Type::INT8 => i64::from_sql(kind, raw).map(Self::Int),
            Type::JSONB => match raw.split_first() {
                Some((&JSONB, text)) => Ok(Self::Text(std::str::from_utf8(text)?.to_owned())),
                _ => Err("jsonb of an unknown version".into()),
            },
            _ => Ok(Self::Text(std::str::from_utf8(raw)?.to_owned())),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}
