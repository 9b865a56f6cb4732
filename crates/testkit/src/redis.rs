//! A small server that speaks the protocol of Redis: values, channels, and a sentinel's answer. Main
//! type: [`Redis`].

use flate2::read::GzDecoder;
use serde_json::Value;
use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

/// The content of a server, and the commands it received.
#[derive(Default)]
pub struct Kept {
    pub values: BTreeMap<String, Vec<u8>>,
    pub seconds: BTreeMap<String, String>,
    /// Every command except those that read, set or remove values.
    pub asked: Vec<String>,
    /// How often each key was set.
    pub sets: BTreeMap<String, usize>,
    /// As a sentinel: the master that it knows.
    pub master: Option<SocketAddr>,
    /// Channels or patterns with those who listen.
    listeners: Vec<(String, TcpStream)>,
}

/// One content, which can be served at several addresses. Cheap to clone.
#[derive(Clone, Default)]
pub struct Redis(Arc<Mutex<Kept>>);

/// A port that is served until this is dropped.
pub struct Serving {
    pub address: SocketAddr,
    is_over: Arc<AtomicBool>,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        // The thread that accepts sees the end with the next connection.
        let _ = TcpStream::connect(self.address);
        for stream in self.open.lock().expect("no panic").drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Redis {
    /// Serves on this port of the loopback address, or on any (0).
    pub fn serve(&self, port: u16) -> Serving {
        let listener = TcpListener::bind(("127.0.0.1", port)).expect("a port");
        let serving = Serving {
            address: listener.local_addr().expect("an address"),
            is_over: Arc::default(),
            open: Arc::default(),
        };
        let (redis, is_over) = (self.clone(), serving.is_over.clone());
        let open = serving.open.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if is_over.load(Ordering::SeqCst) {
                    break;
                }
                let kept = stream.try_clone().expect("a stream");
                open.lock().expect("no panic").push(kept);
                let redis = redis.clone();
                thread::spawn(move || redis.talk(stream));
            }
        });
        serving
    }

    pub fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().expect("no panic")
    }

    /// A value that is packed JSON.
    pub fn json(&self, key: &str) -> Option<Value> {
        let kept = self.kept();
        let mut text = String::new();
        GzDecoder::new(kept.values.get(key)?.as_slice())
            .read_to_string(&mut text)
            .expect("gzip");
        serde_json::from_str(&text).ok()
    }

    fn talk(&self, stream: TcpStream) -> Option<()> {
        let mut writer = stream.try_clone().ok()?;
        let mut stream = BufReader::new(stream);
        loop {
            let count = number(&mut stream)?;
            let mut words = Vec::new();
            for _ in 0..count {
                let mut word = vec![0; number(&mut stream)? + 2];
                stream.read_exact(&mut word).ok()?;
                word.truncate(word.len() - 2);
                words.push(word);
            }
            // Under the lock: a message must not come between the parts of an answer.
            let mut kept = self.kept();
            let answer = kept.answer(&words, &writer);
            writer.write_all(&answer).ok()?;
        }
    }
}

impl Kept {
    fn answer(&mut self, words: &[Vec<u8>], writer: &TcpStream) -> Vec<u8> {
        let text = |n: usize| String::from_utf8_lossy(&words[n]).into_owned();
        let command = text(0).to_uppercase();
        let answer = match command.as_str() {
            // Then go-redis speaks as to an old server; any other answer ends its connection.
            "HELLO" => "-ERR unknown command 'HELLO'\r\n".to_owned(),
            "SENTINEL" => self.master_of(&text(2)),
            "GET" => return bulk(self.values.get(&text(1)).map(Vec::as_slice)),
            "SCAN" => return self.keys(&text(3)),
            "SETEX" => {
                self.values.insert(text(1), words[3].clone());
                self.seconds.insert(text(1), text(2));
                *self.sets.entry(text(1)).or_default() += 1;
                "+OK\r\n".to_owned()
            }
            "DEL" => format!(
                ":{}\r\n",
                usize::from(self.values.remove(&text(1)).is_some())
            ),
            "EXPIRE" => format!(":{}\r\n", usize::from(self.values.contains_key(&text(1)))),
            "PUBLISH" => {
                self.asked.push(format!("PUBLISH {}", text(1)));
                format!(":{}\r\n", self.publish(&text(1), &words[2]))
            }
            "SUBSCRIBE" | "PSUBSCRIBE" => {
                let writer = writer.try_clone().expect("a stream");
                self.listeners.push((text(1), writer));
                return array(&[command.to_lowercase().as_bytes(), &words[1]], Some(1));
            }
            _ => {
                let all: Vec<String> = (0..words.len()).map(text).collect();
                self.asked.push(all.join(" "));
                "+OK\r\n".to_owned()
            }
        };
        answer.into_bytes()
    }

