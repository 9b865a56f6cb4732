//! Commands of the catalogue that work on one repository wait for each other, and say so.

use crate::scenarios::world::program;
use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpListener,
    process::{Child, Command, Stdio},
};
use tempfile::TempDir;

struct Catalogue(TempDir);

impl Catalogue {
    fn start(&self, words: &[&str]) -> Child {
        let mut command = Command::new(program());
        command.arg("catalog").args(words);
        command.arg("--data").arg(self.0.path());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("it starts")
    }

    fn run(&self, words: &[&str]) -> String {
        ended(self.start(words))
    }
}

/// The output of one that ends well.
fn ended(child: Child) -> String {
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn a_repository_that_is_being_read_is_removed_afterwards() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let catalogue = Catalogue(tempfile::tempdir().expect("a folder"));
    catalogue.run(&["repos", "add", "slow", &url]);
    let sync = catalogue.start(&["sync", "slow"]);
    let (mut asked, _) = listener.accept().expect("the index is asked for");

    let mut remove = catalogue.start(&["repos", "rm", "slow"]);
    let mut said = String::new();
    let mut errors = BufReader::new(remove.stderr.take().expect("a pipe"));
    errors.read_line(&mut said).expect("a line");
    assert_eq!(said, "waiting for another process that works on \"slow\"\n");
    assert!(remove.try_wait().expect("its state").is_none());

    let mut request = [0; 4096];
    assert!(asked.read(&mut request).expect("a request") > 0);
    let index = "apiVersion: v1\nentries:\n  web:\n  - name: web\n    version: 1.0.0\n";
    let length = index.len();
    write!(
        asked,
        "HTTP/1.1 200 x\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{index}"
    )
    .expect("answered");
    drop(asked);
    let read = ended(sync);
    assert!(read.starts_with("slow: 1 charts, 1 changed"), "{read}");
    assert_eq!(ended(remove), "Repository \"slow\" removed\n");
    assert_eq!(catalogue.run(&["search", "-o", "name"]), "");
}
