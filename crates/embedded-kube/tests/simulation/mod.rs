//! The simulated cluster through its HTTP API, in virtual time, and the outcomes of its scenarios,
//! compared with those of a real control plane.

mod outcomes;
mod time;
mod world;
