//! Derives untrusted names from the definitions of a database.

use std::collections::{HashMap, HashSet};

use tidegate_sql::Statement;
use tidegate_sql::statement::{Purity, UntrustedNames};

use super::query::Definition;
use super::unsafe_functions::UnsafeFunctions;

/// A relation, the texts of the code that a statement on it may run, and the OIDs of the relations
/// that such a statement also reads or writes (`children`).
#[derive(Default)]
struct Relation<'a> {
    name: &'a str,
    texts: Vec<&'a str>,
    children: Vec<&'a str>,
}

/// The sets of names for which the text of a statement is searched.
#[derive(Debug, Default)]
pub(super) struct UntrustedSets {
    /// Names that make a read impure.
    pub(super) reads: UntrustedNames,
    /// Names that make a write impure: all of `reads`, the relations with code that runs only in a
    /// write (such as a trigger), and every name if the check of a domain may run code.
    pub(super) writes: UntrustedNames,
    /// Names that make a read impure if it fills rows of a table ([`Statement::fills_rows`]): all
    /// of `reads`, and every name if the check of a domain may run code.
    pub(super) rows: UntrustedNames,
    /// Whether the functions of claims belong to the service, so that their calls are trusted.
    pub(super) claims: bool,
    /// Relations under row level security, and the views that read them.
    pub(super) restricted: UntrustedNames,
    /// The functions that the owner's statements must not call on shared connections.
    pub(super) calls: UnsafeFunctions,
}

pub(super) fn find(definitions: &[Definition]) -> UntrustedSets {
    let claims = definitions.iter().any(|one| one.kind == "claims");
    let without = |kinds: &'static [&str]| {
        let is_left = move |one: &&Definition| !kinds.contains(&&*one.kind);
        definitions.iter().filter(is_left)
    };
    UntrustedSets {
        reads: find_in(without(&["write", "cascade", "type"]), claims),
        rows: find_in(without(&["write", "cascade"]), claims),
        claims,
        writes: find_in(definitions.iter(), claims),
        restricted: find_restricted(definitions),
        calls: UnsafeFunctions::find(definitions),
    }
}

/// Finds the names that these definitions make untrusted. `claims` says whether the functions of
/// claims belong to the service. If `claims` is true, calls of these functions are trusted.
///
/// PostgreSQL prints definitions with an empty `search_path`, so a function without a schema in a
/// definition is a built-in function. Therefore a definition can be analysed like the text of a
/// caller.
fn find_in<'a>(definitions: impl Iterator<Item = &'a Definition>, claims: bool) -> UntrustedNames {
    let mut untrusted = UntrustedNames::default();
    let mut relations: HashMap<&str, Relation<'_>> = HashMap::new();
    for definition in definitions {
        let (oid, name, text) = (&*definition.oid, &*definition.name, &*definition.text);
        match &*definition.kind {
            "relation" | "write" => {
                let relation = relations.entry(oid).or_default();
                relation.name = name;
                relation.texts.push(text);
            }
            "child" | "cascade" => relations.entry(oid).or_default().children.push(text),
            "call" | "restricted" | "claims" => {}
            "function" => untrusted.add_function(name, text == "true"),
            "operator" => untrusted.add_operator(name),
            "type" if !calls_unknown(text, claims) => {}
            // The other definitions are casts that call a function, and types whose check calls
            // unknown code. The text of a statement shows neither implicit casts nor the types of
            // values, so any statement may run this code.
            _ => untrusted.add_everything(),
        }
    }
    propagate(&relations, &mut untrusted, claims);
    untrusted
}

/// Adds relations whose code calls unknown functions or mentions an untrusted name, and relations
/// with an added relation among their children. Repeats this until no relation is left to add.
fn propagate(
    relations: &HashMap<&str, Relation<'_>>,
    untrusted: &mut UntrustedNames,
    claims: bool,
) {
    let mut found: HashSet<&str> = HashSet::new();
    loop {
        let added: Vec<_> = relations
            .iter()
            .filter(|(oid, relation)| {
                !found.contains(*oid)
                    && (relation.children.iter().any(|child| found.contains(child))
                        || relation
                            .texts
                            .iter()
                            .any(|text| calls_unknown(text, claims) || untrusted.are_in(text)))
            })
            .collect();
        if added.is_empty() {
            return;
        }
        for (oid, relation) in added {
            found.insert(*oid);
            untrusted.add_relation(relation.name);
        }
    }
}

/// Finds relations under row level security, and views that mention one of them, directly or
/// through another view.
fn find_restricted(definitions: &[Definition]) -> UntrustedNames {
    let mut restricted = UntrustedNames::default();
    let of_kind = |kind: &'static str| definitions.iter().filter(move |one| one.kind == kind);
    for one in of_kind("restricted") {
        restricted.add_relation(&one.name);
    }
    let mut others: Vec<_> = of_kind("relation").collect();
    loop {
        let (found, rest): (Vec<_>, Vec<_>) = others
            .into_iter()
            .partition(|one| restricted.are_in(&one.text));
        if found.is_empty() {
            return restricted;
        }
        for one in found {
            restricted.add_relation(&one.name);
        }
        others = rest;
    }
}

