//! Tests of the sync engine: tables for plans, and a small simulated cluster in which whole syncs
//! run. A test that proves one of the behaviours in `docs/behaviours/sync.md` begins with its id.

mod apply;
mod crash;
mod flow;
mod hooks;
mod limits;
mod objects;
mod order;
mod plans;
mod prune;
mod scenarios;
mod scopes;
mod sim;
mod terminate;
mod wire;
mod world;
