//! X.509 certificates as Go's `encoding/pem` and `crypto/x509` read and name them.
//!
//! Main functions: [`blocks`] finds the certificates of a PEM file, [`Certificate::read`] decodes
//! one.

use sha2::{Digest as _, Sha256};
use x509_parser::{certificate::X509Certificate, pem::parse_x509_pem, prelude::FromDer as _};

const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";

/// Why a text is no certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    #[error("could not decode PEM data from input")]
    Pem,
    #[error("could not parse X509 data from input")]
    X509,
}

/// Go only counts so many names of a certificate,
const MANY_NAMES: usize = 100;
/// and we also so many bytes of them: the host chooses what it presents.
const LONG_NAMES: usize = 4096;

/// Why a certificate is not that of a host. The names in it come as `DnsName("a")` and
/// `IpAddress(1.2.3.4)`.
pub fn wrong_name(presented: &[String], host: &str) -> String {
    let names = |kind: &str| -> Vec<&str> {
        let of = |name: &'_ String| name.starts_with(kind);
        presented
            .iter()
            .filter(|n| of(n))
            .map(|n| n[kind.len()..].trim_matches(['(', ')', '"']))
            .collect()
    };
    let is_address = host.parse::<std::net::IpAddr>().is_ok();
    let names = names(if is_address { "IpAddress" } else { "DnsName" });
    if names.is_empty() {
        return if is_address {
            format!("cannot validate certificate for {host} because it doesn't contain any IP SANs")
        } else {
            format!("certificate is not valid for any names, but wanted to match {host}")
        };
    }
    let bytes: usize = names.iter().map(|name| name.len()).sum();
    if names.len() >= MANY_NAMES || bytes > LONG_NAMES {
        let kind = if is_address { "IP SANs" } else { "names" };
        let count = names.len();
        return format!("certificate is valid for {count} {kind}, but none matched {host}");
    }
    format!("certificate is valid for {}, not {host}", names.join(", "))
}

/// What is shown of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// As `pkix.Name.String()`: `CN=git.example.com,O=Example`.
    pub subject: String,
    /// `RSA`, `ECDSA`, ...; `0` for an algorithm that Go has no name for.
    pub algorithm: &'static str,
    /// SHA-256 of the DER, in hexadecimal.
    pub fingerprint: String,
}

/// The PEM blocks of certificates, each with its markers; what is around them is left out. An
/// unfinished block is no certificate.
pub fn blocks(text: &str) -> Vec<String> {
    let (mut found, mut open) = (Vec::new(), None::<String>);
    for line in text.lines() {
        if open.is_none() && line.starts_with(BEGIN) {
            open = Some(String::new());
        }
        let Some(block) = &mut open else { continue };
        block.push_str(line);
        block.push('\n');
        if line.starts_with(END) {
            found.extend(open.take());
        }
    }
    found
}

