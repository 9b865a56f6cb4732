//! Times in triggers and templates: their methods, and the local zone.

use crate::broken::{load, random, subject};
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use tiphys_notify::{Destination, Notification};

/// Began ten minutes before the time of the tests.
fn app() -> Value {
    json!({"metadata": {"name": "web"}, "status": {
        "startedAt": "2024-03-01T10:00:00Z",
        "finishedAt": "2024-03-01T12:01:30+02:00",
    }})
}

#[test]
fn templates_calculate_with_times_and_know_the_local_zone() {
    let app = app();
    for (text, wanted) in [
        (
            r#"{{ $start.Local.Format "2006-01-02T15:04:05Z07:00" }}"#,
            "2024-03-01T19:00:00+09:00",
        ),
        (r#"{{ $start.Local.UTC.Format "15:04Z07:00" }}"#, "10:00Z"),
        (r#"{{ $start.Local | date "2006" }}"#, "2024"),
        ("{{ ($end.Sub $start).Seconds }}", "90"),
        ("{{ $end.Sub $start }}", "1m30s"),
        ("{{ ((call .time.Now).Sub $start).Minutes }}", "10"),
        (
            r#"{{ (call .time.Now).Format "15:04Z07:00" }}"#,
            "19:10+09:00",
        ),
        (r#"{{ ($start.Add .time.Hour).Format "15:04" }}"#, "11:00"),
        ("{{ $start.Year }} {{ $start.Month }}", "2024 March"),
        ("{{ $start.Before $end }}", "true"),
    ] {
        let variables = "{{ $start := call .time.Parse .app.status.startedAt }}\
                         {{ $end := call .time.Parse .app.status.finishedAt }}";
        let template = format!("message: '{variables}{text}'");
        let config = load(&[("template.a", &template)]);
        let mut subject = subject(&config, &app);
        subject.clock.zone = TimeZone::get("Asia/Tokyo").expect("a zone");
        let to = Destination {
            service: "slack".to_owned(),
            recipient: "channel".to_owned(),
        };
        let rendered = Notification::render(&subject, &["a".to_owned()], &to, random());
        let rendered = rendered.unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(rendered.message, wanted, "{text}");
    }
}

#[test]
fn triggers_know_the_local_zone() {
    let app = app();
    let trigger = "- when: time.Parse(app.status.startedAt).Local().Hour() == 19\n  send: [a]\n\
                   - when: time.Now().Local().Hour() == 19\n  send: [a]\n\
                   - when: now().In(timezone('UTC')).Local().Hour() == 19\n  send: [a]\n";
    let config = load(&[("trigger.t", trigger), ("template.a", "message: x")]);
    let mut subject = subject(&config, &app);
    let met = |subject: &tiphys_notify::Subject<'_>| -> Vec<bool> {
        let trigger = config.triggers["t"].as_ref().expect("a trigger");
        let results = trigger.run(subject).into_iter();
        results.map(|result| result.triggered).collect()
    };
    assert_eq!(met(&subject), [false, false, false]);
    subject.clock.zone = TimeZone::get("Asia/Tokyo").expect("a zone");
    assert_eq!(met(&subject), [true, true, true]);
}
