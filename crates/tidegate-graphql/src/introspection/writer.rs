//! Writes introspection objects in chunks.

use std::slice;

use super::IntrospectionNode;
use super::object::{MemberContent, Object, Objects};
use crate::chunked::ChunkedWriter;
use crate::definition::Types;

/// Writes the value of `__schema` or `__type`. Writing can pause after any member, because a stack
/// records the objects and lists that are not closed yet.
pub(crate) struct IntrospectionWriter<'o> {
    types: &'o Types,
    root: Option<&'o IntrospectionNode>,
    open: Vec<OpenValue<'o>>,
}

/// An object or a list that is not closed yet.
enum OpenValue<'o> {
    Object {
        object: Object<'o>,
        members: slice::Iter<'o, IntrospectionNode>,
        first: bool,
    },
    List {
        objects: Objects<'o>,
        below: &'o [IntrospectionNode],
        first: bool,
    },
}

impl<'o> IntrospectionWriter<'o> {
    pub(crate) fn new(node: &'o IntrospectionNode, types: &'o Types) -> Self {
        Self {
            types,
            root: Some(node),
            open: Vec::new(),
        }
    }

    /// Writes one member, element or closing bracket. Returns false if the value was already
    /// complete before the call.
    fn step(&mut self, out: &mut String) -> bool {
        let (inner, below) = match self.open.last_mut() {
            None => return false,
            Some(OpenValue::Object {
                object,
                members,
                first,
            }) => {
                let Some(node) = members.next() else {
                    return self.close('}', out);
                };
                separate(first, out);
                out.push_str(&node.key);
                (object.member(node, self.types, out), &*node.below)
            }
            Some(OpenValue::List {
                objects,
                below,
                first,
            }) => {
                let Some(object) = objects.next() else {
                    return self.close(']', out);
                };
                separate(first, out);
                (MemberContent::Object(object), *below)
            }
        };
        self.enter(inner, below, out);
        true
    }

    fn enter(
        &mut self,
        member: MemberContent<'o>,
        below: &'o [IntrospectionNode],
        out: &mut String,
    ) {
        let open = match member {
            MemberContent::Written => return,
            MemberContent::Object(object) => {
                out.push('{');
                OpenValue::Object {
                    object,
                    members: below.iter(),
                    first: true,
                }
            }
            MemberContent::List(objects) => {
                out.push('[');
                OpenValue::List {
                    objects,
                    below,
                    first: true,
                }
            }
        };
        self.open.push(open);
    }

    fn close(&mut self, bracket: char, out: &mut String) -> bool {
        out.push(bracket);
        self.open.pop();
        true
    }
}

impl ChunkedWriter for IntrospectionWriter<'_> {
    fn write_chunk(&mut self, out: &mut String, bytes: usize) -> bool {
        if let Some(node) = self.root.take() {
            match Object::root(node, self.types) {
                Some(object) => self.enter(MemberContent::Object(object), &node.below, out),
                None => out.push_str("null"),
            }
        }
        while out.len() < bytes && self.step(out) {}
        !self.open.is_empty()
    }
}

fn separate(first: &mut bool, out: &mut String) {
    if !std::mem::take(first) {
        out.push(',');
    }
}
