//! Who gets what answer from each row of the table: nobody without a valid session, and everybody
//! else what the policy says. Made from the table, so that no new row is forgotten.

use crate::{access, common};

use common::{PASSWORD, World};
use http::Method;
use serde_json::{Value, json};
use std::time::Duration;
use tiphys_rpc::{Call, table::Kind};
use tiphys_server::{
    State,
    access::{Access, Action},
    ports::Store as _,
    table::table,
};

/// The identities, with their tokens.
struct Callers {
    /// Without any, expired, revoked.
    nobody: [(&'static str, String); 3],
    /// A role of another project than the one that requests are about.
    other_project: String,
    read_only: String,
}

async fn world() -> World {
    let hash = bcrypt::hash(PASSWORD, 4).expect("it hashes");
    let config = [
        ("accounts.reader", "login"),
        ("accounts.robot", "apiKey"),
        (
            "policy.csv",
            "g, reader, role:readonly\ng, robot, role:admin\n",
        ),
    ];
    let secrets = [("accounts.reader.password", hash.as_str())];
    let world = World::start_by_policy(&config, &secrets).await;
    access::fill(&world).await;
    let project = json!({"metadata": {"name": "q", "namespace": "argocd"}, "spec": {"roles": [{
        "name": "r", "policies": ["p, proj:q:r, applications, *, q/*, allow"],
    }]}});
    let project = serde_json::from_value(project).expect("a project");
    world.store.create_project(&project).await.expect("stored");
    world
}

async fn token(world: &World, path: &str, body: Value) -> String {
    let (status, answer) = world.rest(Method::POST, path, Some(body)).await;
    assert_eq!(status, 200, "{path}: {answer}");
    answer["token"].as_str().expect("a token").to_owned()
}

async fn callers(world: &World) -> Callers {
    let session = |name: &str| json!({"username": name, "password": PASSWORD});
    let revoked = token(world, "/api/v1/session", session("admin")).await;
    let ended = world.rest_as(&revoked, Method::DELETE, "/api/v1/session", None);
    assert_eq!(ended.await.0, 200);
    let brief = json!({"expiresIn": 1});
    let expired = token(world, "/api/v1/account/robot/token", brief).await;
    let role = json!({"expiresIn": 600});
    let other_project = token(world, "/api/v1/projects/q/roles/r/token", role).await;
    let read_only = token(world, "/api/v1/session", session("reader")).await;
    tokio::time::sleep(Duration::from_millis(2_100)).await;
    Callers {
        nobody: [
            ("no token", String::new()),
            ("expired", expired),
            ("revoked", revoked),
        ],
        other_project,
        read_only,
    }
}

/// The status and the body of a row's answer to this caller.
async fn answer(world: &mut World, caller: &str, call: &Call<State>) -> (u16, String) {
    let own = std::mem::replace(&mut world.token, caller.to_owned());
    let answer = access::answer(world, call).await;
    world.token = own;
    answer
}

fn is_refused(body: &str) -> bool {
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    // Streams have an error of their own form.
    let of_stream = body["error"]["message"].as_str();
    let words = of_stream.or(body["error"].as_str()).unwrap_or_default();
    words.contains("permission denied")
}

/// Whether a list has nothing of others.
fn is_empty(body: &str) -> bool {
    let list: Value = serde_json::from_str(body).unwrap_or_default();
    // A role sees its own project.
    let is_own = |item: &Value| item["metadata"]["name"] == "q";
    list["items"]
        .as_array()
        .is_none_or(|items| items.iter().all(is_own))
}

#[tokio::test]
async fn nobody_gets_anything() {
    let mut world = world().await;
    let callers = callers(&world).await;
    let mut walked = 0;
    for call in table().calls() {
        if call.access == Access::Public {
            continue;
        }
        // A stream of messages needs gRPC, whose test has its own codes.
        if call.kind == Kind::ClientStream || call.access == Access::SignedIn {
            continue;
        }
        for (who, token) in &callers.nobody {
            let (status, body) = answer(&mut world, token, call).await;
            assert_eq!(status, 401, "{} {who}: {body}", call.rpc);
        }
        walked += 1;
    }
    assert!(walked > 90, "{walked}");
}

#[tokio::test]
async fn everybody_else_gets_what_the_policy_says() {
    let mut world = world().await;
    access::prepare(&world, "catalog.CatalogService/Search").await;
    let callers = callers(&world).await;
    let mut walked = 0;
    for call in table().calls() {
        let rpc = call.rpc.trim_start_matches('/');
        let (asks, lists) = match call.access {
            Access::Public | Access::SignedIn => continue,
            // Some rows ask only about what is not the caller's own.
            Access::Asks {
                always: &[],
                sometimes,
            } => (sometimes.to_vec(), false),
            Access::Asks { always, .. } => (always.to_vec(), false),
            Access::Lists(one) => (vec![one], true),
        };
        if call.kind == Kind::ClientStream {
            continue;
        }
        let (status, body) = answer(&mut world, &callers.other_project, call).await;
        if lists {
            assert_eq!(status, 200, "{rpc}, another project: {body}");
            assert!(is_empty(&body), "{rpc}, another project: {body}");
        } else {
            assert_eq!(status, 403, "{rpc}, another project: {body}");
            assert!(is_refused(&body), "{rpc}, another project: {body}");
        }
        // They are for who may create or change the Application that is asked for; who may only
        // read it gets the details of the sources that it has or had.
        let is_for_writers = [
            "repository.RepositoryService/ListApps",
            "repository.RepositoryService/GetAppDetails",
        ]
        .contains(&rpc);
        let reads = asks.iter().all(|ask| ask.1 == Action::Get) && !is_for_writers;
        let (status, body) = answer(&mut world, &callers.read_only, call).await;
        match reads {
            true => assert!(![401, 403].contains(&status), "{rpc}, read-only: {body}"),
            false => {
                assert_eq!(status, 403, "{rpc}, read-only: {body}");
                assert!(is_refused(&body), "{rpc}, read-only: {body}");
            }
        }
        walked += 1;
    }
    assert!(walked > 90, "{walked}");
}

/// That `admin` may call each row is proved with what each asks for, by `access`; here, with the
/// policy.
#[tokio::test]
async fn an_administrator_gets_everything() {
    for call in table().calls() {
        let rpc = call.rpc.trim_start_matches('/');
        if matches!(call.access, Access::Public | Access::SignedIn) {
            continue;
        }
        // What a row changes must not be missing for the next one.
        let world = world().await;
        access::prepare(&world, rpc).await;
        let (status, body) = access::answer(&world, call).await;
        let is_fine = status == 200 || status == 404 && access::is_of_another_account(rpc);
        assert!(is_fine, "{rpc}: {status} {body}");
    }
}
