//! A TCP proxy that injects faults: connections stall, break in the middle of a response, or are
//! refused. Main type: [`Proxy`]. It knows nothing of TLS, so a connection may break anywhere.

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, Shutdown, TcpListener, TcpStream},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};
use tiphys_testkit::Rng;

const CHUNK: usize = 16 << 10;
const TICK: Duration = Duration::from_millis(20);

/// Listens until the process ends; after it is dropped, it forwards everything.
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    connections: Mutex<Vec<TcpStream>>,
    stalled_until: Mutex<Option<Instant>>,
    refusing: AtomicBool,
    /// Every connection breaks after this many further bytes of responses; 0: never.
    cut_in: AtomicUsize,
    faults: AtomicUsize,
}

impl Proxy {
    /// # Errors
    /// If there is no free port.
    pub fn start(upstream: String) -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let (port, shared) = (listener.local_addr()?.port(), Arc::new(Shared::default()));
        let taking = shared.clone();
        thread::spawn(move || {
            listener
                .incoming()
                .flatten()
                .for_each(|client| taking.take(client, &upstream))
        });
        Ok(Self { port, shared })
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// How many faults were injected.
    pub fn faults(&self) -> usize {
        self.shared.faults.load(Ordering::Relaxed)
    }

    /// Injects one kind of fault, chosen by the random numbers; returns its name.
    pub fn harm_once(&self, rng: &mut Rng) -> &'static str {
        self.shared.faults.fetch_add(1, Ordering::Relaxed);
        match rng.below(4) {
            0 => {
                self.stall(Duration::from_millis(500 + rng.below(6000)));
                "stall"
            }
            1 => {
                self.shared.cut();
                "cut"
            }
            2 => {
                self.shared.cut_in.store(
                    1 + usize::try_from(rng.below(200_000)).unwrap_or(0),
                    Ordering::Relaxed,
                );
                "cut in mid-answer"
            }
            _ => {
                self.shared.refusing.store(true, Ordering::Relaxed);
                self.shared.cut();
                thread::sleep(Duration::from_millis(200 + rng.below(3000)));
                self.shared.refusing.store(false, Ordering::Relaxed);
                "away"
            }
        }
    }

    fn stall(&self, time: Duration) {
        *self
            .shared
            .stalled_until
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(Instant::now() + time);
    }
}

impl Shared {
    fn take(self: &Arc<Self>, client: TcpStream, upstream: &str) {
        if self.refusing.load(Ordering::Relaxed) {
            return;
        }
        let Ok(server) = TcpStream::connect(upstream) else {
            return;
        };
        let copies = (
            client.try_clone(),
            server.try_clone(),
            client.try_clone(),
            server.try_clone(),
        );
        let (Ok(from), Ok(to), Ok(one), Ok(other)) = copies else {
            return;
        };
        self.connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend([one, other]);
        for (from, to, answers) in [(from, to, false), (server, client, true)] {
            let shared = self.clone();
            thread::spawn(move || shared.carry(from, to, answers));
        }
    }

    /// Forwards until one side closes.
    fn carry(&self, mut from: TcpStream, mut to: TcpStream, answers: bool) {
        let mut chunk = [0; CHUNK];
        while let Ok(read @ 1..) = from.read(&mut chunk) {
            while self
                .stalled_until
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .is_some_and(|until| until > Instant::now())
            {
                thread::sleep(TICK);
            }
            let left = self.cut_in.load(Ordering::Relaxed);
            if answers && left > 0 {
                self.cut_in
                    .store(left.saturating_sub(read), Ordering::Relaxed);
                if left <= read {
                    let _ = to.write_all(&chunk[..left.min(read) / 2]);
                    self.cut();
                    return;
                }
            }
            if to.write_all(&chunk[..read]).is_err() {
                break;
            }
        }
        let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
        self.connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|c| c.peer_addr().is_ok());
    }

    fn cut(&self) {
        for connection in self
            .connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .drain(..)
        {
            let _ = connection.shutdown(Shutdown::Both);
        }
    }
}
