//! `app logs`: the log lines of an Application's pods.

use super::AppRef;
use crate::{
    client::{Client, ConnectArgs, Failure},
    output::{self, reader},
};
use futures::StreamExt as _;
use tiphys_api::rpc::application::{ApplicationPodLogsQuery, LogEntry};
use tonic::{Code, Status};

#[derive(clap::Args)]
pub struct Logs {
    /// The application
    app: String,
    /// Namespace of the application
    #[arg(long, short = 'N', value_name = "NAMESPACE")]
    app_namespace: Option<String>,
    /// Resource group
    #[arg(long)]
    group: Option<String>,
    /// Resource kind
    #[arg(long)]
    kind: Option<String>,
    /// Resource namespace
    #[arg(long)]
    namespace: Option<String>,
    /// Resource name
    #[arg(long)]
    name: Option<String>,
    /// Specify if the logs should be streamed
    #[arg(long, short)]
    follow: bool,
    /// The number of lines from the end of the logs to show
    #[arg(
        long,
        default_value_t = 0,
        hide_default_value = true,
        value_name = "LINES"
    )]
    tail: i64,
    /// A relative time in seconds before the current time from which to show logs
    #[arg(
        long,
        default_value_t = 0,
        hide_default_value = true,
        value_name = "SECONDS"
    )]
    since_seconds: i64,
    /// Show logs until this time
    #[arg(long, value_name = "TIME")]
    until_time: Option<String>,
    /// Show logs contain this string
    #[arg(long)]
    filter: Option<String>,
    /// Optional container name
    #[arg(long, short)]
    container: Option<String>,
    /// Specify if the previously terminated container logs should be returned
    #[arg(long, short)]
    previous: bool,
    /// Specify if the filter should be case-sensitive
    #[arg(long, short)]
    match_case: bool,
}

/// Why reading ended.
enum End {
    Complete,
    /// The server went away while the lines were followed.
    Lost,
}

impl Logs {
    pub async fn run(self, args: &ConnectArgs) -> Result<(), Failure> {
        let client = super::super::connect(args).await?;
        tokio::select! {
            ended = read_all(&client, self.query()) => ended,
            () = reader::gone() => Ok(()),
        }
    }

    fn query(self) -> ApplicationPodLogsQuery {
        let app = AppRef::new(&self.app, self.app_namespace.as_deref());
        ApplicationPodLogsQuery {
            app_namespace: app.namespace(),
            name: app.name,
            group: self.group,
            kind: self.kind,
            namespace: self.namespace,
            resource_name: self.name,
            follow: Some(self.follow),
            tail_lines: Some(self.tail),
            since_seconds: Some(self.since_seconds),
            until_time: self.until_time,
            filter: self.filter,
            match_case: Some(self.match_case),
            container: self.container,
            previous: Some(self.previous),
            ..Default::default()
        }
    }
}

async fn read_all(client: &Client, mut query: ApplicationPodLogsQuery) -> Result<(), Failure> {
    loop {
        match read(client, query.clone()).await? {
            End::Complete => return Ok(()),
            // Lines of a moment may come twice, but none is missed.
            End::Lost => query.since_seconds = Some(1),
        }
    }
}

async fn read(client: &Client, query: ApplicationPodLogsQuery) -> Result<End, Failure> {
    let follow = query.follow.unwrap_or(false);
    let failed = |e: Status| {
        let e = Failure::from(e);
        Failure::fatal(format!("stream read failed: {e}")).with_hint(e.hint)
    };
    let mut lines = client
        .stream::<_, LogEntry>("/application.ApplicationService/PodLogs", query)
        .await
        .map_err(failed)?;
    while let Some(line) = lines.next().await {
        match line {
            Ok(line) if line.last => return Ok(End::Complete),
            Ok(line) if output::try_print(&format!("{}\n", line.content)) => {}
            // Nobody reads it any more, or it cannot be written, which is told at the end.
            Ok(_) => return Ok(End::Complete),
            Err(e) if follow && e.code() == Code::Unavailable => return Ok(End::Lost),
            Err(e) => return Err(failed(e)),
        }
    }
    Ok(End::Complete)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory as _, FromArgMatches as _, Parser};

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        logs: Logs,
    }

    #[test]
    fn flags_select_the_lines() {
        let words = [
            "logs",
            "team/web",
            "--kind",
            "Deployment",
            "--name",
            "web",
            "--tail",
            "5",
            "-f",
            "-c",
            "app",
            "-p",
            "--filter",
            "x",
            "-m",
            "--since-seconds",
            "60",
            "--until-time",
            "2026-01-01T00:00:00Z",
            "--group",
            "apps",
            "--namespace",
            "shop",
        ];
        let matches = crate::flags::adapt(Program::command())
            .try_get_matches_from(words)
            .expect("valid flags");
        let logs = Program::from_arg_matches(&matches).expect("valid").logs;
        let some = |text: &str| Some(text.to_owned());
        let expected = ApplicationPodLogsQuery {
            name: "web".into(),
            app_namespace: some("team"),
            group: some("apps"),
            kind: some("Deployment"),
            namespace: some("shop"),
            resource_name: some("web"),
            follow: Some(true),
            tail_lines: Some(5),
            since_seconds: Some(60),
            until_time: some("2026-01-01T00:00:00Z"),
            filter: some("x"),
            match_case: Some(true),
            container: some("app"),
            previous: Some(true),
            ..Default::default()
        };
        assert_eq!(logs.query(), expected);
    }
}
