//! AWS Signature Version 4. Pure: the time is an argument. Main type: [`Scope`].

use crate::web::{escape, form};
use hmac::{Hmac, Mac};
use jiff::Timestamp;
use reqwest::Url;
use sha2::{Digest, Sha256};

const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// The signing credentials; they have no Debug and no Display.
#[derive(Clone)]
pub struct Keys {
    pub id: String,
    pub secret: String,
    /// Of temporary credentials.
    pub session: Option<String>,
    /// When they expire, if known.
    pub until: Option<Timestamp>,
}

/// The scope of a signature.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    pub keys: &'a Keys,
    pub region: &'a str,
    pub service: &'a str,
    pub now: Timestamp,
}

/// What is signed of a request. `host` has its port, unless it is the scheme's own; names of headers
/// are in lower case.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    pub method: &'a str,
    pub host: &'a str,
    pub path: &'a str,
    pub headers: &'a [(&'a str, &'a str)],
    pub body: &'a [u8],
}

impl Scope<'_> {
    fn date(&self) -> String {
        self.now.strftime("%Y%m%d").to_string()
    }

    fn time(&self) -> String {
        self.now.strftime("%Y%m%dT%H%M%SZ").to_string()
    }

    fn name(&self) -> String {
        let (date, region, service) = (self.date(), self.region, self.service);
        format!("{date}/{region}/{service}/aws4_request")
    }

    fn signature(&self, canonical: &str) -> String {
        let canonical = hex(&Sha256::digest(canonical));
        let text = format!("{ALGORITHM}\n{}\n{}\n{canonical}", self.time(), self.name());
        let mut key = format!("AWS4{}", self.keys.secret).into_bytes();
        let date = self.date();
        for part in [&date, self.region, self.service, "aws4_request", &text] {
            key = mac(&key, part);
        }
        hex(&key)
    }

    /// A request without body and its signature in its query: the fields, then those of the signature.
    /// Whoever has it can send it, for `seconds`.
    pub fn presigned(&self, request: Request<'_>, fields: &[(&str, &str)], seconds: u32) -> String {
        let (time, seconds) = (self.time(), seconds.to_string());
        let credential = format!("{}/{}", self.keys.id, self.name());
        let (headers, names) = canonical(request.headers.to_vec(), request.host);
        let mut fields = fields.to_vec();
        fields.extend([
            ("X-Amz-Algorithm", ALGORITHM),
            ("X-Amz-Credential", &credential),
            ("X-Amz-Date", &time),
            ("X-Amz-Expires", &seconds),
        ]);
        let session = self.keys.session.as_deref();
        fields.extend(session.map(|token| ("X-Amz-Security-Token", token)));
        fields.push(("X-Amz-SignedHeaders", &names));
        let query = form(&fields);
        let (method, path) = (request.method, request.path);
        let body = hex(&Sha256::digest(request.body));
        let signature = self.signature(&format!(
            "{method}\n{path}\n{query}\n{headers}\n{names}\n{body}"
        ));
        format!("{query}&X-Amz-Signature={}", escape(&signature))
    }

    /// The headers that sign a request without a query.
    pub fn headers(&self, request: Request<'_>) -> Vec<(&'static str, String)> {
        let time = self.time();
        let mut signed = request.headers.to_vec();
        signed.push(("x-amz-date", &time));
        let session = self.keys.session.as_deref();
        signed.extend(session.map(|token| ("x-amz-security-token", token)));
        let (headers, names) = canonical(signed, request.host);
        let (method, path) = (request.method, request.path);
        let body = hex(&Sha256::digest(request.body));
        let signature = self.signature(&format!("{method}\n{path}\n\n{headers}\n{names}\n{body}"));
        let credential = format!("{}/{}", self.keys.id, self.name());
        let authorization = format!(
            "{ALGORITHM} Credential={credential}, SignedHeaders={names}, Signature={signature}"
        );
        let mut headers = vec![("x-amz-date", time), ("authorization", authorization)];
        headers.extend(session.map(|token| ("x-amz-security-token", token.to_owned())));
        headers
    }
}

/// The host of a URL as a client sends it, and so as it is signed.
pub fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// The lines of headers, with the host, in order, and their names.
fn canonical<'a>(mut headers: Vec<(&'a str, &'a str)>, host: &'a str) -> (String, String) {
    headers.push(("host", host));
    headers.sort_unstable();
    let names: Vec<&str> = headers.iter().map(|(name, _)| *name).collect();
    let lines = headers
        .iter()
        .map(|(name, value)| format!("{name}:{}\n", value.trim()))
        .collect();
    (lines, names.join(";"))
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key of any length will do");
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(id: &str, secret: &str, session: Option<&str>) -> Keys {
        Keys {
            id: id.to_owned(),
            secret: secret.to_owned(),
            session: session.map(str::to_owned),
            until: None,
        }
    }

    /// Two cases of the test suite that AWS publishes.
    #[test]
    fn requests_are_signed_as_aws_says() {
        let keys = keys(
            "AKIDEXAMPLE",
            "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
            None,
        );
        let scope = Scope {
            keys: &keys,
            region: "us-east-1",
            service: "service",
            now: "2015-08-30T12:36:00Z".parse().expect("a time"),
        };
        for (method, signature) in [
            (
                "GET",
                "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
            ),
            (
                "POST",
                "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
            ),
        ] {
            let signed = scope.headers(Request {
                method,
                host: "example.amazonaws.com",
                path: "/",
                headers: &[],
                body: b"",
            });
            let expected = format!(
                "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, \
                 SignedHeaders=host;x-amz-date, Signature={signature}"
            );
            let headers = [
                ("x-amz-date", "20150830T123600Z".to_owned()),
                ("authorization", expected),
            ];
            assert_eq!(signed, headers, "{method}");
        }
    }

    /// The signatures come from AWS's own Go library (aws-sdk-go-v2, sts 1.45.6) with these keys at
    /// this time.
    #[test]
    fn urls_are_signed_as_awss_own_library_signs_them() {
        let beginning = "Action=GetCallerIdentity&Version=2011-06-15&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIDEXAMPLE%2F20260102%2F";
        for (region, host, session, signature) in [
            (
                "cn-north-1",
                "sts.cn-north-1.amazonaws.com.cn",
                None,
                "872cea574625ba14e7ed8a718cffa9d3a91afbc3d29a61008ed87705c0c424d6",
            ),
            (
                "eu-west-1",
                "sts.eu-west-1.amazonaws.com",
                Some("ses/sion+token=="),
                "ceba0e1628643b16eea335500875a667d8664a68633fd444216d752411ec1300",
            ),
        ] {
            let keys = keys("AKIDEXAMPLE", "secret/key+1", session);
            let scope = Scope {
                keys: &keys,
                region,
                service: "sts",
                now: "2026-01-02T03:04:05Z".parse().expect("a time"),
            };
            let token = session
                .map(|_| "&X-Amz-Security-Token=ses%2Fsion%2Btoken%3D%3D")
                .unwrap_or_default();
            let expected = format!(
                "{beginning}{region}%2Fsts%2Faws4_request&X-Amz-Date=20260102T030405Z&X-Amz-Expires=60{token}&X-Amz-SignedHeaders=host%3Bx-k8s-aws-id&X-Amz-Signature={signature}"
            );
            let request = Request {
                method: "GET",
                host,
                path: "/",
                headers: &[("x-k8s-aws-id", "my cluster")],
                body: b"",
            };
            let fields = [("Action", "GetCallerIdentity"), ("Version", "2011-06-15")];
            assert_eq!(scope.presigned(request, &fields, 60), expected);
        }
    }
}
