//! What services are sent for odd templates, and which answers count as deliveries: as a genuine
//! notifications engine did beside a recorder, but for what the comments say.

use crate::broken::{load, random, subject};
use serde_json::{Value, json};
use std::time::Duration;
use tiphys_notify::send::{Mail, Published, Request, Response, Threads, Transport, World, deliver};
use tiphys_notify::{Destination, Notification, Outcome};

/// A service that gives its answers in order, and the last of them ever after.
struct Service {
    answers: Vec<Response>,
    requests: Vec<Request>,
    waits: Vec<u64>,
    /// The process ends after so many waits.
    ends_after: usize,
}

impl Transport for Service {
    fn exchange(&mut self, request: &Request) -> Result<Response, String> {
        let last = self.answers.len() - 1;
        let answer = self.answers[self.requests.len().min(last)].clone();
        self.requests.push(request.clone());
        Ok(answer)
    }

    fn mail(&mut self, _: &Mail) -> Result<(), String> {
        Err("no mails".into())
    }

    fn publish(&mut self, _: &Published) -> Result<(), String> {
        Err("no messages".into())
    }

    fn wait(&mut self, time: Duration) {
        self.waits.push(time.as_secs());
    }

    fn is_over(&self) -> bool {
        self.waits.len() >= self.ends_after
    }
}

fn answer(status: u16, body: &str) -> Response {
    Response {
        status,
        body: body.as_bytes().to_vec(),
        ..Response::default()
    }
}

/// Sends to the recipient `r` of a service.
fn tell(kind: &str, texts: (&str, &str), answers: Vec<Response>) -> (Outcome, Service) {
    tell_until(usize::MAX, kind, texts, answers)
}

/// The same in a process that ends after so many waits.
fn tell_until(
    ends_after: usize,
    kind: &str,
    (service, template): (&str, &str),
    answers: Vec<Response>,
) -> (Outcome, Service) {
    let key = format!("service.{kind}");
    let config = load(&[(&*key, service), ("template.t", template)]);
    let app = json!({"metadata": {"name": "shop"}});
    let mut recorder = Service {
        answers,
        requests: Vec::new(),
        waits: Vec::new(),
        ends_after,
    };
    let mut world = World {
        transport: &mut recorder,
        threads: &mut Threads::default(),
        now: "2026-01-02T03:04:05Z".parse().expect("a time"),
        random: &mut |bytes| bytes.fill(0),
    };
    let to = Destination {
        service: kind.to_owned(),
        recipient: "r".to_owned(),
    };
    let subject = subject(&config, &app);
    let outcome = deliver(&subject, &["t".to_owned()], &to, random(), &mut world);
    (outcome, recorder)
}

fn body(service: &Service) -> String {
    let request = service.requests.last().expect("a request");
    String::from_utf8(request.body.clone()).expect("text")
}

const SLACK: &str = "token: $tok";
const SLACK_WELL: &str = r#"{"ok": true, "channel": "C1", "ts": "1"}"#;
const ROCKET: &str = "email: e\npassword: $tok\nserverUrl: http://rocket.example.test";
const ROCKET_WELL: &str =
    r#"{"status": "success", "success": true, "data": {"authToken": "t", "userId": "u"}}"#;
const TEAMS: &str = "recipientUrls: {r: 'https://teams.example.test/x'}";
const WORKFLOWS: &str = "recipientUrls: {r: 'https://api.powerautomate.com/x'}";
const GOOGLE: &str = "webhooks: {r: 'https://chat.example.test/x'}";