impl Certificate {
    /// Decodes the first block of a PEM text.
    pub fn read(pem: &str) -> Result<Self, Invalid> {
        let (_, pem) = parse_x509_pem(pem.as_bytes()).map_err(|_| Invalid::Pem)?;
        let der = pem.contents;
        let (rest, certificate) = X509Certificate::from_der(&der).map_err(|_| Invalid::X509)?;
        if !rest.is_empty() {
            return Err(Invalid::X509);
        }
        Ok(Self {
            subject: subject(&certificate),
            algorithm: algorithm(&certificate),
            fingerprint: hex(&Sha256::digest(&der)),
        })
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn algorithm(certificate: &X509Certificate<'_>) -> &'static str {
    let oid = certificate.public_key().algorithm.algorithm.to_id_string();
    match oid.as_str() {
        "1.2.840.113549.1.1.1" => "RSA",
        "1.2.840.10040.4.1" => "DSA",
        "1.2.840.10045.2.1" => "ECDSA",
        "1.3.101.112" => "Ed25519",
        _ => "0",
    }
}

/// The attributes that Go has fields for, in the order in which it prints their values, and whether
/// there can be several values. Others precede all of them in Go's sequence.
const NAMED: [(&str, &str, bool); 9] = [
    ("2.5.4.6", "C", true),
    ("2.5.4.10", "O", true),
    ("2.5.4.11", "OU", true),
    ("2.5.4.7", "L", true),
    ("2.5.4.8", "ST", true),
    ("2.5.4.9", "STREET", true),
    ("2.5.4.17", "POSTALCODE", true),
    ("2.5.4.3", "CN", false),
    ("2.5.4.5", "SERIALNUMBER", false),
];

fn subject(certificate: &X509Certificate<'_>) -> String {
    let attributes: Vec<(String, String)> = certificate
        .subject()
        .iter_attributes()
        .map(|a| {
            let value = a.as_str().map_or_else(
                |_| String::from_utf8_lossy(a.as_slice()).into_owned(),
                str::to_owned,
            );
            (a.attr_type().to_id_string(), value)
        })
        .collect();
    let is_named = |oid: &str| NAMED.iter().any(|(named, ..)| *named == oid);
    let mut parts: Vec<String> = attributes
        .iter()
        .filter(|(oid, _)| !is_named(oid))
        .map(|(oid, value)| format!("{oid}=#{}", hex(&der_string(value))))
        .collect();
    for (oid, name, many) in NAMED {
        let same = attributes.iter().filter(|(o, _)| o == oid);
        let values: Vec<String> = same
            .map(|(_, v)| format!("{name}={}", escaped(v)))
            .collect();
        match values.last() {
            Some(last) if !many => parts.push(last.clone()),
            Some(_) => parts.push(values.join("+")),
            None => {}
        }
    }
    parts.reverse();
    parts.join(",")
}

/// A value as RFC 2253 writes it.
fn escaped(value: &str) -> String {
    let last = value.chars().count().saturating_sub(1);
    let mut text = String::with_capacity(value.len());
    for (i, c) in value.chars().enumerate() {
        let special = match c {
            ',' | '+' | '"' | '\\' | '<' | '>' | ';' => true,
            ' ' => i == 0 || i == last,
            '#' => i == 0,
            _ => false,
        };
        if special {
            text.push('\\');
        }
        text.push(c);
    }
    text
}

/// A string as Go's `asn1.Marshal` encodes it: a PrintableString where its characters permit that,
/// else a UTF8String.
fn der_string(value: &str) -> Vec<u8> {
    let printable = |b: u8| b.is_ascii_alphanumeric() || b" '()+,-./:=?".contains(&b);
    let tag = if value.bytes().all(printable) {
        0x13
    } else {
        0x0c
    };
    let mut der = vec![tag];
    let length = value.len().to_be_bytes();
    let significant = &length[length.iter().take_while(|b| **b == 0).count()..];
    if value.len() >= 0x80 {
        der.push(0x80 | u8::try_from(significant.len()).expect("at most 8 bytes"));
    }
    match significant {
        [] => der.push(0),
        bytes => der.extend_from_slice(bytes),
    }
    der.extend_from_slice(value.as_bytes());
    der
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DnType, KeyPair};

    fn issued(attributes: &[(DnType, &str)]) -> String {
        let mut params = CertificateParams::new(Vec::new()).expect("parameters");
        params.distinguished_name = rcgen::DistinguishedName::new();
        for (kind, value) in attributes {
            params.distinguished_name.push(kind.clone(), *value);
        }
        let key = KeyPair::generate().expect("a key");
        params.self_signed(&key).expect("a certificate").pem()
    }

    #[test]
    fn many_or_long_names_are_counted() {
        let presented = |count: usize, name: &str| vec![format!("DnsName(\"{name}\")"); count];
        for (names, want) in [
            (
                vec![],
                "certificate is not valid for any names, but wanted to match host",
            ),
            (presented(2, "a"), "certificate is valid for a, a, not host"),
            (
                presented(100, "a"),
                "certificate is valid for 100 names, but none matched host",
            ),
            (
                presented(2, &"a".repeat(3000)),
                "certificate is valid for 2 names, but none matched host",
            ),
        ] {
            assert_eq!(wrong_name(&names, "host"), want);
        }
        let all = vec!["IpAddress(10.0.0.1)".to_owned(); 100];
        assert_eq!(
            wrong_name(&all[..1], "10.0.0.2"),
            "certificate is valid for 10.0.0.1, not 10.0.0.2"
        );
        assert_eq!(
            wrong_name(&all, "10.0.0.2"),
            "certificate is valid for 100 IP SANs, but none matched 10.0.0.2"
        );
    }

    #[test]
    fn subjects_are_named_as_go_names_them() {
        let cases: [(&[(DnType, &str)], &str); 4] = [
            (
                &[(DnType::CommonName, "git.example.com")],
                "CN=git.example.com",
            ),
            (
                &[
                    (DnType::CountryName, "DE"),
                    (DnType::CommonName, "a, b"),
                    (DnType::OrganizationName, " #x "),
                ],
                r"CN=a\, b,O=\ #x\ ,C=DE",
            ),
            (&[], ""),
            // Go has no name for this one and prints its DER.
            (
                &[
                    (DnType::CustomDnType(vec![1, 2, 3]), "a@b"),
                    (DnType::CommonName, "n"),
                ],
                "CN=n,1.2.3=#0c03614062",
            ),
        ];
        for (attributes, want) in cases {
            let read = Certificate::read(&issued(attributes)).expect("it reads");
            assert_eq!(read.subject, want);
            assert_eq!(read.algorithm, "ECDSA");
            assert_eq!(read.fingerprint.len(), 64);
        }
    }

    #[test]
    fn a_file_is_split_into_its_certificates() {
        let pem = issued(&[(DnType::CommonName, "a")]).replace("\r\n", "\n");
        let file = format!("text\n{pem}\nmore\n{pem}{BEGIN}\nunfinished");
        assert_eq!(blocks(&file), [pem.clone(), pem]);
        assert!(blocks("nothing").is_empty());
    }

    #[test]
    fn what_is_no_certificate_is_refused() {
        let wrap = |body: &str| format!("{BEGIN}\n{body}\n{END}\n");
        assert_eq!(Certificate::read("nope"), Err(Invalid::Pem));
        assert_eq!(Certificate::read(&wrap("!!!")), Err(Invalid::Pem));
        assert_eq!(Certificate::read(&wrap("bm9wZQ==")), Err(Invalid::X509));
    }

    #[test]
    fn strings_have_gos_tags_and_lengths() {
        assert_eq!(der_string("ab"), [0x13, 2, b'a', b'b']);
        assert_eq!(der_string(""), [0x13, 0]);
        assert_eq!(der_string(&"x".repeat(200))[..3], [0x13, 0x81, 200]);
        assert_eq!(der_string(&"@".repeat(300))[..4], [0x0c, 0x82, 1, 44]);
    }
}
