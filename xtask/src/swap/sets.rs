//! ApplicationSets under the genuine controller and ours: the same sets have the same Applications,
//! and none of them is touched when one controller takes the place of the other and goes again. Main
//! function: [`swap`].

use super::{
    World,
    generators::{FILES, cluster, spec},
    git::GitHost,
    roles::{Maker, Role},
    state::{Shown, comparable, differences},
};
use anyhow::{Context, anyhow, ensure};
use serde_json::{Map, Value, json};
use std::{cell::RefCell, thread, time::Duration};
use tiphys_testkit::{Repo, apps_path, namespaced};

const REFRESH: &str = "argocd.argoproj.io/application-set-refresh";
const ROLE: Role = Role::ApplicationsetController;

/// Some sets; their names, and those of their Applications, end in or contain the mark.
struct Batch {
    mark: &'static str,
    number: usize,
}

/// Returns how much differs.
///
/// # Errors
/// If a controller does not come to rest.
pub fn swap(world: &mut World, number: usize) -> anyhow::Result<usize> {
    let host = GitHost::start(Repo::with(FILES))?;
    let secrets = namespaced("v1", "argocd", "secrets");
    for name in ["east", "west", "lab"] {
        world.kube.create(&secrets, &cluster(name));
    }
    world.installation.put(Role::RepoServer, Maker::Genuine)?;
    world.wait("the repo-server listens", || {
        ensure!(world.installation.renders(), "it does not");
        Ok(())
    })?;
    let (old, new) = (
        Batch {
            mark: "-sa",
            number,
        },
        Batch {
            mark: "-sb",
            number,
        },
    );
    world.installation.put(ROLE, Maker::Genuine)?;
    old.create(world, &host.url);
    let reference = old.rest(world)?;
    println!(
        "{number} ApplicationSets, {} Applications under the genuine controller",
        reference.len()
    );

    world.installation.put(ROLE, Maker::Ours)?;
    old.refresh(world)?;
    let mut found = report("those that were there", &reference, &old.rest(world)?);
    new.create(world, &host.url);
    let made = new.rest(world)?;
    let (theirs, ours) = (old.without_mark(&reference)?, new.without_mark(&made)?);
    found += report("made meanwhile", &theirs, &ours);

    world.installation.put(ROLE, Maker::Genuine)?;
    old.refresh(world)?;
    new.refresh(world)?;
    found += report("after it was put back", &reference, &old.rest(world)?);
    let back = new.rest(world)?;
    found += report("the new ones after it was put back", &made, &back);
    world.installation.stop();
    Ok(found)
}

impl Batch {
    fn names(&self) -> impl Iterator<Item = String> {
        let mark = self.mark;
        (0..self.number).map(move |n| format!("set{n:03}{mark}"))
    }

    fn paths(&self) -> impl Iterator<Item = String> {
        let sets = namespaced("argoproj.io/v1alpha1", "argocd", "applicationsets");
        self.names().map(move |name| format!("{sets}/{name}"))
    }

    fn create(&self, world: &World, url: &str) {
        let sets = namespaced("argoproj.io/v1alpha1", "argocd", "applicationsets");
        for (n, name) in self.names().enumerate() {
            let set = json!({
                "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
                "metadata": {"name": name}, "spec": spec(n, &name, url),
            });
            world.kube.create(&sets, &set);
        }
    }

    /// Has every set reconciled anew.
    fn refresh(&self, world: &World) -> anyhow::Result<()> {
        for path in self.paths() {
            let patch = json!({"metadata": {"annotations": {REFRESH: "true"}}});
            world.kube.patch(&path, &patch);
        }
        world.wait("every set is refreshed", || {
            for path in self.paths() {
                let set = world.kube.find(&path).with_context(|| path.clone())?;
                let asked = &set["metadata"]["annotations"][REFRESH];
                ensure!(asked.is_null(), "{path} is not refreshed");
            }
            Ok(())
        })
    }

