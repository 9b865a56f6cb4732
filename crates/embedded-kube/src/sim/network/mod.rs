//! Services and what routes to them: endpoints, load balancers, ingresses.
//!
//! Pure functions from a Service or an Ingress and the pods it selects to a
//! [`Plan`](super::plan::Plan).

pub mod endpoints;
pub mod ingress;
pub mod mirror;
pub mod service;
