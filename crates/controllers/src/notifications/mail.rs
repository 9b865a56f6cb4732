//! Hands mails over to their server. Main function: [`send`].

use jiff::Timestamp;
use lettre::{
    Address,
    address::Envelope,
    transport::smtp::{
        Error,
        authentication::{Credentials, Mechanism},
        client::{SmtpConnection, TlsParameters},
        extension::ClientId,
    },
};
use std::{net::IpAddr, time::Duration};
use tiphys_notify::send::Mail;

/// How long the server may take to answer.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The port where TLS begins at once.
const SUBMISSIONS: u16 = 465;
/// The port where mails are handed over by default.
const SUBMISSION: u16 = 587;

/// Hands over. TLS begins at once on port 465, and on others if the server offers it. The password
/// is sent over TLS only, or within this host.
///
/// # Errors
/// If the server did not take it. The text has no secrets.
pub(super) fn send(mail: &Mail, now: Timestamp) -> Result<(), String> {
    let envelope = envelope(mail)?;
    let told = |error: Error| format!("{}: {error}", mail.host);
    let tls = TlsParameters::builder(mail.host.clone())
        .dangerous_accept_invalid_certs(mail.insecure)
        .dangerous_accept_invalid_hostnames(mail.insecure)
        .build()
        .map_err(told)?;
    let port = if mail.port == 0 {
        SUBMISSION
    } else {
        mail.port
    };
    let hello = ClientId::default();
    let at_once = (port == SUBMISSIONS).then_some(&tls);
    let server = (mail.host.as_str(), port);
    let mut connection =
        SmtpConnection::connect(server, Some(TIMEOUT), &hello, at_once, None).map_err(told)?;
    if !connection.is_encrypted() && connection.can_starttls() {
        connection.starttls(&tls, &hello).map_err(told)?;
    }
    authenticate(&mut connection, mail)?;
    let sent = connection
        .send(&envelope, &message(mail, now))
        .map_err(told);
    let _ = connection.quit();
    sent.map(drop)
}

/// Tells who sends, if the server wants to know.
fn authenticate(connection: &mut SmtpConnection, mail: &Mail) -> Result<(), String> {
    let mechanisms = [Mechanism::Plain, Mechanism::Login];
    let offered = connection.server_info().get_auth_mechanism(&mechanisms);
    if mail.username.is_empty() || offered.is_none() {
        return Ok(());
    }
    if !connection.is_encrypted() && !is_here(&mail.host) {
        return Err(format!(
            "{} offers no TLS, so the password is not sent",
            mail.host
        ));
    }
    let credentials = Credentials::new(mail.username.clone(), mail.password.clone());
    let answer = connection.auth(&mechanisms, &credentials);
    let refused = |error: Error| format!("{} does not accept the user: {error}", mail.host);
    answer.map(drop).map_err(refused)
}

fn is_here(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

fn envelope(mail: &Mail) -> Result<Envelope, String> {
    let address = |text: &str| {
        let plain = match text.rsplit_once('<') {
            Some((_, rest)) => rest.trim_end().trim_end_matches('>'),
            None => text.trim(),
        };
        plain
            .parse::<Address>()
            .map_err(|error| format!("{text:?} is not an address: {error}"))
    };
    let to: Vec<Address> = mail
        .to
        .iter()
        .map(|to| address(to))
        .collect::<Result<_, _>>()?;
    Envelope::new(Some(address(&mail.from)?), to).map_err(|error| error.to_string())
}

/// The message with its date.
fn message(mail: &Mail, now: Timestamp) -> Vec<u8> {
    let date = now.strftime("%a, %d %b %Y %H:%M:%S +0000");
    let mut message = format!("Date: {date}\r\n").into_bytes();
    message.extend(mail.message());
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mail(from: &str, to: &[&str]) -> Mail {
        Mail {
            host: "mail.example.test".into(),
            port: 25,
            username: String::new(),
            password: String::new(),
            insecure: false,
            from: from.into(),
            to: to.iter().map(|to| (*to).to_owned()).collect(),
            subject: "S".into(),
            body: "b".into(),
            html: false,
        }
    }

    #[test]
    fn addresses_may_have_names() {
        let envelope = envelope(&mail("Argo <cd@example.test>", &["a@b.test"])).expect("addresses");
        let from = envelope.from().map(ToString::to_string);
        assert_eq!(from.as_deref(), Some("cd@example.test"));
        assert!(super::envelope(&mail("x", &["a@b.test"])).is_err());
        assert!(super::envelope(&mail("a@b.test", &["a@b.test\r\nDATA"])).is_err());
    }

    #[test]
    fn a_message_has_its_date() {
        let now = "2024-03-01T10:10:00Z".parse().expect("a time");
        let text = message(&mail("a@b.test", &["c@d.test"]), now);
        let text = String::from_utf8(text).expect("UTF-8");
        assert!(text.starts_with("Date: Fri, 01 Mar 2024 10:10:00 +0000\r\nMime-Version: 1.0\r\n"));
    }
}
