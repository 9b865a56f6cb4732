//! A transport that records what is sent and answers as the services do.

use serde_json::{Value as Json, json};
use std::{collections::BTreeMap, time::Duration};
use tiphys_gocompat::url::Url;
use tiphys_notify::send::{Mail, Published, Request, Response, Transport};

#[derive(Default)]
pub struct Recorder {
    /// The answers that the case has.
    pub answers: Vec<Json>,
    pub requests: Vec<Json>,
    pub mails: Vec<Json>,
}

impl Transport for Recorder {
    fn exchange(&mut self, request: &Request) -> Result<Response, String> {
        self.requests.push(described(request));
        let own = self.answers.iter().find(|answer| {
            let wanted = answer["match"].as_str().unwrap_or_default();
            request.url.contains(wanted)
        });
        let (status, body) = match own {
            Some(answer) => (
                u16::try_from(answer["status"].as_u64().unwrap_or(200)).expect("a status"),
                answer["body"].as_str().unwrap_or_default().to_owned(),
            ),
            None => (200, usual(&request.method, &request.url)),
        };
        Ok(Response {
            status,
            body: body.into_bytes(),
            ..Response::default()
        })
    }

    fn mail(&mut self, mail: &Mail) -> Result<(), String> {
        let message = String::from_utf8(mail.message()).expect("a mail is UTF-8");
        let (headers, body) = message.split_once("\r\n\r\n").expect("a blank line");
        let headers: BTreeMap<&str, &str> = headers
            .lines()
            .filter_map(|line| line.split_once(": "))
            .collect();
        let to: Vec<String> = mail.to.iter().map(|to| format!("RCPT TO:<{to}>")).collect();
        let mut told = json!({
            "mail_from": format!("MAIL FROM:<{}> BODY=8BITMIME", mail.from),
            "rcpt_to": to,
            "headers": headers,
            "body": body,
        });
        if !mail.username.is_empty() {
            told["auth"] = format!("AUTH PLAIN {}", mail.plain_auth()).into();
        }
        self.mails.push(told);
        Ok(())
    }

    fn publish(&mut self, _: &Published) -> Result<(), String> {
        Err("no messages".into())
    }

    fn wait(&mut self, _: Duration) {}
}

/// The answer of a service that takes what it gets.
fn usual(method: &str, url: &str) -> String {
    let slack = "{\"ok\":true,\"channel\":\"C0123\",\"ts\":\"1700000000.000100\"}";
    for (part, answer) in [
        ("slack", slack),
        ("teams.example", "1"),
        ("telegram", "{\"ok\":true,\"result\":{}}"),
        ("access_tokens", "{\"token\":\"ghs_x\"}"),
        ("/pulls", "[{\"number\":5}]"),
        (
            "/login",
            "{\"status\":\"success\",\"data\":{\"authToken\":\"t\",\"userId\":\"u\"}}",
        ),
        ("chat.postMessage", "{\"success\":true}"),
        ("pushover", "{\"status\":1}"),
    ] {
        if url.contains(part) {
            return answer.to_owned();
        }
    }
    let list = url.contains("/comments") || url.contains("/deployments");
    match method {
        "GET" if list => "[]".into(),
        _ if url.ends_with("/deployments") => "{\"id\":77}".into(),
        _ => "{}".into(),
    }
}

/// A request as the cases write it.
fn described(request: &Request) -> Json {
    let mut url = Url::parse(request.url.as_bytes()).expect("a URL");
    if url.path.is_empty() {
        url.path = b"/".to_vec();
    }
    let text = String::from_utf8(url.write()).expect("a URL is UTF-8");
    let (front, query) = text.split_once('?').unwrap_or((&text, ""));
    let mut told = json!({"method": request.method, "url": front});
    if !query.is_empty() {
        told["query"] = query.into();
    }
    let headers: BTreeMap<String, String> = request.headers.iter().cloned().collect();
    if !headers.is_empty() {
        told["headers"] = json!(headers);
    }
    let body = String::from_utf8(request.body.clone()).expect("a body is UTF-8");
    if headers
        .get("Content-Type")
        .is_some_and(|kind| kind.contains("urlencoded"))
    {
        told["form"] = form(&body);
    } else if !body.is_empty() {
        told["body"] = body.into();
    }
    told
}

fn form(body: &str) -> Json {
    let mut fields: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for pair in body.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').expect("name=value");
        fields.entry(plain(name)).or_default().push(plain(value));
    }
    json!(fields)
}

fn plain(text: &str) -> String {
    let text = text.replace('+', " ");
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, next)) = rest.split_first() {
        if *first == b'%' {
            let hex = std::str::from_utf8(&next[..2]).expect("two digits");
            bytes.push(u8::from_str_radix(hex, 16).expect("hexadecimal digits"));
            rest = &next[2..];
        } else {
            bytes.push(*first);
            rest = next;
        }
    }
    String::from_utf8(bytes).expect("UTF-8")
}
