//! Limits on a server's connections and logins. Main type: [`ConnectionArgs`].

use super::call_timing::CallTimingArgs;
use clap::Args;
use std::time::Duration;
use tiphys_listen::Limits;
use tiphys_server::{Network, Options};

/// Long enough for a Service to leave out what ends, or a proxy that asks each second.
const NOTICE: Duration = Duration::from_secs(1);
/// Kubernetes gives 30 s, of which the notice, open requests and the audit log need some.
const FINISH: Duration = Duration::from_secs(20);

#[derive(Args, Debug)]
pub struct ConnectionArgs {
    /// Most connections of clients at a time; a quarter of the file descriptors that the process
    /// may have is the most in any case
    #[arg(long, value_name = "N", default_value_t = Limits::default().total, env = "TIPHYS_MAX_CONNECTIONS")]
    max_connections: usize,
    /// Most of them from one address; behind a proxy, all clients have its address
    #[arg(long, value_name = "N", default_value_t = Limits::default().per_peer, env = "TIPHYS_MAX_CONNECTIONS_PER_PEER")]
    max_connections_per_peer: usize,
    /// Proxies whose X-Forwarded-For tells the address of a client, which counts for failed logins
    #[arg(
        long,
        value_name = "ADDRESS",
        value_delimiter = ',',
        env = "TIPHYS_TRUSTED_PROXIES"
    )]
    trusted_proxies: Vec<Network>,
    /// Failed logins of an account from one address before further ones have to wait
    #[arg(
        long,
        value_name = "N",
        default_value_t = 5,
        env = "ARGOCD_SESSION_FAILURE_MAX_FAIL_COUNT",
        hide = true
    )]
    max_login_failures: u32,
    /// How long failed logins count
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 300,
        env = "ARGOCD_SESSION_FAILURE_WINDOW_SECONDS",
        hide = true
    )]
    login_failure_window: i64,
    #[command(flatten)]
    timing: CallTimingArgs,
}

impl ConnectionArgs {
    pub fn limits(&self) -> Limits {
        Limits {
            total: self.max_connections,
            per_peer: self.max_connections_per_peer,
            ..Limits::default()
        }
    }

    /// The options of a role that is watched by others: its calls are logged, and whoever asks for
    /// its health is told before it ends.
    pub fn options_of_role(&self) -> Options {
        Options {
            log_calls: true,
            notice: NOTICE,
            finish: FINISH,
            ..self.options()
        }
    }

    /// Options of the API according to these flags.
    pub fn options(&self) -> Options {
        let mut options = Options {
            connections: self.limits(),
            trusted_proxies: self.trusted_proxies.clone(),
            time_calls: self.timing.is_on(),
            ..Options::default()
        };
        options.limits.per_account = self.max_login_failures;
        options.limits.window_seconds = self.login_failure_window;
        options
    }
}
