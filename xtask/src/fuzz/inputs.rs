//! Targets for languages and requests: jq, Lua, selectors and patterns, schemas of values, TOML,
//! the query of a REST call, and requests to the embedded API server.

use super::{helm::limits, targets::holds};
use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, time::Duration};
use tiphys_apimachinery::{
    Object, quantity,
    selector::{FieldSelector, LabelSelector},
};
use tiphys_embedded_kube::{EmbeddedKube, Options};
use tiphys_gocompat::{
    cron::Schedule, doublestar, glob::Glob, jq, path_match, patterns, semver, toml,
};
use tiphys_render::helm::{
    chart::Chart,
    values::{Settings, check_schemas, user_values},
};
use tiphys_rpc::table::{from_value, query};
use tower::ServiceExt as _;

/// Separates lines and parts in a seed, which is a single line.
const SEPARATOR: char = '\u{1f}';

/// A program, run on a small document.
pub fn run_jq(input: &[u8]) -> Result<(), String> {
    let Ok(program) = jq::Program::parse(&String::from_utf8_lossy(input)) else {
        return Ok(());
    };
    let document = json!({"metadata": {"name": "a"}, "spec": {"template": {"spec": {"containers": [{"name": "a"}]}}}, "items": [{"a": 1}], "a": [1, {"b": 2}]});
    let small = jq::Limits {
        steps: 200_000,
        outputs: 1_000,
        ..jq::Limits::default()
    };
    let mut size = 0;
    for result in program.run(&document, small) {
        size += result.map_or(0, |value| value.to_string().len());
    }
    holds(size < 512 << 20, "the results are bounded")
}

