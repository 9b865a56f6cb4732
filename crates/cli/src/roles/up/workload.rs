//! What `tiphys up` deploys: the examples, or the user's own repository, as Applications.

use super::{NAMESPACE, UpArgs, bootstrap, data::DataFolder, examples};
use anyhow::{Context, bail};
use http::Method;
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    io::{BufRead, IsTerminal, Write},
};
use tiphys_api::{
    Application,
    constants::{IN_CLUSTER, REFRESH, REFRESH_TIMESTAMP, RESOURCES_FINALIZER, SECRET_TYPE_LABEL},
};
use tiphys_apimachinery::Object;
use tiphys_cluster::{
    Cluster, Records,
    request::{Call, MERGE_PATCH},
};
use tiphys_engine::spec;

/// Asks whether the examples may be deployed into a real cluster.
pub fn confirm(args: &UpArgs) -> anyhow::Result<()> {
    let Some(path) = args
        .kubeconfig
        .as_ref()
        .filter(|_| args.repo.is_none() && !args.bare && !args.yes)
    else {
        return Ok(());
    };
    let context = args
        .context
        .as_ref()
        .map(|c| format!(", context {c}"))
        .unwrap_or_default();
    let what = format!(
        "the examples would be deployed into the cluster of {}{context}",
        path.display()
    );
    let instead =
        "give --repo for your own repository, --bare for the control plane alone, or --yes";
    if !std::io::stdin().is_terminal() {
        bail!("{what}: {instead}");
    }
    print!("{what}. Continue? (y/n): ");
    std::io::stdout().flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => bail!("nothing was deployed: {instead}"),
    }
}

/// Creates the Applications; returns their names. Existing ones are refreshed, because their status
/// may be out of date.
pub async fn create(
    args: &UpArgs,
    records: &Records,
    data: &DataFolder,
) -> anyhow::Result<BTreeSet<String>> {
    let cluster = &records.cluster;
    // What is on this machine can be asked at once. Elsewhere a server may be away: who starts again
    // then goes on with what is known of it, and `--once` wants the present state.
    let is_here = |app: &Application| {
        let mut sources = spec::sources(&app.spec).into_iter();
        sources.all(|source| source.repo_url.starts_with("file://"))
    };
    let before: BTreeSet<String> = records
        .applications
        .list()
        .iter()
        .filter(|record| args.once || record.value().is_ok_and(|app| is_here(&app)))
        .map(|r| r.meta.name.clone())
        .collect();
    let names = deploy(args, records, data).await?;
    let ours = |name: &&String| args.kubeconfig.is_none() || names.contains(*name);
    for name in before.iter().filter(ours) {
        refresh(cluster, name).await?;
    }
    Ok(names)
}

async fn refresh(cluster: &Cluster, name: &str) -> anyhow::Result<()> {
    let path = format!("/apis/argoproj.io/v1alpha1/namespaces/{NAMESPACE}/applications/{name}");
    let annotations =
        json!({REFRESH: "normal", REFRESH_TIMESTAMP: jiff::Timestamp::now().to_string()});
    let patch = serde_json::to_vec(&json!({"metadata": {"annotations": annotations}}))?;
    match cluster
        .http()
        .send(&Call::new(Method::PATCH, path).with_body(MERGE_PATCH, patch))
        .await
    {
        Err(e) if !e.is_not_found() => {
            Err(e).with_context(|| format!("Application {name} cannot be refreshed"))
        }
        _ => Ok(()),
    }
}

async fn deploy(
    args: &UpArgs,
    records: &Records,
    data: &DataFolder,
) -> anyhow::Result<BTreeSet<String>> {
    if args.bare {
        return Ok(BTreeSet::new());
    }
    let (application, names) = match &args.repo {
        Some(url) => own(args, records, url).await?,
        None => {
            let url = examples::repository(data.path())?;
            let source =
                json!({"repoURL": url, "path": examples::ROOT_PATH, "targetRevision": "HEAD"});
            (
                application(examples::ROOT, source, NAMESPACE, &[]),
                examples::applications(),
            )
        }
    };
    bootstrap::create(
        &records.cluster,
        &format!("/apis/argoproj.io/v1alpha1/namespaces/{NAMESPACE}/applications"),
        &application,
    )
    .await?;
    Ok(names)
}

