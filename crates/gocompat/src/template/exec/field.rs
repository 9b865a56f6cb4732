//! Field access: entries of maps, fields and methods of objects.

use super::super::code::{Base, Op, Template};
use super::super::compile::typed;
use super::super::function::{Body, Slot};
use super::super::node::{Id, Node, Nodes, Range};
use super::super::unicode::lossy;
use super::super::value::Value;
use super::{Bound, Done, Fault, Machine, MissingKey, call, quoted};

impl Machine<'_> {
    pub(super) fn access(&mut self, template: &Template, op: &Op) -> Done {
        match op {
            Op::Fields {
                at,
                node,
                base,
                from,
                to,
                strip,
            } => {
                self.set_at(*at);
                let mut slot = match base {
                    Base::Slot(slot) => self.slot(*slot).clone(),
                    Base::Stack => self.pop(),
                };
                for name in &names(&template.nodes, *node)[usize::from(*from)..usize::from(*to)] {
                    slot = self.field(&template.nodes, slot, *name, *node)?;
                }
                self.push(slot, *strip);
                Ok(())
            }
            Op::Bind {
                node,
                name,
                args,
                piped,
                end,
            } => self.bind(template, *node, *name, (usize::from(*args), *piped), *end),
            Op::BoundArg { index } => {
                let wanted = self
                    .bound
                    .last()
                    .map(|bound| bound.function.param(usize::from(*index)));
                match (wanted, self.stack.last_mut()) {
                    (Some(wanted), Some(top)) => call::validate(top, wanted).map_err(Fault::Here),
                    _ => Ok(()),
                }
            }
            Op::BoundLiteral { at, index, literal } => {
                self.frame.at = Some(*at);
                let Some(bound) = self.bound.last() else {
                    return Ok(());
                };
                let wanted = bound.function.param(usize::from(*index));
                let constant =
                    typed(literal, wanted, || template.nodes.write(*at)).map_err(Fault::Here)?;
                self.stack.push(Slot::new(constant.value()));
                Ok(())
            }
            Op::CallBound {
                node,
                args,
                piped,
                strip,
            } => {
                let Some(bound) = self.bound.pop() else {
                    return Ok(());
                };
                let name = template.nodes.slice(bound.name);
                let target = call::Target {
                    function: *bound.function,
                    receiver: bound.receiver,
                    at: *node,
                    name,
                    strip: *strip,
                };
                self.call(template, target, usize::from(*args), *piped)
            }
            Op::Call {
                at,
                function,
                args,
                piped,
                strip,
            } => {
                let function = self.frame.set.functions().get(*function);
                let name = function_name(&template.nodes, *at);
                let target = call::Target {
                    function,
                    receiver: Value::Nil,
                    at: *at,
                    name,
                    strip: *strip,
                };
                self.call(template, target, usize::from(*args), *piped)
            }
            _ => Ok(()),
        }
    }

    /// One field without arguments.
    fn field(
        &mut self,
        nodes: &Nodes,
        receiver: Slot,
        name: Range,
        node: Id,
    ) -> Result<Slot, Fault> {
        let bytes = nodes.slice(name);
        let text = || lossy(bytes);
        match &receiver.value {
            Value::Nil if receiver.boxed => Err(Fault::Here(format!(
                "nil pointer evaluating interface {{}}.{}",
                text()
            ))),
            Value::Nil if self.missing_key == MissingKey::Error => Err(Fault::Here(format!(
                "nil data; no entry for key {}",
                quoted(&text())
            ))),
            Value::Nil => Ok(Slot::default()),
            Value::Object(object) => {
                let text = text();
                if let Some(function) = object.method(&text) {
                    function.arity(&text, 0, false).map_err(Fault::Here)?;
                    let target = call::Target {
                        function: *function,
                        receiver: receiver.value.clone(),
                        at: node,
                        name: bytes,
                        strip: false,
                    };
                    return self.call_at_once(target);
                }
                if let Some(value) = object.field(&text) {
                    let boxed = matches!(value, Value::Nil);
                    return Ok(Slot { value, boxed });
                }
                match object.underlying() {
                    Some(inner @ Value::Map(_)) => self.entry(&inner, bytes),
                    None if object.fields().iter().any(|(own, _)| *own == text) => {
                        Err(Fault::Here(format!(
                            "{text} is an unexported field of struct type {}",
                            receiver.static_type()
                        )))
                    }
                    _ => Err(no_field(&receiver, bytes)),
                }
            }
            map @ Value::Map(_) => self.entry(map, bytes),
            _ => Err(no_field(&receiver, bytes)),
        }
    }

    fn entry(&self, map: &Value, key: &[u8]) -> Result<Slot, Fault> {
        let Value::Map(map) = map else {
            return Ok(Slot::default());
        };
        let element = map.go_type().element();
        match (map.get(key), self.missing_key) {
            (Some(value), _) => Ok(Slot::element(value, element)),
            (None, MissingKey::Invalid) => Ok(Slot::default()),
            (None, MissingKey::Zero) => Ok(Slot::element(element.zero(), element)),
            (None, MissingKey::Error) => Err(Fault::Missing(format!(
                "map has no entry for key {}",
                quoted(&String::from_utf8_lossy(key))
            ))),
        }
    }

    /// Finds the method that gets arguments. An invalid value has every method, and returns no
    /// value.
    fn bind(
        &mut self,
        template: &Template,
        node: Id,
        name: Range,
        given: (usize, bool),
        end: u32,
    ) -> Done {
        let receiver = self.pop();
        let bytes = template.nodes.slice(name);
        let text = lossy(bytes);
        if receiver.is_invalid() && self.missing_key != MissingKey::Error {
            if given.1 {
                self.pop();
            }
            self.stack.push(Slot::default());
            self.frame.next = end as usize;
            return Ok(());
        }
        if let Value::Object(object) = &receiver.value {
            if let Some(function) = object.method(&text) {
                function
                    .arity(&text, given.0, given.1)
                    .map_err(Fault::Here)?;
                self.bound.push(Bound {
                    function,
                    receiver: receiver.value.clone(),
                    name,
                });
                return Ok(());
            }
            if object.field(&text).is_some() {
                return Err(Fault::Here(format!(
                    "{text} has arguments but cannot be invoked as function"
                )));
            }
        }
        if let Value::Map(_) = receiver.value.underlying().as_ref() {
            return Err(Fault::Here(format!(
                "{text} is not a method but has arguments"
            )));
        }
        // Fails as a field without arguments does.
        self.field(&template.nodes, receiver, name, node)
            .map(|slot| self.stack.push(slot))
    }

    /// Calls a method without arguments in the middle of a chain.
    fn call_at_once(&mut self, target: call::Target<'_>) -> Result<Slot, Fault> {
        match target.function.body {
            Body::Plain(_) => {
                let template = self.frame.template.clone();
                self.call(&template, target, 0, false)?;
                Ok(self.pop())
            }
            _ => Err(Fault::Here(
                "a method cannot have templates executed".into(),
            )),
        }
    }
}

fn no_field(receiver: &Slot, name: &[u8]) -> Fault {
    Fault::Missing(format!(
        "can't evaluate field {} in type {}",
        String::from_utf8_lossy(name),
        receiver.static_type()
    ))
}

/// The names of a chain of fields; the variable is one of them.
fn names(nodes: &Nodes, node: Id) -> &[Range] {
    match nodes.get(node) {
        Node::Field(names) | Node::Variable(names) => names,
        Node::Chain { fields, .. } => fields,
        _ => &[],
    }
}

/// The name of the function that a node calls.
fn function_name(nodes: &Nodes, node: Id) -> &[u8] {
    match nodes.get(node) {
        Node::Identifier(name) => nodes.slice(*name),
        Node::Command(args) => match nodes.get(args[0]) {
            Node::Identifier(name) => nodes.slice(*name),
            _ => b"",
        },
        _ => b"",
    }
}
