//! The server as its clients see it.

mod api;
mod durability;
mod kubectl;
mod support;
