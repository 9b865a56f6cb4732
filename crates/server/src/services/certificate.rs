//! certificate.CertificateService: SSH host keys and TLS certificates of repository servers.
//!
//! [`listed`], [`added`] and [`removed`] decide on what was read; [`changed`] reads, lets one of
//! them decide and writes, again if somebody else wrote in the meantime.

use crate::{
    ApiError,
    access::{Action, Create, Delete, Get, Guard, Resource, Trusted, TrustedChange, Writes},
    ports::StoreError,
    state::State,
};
use std::{net::Ipv6Addr, sync::Arc};
use tiphys_api::{
    repository::{RepositoryCertificate, RepositoryCertificateList},
    rpc::certificate::{RepositoryCertificateCreateRequest, RepositoryCertificateQuery},
};
use tiphys_gocompat::{
    known_hosts::Entry,
    path_match,
    x509::{self, Certificate},
};

const ATTEMPTS: usize = 5;

pub async fn list(
    state: Arc<State>,
    guard: Guard,
    q: RepositoryCertificateQuery,
) -> Result<RepositoryCertificateList, ApiError> {
    let trusted = state.reach.trusted::<Get>(&guard).await?;
    Ok(list_of(listed(&trusted, &q)))
}

pub async fn create(
    state: Arc<State>,
    guard: Guard,
    q: RepositoryCertificateCreateRequest,
) -> Result<RepositoryCertificateList, ApiError> {
    let wanted = q
        .certificates
        .ok_or_else(|| ApiError::invalid("missing payload in request"))?
        .items;
    let created = changed::<Create>(&state, &guard, |trusted| {
        let added = added(trusted, &wanted, q.upsert)?;
        if added.replaces {
            guard.ask(Resource::Certificates, Action::Update, "", "")?;
        }
        Ok((added.items, added.change))
    });
    Ok(list_of(created.await?))
}

pub async fn delete(
    state: Arc<State>,
    guard: Guard,
    q: RepositoryCertificateQuery,
) -> Result<RepositoryCertificateList, ApiError> {
    let removed = changed::<Delete>(&state, &guard, |trusted| Ok(removed(trusted, &q)));
    Ok(list_of(removed.await?))
}

fn list_of(items: Vec<RepositoryCertificate>) -> RepositoryCertificateList {
    RepositoryCertificateList {
        items,
        ..Default::default()
    }
}

type Decision = (Vec<RepositoryCertificate>, TrustedChange);

async fn changed<A: Writes>(
    state: &State,
    guard: &Guard,
    decide: impl Fn(&Trusted) -> Result<Decision, ApiError>,
) -> Result<Vec<RepositoryCertificate>, ApiError> {
    let mut attempt = 1;
    loop {
        let trusted = state.reach.trusted::<A>(guard).await?;
        let (items, change) = decide(&trusted)?;
        match state.reach.change_trusted(&trusted, change).await {
            Err(StoreError::Conflict(_)) if attempt < ATTEMPTS => attempt += 1,
            written => return Ok(written.map(|()| items)?),
        }
    }
}

/// The lines of `known_hosts`. Those that are no entry, such as comments, stay where they are.
struct KnownHosts(Vec<Line>);

enum Line {
    Entry(Entry),
    Other(String),
}

impl KnownHosts {
    fn read(text: &str) -> Self {
        let line = |line: &str| {
            Entry::read(line).map_or_else(|| Line::Other(line.to_owned()), Line::Entry)
        };
        Self(text.lines().map(line).collect())
    }

    fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.0.iter().filter_map(|line| match line {
            Line::Entry(entry) => Some(entry),
            Line::Other(_) => None,
        })
    }

    /// The entry for this host and type of key.
    fn entry_mut(&mut self, host: &str, kind: &str) -> Option<&mut Entry> {
        let mut entries = self.0.iter_mut().filter_map(|line| match line {
            Line::Entry(entry) => Some(entry),
            Line::Other(_) => None,
        });
        entries.find(|entry| entry.host == host && entry.kind == kind)
    }

    fn text(&self) -> String {
        let line = |line: &Line| match line {
            Line::Entry(entry) => format!("{entry}\n"),
            Line::Other(text) => format!("{text}\n"),
        };
        self.0.iter().map(line).collect()
    }
}

/// What a request selects by host, type and type of key.
struct Selector<'a>(&'a RepositoryCertificateQuery);

