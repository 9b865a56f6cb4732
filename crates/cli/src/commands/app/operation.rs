//! `app terminate-op` and `app rollback`.

use super::{
    AppRef, get,
    wait::{self, Conditions, Wait},
};
use crate::{
    client::{ConnectArgs, Failure},
    output::{self, summary},
};
use std::num::{IntErrorKind, ParseIntError};
use tiphys_api::{
    Application,
    rpc::application::{
        ApplicationRollbackRequest, OperationTerminateRequest, OperationTerminateResponse,
    },
    status::RevisionHistory,
};

#[derive(clap::Args)]
pub struct TerminateOp {
    /// The application
    app: String,
    /// Namespace of the application
    #[arg(long, short = 'N', value_name = "NAMESPACE")]
    app_namespace: Option<String>,
}

impl TerminateOp {
    pub async fn run(self, args: &ConnectArgs) -> Result<(), Failure> {
        let app = AppRef::new(&self.app, self.app_namespace.as_deref());
        let client = super::super::connect(args).await?;
        let request = OperationTerminateRequest {
            name: app.name.clone(),
            app_namespace: app.namespace(),
            project: None,
        };
        let _: OperationTerminateResponse = client
            .unary(
                "/application.ApplicationService/TerminateOperation",
                request,
            )
            .await?;
        output::print(&format!(
            "Application '{}' operation terminating\n",
            app.name
        ));
        Ok(())
    }
}

#[derive(clap::Args)]
pub struct Rollback {
    /// The application
    app: String,
    /// The id in the history; without it the deployment before the last
    id: Option<String>,
    /// Allow deleting unexpected resources
    #[arg(long)]
    prune: bool,
    /// Time out after this many seconds
    #[arg(long, default_value_t = 0)]
    timeout: u64,
    /// Output format. One of: json|yaml|wide|tree|tree=detailed
    #[arg(long, short, default_value = "wide", value_name = "FORMAT")]
    output: String,
    /// Rollback application in namespace
    #[arg(long, short = 'N', value_name = "NAMESPACE")]
    app_namespace: Option<String>,
}

/// A number in the words of Go's error.
fn number(text: &str) -> Result<i64, Failure> {
    text.parse().map_err(|e: ParseIntError| {
        let why = match e.kind() {
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        Failure::error(format!("strconv.Atoi: parsing {text:?}: {why}"))
    })
}

fn entry(app: &Application, id: Option<i64>) -> Result<&RevisionHistory, Failure> {
    let (name, history) = (&app.metadata.name, &app.status.history);
    let Some(id) = id else {
        let before_last = history.len().checked_sub(2).and_then(|at| history.get(at));
        return before_last.ok_or_else(|| {
            Failure::error(format!(
                "application '{name}' should have at least two successful deployments"
            ))
        });
    };
    let found = history.iter().find(|h| h.id == id);
    found.ok_or_else(|| {
        Failure::error(format!(
            "application '{name}' does not have deployment id '{id}' in history"
        ))
        .with_hint("`tiphys app history APP` lists the ids")
    })
}

impl Rollback {
    pub async fn run(self, args: &ConnectArgs) -> Result<(), Failure> {
        get::check_format(&self.output)?;
        let id = self.id.as_deref().map(number).transpose()?;
        let app_ref = AppRef::new(&self.app, self.app_namespace.as_deref());
        let client = super::super::connect(args).await?;
        let app = super::get(&client, &app_ref, None).await?;
        let request = ApplicationRollbackRequest {
            name: app_ref.name.clone(),
            id: entry(&app, id)?.id,
            dry_run: None,
            prune: Some(self.prune),
            app_namespace: app_ref.namespace(),
            project: None,
        };
        let _: Application = client
            .unary("/application.ApplicationService/Rollback", request)
            .await?;
        let conditions = Conditions {
            operation: true,
            ..Default::default()
        };
        let app_ref = AppRef::new(&summary::qualified_name(&app), None);
        let wait = Wait {
            of_operation: true,
            app: &app_ref,
            timeout: self.timeout,
            conditions,
            selected: &[],
            output: &self.output,
        };
        wait::wait(&client, &wait).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_number() {
        assert_eq!(number("-7").ok(), Some(-7));
        for (text, why) in [
            ("x", "invalid syntax"),
            ("99999999999999999999", "value out of range"),
        ] {
            let e = number(text).expect_err("it is none");
            let expected = format!("strconv.Atoi: parsing \"{text}\": {why}");
            assert_eq!((e.code, e.message), (20, expected));
        }
    }

    #[test]
    fn which_deployment() {
        let mut app = Application::default();
        app.metadata.name = "a".into();
        let message = |e: Failure| e.message;
        assert_eq!(
            entry(&app, None).map_err(message).err().as_deref(),
            Some("application 'a' should have at least two successful deployments")
        );
        app.status.history = [3, 4, 5]
            .map(|id| RevisionHistory {
                id,
                ..Default::default()
            })
            .to_vec();
        assert_eq!(entry(&app, None).expect("there are enough").id, 4);
        assert_eq!(entry(&app, Some(3)).expect("it is there").id, 3);
        assert_eq!(
            entry(&app, Some(9)).map_err(message).err().as_deref(),
            Some("application 'a' does not have deployment id '9' in history")
        );
    }
}
