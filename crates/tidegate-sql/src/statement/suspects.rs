//! Names behind which a database keeps code of its own, and texts that mention them.

use std::collections::HashSet;

use super::lexer::{Lexer, Token, TokenKind};
use super::names;

/// The longest name that no server truncates (PostgreSQL, "Identifiers and Key Words"); beyond it
/// two spellings can be one name.
const LONGEST_NAME: usize = 63;

/// Keywords that stand for an operator, which PostgreSQL looks up like one that is written.
const OPERATOR_KEYWORDS: &[&str] = &[
    "between", "case", "distinct", "ilike", "in", "like", "natural", "nullif", "similar", "using",
];

/// The operators that those keywords stand for.
const KEYWORD_OPERATORS: &[&str] = &[
    "!~", "!~~", "!~~*", "<", "<=", "<>", "=", ">", ">=", "~", "~~", "~~*",
];

/// The names of one database that a read may not mention if it is to leave nothing in its session:
/// they lead to code that somebody has defined there, such as a view that calls a function, or a
/// function named like a built-in one.
///
/// Names stand without their schemas and are compared without regard to case and quotes, so that
/// in doubt a name is taken for a suspect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Suspects {
    everything: bool,
    names: HashSet<String>,
    attributes: HashSet<String>,
    operators: Vec<String>,
}

impl Suspects {
    /// Suspects every statement.
    pub fn suspect_everything(&mut self) {
        self.everything = true;
    }

    /// Suspects a relation.
    pub fn suspect_relation(&mut self, name: &str) {
        self.names.insert(name.to_lowercase());
    }

    /// Suspects a function where a text can call it that otherwise calls built-in functions only:
    /// by the name of one of those, and, if one argument is enough for it, as an attribute
    /// (`row.function`).
    pub fn suspect_function(&mut self, name: &str, as_attribute: bool) {
        let name = name.to_lowercase();
        if as_attribute {
            self.attributes.insert(name.clone());
        }
        if names::may_be_called(&name) {
            self.names.insert(name);
        }
    }

    /// Suspects an operator, and the keywords that stand for it.
    pub fn suspect_operator(&mut self, symbol: &str) {
        if KEYWORD_OPERATORS.contains(&symbol) {
            self.names
                .extend(OPERATOR_KEYWORDS.iter().map(|&word| word.to_owned()));
        }
        self.operators.push(symbol.to_owned());
        if symbol == "<>" {
            self.operators.push("!=".to_owned());
        }
    }

    /// Whether nothing is suspected.
    pub fn is_empty(&self) -> bool {
        !self.everything
            && self.names.is_empty()
            && self.attributes.is_empty()
            && self.operators.is_empty()
    }

    /// Whether a text for PostgreSQL mentions a suspect; in doubt it does.
    pub fn are_in(&self, text: &str) -> bool {
        if self.everything {
            return true;
        }
        if self.is_empty() {
            return false;
        }
        let mut lexer = Lexer::new(text);
        let mut behind_dot = false;
        loop {
            let Ok(token) = lexer.next() else {
                return true;
            };
            let Some(token) = token else {
                return false;
            };
            if self.is_one(&token, behind_dot) {
                return true;
            }
            behind_dot = token.kind == TokenKind::Dot;
        }
    }

    fn is_one(&self, token: &Token<'_>, behind_dot: bool) -> bool {
        let name = match token.kind {
            TokenKind::Word => token.text.to_lowercase(),
            // Escapes are not read.
            TokenKind::Quoted if !token.text.starts_with('"') => return true,
            TokenKind::Quoted => {
                let inner = &token.text[1..token.text.len() - 1];
                inner.replace("\"\"", "\"").to_lowercase()
            }
            // A run of symbols may be several operators to PostgreSQL: `=-` is `=` and `-`.
            TokenKind::Operator | TokenKind::EncodedPlus => {
                let mut operators = self.operators.iter();
                return operators.any(|symbol| token.text.contains(symbol.as_str()));
            }
            _ => return false,
        };
        token.text.len() > LONGEST_NAME
            || self.names.contains(&name)
            || (behind_dot && self.attributes.contains(&name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suspects() -> Suspects {
        let mut suspects = Suspects::default();
        suspects.suspect_relation("News \"x\"");
        suspects.suspect_relation("v");
        suspects.suspect_function("count", true);
        suspects.suspect_function("own", true);
        suspects.suspect_function("other", false);
        suspects.suspect_operator("###");
        suspects
    }

    #[test]
    fn a_text_that_mentions_a_suspect_is_found() {
        let suspects = suspects();
        let long = format!("select 1 from {}", "v".repeat(64));
        for text in [
            "table V",
            "select * from \"v\"",
            "select 1 from a.\"news \"\"x\"\"\"",
            "select U&\"\\0076\" from t",
            "select count(*) from t",
            "select t.own from t",
            "select t.\"OWN\" from t",
            "select 1###-2",
            "select 'unfinished",
            &long,
        ] {
            assert!(suspects.are_in(text), "{text}");
        }
        for text in [
            "select own, other from vv where t.other = 'v' -- v",
            "select 1 ## 2 from \"news x\"",
        ] {
            assert!(!suspects.are_in(text), "{text}");
        }
    }

    #[test]
    fn keywords_stand_for_operators() {
        let mut suspects = Suspects::default();
        suspects.suspect_operator("=");
        assert!(suspects.are_in("select 1 in (2)"));
        assert!(suspects.are_in("select 1 is distinct from 2"));
        assert!(!suspects.are_in("select 1 < 2"));
    }

    #[test]
    fn nothing_or_everything_is_suspected() {
        let mut suspects = Suspects::default();
        assert!(suspects.is_empty() && !suspects.are_in("'"));
        suspects.suspect_everything();
        assert!(!suspects.is_empty() && suspects.are_in("select 1"));
    }
}
