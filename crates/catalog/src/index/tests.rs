//! Tests of reading an index, entry by entry.

use super::*;
use crate::RepoId;
use std::io::Cursor;

fn repository(form: Form) -> Repository {
    Repository {
        id: RepoId::new("team", "r"),
        url: "https://charts.example.com".to_owned(),
        form,
        ..Repository::default()
    }
}

fn versions(parsed: &Parsed) -> Vec<&str> {
    let chart = parsed.chart.as_ref();
    let versions = chart.into_iter().flat_map(|chart| &chart.versions);
    versions.map(|version| version.version.as_str()).collect()
}

fn parse(index: &str, form: Form) -> Vec<(String, Parsed)> {
    all(Index::read(Cursor::new(index), form), form)
}

fn all(index: Result<Index<Cursor<&str>>, IndexFault>, form: Form) -> Vec<(String, Parsed)> {
    let sections = index.expect("an index").map(|section| {
        let section = section.expect("a section");
        let parsed = section.parse(&repository(form)).expect("parsed");
        (section.key, parsed)
    });
    sections.collect()
}

#[test]
fn a_bad_entry_is_skipped_by_itself() {
    let index = r#"apiVersion: v1
entries:
  pump:
  - {name: pump, version: 1.2.0, urls: [a.tgz]}
  - {name: pump, urls: [a.tgz]}
  - {version: 1.1.0}
  - {name: pump, version: master}
  - null
  - {name: pump, version: 1.3.0, deprecated: "yes"}
  - {name: pump, version: 1.4.0, maintainers: [Ann]}
  - {name: pump, version: 1.5.0, created: yesterday}
  - {name: pump, version: v2.0.0-rc.1, appVersion: "7"}
"#;
    let helm = parse(index, Form::Helm);
    assert_eq!(versions(&helm[0].1), ["v2.0.0-rc.1", "1.2.0"]);
    let notes: Vec<(&str, &str)> = helm[0]
        .1
        .notes
        .iter()
        .map(|note| (note.version.as_str(), note.reason.as_str()))
        .collect();
    assert_eq!(
        notes[..4],
        [
            ("", "version is required"),
            ("1.1.0", "name is required"),
            ("master", "version is invalid"),
            ("", "empty entry"),
        ]
    );
    assert_eq!(notes.len(), 7);
    // kubeapps keeps what has the right types.
    let kubeapps = parse(index, Form::Kubeapps);
    assert_eq!(
        versions(&kubeapps[0].1),
        ["v2.0.0-rc.1", "1.2.0", "1.1.0", "master", ""]
    );
}

#[test]
fn of_the_same_version_the_first_counts() {
    let index = "apiVersion: v1\nentries:\n  a:\n  - {name: a, version: 1.0.0, digest: AB, urls: [x]}\n  - {name: a, version: 1.0.0, digest: 'sha256:ab', urls: [second]}\n  - {name: a, version: 1.0.0, digest: cd, urls: [z]}\n";
    let parsed = &parse(index, Form::Helm)[0].1;
    let chart = parsed.chart.as_ref().expect("a chart");
    assert_eq!(chart.versions.len(), 1);
    assert_eq!(chart.versions[0].urls, Some(vec!["x".to_owned()]));
    assert_eq!(parsed.notes.len(), 1, "{:?}", parsed.notes);
    assert!(parsed.notes[0].is_shown);
    assert_eq!(
        parsed.notes[0].reason,
        "ambiguous: listed with the digests ab and cd"
    );
}

#[test]
fn a_divided_index_reads_as_the_whole_one() {
    let index = "apiVersion: v1\nentries:\n  a:\n  - {name: a, version: 1.0.0}\n  b: null\n  a:\n  - {name: a, version: 2.0.0}\n  \"c\":\n  - name: c\n    version: 0.1.0\ngenerated: x\n";
    let divided = parse(index, Form::Helm);
    let whole = Index::read_whole(Cursor::new(index), Form::Helm);
    let whole = all(whole, Form::Helm);
    assert_eq!(divided, whole);
    assert_eq!(versions(&divided[0].1), ["2.0.0"]);
}

