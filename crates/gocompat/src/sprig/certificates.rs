//! Private keys and certificates.
//!
//! Main function: [`table`]. Keys are generated from the caller's random bytes. That is expensive
//! and charged accordingly, so that a render can create only a few hundred.

use super::args::{Out, fails, text_of};
use super::encodings::base64_decoded;
use super::{Host, Sources};
use crate::template::{Call, Error, Function, INT, LIST, Named, Object, Type, Value};
use base64::{Engine, engine::general_purpose::STANDARD};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType, SerialNumber,
};
use rsa::{
    RsaPrivateKey,
    pkcs1::{DecodeRsaPrivateKey, EncodeRsaPrivateKey},
    pkcs8::{EncodePrivateKey, LineEnding},
    rand_core::{CryptoRng, Error as RandomError, RngCore, impls},
};
use std::{rc::Rc, time::Duration};

static CERTIFICATE: Named = Named {
    name: "sprig.certificate",
    underlying: None,
};
const PAIR: Type = Type::Named(&CERTIFICATE);
/// Steps charged for an RSA key of 2048 bits.
const SLOW: u64 = 2_000_000;
/// Steps charged for parsing keys and certificates and for a signature.
const SIGNED: u64 = SLOW / 20;
/// The PKCS #8 prefix of an Ed25519 key.
const ED25519: &[u8] = &[
    0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20,
];

/// The SEC 1 prefixes of the two parts of a P-256 key, including the name of the curve.
const P256: (&[u8], &[u8]) = (
    &[0x30, 0x77, 2, 1, 1, 4, 0x20],
    &[
        0xa0, 10, 6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7, 0xa1, 0x44, 3, 0x42, 0,
    ],
);