impl Selector<'_> {
    fn host(&self, name: &str) -> bool {
        let pattern = &self.0.host_name_pattern;
        // Brackets are part of names here: `[ssh.example.com]:2222`.
        let pattern = pattern.replace('[', r"\[").replace(']', r"\]");
        pattern.is_empty() || path_match::matches(&pattern, name).unwrap_or(false)
    }

    fn types(&self, names: &[&str]) -> bool {
        let wanted = self.0.cert_type.as_str();
        ["", "*"].contains(&wanted) || names.contains(&wanted)
    }

    /// The type of the key counts for SSH only, as in Argo CD.
    fn ssh(&self, entry: &Entry) -> bool {
        let kind = self.0.cert_sub_type.as_str();
        self.types(&["ssh"])
            && self.host(&entry.host)
            && (["", "*"].contains(&kind) || kind == entry.kind)
    }

    fn https(&self, server: &str) -> bool {
        self.types(&["https", "tls"]) && self.host(server)
    }
}

fn of_entry(entry: &Entry) -> RepositoryCertificate {
    RepositoryCertificate {
        server_name: entry.host.clone(),
        cert_type: "ssh".into(),
        cert_sub_type: entry.kind.clone(),
        ..Default::default()
    }
}

fn of_server(server: &str) -> RepositoryCertificate {
    RepositoryCertificate {
        server_name: server.to_owned(),
        cert_type: "https".into(),
        ..Default::default()
    }
}

/// The certificates of a stored text; a text without any is shown as one that is invalid.
fn blocks(pem: &str) -> Vec<String> {
    let blocks = x509::blocks(pem);
    if blocks.is_empty() {
        vec![pem.to_owned()]
    } else {
        blocks
    }
}

/// What is stored, without keys and certificates.
fn listed(trusted: &Trusted, q: &RepositoryCertificateQuery) -> Vec<RepositoryCertificate> {
    let selector = Selector(q);
    let hosts = KnownHosts::read(trusted.known_hosts());
    let entries = hosts.entries().filter(|entry| selector.ssh(entry));
    let ssh = entries.map(|entry| RepositoryCertificate {
        cert_info: match entry.host_key() {
            Ok(key) => format!("SHA256:{}", key.fingerprint()),
            Err(e) => e.to_string(),
        },
        ..of_entry(entry)
    });
    let servers = trusted.certificates().iter();
    let https = servers
        .filter(|(server, _)| selector.https(server))
        .flat_map(|(server, pem)| blocks(pem).into_iter().map(move |block| (server, block)))
        .map(|(server, block)| {
            let (cert_sub_type, cert_info) = match Certificate::read(&block) {
                Ok(read) => (read.algorithm.to_lowercase(), read.subject),
                Err(e) => ("invalid".to_owned(), e.to_string()),
            };
            RepositoryCertificate {
                cert_sub_type,
                cert_info,
                ..of_server(server)
            }
        });
    ssh.chain(https).collect()
}

/// What a request adds.
#[derive(Default)]
struct Added {
    /// What is new or different.
    items: Vec<RepositoryCertificate>,
    change: TrustedChange,
    /// Whether something that was there is replaced.
    replaces: bool,
}

/// Nothing is added if one of the items is refused.
fn added(
    trusted: &Trusted,
    wanted: &[RepositoryCertificate],
    upsert: bool,
) -> Result<Added, ApiError> {
    let mut hosts = KnownHosts::read(trusted.known_hosts());
    let mut added = Added::default();
    for item in wanted {
        match item.cert_type.as_str() {
            "ssh" => added.ssh(&mut hosts, item, upsert)?,
            "https" => added.https(trusted, item, upsert)?,
            other => {
                return Err(ApiError::plain(format!(
                    "unknown certificate type: {other}"
                )));
            }
        }
    }
    Ok(added)
}

impl Added {
    fn ssh(
        &mut self,
        hosts: &mut KnownHosts,
        item: &RepositoryCertificate,
        upsert: bool,
    ) -> Result<(), ApiError> {
        check_host(without_port(&item.server_name))?;
        let entry = Entry {
            host: item.server_name.clone(),
            kind: item.cert_sub_type.clone(),
            key: text(item).trim().to_owned(),
        };
        let known = hosts.entry_mut(&entry.host, &entry.kind);
        let is_new = known.is_none();
        if known.as_ref().is_some_and(|known| known.key != entry.key) && !upsert {
            return Err(ApiError::plain(format!(
                "key for '{}' (subtype: '{}') already exists, and upsert was not specified",
                entry.host, entry.kind
            )));
        }
        let key = entry
            .host_key()
            .map_err(|e| ApiError::plain(e.to_string()))?;
        match known {
            Some(known) if known.key == entry.key => return Ok(()),
            Some(known) => *known = entry,
            None => hosts.0.push(Line::Entry(entry)),
        }
        self.replaces |= !is_new;
        self.items.push(RepositoryCertificate {
            cert_info: key.fingerprint(),
            ..item.clone()
        });
        self.change.known_hosts = Some(hosts.text());
        Ok(())
    }

