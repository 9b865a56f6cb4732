//! A terminal's connection: what the page types goes to a shell, and what the shell prints goes to
//! the page, in the messages of Argo CD's page. Main type: [`Session`].

use super::Asked;
use crate::{
    Code,
    access::{Authorized, OpenShell, app_of_terminal},
    pages,
    ports::{Ended, Shell},
    state::State,
};
use futures::{
    SinkExt as _, StreamExt as _,
    stream::{SplitSink, SplitStream},
};
use http::request::Parts;
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};
use tiphys_api::Application;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    time::{Instant, interval_at, timeout},
};
use tokio_tungstenite::{WebSocketStream, tungstenite::Message};

/// How often a connection is kept alive, and the session checked though nobody types.
const PING: Duration = Duration::from_secs(5);
/// The session is checked before what is typed reaches the shell, but not for each key.
const CHECK: Duration = Duration::from_secs(1);
/// How long either side may take for what the other one says.
const SLOW: Duration = Duration::from_secs(30);
/// How long a shell may take to say how it ended, after its output has.
const LAST_WORD: Duration = Duration::from_secs(2);

/// What the page sends.
#[derive(Deserialize)]
struct Typed {
    operation: String,
    #[serde(default)]
    data: String,
    #[serde(default)]
    rows: u16,
    #[serde(default)]
    cols: u16,
}

/// What the page shows.
#[derive(Serialize)]
struct Shown<'a> {
    operation: &'static str,
    data: &'a str,
    rows: u16,
    cols: u16,
}

/// The page opens another connection, with the session that it has then.
const RECONNECT: &str = r#"{"Code":1}"#;

/// Why a session may not go on.
enum Refusal {
    /// Its token has ended.
    Session,
    Permission,
    Other(String),
}

/// Whose terminal is open, and what its caller said to open it.
pub(super) struct Session {
    pub state: Arc<State>,
    pub request: Parts,
    pub asked: Asked,
    /// The shells to try.
    pub shells: Vec<String>,
}

/// What came from the page before a shell printed anything: if it does not start, it is for the next
/// one.
#[derive(Default)]
struct Early {
    typed: Vec<u8>,
    /// Columns and rows.
    size: Option<(u16, u16)>,
}

impl Early {
    /// Nobody types much before there is a prompt.
    const MOST: usize = 64 << 10;

    fn keep(&mut self, data: &str) {
        if self.typed.len() + data.len() <= Self::MOST {
            self.typed.extend_from_slice(data.as_bytes());
        }
    }
}

/// How the work with one shell went.
enum Outcome {
    Over,
    /// The container does not have it.
    NotStarted(String),
}

type ToPage<S> = SplitSink<WebSocketStream<S>, Message>;

