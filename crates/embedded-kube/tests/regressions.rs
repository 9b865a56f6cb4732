//! Scripts on which this server once differed from a real one, replayed and compared with the
//! recorded answers of the real one.
//!
//! To add a case, run `cargo xtask differential --kubeconfig FILE --save`, then fix what differs.

use std::path::Path;
use tiphys_embedded_kube::{EmbeddedKube, Options};
use tiphys_testkit::differential::{Case, Remote, play::install};
use tokio::net::TcpListener;

#[test]
fn the_answers_are_those_of_the_real_server() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let (kube, address) = runtime.block_on(async {
        let kube = EmbeddedKube::start(Options {
            controllers: false,
            ..Options::default()
        })
        .await
        .expect("the server starts");
        let listener = TcpListener::bind(("127.0.0.1", 0))
            .await
            .expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        kube.serve(listener);
        (kube, address)
    });
    let server =
        Remote::from_kubeconfig(&kube.kubeconfig(address)).expect("its kubeconfig is complete");
    install(&server).expect("the custom kinds are served");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/regressions");
    let cases = Case::all(&folder);
    assert!(!cases.is_empty());
    for (name, case) in &cases {
        let text = std::fs::read_to_string(folder.join(name)).expect("it was read");
        assert!(
            text == case.text(),
            "{name} is not written as `--save` writes it"
        );
    }
    let mut failures = Vec::new();
    for (n, (name, case)) in cases.iter().enumerate() {
        for d in case
            .replay(&server, &format!("case-{n}"))
            .expect("the server answers")
        {
            let title = case.script.steps[d.step].title();
            failures.push(format!(
                "{name}: {title}: {}\n  real     {}\n  embedded {}",
                d.at, d.expected, d.found
            ));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    runtime.block_on(kube.shutdown());
}