async fn own(
    args: &UpArgs,
    records: &Records,
    url: &str,
) -> anyhow::Result<(Value, BTreeSet<String>)> {
    let name = args
        .name
        .clone()
        .unwrap_or_else(|| name_of(&args.path, url));
    if let Some(secret) = secret(args, url, &name)? {
        let secret = Object::from_value(secret).context("the repository's Secret")?;
        match records.secrets.create(&secret).await {
            Err(e) if !e.is_already_exists() => {
                let name = secret.name().to_owned();
                return Err(e).with_context(|| format!("Secret {name} cannot be created"));
            }
            // The Application's first comparison must know it: without the credentials it may find
            // something else, and be well with that.
            _ => records.settle().await,
        }
    }
    let mut source = json!({"repoURL": url, "path": args.path, "targetRevision": args.revision});
    if args.directory_recurse
        || args.directory_include.is_some()
        || args.directory_exclude.is_some()
    {
        source["directory"] = json!({"recurse": args.directory_recurse});
        for (field, value) in [
            ("include", &args.directory_include),
            ("exclude", &args.directory_exclude),
        ] {
            if let Some(value) = value {
                source["directory"][field] = value.clone().into();
            }
        }
    }
    Ok((
        application(&name, source, &args.namespace, &["CreateNamespace=true"]),
        [name].into(),
    ))
}

fn application(name: &str, source: Value, namespace: &str, options: &[&str]) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": name, "finalizers": [RESOURCES_FINALIZER]},
        "spec": {
            "project": "default", "source": source, "destination": {"server": IN_CLUSTER, "namespace": namespace},
            "syncPolicy": {"automated": {"prune": true, "selfHeal": true}, "syncOptions": options}
        }
    })
}

/// The last part of the path, or of the repository, as a resource name.
fn name_of(path: &str, url: &str) -> String {
    let last = |text: &str| {
        text.trim_end_matches('/')
            .rsplit(['/', ':'])
            .next()
            .unwrap_or_default()
            .trim_end_matches(".git")
            .to_lowercase()
    };
    let word = Some(last(path))
        .filter(|w| !w.is_empty() && w != ".")
        .unwrap_or_else(|| last(url));
    let name: String = word
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    Some(name.trim_matches('-').to_owned())
        .filter(|n| !n.is_empty())
        .unwrap_or_else(|| "app".to_owned())
}

/// The repository Secret, if there are credentials.
fn secret(args: &UpArgs, url: &str, name: &str) -> anyhow::Result<Option<Value>> {
    let mut data = json!({"type": "git", "url": url});
    for (field, value) in [
        ("username", &args.username),
        ("password", &args.password),
        ("bearerToken", &args.token),
    ] {
        if let Some(value) = value {
            data[field] = value.clone().into();
        }
    }
    if let Some(path) = &args.ssh_private_key_path {
        let key = std::fs::read_to_string(path)
            .with_context(|| format!("--ssh-private-key-path {}", path.display()))?;
        if !key.contains("PRIVATE KEY") {
            bail!(
                "--ssh-private-key-path {}: this is not a private key in PEM form",
                path.display()
            );
        }
        data["sshPrivateKey"] = key.into();
    }
    if args.insecure_repo {
        data["insecure"] = "true".into();
    }
    if data.as_object().is_some_and(|d| d.len() == 2) {
        return Ok(None);
    }
    let labels = json!({SECRET_TYPE_LABEL: "repository"});
    Ok(Some(
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": format!("repo-{name}"), "namespace": NAMESPACE, "labels": labels}, "stringData": data}),
    ))
}

#[cfg(test)]
mod tests {
    use super::name_of;

    #[test]
    fn a_name_is_found_for_every_source() {
        for (path, url, expected) in [
            ("apps/guestbook", "https://example.org/r.git", "guestbook"),
            (".", "https://example.org/team/My_Repo.git", "my-repo"),
            (".", "git@example.org:r.git", "r"),
            ("", "/", "app"),
        ] {
            assert_eq!(name_of(path, url), expected);
        }
    }
}