/// Argo CD sends these, too, some of them with `null` or nothing in place of an empty list.
#[test]
fn a_list_may_be_null() {
    let card = r#""sections":[{"facts":[]}],"summary":"","text":"m""#;
    for (kind, service, part, well, sent) in [
        (
            "slack",
            SLACK,
            "slack: {attachments: 'null', blocks: 'null'}",
            SLACK_WELL,
            "attachments=%5B%5D&blocks=%5B%5D&channel=r&text=m",
        ),
        (
            "slack",
            SLACK,
            "slack: {attachments: '[null]'}",
            SLACK_WELL,
            "attachments=%5B%7B%22blocks%22%3Anull%7D%5D&",
        ),
        (
            "mattermost",
            "apiURL: http://matter.example.test",
            "mattermost: {attachments: 'null'}",
            "{}",
            r#""props":{"attachments":[]}"#,
        ),
        (
            "rocketchat",
            ROCKET,
            "rocketchat: {attachments: 'null'}",
            ROCKET_WELL,
            r#"{"roomId":"r","text":"m"}"#,
        ),
        (
            "teams",
            TEAMS,
            "teams: {facts: 'null', sections: 'null', potentialAction: 'null'}",
            "1",
            card,
        ),
        (
            "teams",
            TEAMS,
            "teams: {sections: '[null]'}",
            "1",
            r#""sections":[null]"#,
        ),
        (
            "teams-workflows",
            WORKFLOWS,
            "teams-workflows: {facts: '[null]', sections: 'null', potentialAction: 'null'}",
            "",
            r#""body":[{"text":"m","type":"TextBlock","wrap":true}]"#,
        ),
    ] {
        let template = format!("message: m\n{part}");
        let (outcome, recorder) = tell(kind, (service, &template), vec![answer(200, well)]);
        assert_eq!(outcome, Outcome::Sent, "{part}");
        let body = body(&recorder);
        assert!(body.contains(sent), "{part}: {body}");
    }
}

#[test]
fn what_is_no_map_is_not_sent() {
    for (kind, service, part, told) in [
        (
            "slack",
            SLACK,
            "slack: {attachments: '[\"x\"]'}",
            "failed to unmarshal attachments",
        ),
        (
            "slack",
            SLACK,
            "slack: {blocks: '[1]'}",
            "failed to unmarshal blocks",
        ),
        (
            "rocketchat",
            ROCKET,
            "rocketchat: {attachments: '[1]'}",
            "failed to unmarshal attachments",
        ),
        (
            "teams",
            TEAMS,
            "teams: {facts: '[\"x\"]'}",
            "teams facts unmarshalling error",
        ),
        (
            "googlechat",
            GOOGLE,
            "googlechat: {cardsV2: '- 1'}",
            "cannot create message: cardsV2",
        ),
        (
            "googlechat",
            GOOGLE,
            "googlechat: {cards: '[x]'}",
            "cannot create message: cards",
        ),
    ] {
        let template = format!("message: m\n{part}");
        let (outcome, recorder) = tell(kind, (service, &template), vec![answer(200, "{}")]);
        let Outcome::Failed(why) = outcome else {
            panic!("{part}: {outcome:?}");
        };
        assert!(why.starts_with(told), "{part}: {why}");
        assert!(recorder.requests.is_empty(), "{part}");
    }
}

#[test]
fn names_in_slacks_attachments_are_compared_without_regard_to_case() {
    let attachments = r#"[{"Title": "x", "FIELDS": [{"Title": "a", "Short": true}]}]"#;
    let template = format!("message: m\nslack: {{attachments: '{attachments}'}}");
    let (outcome, recorder) = tell("slack", (SLACK, &template), vec![answer(200, SLACK_WELL)]);
    assert_eq!(outcome, Outcome::Sent);
    let body = body(&recorder);
    let fields = "%5B%7B%22title%22%3A%22a%22%2C%22value%22%3A%22%22%2C%22short%22%3Atrue%7D%5D";
    let sent = format!(
        "attachments=%5B%7B%22title%22%3A%22x%22%2C%22fields%22%3A{fields}%2C\
         %22blocks%22%3Anull%7D%5D&"
    );
    assert!(body.starts_with(&sent), "{body}");
}

/// Google refuses a number or a flag where it wants a text.
#[test]
fn texts_of_google_chats_cards_are_texts() {
    let template = r"
message: m
googlechat:
  cardsV2: |
    - header: {title: 1234567, subtitle: true}
      sections:
      - collapsible: true
        uncollapsibleWidgetsCount: 1
        widgets:
        - decoratedText: {text: 1.5, topLabel: null, wrapText: false}
        - buttonList: {buttons: [{text: 5, color: {red: 1, green: 0.5}}]}
  cards: |
    - sections: [{widgets: [{keyValue: {content: 3, contentMultiline: true}}]}]
";
    let (outcome, recorder) = tell("googlechat", (GOOGLE, template), vec![answer(200, "{}")]);
    assert_eq!(outcome, Outcome::Sent);
    let sent: Value = serde_json::from_str(&body(&recorder)).expect("JSON");
    let new = json!({
        "header": {"title": "1234567", "subtitle": "true"},
        "sections": [{
            "collapsible": true,
            "uncollapsibleWidgetsCount": 1,
            "widgets": [
                {"decoratedText": {"text": "1.5", "topLabel": null, "wrapText": false}},
                {"buttonList": {"buttons": [{"text": "5", "color": {"red": 1, "green": 0.5}}]}},
            ],
        }],
    });
    assert_eq!(sent["cardsV2"][0]["card"], new);
    let old = json!([{
        "sections": [{"widgets": [{"keyValue": {"content": "3", "contentMultiline": true}}]}],
    }]);
    assert_eq!(sent["cards"], old);
}

