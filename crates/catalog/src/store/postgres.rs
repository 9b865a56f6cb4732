//! PostgreSQL: a server that other programs may share.
//!
//! Main types: [`Postgres`] and [`PostgresOptions`]. It is used from threads that may block.

use super::{
    sql::{Dialect, Row, Sql, Value},
    tls::{Connector, Ssl},
};
use crate::CatalogError;
use bytes::{BufMut as _, BytesMut};
use futures::FutureExt as _;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tiphys_repo::Secret;
use tokio::runtime::Handle;
use tokio_postgres::{
    Client, Config, Statement,
    types::{Format, FromSql, IsNull, ToSql, Type, to_sql_checked},
};

const CONNECT: Duration = Duration::from_secs(20);
/// Statements that are remembered.
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
    client: Arc<Client>,
    /// What was asked; prepared from the second time on. To prepare what is asked once would cost a
    /// round trip.
    statements: HashMap<String, Option<Statement>>,
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
        // Nobody waits for the answer: servers before 12 do not know it.
        let _ = client.batch_execute(PLANS).now_or_never();
        Ok(Open {
            client: Arc::new(client),
            statements: HashMap::new(),
        })
    }

    /// Runs work in a transaction; what it did is undone when it fails.
    pub fn transaction<T>(
        &self,
        work: impl FnOnce(&mut dyn Sql) -> Result<T, CatalogError>,
    ) -> Result<T, CatalogError> {
        self.run("BEGIN", false, work)
    }

    /// The same without waiting for the disk. A later transaction that waits, waits for this, too.
    pub fn repeatable<T>(
        &self,
        work: impl FnOnce(&mut dyn Sql) -> Result<T, CatalogError>,
    ) -> Result<T, CatalogError> {
        self.run("BEGIN; SET LOCAL synchronous_commit = off", false, work)
    }

    /// For work that writes nothing: its beginning and its end cost no round trips.
    pub fn read<T>(
        &self,
        work: impl FnOnce(&mut dyn Sql) -> Result<T, CatalogError>,
    ) -> Result<T, CatalogError> {
        self.run("BEGIN READ ONLY", true, work)
    }

    fn run<T>(
        &self,
        begin: &'static str,
        is_reading: bool,
        work: impl FnOnce(&mut dyn Sql) -> Result<T, CatalogError>,
    ) -> Result<T, CatalogError> {
        let mut kept = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let mut running = Running {
            of: self,
            // Where a transaction stands that does not come to its end is unknown: the next one gets
            // a new connection.
            open: kept.take(),
            begin: Some(begin),
            limit: self.options.answer.unwrap_or(ANSWER),
            is_lost: false,
        };
        if !is_reading {
            running.begin()?;
        }
        let done = work(&mut running);
        let ended = match &done {
            _ if running.begin.is_some() => Ok(()),
            Ok(_) if is_reading && !running.is_lost => {
                running.leave();
                Ok(())
            }
            Ok(_) => running.script("COMMIT"),
            Err(_) => running.script("ROLLBACK"),
        };
        if ended.is_ok() {
            *kept = running.open.take();
        }
        match ended {
            Err(e) if done.is_ok() => Err(e),
            _ => done,
        }
    }
}

/// A transaction of PostgreSQL.
struct Running<'c> {
    of: &'c Postgres,
    open: Option<Open>,
    /// What begins it, until it has begun.
    begin: Option<&'static str>,
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

impl Open {
    /// Asks something that gives rows.
    async fn rows(
        &mut self,
        sql: &str,
        values: &[Value],
    ) -> Result<Vec<tokio_postgres::Row>, tokio_postgres::Error> {
        match self.prepared(sql, values).await? {
            Some(statement) => self.client.query(&statement, &parameters(values)).await,
            None => self.client.query_typed(sql, &untyped(values)).await,
        }
    }

    /// How many rows it changed.
    async fn changed(&mut self, sql: &str, values: &[Value]) -> Result<u64, tokio_postgres::Error> {
        match self.prepared(sql, values).await? {
            Some(statement) => self.client.execute(&statement, &parameters(values)).await,
            None => self.client.execute_typed(sql, &untyped(values)).await,
        }
    }

    /// `None`: it is asked for the first time, and may be asked as it is.
    async fn prepared(
        &mut self,
        sql: &str,
        values: &[Value],
    ) -> Result<Option<Statement>, tokio_postgres::Error> {
        let known = self.statements.get(sql);
        if let Some(Some(statement)) = known {
            return Ok(Some(statement.clone()));
        }
        let is_list = |value: &Value| matches!(value, Value::Column(_));
        let is_first = known.is_none() && !values.iter().any(is_list);
        let statement = match is_first {
            true => None,
            false => Some(self.client.prepare(sql).await?),
        };
        if self.statements.len() >= STATEMENTS {
            self.statements.clear();
        }
        self.statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }
}