pub(super) const fn table<H: Host>() -> [(&'static str, Function); 8] {
    const NAMED: [Type; 6] = [Type::String, LIST, LIST, INT, PAIR, Type::String];
    const SELF: &[Type] = &[Type::String, LIST, LIST, INT];
    const SELF_WITH_KEY: &[Type] = &[Type::String, LIST, LIST, INT, Type::String];
    const BY_OTHER: &[Type] = &[Type::String, LIST, LIST, INT, PAIR];
    const BY_OTHER_WITH_KEY: &[Type] = &NAMED;
    [
        (
            "genPrivateKey",
            Function::new(&[Type::String], private_key::<H>),
        ),
        (
            "buildCustomCert",
            Function::new(&[Type::String, Type::String], given),
        ),
        (
            "genCA",
            Function::new(&[Type::String, INT], |call| authority::<H>(call, None)),
        ),
        (
            "genCAWithKey",
            Function::new(&[Type::String, INT, Type::String], |call| {
                authority::<H>(call, Some(2))
            }),
        ),
        (
            "genSelfSignedCert",
            Function::new(SELF, |call| signed::<H>(call, None, None)),
        ),
        (
            "genSelfSignedCertWithKey",
            Function::new(SELF_WITH_KEY, |call| signed::<H>(call, None, Some(4))),
        ),
        (
            "genSignedCert",
            Function::new(BY_OTHER, |call| signed::<H>(call, Some(4), None)),
        ),
        (
            "genSignedCertWithKey",
            Function::new(BY_OTHER_WITH_KEY, |call| {
                signed::<H>(call, Some(4), Some(5))
            }),
        ),
    ]
}

/// A certificate and its key as PEM.
struct Pair {
    cert: String,
    key: String,
}

impl Pair {
    fn value(cert: String, key: String) -> Value {
        Value::Object(Rc::new(Self { cert, key }))
    }
}

impl Object for Pair {
    fn go_type(&self) -> Type {
        PAIR
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        vec![
            ("Cert", self.cert.as_str().into()),
            ("Key", self.key.as_str().into()),
        ]
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

/// The caller's random bytes, in the form that the key crates need.
struct Chance<'s>(&'s mut Sources);

impl RngCore for Chance<'_> {
    fn next_u32(&mut self) -> u32 {
        impls::next_u32_via_fill(self)
    }

    fn next_u64(&mut self) -> u64 {
        impls::next_u64_via_fill(self)
    }

    fn fill_bytes(&mut self, bytes: &mut [u8]) {
        self.0.fill(bytes);
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), RandomError> {
        self.0.fill(bytes);
        Ok(())
    }
}

impl CryptoRng for Chance<'_> {}

fn pem(kind: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let lines: Vec<&str> = (0..text.len())
        .step_by(64)
        .map(|at| &text[at..text.len().min(at + 64)])
        .collect();
    format!(
        "-----BEGIN {kind}-----\n{}\n-----END {kind}-----\n",
        lines.join("\n")
    )
}

/// The kind and content of the first PEM block.
fn from_pem(text: &str) -> Option<(&str, Vec<u8>)> {
    let (_, rest) = text.split_once("-----BEGIN ")?;
    let (kind, rest) = rest.split_once("-----")?;
    let (body, _) = rest.split_once(&format!("-----END {kind}-----"))?;
    base64_decoded(body.trim().as_bytes())
        .ok()
        .map(|der| (kind, der))
}

fn rsa_key<H: Host>(call: &mut Call<'_>, bits: usize) -> Result<RsaPrivateKey, Error> {
    call.budget().steps(SLOW * (bits / 2048).pow(3) as u64)?;
    let key = RsaPrivateKey::new(&mut Chance(call.host::<H>()?.sources()), bits);
    key.map_err(|e| Error::function(format!("error generating rsa key: {e}")))
}

fn rsa_pem(key: &RsaPrivateKey) -> Result<String, Error> {
    key.to_pkcs1_pem(LineEnding::LF)
        .map(|pem| pem.to_string())
        .map_err(|e| Error::function(e.to_string()))
}

fn private_key<H: Host>(call: &mut Call<'_>) -> Out {
    let kind = call.text(0)?.into_owned();
    let text = match kind.as_str() {
        "" | "rsa" => rsa_pem(&rsa_key::<H>(call, 4096)?)?,
        "ed25519" => {
            let mut seed = [0; 32];
            call.host::<H>()?.sources().fill(&mut seed);
            pem("PRIVATE KEY", &[ED25519, &seed].concat())
        }
        "ecdsa" => {
            call.budget().steps(SIGNED)?;
            let key = p256::SecretKey::random(&mut Chance(call.host::<H>()?.sources()));
            let public = key.public_key().to_sec1_bytes();
            pem(
                "EC PRIVATE KEY",
                &[P256.0, &key.to_bytes(), P256.1, &public].concat(),
            )
        }
        "dsa" => return fails("keys of DSA are not made here"),
        other => format!("Unknown type {other}"),
    };
    Ok(text.into())
}

/// Parses a key given as PEM.
fn read_key(text: &str) -> Result<KeyPair, String> {
    let (kind, der) = from_pem(text).ok_or("no PEM data in input")?;
    let pkcs8 = match kind {
        "PRIVATE KEY" => {
            return KeyPair::try_from(der).map_err(|e| format!("decoding PEM as PKCS#8: {e}"));
        }
        "RSA PRIVATE KEY" => {
            let key = RsaPrivateKey::from_pkcs1_der(&der)
                .map_err(|e| format!("parsing RSA private key from PEM: {e}"))?;
            key.to_pkcs8_der()
        }
        "EC PRIVATE KEY" => {
            let key = p256::SecretKey::from_sec1_der(&der)
                .map_err(|e| format!("parsing EC private key from PEM: {e}"))?;
            key.to_pkcs8_der()
        }
        other => {
            return Err(match other.strip_suffix(" PRIVATE KEY") {
                Some(algorithm) => format!("invalid private key type {algorithm}"),
                None => format!("no private key data in PEM block of type {other}"),
            });
        }
    };
    let pkcs8 = pkcs8.map_err(|e| e.to_string())?;
    KeyPair::try_from(pkcs8.as_bytes()).map_err(|e| e.to_string())
}

/// The key in an argument, or a new one; with its PEM.
fn key<H: Host>(call: &mut Call<'_>, given: Option<usize>) -> Result<(KeyPair, String), Error> {
    if let Some(index) = given {
        let text = call.text(index)?.into_owned();
        return read_key(&text)
            .map(|pair| (pair, text))
            .map_err(|e| Error::function(format!("parsing private key: {e}")));
    }
    let key = rsa_key::<H>(call, 2048)?;
    let text = rsa_pem(&key)?;
    read_key(&text)
        .map(|pair| (pair, text))
        .map_err(Error::function)
}

/// The common parameters of all certificates.
fn params<H: Host>(
    call: &mut Call<'_>,
    name: &str,
    days: i64,
    names: Vec<SanType>,
) -> Result<CertificateParams, Error> {
    let mut params = CertificateParams::default();
    let sources = call.host::<H>()?.sources();
    let mut serial = [0; 16];
    sources.fill(&mut serial);
    serial[0] &= 0x7f;
    // From 1970 to the end of the year 9999.
    let at = |second: i64| {
        let seconds = second.clamp(0, 253_402_300_799).unsigned_abs();
        rcgen::date_time_ymd(1970, 1, 1) + Duration::from_secs(seconds)
    };
    let now = sources.now.as_second();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.serial_number = Some(SerialNumber::from_slice(&serial));
    params.not_before = at(now);
    params.not_after = at(now.saturating_add(days.saturating_mul(86_400)));
    params.subject_alt_names = names;
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![
        KeyUsagePurpose::DigitalSignature,
        KeyUsagePurpose::KeyEncipherment,
    ];
    params.extended_key_usages = vec![
        ExtendedKeyUsagePurpose::ServerAuth,
        ExtendedKeyUsagePurpose::ClientAuth,
    ];
    Ok(params)
}

fn created(result: Result<rcgen::Certificate, rcgen::Error>, key: String) -> Out {
    let cert = result.map_err(|e| Error::function(format!("error creating certificate: {e}")))?;
    Ok(Pair::value(pem("CERTIFICATE", cert.der()), key))
}

fn authority<H: Host>(call: &mut Call<'_>, given: Option<usize>) -> Out {
    let (name, days) = (call.text(0)?.into_owned(), call.integer(1)?);
    call.budget().steps(SIGNED)?;
    let (pair, text) = key::<H>(call, given)?;
    let mut params = params::<H>(call, &name, days, Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages.push(KeyUsagePurpose::KeyCertSign);
    created(params.self_signed(&pair), text)
}

/// The IP addresses and names in arguments 1 and 2.
fn alternatives(call: &Call<'_>) -> Result<Vec<SanType>, Error> {
    let mut names = Vec::new();
    for name in call.list(2)?.items() {
        let Value::String(text) = &name else {
            return fails(format!(
                "error processing alternate dns name: {} is not a string",
                shown(&name)?
            ));
        };
        let name = text
            .to_str()
            .into_owned()
            .try_into()
            .map_err(|e| Error::function(format!("error creating certificate: {e}")))?;
        names.push(SanType::DnsName(name));
    }
    for address in call.list(1)?.items() {
        let Value::String(text) = &address else {
            return fails(format!(
                "error parsing ip: {} is not a string",
                shown(&address)?
            ));
        };
        let parsed = text
            .to_str()
            .parse()
            .map_err(|_| Error::function(format!("error parsing ip: {}", text.to_str())))?;
        names.push(SanType::IpAddress(parsed));
    }
    Ok(names)
}

fn shown(value: &Value) -> Result<String, Error> {
    text_of(value).map(|text| String::from_utf8_lossy(&text).into_owned())
}

fn signed<H: Host>(call: &mut Call<'_>, issuer: Option<usize>, given: Option<usize>) -> Out {
    let (name, days) = (call.text(0)?.into_owned(), call.integer(3)?);
    call.budget().steps(SIGNED)?;
    let (pair, text) = key::<H>(call, given)?;
    let issuer = issuer
        .map(|index| read_issuer(call.arg(index)))
        .transpose()?;
    let names = alternatives(call)?;
    let mut params = params::<H>(call, &name, days, names)?;
    match issuer {
        None => created(params.self_signed(&pair), text),
        Some(issuer) => {
            params.use_authority_key_identifier_extension = true;
            created(params.signed_by(&pair, &issuer), text)
        }
    }
}

fn read_issuer(value: &Value) -> Result<Issuer<'static, KeyPair>, Error> {
    let authority = match value {
        Value::Object(object) => object.as_any().downcast_ref::<Pair>(),
        _ => None,
    };
    let Some(authority) = authority else {
        return fails("not a certificate");
    };
    let Some((_, der)) = from_pem(&authority.cert) else {
        return fails("unable to decode certificate");
    };
    let key = read_key(&authority.key)
        .map_err(|e| Error::function(format!("error parsing private key: {e}")))?;
    Issuer::from_ca_cert_der(&der.into(), key).map_err(|e| {
        Error::function(format!(
            "error parsing certificate: decodedSignerCert.Bytes: {e}"
        ))
    })
}

/// A certificate and key given in base64.
fn given(call: &mut Call<'_>) -> Out {
    call.budget().steps(SIGNED)?;
    let (cert, key) = (
        base64_decoded(call.string(0)?.as_bytes()),
        base64_decoded(call.string(1)?.as_bytes()),
    );
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let cert = text(cert.map_err(|_| Error::function("unable to decode base64 certificate"))?);
    let key = text(key.map_err(|_| Error::function("unable to decode base64 private key"))?);
    let Some((_, der)) = from_pem(&cert) else {
        return fails("unable to decode certificate");
    };
    let pair =
        read_key(&key).map_err(|e| Error::function(format!("error parsing private key: {e}")))?;
    Issuer::from_ca_cert_der(&der.into(), pair).map_err(|e| {
        Error::function(format!("error parsing certificate: decodedCert.Bytes: {e}"))
    })?;
    Ok(Pair::value(cert, key))
}