    fn master_of(&self, name: &str) -> String {
        let Some(master) = self.master.filter(|_| name == "main") else {
            return "*-1\r\n".to_owned();
        };
        let (host, port) = (master.ip().to_string(), master.port().to_string());
        let parts = [host.as_bytes(), port.as_bytes()];
        String::from_utf8_lossy(&array(&parts, None)).into_owned()
    }

    /// All keys that begin as a pattern does, at once.
    fn keys(&self, pattern: &str) -> Vec<u8> {
        let beginning = pattern.trim_end_matches('*');
        let keys = self.values.keys().filter(|key| key.starts_with(beginning));
        let keys: Vec<&[u8]> = keys.map(String::as_bytes).collect();
        [b"*2\r\n$1\r\n0\r\n", array(&keys, None).as_slice()].concat()
    }

    fn publish(&mut self, channel: &str, message: &[u8]) -> usize {
        let heard = |(pattern, stream): &mut (String, TcpStream)| {
            let parts: Vec<&[u8]> = match pattern.split_once('*') {
                Some((start, end)) if channel.starts_with(start) && channel.ends_with(end) => {
                    vec![b"pmessage", pattern.as_bytes(), channel.as_bytes(), message]
                }
                None if pattern == channel => vec![b"message", channel.as_bytes(), message],
                _ => return false,
            };
            stream.write_all(&array(&parts, None)).is_ok()
        };
        self.listeners
            .iter_mut()
            .map(heard)
            .filter(|heard| *heard)
            .count()
    }
}

fn bulk(value: Option<&[u8]>) -> Vec<u8> {
    let Some(value) = value else {
        return b"$-1\r\n".to_vec();
    };
    [format!("${}\r\n", value.len()).as_bytes(), value, b"\r\n"].concat()
}

/// Texts, and perhaps a number after them.
fn array(parts: &[&[u8]], number: Option<usize>) -> Vec<u8> {
    let count = parts.len() + usize::from(number.is_some());
    let mut all = format!("*{count}\r\n").into_bytes();
    parts.iter().for_each(|part| all.extend(bulk(Some(part))));
    all.extend(
        number
            .map(|n| format!(":{n}\r\n"))
            .unwrap_or_default()
            .into_bytes(),
    );
    all
}

/// The number of a line such as `*3` or `$5`.
fn number(stream: &mut BufReader<TcpStream>) -> Option<usize> {
    let mut line = String::new();
    stream.read_line(&mut line).ok().filter(|n| *n > 0)?;
    line.trim_end().get(1..)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The clients of Argo CD begin with it, and give up on any answer but this or a map.
    #[test]
    fn a_newer_protocol_is_refused() {
        let served = Redis::default().serve(0);
        let mut stream = TcpStream::connect(served.address).expect("a connection");
        let asked = b"*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n";
        stream.write_all(asked).expect("it is sent");
        let mut line = String::new();
        let mut answer = BufReader::new(stream);
        answer.read_line(&mut line).expect("an answer");
        assert!(line.starts_with("-ERR"), "{line}");
    }
}