/// Whether the text may call something other than a built-in function without side effects.
/// `claims` says whether the functions of claims may be called too.
fn calls_unknown(text: &str, claims: bool) -> bool {
    let is_known = |statement: Statement| {
        statement.purity() == Purity::Stateless && (claims || !statement.calls_claims())
    };
    !Statement::parse(text).is_ok_and(is_known)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition([kind, oid, name, text]: [&str; 4]) -> Definition {
        Definition {
            kind: kind.to_owned(),
            oid: oid.to_owned(),
            name: name.to_owned(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn distrust_spreads_to_views_and_parents() {
        let definitions = [
            [
                "relation",
                "1",
                "plain",
                "SELECT count(*) AS n FROM public.t;",
            ],
            [
                "relation",
                "2",
                "second",
                "SELECT first.a FROM public.first;",
            ],
            ["relation", "3", "first", "SELECT public.own() AS a;"],
            ["relation", "4", "parent", "select"],
            ["child", "4", "", "5"],
            ["relation", "5", "part", "select (public.own() > 0)"],
            ["relation", "6", "far", ""],
            ["function", "7", "own", "false"],
        ];
        let untrusted = find(&definitions.map(definition)).reads;
        for name in ["second", "first", "parent", "part", "far"] {
            assert!(untrusted.are_in(&format!("table {name}")), "{name}");
        }
        assert!(!untrusted.are_in("select own from plain"));
    }

    #[test]
    fn ordinary_definitions_are_trusted() {
        let definitions = [
            [
                "relation",
                "1",
                "v",
                "SELECT lower(t.name) AS n FROM public.t WHERE (t.a = 1);",
            ],
            ["relation", "2", "t", "select (owner = CURRENT_USER)"],
            [
                "relation",
                "3",
                "p",
                "select ((price > (0)::numeric) AND (n ~~ '%@%'::text))",
            ],
            [
                "relation",
                "4",
                "s",
                "select ((s)::text = ANY ((ARRAY['a'::character varying, \
              'b'::character varying])::text[]))",
            ],
            ["function", "5", "touch", "false"],
        ];
        assert!(find(&definitions.map(definition)).reads.is_empty());
    }

    #[test]
    fn restricted_are_tables_under_row_level_security_and_views_that_read_them() {
        let definitions = [
            ["restricted", "1", "notes", ""],
            [
                "relation",
                "2",
                "second",
                "SELECT first.a FROM public.first;",
            ],
            [
                "relation",
                "3",
                "first",
                "SELECT notes.a FROM public.notes;",
            ],
            [
                "relation",
                "4",
                "other",
                "SELECT items.a FROM public.items;",
            ],
        ];
        let found = find(&definitions.map(definition));
        for name in ["notes", "first", "second"] {
            assert!(found.restricted.are_in(&format!("table {name}")), "{name}");
        }
        assert!(!found.restricted.are_in("select a from other, items"));
        assert!(found.reads.is_empty() && found.writes.is_empty());
    }

    #[test]
    fn policies_that_ask_for_claims_are_trusted_if_the_functions_are() {
        let policy = "select (owner = ( SELECT tidegate.user_id() AS user_id))";
        let relation = ["relation", "1", "notes", policy];
        let default = ["write", "1", "notes", "select tidegate.claim('org'::text)"];
        let found = find(&[relation, default].map(definition));
        assert!(found.reads.are_in("table notes") && found.writes.are_in("table notes"));
        let found = find(&[relation, default, ["claims", "", "", ""]].map(definition));
        assert!(found.reads.is_empty() && found.writes.is_empty());
        let view = r#"SELECT x FROM public."v tidegate.user_id(""#;
        let odd = [
            ["claims", "", "", ""],
            [
                "relation",
                "2",
                "v tidegate.user_id(",
                "SELECT own.f() AS x;",
            ],
            ["relation", "3", "second", view],
        ];
        let found = find(&odd.map(definition));
        assert!(found.reads.are_in("table second"), "a name is no call");
        let also = ["relation", "1", "notes", "select own.f(tidegate.user_id())"];
        let found = find(&[relation, also, ["claims", "", "", ""]].map(definition));
        assert!(found.reads.are_in("table notes"));
    }

    #[test]
    fn a_user_defined_cast_makes_everything_untrusted() {
        let untrusted = find(&[definition(["cast", "1", "", ""])]).reads;
        assert!(untrusted.are_in("select 1"));
    }

    #[test]
    fn code_that_only_writes_run_makes_writes_impure() {
        let definitions = [
            ["write", "1", "fired", ""],
            ["write", "2", "stamped", "select public.own()"],
            ["write", "3", "plain", "select now()"],
            ["cascade", "4", "", "1"],
            ["relation", "4", "parent", "select 1"],
            ["relation", "5", "over", "SELECT fired.a FROM public.fired;"],
            ["type", "6", "positive", "select (VALUE > 0)"],
        ];
        let found = find(&definitions.map(definition));
        assert!(found.reads.is_empty() && found.rows.is_empty());
        for name in ["fired", "stamped", "parent", "over"] {
            assert!(
                found.writes.are_in(&format!("delete from {name}")),
                "{name}"
            );
        }
        assert!(!found.writes.are_in("insert into plain values (1)"));
        let found = find(&[definition(["type", "1", "odd", "select public.own(VALUE)"])]);
        assert!(found.reads.is_empty() && found.writes.are_in("insert into t values (1)"));
        assert!(found.rows.are_in("select 1"));
    }
}
