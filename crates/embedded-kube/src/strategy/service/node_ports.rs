//! Node ports of services: requested ones and free ones. Main type: [`Ports`].

use super::{Used, number, text};
use crate::status::{Cause, Status};
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};

/// The range of node ports.
const RANGE: std::ops::RangeInclusive<u16> = 30_000..=32_767;
/// A dry run does not search for a free port; it uses numbers above this one.
const MADE_UP: i64 = 32_768;

/// The ports that one write takes.
pub struct Ports<'u> {
    used: &'u mut Used,
    dry_run: bool,
    taken: Vec<i64>,
    /// The requested ports, which are not free.
    asked: Vec<u16>,
}

type Spec = Map<String, Value>;

fn entries(spec: &Spec) -> Vec<(i64, i64)> {
    let ports = spec
        .get("ports")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    ports
        .map(|p| {
            (
                p["port"].as_i64().unwrap_or(0),
                p["nodePort"].as_i64().unwrap_or(0),
            )
        })
        .collect()
}

impl<'u> Ports<'u> {
    pub fn new(used: &'u mut Used, spec: &Spec, dry_run: bool) -> Self {
        let asked = entries(spec)
            .into_iter()
            .filter_map(|(_, node)| u16::try_from(node).ok())
            .collect();
        Self {
            used,
            dry_run,
            taken: Vec::new(),
            asked,
        }
    }

    /// Takes this port if it is available. A dry run only checks whether another service has it.
    fn take(&mut self, port: i64) -> Result<i64, String> {
        let number = u16::try_from(port).ok().filter(|p| RANGE.contains(p));
        if number.is_none() && !self.dry_run {
            let (low, high) = (RANGE.start(), RANGE.end());
            return Err(format!(
                "provided port is not in the valid range. The range of valid ports is {low}-{high}"
            ));
        }
        if number.is_some_and(|number| self.used.ports.contains(&number))
            || self.taken.contains(&port)
        {
            return Err("provided port is already allocated".to_owned());
        }
        self.taken.push(port);
        Ok(port)
    }

    /// Takes a free port. The search continues after the last one found, so that no concurrent
    /// write finds it before this one is stored.
    fn next(&mut self) -> Option<i64> {
        let port = match self.dry_run {
            true => {
                self.taken
                    .iter()
                    .copied()
                    .max()
                    .map_or(MADE_UP, |last| last.max(0))
                    + 1
            }
            false => i64::from(self.free()?),
        };
        self.taken.push(port);
        Some(port)
    }

    fn free(&mut self) -> Option<u16> {
        let size = RANGE.end() - RANGE.start() + 1;
        for _ in 0..size {
            // A step that visits every port, so that ports look as scattered as on a real server.
            self.used.next_port = (self.used.next_port + 1_117) % size;
            let port = RANGE.start() + self.used.next_port;
            if !self.used.ports.contains(&port) && !self.asked.contains(&port) {
                return Some(port);
            }
        }
        None
    }

    /// Node ports for the ports of a new service; ports with the same number share theirs.
    pub fn create(&mut self, spec: &mut Spec) -> Result<(), Cause> {
        let all = entries(spec);
        let mut by_port: HashMap<i64, i64> = HashMap::new();
        for (i, (port, given)) in all.iter().copied().enumerate() {
            if given == 0 && !is_automatic(spec) {
                continue;
            }
            let node = match by_port.get(&port) {
                Some(shared) if given == 0 || given == *shared => *shared,
                Some(_) => self.asked_for(i, given)?,
                None => {
                    let first = match all
                        .iter()
                        .find(|(other, node)| *other == port && *node != 0)
                    {
                        Some((_, asked)) => self.asked_for(i, *asked)?,
                        None => self.any()?,
                    };
                    by_port.insert(port, first);
                    first
                }
            };
            put(spec, i, node);
        }
        Ok(())
    }

    /// Node ports for the ports of a changed service that have none, and those that are new.
    pub fn update(&mut self, spec: &mut Spec, before: &Spec) -> Result<(), Cause> {
        let known: HashSet<i64> = entries(before).into_iter().map(|(_, node)| node).collect();
        for (i, (_, given)) in entries(spec).into_iter().enumerate() {
            if given == 0 && is_automatic(spec) {
                let chosen = self.any()?;
                put(spec, i, chosen);
            } else if given != 0 && !known.contains(&given) && !self.taken.contains(&given) {
                self.asked_for(i, given)?;
            }
        }
        Ok(())
    }

    fn asked_for(&mut self, i: usize, port: i64) -> Result<i64, Cause> {
        self.take(port)
            .map_err(|why| Cause::invalid(&format!("spec.ports[{i}].nodePort"), &port.into(), &why))
    }

    fn any(&mut self) -> Result<i64, Cause> {
        self.next().ok_or_else(|| {
            Cause::invalid(
                "spec.ports",
                &Value::Null,
                "failed to allocate a nodePort: range is full",
            )
        })
    }

    /// The health check port of a load balancer.
    pub fn health(&mut self, spec: &mut Spec) -> Result<(), Status> {
        let asked = number(spec, "healthCheckNodePort");
        if asked != 0 {
            let refuse = |why| {
                Status::internal(format!(
                    "failed to allocate requested HealthCheck NodePort {asked}: {why}"
                ))
            };
            return self.take(asked).map(drop).map_err(refuse);
        }
        let full =
            || Status::internal("failed to allocate a HealthCheck NodePort 0: range is full");
        spec.insert(
            "healthCheckNodePort".into(),
            self.next().ok_or_else(full)?.into(),
        );
        Ok(())
    }
}

/// Whether ports get a node port that was not requested.
fn is_automatic(spec: &Spec) -> bool {
    text(spec, "type") == "NodePort"
        || spec.get("allocateLoadBalancerNodePorts") == Some(&Value::Bool(true))
}

fn put(spec: &mut Spec, i: usize, node_port: i64) {
    if let Some(entry) = spec
        .get_mut("ports")
        .and_then(|p| p.get_mut(i))
        .and_then(Value::as_object_mut)
    {
        entry.insert("nodePort".into(), node_port.into());
    }
}

/// An update must not use a node port twice, whatever else is wrong.
pub fn distinct(spec: &Spec) -> Result<(), Status> {
    let mut taken = HashSet::new();
    for port in spec
        .get("ports")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let (protocol, number) = (
            port["protocol"].as_str().unwrap_or(""),
            port["nodePort"].as_i64().unwrap_or(0),
        );
        if number != 0 && !taken.insert((protocol, number)) {
            return Err(Status::new(
                500,
                "",
                format!("duplicate nodePort: {{{protocol} {number}}}"),
            ));
        }
    }
    Ok(())
}
