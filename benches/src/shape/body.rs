//! Bodies of requests, with random values.

use std::io::Write as _;

use super::template::TemplatePart;
use super::value::{Random, Value};

/// The largest number of parameters of a shape. It is constant, so that the values of the
/// parameters need no allocation.
pub(crate) const MAX_PARAMETERS: usize = 8;

/// Generates the bodies of requests. A body has a constant beginning and end, and a middle part
/// that may be repeated, with new values each time.
#[derive(Clone, Debug)]
pub(crate) struct Body {
    before: String,
    copy: Vec<TemplatePart>,
    copies: u32,
    after: String,
    values: Vec<Value>,
}

impl Body {
    /// Bodies with one middle part.
    pub(crate) fn new(
        [before, after]: [String; 2],
        copy: Vec<TemplatePart>,
        values: Vec<Value>,
    ) -> Self {
        Self {
            before,
            copy,
            copies: 1,
            after,
            values,
        }
    }

    /// The same bodies with `copies` middle parts, separated by commas.
    pub(crate) fn times(mut self, copies: u32) -> Self {
        self.copies = copies;
        self
    }

    /// Writes a body for a user.
    pub(crate) fn write(&self, random: &mut Random, user: u32, into: &mut Vec<u8>) {
        into.extend_from_slice(self.before.as_bytes());
        let mut drawn = [0; MAX_PARAMETERS];
        for copy in 0..self.copies {
            if copy > 0 {
                into.push(b',');
            }
            for (drawn, value) in drawn.iter_mut().zip(&self.values) {
                *drawn = value.draw(random, user);
            }
            for part in &self.copy {
                match part {
                    TemplatePart::Text(text) => into.extend_from_slice(text.as_bytes()),
                    TemplatePart::Parameter(index) => {
                        let drawn = drawn.get(*index).copied().unwrap_or_default();
                        // Writing to a vector does not fail.
                        let _ = write!(into, "{drawn}");
                    }
                }
            }
        }
        into.extend_from_slice(self.after.as_bytes());
    }
}
