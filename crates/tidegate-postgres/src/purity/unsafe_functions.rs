//! Decides which functions the owner's statements may call on shared connections.
//!
//! In a database with shared connections, no role that a caller can use may create code (see
//! `authenticator`). Therefore the functions of the database are trusted like the owner's triggers
//! and views. But a statement of the owner may pass values of the caller to a function, and the
//! function may run a value as SQL, or set a setting to it. On a login connection this does no
//! harm. On a shared connection the caller could use the function to become another user.
//!
//! A function is unsafe if its definition can run text as SQL, set a setting, change the role, or
//! read sequence values of the session. It is also unsafe if its definition mentions an unsafe
//! function or cannot be read.

use std::collections::{HashMap, HashSet};

use super::query::Definition;

/// Words with which code in SQL or PL/pgSQL runs text as SQL, sets a setting, or reads sequence
/// values that writes of other callers have left in the session.
const UNSAFE: [&str; 6] = [
    "currval",
    "execute",
    "lastval",
    "set_config",
    "ts_rewrite",
    "ts_stat",
];
/// Code that contains one of these strings is unsafe. A name with Unicode escapes (`u&"`) may stand
/// for any name, XML functions such as `query_to_xml` run text as SQL, and an UPDATE of
/// `pg_settings` changes settings.
const UNSAFE_PARTS: [&str; 3] = ["u&\"", "_to_xml", "pg_settings"];

/// The functions that the owner's statements must not call on shared connections.
#[derive(Debug, Default)]
pub(super) struct UnsafeFunctions {
    names: HashSet<String>,
    /// Whether every statement counts as unsafe. This is `true` if the name of an unsafe function
    /// is not a single word. Statements are searched for single words only, so a call of this
    /// function would not be found.
    every: bool,
}

impl UnsafeFunctions {
    /// Finds the unsafe functions among the definitions of the kind `call`.
    pub(super) fn find(definitions: &[Definition]) -> Self {
        let functions = definitions.iter().filter(|known| known.kind == "call");
        let mut unsafe_functions = Self::default();
        let mut others: HashMap<&str, Vec<HashSet<String>>> = HashMap::new();
        for function in functions {
            if is_unsafe(&function.text) {
                unsafe_functions.add(&function.name);
            } else {
                let known = others.entry(&function.name).or_default();
                known.push(words(&function.text));
            }
        }
        loop {
            let calls = |words: &HashSet<String>| !unsafe_functions.names.is_disjoint(words);
            let found: Vec<_> = others
                .iter()
                .filter(|(_, definitions)| definitions.iter().any(calls))
                .map(|(name, _)| *name)
                .collect();
            if found.is_empty() {
                return unsafe_functions;
            }
            for name in found {
                others.remove(name);
                unsafe_functions.add(name);
            }
        }
    }

    /// Whether a statement may call an unsafe function, or contains an unsafe word itself.
    pub(super) fn are_in(&self, text: &str) -> bool {
        self.every || is_unsafe(text) || !self.names.is_disjoint(&words(text))
    }

    fn add(&mut self, name: &str) {
        let name = name.to_lowercase();
        self.every |= !name.chars().all(is_word);
        self.names.insert(name);
    }
}

/// Whether a text contains unsafe words. An empty text counts as unsafe, because it stands for a
/// definition that could not be read.
fn is_unsafe(text: &str) -> bool {
    let lower = text.to_lowercase();
    let words = words(&lower);
    let has = |word: &str| words.contains(word);
    text.is_empty()
        || UNSAFE.iter().any(|word| has(word))
        || UNSAFE_PARTS.iter().any(|part| lower.contains(part))
        || (has("set") || has("reset")) && (has("role") || has("authorization"))
}

/// The words of a text in lower case, including those in comments, strings and names. A word that
/// contains `$` is returned whole and also split at `$`, because the `$` may end a dollar quote
/// (`$body$set`).
fn words(text: &str) -> HashSet<String> {
    let words = text.split(|character| !is_word(character));
    let parts = words.clone().flat_map(|word| word.split('$'));
    let words = words.chain(parts).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '$')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(functions: &[[&str; 2]]) -> UnsafeFunctions {
        let functions = functions.iter().map(|[name, text]| Definition {
            kind: "call".to_owned(),
            oid: String::new(),
            name: (*name).to_owned(),
            text: (*text).to_owned(),
        });
        UnsafeFunctions::find(&functions.collect::<Vec<_>>())
    }

    #[test]
    fn what_runs_a_text_or_changes_the_role_is_unsafe() {
        for text in [
            "",
            "begin EXECUTE format('select %s', q); end",
            "begin perform pg_catalog.\"set_config\"(a, b, true); end",
            "begin set /* as */ local Role x; end",
            "select U&\"\\0065xecute\"()",
            "select query_to_xml(q, true, false, '')",
            "create function f() returns void language sql as $function$set /**/ role x$function$",
            "update pg_settings set setting = b where name = a",
        ] {
            let functions = found(&[["f", text], ["g", "select 1"]]);
            assert!(functions.are_in("select public.\"F\"(1)"), "{text}");
            assert!(!functions.are_in("select g(1), execut(2)"), "{text}");
        }
        let none = found(&[["f", "update t set name = a where role = 'x'"]]);
        assert!(none.are_in("select f(1)"), "in doubt");
        let none = found(&[["f", "select role from t"]]);
        assert!(!none.are_in("select f(1)"));
        assert!(none.are_in("select set_config(:a, :b, true)"));
    }

    #[test]
    fn what_names_an_unsafe_function_is_unsafe_too() {
        let functions = found(&[
            ["third", "select second(a)"],
            ["second", "select a"],
            ["second", "select first(a)"],
            ["first", ""],
            ["other", "select a"],
        ]);
        for name in ["first", "second", "third"] {
            assert!(functions.are_in(&format!("select {name}(1)")), "{name}");
        }
        assert!(!functions.are_in("select other(1)"));
    }

    #[test]
    fn a_name_that_is_no_word_makes_every_call_unsafe() {
        assert!(found(&[["run it", ""]]).are_in("select other(1)"));
        assert!(!found(&[["run it", "select 1"]]).are_in("select other(1)"));
    }
}
