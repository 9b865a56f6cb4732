//! TCP connections to the API server, through a proxy if the environment names one. Main function:
//! [`tcp`].
//!
//! `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, in either case: `http://` proxies by
//! CONNECT, `socks5://` ones by SOCKS. Which one is used is decided as for clusters.

use super::Connection;
use hyper_util::client::proxy::matcher::Intercept;
use std::{io, time::Duration};
use tiphys_cluster::connect::environment_proxy;
use tiphys_repo::net;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

const PATIENCE: Duration = Duration::from_secs(30);
/// Maximum size of a proxy's response before the tunnel begins, in bytes.
const LONGEST_ANSWER: usize = 16 << 10;

/// Opens a stream to the server.
pub async fn tcp(c: &Connection) -> io::Result<TcpStream> {
    let scheme = if c.plaintext { "http" } else { "https" };
    let address: Option<http::Uri> = format!("{scheme}://{}/", c.server).parse().ok();
    match address.as_ref().and_then(environment_proxy) {
        Some(proxy) => through(&c.server, &proxy).await,
        None => net::tcp(&c.server).await,
    }
}

async fn through(server: &str, proxy: &Intercept) -> io::Result<TcpStream> {
    let (host, scheme) = (
        proxy.uri().host().unwrap_or_default(),
        proxy.uri().scheme_str().unwrap_or_default().to_owned(),
    );
    let usual = if scheme.starts_with("socks") {
        1080
    } else {
        80
    };
    let place = format!("{host}:{}", proxy.uri().port_u16().unwrap_or(usual));
    let failed = |e: io::Error| io::Error::new(e.kind(), format!("proxy {place}: {e}"));
    let tunnel = async {
        let mut stream = net::tcp(&place).await?;
        match scheme.as_str() {
            "http" => connect(&mut stream, server, proxy).await?,
            "socks5" | "socks5h" => socks(&mut stream, server, proxy).await?,
            other => {
                return Err(io::Error::other(format!(
                    "a proxy with the scheme {other} is not supported; http and socks5 are"
                )));
            }
        }
        Ok(stream)
    };
    let late = |_| {
        io::Error::new(
            io::ErrorKind::TimedOut,
            format!("proxy {place}: i/o timeout"),
        )
    };
    timeout(PATIENCE, tunnel)
        .await
        .map_err(late)?
        .map_err(failed)
}

/// HTTP's CONNECT.
async fn connect(stream: &mut TcpStream, server: &str, proxy: &Intercept) -> io::Result<()> {
    let mut request = format!("CONNECT {server} HTTP/1.1\r\nHost: {server}\r\n");
    if let Some(value) = proxy.basic_auth().and_then(|v| v.to_str().ok()) {
        request += &format!("Proxy-Authorization: {value}\r\n");
    }
    stream.write_all((request + "\r\n").as_bytes()).await?;
    let mut answer = Vec::new();
    // One byte at a time, because what follows belongs to the tunnel.
    while !answer.ends_with(b"\r\n\r\n") {
        if answer.len() >= LONGEST_ANSWER {
            return Err(io::Error::other("the answer to CONNECT is too long"));
        }
        answer.push(stream.read_u8().await?);
    }
    let first = String::from_utf8_lossy(&answer)
        .lines()
        .next()
        .unwrap_or_default()
        .to_owned();
    let ok = first
        .split(' ')
        .nth(1)
        .is_some_and(|code| code.len() == 3 && code.starts_with('2'));
    if ok {
        Ok(())
    } else {
        Err(io::Error::other(format!("CONNECT was refused: {first}")))
    }
}

