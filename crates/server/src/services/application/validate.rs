//! Validation before an Application is stored: its fields, its project's permissions, its
//! repository. Also normalises it.

use super::{of_repo_server, render::Asker};
use crate::{ApiError, Code, access::Authorized, ports::NotRendered, state::State};
use std::{borrow::Cow, collections::BTreeSet};
use tiphys_api::{AppProject, Application, source::ApplicationSource};
use tiphys_engine::{permit, spec, types::Condition};
use tiphys_sources::RefSources;

/// Validates the Application and normalises its spec; with `deep`, also checks that the sources can
/// be rendered.
pub(crate) async fn validate_and_normalize<A>(
    state: &State,
    app: Authorized<Application, A>,
    project: &AppProject,
    deep: bool,
) -> Result<Authorized<Application, A>, ApiError> {
    let name = app.metadata.name.clone();
    if name.is_empty() {
        return Err(ApiError::plain("resource name may not be empty"));
    }
    let mut names = BTreeSet::new();
    if let Some(twice) = app
        .spec
        .sources
        .iter()
        .filter(|s| !s.name.is_empty())
        .find(|s| !names.insert(s.name.clone()))
    {
        return Err(ApiError::plain(format!(
            "application {name} has duplicate source name: {}",
            twice.name
        )));
    }
    let clusters = state.reach.destinations(&app).await?;
    spec::destination(&app.spec.destination, &clusters).map_err(|why| {
        ApiError::invalid(format!(
            "application destination spec for {name} is invalid: {why}"
        ))
    })?;
    let refuse = |conditions: Vec<Condition>| {
        let lines: Vec<_> = conditions
            .iter()
            .map(|c| format!("{:?}: {}", c.kind, c.message))
            .collect();
        if lines.is_empty() {
            Ok(())
        } else {
            Err(ApiError::invalid(format!(
                "application spec for {name} is invalid: {}",
                lines.join(";")
            )))
        }
    };
    // Check permissions first: a source that is not permitted must not even be contacted.
    refuse(spec::validate(&app.spec, project, &clusters))?;
    if deep {
        refuse(unreadable(state, &app).await?)?;
    }
    Ok(app.normalized())
}

/// The problems that prevent the sources from being rendered.
async fn unreadable<A>(
    state: &State,
    app: &Authorized<Application, A>,
) -> Result<Vec<Condition>, ApiError> {
    let invalid = |message: String| {
        Condition::new(
            tiphys_engine::types::ConditionType::InvalidSpecError,
            message,
        )
    };
    let mut conditions = Vec::new();
    // The branch of a hydrator may not exist yet.
    let sources: Vec<ApplicationSource> = match &app.spec.source_hydrator {
        Some(hydrator) => vec![spec::dry_source(hydrator)],
        None => spec::sources(&app.spec)
            .into_iter()
            .map(Cow::into_owned)
            .collect(),
    };
    for source in &sources {
        let repository = state.reach.repository_of(app, &source.repo_url).await?;
        let repository = repository.typed_by(source);
        if let Err(e) = state.reach.sources(&repository).test().await {
            let message = format!(
                "repository not accessible: repositories not accessible: {:?}: {e}",
                source.repo_url
            );
            return Ok(vec![invalid(message)]);
        }
    }
    RefSources::of(&sources)
        .map_err(|e| ApiError::plain(format!("error getting ref sources: {e}")))?;
    let asker = Asker::new(state, app, &sources).await?;
    for source in sources
        .iter()
        .filter(|s| !s.path.is_empty() || !s.chart.is_empty())
    {
        if let Err(e) = render(state, &asker, source).await {
            conditions.push(invalid(format!(
                "Unable to generate manifests in {}: {}",
                source.path,
                of_repo_server(&e)
            )));
        }
    }
    Ok(conditions)
}

async fn render<A>(
    state: &State,
    asker: &Asker<'_, A>,
    source: &ApplicationSource,
) -> Result<(), ApiError> {
    let (repository, request) = asker.request(source.clone(), false).await?;
    let rendered = match state.reach.sources(&repository).render(request).await {
        // Accepted; the comparison reports it until there are matches.
        Err(NotRendered::AwaitsValues(_)) => return Ok(()),
        other => other?,
    };
    if rendered.errors.is_empty() {
        Ok(())
    } else {
        Err(ApiError::plain(rendered.errors.join("; ")))
    }
}

/// Whether the project permits where the Application is deployed to.
///
/// # Errors
/// Its cluster is not known.
pub(crate) async fn destination_permitted<A>(
    state: &State,
    app: &Authorized<Application, A>,
    project: &AppProject,
) -> Result<bool, ApiError> {
    let clusters = state.reach.destinations(app).await?;
    let wanted = &app.spec.destination;
    let cluster = spec::destination(wanted, &clusters).map_err(ApiError::invalid)?;
    let rules = spec::project_rules(project);
    Ok(permit::destination(
        &rules,
        &cluster.server,
        &cluster.name,
        &wanted.namespace,
    ))
}

/// Refuses a source that the project does not permit.
pub fn permitted(project: &AppProject, url: &str) -> Result<(), ApiError> {
    if spec::source_permitted(project, url) {
        return Ok(());
    }
    Err(ApiError::new(
        Code::PermissionDenied,
        spec::not_permitted(project, url),
    ))
}