impl Session {
    /// Serves the connection until either side ends it, or the caller may no longer use it.
    pub async fn run<S>(self, socket: WebSocketStream<S>)
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let (mut page, mut typed) = socket.split();
        let mut why = "no shell is configured".to_owned();
        let mut early = Early::default();
        for name in &self.shells {
            let shell = match self.open(name).await {
                Ok(shell) => shell,
                Err(refusal) => {
                    refuse(&mut page, refusal).await;
                    return;
                }
            };
            match self.talk(shell, &mut page, &mut typed, &mut early).await {
                Outcome::Over => {
                    let _ = timeout(SLOW, page.close()).await;
                    return;
                }
                Outcome::NotStarted(reason) => why = format!("{name}: {reason}"),
            }
        }
        let last = format!("Failed to exec container: {why}\r\n");
        sent(&mut page, shown(&last)).await;
        let _ = timeout(SLOW, page.close()).await;
    }

    /// Starts a shell for a caller who may do so now.
    async fn open(&self, name: &str) -> Result<Shell, Refusal> {
        let app = self.permitted().await?;
        let pod = self.asked.pod();
        let live = self.state.reach.live(&app);
        let opened = live.shell(&pod, &self.asked.container, name).await;
        opened.map_err(|e| Refusal::Other(e.message))
    }

    /// Whether the session goes on and its caller may still have a terminal there.
    async fn permitted(&self) -> Result<Authorized<Application, OpenShell>, Refusal> {
        let guard = pages::guard(&self.state, &self.request, super::ACCESS).await;
        let guard = guard.map_err(|_| Refusal::Session)?;
        let (reach, asked) = (&self.state.reach, &self.asked);
        let app = app_of_terminal(reach, &guard, asked.at(), &asked.project).await;
        match app {
            Ok(Some(app)) => Ok(app),
            Err(e) if e.code != Code::PermissionDenied => Err(Refusal::Other(e.message)),
            Ok(None) | Err(_) => Err(Refusal::Permission),
        }
    }

    async fn talk<S>(
        &self,
        shell: Shell,
        page: &mut ToPage<S>,
        typed: &mut SplitStream<WebSocketStream<S>>,
        early: &mut Early,
    ) -> Outcome
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let Shell {
            mut input,
            mut output,
            mut size,
            ended,
        } = shell;
        let (mut buffer, mut text) = ([0; 4096], Text::default());
        let mut ping = interval_at(Instant::now() + PING, PING);
        let (mut checked, mut is_used, mut has_printed) = (Instant::now(), false, false);
        if let Some((columns, rows)) = early.size {
            size(columns, rows);
        }
        if !early.typed.is_empty() {
            is_used = true;
            // One that ends at once does not read it; the next one gets it.
            let _ = input.write_all(&early.typed).await;
            let _ = input.flush().await;
        }
        loop {
            tokio::select! {
                read = output.read(&mut buffer) => {
                    let count = read.unwrap_or(0);
                    if count == 0 {
                        break;
                    }
                    has_printed = true;
                    early.typed.clear();
                    let whole = text.take(&buffer[..count]);
                    if !sent(page, shown(&whole)).await {
                        return Outcome::Over;
                    }
                }
                message = typed.next() => {
                    let typed = match message {
                        Some(Ok(Message::Text(text))) => serde_json::from_str(&text),
                        Some(Ok(Message::Binary(bytes))) => serde_json::from_slice(&bytes),
                        Some(Ok(Message::Ping(_) | Message::Pong(_))) => continue,
                        _ => return Outcome::Over,
                    };
                    let Ok(Typed { operation, data, rows, cols }) = typed else {
                        return Outcome::Over;
                    };
                    match operation.as_str() {
                        "stdin" => {
                            if checked.elapsed() >= CHECK {
                                checked = Instant::now();
                                if let Err(refusal) = self.permitted().await {
                                    refuse(page, refusal).await;
                                    return Outcome::Over;
                                }
                            }
                            is_used = true;
                            if !has_printed {
                                early.keep(&data);
                            }
                            let written = async {
                                input.write_all(data.as_bytes()).await?;
                                input.flush().await
                            };
                            if !matches!(timeout(SLOW, written).await, Ok(Ok(()))) {
                                break;
                            }
                        }
                        "resize" => {
                            early.size = Some((cols, rows));
                            size(cols, rows);
                        }
                        _ => return Outcome::Over,
                    }
                }
                _ = ping.tick() => {
                    if let Err(refusal) = self.permitted().await {
                        refuse(page, refusal).await;
                        return Outcome::Over;
                    }
                    if !sent(page, Message::Ping("ping".into())).await {
                        return Outcome::Over;
                    }
                }
            }
        }
        match timeout(LAST_WORD, ended).await {
            // A shell that has run may end with the code of one that could not be started.
            Ok(Ended::NotStarted(why)) if !is_used || !has_printed => Outcome::NotStarted(why),
            _ => Outcome::Over,
        }
    }
}

/// Whether the page takes a message. For one that does not, the shell would go on unchecked.
async fn sent<S>(page: &mut ToPage<S>, message: Message) -> bool
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    matches!(timeout(SLOW, page.send(message)).await, Ok(Ok(())))
}

fn shown(data: &str) -> Message {
    let message = Shown {
        operation: "stdout",
        data,
        rows: 0,
        cols: 0,
    };
    Message::text(serde_json::to_string(&message).expect("texts and numbers"))
}

async fn refuse<S>(page: &mut ToPage<S>, refusal: Refusal)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let last = match refusal {
        Refusal::Session => "\nReconnect because the token was refreshed...\n",
        Refusal::Permission => "Permission denied",
        Refusal::Other(ref why) => why,
    };
    if sent(page, shown(last)).await && matches!(refusal, Refusal::Session) {
        sent(page, Message::text(RECONNECT)).await;
    }
    let _ = timeout(SLOW, page.close()).await;
}

/// Bytes of UTF-8 that come in pieces.
#[derive(Default)]
struct Text(Vec<u8>);

impl Text {
    /// The text so far. A character that is not complete waits for the rest; what is none is
    /// replaced.
    fn take(&mut self, bytes: &[u8]) -> String {
        self.0.extend_from_slice(bytes);
        let rest = match std::str::from_utf8(&self.0) {
            Err(e) if e.error_len().is_none() => self.0.split_off(e.valid_up_to()),
            _ => Vec::new(),
        };
        let whole = std::mem::replace(&mut self.0, rest);
        String::from_utf8_lossy(&whole).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_may_come_in_pieces() {
        let mut text = Text::default();
        let bytes = "aä€b".as_bytes();
        let pieces = [&bytes[..2], &bytes[2..4], &bytes[4..]];
        let shown: Vec<String> = pieces.iter().map(|p| text.take(p)).collect();
        assert_eq!(shown, ["a", "ä", "€b"]);
        assert_eq!(text.take(b"\xff!"), "\u{fffd}!");
        // An invalid byte before one that is not complete.
        assert_eq!(text.take(b"\xff\xe2\x82"), "\u{fffd}\u{fffd}");
    }
}
