//! Random roles and access questions, sent to a real API server and to this one: both must answer
//! the same.
//!
//! Needs `REAL_KUBECONFIG`, the kubeconfig of a cluster whose administrator has a token; skipped
//! without it. `ROLE_ROUNDS` (40) is the number of random clusters; each is asked 250 questions.

use crate::server::remote::Remote;
use crate::server::support::{send, start};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use tiphys_embedded_kube::Data;

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const QUESTIONS: usize = 250;
const VERBS: [&str; 8] = [
    "get",
    "list",
    "watch",
    "create",
    "update",
    "delete",
    "impersonate",
    "*",
];
const GROUPS: [&str; 4] = ["", "apps", "example.com", "*"];
const RESOURCES: [&str; 9] = [
    "pods",
    "pods/log",
    "deployments",
    "deployments/scale",
    "*/scale",
    "*/log",
    "widgets",
    "widgets/status",
    "*",
];
const NAMES: [&str; 3] = ["one", "two", ""];
const URLS: [&str; 6] = ["/healthz", "/healthz/*", "/metrics", "*", "/a*", "/a/b"];
const USERS: [&str; 4] = [
    "rr-ann",
    "rr-ben",
    "system:serviceaccount:rr-a:robot",
    "system:serviceaccount:rr-b:robot",
];
const TEAMS: [&str; 4] = [
    "rr-team",
    "system:authenticated",
    "system:serviceaccounts:rr-a",
    "system:masters",
];
const NAMESPACES: [&str; 2] = ["rr-a", "rr-b"];

fn pick<'a>(rng: &mut StdRng, from: &[&'a str]) -> &'a str {
    from[rng.random_range(0..from.len())]
}

/// Up to three words, at least one.
fn some(rng: &mut StdRng, from: &[&str]) -> Value {
    let n = rng.random_range(1..=3);
    (0..n)
        .map(|_| pick(rng, from).to_owned())
        .collect::<Vec<_>>()
        .into()
}

fn rule(rng: &mut StdRng, cluster: bool) -> Value {
    if cluster && rng.random_range(0..4) == 0 {
        return json!({"verbs": some(rng, &VERBS), "nonResourceURLs": some(rng, &URLS)});
    }
    let mut rule = json!({"verbs": some(rng, &VERBS), "apiGroups": some(rng, &GROUPS), "resources": some(rng, &RESOURCES)});
    if rng.random_range(0..3) == 0 {
        rule["resourceNames"] = some(rng, &NAMES[..2]);
    }
    rule
}

fn subject(rng: &mut StdRng) -> Value {
    let group = "rbac.authorization.k8s.io";
    match rng.random_range(0..3) {
        0 => json!({"kind": "User", "apiGroup": group, "name": pick(rng, &USERS)}),
        1 => json!({"kind": "Group", "apiGroup": group, "name": pick(rng, &TEAMS[..3])}),
        _ => {
            json!({"kind": "ServiceAccount", "name": "robot", "namespace": pick(rng, &NAMESPACES)})
        }
    }
}

/// Roles and bindings of one round, as collection and object. Some bindings name roles that do not
/// exist.
fn objects(rng: &mut StdRng) -> Vec<(String, Value)> {
    let mut all = Vec::new();
    for i in 0..4 {
        for (kind, base) in [
            ("ClusterRole", RBAC.to_owned()),
            ("Role", format!("{RBAC}/namespaces/{}", NAMESPACES[i % 2])),
        ] {
            let rules: Vec<Value> = (0..rng.random_range(1..4))
                .map(|_| rule(rng, kind == "ClusterRole"))
                .collect();
            let object =
                json!({"kind": kind, "metadata": {"name": format!("rr-{i}")}, "rules": rules});
            all.push((format!("{base}/{}s", kind.to_lowercase()), object));
        }
    }
    for i in 0..5 {
        let namespaced = rng.random_range(0..2) == 0;
        let kind = if namespaced && rng.random_range(0..2) == 0 {
            "Role"
        } else {
            "ClusterRole"
        };
        let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": format!("rr-{}", rng.random_range(0..5))});
        let subjects: Vec<Value> = (0..rng.random_range(1..3)).map(|_| subject(rng)).collect();
        let (word, path) = match namespaced {
            true => (
                "RoleBinding",
                format!("{RBAC}/namespaces/{}/rolebindings", pick(rng, &NAMESPACES)),
            ),
            false => ("ClusterRoleBinding", format!("{RBAC}/clusterrolebindings")),
        };
        all.push((path, json!({"kind": word, "metadata": {"name": format!("rr-{i}")}, "subjects": subjects, "roleRef": role})));
    }
    for (_, object) in &mut all {
        object["apiVersion"] = "rbac.authorization.k8s.io/v1".into();
    }
    all
}

