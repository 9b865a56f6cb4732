//! Cases 55 to 58, with plugins that are served on sockets.

use super::{case, committed, documents, objects, text};
use crate::plugins::World;
use serde_json::{Value, json};
use std::process::Command;

/// What the plugin prints of its environment, line by line.
fn printed(object: &Value) -> Vec<String> {
    let env = object["data"]["env"].as_str().expect("a text");
    env.lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn case_55() {
    let Some(case) = case("55") else { return };
    let mut world = World::new();
    world
        .plugin_text("env", &text(&case.join("plugin.yaml")))
        .await;
    let app = documents(&text(&case.join("app.yaml"))).remove(0);
    crate::local::write(&world.repository(), "apps/shop/a.yaml", "");
    crate::local::commit(&world.repository(), "shop");
    let mut request = world.request(app["source"].clone());
    request.app_name = app["name"].as_str().expect("a name").to_owned();
    request.namespace = app["namespace"].as_str().expect("a namespace").to_owned();
    let made = world.repos().manifests(request).await.expect("printed");
    let lines = printed(&objects(&made)[0]);
    for wanted in text(&case.join("expected-env.txt")).lines() {
        assert!(
            lines.iter().any(|line| line == wanted),
            "{wanted}: {lines:#?}"
        );
    }
    let parameters = lines
        .iter()
        .find_map(|line| line.strip_prefix("ARGOCD_APP_PARAMETERS="))
        .expect("parameters");
    let parameters: Value = serde_json::from_str(parameters).expect("JSON");
    assert_eq!(parameters, app["source"]["plugin"]["parameters"]);
}

const PLUGINS: [(&str, &str, &str); 6] = [
    ("p1", "", "discover: {fileName: ./marker.txt}"),
    ("p2", "", "discover: {find: {glob: '**/*.cue'}}"),
    (
        "p3",
        "",
        "discover: {fileName: ./none.txt, find: {glob: '**/*'}}",
    ),
    (
        "p4",
        "",
        "discover: {find: {command: [sh, -c, 'test -f marker.txt && echo yes']}}",
    ),
    ("p5", "", ""),
    ("p6", "v2", "discover: {fileName: ./marker.txt}"),
];

#[tokio::test]
async fn case_57() {
    let Some(case) = case("57") else { return };
    // Each alone, and then all of them.
    for number in 0..=PLUGINS.len() {
        let mut world = World::new();
        super::copied(&case.join("in"), &world.repository(), &|text| text);
        crate::local::commit(&world.repository(), "in");
        let served = match PLUGINS.get(number) {
            Some(one) => std::slice::from_ref(one),
            None => &PLUGINS,
        };
        for (name, version, discover) in served {
            let print = format!(
                "{{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {{\"name\": \"{name}\"}}}}"
            );
            let command = format!("generate: {{command: [echo, '{print}']}}");
            let spec = format!("version: '{version}'\n{command}\n{discover}");
            world.plugin(name, &spec).await;
        }
        let made = async |path: &str, more: Value| {
            let mut source = json!({"path": path});
            source
                .as_object_mut()
                .expect("a map")
                .extend(more.as_object().expect("a map").clone());
            let made = world.render(source).await.map_err(|e| e.to_string())?;
            let names = objects(&made).into_iter();
            let names = names.map(|o| o["metadata"]["name"].as_str().expect("a name").to_owned());
            Ok::<_, String>(names.collect::<Vec<_>>())
        };
        let named = |name: &str| json!({"plugin": {"name": name}});
        let Some((name, version, _)) = PLUGINS.get(number) else {
            // The first by name; not asked for a folder that says that it is one.
            assert_eq!(made("apps/a", json!({})).await, Ok(vec!["p1".to_owned()]));
            let folder = json!({"directory": {"recurse": true}});
            assert_eq!(
                made("apps/b", folder.clone())
                    .await
                    .expect("a folder")
                    .len(),
                1
            );
            assert_eq!(made("apps/a", folder).await, Ok(Vec::new()));
            continue;
        };
        let matches = matches!(*name, "p1" | "p2" | "p4" | "p6");
        let found = made("apps/a", json!({})).await.expect("rendered");
        assert_eq!(found == [name.to_string()], matches, "{name}: {found:?}");
        let found = made("apps/b", json!({})).await.expect("rendered");
        assert_ne!(found, [name.to_string()], "{name} finds nothing in apps/b");
        let full = match version.is_empty() {
            true => (*name).to_owned(),
            false => format!("{name}-{version}"),
        };
        let asked = made("apps/a", named(&full)).await;
        assert_eq!(asked.is_ok(), matches || *name == "p5", "{name}: {asked:?}");
        if !version.is_empty() {
            let failed = made("apps/a", named(name)).await;
            assert!(failed.is_err(), "{name} has a version: {failed:?}");
        }
        if *name == "p1" {
            let failed = made("apps/b", named("p1")).await.expect_err("no marker");
            let wanted =
                "could not find cmp-server plugin with name \"p1\" supporting the given repository";
            assert!(failed.contains(wanted), "{failed}");
        }
    }
}

#[tokio::test]
async fn case_58() {
    let Some(case) = case("58") else { return };
    for keeps in [true, false] {
        let mut world = World::new();
        std::fs::remove_dir_all(world.repository()).expect("removed");
        let made = Command::new("sh")
            .arg(case.join("setup.sh"))
            .arg(world.repository())
            .output();
        assert!(made.expect("sh runs").status.success());
        let spec = format!("preserveFileMode: {keeps}\ngenerate: {{command: [sh, -c, ./run.sh]}}");
        world.plugin("run", &spec).await;
        let source = json!({"path": "apps/web", "plugin": {"name": "run"}});
        let made = world.render(source.clone()).await;
        if keeps {
            let object = &objects(&made.expect("printed"))[0];
            assert_eq!(object["metadata"]["name"], "ok");
            assert_eq!(object["data"]["v"], "shared");
        } else {
            let failed = made.expect_err("no executable").to_string();
            assert!(
                failed.to_lowercase().contains("permission denied"),
                "{failed}"
            );
        }
        // A link out of the repository.
        std::os::unix::fs::symlink("../../../etc", world.repository().join("apps/out"))
            .expect("a link");
        committed(&world.repository());
        let failed = world.render(source).await.expect_err("a link out of it");
        assert!(failed.to_string().contains("apps/out"), "{failed}");
    }
}
