//! AWS Signature Version 4, as far as STS needs it. Pure: the time is an argument.

use super::super::web::{escape, form};
use hmac::{Hmac, Mac};
use jiff::Timestamp;
use sha2::{Digest, Sha256};

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
/// The signed headers: the host, and the cluster that the token is for.
const PRESIGNED: &str = "host;x-k8s-aws-id";

/// The signing credentials.
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
pub struct Scope<'a> {
    pub keys: &'a Keys,
    pub region: &'a str,
    pub host: &'a str,
    pub now: Timestamp,
}

impl Scope<'_> {
    fn date(&self) -> String {
        self.now.strftime("%Y%m%d").to_string()
    }

    fn time(&self) -> String {
        self.now.strftime("%Y%m%dT%H%M%SZ").to_string()
    }

    fn name(&self) -> String {
        format!("{}/{}/sts/aws4_request", self.date(), self.region)
    }

    fn signature(&self, canonical: &str) -> String {
        let (time, scope) = (self.time(), self.name());
        let text = format!(
            "{ALGORITHM}\n{time}\n{scope}\n{}",
            hex(&Sha256::digest(canonical))
        );
        let mut key = format!("AWS4{}", self.keys.secret).into_bytes();
        for part in [
            self.date().as_str(),
            self.region,
            "sts",
            "aws4_request",
            &text,
        ] {
            key = mac(&key, part);
        }
        hex(&key)
    }

    /// The query of a presigned `GetCallerIdentity` request: anyone who sends it learns who signed
    /// it. It is valid for 15 minutes.
    pub fn presigned(&self, cluster: &str) -> String {
        let (time, credential) = (self.time(), format!("{}/{}", self.keys.id, self.name()));
        let mut fields = vec![
            ("Action", "GetCallerIdentity"),
            ("Version", "2011-06-15"),
            ("X-Amz-Algorithm", ALGORITHM),
            ("X-Amz-Credential", &credential),
            ("X-Amz-Date", &time),
            // EKS requires it, but nothing enforces it.
            ("X-Amz-Expires", "60"),
        ];
        fields.extend(
            self.keys
                .session
                .as_deref()
                .map(|token| ("X-Amz-Security-Token", token)),
        );
        fields.push(("X-Amz-SignedHeaders", PRESIGNED));
        let query = form(&fields);
        let headers = format!("host:{}\nx-k8s-aws-id:{}\n", self.host, cluster.trim());
        let signature = self.signature(&format!(
            "GET\n/\n{query}\n{headers}\n{PRESIGNED}\n{}",
            hex(&Sha256::digest(""))
        ));
        format!("{query}&X-Amz-Signature={}", escape(&signature))
    }

    /// The headers that sign a form.
    pub fn headers(&self, body: &str) -> Vec<(&'static str, String)> {
        let time = self.time();
        let mut canonical = format!(
            "content-type:application/x-www-form-urlencoded\nhost:{}\nx-amz-date:{time}\n",
            self.host
        );
        let mut names = "content-type;host;x-amz-date".to_owned();
        let mut headers = vec![("x-amz-date", time)];
        if let Some(token) = &self.keys.session {
            canonical.push_str(&format!("x-amz-security-token:{token}\n"));
            names.push_str(";x-amz-security-token");
            headers.push(("x-amz-security-token", token.clone()));
        }
        let signature = self.signature(&format!(
            "POST\n/\n\n{canonical}\n{names}\n{}",
            hex(&Sha256::digest(body))
        ));
        let credential = format!("{}/{}", self.keys.id, self.name());
        headers.push((
            "authorization",
            format!(
                "{ALGORITHM} Credential={credential}, SignedHeaders={names}, Signature={signature}"
            ),
        ));
        headers
    }
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
            let session = session.map(str::to_owned);
            let keys = Keys {
                id: "AKIDEXAMPLE".into(),
                secret: "secret/key+1".into(),
                session: session.clone(),
                until: None,
            };
            let scope = Scope {
                keys: &keys,
                region,
                host,
                now: "2026-01-02T03:04:05Z".parse().expect("a time"),
            };
            let token = session
                .map(|_| "&X-Amz-Security-Token=ses%2Fsion%2Btoken%3D%3D")
                .unwrap_or_default();
            let expected = format!(
                "{beginning}{region}%2Fsts%2Faws4_request&X-Amz-Date=20260102T030405Z&X-Amz-Expires=60{token}&X-Amz-SignedHeaders=host%3Bx-k8s-aws-id&X-Amz-Signature={signature}"
            );
            assert_eq!(scope.presigned("my cluster"), expected);
        }
    }
}