impl Running<'_> {
    /// Begins the transaction, on a new connection if there is none or the old one was lost: that may
    /// show only when it is used.
    fn begin(&mut self) -> Result<(), CatalogError> {
        self.first(async |_: &mut Open| Ok(()))
    }

    /// The same together with what is asked first.
    fn first<T>(
        &mut self,
        ask: impl AsyncFn(&mut Open) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, CatalogError> {
        let Some(begin) = self.begin.take() else {
            return self.asked(ask);
        };
        let of = self.of;
        let runtime = &of.runtime;
        if let Some(open) = &mut self.open {
            let begun = runtime.block_on(together(begin, open, &ask, self.limit));
            if let Ok(answer) = begun {
                return self.answer(answer);
            }
        }
        self.open = None;
        // A server that hangs takes connections and says nothing on them.
        let mut open = runtime.block_on(answered(soon(self.limit), of.connect()))?;
        let answer = runtime.block_on(together(begin, &mut open, &ask, self.limit))?;
        self.open = Some(open);
        self.answer(answer)
    }

    /// Waits for an answer.
    fn asked<T>(
        &mut self,
        ask: impl AsyncFn(&mut Open) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, CatalogError> {
        if self.is_lost {
            return Err(silent(self.limit));
        }
        let open = self.open.as_mut();
        let open = open.ok_or_else(|| CatalogError::Internal("no connection".to_owned()))?;
        let limit = self.limit;
        let answer = async { tokio::time::timeout(limit, ask(open)).await };
        let answer = self.of.runtime.block_on(answer);
        self.answer(answer)
    }

    fn answer<T>(&mut self, answer: Answer<T>) -> Result<T, CatalogError> {
        self.is_lost = answer.is_err();
        Ok(answer.map_err(|_| silent(self.limit))??)
    }

    /// Ends a transaction that only read, without waiting: what is asked next comes after it.
    fn leave(&self) {
        if let Some(open) = &self.open {
            let _ = open.client.batch_execute("COMMIT").now_or_never();
        }
    }
}

/// What was said in time.
type Answer<T> = Result<Result<T, tokio_postgres::Error>, tokio::time::error::Elapsed>;

/// How long what takes no work may take: others wait for this connection meanwhile.
fn soon(limit: Duration) -> Duration {
    limit.min(CONNECT)
}

/// Begins a transaction and asks, in one round trip. `Err`: it did not begin.
async fn together<T>(
    begin: &str,
    open: &mut Open,
    ask: &impl AsyncFn(&mut Open) -> Result<T, tokio_postgres::Error>,
    limit: Duration,
) -> Result<Answer<T>, CatalogError> {
    let client = Arc::clone(&open.client);
    let begun = answered(soon(limit), client.batch_execute(begin));
    let asked = async { Ok::<_, CatalogError>(tokio::time::timeout(limit, ask(open)).await) };
    let ((), answer) = futures::try_join!(begun, asked)?;
    Ok(answer)
}

fn parameters(values: &[Value]) -> Vec<&(dyn ToSql + Sync)> {
    values.iter().map(|v| v as &(dyn ToSql + Sync)).collect()
}

/// Parameters whose types the server finds out: they are sent as texts.
fn untyped(values: &[Value]) -> Vec<(&(dyn ToSql + Sync), Type)> {
    let untyped = parameters(values).into_iter();
    untyped.map(|value| (value, Type::UNKNOWN)).collect()
}

impl Sql for Running<'_> {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    fn execute(&mut self, sql: &str, values: &[Value]) -> Result<u64, CatalogError> {
        self.first(async |open: &mut Open| open.changed(sql, values).await)
    }

    fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>, CatalogError> {
        let rows = self.first(async |open: &mut Open| open.rows(sql, values).await)?;
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
        self.first(async |open: &mut Open| open.client.batch_execute(sql).await)
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
            (Self::Int(number), &Type::UNKNOWN) => out.put_slice(number.to_string().as_bytes()),
            (Self::Text(text), &Type::JSONB) => {
                out.put_u8(JSONB);
                out.put_slice(text.as_bytes());
            }
            (Self::Text(text), &(Type::TEXT | Type::VARCHAR | Type::UNKNOWN)) => {
                out.put_slice(text.as_bytes());
            }
            (Self::Column(values), kind) => return values.to_sql(kind, out),
            _ => return Err(format!("a parameter cannot be a {kind}").into()),
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, kind: &Type) -> Format {
        match *kind {
            Type::UNKNOWN => Format::Text,
            _ => Format::Binary,
        }
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
