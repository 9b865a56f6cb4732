//! Kind `unit`: parts, as Argo CD's own unit tests called them. Main function: [`run`].

use super::world::{clusters, sources, text};
use super::{Verdict, same};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tiphys_api::application_set::generators::ApplicationSetGenerator;
use tiphys_api::{Application, ApplicationSet};
use tiphys_appset::unit::{self, Param, Params};
use tiphys_appset::{
    Answer, Facts, GenerateError, Need, NeedError, PullRequest, Repository, RepositoryId,
    apply_patch, normalize, permitted, slugify,
};

pub fn run(case: &Value) -> Verdict {
    match case["op"].as_str().unwrap_or_default() {
        "params" => params(case),
        "render_template" => render_template(case),
        "render_generator" => render_generator(case),
        "replace" => replace(case),
        "normalize" => same(
            "result",
            &normalize(&text(&case["in"])).into(),
            &case["result"],
        ),
        "slugify" => slug(case),
        "template_patch" => template_patch(case),
        "ignore_differences" | "specs_equivalent" | "steps" | "apps_to_sync" | "update_status"
        | "update_progress" | "sync_desired" => super::rollout::run(case),
        op => Err(format!("nothing can run {op} yet")),
    }
}

fn slug(case: &Value) -> Verdict {
    let args = &case["args"];
    let ours = slugify(
        &text(&args[2]),
        args[0].as_u64().unwrap_or_default() as usize,
        args[1] == true,
    );
    same("result", &ours.into(), &case["result"])
}

/// Compares a result, or that both failed.
fn outcome(case: &Value, ours: Result<Value, GenerateError>, field: &str) -> Verdict {
    match (ours, case["error"].as_str()) {
        (Err(_), Some(_)) => Ok(()),
        (Ok(ours), None) => same(field, &ours, &case[field]),
        (Ok(ours), Some(error)) => Err(format!("{ours} instead of the error {error}")),
        (Err(e), None) => Err(format!("the error {e}")),
    }
}

fn case_params(case: &Value) -> Params {
    match Param::from_json(&case["params"]) {
        Param::Map(map) => map,
        _ => Params::new(),
    }
}

fn options(case: &Value) -> Vec<String> {
    let options = case["go_template_options"].as_array().into_iter().flatten();
    options.map(text).collect()
}

