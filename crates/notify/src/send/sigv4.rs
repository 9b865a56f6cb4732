//! AWS Signature Version 4 of requests with a body. Pure: the time is an argument. Main type:
//! [`Signer`].

use super::http::Request;
use hmac::{Hmac, Mac};
use jiff::Timestamp;
use sha2::{Digest, Sha256};

const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// Who signs, for which service.
pub(super) struct Signer<'a> {
    pub id: &'a str,
    pub secret: &'a str,
    pub region: &'a str,
    pub service: &'a str,
    pub now: Timestamp,
}

impl Signer<'_> {
    /// The request with the headers that sign it. `host`, with its port, and `path` are those of its
    /// URL, which has no query.
    pub fn signed(&self, request: Request, host: &str, path: &str) -> Request {
        let time = self.now.strftime("%Y%m%dT%H%M%SZ").to_string();
        let date = self.now.strftime("%Y%m%d").to_string();
        let mut headers: Vec<(String, &str)> = request
            .headers
            .iter()
            .map(|(name, value)| (name.to_lowercase(), value.trim()))
            .collect();
        headers.push(("host".to_owned(), host));
        headers.push(("x-amz-date".to_owned(), &time));
        headers.sort();
        let names: Vec<&str> = headers.iter().map(|(name, _)| name.as_str()).collect();
        let names = names.join(";");
        let lines: String = headers
            .iter()
            .map(|(name, value)| format!("{name}:{value}\n"))
            .collect();
        let method = &request.method;
        let body = hex(&Sha256::digest(&request.body));
        let canonical = format!("{method}\n{path}\n\n{lines}\n{names}\n{body}");
        let scope = format!("{date}/{}/{}/aws4_request", self.region, self.service);
        let canonical = hex(&Sha256::digest(canonical));
        let text = format!("{ALGORITHM}\n{time}\n{scope}\n{canonical}");
        let mut key = format!("AWS4{}", self.secret).into_bytes();
        for part in [&date, self.region, self.service, "aws4_request", &text] {
            key = mac(&key, part);
        }
        let (id, signature) = (self.id, hex(&key));
        let authorization = format!(
            "{ALGORITHM} Credential={id}/{scope}, SignedHeaders={names}, Signature={signature}"
        );
        request
            .header("X-Amz-Date", time)
            .header("Authorization", authorization)
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

    /// Two cases of the test suite that AWS publishes.
    #[test]
    fn requests_are_signed_as_aws_says() {
        let signer = Signer {
            id: "AKIDEXAMPLE",
            secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
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
            let request = Request::new(method, "https://example.amazonaws.com/");
            let signed = signer.signed(request, "example.amazonaws.com", "/");
            let expected = format!(
                "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, \
                 SignedHeaders=host;x-amz-date, Signature={signature}"
            );
            let headers = [
                ("X-Amz-Date".to_owned(), "20150830T123600Z".to_owned()),
                ("Authorization".to_owned(), expected),
            ];
            assert_eq!(signed.headers, headers, "{method}");
        }
    }
}