/// SOCKS version 5 with a host name, so that the proxy resolves it.
async fn socks(stream: &mut TcpStream, server: &str, proxy: &Intercept) -> io::Result<()> {
    let refused = |what: &str| io::Error::other(format!("SOCKS: {what}"));
    let credentials = proxy.raw_auth();
    stream
        .write_all(if credentials.is_some() {
            &[5, 2, 0, 2]
        } else {
            &[5, 1, 0]
        })
        .await?;
    let mut answer = [0; 2];
    stream.read_exact(&mut answer).await?;
    match (answer, credentials) {
        ([5, 0], _) => {}
        ([5, 2], Some((user, password))) => {
            let (Ok(user_length), Ok(length)) =
                (u8::try_from(user.len()), u8::try_from(password.len()))
            else {
                return Err(refused("user or password is too long"));
            };
            let login = [
                &[1, user_length],
                user.as_bytes(),
                &[length],
                password.as_bytes(),
            ]
            .concat();
            stream.write_all(&login).await?;
            stream.read_exact(&mut answer).await?;
            if answer[1] != 0 {
                return Err(refused("the credentials were refused"));
            }
        }
        _ => return Err(refused("no way to log in that both know")),
    }
    let (host, port) = server
        .rsplit_once(':')
        .and_then(|(h, p)| Some((h.trim_matches(['[', ']']), p.parse::<u16>().ok()?)))
        .ok_or_else(|| refused("no port"))?;
    let length = u8::try_from(host.len()).map_err(|_| refused("the name is too long"))?;
    stream
        .write_all(&[&[5, 1, 0, 3, length], host.as_bytes(), &port.to_be_bytes()].concat())
        .await?;
    let mut head = [0; 4];
    stream.read_exact(&mut head).await?;
    if head[1] != 0 {
        return Err(refused(&format!(
            "the connection was refused, reply {}",
            head[1]
        )));
    }
    let rest = match head[3] {
        1 => 4,
        3 => usize::from(stream.read_u8().await?),
        4 => 16,
        _ => return Err(refused("an address of an unknown type")),
    };
    stream.read_exact(&mut vec![0; rest + 2]).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper_util::client::proxy::matcher::Matcher;
    use tokio::net::TcpListener;

    fn named(matcher: Matcher, url: &'static str) -> Intercept {
        let found = matcher.intercept(&http::Uri::from_static(url));
        found.expect("a proxy")
    }

    /// A proxy that records its request and sends a word through the tunnel.
    async fn proxy(answer: &'static [&'static [u8]]) -> (String, tokio::task::JoinHandle<Vec<u8>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound").to_string();
        let asked = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let mut heard = Vec::new();
            for part in answer {
                let mut buffer = [0; 1024];
                let n = stream.read(&mut buffer).await.expect("a question");
                heard.extend_from_slice(&buffer[..n]);
                stream.write_all(part).await.expect("it is heard");
            }
            heard
        });
        (address, asked)
    }

    async fn word(stream: &mut TcpStream) -> String {
        let mut text = String::new();
        stream.read_to_string(&mut text).await.expect("text");
        text
    }

    #[tokio::test]
    async fn proxies_are_gone_through() {
        let (address, asked) = proxy(&[b"HTTP/1.1 200 OK\r\n\r\nhello"]).await;
        let matcher = Matcher::builder()
            .https(format!("http://u:p@{address}"))
            .build();
        let proxy_of_it = named(matcher, "https://cd.example.test");
        let mut stream = through("cd.example.test:443", &proxy_of_it)
            .await
            .expect("a tunnel");
        assert_eq!(word(&mut stream).await, "hello");
        let heard = String::from_utf8(asked.await.expect("it ended")).expect("text");
        assert!(
            heard.starts_with("CONNECT cd.example.test:443 HTTP/1.1\r\n")
                && heard.contains("Proxy-Authorization: Basic dTpw\r\n"),
            "{heard}"
        );

        let (address, asked) = proxy(&[&[5, 0], b"\x05\0\0\x01\0\0\0\0\0\0hello"]).await;
        let matcher = Matcher::builder()
            .all(format!("socks5://{address}"))
            .build();
        let proxy_of_it = named(matcher, "http://cd.example.test");
        let mut stream = through("cd.example.test:80", &proxy_of_it)
            .await
            .expect("a tunnel");
        assert_eq!(word(&mut stream).await, "hello");
        assert_eq!(
            asked.await.expect("it ended"),
            [&[5, 1, 0, 5, 1, 0, 3, 15][..], b"cd.example.test", &[0, 80]].concat()
        );

        let (address, _asked) = proxy(&[b"HTTP/1.1 403 Forbidden\r\n\r\n"]).await;
        let matcher = Matcher::builder().all(format!("http://{address}")).build();
        let proxy_of_it = named(matcher, "https://cd.example.test");
        let error = through("cd.example.test:443", &proxy_of_it)
            .await
            .expect_err("refused")
            .to_string();
        assert!(
            error.contains(&address) && error.contains("403 Forbidden"),
            "{error}"
        );
    }
}