    /// Waits until every set has what it generates and nothing moves; the Applications then.
    fn rest(&self, world: &World) -> anyhow::Result<Shown> {
        world.wait("every set is up to date", || {
            for path in self.paths() {
                let set = world.kube.find(&path).with_context(|| path.clone())?;
                let conditions = set["status"]["conditions"].as_array();
                let is_current = conditions.is_some_and(|all| {
                    all.iter()
                        .any(|c| c["type"] == "ResourcesUpToDate" && c["status"] == "True")
                });
                ensure!(is_current, "{path}: {}", set["status"]["conditions"]);
            }
            Ok(())
        })?;
        let last = RefCell::new(None);
        world.wait("the Applications are the same twice", || {
            thread::sleep(Duration::from_secs(1));
            let now = self.applications(world)?;
            let before = last.replace(Some(now.clone())).context("seen once")?;
            ensure!(before == now, "{}", differences(&before, &now).join("\n"));
            Ok(())
        })?;
        last.into_inner().context("they were seen")
    }

    /// The Applications whole: that nobody wrote them is seen by their resourceVersion.
    fn applications(&self, world: &World) -> anyhow::Result<Shown> {
        let mut all = Shown::new();
        let answer = world.kube.get(&apps_path()).map_err(|e| anyhow!(e.0))?;
        ensure!(answer.is_success(), "{}: {}", answer.status, answer.body);
        for app in answer.body["items"].as_array().into_iter().flatten() {
            let name = app["metadata"]["name"].as_str().unwrap_or_default();
            if name.contains(self.mark) {
                all.insert(name.to_owned(), app.clone());
            }
        }
        ensure!(!all.is_empty(), "there are none");
        Ok(all)
    }

    /// What two batches share.
    fn without_mark(&self, shown: &Shown) -> anyhow::Result<Shown> {
        let mut all = Shown::new();
        for (name, app) in shown {
            let text = app.to_string().replace(self.mark, "");
            let mut app: Value =
                serde_json::from_str(&text).context("marks are no part of JSON")?;
            comparable(&mut app);
            // No application controller runs here: what a program writes as the status of an
            // Application that it creates is nothing, which Go spells out field by field.
            without_nothing(&mut app);
            all.insert(name.replace(self.mark, ""), app);
        }
        Ok(all)
    }
}

/// Removes what says nothing from the status of an Application.
fn without_nothing(app: &mut Value) {
    app["status"] = without_empty(&app["status"]);
}

/// A value without the empty ones in it; `null` if it is empty itself.
fn without_empty(value: &Value) -> Value {
    let is_something = |value: &Value| !value.is_null();
    match value {
        Value::Object(map) => {
            let members = map.iter().map(|(key, v)| (key.clone(), without_empty(v)));
            let members: Map<_, _> = members.filter(|(_, v)| is_something(v)).collect();
            if members.is_empty() {
                return Value::Null;
            }
            members.into()
        }
        Value::Array(items) => {
            let items: Vec<Value> = items.iter().map(without_empty).collect();
            if !items.iter().any(is_something) {
                return Value::Null;
            }
            items.into()
        }
        Value::String(text) if text.is_empty() => Value::Null,
        other => other.clone(),
    }
}

fn report(what: &str, before: &Shown, after: &Shown) -> usize {
    super::report(ROLE, what, before, after)
}

#[cfg(test)]
mod tests {
    use super::without_nothing;
    use serde_json::json;

    /// The first is what Go writes of an empty status.
    #[test]
    fn only_an_empty_status_is_none() {
        let spelled = json!({"health": {}, "summary": {"images": []}, "reconciledAt": null,
            "sync": {"comparedTo": {"destination": {}, "source": {"repoURL": ""}}, "status": ""}});
        let mut empty = json!({"metadata": {"name": "a"}, "status": spelled});
        let mut none = json!({"metadata": {"name": "a"}});
        let mut some = json!({"metadata": {"name": "a"}, "status": {"health": {"status": "Healthy"},
            "summary": {}}});
        for app in [&mut empty, &mut none, &mut some] {
            without_nothing(app);
        }
        assert_eq!(empty, none);
        assert_eq!(some["status"], json!({"health": {"status": "Healthy"}}));
    }
}
