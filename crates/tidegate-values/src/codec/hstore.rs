//! `hstore` values (PostgreSQL, "hstore", "External Representation") as JSON objects.

use bytes::BytesMut;

use super::token::Tokens;
use crate::append::json;
use crate::error::{MalformedValue, Result};

/// Appends a text such as `"a"=>"1", "b"=>NULL` as an object of strings and nulls.
pub(super) fn text(raw: &[u8], out: &mut BytesMut) -> Result<()> {
    let mut tokens = Tokens::new(raw);
    out.extend_from_slice(b"{");
    while tokens.peek().is_some() {
        let key = tokens.token(b"=").given().ok_or(MalformedValue)?;
        json::string(&key, out);
        out.extend_from_slice(b":");
        if !tokens.word(b"=>") {
            return Err(MalformedValue);
        }
        match tokens.token(b",").element() {
            Some(value) => json::string(&value, out),
            None => out.extend_from_slice(b"null"),
        }
        if tokens.word(b", ") {
            out.extend_from_slice(b",");
        } else {
            tokens.end()?;
        }
    }
    out.extend_from_slice(b"}");
    Ok(())
}