/// A user's script, run on a small object.
pub fn run_lua(input: &[u8]) -> Result<(), String> {
    let object = json!({"kind": "X", "metadata": {"name": "a"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    let script = String::from_utf8_lossy(input);
    let run = tiphys_lua::Run {
        script: &script,
        open_libs: true,
        object: &object,
        parameters: &[],
    };
    let limits = tiphys_lua::Limits {
        steps: 500_000,
        time: Duration::from_secs(20),
        ..tiphys_lua::Limits::new(|| jiff::Timestamp::UNIX_EPOCH)
    };
    if let Ok(tiphys_lua::Returned::Table(value)) = tiphys_lua::run(&run, &limits) {
        holds(
            !value.to_string().is_empty(),
            "what was returned can be printed",
        )?;
    }
    Ok(())
}

/// One text parsed as every kind of selector: labels, fields, globs, versions, quantities,
/// schedules.
pub fn run_selector(input: &[u8]) -> Result<(), String> {
    let text = String::from_utf8_lossy(input);
    let labels = BTreeMap::from([("app".to_owned(), "web".to_owned())]);
    let object = Object::from_value(
        json!({"metadata": {"name": "a", "namespace": "b", "labels": {"app": "web"}}}),
    )
    .map_err(|e| e.to_string())?;
    let parsed = LabelSelector::parse(&text).into_iter();
    let structured = serde_json::from_slice::<Value>(input)
        .ok()
        .and_then(|value| LabelSelector::from_json(&value).ok());
    for selector in parsed.chain(structured) {
        let _ = selector.matches(&labels);
    }
    if let Ok(selector) = FieldSelector::parse(&text) {
        let _ = selector.matches(&object);
    }
    let _ = Glob::new(&text, &['/']).map(|glob| glob.matches("https://github.com/a/b.git"));
    let _ = path_match::matches(&text, "a/b/c");
    let _ = doublestar::glob(&text, &mut |_: &str| Ok::<_, ()>(None));
    let _ = patterns::any(&[text.clone().into_owned()], "kube-system");
    if let Ok(constraint) = semver::Constraints::parse(&text) {
        let _ = semver::Version::parse("1.2.3").map(|version| constraint.check(&version));
    }
    let _ = quantity::canonical(&Value::from(text.as_ref()));
    let _ = Schedule::parse(&text)
        .map(|schedule| schedule.next(jiff::Timestamp::UNIX_EPOCH, &jiff::tz::TimeZone::UTC));
    Ok(())
}

/// `[values.schema.json, values]`
pub fn run_values_schema(input: &[u8]) -> Result<(), String> {
    let Ok(Value::Array(parts)) = serde_json::from_slice::<Value>(input) else {
        return Ok(());
    };
    let [schema, values] = parts.as_slice() else {
        return Ok(());
    };
    let schema = schema.to_string();
    let files = tiphys_render::MemoryFiles::new([
        ("Chart.yaml", "apiVersion: v2\nname: a\nversion: 1.0.0\n"),
        ("values.schema.json", &*schema),
    ]);
    let Ok(loaded) = Chart::from_folder(&files, "", &limits()) else {
        return Ok(());
    };
    let settings = Settings {
        files: vec![("values".to_owned(), values.to_string().into_bytes())],
        ..Settings::default()
    };
    let Ok(values) = user_values(&settings, &|_| Ok(String::new()), &limits()) else {
        return Ok(());
    };
    let _ = check_schemas(&loaded.chart, &values, &limits());
    Ok(())
}

/// Parses TOML, prints it, and parses it again.
pub fn run_toml(input: &[u8]) -> Result<(), String> {
    let text = String::from_utf8_lossy(input).replace(SEPARATOR, "\n");
    let Ok(table) = toml::parse(&text) else {
        return Ok(());
    };
    let Ok(printed) = toml::to_string(&(&Value::Object(table)).into()) else {
        return Ok(());
    };
    holds(
        toml::parse(&printed).is_ok(),
        "what was printed can be read",
    )
}

/// The query of a REST call and, after the separator, its body, parsed as a message.
pub fn run_query(input: &[u8]) -> Result<(), String> {
    let text = String::from_utf8_lossy(input);
    let (asked, body) = text.split_once(SEPARATOR).unwrap_or((&text, "{}"));
    let Ok(mut message) = serde_json::from_str::<Map<String, Value>>(body) else {
        return Ok(());
    };
    let Ok((fields, _)) = query::read(
        &mut message,
        asked,
        vec![("name".to_owned(), "n".to_owned())],
    ) else {
        return Ok(());
    };
    let value = Value::Object(message);
    if let Some(fields) = fields {
        holds(
            serde_json::from_slice::<Value>(&fields.apply(value.to_string().as_bytes())).is_ok(),
            "a selection of JSON is JSON",
        )?;
    }
    let _ = from_value::<tiphys_api::rpc::application::ApplicationQuery>(value.clone());
    let _ = from_value::<tiphys_api::rpc::application::ApplicationCreateRequest>(value);
    Ok(())
}

/// A request to the embedded API server: `METHOD path media`, and its body. The server must still
/// respond afterwards.
pub fn run_kube(input: &[u8]) -> Result<(), String> {
    let text = String::from_utf8_lossy(input).replace(SEPARATOR, "\n");
    let (head, body) = text.split_once('\n').unwrap_or((&text, ""));
    let mut words = head.split(' ');
    let mut word = || words.next().unwrap_or_default().to_owned();
    let (method, path, media) = (word(), word(), word());
    let request = http::Request::builder()
        .method(method.as_bytes())
        .uri(&path)
        .header("content-type", media);
    let Ok(request) = request.body(axum::body::Body::from(body.to_owned())) else {
        return Ok(());
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| e.to_string())?;
    runtime.block_on(async {
        let kube = EmbeddedKube::start(Options { controllers: false, ..Options::default() }).await.map_err(|e| e.to_string())?;
        let first = http::Request::post("/api/v1/namespaces/default/configmaps").header("content-type", "application/json");
        let object =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}, "data": {"k": "v"}});
        let first = first.body(axum::body::Body::from(object.to_string())).map_err(|e| e.to_string())?;
        for request in [first, request] {
            if request.uri().query().is_some_and(|query| query.contains("watch") || query.contains("follow")) {
                continue;
            }
            let Ok(response) = kube.router().oneshot(request).await;
            let read = axum::body::to_bytes(response.into_body(), 64 << 20).await;
            holds(read.is_ok(), "an answer is read")?;
        }
        let Ok(list) =
            kube.router().oneshot(http::Request::get("/api/v1/configmaps").body(axum::body::Body::empty()).expect("a request")).await;
        let bytes = axum::body::to_bytes(list.into_body(), 64 << 20).await.map_err(|e| e.to_string())?;
        holds(serde_json::from_slice::<Value>(&bytes).is_ok(), "what is stored can be read by every client")?;
        kube.shutdown().await;
        Ok(())
    })
}
