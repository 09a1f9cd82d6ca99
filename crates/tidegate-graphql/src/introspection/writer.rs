//! Writing introspection's objects piece by piece.

use std::slice;

use super::Node;
use super::object::{Member, Object, Objects};
use crate::definition::Types;
use crate::unwritten::Fill;

/// Writes the value of `__schema` or `__type`, and can stop after any member: what is open stands
/// on a stack of its own.
pub(crate) struct Writer<'o> {
    types: &'o Types,
    root: Option<&'o Node>,
    open: Vec<Open<'o>>,
}

/// An object or a list whose end has not been written.
enum Open<'o> {
    Object {
        object: Object<'o>,
        members: slice::Iter<'o, Node>,
        first: bool,
    },
    List {
        objects: Objects<'o>,
        below: &'o [Node],
        first: bool,
    },
}

impl<'o> Writer<'o> {
    /// A writer that has written nothing.
    pub(crate) fn new(node: &'o Node, types: &'o Types) -> Self {
        Self {
            types,
            root: Some(node),
            open: Vec::new(),
        }
    }

    /// Writes one member or element, or an end; `false` when all ends have been written.
    fn step(&mut self, out: &mut String) -> bool {
        let (inner, below) = match self.open.last_mut() {
            None => return false,
            Some(Open::Object {
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
            Some(Open::List {
                objects,
                below,
                first,
            }) => {
                let Some(object) = objects.next() else {
                    return self.close(']', out);
                };
                separate(first, out);
                (Member::Object(object), *below)
            }
        };
        self.enter(inner, below, out);
        true
    }

    fn enter(&mut self, member: Member<'o>, below: &'o [Node], out: &mut String) {
        let open = match member {
            Member::Written => return,
            Member::Object(object) => {
                out.push('{');
                Open::Object {
                    object,
                    members: below.iter(),
                    first: true,
                }
            }
            Member::List(objects) => {
                out.push('[');
                Open::List {
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

impl Fill for Writer<'_> {
    fn fill(&mut self, out: &mut String, bytes: usize) -> bool {
        if let Some(node) = self.root.take() {
            match Object::root(node, self.types) {
                Some(object) => self.enter(Member::Object(object), &node.below, out),
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
