//! Finds the Redis master through sentinels. Main type: [`Sentinels`].

use super::{Login, connect};
use futures::future::select_ok;
use redis::{RedisError, cmd};
use std::io;
use tiphys_repo::net::Tls;

/// The sentinels of one master.
#[derive(Clone)]
pub struct Sentinels {
    /// Of each `host:port`.
    pub addresses: Vec<String>,
    /// Their name for the master.
    pub master: String,
    /// The credentials for them.
    pub login: Login,
}

impl Sentinels {
    /// The master's address, from the first sentinel that knows it.
    pub(super) async fn ask(&self, tls: Option<&Tls>) -> Result<String, RedisError> {
        let asked = self
            .addresses
            .iter()
            .map(|address| Box::pin(self.ask_one(address, tls)));
        select_ok(asked).await.map(|(master, _)| master)
    }

    async fn ask_one(&self, address: &str, tls: Option<&Tls>) -> Result<String, RedisError> {
        let (mut connection, _driver) = connect(address, tls, self.login.info()).await?;
        let known: Option<(String, u16)> = cmd("SENTINEL")
            .arg("GET-MASTER-ADDR-BY-NAME")
            .arg(&self.master)
            .query_async(&mut connection)
            .await?;
        let (host, port) = known.ok_or_else(|| {
            io::Error::other(format!(
                "sentinel {address} knows no master {:?}",
                self.master
            ))
        })?;
        Ok(if host.contains(':') {
            format!("[{host}]:{port}")
        } else {
            format!("{host}:{port}")
        })
    }
}