#[test]
fn what_is_no_index_is_an_error() {
    for (index, why) in [
        ("<html>", "it is not a map"),
        ("entries: {}\n", "no API version specified"),
        ("apiVersion: v1\nentries: [1]\n", "entries is not a map"),
    ] {
        let read = Index::read(Cursor::new(index), Form::Helm);
        let reason = read.err().map(|fault| fault.to_string());
        assert_eq!(reason.as_deref(), Some(why), "{index}");
    }
    let is_read = |index: &[u8], form| Index::read(Cursor::new(index), form).is_ok();
    assert!(!is_read(b"\xff", Form::Helm));
    // Around the charts, too.
    assert!(!is_read(
        b"a: [\nentries:\n  a:\n  - {name: a}\n",
        Form::Helm
    ));
    assert!(!is_read(
        b"apiVersion: v1\nentries:\n  a:\n  - {name: \xff}\n",
        Form::Helm
    ));
    assert!(is_read(b"entries: {}\n", Form::Kubeapps));
    // To kubeapps an empty file is an index without charts.
    assert!(is_read(b"", Form::Kubeapps));
    assert!(!is_read(b"", Form::Helm));
}

/// Go finds the fields of a document whatever their case.
#[test]
fn fields_in_another_case_are_read() {
    let index = "APIVersion: v1\nEntries:\n  pump:\n  - Name: pump\n    VERSION: 1.0.0\n    \
                 AppVersion: \"3\"\n    URLs: [a.tgz]\n";
    for form in [Form::Helm, Form::Kubeapps] {
        let (_, parsed) = parse(index, form).remove(0);
        let chart = parsed.chart.expect("a chart");
        let version = &chart.versions[0];
        let found = (&*chart.name, &*version.version, &*version.app_version);
        assert_eq!(found, ("pump", "1.0.0", "3"));
        assert_eq!(version.urls.as_deref(), Some(&["a.tgz".to_owned()][..]));
    }
}

#[test]
fn times_are_written_as_go_writes_them() {
    for (written, again) in [
        ("2024-02-03T04:05:06.789Z", Some("2024-02-03T04:05:06.789Z")),
        ("2024-02-03T04:05:06.780Z", Some("2024-02-03T04:05:06.78Z")),
        ("2024-02-03T04:05:06.000Z", Some("2024-02-03T04:05:06Z")),
        (
            "2024-02-03T04:05:06+02:00",
            Some("2024-02-03T04:05:06+02:00"),
        ),
        ("2024-02-03T04:05:06+00:00", Some("2024-02-03T04:05:06Z")),
        (
            "2024-02-03T04:05:06.123456789123Z",
            Some("2024-02-03T04:05:06.123456789Z"),
        ),
        ("2024-02-03", None),
        ("2024-02-30T04:05:06Z", None),
        ("2024-02-03 04:05:06Z", None),
        ("yesterday", None),
        ("", None),
    ] {
        assert_eq!(go_time(written).as_deref(), again, "{written}");
    }
}

#[test]
fn what_no_database_could_index_is_skipped() {
    let long = format!("1.0.0-{}", "x".repeat(300));
    let name = "n".repeat(300);
    let index = format!(
        "apiVersion: v1\nentries:\n  pump:\n  - {{name: pump, version: 1.0.0, urls: [a.tgz]}}\n  \
         - {{name: pump, version: {long}, urls: [b.tgz]}}\n  {name}:\n  \
         - {{name: {name}, version: 1.0.0, urls: [c.tgz]}}\n"
    );
    for form in [Form::Helm, Form::Kubeapps] {
        let parsed = parse(&index, form);
        let mut reasons: Vec<&str> = parsed
            .iter()
            .flat_map(|(_, parsed)| parsed.notes.iter().map(|note| note.reason.as_str()))
            .collect();
        reasons.sort_unstable();
        let long = [
            "name has more than 256 bytes",
            "version has more than 256 bytes",
        ];
        assert_eq!(reasons, long, "{form:?}");
        let charts = parsed.iter().filter(|(_, parsed)| parsed.chart.is_some());
        assert_eq!(charts.count(), 1);
    }
}

#[test]
fn of_very_many_versions_the_newest_count() {
    let entry = |n: usize| format!("  - {{name: pump, version: 1.{n}.0, urls: [a.tgz]}}\n");
    let entries: String = (0..VERSIONS + 5).map(entry).collect();
    let index = format!("apiVersion: v1\nentries:\n  pump:\n{entries}");
    for form in [Form::Helm, Form::Kubeapps] {
        let (_, parsed) = parse(&index, form).remove(0);
        let kept = versions(&parsed);
        assert_eq!(kept.len(), VERSIONS);
        assert_eq!((kept[0], kept[VERSIONS - 1]), ("1.10004.0", "1.5.0"));
        let reasons: Vec<&str> = parsed.notes.iter().map(|n| n.reason.as_str()).collect();
        let reason = "it has 10005 versions: only the newest 10000 are in the catalogue";
        assert_eq!(reasons, [reason]);
    }
}
