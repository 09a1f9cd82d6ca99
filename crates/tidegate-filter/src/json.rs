//! A JSON value of a request: text as it came, or a literal with values put in.

use std::borrow::Cow;

/// A JSON value, read only as far as somebody asks.
///
/// A value that came as JSON text stays text, so that numbers keep their digits and what only
/// passes through is never taken apart. A literal of a GraphQL document is a list or an object
/// here, its scalars are their JSON text.
#[derive(Clone, Debug)]
pub enum Json<'a> {
    /// The JSON text of any value.
    Text(Cow<'a, str>),
    /// A list.
    List(Vec<Json<'a>>),
    /// An object; the members in their order.
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
}
