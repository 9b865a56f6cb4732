//! The objects of recorded scenarios (`../shared/cases/kubeapps/controller.jsonl`).

use super::*;
use serde_json::Value;
use tiphys_api::AppRepository;

/// Where the recorded objects are called wrong.
fn is_wrong(case: &Value) -> bool {
    !case["bug"].is_null()
}

#[test]
fn objects_are_those_that_kubeapps_makes() {
    let Some(cases) = tiphys_testkit::shared("cases/kubeapps/controller.jsonl") else {
        return;
    };
    let text = std::fs::read_to_string(cases).expect("the cases");
    let mut compared = 0;
    for line in text.lines() {
        let case: Value = serde_json::from_str(line).expect("a case");
        // Negative numbers are refused by the API server; here they are as unset as words.
        if is_wrong(&case) || case["id"] == "flags-ttl-negative" {
            continue;
        }
        let flags: Vec<String> = case["flags"]
            .as_array()
            .expect("flags")
            .iter()
            .filter_map(|flag| flag.as_str().map(str::to_owned))
            .collect();
        let url = case["env"]["OCI_CATALOG_URL"].as_str().unwrap_or_default();
        let options = Options::parse(&flags, url);
        // No API server has what it asks for: refused at the start.
        if case["id"] == "flags-v1beta1" {
            assert!(options.is_err());
            continue;
        }
        let options = options.expect("flags");
        let step = &case["steps"][0];
        let created = step["action"].as_array().expect("an action");
        for object in created
            .iter()
            .filter(|object| object["kind"] == "AppRepository")
        {
            let Ok(mut repository) = serde_json::from_value::<AppRepository>(object.clone()) else {
                continue;
            };
            repository.metadata.uid = "<uid>".to_owned();
            let mut wanted = Wanted::of(&repository, &options);
            // kubeapps has none: a CronJob of its that missed a hundred ticks never starts again.
            let spec = wanted.cron_job["spec"].as_object_mut().expect("a spec");
            assert_eq!(spec.remove("startingDeadlineSeconds"), Some(600.into()));
            for ours in [&wanted.cron_job, &wanted.sync_job] {
                // kubeapps gives Jobs the labels as annotations, and the other way round.
                if case["id"] == "flags-custom-equals" && ours["kind"] == "Job" {
                    continue;
                }
                let name = |object: &Value| {
                    let metadata = &object["metadata"];
                    (metadata["name"].clone(), metadata["generateName"].clone())
                };
                let writes = step["writes"].as_array().expect("writes");
                let same = writes.iter().find(|write| {
                    let body = &write["body"];
                    // What the API server refused is not worth repeating.
                    let accepted = write["status"].as_u64().is_some_and(|status| status < 400);
                    accepted
                        && write["verb"] == "POST"
                        && body["kind"] == ours["kind"]
                        && name(body) == name(ours)
                });
                if let Some(same) = same {
                    assert_eq!(*ours, same["body"], "{}", case["id"]);
                    compared += 1;
                }
            }
        }
    }
    assert!(compared >= 60, "{compared}");
}

#[test]
fn the_comment_of_the_agent_is_passed_on() {
    let repository = serde_json::json!({
        "metadata": {"name": "r", "namespace": "kubeapps"},
        "spec": {"type": "helm", "url": "https://charts.example"},
    });
    let repository: AppRepository = serde_json::from_value(repository).expect("an AppRepository");
    let passed = |comment: &str| {
        let options = Options {
            user_agent_comment: comment.to_owned(),
            ..Options::default()
        };
        let job = Wanted::of(&repository, &options).sync_job;
        let arguments = &job["spec"]["template"]["spec"]["containers"][0]["args"];
        let arguments = arguments.as_array().expect("a list").iter();
        let mut arguments = arguments.filter_map(Value::as_str);
        arguments.find_map(|argument| {
            let comment = argument.strip_prefix("--user-agent-comment=");
            comment.map(str::to_owned)
        })
    };
    assert_eq!(passed("kubeapps/1.0"), Some("kubeapps/1.0".to_owned()));
    assert_eq!(passed(""), None);
}

#[test]
fn a_cleanup_needs_no_credentials_and_a_template_is_not_changed() {
    let repository: AppRepository = serde_json::from_value(serde_json::json!({
        "metadata": {"name": "r", "namespace": "team-a"},
        "spec": {
            "type": "helm",
            "url": "https://charts.example",
            "auth": {
                "header": {"secretKeyRef": {"name": "s", "key": "k"}},
                "customCA": {"secretKeyRef": {"name": "c", "key": "ca.crt"}},
            },
            "syncJobPodTemplate": {"spec": {"containers": [{"env": [{"name": "A", "value": "b"}]}]}},
        },
    }))
    .expect("an AppRepository");
    let before = repository.spec.sync_job_pod_template.clone();
    let wanted = Wanted::of(&repository, &Options::default());
    assert_eq!(repository.spec.sync_job_pod_template, before);
    let names = |job: &Value| -> Vec<String> {
        let container = &job["spec"]["template"]["spec"]["containers"][0];
        let env = container["env"].as_array().expect("a list").iter();
        env.map(|e| e["name"].as_str().unwrap_or_default().to_owned())
            .collect()
    };
    assert_eq!(
        names(&wanted.sync_job),
        ["A", "DB_PASSWORD", "AUTHORIZATION_HEADER"]
    );
    assert_eq!(names(&wanted.cleanup_job), ["A", "DB_PASSWORD"]);
    assert!(wanted.cleanup_job["spec"]["template"]["spec"]["volumes"].is_null());
    assert!(Options::parse(&["--crontab=nonsense".to_owned()], "").is_err());
    assert!(Options::parse(&["--namespace".to_owned()], "").is_err());
    let words = ["--namespace", "n", "--repos-per-namespace=false", "-v", "4"];
    let options = Options::parse(&words.map(str::to_owned), "").expect("they are right");
    assert_eq!((&*options.namespace, options.all_namespaces), ("n", false));
    assert!(Options::parse(&["--custom-labels=novalue".to_owned()], "").is_err());
}
