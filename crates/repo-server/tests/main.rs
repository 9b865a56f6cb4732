//! The integration tests of this crate, in one program: a server on a loopback socket, asked by our
//! own client and byte by byte.

mod calls;
mod changes;
mod charts;
mod commits;
mod details;
mod files;
mod manifests;
mod plugins;
mod revisions;
mod shared;
mod signatures;
mod streamed;
mod tls;
mod wire;
mod world;
