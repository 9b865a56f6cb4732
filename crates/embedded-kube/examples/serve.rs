//! Starts an embedded API server: `serve [--data FOLDER] [--port N] [--kubeconfig FILE] [--alone]`.
//! `--alone` starts it without controllers. Stop it with Ctrl-C.

use std::path::PathBuf;
use tiphys_embedded_kube::{Data, EmbeddedKube, Options};
use tokio::net::TcpListener;

/// The same allocator as the product's, so that measurements here apply to it.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn argument(name: &str) -> Option<String> {
    std::env::args().skip_while(|a| a != name).nth(1)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let data = argument("--data").map_or(Data::Memory, |folder| Data::Dir(PathBuf::from(folder)));
    let port: u16 = argument("--port").map_or(Ok(0), |p| p.parse())?;
    let kube = EmbeddedKube::start(Options {
        data,
        controllers: !std::env::args().any(|a| a == "--alone"),
        ..Options::default()
    })
    .await?;
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let address = listener.local_addr()?;
    let server = kube.serve(listener);
    let kubeconfig = kube.kubeconfig(address);
    match argument("--kubeconfig") {
        Some(file) => std::fs::write(&file, kubeconfig)?,
        None => println!("{kubeconfig}"),
    }
    eprintln!("serving on https://{address}");
    tokio::signal::ctrl_c().await?;
    kube.shutdown().await;
    server.await?;
    Ok(())
}
