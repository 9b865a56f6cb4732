//! Builds a [`Schema`]: nodes first, references by name, resolved and checked at the end.

use super::{Attributes, Definition, Field, Node, Schema, SchemaError, Shape, Str};
use crate::gvk::Gvk;
use std::collections::HashMap;

/// Limit on the types in one schema, and on its fields.
const MAX_NODES: usize = 500_000;

#[derive(Default)]
pub(super) struct Builder {
    schema: Schema,
    /// Index = the provisional definition number that `Shape::Reference` holds until `finish`.
    references: Vec<Str>,
    reference_ids: HashMap<Str, u32>,
}

impl Builder {
    pub(super) fn node(
        &mut self,
        shape: Shape,
        attributes: Option<Attributes>,
    ) -> Result<u32, SchemaError> {
        if self.schema.nodes.len() >= MAX_NODES {
            return Err(SchemaError::TooLarge {
                what: "types",
                limit: MAX_NODES,
            });
        }
        self.schema.nodes.push(Node {
            shape,
            attributes: attributes.map(Box::new),
        });
        Ok(self.schema.nodes.len() as u32 - 1)
    }

    /// A reference to a definition that may be added later.
    pub(super) fn reference(&mut self, name: Str) -> Shape {
        let next = self.references.len() as u32;
        let id = *self.reference_ids.entry(name.clone()).or_insert(next);
        if id == next {
            self.references.push(name);
        }
        Shape::Reference(id)
    }

    /// An object's shape; fields are (name, node, required) in any order.
    pub(super) fn object(&mut self, mut fields: Vec<(Str, u32, bool)>, rest: Option<u32>) -> Shape {
        fields.sort_by(|a, b| a.0.cmp(&b.0));
        let first = self.schema.fields.len() as u32;
        let count = fields.len() as u32;
        self.schema
            .fields
            .extend(fields.into_iter().map(|(name, node, required)| Field {
                name,
                node,
                required,
            }));
        Shape::Object { first, count, rest }
    }

    pub(super) fn define(&mut self, name: Str, node: u32, gvks: Vec<Gvk>) {
        self.schema
            .definitions
            .push(Definition { name, node, gvks });
    }

    pub(super) fn root(&mut self, node: u32) {
        self.schema.root = Some(node);
    }

    pub(super) fn finish(self) -> Result<Schema, SchemaError> {
        let Self {
            mut schema,
            references,
            ..
        } = self;
        schema.definitions.sort_by(|a, b| a.name.cmp(&b.name));
        schema.by_name = schema
            .definitions
            .iter()
            .enumerate()
            .map(|(i, d)| (d.name.clone(), i as u32))
            .collect();
        for (i, definition) in schema.definitions.iter().enumerate() {
            for gvk in &definition.gvks {
                schema.by_gvk.insert(gvk.clone(), i as u32);
            }
        }
        let mut resolved = Vec::with_capacity(references.len());
        for name in references {
            resolved.push(
                *schema
                    .by_name
                    .get(&name)
                    .ok_or_else(|| SchemaError::UnknownReference(name.into_owned()))?,
            );
        }
        for node in &mut schema.nodes {
            if let Shape::Reference(id) = &mut node.shape {
                *id = resolved[*id as usize];
            }
        }
        refuse_circles(&schema)?;
        Ok(schema)
    }
}

/// A definition may refer to another one, but not, through references alone, to itself.
fn refuse_circles(schema: &Schema) -> Result<(), SchemaError> {
    for start in &schema.definitions {
        let (mut at, mut steps) = (start, 0);
        while let Shape::Reference(next) = schema.nodes[at.node as usize].shape {
            at = &schema.definitions[next as usize];
            steps += 1;
            if steps > schema.definitions.len() {
                return Err(SchemaError::Invalid {
                    path: start.name.clone().into_owned(),
                    reason: "it refers to itself".into(),
                });
            }
        }
    }
    Ok(())
}
