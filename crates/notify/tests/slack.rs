//! Slack: which calls a sequence of messages makes, and what happens when one is refused.

use crate::broken::{load, random, subject};
use serde_json::{Value, json};
use std::{collections::VecDeque, time::Duration};
use tiphys_gocompat::yaml;
use tiphys_notify::send::{Mail, Published, Request, Response, Threads, Transport, World, deliver};
use tiphys_notify::{Destination, Outcome};

/// Answers as it is told to, and then that all is well: channel C1, and t1, t2 … for posts.
#[derive(Default)]
struct Slack {
    calls: Vec<Value>,
    answers: VecDeque<(u16, Option<u64>, &'static str)>,
    posts: usize,
    waits: Vec<u64>,
    /// The process ends after so many waits.
    ends_after: Option<usize>,
}

impl Transport for Slack {
    fn exchange(&mut self, request: &Request) -> Result<Response, String> {
        let (_, method) = request.url.rsplit_once('/').expect("a path");
        let body = String::from_utf8(request.body.clone()).expect("text");
        let mut call = json!({"call": method});
        for (name, value) in body.split('&').filter_map(|pair| pair.split_once('=')) {
            if matches!(name, "channel" | "ts" | "reply_broadcast")
                || name == "thread_ts" && method != "chat.update"
            {
                call[name] = value.into();
            }
        }
        self.calls.push(call);
        let (status, retry_after, error) = self.answers.pop_front().unwrap_or((200, None, ""));
        let body = match error {
            "" => {
                self.posts += usize::from(method == "chat.postMessage");
                json!({"ok": true, "channel": "C1", "ts": format!("t{}", self.posts)})
            }
            error => json!({"ok": false, "error": error}),
        };
        Ok(Response {
            status,
            body: body.to_string().into_bytes(),
            retry_after: retry_after.map(Duration::from_secs),
        })
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
        self.ends_after
            .is_some_and(|waits| self.waits.len() >= waits)
    }
}

struct Talk {
    slack: Slack,
    threads: Threads,
}

impl Talk {
    fn new() -> Self {
        Self {
            slack: Slack::default(),
            threads: Threads::default(),
        }
    }

    fn tell(&mut self, policy: &str, key: &str, channel: &str) -> Outcome {
        let template =
            format!("message: m\nslack: {{groupingKey: '{key}', deliveryPolicy: '{policy}'}}");
        let config = load(&[("service.slack", "token: $tok"), ("template.t", &template)]);
        let app = json!({"metadata": {"name": "shop"}});
        let mut world = World {
            transport: &mut self.slack,
            threads: &mut self.threads,
            now: "2026-01-02T03:04:05Z".parse().expect("a time"),
            random: &mut |bytes| bytes.fill(0),
        };
        let to = Destination {
            service: "slack".to_owned(),
            recipient: channel.to_owned(),
        };
        let templates = ["t".to_owned()];
        deliver(
            &subject(&config, &app),
            &templates,
            &to,
            random(),
            &mut world,
        )
    }

    fn methods(&self) -> Vec<&str> {
        let calls = self.slack.calls.iter();
        calls.filter_map(|call| call["call"].as_str()).collect()
    }
}

#[test]
fn sequences_make_the_calls_that_people_expect() {
    let file = "cases/reports/sets/52-slack-threads/calls.yaml";
    let Some(file) = tiphys_testkit::shared(file) else {
        return;
    };
    let text = std::fs::read_to_string(file).expect("the calls");
    let wanted = yaml::parse_document(text, &yaml::Limits::default(), yaml::Duplicates::LastWins);
    let wanted = wanted.expect("YAML");
    type Messages = &'static [(&'static str, &'static str)];
    let sequences: [(&str, &str, Messages); 6] = [
        ("post_same_key", "Post", &[("a", "ops"); 3]),
        ("update_same_key", "Update", &[("a", "ops"); 3]),
        (
            "post_and_update_same_key",
            "PostAndUpdate",
            &[("a", "ops"); 2],
        ),
        ("update_no_key", "Update", &[("", "ops"); 2]),
        (
            "two_keys",
            "Post",
            &[("a", "ops"), ("b", "ops"), ("a", "ops")],
        ),
        (
            "two_channels",
            "Post",
            &[("a", "ops"), ("a", "dev"), ("a", "ops")],
        ),
    ];
    assert_eq!(
        wanted.as_object().map(|all| all.len()),
        Some(sequences.len())
    );
    for (name, policy, messages) in sequences {
        let mut talk = Talk::new();
        for (key, channel) in messages {
            assert_eq!(talk.tell(policy, key, channel), Outcome::Sent, "{name}");
        }
        assert_eq!(Value::from(talk.slack.calls), wanted[name], "{name}");
    }
}

#[test]
fn a_call_that_comes_too_soon_is_made_again_and_no_other() {
    const TOO_SOON: (u16, Option<u64>, &str) = (429, Some(7), "ratelimited");
    const WELL: (u16, Option<u64>, &str) = (200, None, "");
    let mut talk = Talk::new();
    talk.tell("PostAndUpdate", "a", "ops");
    talk.slack.answers = VecDeque::from([WELL, TOO_SOON, WELL]);
    assert_eq!(talk.tell("PostAndUpdate", "a", "ops"), Outcome::Sent);
    assert_eq!(talk.slack.waits, [7]);
    assert_eq!(
        talk.methods(),
        [
            "chat.postMessage",
            "chat.postMessage",
            "chat.update",
            "chat.update"
        ]
    );

    // It does not wait for ever.
    for (answer, waits) in [
        ((429, None, "x"), vec![1; 4]),
        ((429, Some(61), "x"), Vec::new()),
    ] {
        let mut talk = Talk::new();
        talk.slack.answers = VecDeque::from([answer; 9]);
        let outcome = talk.tell("Post", "a", "ops");
        assert!(matches!(outcome, Outcome::Failed(_)), "{outcome:?}");
        assert_eq!(talk.slack.waits, waits);
    }

    // Nor does it call again when the process ends.
    let mut talk = Talk::new();
    talk.slack.answers = VecDeque::from([TOO_SOON, WELL]);
    talk.slack.ends_after = Some(1);
    let outcome = talk.tell("Post", "a", "ops");
    assert!(matches!(outcome, Outcome::Failed(_)), "{outcome:?}");
    assert_eq!(talk.methods(), ["chat.postMessage"]);
}

#[test]
fn an_update_that_is_lost_tells_nothing_twice() {
    let refused = |error| VecDeque::from([(200, None, error)]);
    // The message is gone: a new one begins the thread.
    let mut talk = Talk::new();
    talk.tell("Update", "a", "ops");
    talk.slack.answers = refused("message_not_found");
    assert_eq!(talk.tell("Update", "a", "ops"), Outcome::Sent);
    talk.tell("Update", "a", "ops");
    assert_eq!(
        talk.methods(),
        [
            "chat.postMessage",
            "chat.update",
            "chat.postMessage",
            "chat.update"
        ]
    );
    assert_eq!(talk.slack.calls[3]["ts"], "t2");

    // Another reason is a failure of this one, which is tried again.
    talk.slack.answers = refused("internal_error");
    let outcome = talk.tell("Update", "a", "ops");
    assert!(matches!(outcome, Outcome::Failed(_)), "{outcome:?}");

    // What was posted is not posted again because of the update behind it.
    let mut talk = Talk::new();
    talk.tell("PostAndUpdate", "a", "ops");
    talk.slack.answers = VecDeque::from([(200, None, ""), (200, None, "internal_error")]);
    assert_eq!(talk.tell("PostAndUpdate", "a", "ops"), Outcome::Sent);
}
