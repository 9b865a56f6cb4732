//! Cases 59 and 62: Jsonnet, and folders that have more than manifests.

use super::{Here, case, documents, rows, text};
use serde_json::json;

#[tokio::test]
async fn case_59() {
    let Some(case) = case("59") else { return };
    let here = Here::new();
    let repository = here.repository("in", &case.join("in"), ["\0", ""]);
    let build = async |libs: [&str; 2]| {
        let source = json!({"path": "app", "directory": {"jsonnet": {"libs": libs}}});
        here.built(&repository, source).await
    };
    for (libs, expected) in [(["lib", "vendor"], "1"), (["vendor", "lib"], "2")] {
        let expected = text(&case.join(format!("expected-{expected}.json")));
        assert_eq!(build(libs).await, Ok(documents(&expected)), "{libs:?}");
    }
    let outside = build(["lib", "../vendor"]).await;
    assert!(outside.is_err(), "{outside:?}");
}

#[tokio::test]
async fn case_62() {
    let Some(case) = case("62") else { return };
    let here = Here::new();
    let repository = here.repository("in", &case, ["\0", ""]);
    let build = async |directory: serde_json::Value| {
        let source = json!({"path": "in", "directory": directory});
        let built = here.built(&repository, source).await;
        built.map(|objects| {
            objects
                .iter()
                .map(|o| o["metadata"]["name"].clone())
                .collect()
        })
    };
    let rows = rows(&case.join("files.txt"));
    assert_eq!(rows.len(), 8);
    let mut names: Vec<serde_json::Value>;
    for row in rows {
        let (file, wanted) = (&row[0], &row[1]);
        let built: Result<Vec<_>, _> = build(json!({"include": file})).await;
        let Some(wanted) = wanted.strip_prefix("error") else {
            names = built.unwrap_or_else(|e| panic!("{file}: {e}"));
            let count = usize::from(wanted.starts_with("1 object"));
            assert_eq!(names.len(), count, "{file}");
            continue;
        };
        let failed = built.expect_err(file);
        match wanted.strip_prefix(": ") {
            Some(wanted) => assert!(
                failed.contains(&wanted.replace('"', "\\\"")) || failed.contains(wanted),
                "{file}: {failed}"
            ),
            None => assert!(
                failed.contains("jsonnetfile.json") && failed.contains("Object 'Kind' is missing"),
                "{file}: {failed}"
            ),
        }
    }
    let first: Result<Vec<_>, _> = build(json!({"recurse": false})).await;
    assert!(
        first.as_ref().is_err_and(|e| e.contains("bad.yaml")),
        "{first:?}"
    );
    let rest = json!({"exclude": "{jsonnetfile.json,bad.yaml,two.json}"});
    let rest: Result<Vec<_>, _> = build(rest).await;
    assert_eq!(rest, Ok(vec![json!("ok")]));
}