fn question(rng: &mut StdRng) -> Value {
    let groups: Vec<&str> = TEAMS[..3]
        .iter()
        .filter(|_| rng.random_range(0..3) == 0)
        .copied()
        .collect();
    let mut spec = json!({"user": pick(rng, &USERS), "groups": groups});
    if rng.random_range(0..5) == 0 {
        let paths = ["/healthz", "/healthz/etcd", "/metrics", "/a/b", "/abc", "/"];
        spec["nonResourceAttributes"] =
            json!({"verb": pick(rng, &["get", "post"]), "path": pick(rng, &paths)});
    } else {
        let (resource, sub) = pick(rng, &RESOURCES[..4])
            .split_once('/')
            .unwrap_or((pick(rng, &["pods", "widgets"]), ""));
        spec["resourceAttributes"] = json!({
            "verb": pick(rng, &VERBS[..7]), "group": pick(rng, &GROUPS[..3]), "resource": resource, "subresource": sub,
            "name": pick(rng, &NAMES), "namespace": pick(rng, &["rr-a", "rr-b", ""]),
        });
    }
    json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec})
}

/// What must be the same: whether it is allowed, and why not. Which of several bindings allowed it,
/// Go leaves to chance, and the order in which it names missing roles too.
fn verdict(answer: &Value) -> String {
    let reason = answer["status"]["reason"].as_str().unwrap_or("");
    let mut missing: Vec<&str> = reason
        .trim_start_matches("RBAC: ")
        .trim_matches(['[', ']'])
        .split(", ")
        .collect();
    missing.sort_unstable();
    let why = if answer["status"]["allowed"] == true {
        "by a role".to_owned()
    } else {
        missing.join(", ")
    };
    format!("{} {why}", answer["status"]["allowed"])
}

#[tokio::test]
async fn random_roles_are_judged_as_a_real_server_judges_them() {
    let Ok(kubeconfig) = std::env::var("REAL_KUBECONFIG") else {
        return tiphys_testkit::skip("real", "it needs a real API server: make test-real");
    };
    let rounds: u64 = std::env::var("ROLE_ROUNDS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(40);
    let mut real = Remote::connect(&kubeconfig).await;
    let kube = start(Data::Memory).await;
    let router = kube.router();
    for name in NAMESPACES {
        let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        real.json("POST", "/api/v1/namespaces", &body).await;
        send(
            &router,
            "POST",
            "/api/v1/namespaces",
            "application/json",
            &body,
        )
        .await;
    }
    let (mut same, mut asked, mut allowed) = (0, 0, 0);
    let first = tiphys_testkit::first_seed();
    for round in first..first + rounds {
        println!("TIPHYS_SEED={round} ROLE_ROUNDS=1");
        let mut rng = StdRng::seed_from_u64(round);
        let made = objects(&mut rng);
        for (path, object) in &made {
            let (code, answer) = real.json("POST", path, object).await;
            assert_eq!(code, 201, "{answer}");
            assert_eq!(
                send(&router, "POST", path, "application/json", object)
                    .await
                    .0,
                201
            );
        }
        // The real one hears of its own roles a moment later.
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        for _ in 0..QUESTIONS {
            let review = question(&mut rng);
            let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
            let (theirs, ours) = (
                real.json("POST", path, &review).await.1,
                send(&router, "POST", path, "application/json", &review)
                    .await
                    .1,
            );
            asked += 1;
            allowed += usize::from(theirs["status"]["allowed"] == true);
            if verdict(&theirs) == verdict(&ours) {
                same += 1;
            } else {
                eprintln!(
                    "round {round}: {} real: {} ours: {}",
                    review["spec"], theirs["status"], ours["status"]
                );
            }
        }
        for (path, object) in made.iter().rev() {
            let path = format!(
                "{path}/{}",
                object["metadata"]["name"].as_str().expect("a name")
            );
            real.json("DELETE", &path, &Value::Null).await;
            send(&router, "DELETE", &path, "application/json", &Value::Null).await;
        }
    }
    println!("{same} of {asked} answers are equal ({allowed} allowed)");
    assert_eq!(same, asked);
    kube.shutdown().await;
}
