//! The server as its clients see it.

mod api;
mod auth;
mod conversion;
mod custom;
mod durability;
mod edge;
mod hostile;
mod kinds;
mod kubectl;
mod large;
mod openapi;
mod ownership;
mod parts;
mod pod_security;
mod pods;
mod policies;
mod remote;
mod roles_real;
mod session;
mod support;
mod watching;
mod webhooks;