#[test]
fn a_page_instead_of_an_answer_is_no_delivery() {
    let page = "<html>Please log in</html>";
    for (kind, service, part, well) in [
        ("googlechat", GOOGLE, "", "{}"),
        (
            "pagerduty",
            "token: $tok\nfrom: f",
            "pagerduty: {title: t}",
            r#"{"incident": {"id": "i"}}"#,
        ),
        (
            "pagerdutyv2",
            "serviceKeys: {r: k}",
            "pagerdutyv2: {summary: s, severity: info, source: x}",
            r#"{"status": "success"}"#,
        ),
    ] {
        let template = format!("message: m\n{part}");
        for (body, is_sent) in [(page, false), ("", false), ("\"OK\"", false), (well, true)] {
            let (outcome, recorder) = tell(kind, (service, &template), vec![answer(202, body)]);
            assert_eq!(
                outcome == Outcome::Sent,
                is_sent,
                "{kind} {body:?}: {outcome:?}"
            );
            assert_eq!(recorder.requests.len(), 1, "{kind} {body:?}");
        }
    }
}

#[test]
fn a_webhooks_configuration_does_not_set_what_follows_from_url_and_body() {
    let service = "
url: http://hook.example.test
headers:
- {name: host, value: other.example.test}
- {name: Content-Length, value: '99'}
- {name: transfer-encoding, value: chunked}
- {name: X-Token, value: $tok}
";
    let (outcome, recorder) = tell("webhook", (service, "message: m"), vec![answer(200, "")]);
    assert_eq!(outcome, Outcome::Sent);
    let token = ("X-Token".to_owned(), "s3cret".to_owned());
    assert_eq!(recorder.requests[0].headers, [token]);
}

#[test]
fn a_webhook_is_called_again_when_that_may_help_and_when_it_says() {
    let service = "url: http://hook.example.test\nretryMax: 1";
    for (status, retry_after, waits) in [
        (500, None, vec![1]),
        // Only servers that are overloaded say when.
        (500, Some(7), vec![1]),
        (503, Some(7), vec![7]),
        (429, Some(7), vec![7]),
        // Argo CD would wait for an hour.
        (429, Some(3600), vec![60]),
        (429, Some(0), vec![1]),
        (501, None, Vec::new()),
        (404, Some(7), Vec::new()),
    ] {
        let answer = Response {
            retry_after: retry_after.map(Duration::from_secs),
            ..answer(status, "")
        };
        let (outcome, recorder) = tell("webhook", (service, "message: m"), vec![answer]);
        assert!(
            matches!(outcome, Outcome::Failed(_)),
            "{status}: {outcome:?}"
        );
        assert_eq!(recorder.waits, waits, "{status} {retry_after:?}");
        assert_eq!(recorder.requests.len(), waits.len() + 1, "{status}");
    }
}

#[test]
fn a_webhook_is_given_up_after_some_minutes() {
    let service = "
url: http://hook.example.test
retryMax: 20
retryWaitMin: 1000000000000000000
retryWaitMax: 1000000000000000000
";
    let texts = (service, "message: m");
    for (ends_after, waits) in [(usize::MAX, 5), (2, 2)] {
        let (outcome, recorder) = tell_until(ends_after, "webhook", texts, vec![answer(500, "")]);
        let Outcome::Failed(why) = outcome else {
            panic!("{outcome:?}");
        };
        assert_eq!(recorder.waits, vec![60; waits]);
        // Where the process ends, the wait was the last thing.
        let attempts = waits + usize::from(waits == 5);
        assert_eq!(recorder.requests.len(), attempts);
        let told = format!("giving up after {attempts} attempt(s)");
        assert!(why.contains(&told), "{why}");
    }
}

