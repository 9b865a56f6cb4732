//! A server that speaks as much of Redis' protocol as Argo CD's programs and ours need. Main type:
//! [`Redis`].

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex, PoisonError},
    thread,
};

type Values = Arc<Mutex<BTreeMap<String, Vec<u8>>>>;

/// Serves on a loopback port until the program ends; values have no lifetime.
#[derive(Clone, Debug)]
pub struct Redis {
    address: SocketAddr,
    values: Values,
}

impl Redis {
    /// # Panics
    /// If no port can be opened.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let values = Values::default();
        let kept = Arc::clone(&values);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let kept = Arc::clone(&kept);
                thread::spawn(move || talk(&stream, &kept));
            }
        });
        Self { address, values }
    }

    /// `host:port`.
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// The values by their keys, as they were sent.
    pub fn values(&self) -> BTreeMap<String, Vec<u8>> {
        let kept = self.values.lock();
        kept.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Until the connection ends.
fn talk(stream: &TcpStream, values: &Values) -> Option<()> {
    let (mut out, mut stream) = (stream, BufReader::new(stream));
    loop {
        let count = number(&mut stream)?;
        let mut words = Vec::new();
        for _ in 0..count {
            let mut word = vec![0; usize::try_from(number(&mut stream)?).ok()? + 2];
            stream.read_exact(&mut word).ok()?;
            word.truncate(word.len() - 2);
            words.push(word);
        }
        out.write_all(&answer(&words, values)).ok()?;
    }
}

/// The number of a line such as `*3` or `$5`.
fn number(stream: &mut BufReader<&TcpStream>) -> Option<u32> {
    let mut line = String::new();
    stream.read_line(&mut line).ok().filter(|n| *n > 0)?;
    line.trim_end().get(1..)?.parse().ok()
}

fn answer(words: &[Vec<u8>], values: &Values) -> Vec<u8> {
    let text = |n: usize| {
        let word = words.get(n).map(Vec::as_slice).unwrap_or_default();
        String::from_utf8_lossy(word).into_owned()
    };
    let word = |n: usize| words.get(n).cloned().unwrap_or_default();
    let mut values = values.lock().unwrap_or_else(PoisonError::into_inner);
    match text(0).to_uppercase().as_str() {
        "GET" => match values.get(&text(1)) {
            Some(value) => {
                let mut answer = format!("${}\r\n", value.len()).into_bytes();
                answer.extend_from_slice(value);
                answer.extend_from_slice(b"\r\n");
                answer
            }
            None => b"$-1\r\n".to_vec(),
        },
        "SET" => {
            let is_new_only = words.iter().skip(3).any(|w| w.eq_ignore_ascii_case(b"nx"));
            if is_new_only && values.contains_key(&text(1)) {
                return b"$-1\r\n".to_vec();
            }
            values.insert(text(1), word(2));
            b"+OK\r\n".to_vec()
        }
        "SETEX" => {
            values.insert(text(1), word(3));
            b"+OK\r\n".to_vec()
        }
        "DEL" => {
            let gone = values.remove(&text(1)).is_some();
            format!(":{}\r\n", u8::from(gone)).into_bytes()
        }
        // The third version of the protocol is not spoken.
        "HELLO" => b"-ERR unknown command 'HELLO'\r\n".to_vec(),
        "PING" => b"+PONG\r\n".to_vec(),
        "PUBLISH" | "EXPIRE" => b":0\r\n".to_vec(),
        _ => b"+OK\r\n".to_vec(),
    }
}
