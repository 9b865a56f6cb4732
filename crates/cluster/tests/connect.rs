//! Connections described by Secrets, on an embedded API server with TLS: proxies of each kind,
//! server names, credential plugins.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tiphys_apimachinery::Object;
use tiphys_cluster::{Cluster, ClusterSecret, ConnectOptions, Source};
use tiphys_embedded_kube::{EmbeddedKube, Options};
use tokio::{
    io::{
        AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, copy_bidirectional,
    },
    net::{TcpListener, TcpStream},
};

const TOKEN: &str = "a-token-of-the-test";

struct Ground {
    kube: EmbeddedKube,
    port: u16,
}

impl Ground {
    async fn new() -> Self {
        let kube = EmbeddedKube::start(Options {
            admin_token: Some(TOKEN.to_owned()),
            ..Options::default()
        })
        .await
        .expect("it starts");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("bound").port();
        kube.serve(listener);
        Self { kube, port }
    }

    /// Connects using a Secret with this `config`.
    async fn connect(&self, config: Value) -> Result<Cluster, String> {
        let data = json!({"name": "other", "server": format!("https://127.0.0.1:{}", self.port), "config": config.to_string()});
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "argocd"}, "stringData": data});
        let secret =
            ClusterSecret::from_secret(&Object::from_value(secret).expect("a map")).expect("valid");
        Cluster::connect(ConnectOptions::new(Source::Secret(Box::new(secret))))
            .await
            .map_err(|e| e.to_string())
    }

    /// The CA certificate in the Secret's form.
    fn authority(&self) -> String {
        let kubeconfig = self.kube.kubeconfig("127.0.0.1:1");
        let line = kubeconfig
            .lines()
            .find_map(|l| l.trim().strip_prefix("certificate-authority-data:"))
            .expect("an authority");
        line.trim().trim_matches('"').to_owned()
    }
}

type Seen = Arc<Mutex<Vec<String>>>;

/// Serves each connection independently.
async fn proxy<F: Future<Output = std::io::Result<()>> + Send>(
    serve: impl Fn(TcpStream, Seen) -> F + Copy + Send + Sync + 'static,
) -> (u16, Seen) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    let seen = Seen::default();
    let told = seen.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let told = told.clone();
            tokio::spawn(async move { serve(stream, told).await });
        }
    });
    (port, seen)
}

/// `CONNECT`; requests without credentials are refused.
async fn tunnels(stream: TcpStream, seen: Seen) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let (mut head, mut line) = (String::new(), String::new());
    while stream.read_line(&mut line).await? > 2 {
        head.push_str(&line);
        line.clear();
    }
    seen.lock().expect("whole").push(head.clone());
    let allowed = format!(
        "proxy-authorization: basic {}",
        STANDARD.encode("user:p@ss")
    );
    if !head.to_lowercase().contains(&allowed.to_lowercase()) {
        return stream
            .write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n")
            .await;
    }
    let target = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut server = TcpStream::connect(target).await?;
    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
    copy_bidirectional(&mut stream, &mut server)
        .await
        .map(|_| ())
}

/// SOCKS 5 with user name and password.
async fn socks(mut stream: TcpStream, seen: Seen) -> std::io::Result<()> {
    let mut offered = [0; 2];
    stream.read_exact(&mut offered).await?;
    let mut methods = vec![0; usize::from(offered[1])];
    stream.read_exact(&mut methods).await?;
    stream.write_all(&[5, 2]).await?;
    stream.read_u8().await?;
    let mut words = Vec::new();
    for _ in 0..2 {
        let mut word = vec![0; usize::from(stream.read_u8().await?)];
        stream.read_exact(&mut word).await?;
        words.push(String::from_utf8_lossy(&word).into_owned());
    }
    stream.write_all(&[1, 0]).await?;
    let mut request = [0; 4];
    stream.read_exact(&mut request).await?;
    let mut address = [0; 4];
    stream.read_exact(&mut address).await?;
    let target = format!(
        "{}:{}",
        std::net::Ipv4Addr::from(address),
        stream.read_u16().await?
    );
    seen.lock()
        .expect("whole")
        .push(format!("{} for {target}", words.join(":")));
    let mut server = TcpStream::connect(target).await?;
    stream.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await?;
    copy_bidirectional(&mut stream, &mut server)
        .await
        .map(|_| ())
}

fn config(proxy: &str) -> Value {
    json!({"bearerToken": TOKEN, "tlsClientConfig": {"insecure": true}, "proxyUrl": proxy})
}

