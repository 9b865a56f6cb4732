//! Tests of the sync engine: tables for what a plan is made of, and a small simulated cluster in
//! which whole syncs run. A test that pins one of the numbered facts of sync behaviour carries its
//! number.

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
mod sim;
mod terminate;
mod wire;
mod world;
