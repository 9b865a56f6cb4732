//! Templates that use too many resources: they end with an error, with its location, within the
//! limits.

use serde_json::Map;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tiphys_gocompat::{template, yaml};
use tiphys_render::MemoryFiles;
use tiphys_render::helm::chart::Chart;
use tiphys_render::helm::{Deadline, HelmError, Limits, RenderOptions, Sources, render_chart};

/// Numbers that look random: prime numbers must be found among them.
fn sources() -> Sources {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let random = move |bytes: &mut [u8]| {
        for byte in bytes {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            *byte = (state >> 56) as u8;
        }
    };
    Sources {
        random: Box::new(random),
        now: jiff::Timestamp::UNIX_EPOCH,
        zone: || jiff::tz::TimeZone::UTC,
    }
}

fn rendered(template: &str) -> Result<usize, HelmError> {
    let files = MemoryFiles::new([
        ("Chart.yaml", "apiVersion: v2\nname: a\nversion: 1.0.0\n"),
        ("templates/t.yaml", template),
    ]);
    // Small limits, because tests are not optimized; the charges are the same.
    let templates = template::Limits {
        steps: 2_500_000,
        output: 4 << 20,
        memory: 8 << 20,
    };
    let limits = Limits {
        templates,
        ..Limits::default()
    };
    let chart = Chart::from_folder(&files, "", &limits)?.chart;
    let options = RenderOptions::new(Arc::new(sources));
    render_chart(chart, &Map::new(), &options, &limits)
        .map(|rendered| rendered.manifests.iter().map(|m| m.text.len()).sum())
}

