//! A real NATS server on loopback, of Debian's `nats-server`. Main type: [`NatsServer`].

use std::{
    io::{BufRead, BufReader, Read as _, Write as _},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
};

/// A running server; it ends when this is dropped.
pub struct NatsServer {
    process: Child,
    port: u16,
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl NatsServer {
    /// With a configuration, such as its users. `None`: its program is not here, and the test is
    /// skipped.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start_or_skip(dir: &Path, config: &str) -> Option<Self> {
        if Command::new("nats-server").arg("-v").output().is_err() {
            crate::skip("nats-server", "there is no nats-server here");
            return None;
        }
        let (port, file) = (crate::free_port(), dir.join("nats.conf"));
        std::fs::write(&file, config).expect("a file");
        let process = Command::new("nats-server")
            .args(["-a", "127.0.0.1", "-p", &port.to_string(), "-c"])
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the server starts");
        crate::eventually(crate::PATIENCE, "a server that answers", || {
            TcpStream::connect(("127.0.0.1", port)).map_err(|e| e.to_string())
        });
        Some(Self { process, port })
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Listens to all subjects as a user, who may.
    ///
    /// # Panics
    /// If it is refused.
    pub fn listen(&self, user: &str, password: &str) -> Subscription {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("a connection");
        stream
            .set_read_timeout(Some(crate::PATIENCE))
            .expect("a time limit");
        let connect = format!(
            "CONNECT {{\"user\":\"{user}\",\"pass\":\"{password}\",\"headers\":true,\
             \"verbose\":false}}\r\nSUB > 1\r\nPING\r\n"
        );
        stream.write_all(connect.as_bytes()).expect("written");
        let mut subscription = Subscription(BufReader::new(stream));
        while subscription.line() != "PONG" {}
        subscription
    }
}

/// What a listener gets.
pub struct Subscription(BufReader<TcpStream>);

impl Subscription {
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("a line");
        assert!(!line.starts_with("-ERR") && !line.is_empty(), "{line}");
        line.trim_end().to_owned()
    }

    /// The next message: its subject, and its headers and text as they were sent.
    ///
    /// # Panics
    /// If none comes.
    pub fn message(&mut self) -> (String, String) {
        loop {
            let line = self.line();
            let mut words = line.split(' ');
            if !matches!(words.next(), Some("MSG" | "HMSG")) {
                continue;
            }
            let subject = words.next().unwrap_or_default().to_owned();
            let length: Option<usize> = words.next_back().and_then(|size| size.parse().ok());
            let mut text = vec![0; length.expect("a size") + 2];
            self.0.read_exact(&mut text).expect("the message");
            text.truncate(text.len() - 2);
            return (subject, String::from_utf8(text).expect("text"));
        }
    }
}
