//! Names that may lead to user-defined code, and the search for such names in SQL.

use std::collections::HashSet;

use super::builtins;
use super::lexer::{Lexer, SqlToken, TokenKind};

/// The longest name that PostgreSQL does not truncate, in bytes (PostgreSQL, "Identifiers and Key
/// Words"). Two different longer spellings can be the same name after truncation.
const LONGEST_NAME: usize = 63;

/// The keywords that stand for operators. PostgreSQL resolves such an operator by name, like an
/// operator that is written as a symbol.
const OPERATOR_KEYWORDS: &[&str] = &[
    "between", "case", "distinct", "ilike", "in", "like", "natural", "nullif", "similar", "using",
];

/// The operators that [`OPERATOR_KEYWORDS`] can stand for.
const KEYWORD_OPERATORS: &[&str] = &[
    "!~", "!~~", "!~~*", "<", "<=", "<>", "=", ">", ">=", "~", "~~", "~~*",
];

/// Names of one database that lead to user-defined code. Examples are the name of a view that calls
/// a function, and the name of a function if a built-in function has the same name. A read that
/// mentions such a name may have side effects.
///
/// Names are stored without schemas, and are compared regardless of case and quoting. So a name in
/// a statement counts as untrusted even if it refers to another object of the same name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UntrustedNames {
    everything: bool,
    names: HashSet<String>,
    attributes: HashSet<String>,
    operators: Vec<String>,
}

impl UntrustedNames {
    /// Makes every statement count as untrusted.
    pub fn add_everything(&mut self) {
        self.everything = true;
    }

    /// Adds the name of a relation.
    pub fn add_relation(&mut self, name: &str) {
        self.names.insert(name.to_lowercase());
    }

    /// Adds the name of a function if the text of a statement may call the function without showing
    /// a call of a user-defined function. There are two such cases:
    ///
    /// - A call by name looks like syntax, or like a call of a built-in function.
    /// - The function can be called as an attribute (`row.function`), because one argument is
    ///   enough for it. `as_attribute` says whether this is the case.
    pub fn add_function(&mut self, name: &str, as_attribute: bool) {
        let name = name.to_lowercase();
        if as_attribute {
            self.attributes.insert(name.clone());
        }
        if builtins::looks_built_in(&name) {
            self.names.insert(name);
        }
    }

    /// Adds an operator and the keywords that stand for it.
    pub fn add_operator(&mut self, symbol: &str) {
        if KEYWORD_OPERATORS.contains(&symbol) {
            self.names
                .extend(OPERATOR_KEYWORDS.iter().map(|&word| word.to_owned()));
        }
        self.operators.push(symbol.to_owned());
        if symbol == "<>" {
            self.operators.push("!=".to_owned());
        }
    }

    /// Whether no name is untrusted.
    pub fn is_empty(&self) -> bool {
        !self.everything
            && self.names.is_empty()
            && self.attributes.is_empty()
            && self.operators.is_empty()
    }

    /// Whether a text for PostgreSQL may mention an untrusted name.
    pub fn are_in(&self, text: &str) -> bool {
        if self.everything {
            return true;
        }
        if self.is_empty() {
            return false;
        }
        let mut lexer = Lexer::new(text);
        let mut after_dot = false;
        loop {
            let Ok(token) = lexer.next() else {
                return true;
            };
            let Some(token) = token else {
                return false;
            };
            if self.is_one(&token, after_dot) {
                return true;
            }
            after_dot = token.kind == TokenKind::Dot;
        }
    }

    fn is_one(&self, token: &SqlToken<'_>, after_dot: bool) -> bool {
        let name = match token.kind {
            TokenKind::Word => token.text.to_lowercase(),
            // The Unicode escapes of a name `U&"…"` are not decoded here, so the name counts as
            // untrusted.
            TokenKind::Quoted if !token.text.starts_with('"') => return true,
            TokenKind::Quoted => {
                let inner = &token.text[1..token.text.len() - 1];
                inner.replace("\"\"", "\"").to_lowercase()
            }
            // PostgreSQL may read a run of symbols as several operators: `=-` as `=` and `-`.
            TokenKind::Operator | TokenKind::EncodedPlus => {
                let mut operators = self.operators.iter();
                return operators.any(|symbol| token.text.contains(symbol.as_str()));
            }
            _ => return false,
        };
        token.text.len() > LONGEST_NAME
            || self.names.contains(&name)
            || (after_dot && self.attributes.contains(&name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn untrusted() -> UntrustedNames {
        let mut untrusted = UntrustedNames::default();
        untrusted.add_relation("News \"x\"");
        untrusted.add_relation("v");
        untrusted.add_function("count", true);
        untrusted.add_function("own", true);
        untrusted.add_function("other", false);
        untrusted.add_operator("###");
        untrusted
    }

    #[test]
    fn a_text_with_an_untrusted_name_is_found() {
        let untrusted = untrusted();
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
            assert!(untrusted.are_in(text), "{text}");
        }
        for text in [
            "select own, other from vv where t.other = 'v' -- v",
            "select 1 ## 2 from \"news x\"",
        ] {
            assert!(!untrusted.are_in(text), "{text}");
        }
    }

    #[test]
    fn keywords_stand_for_operators() {
        let mut untrusted = UntrustedNames::default();
        untrusted.add_operator("=");
        assert!(untrusted.are_in("select 1 in (2)"));
        assert!(untrusted.are_in("select 1 is distinct from 2"));
        assert!(!untrusted.are_in("select 1 < 2"));
    }

    #[test]
    fn nothing_or_everything_is_suspected() {
        let mut untrusted = UntrustedNames::default();
        assert!(untrusted.is_empty() && !untrusted.are_in("'"));
        untrusted.add_everything();
        assert!(!untrusted.is_empty() && untrusted.are_in("select 1"));
    }
}