#[test]
fn a_webhook_that_cannot_work_is_not_tried_again_and_again() {
    let url = "url: http://hook.example.test";
    let newline = format!("{url}\nheaders: [{{name: Authorization, value: \"Bearer $tok\\n\"}}]");
    let space = format!("{url}\nheaders: [{{name: X Y, value: v}}]");
    for (service, part, told) in [
        ("headers: []", "", "url is not a URL"),
        ("url: hook.example.test/x", "", "url is not a URL"),
        (
            url,
            "webhook: {webhook: {method: 'a b'}}",
            "\"a b\" is not a method",
        ),
        (
            newline.as_str(),
            "",
            "the header \"Authorization\" has a bad name or value",
        ),
        (
            space.as_str(),
            "",
            "the header \"X Y\" has a bad name or value",
        ),
    ] {
        let template = format!("message: m\n{part}");
        let (outcome, recorder) = tell("webhook", (service, &template), vec![answer(200, "")]);
        let Outcome::Failed(why) = outcome else {
            panic!("{service} {part}: {outcome:?}");
        };
        assert!(why.starts_with(told), "{why}");
        assert!(!why.contains("s3cret"), "{why}");
        assert!(
            recorder.requests.is_empty() && recorder.waits.is_empty(),
            "{told}"
        );
    }
    // Argo CD refuses a URL with the line break that a file of a Secret ends with.
    let service = "url: \"http://hook.example.test/x\\n\"";
    let (outcome, _) = tell("webhook", (service, "message: m"), vec![answer(200, "")]);
    assert_eq!(outcome, Outcome::Sent);
}

/// Argo CD takes a host only.
#[test]
fn opsgenies_address_may_have_its_scheme() {
    for address in ["api.eu.opsgenie.com", "https://api.eu.opsgenie.com/"] {
        let service = format!("apiUrl: {address}\napiKeys: {{r: $tok}}");
        let (outcome, recorder) = tell(
            "opsgenie",
            (&service, "message: m"),
            vec![answer(202, "{}")],
        );
        assert_eq!(outcome, Outcome::Sent);
        assert_eq!(
            recorder.requests[0].url,
            "https://api.eu.opsgenie.com/v2/alerts"
        );
    }
}

/// What `template notify` prints is what Argo CD's prints.
#[test]
fn a_notification_is_written_without_its_empty_fields() {
    let template = "
message: ''
slack: {attachments: '[]'}
github: {status: {state: success}, checkRun: {name: a, output: {title: b}}}
opsgenie: {description: d, details: {a: ''}}
pagerduty: {body: b}
pagerdutyv2: {summary: s}
webhook: {w: {method: POST}}
mattermost: {attachments: ''}
";
    let config = load(&[("template.t", template)]);
    let app = json!({
        "spec": {"source": {"repoURL": "https://github.com/o/r"}},
        "status": {"operationState": {"syncResult": {"revision": "abc"}}},
    });
    let to = Destination {
        service: "console".to_owned(),
        recipient: "stdout".to_owned(),
    };
    let templates = ["t".to_owned()];
    let subject = subject(&config, &app);
    let notification = Notification::render(&subject, &templates, &to, random());
    let mut written = notification.expect("it renders").to_json();
    // Where the repository is found: no text of the notification.
    let github = written["github"].as_object_mut().expect("a part");
    github.retain(|name, _| matches!(name.as_str(), "status" | "checkRun"));
    let expected = json!({
        "slack": {
            "attachments": "[]",
            "deliveryPolicy": "Post",
            "groupingKey": "",
            "notifyBroadcast": false,
        },
        "github": {
            "status": {"state": "success"},
            "checkRun": {"name": "a", "output": {"title": "b"}},
        },
        "opsgenie": {"description": "d", "details": {"a": ""}},
        "pagerduty": {"body": "b", "title": ""},
        "pagerdutyv2": {"severity": "", "source": "", "summary": "s", "url": ""},
        "webhook": {"w": {"body": "", "method": "POST", "path": ""}},
        "mattermost": {},
    });
    assert_eq!(written, expected);
}