#[test]
fn templates_that_want_too_much_are_stopped() {
    let mut wrong = Vec::new();
    for template in [
        r#"{{ define "r" }}{{ template "r" . }}{{ end }}{{ template "r" . }}"#,
        r#"{{ define "r" }}{{ template "r" . }}{{ template "r" . }}{{ end }}{{ template "r" . }}"#,
        r"{{ range until 1000000000 }}x{{ end }}",
        r"{{ range $i := until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}",
        r"{{ range untilStep 0 1000000000 1 }}{{ end }}",
        r"{{ range 100000000000 }}x{{ end }}",
        r#"{{ repeat 1000000000 "x" }}"#,
        r#"{{ $x := "x" }}{{ range until 64 }}{{ $x = print $x $x }}{{ end }}{{ $x }}"#,
        r#"{{ $x := list 1 }}{{ range until 64 }}{{ $x = concat $x $x }}{{ end }}"#,
        r#"{{ $x := dict "a" 1 }}{{ range until 64 }}{{ $x = dict "l" $x "r" $x }}{{ end }}{{ toYaml $x }}"#,
        r#"{{ $x := dict "a" 1 }}{{ range until 64 }}{{ $x = dict "l" $x "r" $x }}{{ end }}{{ toToml $x }}"#,
        r#"{{ $x := dict "a" 1 }}{{ range until 64 }}{{ $x = dict "l" $x "r" $x }}{{ end }}{{ $x }}"#,
        r#"{{ $x := dict "a" 1 }}{{ range until 64 }}{{ $x = dict "l" $x "r" $x }}{{ end }}{{ deepCopy $x }}"#,
        r#"{{ tpl "{{ tpl .t . }}" (dict "t" "{{ tpl .t . }}") }}"#,
        r#"{{ tpl "{{ tpl (print .t \" \") (dict \"t\" (print .t \" \")) }}" (dict "t" "{{ tpl (print .t \" \") (dict \"t\" (print .t \" \")) }}") }}"#,
        r#"{{ range until 1000000 }}{{ tpl (printf "{{ %d }}" .) $ }}{{ end }}"#,
        r#"{{ range until 100000 }}{{ genCA "x" 365 }}{{ end }}"#,
        r#"{{ range until 100000 }}{{ genPrivateKey "rsa" }}{{ end }}"#,
        r#"{{ range until 100000 }}{{ htpasswd "user" "password" }}{{ end }}"#,
        r#"{{ range until 100000 }}{{ derivePassword 1 "long" "password" "user" "example.com" }}{{ end }}"#,
        r#"{{ $x := repeat 100000 "a" }}{{ range until 100000 }}{{ regexMatch "(a*)*b" $x }}{{ end }}"#,
        r#"{{ $y := "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: [*d,*d,*d]" }}{{ range until 100000 }}{{ $_ := fromYaml $y }}{{ end }}"#,
        r#"{{ $x := repeat 1000000 "[" }}{{ range until 100000 }}{{ $_ := fromJson $x }}{{ $_ := fromYaml $x }}{{ end }}"#,
        r#"{{ $x := repeat 1000000 "x" }}{{ range until 100000 }}{{ $_ := sha256sum $x }}{{ end }}"#,
        r#"{{ $x := repeat 100000 "x," }}{{ range until 100000 }}{{ $_ := splitList "," $x }}{{ end }}"#,
        r#"{{ $x := repeat 100000 "x = 1\n" }}{{ range until 100000 }}{{ $_ := fromToml $x }}{{ end }}"#,
        r#"{{ range until 100000 }}{{ $_ := toYaml (until 10000) }}{{ end }}"#,
        r#"{{ $x := repeat 1000000 "x" }}{{ range until 100000 }}{{ $x }}{{ end }}"#,
        r#"{{ range until 1000000 }}{{ $_ := set $ (toString .) (until 1000) }}{{ end }}"#,
        r#"{{ range $i := until 100000 }}{{ $_ := (printf "%1000000d" $i) }}{{ end }}"#,
        r#"{{ range until 100000 }}{{ $_ := seq 0 100000 }}{{ end }}"#,
        r#"{{ range until 100000 }}{{ $_ := randAlphaNum 100000 }}{{ end }}"#,
        r#"{{ range until 1000000 }}{{ $_ := semverCompare ">=1.0.0 <2.0.0 || >=3.0.0 || ^4 || ~5" "1.2.3" }}{{ end }}"#,
    ] {
        match rendered(template) {
            Err(HelmError::Limit(text)) if text.contains("a/templates/t.yaml:1:") => {}
            Err(e) => wrong.push(format!("{template:.120}\n  {:.300}", e.to_string())),
            Ok(length) => wrong.push(format!("{template:.120}\n  {length} bytes")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn inclusions_of_themselves_end_as_in_helm() {
    let template = r#"{{ define "r" }}{{ include "s" . }}{{ end }}{{ define "s" }}{{ include "r" . }}{{ include "r" . }}{{ end }}{{ include "r" . }}"#;
    let error = rendered(template).expect_err("a recursion");
    assert!(
        matches!(&error, HelmError::Template(text) if text.ends_with("rendering template has a nested reference name: r: unable to execute template"))
    );
    // Go rejects such an expression, and regexMatch swallows that error.
    assert!(rendered(r#"a: {{ regexMatch "((a{1,1000}){1,1000}){1,1000}" "a" }}"#).is_ok());
}

/// A render whose time is over after so many looks at the clock, and how often it looked.
fn timed(template: &str, looks: usize) -> (Result<usize, HelmError>, usize) {
    let files = MemoryFiles::new([
        ("Chart.yaml", "apiVersion: v2\nname: a\nversion: 1.0.0\n"),
        ("templates/t.yaml", template),
    ]);
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    let deadline = Deadline {
        limit: std::time::Duration::from_secs(7),
        hint: "",
        passed: Arc::new(move || counted.fetch_add(1, Ordering::Relaxed) >= looks),
    };
    let options = RenderOptions {
        deadline: Some(deadline),
        ..RenderOptions::new(Arc::new(sources))
    };
    let chart = Chart::from_folder(&files, "", &Limits::default())
        .expect("a chart")
        .chart;
    let rendered = render_chart(chart, &Map::new(), &options, &Limits::default());
    (
        rendered.map(|rendered| rendered.manifests.len()),
        asked.load(Ordering::Relaxed),
    )
}

/// Steps are charged the same on every machine; the caller provides the time.
#[test]
fn a_render_ends_when_its_time_is_over() {
    let template = r#"{{ range until 1000 }}{{ $_ := genCA "ca" 1 }}{{ end }}"#;
    let (late, asked) = timed(template, 3);
    let error = late.expect_err("it takes too long");
    assert!(
        matches!(&error, HelmError::Limit(text) if text.contains("a/templates/t.yaml:1:") && text.contains("rendering takes more than 7 seconds")),
        "{error}"
    );
    assert_eq!(asked, 4, "it ends with the first answer that says so");
}

#[test]
fn the_documents_that_were_rendered_are_read_within_the_same_time() {
    let documents = "---\nkind: A\n".repeat(5);
    let (whole, looks) = timed(&documents, usize::MAX);
    assert_eq!(whole.expect("there is time"), 5);
    assert!(looks > 5, "{looks}");
    for allowed in looks - 5..looks {
        let (late, asked) = timed(&documents, allowed);
        let error = late.expect_err("it takes too long");
        assert!(
            matches!(&error, HelmError::Limit(text) if text == "rendering takes more than 7 seconds"),
            "{error}"
        );
        assert_eq!(asked, allowed + 1);
    }
}

#[test]
fn what_the_aliases_of_all_documents_copy_counts_together() {
    let long = "x".repeat(10_000);
    let aliases = vec!["*a"; 60].join(", ");
    let one = format!("kind: A\na: &a {long}\nb: [{aliases}]\n");
    let limits = Limits {
        yaml: yaml::Limits {
            copied_bytes: 1 << 20,
            ..Limits::default().yaml
        },
        ..Limits::default()
    };
    let render = |files: &[(&str, &str)]| {
        let about = [("Chart.yaml", "apiVersion: v2\nname: a\nversion: 1.0.0\n")];
        let files = MemoryFiles::new(about.iter().chain(files).copied());
        let chart = Chart::from_folder(&files, "", &limits)?.chart;
        let options = RenderOptions::new(Arc::new(sources));
        render_chart(chart, &Map::new(), &options, &limits).map(|rendered| rendered.manifests.len())
    };
    let first = ("templates/a.yaml", one.as_str());
    let rendered = render(&[first]);
    assert_eq!(rendered.expect("600,000 bytes"), 1);
    let both = format!("{one}---\n{one}");
    for files in [
        vec![("templates/a.yaml", both.as_str())],
        vec![first, ("templates/b.yaml", one.as_str())],
    ] {
        let error = render(&files).expect_err("1,200,000 bytes");
        assert!(
            matches!(&error, HelmError::Manifest { message, .. } if message.contains("anchors and aliases copy more than")),
            "{error}"
        );
    }
}