    fn https(
        &mut self,
        trusted: &Trusted,
        item: &RepositoryCertificate,
        upsert: bool,
    ) -> Result<(), ApiError> {
        let server = &item.server_name;
        check_host(server)?;
        let pem = text(item);
        let earlier = self.change.certificates.get(server).cloned().flatten();
        let known = earlier.or_else(|| trusted.certificates().get(server).cloned());
        if known.as_ref().is_some_and(|known| *known != pem) && !upsert {
            return Err(ApiError::plain(format!(
                "TLS certificate for server '{server}' already exists, and upsert was not specified"
            )));
        }
        let blocks = x509::blocks(&pem);
        if blocks.is_empty() {
            return Err(ApiError::plain("no valid PEM data received"));
        }
        for block in &blocks {
            Certificate::read(block).map_err(|e| ApiError::plain(e.to_string()))?;
        }
        if known.as_ref() == Some(&pem) {
            return Ok(());
        }
        self.replaces |= known.is_some();
        self.items
            .extend(blocks.into_iter().map(|block| RepositoryCertificate {
                cert_data: block.into_bytes(),
                ..of_server(server)
            }));
        self.change.certificates.insert(server.clone(), Some(pem));
        Ok(())
    }
}

/// What is selected, with keys and certificates, and their removal.
fn removed(trusted: &Trusted, q: &RepositoryCertificateQuery) -> Decision {
    let selector = Selector(q);
    let (mut items, mut change) = (Vec::new(), TrustedChange::default());
    let mut hosts = KnownHosts::read(trusted.known_hosts());
    let taken = hosts
        .0
        .extract_if(.., |line| matches!(line, Line::Entry(e) if selector.ssh(e)));
    for line in taken {
        let Line::Entry(entry) = line else { continue };
        items.push(RepositoryCertificate {
            cert_data: entry.key.clone().into_bytes(),
            ..of_entry(&entry)
        });
    }
    if !items.is_empty() {
        change.known_hosts = Some(hosts.text());
    }
    let servers = trusted.certificates().iter();
    for (server, pem) in servers.filter(|(server, _)| selector.https(server)) {
        items.extend(blocks(pem).into_iter().map(|block| RepositoryCertificate {
            cert_data: block.into_bytes(),
            ..of_server(server)
        }));
        change.certificates.insert(server.clone(), None);
    }
    (items, change)
}

fn text(item: &RepositoryCertificate) -> String {
    String::from_utf8_lossy(&item.cert_data).into_owned()
}

/// `host` of `[host]:port`.
fn without_port(name: &str) -> &str {
    let bracketed = name
        .strip_prefix('[')
        .and_then(|rest| rest.rsplit_once("]:"));
    match bracketed {
        Some((host, port)) if is_number(port) => host,
        _ => name,
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn check_host(host: &str) -> Result<(), ApiError> {
    let address = host.split_once('%').map_or(host, |(address, _)| address);
    if is_host_name(host) || (address.parse::<Ipv6Addr>().is_ok() && !host.contains(' ')) {
        return Ok(());
    }
    Err(ApiError::plain(format!(
        "invalid hostname in request: {host}"
    )))
}

/// Labels of letters, digits, `-` and `_`; a dot may end the name.
fn is_host_name(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name.split('.').enumerate().all(|(i, label)| {
        let inner = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        match label.as_bytes() {
            [only] => only.is_ascii_alphanumeric(),
            [first, middle @ .., last] => {
                (first.is_ascii_alphanumeric() || *first == b'_')
                    && middle.len() <= 61
                    && middle.iter().all(|b| inner(*b))
                    && (last.is_ascii_alphanumeric() || (*last == b'_' && i == 0))
            }
            [] => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_names_are_argo_cds() {
        for name in [
            "git.example.com",
            "git",
            "1.2.3.4",
            "g_t-1.example.com.",
            "_a_",
            "::1",
            "fe80::1%eth0",
        ] {
            assert!(check_host(name).is_ok(), "{name}");
        }
        for name in ["", "bad host", "-a.b", "a..b", "a,b", "x/y", "*", "::1 x"] {
            assert!(check_host(name).is_err(), "{name}");
        }
        assert_eq!(without_port("[a.b]:22"), "a.b");
        assert_eq!(without_port("[a.b]:x"), "[a.b]:x");
        assert_eq!(without_port("[::1]:22"), "::1");
    }

    #[test]
    fn other_lines_of_known_hosts_stay() {
        let text = "# ours\na ssh-rsa AAAA\n\n@revoked b ssh-rsa BBBB\n";
        let mut hosts = KnownHosts::read(text);
        assert_eq!(hosts.text(), text);
        hosts.entry_mut("a", "ssh-rsa").expect("it is there").key = "CCCC".into();
        assert_eq!(hosts.text(), text.replace("AAAA", "CCCC"));
    }
}
