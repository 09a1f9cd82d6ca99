//! The members of one object in a request.

use std::fmt::Display;

use serde_json::{Map, Value};
use tidegate_identity::UserKind;

use tidegate_http::error::ApiError;

/// The members of an object that have not been read yet. In results, `None` is an absent member,
/// and `Some(None)` is a null.
pub(crate) struct ObjectMembers(Map<String, Value>);

impl ObjectMembers {
    pub(crate) fn new(object: Map<String, Value>) -> Self {
        Self(object)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    fn take<T>(
        &mut self,
        name: &str,
        expected: &str,
        read: impl FnOnce(Value) -> Option<T>,
    ) -> Result<Option<T>, ApiError> {
        let Some(value) = self.0.shift_remove(name) else {
            return Ok(None);
        };
        let wrong = || ApiError::input(format!("`{name}`: expected {expected}"));
        read(value).map(Some).ok_or_else(wrong)
    }

    /// Reads a required member, which must be a string.
    pub(crate) fn required(&mut self, name: &str) -> Result<String, ApiError> {
        self.text(name)?
            .ok_or_else(|| ApiError::input(format!("`{name}`: missing")))
    }

    /// Reads a member that is a string.
    pub(crate) fn text(&mut self, name: &str) -> Result<Option<String>, ApiError> {
        self.take(name, "a string", text)
    }

    /// Reads a member that is a string or null.
    #[expect(
        clippy::option_option,
        reason = "a member may be absent, null or there"
    )]
    pub(crate) fn optional_text(&mut self, name: &str) -> Result<Option<Option<String>>, ApiError> {
        self.take(name, "a string or null", |value| match value {
            Value::Null => Some(None),
            value => text(value).map(Some),
        })
    }

    /// Reads a member that is a boolean.
    pub(crate) fn flag(&mut self, name: &str) -> Result<Option<bool>, ApiError> {
        self.take(name, "true or false", |value| value.as_bool())
    }

    /// Reads a member that is the kind of a user.
    pub(crate) fn user_kind(&mut self, name: &str) -> Result<Option<UserKind>, ApiError> {
        self.take(name, "role or member", |value| {
            UserKind::from_name(value.as_str()?)
        })
    }

    /// Reads a member that is a whole number of seconds.
    pub(crate) fn seconds(&mut self, name: &str) -> Result<Option<u64>, ApiError> {
        self.take(name, "a whole number of seconds", |value| value.as_u64())
    }

    /// Reads a member that is an array of strings, or another value that `other` can read.
    fn list(
        &mut self,
        name: &str,
        expected: &str,
        other: impl FnOnce(Value) -> Option<Vec<String>>,
    ) -> Result<Option<Vec<String>>, ApiError> {
        match self.0.shift_remove(name) {
            None => Ok(None),
            Some(Value::Array(items)) => {
                let element = |item| text(item).ok_or("expected a string");
                each(name, items, element).map(Some)
            }
            Some(value) => {
                let wrong = || ApiError::input(format!("`{name}`: expected {expected}"));
                other(value).map(Some).ok_or_else(wrong)
            }
        }
    }

    /// Reads a member that is an array of strings.
    pub(crate) fn texts(&mut self, name: &str) -> Result<Option<Vec<String>>, ApiError> {
        self.list(name, "an array of strings", |_| None)
    }

    /// Reads a member that is an array of strings or null.
    #[expect(
        clippy::option_option,
        reason = "a member may be absent, null or there"
    )]
    pub(crate) fn optional_texts(
        &mut self,
        name: &str,
    ) -> Result<Option<Option<Vec<String>>>, ApiError> {
        if self.0.get(name).is_some_and(Value::is_null) {
            self.0.shift_remove(name);
            return Ok(Some(None));
        }
        Ok(self.texts(name)?.map(Some))
    }

    /// Reads a member that is a name, a list of names, or null. Null is read as an empty list.
    pub(crate) fn names(&mut self, name: &str) -> Result<Option<Vec<String>>, ApiError> {
        let expected = "a string, an array of strings or null";
        self.list(name, expected, |value| match value {
            Value::Null => Some(Vec::new()),
            value => text(value).map(|name| vec![name]),
        })
    }

    /// Reads a member that is a string or an array of strings.
    pub(crate) fn text_or_texts(&mut self, name: &str) -> Result<Option<Vec<String>>, ApiError> {
        let expected = "a string or an array of strings";
        self.list(name, expected, |value| text(value).map(|one| vec![one]))
    }

    /// Reads a member that is an object, a string with an object as JSON, or null.
    #[expect(
        clippy::option_option,
        reason = "absent, null and given are three things"
    )]
    pub(crate) fn object_or_text(
        &mut self,
        name: &str,
    ) -> Result<Option<Option<Map<String, Value>>>, ApiError> {
        let expected = "an object, a string that is a JSON object, or null";
        self.take(name, expected, |value| match value {
            Value::Null => Some(None),
            Value::Object(object) => Some(Some(object)),
            Value::String(text) => serde_json::from_str(&text).ok().map(Some),
            _ => None,
        })
    }

    /// Refuses members that were not read. `known` is a list of the valid members, for the text of
    /// the error.
    pub(crate) fn finish(self, known: &str) -> Result<(), ApiError> {
        match self.0.keys().next() {
            None => Ok(()),
            Some(name) => Err(ApiError::input(format!(
                "`{name}`: unknown member; known are {known}"
            ))),
        }
    }
}

/// Reads each element of the array `name`. The message of an error names the array and the index.
pub(crate) fn each<I, T, E: Display>(
    name: &str,
    items: impl IntoIterator<Item = I>,
    read: impl Fn(I) -> Result<T, E>,
) -> Result<Vec<T>, ApiError> {
    let element = |(index, item)| {
        let wrong = |error| ApiError::input(format!("`{name}[{index}]`: {error}"));
        read(item).map_err(wrong)
    };
    items.into_iter().enumerate().map(element).collect()
}

fn text(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        _ => None,
    }
}
