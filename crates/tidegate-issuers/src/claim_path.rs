//! Paths to a claim, such as `realm_access.roles[0]`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The maximum length of a path, in bytes.
const MAX_LENGTH: usize = 512;

/// The path to a claim in a token: names joined by dots, and indexes in brackets.
///
/// A name with a dot or a bracket is written in brackets and quotes. Some issuers use URLs as the
/// names of claims: `["https://shop.example.com/roles"][0]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ClaimPath {
    text: String,
    segments: Vec<Segment>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    Member(String),
    Index(usize),
}

/// The reason why a text is not a claim path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{path}` is not a claim path: {expected} was expected at byte {at}; a path is like `realm_access.roles[0]` or `[\"https://example.com/roles\"][0]`"
)]
pub struct ClaimPathError {
    /// The text that was to be parsed.
    pub path: String,
    /// The byte offset at which parsing stopped.
    pub at: usize,
    /// A description of the text that was expected at `at`.
    pub expected: &'static str,
}

impl ClaimPath {
    /// The path of a claim at the top level.
    pub(crate) fn member(name: &str) -> Self {
        Self {
            text: name.to_owned(),
            segments: vec![Segment::Member(name.to_owned())],
        }
    }

    /// The value at this path in the claims of a token; `None` if there is none.
    pub fn find<'c>(&self, claims: &'c Map<String, Value>) -> Option<&'c Value> {
        let (first, rest) = self.segments.split_first()?;
        let Segment::Member(first) = first else {
            return None;
        };
        rest.iter()
            .try_fold(claims.get(first)?, |value, segment| match segment {
                Segment::Member(name) => value.get(name),
                Segment::Index(index) => value.get(index),
            })
    }
}

impl ClaimPath {
    /// Whether the path has an index. Such a path leads into an array.
    pub(crate) fn has_index(&self) -> bool {
        let mut segments = self.segments.iter();
        segments.any(|segment| matches!(segment, Segment::Index(_)))
    }

    /// Copies the value at this path to the same path in `target`, and creates the objects above
    /// the value if they are missing. Does nothing if there is no value or if the path has an
    /// index.
    pub(crate) fn copy(&self, claims: &Map<String, Value>, target: &mut Map<String, Value>) {
        let Some(value) = self.find(claims).filter(|_| !self.has_index()) else {
            return;
        };
        let Some((Segment::Member(name), parents)) = self.segments.split_last() else {
            return;
        };
        let mut object = target;
        for segment in parents {
            let Segment::Member(name) = segment else {
                return;
            };
            let child = object.entry(name).or_insert_with(|| Map::new().into());
            // This does not happen: `target` has only values that were copied from `claims`, so
            // `child` is an object, as it is in `claims`.
            let Value::Object(child) = child else { return };
            object = child;
        }
        object.insert(name.clone(), value.clone());
    }
}

impl FromStr for ClaimPath {
    type Err = ClaimPathError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = |at, expected| ClaimPathError {
            path: text.chars().take(MAX_LENGTH).collect(),
            at,
            expected,
        };
        if text.len() > MAX_LENGTH {
            return Err(error(MAX_LENGTH, "the end"));
        }
        let mut segments = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let at = text.len() - rest.len();
            let (segment, behind) =
                segment(rest, segments.is_empty()).map_err(|expected| error(at, expected))?;
            segments.push(segment);
            rest = behind;
        }
        match segments.first() {
            Some(Segment::Member(_)) => Ok(Self {
                text: text.to_owned(),
                segments,
            }),
            _ => Err(error(0, "the name of a claim")),
        }
    }
}

/// Parses the segment at the start of the text, and returns the text after it. If `is_first` is
/// set, the text is a whole path, and a name at its start needs no dot. The error describes the
/// text that was expected.
fn segment(text: &str, is_first: bool) -> Result<(Segment, &str), &'static str> {
    if let Some(quoted) = text.strip_prefix("[\"") {
        let (name, behind) = quoted
            .split_once("\"]")
            .ok_or("a name that ends with \"]")?;
        return Ok((Segment::Member(name.to_owned()), behind));
    }
    if let Some(index) = text.strip_prefix('[') {
        let (digits, behind) = index.split_once(']').ok_or("an index that ends with ]")?;
        let index = digits.parse().map_err(|_| "an index, such as [0]")?;
        return Ok((Segment::Index(index), behind));
    }
    let name = match text.strip_prefix('.') {
        Some(name) => name,
        None if is_first => text,
        None => return Err("a dot or a bracket"),
    };
    let (name, behind) = name.split_at(name.find(['.', '[']).unwrap_or(name.len()));
    if name.is_empty() || name.contains([']', '"']) {
        return Err("a name");
    }
    Ok((Segment::Member(name.to_owned()), behind))
}

impl From<ClaimPath> for String {
    fn from(path: ClaimPath) -> Self {
        path.text
    }
}

impl TryFrom<String> for ClaimPath {
    type Error = ClaimPathError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl fmt::Display for ClaimPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