fn with_renderer<T>(case: &Value, use_it: impl FnOnce(&unit::Renderer<'_>) -> T) -> T {
    let mut sources = sources();
    let renderer = unit::Renderer::new(case["go_template"] == true, &options(case), &mut sources);
    use_it(&renderer)
}

fn replace(case: &Value) -> Verdict {
    let ours = with_renderer(case, |renderer| {
        unit::replace(renderer, &text(&case["template"]), &case_params(case))
    });
    outcome(case, ours.map(Value::from), "result")
}

fn render_template(case: &Value) -> Verdict {
    if case["template"].is_null() {
        return Ok(());
    }
    let policy = serde_json::from_value(case["sync_policy"].clone()).ok();
    let template: Application =
        serde_json::from_value(case["template"].clone()).map_err(|e| e.to_string())?;
    let mut template = serde_json::to_value(&template).map_err(|e| e.to_string())?;
    if let Some(fields) = template.as_object_mut() {
        fields.remove("status");
    }
    let ours = with_renderer(case, |renderer| {
        unit::application(&template, &case_params(case), renderer, policy.as_ref())
    });
    outcome(case, ours.map(|app| super::generate::shown(&app)), "result")
}

fn render_generator(case: &Value) -> Verdict {
    if case["generator"].is_null() {
        return Ok(());
    }
    let generator: ApplicationSetGenerator =
        serde_json::from_value(case["generator"].clone()).map_err(|e| e.to_string())?;
    let ours = with_renderer(case, |renderer| {
        unit::interpolate(&generator, &case_params(case), renderer)
    });
    let theirs: ApplicationSetGenerator =
        serde_json::from_value(case["result"].clone()).unwrap_or_default();
    match (ours, case["error"].as_str()) {
        (Err(_), Some(_)) => Ok(()),
        (Ok(ours), None) => {
            let json = |g: &ApplicationSetGenerator| serde_json::to_value(g).unwrap_or_default();
            same("result", &json(&ours), &json(&theirs))
        }
        (Ok(_), Some(error)) => Err(format!("no error {error}")),
        (Err(e), None) => Err(format!("the error {e}")),
    }
}

fn template_patch(case: &Value) -> Verdict {
    let app: Application =
        serde_json::from_value(case["application"].clone()).map_err(|e| e.to_string())?;
    let ours = apply_patch(app, &text(&case["patch"]));
    outcome(case, ours.map(|app| super::generate::shown(&app)), "result")
}

fn params(case: &Value) -> Verdict {
    // Selectors are applied after the function that was recorded.
    let mut generator = case["generator"].clone();
    if let Some(fields) = generator.as_object_mut() {
        fields.remove("selector");
    }
    let set = serde_json::from_value::<ApplicationSet>(json!({
        "metadata": {"name": "set", "namespace": "argocd"},
        "spec": {
            "goTemplate": case["appset"]["goTemplate"],
            "goTemplateOptions": case["appset"]["goTemplateOptions"],
            "generators": [generator],
            "template": {"spec": {"project": case["appset"]["project"]}},
        },
    }))
    .map_err(|e| e.to_string())?;
    let mut facts = Facts::default();
    let mut sources = sources();
    let ours = loop {
        match unit::params(&set, &facts, &mut sources) {
            Ok(sets) => break Ok(sets),
            Err(needs) if needs.is_missing() => {
                for need in facts.missing() {
                    let answer = permitted(&need, &allowed(case))
                        .and_then(|()| answer(&need, &case["world"]));
                    facts.add(need, answer);
                }
            }
            Err(error) => break Err(error),
        }
    };
    let json = |sets: Vec<Params>| {
        let mut sets: Vec<Value> = sets
            .into_iter()
            .map(|set| Param::Map(set).to_json())
            .collect();
        if case["generator_kind"] == "clusters" {
            sets.sort_by_key(Value::to_string);
        }
        Value::from(sets)
    };
    let mut case = case.clone();
    if case["params"].is_null() {
        case["params"] = json!([]);
    }
    if case["generator_kind"] == "clusters"
        && let Some(sets) = case["params"].as_array_mut()
    {
        sets.sort_by_key(Value::to_string);
    }
    outcome(&case, ours.map(json), "params")
}

/// The providers that the recorded controller permitted, which only its error names.
fn allowed(case: &Value) -> Vec<String> {
    let error = case["error"].as_str().unwrap_or_default();
    let named = error.split_once("must use one of the following: ");
    let named = named.into_iter().flat_map(|(_, names)| names.split(", "));
    named.map(str::to_owned).collect()
}

fn answer(need: &Need, world: &Value) -> Result<Answer, NeedError> {
    match need {
        Need::Clusters => Ok(Answer::Clusters(secrets(world))),
        Need::Project(_) => Ok(Answer::Project),
        Need::Directories(_) => {
            let call = call(world, |call| call["call"] == "directories")?;
            let paths = call["paths"].as_array().into_iter().flatten();
            Ok(Answer::Directories(paths.map(text).collect()))
        }
        Need::Files { pattern, .. } => {
            let call = call(world, |call| call["pattern"] == **pattern)?;
            let files = call["files"].as_object().into_iter().flatten();
            Ok(Answer::Files(
                files
                    .map(|(path, content)| (path.clone(), text(content).into_bytes()))
                    .collect::<BTreeMap<_, _>>(),
            ))
        }
        Need::Repositories(_) => {
            let repos = world["repos"].as_array().into_iter().flatten();
            Ok(Answer::Repositories(repos.map(repository).collect()))
        }
        Need::Branches { repository, .. } => Ok(Answer::Repositories(vec![repository.clone()])),
        Need::PullRequests(_) => pull_requests(world),
        _ => Err(NeedError::failed("the world has no such thing")),
    }
}

fn call(world: &Value, is_it: impl Fn(&Value) -> bool) -> Result<&Value, NeedError> {
    let calls = world["git_calls"].as_array().into_iter().flatten();
    let call = calls
        .into_iter()
        .find(|call| is_it(call))
        .ok_or_else(|| NeedError::failed("not called"))?;
    match call["error"].as_str() {
        Some(error) => Err(NeedError::failed(error)),
        None => Ok(call),
    }
}

/// The Secrets as the clusters they describe.
fn secrets(world: &Value) -> Vec<tiphys_appset::ClusterSecret> {
    let flat: Vec<Value> = world["secrets"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|secret| {
            json!({
                "labels": secret["labels"],
                "annotations": secret["annotations"],
                "name": secret["data"]["name"],
                "server": secret["data"]["server"],
                "project": secret["data"]["project"],
            })
        })
        .collect();
    clusters(&flat.into())
}

fn strings(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(text).collect()
}

fn repository(repo: &Value) -> Repository {
    Repository {
        organization: text(&repo["Organization"]),
        repository: text(&repo["Repository"]),
        repository_id: match &repo["RepositoryId"] {
            Value::Number(id) => RepositoryId::Number(id.as_i64().unwrap_or_default()),
            Value::String(id) => RepositoryId::Text(id.clone()),
            _ => RepositoryId::None,
        },
        url: text(&repo["URL"]),
        branch: text(&repo["Branch"]),
        sha: text(&repo["SHA"]),
        labels: strings(&repo["Labels"]),
    }
}

fn pull_requests(world: &Value) -> Result<Answer, NeedError> {
    for field in ["select_error", "error"] {
        if let Some(error) = world[field].as_str() {
            return Err(NeedError {
                message: error.to_owned(),
                not_found: world["not_found"] == true,
            });
        }
    }
    let pulls = world["pull_requests"].as_array().into_iter().flatten();
    Ok(Answer::PullRequests(
        pulls
            .map(|pull| PullRequest {
                number: pull["Number"].as_i64().unwrap_or_default(),
                title: text(&pull["Title"]),
                branch: text(&pull["Branch"]),
                target_branch: text(&pull["TargetBranch"]),
                head_sha: text(&pull["HeadSHA"]),
                author: text(&pull["Author"]),
                labels: pull["Labels"].is_array().then(|| strings(&pull["Labels"])),
            })
            .collect(),
    ))
}
