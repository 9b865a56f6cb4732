//! Mails.

use super::{Sent, World, upstream};
use crate::{Destination, Notification, Service};
use base64::{Engine, engine::general_purpose::STANDARD};

/// A mail and the server it is handed to. The password makes it a secret: it is not printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Mail {
    pub host: String,
    pub port: u16,
    /// Empty: the server is not told who sends.
    pub username: String,
    pub password: String,
    /// Whether any certificate is taken.
    pub insecure: bool,
    pub from: String,
    pub to: Vec<String>,
    pub subject: String,
    pub body: String,
    pub html: bool,
}

impl Mail {
    /// The message without the header Date, with lines that end with CR and LF.
    pub fn message(&self) -> Vec<u8> {
        let kind = if self.html { "html" } else { "plain" };
        let headers = [
            ("Mime-Version", "1.0".to_owned()),
            ("From", clean(&self.from)),
            ("To", clean(&self.to.join(", "))),
            ("Subject", encoded(&clean(&self.subject))),
            ("Content-Type", format!("text/{kind}; charset=UTF-8")),
            ("Content-Transfer-Encoding", "quoted-printable".to_owned()),
        ];
        let mut message = String::new();
        for (name, value) in headers {
            message.push_str(&format!("{name}: {value}\r\n"));
        }
        message.push_str("\r\n");
        message.push_str(&quoted_printable(&self.body));
        message.into_bytes()
    }
}

/// A value of a header: what would end it is taken out.
fn clean(value: &str) -> String {
    value
        .chars()
        .filter(|c| !matches!(c, '\r' | '\n'))
        .collect()
}

/// A value of a header that may have other characters than those of ASCII.
fn encoded(value: &str) -> String {
    if value.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return value.to_owned();
    }
    let mut words = Vec::new();
    let mut word = String::new();
    for c in value.chars() {
        let mut part = String::new();
        for byte in c.encode_utf8(&mut [0; 4]).bytes() {
            match byte {
                b' ' => part.push('_'),
                b'!'..=b'~' if !matches!(byte, b'=' | b'?' | b'_') => part.push(char::from(byte)),
                other => part.push_str(&format!("={other:02X}")),
            }
        }
        // An encoded word has at most 75 characters.
        if word.len() + part.len() > 63 {
            words.push(std::mem::take(&mut word));
        }
        word.push_str(&part);
    }
    words.push(word);
    let words = words.iter().map(|word| format!("=?UTF-8?q?{word}?="));
    words.collect::<Vec<_>>().join("\r\n ")
}

/// Longest line of a body.
const LINE: usize = 76;

fn quoted_printable(text: &str) -> String {
    let mut out = String::new();
    let text = text.replace("\r\n", "\n");
    for (index, line) in text.split('\n').enumerate() {
        if index > 0 {
            out.push_str("\r\n");
        }
        let (mut length, bytes) = (0, line.as_bytes());
        for (at, byte) in bytes.iter().enumerate() {
            let last = at + 1 == bytes.len();
            let plain = (b'!'..=b'~').contains(byte) && *byte != b'='
                || matches!(byte, b' ' | b'\t') && !last;
            let part = if plain {
                char::from(*byte).to_string()
            } else {
                format!("={byte:02X}")
            };
            let room = if last { LINE } else { LINE - 1 };
            if length + part.len() > room {
                out.push_str("=\r\n");
                length = 0;
            }
            length += part.len();
            out.push_str(&part);
        }
    }
    out
}

pub(super) fn send(
    service: &Service,
    notification: &Notification,
    to: &Destination,
    world: &mut World<'_>,
) -> Sent {
    let part = notification.part("email");
    let body = part.map_or("", |part| part.text("body"));
    let mail = Mail {
        host: service.text("host").to_owned(),
        port: u16::try_from(service.integer("port")).unwrap_or_default(),
        username: service.text("username").to_owned(),
        password: service.text("password").to_owned(),
        insecure: service.flag("insecure_skip_verify"),
        from: service.text("from").to_owned(),
        to: to
            .recipient
            .split(',')
            .map(|one| one.trim().to_owned())
            .collect(),
        subject: part.map_or("", |part| part.text("subject")).to_owned(),
        body: if body.is_empty() {
            &notification.message
        } else {
            body
        }
        .to_owned(),
        html: service.flag("html"),
    };
    world.transport.mail(&mail).or_else(upstream)
}

impl Mail {
    /// The initial response of AUTH PLAIN.
    pub fn plain_auth(&self) -> String {
        STANDARD.encode(format!("\0{}\0{}", self.username, self.password))
    }
}
