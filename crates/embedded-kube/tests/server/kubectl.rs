//! An unmodified kubectl against the server, over TLS. Skipped if kubectl is not installed
//! (`KUBECTL` sets another path).

use crate::server::support::start;
use std::path::Path;
use std::process::{Command, Stdio};
use tiphys_embedded_kube::Data;
use tokio::net::TcpListener;

struct Kubectl {
    program: String,
    config: String,
    home: String,
}

impl Kubectl {
    /// Output and whether it went well.
    fn run(&self, command: &str, input: &str) -> (bool, String) {
        let mut child = Command::new("sh")
            .args(["-c", &format!("\"$0\" {command}"), &self.program])
            .envs([("KUBECONFIG", &self.config), ("HOME", &self.home)])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("kubectl starts");
        std::io::Write::write_all(
            &mut child.stdin.take().expect("its input"),
            input.as_bytes(),
        )
        .expect("it reads");
        let output = child.wait_with_output().expect("it ends");
        let text = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        (output.status.success(), text)
    }

    fn expect(&self, command: &str, input: &str, wanted: &str) {
        let (ok, text) = self.run(command, input);
        assert!(
            ok && text.contains(wanted),
            "kubectl {command}: wanted {wanted:?}, got {text}"
        );
    }

    fn refuses(&self, command: &str, input: &str, wanted: &str) {
        let (ok, text) = self.run(command, input);
        assert!(
            !ok && text.contains(wanted),
            "kubectl {command}: wanted a refusal with {wanted:?}, got {text}"
        );
    }
}

const WEB: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "nginx:1", ports: [{containerPort: 80}]}]}
"#;

const WIDGETS: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {kind: Widget, plural: widgets}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns: [{name: Size, type: integer, jsonPath: .spec.size}]
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer, maximum: 5}}}}}}
"#;

fn session(kubectl: &Kubectl) {
    let expect = |command: &str, wanted: &str| kubectl.expect(command, "", wanted);
    expect("version", "+tiphys");
    expect("api-resources", "deployments");
    expect("explain deployment.spec.strategy", "rollingUpdate");
    expect("create namespace shop", "namespace/shop created");
    kubectl.expect("-n shop apply -f -", WEB, "deployment.apps/web created");
    kubectl.expect("-n shop apply -f -", WEB, "deployment.apps/web unchanged");
    expect(
        "-n shop rollout status deployment/web --timeout=60s",
        "successfully rolled out",
    );
    expect("-n shop get deployment web", "2/2");
    expect("-n shop get pods -o wide", "Running");
    expect("-n shop get deployment web -o name", "deployment.apps/web");
    expect(
        "-n shop get deployment web -o jsonpath='{.spec.strategy.type}'",
        "RollingUpdate",
    );
    expect("-n shop describe deployment web", "NewReplicaSetAvailable");
    expect("-n shop scale deployment web --replicas=3", "scaled");
    expect(
        "-n shop patch deployment web -p '{\"spec\":{\"replicas\":1}}'",
        "patched",
    );
    expect("-n shop annotate deployment web a=b", "annotated");
    kubectl.expect(
        "-n shop apply --server-side --force-conflicts -f -",
        WEB,
        "serverside-applied",
    );
    let other = WEB.replace("nginx:1", "nginx:2");
    kubectl.refuses(
        "-n shop apply --server-side --field-manager=other -f -",
        &other,
        "conflict with \"kubectl\"",
    );
    expect(
        "-n shop expose deployment web --port=80",
        "service/web exposed",
    );
    expect(
        "-n shop create configmap c --from-literal=a=1",
        "configmap/c created",
    );
    std::fs::write(
        format!("{}/edit", kubectl.home),
        "#!/bin/sh\nsed -i 's/a: \"1\"/a: \"2\"/' \"$1\"\n",
    )
    .expect("a file");
    expect("-n shop get configmap c -o yaml", "a: \"1\"");
    let (_, edited) = kubectl.run(
        "version > /dev/null; KUBE_EDITOR=\"sh $HOME/edit\" \"$0\" -n shop edit configmap c",
        "",
    );
    assert!(edited.contains("configmap/c edited"), "{edited}");
    kubectl.refuses(
        "-n shop create -f -",
        &WEB.replace("matchLabels: {app: web}", "matchLabels: {app: other}"),
        "does not match template",
    );
    kubectl.refuses("-n shop exec web -- ls", "", "not found");
    let unknown = "apiVersion: foo/v1\nkind: Thing\nmetadata: {name: x}\n";
    kubectl.refuses(
        "-n shop apply -f -",
        unknown,
        "no matches for kind \"Thing\" in version \"foo/v1\"",
    );
    let list = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: l}, data: {a: b}}\n";
    kubectl.expect("-n shop apply -f -", list, "configmap/l created");
    kubectl.refuses(
        "-n shop apply -f -",
        &list.replace("data", "dataa"),
        "dataa",
    );
    kubectl.expect("apply -f -", WIDGETS, "created");
    let widget = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\nspec: {size: 3}\n";
    kubectl.expect("-n shop apply -f -", widget, "widget.example.com/w created");
    expect("-n shop get widgets", "SIZE");
    kubectl.refuses(
        "-n shop apply -f -",
        &widget.replace('3', "9"),
        "less than or equal to 5",
    );
    expect(
        "-n shop delete deployment web --cascade=foreground --timeout=60s",
        "deleted",
    );
    expect(
        "delete namespace shop --timeout=60s",
        "namespace \"shop\" deleted",
    );
    kubectl.refuses("get namespace shop", "", "not found");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unmodified_kubectl_works() {
    let program = std::env::var("KUBECTL").unwrap_or_else(|_| "kubectl".to_owned());
    if Command::new(&program)
        .args(["version", "--client"])
        .output()
        .is_err()
    {
        return tiphys_testkit::skip("kubectl", "there is no kubectl here (KUBECTL names one)");
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| Path::new(folder.path()).join(name).display().to_string();
    let kube = start(Data::Dir(folder.path().join("data"))).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    kube.serve(listener);
    std::fs::write(path("kubeconfig"), kube.kubeconfig(address)).expect("a file");
    let kubectl = Kubectl {
        program,
        config: path("kubeconfig"),
        home: path(""),
    };
    tokio::task::spawn_blocking(move || session(&kubectl))
        .await
        .expect("the session ends well");
    kube.shutdown().await;
}