#[tokio::test]
async fn requests_go_by_an_http_proxy() {
    let ground = Ground::new().await;
    let (port, seen) = proxy(tunnels).await;
    let cluster = ground
        .connect(config(&format!("http://user:p%40ss@127.0.0.1:{port}")))
        .await
        .unwrap_or_else(|e| panic!("{e}"));
    assert!(cluster.version().git_version.starts_with("v1."));
    let heads = seen.lock().expect("whole").clone();
    assert!(
        heads[0].starts_with(&format!("CONNECT 127.0.0.1:{} ", ground.port)),
        "{heads:?}"
    );
    let error = ground
        .connect(config(&format!("http://127.0.0.1:{port}")))
        .await
        .err()
        .expect("it asks who it is");
    assert!(error.contains("proxy authorization required"), "{error}");
}

#[tokio::test]
async fn requests_go_by_a_socks_proxy() {
    let ground = Ground::new().await;
    let (port, seen) = proxy(socks).await;
    ground
        .connect(config(&format!("socks5://user:pass@127.0.0.1:{port}")))
        .await
        .unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(
        seen.lock().expect("whole")[0],
        format!("user:pass for 127.0.0.1:{}", ground.port)
    );
}

#[tokio::test]
async fn a_proxy_that_cannot_be_is_named() {
    let ground = Ground::new().await;
    let error = ground
        .connect(config("ftp://proxy.example"))
        .await
        .err()
        .expect("no such proxy");
    assert_eq!(
        error,
        "cluster \"other\": proxy URL: the scheme \"ftp\" is none of http, https and socks5; name it as http://, https:// or socks5://host:port"
    );
}

#[tokio::test]
async fn a_user_that_the_kubeconfig_does_not_have_is_not_nobody() {
    let ground = Ground::new().await;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("kubeconfig");
    let text = ground.kube.kubeconfig(format!("127.0.0.1:{}", ground.port));
    std::fs::write(&path, text).expect("writable");
    let connect = async |user: &str| {
        let mut options = ConnectOptions::kubeconfig(Some(path.clone()), None);
        options.overrides.user = Some(user.to_owned());
        Cluster::connect(options).await.map_err(|e| e.to_string())
    };
    connect("admin").await.unwrap_or_else(|e| panic!("{e}"));
    let error = connect("nope").await.err().expect("there is none");
    assert!(error.contains("user \"nope\" does not exist"), "{error}");
}

#[tokio::test]
async fn a_server_may_have_another_name() {
    let ground = Ground::new().await;
    let authority = ground.authority();
    let with = |name: &str| json!({"bearerToken": TOKEN, "tlsClientConfig": {"caData": authority, "serverName": name}});
    ground
        .connect(with("localhost"))
        .await
        .unwrap_or_else(|e| panic!("{e}"));
    let error = ground
        .connect(with("elsewhere.example"))
        .await
        .err()
        .expect("it has another");
    assert!(error.contains("certificate"), "{error}");
}

#[tokio::test]
async fn programs_log_in() {
    let ground = Ground::new().await;
    let api = "client.authentication.k8s.io/v1";
    // It gets the token from its environment, and the cluster information that the Secret provides.
    let script = r#"case "$KUBERNETES_EXEC_INFO" in *'"clusterName":"prod"'*) ;; *) echo "not told: $KUBERNETES_EXEC_INFO" >&2; exit 1;; esac
echo "{\"apiVersion\": \"client.authentication.k8s.io/v1\", \"kind\": \"ExecCredential\", \"status\": {\"token\": \"$GIVEN\", \"expirationTimestamp\": \"2099-01-01T00:00:00Z\"}}""#;
    let exec = json!({"command": "/bin/sh", "args": ["-c", script], "env": {"GIVEN": TOKEN}, "apiVersion": api, "provideClusterInfo": true, "config": {"clusterName": "prod"}});
    let config = |exec: &Value| json!({"execProviderConfig": exec, "bearerToken": "not this one", "tlsClientConfig": {"insecure": true}});
    ground
        .connect(config(&exec))
        .await
        .unwrap_or_else(|e| panic!("{e}"));
    let missing = json!({"command": "/nowhere/at/all", "apiVersion": api});
    let error = ground
        .connect(config(&missing))
        .await
        .err()
        .expect("no such program");
    assert!(error.contains("No such file"), "{error}");
    let wrong = ground
        .connect(config(&json!({"command": "argocd-k8s-auth", "args": []})))
        .await
        .err()
        .expect("which cloud?");
    assert!(wrong.contains("config.execProviderConfig: argocd-k8s-auth: the first argument must be aws, gcp or azure"), "{wrong}");
}
