//! Plugins that never end, print without end or are gone, and servers that only look like one.

use super::{World, told};
use crate::local::cm;
use serde_json::json;
use std::{
    path::Path,
    time::{Duration, Instant},
};
use tiphys_repo::{Manifests, RepoError, Repos};
use tokio::net::UnixListener;

const WRAPPED: &str = "CMP processing failed for application \"web\": ";

impl World {
    /// Renders with little patience.
    async fn within(
        &self,
        limit: Duration,
        source: serde_json::Value,
    ) -> Result<std::sync::Arc<Manifests>, RepoError> {
        let mut options = self.options();
        options.render_timeout = limit;
        let repos = Repos::with_options(self.dir.path().join("cache"), options);
        repos.manifests(self.request(source)).await
    }
}

fn is_alive(pid: &str) -> bool {
    // A dead process that nobody has waited for yet has no command line.
    std::fs::read(Path::new("/proc").join(pid).join("cmdline")).is_ok_and(|line| !line.is_empty())
}

#[tokio::test]
async fn a_plugin_that_never_ends_is_ended_with_all_it_started() {
    let mut world = World::new();
    let pids = world.dir.path().join("pids");
    let script = format!(
        "sleep 1000 & echo $! > {pids}; echo $$ >> {pids}; echo almost >&2; wait",
        pids = pids.display()
    );
    world
        .plugin(
            "slow",
            &format!("generate: {{command: [sh, -c, '{script}']}}"),
        )
        .await;
    let begun = Instant::now();
    let limit = Duration::from_millis(1500);
    let outcome = world
        .within(limit, json!({"plugin": {"name": "slow"}}))
        .await;
    let text = told(&outcome);
    assert!(
        text.starts_with(&format!("{WRAPPED}error generating manifests in cmp: ")),
        "{text}"
    );
    assert!(
        text.contains("failed signal: terminated: almost")
            || text.contains("did not answer within"),
        "{text}"
    );
    assert!(begun.elapsed() < Duration::from_secs(15));
    let pids = std::fs::read_to_string(&pids).expect("it ran");
    while pids.lines().any(is_alive) {
        assert!(begun.elapsed() < Duration::from_secs(30), "{pids}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_plugin_that_does_not_want_to_end_is_killed() {
    let mut world = World::new();
    let pids = world.dir.path().join("pids");
    let script = format!(
        "trap \"\" TERM; echo $$ > {}; while true; do sleep 0.1; done",
        pids.display()
    );
    world
        .plugin(
            "deaf",
            &format!("generate: {{command: [sh, -c, '{script}']}}"),
        )
        .await;
    let begun = Instant::now();
    let limit = Duration::from_secs(1);
    let outcome = world
        .within(limit, json!({"plugin": {"name": "deaf"}}))
        .await;
    assert!(
        outcome.is_err() && begun.elapsed() < Duration::from_secs(4),
        "{}",
        told(&outcome)
    );
    let pid = std::fs::read_to_string(&pids).expect("it ran");
    while is_alive(pid.trim()) {
        assert!(begun.elapsed() < Duration::from_secs(30), "{pid}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn output_without_end_is_refused() {
    let mut world = World::new();
    world.plugin("loud", "generate: {command: ['yes']}").await;
    let outcome = world.render(json!({"plugin": {"name": "loud"}})).await;
    assert_eq!(
        told(&outcome),
        format!(
            "{WRAPPED}error generating manifests in cmp: rpc error: code = Unknown desc = error generating manifests: `yes` failed with more than 1048576 bytes of output"
        )
    );
}

/// What a plugin says when it fails, and output that is none.
#[tokio::test]
async fn failures_are_told() {
    let told_by = format!(
        "{WRAPPED}error generating manifests in cmp: rpc error: code = Unknown desc = error generating manifests: "
    );
    for (command, want) in [
        (
            "[sh, -c, 'echo why >&2; exit 7']",
            "`sh -c \"echo why >&2; exit 7\"` failed exit status 7: why",
        ),
        ("['false']", "`false` failed exit status 1"),
        (
            "[no-such-program]",
            "exec: \"no-such-program\": executable file not found in $PATH",
        ),
        (
            "[./no-such-file]",
            "fork/exec ./no-such-file: no such file or directory",
        ),
        (
            "[echo, 'a: [']",
            "failed to unmarshal manifest: error converting YAML to JSON: ",
        ),
    ] {
        let mut world = World::new();
        world
            .plugin("p", &format!("generate: {{command: {command}}}"))
            .await;
        let outcome = world.render(json!({"plugin": {"name": "p"}})).await;
        let text = told(&outcome);
        assert!(text.starts_with(&format!("{told_by}{want}")), "{text}");
        assert!(!outcome.expect_err(want).retryable());
    }
    for (output, want) in [
        (
            "just text",
            "failed to convert CMP manifests to unstructured objects: ",
        ),
        (
            "{a: b}",
            "failed to convert CMP manifests to unstructured objects: ",
        ),
    ] {
        let mut world = World::new();
        world
            .plugin("p", &format!("generate: {{command: [echo, '{output}']}}"))
            .await;
        let text = told(&world.render(json!({"plugin": {"name": "p"}})).await);
        assert!(text.starts_with(&format!("{WRAPPED}{want}")), "{text}");
    }
    // Nothing is something that a plugin may say.
    let mut world = World::new();
    world.plugin("p", "generate: {command: ['true']}").await;
    assert_eq!(
        told(&world.render(json!({"plugin": {"name": "p"}})).await),
        "Plugin: "
    );
}

/// As long as it is not known whether a plugin is for a source, no other tool renders it: that
/// might prune what the plugin made.
#[tokio::test]
async fn a_plugin_that_does_not_answer_is_no_no() {
    let world = World::new();
    world.commit(&[("app/b.yaml", &cm("b", "2"))]);
    let socket = world.sockets().join("gone.sock");
    drop(UnixListener::bind(&socket).expect("bound"));
    let asked = "could not find out whether a plugin is for this source: ";
    let dialled = format!(
        "error dialing to cmp-server for plugin gone.sock: dial unix {}: connect: connection refused",
        socket.display()
    );
    let outcome = world.render(json!({})).await;
    assert_eq!(told(&outcome), format!("{asked}{dialled}"));
    assert!(outcome.expect_err("not known").retryable());
    // Who says what it is does not depend on plugins.
    let outcome = world
        .render(json!({"directory": {"include": "b.yaml"}}))
        .await;
    assert_eq!(told(&outcome), "Directory: b=2");
    let outcome = world.render(json!({"plugin": {"name": "gone"}})).await;
    assert_eq!(
        told(&outcome),
        format!(
            "{WRAPPED}could not find cmp-server plugin with name \"gone\" supporting the given repository: {dialled}"
        )
    );
    std::fs::remove_file(&socket).expect("removed");
    assert_eq!(
        told(&world.render(json!({})).await),
        "Directory: plain=1,b=2"
    );
}

#[tokio::test]
async fn a_server_that_says_nothing_or_nonsense_is_left_alone() {
    let world = World::new();
    let listen = |name: &str| UnixListener::bind(world.sockets().join(name)).expect("bound");
    let (silent, nonsense) = (listen("silent.sock"), listen("nonsense.sock"));
    let silence = tokio::spawn(async move {
        let mut kept = Vec::new();
        while let Ok((stream, _)) = silent.accept().await {
            kept.push(stream);
        }
    });
    let talk = tokio::spawn(async move {
        use tokio::io::AsyncWriteExt as _;
        while let Ok((mut stream, _)) = nonsense.accept().await {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nhello").await;
        }
    });
    for (name, want) in [
        (
            "silent",
            "plugin silent did not answer within 1 s (raise the limit with --render-timeout-seconds)",
        ),
        (
            "nonsense",
            "error checking plugin configuration nonsense.sock: ",
        ),
    ] {
        let begun = Instant::now();
        let limit = Duration::from_secs(1);
        let outcome = world.within(limit, json!({"plugin": {"name": name}})).await;
        let text = told(&outcome);
        assert!(text.contains(want), "{text}");
        assert!(begun.elapsed() < Duration::from_secs(5));
        assert!(outcome.expect_err(name).retryable());
    }
    silence.abort();
    talk.abort();
}

/// Go's clients name the path of the socket as the authority, which is none.
#[tokio::test]
async fn requests_as_go_sends_them_are_answered() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut world = World::new();
    world.plugin("p", "generate: {command: ['true']}").await;
    let frame = |kind: u8, flags: u8, stream: u8, content: &[u8]| {
        let length = u32::try_from(content.len()).expect("short").to_be_bytes();
        [&length[1..], &[kind, flags, 0, 0, 0, stream], content].concat()
    };
    let header = |(name, value): (&str, &str)| {
        let text =
            |text: &str| [&[u8::try_from(text.len()).expect("short")], text.as_bytes()].concat();
        [vec![0], text(name), text(value)].concat()
    };
    let path = "/plugin.ConfigManagementPluginService/CheckPluginConfiguration";
    let headers = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", path),
        (":authority", "%2Ftmp%2Fplugins%2Fp.sock"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ];
    let question = [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        frame(4, 0, 0, &[]),
        frame(1, 4, 1, &headers.map(header).concat()),
        frame(0, 1, 1, &[0; 5]),
    ];
    let socket = world.sockets().join("p.sock");
    let mut stream = tokio::net::UnixStream::connect(socket)
        .await
        .expect("connected");
    stream.write_all(&question.concat()).await.expect("sent");
    // The frames of the answer, until one ends the stream.
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await.expect("a frame");
        let length = usize::from(head[1]) << 8 | usize::from(head[2]);
        let mut content = vec![0; length];
        stream.read_exact(&mut content).await.expect("its content");
        assert!(!matches!(head[3], 3 | 7), "refused: {content:?}");
        if head[3] == 0 && head[8] == 1 {
            // {isDiscoveryConfigured: false}
            assert_eq!(content, [0; 5]);
            break;
        }
    }
}
