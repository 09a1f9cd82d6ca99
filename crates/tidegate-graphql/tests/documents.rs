//! Tests of which documents are valid, and of the errors of the others.

use std::fmt::Write as _;

use crate::fixture::{api, codes};

const VALID: &[&str] = &[
    "{ __typename }",
    "{ getArtists { id name } }",
    "{ getArtists(where: {id: 1, and: [{name: {like: \"a%\"}}]}) { id } }",
    "query($w: JSON) { getArtists(where: $w) { id } }",
    "query($n: String) { getArtists(where: {name: $n}) { id } }",
    "query($n: String, $l: Int) { getArtists(where: {or: [{name: {eq: $n}}]}, limit: $l) { id } }",
    "query($w: JSON = {id: 3}) { getArtists(where: $w) { id } }",
    "{ getArtists(id: 3) { id } }",
    "{ getArtists(id: \"3\") { id } }",
    "{ getArtists(id: 99999999999) { id } }",
    "{ getArtists(where: {plays: 99999999999999}) { id } }",
    "{ a: getArtists { n: name } b: getArtists { ...f } } fragment f on Artists { name ... on Artists { id } ... { born } }",
    "query($yes: Boolean!) { getArtists { id @include(if: $yes) name @skip(if: $yes) } }",
    "query($yes: Boolean = true) { getArtists { id @include(if: $yes) } }",
    "{ getArtists { active { lower upper lowerInclusive empty __typename } home { x } area { points { x y } } } }",
    "{ getArtists { albums(where: {title: \"x\"}, orderBy: {id: desc}, limit: 2) { title artists { name } albumsArtistIdFkey { id } } } }",
    "{ getAlbumsAggregate(groupBy: [\"artist_id\"]) { count artist_id sum { price } avg { price } min { title } count_ } }",
    "{ getBare { _type __typename } }",
    "{ getTotals { sum at } }",
    "mutation { insertArtists(data: {name: \"x\", tags: []}) { id } deleteArtists(id: 3) { id } }",
    "mutation($o: [JSON]) { insertArtists(objects: $o) { id } }",
    "mutation($o: JSON) { insertArtists(objects: [$o, {name: \"b\"}]) { id } }",
    "mutation { insertArtists(objects: {name: \"one\"}) { id } }",
    "mutation { updateParts(where: {a: 1}, data: {b: 2}) { a b } }",
    "subscription { ArtistsMessageAdded(where: \"name = 'x'\") { id name } }",
    "query A { __typename }",
    "query ($unused: Int) { getArtists(limit: $unused) { id } }",
    "query($a: JSON) { x: getArtists(where: {id: 1, name: $a}) { id } y: getArtists(where: {id: 1, name: $a}) { id } }",
    "{ getArtists(where: {id: 1}) { id } ...f } fragment f on Query { getArtists(where: {id: 1}) { name } }",
    "query($d: Date, $i: ID!) { getArtists(where: {born: {gt: $d}, id: $i}) { id } }",
    "{ getArtists(where: {id: 1, name: {eq: \"x\", neq: \"y\"}}) { id } getArtists(where: {name: {neq: \"y\", eq: \"x\"}, id: 1}) { name } }",
    "query($a: ID) { getArtists(limit: 1, where: {or: [{id: $a}]}) { id } ...f ...f } fragment f on Query { getArtists(where: {or: [{id: $a}]}, limit: 1) { id albums { id } } ... { getArtists(limit: 1, where: {or: [{id: $a}]}) { albums { title: id } } } }",
    "{ __schema { types { name fields(includeDeprecated: true) { name } } } __type(name: \"Artists\") { name } }",
    "query($t: String!) { __type(name: $t) { name } }",
];

#[test]
fn valid_documents_are_accepted() {
    let api = api();
    for document in VALID {
        let errors = api.prepare(document, None).err();
        assert_eq!(errors, None, "{document}");
    }
}

#[test]
fn the_error_for_an_unknown_field_names_the_one_that_was_meant() {
    let api = api();
    for (document, meant) in [
        ("{ artists { id } }", Some("getArtists")),
        ("{ getartists { id } }", Some("getArtists")),
        (
            "mutation { insert_artists(data: {}) { id } }",
            Some("insertArtists"),
        ),
        ("{ getAlbums { artistId } }", Some("artist_id")),
        ("{ getAlbums { secret } }", None),
        ("{ get { id } }", None),
    ] {
        let errors = api.prepare(document, None).unwrap_err();
        let suggested = errors[0].message.split("; did you mean ").nth(1);
        let expected = meant.map(|name| format!("\"{name}\"?"));
        assert_eq!(suggested, expected.as_deref(), "{document}");
    }
}

const INVALID: &[(&str, &str)] = &[
    ("{", "GRAPHQL_PARSE_FAILED"),
    ("", "GRAPHQL_PARSE_FAILED"),
    ("{ getArtists(limit: 01) { id } }", "GRAPHQL_PARSE_FAILED"),
    ("{ getArtists { name \u{1} } }", "GRAPHQL_PARSE_FAILED"),
    ("{ __typename }\0", "GRAPHQL_PARSE_FAILED"),
    ("{ __typename } # \0", "GRAPHQL_PARSE_FAILED"),
    ("{ nothing }", "GRAPHQL_VALIDATION_FAILED"),
    ("{ getArtists }", "GRAPHQL_VALIDATION_FAILED"),
    ("{ getArtists { id { x } } }", "GRAPHQL_VALIDATION_FAILED"),
    ("{ getArtists { secret } }", "GRAPHQL_VALIDATION_FAILED"),
    ("{ getArtists { active } }", "GRAPHQL_VALIDATION_FAILED"),
    (
        "{ getArtists(limit: \"3\") { id } }",
        "GRAPHQL_VALIDATION_FAILED",
    ),
    (
        "{ getArtists(limit: 99999999999) { id } }",
        "GRAPHQL_VALIDATION_FAILED",
    ),
    (
        "{ getArtists(limit: 1.5) { id } }",
        "GRAPHQL_VALIDATION_FAILED",
    ),
    (
        "{ getArtists(limit: {a: 1}) { id } }",
        "GRAPHQL_VALIDATION_FAILED",
    ),
    (
        "{ getArtists(id: true) { id } }",
        "GRAPHQL_VALIDATION_FAILED",
    ),
    (
        "{ getArtists(id: 1.5) { id } }",
        "GRAPHQL_VALIDATION_FAILED",
    ),
    (
        "{ getArtists(nope: 1) { id } }",
        "GRAPHQL_VALIDATION_FAILED",
    ),
    ("{ getParts(id: 1) { a } }", "GRAPHQL_VALIDATION_FAILED"),
    (
        "{ getArtists(where: {id: $x}) { id } }",
        "GRAPHQL_VALIDATION_FAILED",
    ),
    (
        "query($x: Nope) { getArtists(where: {id: $x}) { id } }",
        "GRAPHQL_VALIDATION_FAILED",
    ),
    (
        "query($x: Nope = 3) { getArtists(limit: $x) { id } }",
        "GRAPHQL_VALIDATION_FAILED",
    ),
    (
        "query($x: Artists) { getArtists(where: {id: $x}) { id } }",
        "GRAPHQL_VALIDATION_FAILED",
    ),
    (
        "query($x: Int) { getArtists { id } }",
        "GRAPHQL_VALIDATION_FAILED",
    ),
    (
        "query($x: Int, $x: Int) { getArtists(limit: $x) { id } }",
        "GRAPHQL_VALIDATION_FAILED",
    ),
    (
        "query($x: String) { getArtists(limit: $x) { id } }",
        "GRAPHQL_VALIDATION_FAILED",
    ),
    (
        "query($x: Int = \"a\") { getArtists(limit: $x) { id } }",
        "GRAPHQL_VALIDATION_FAILED",
    ),
    (
        "query($x: Int = \"a\") { getArtists(where: {id: $x}) { id } }",
        "GRAPHQL_VALIDATION_FAILED",
    ),
    (
        "query($a: Boolean = null) { getArtists { id @include(if: $a) } }",
        "GRAPHQL_VALIDATION_FAILED",
    ),
    (
        "query($a: Boolean) { getArtists { id @include(if: $a) } }",
        "GRAPHQL_VALIDATION_FAILED",
    ),
    (
        "{ getArtists { id @skip(if: true) @skip(if: true) } }",
        "GRAPHQL_VALIDATION_FAILED",
    ),
    ("{ getArtists { id @nope } }", "GRAPHQL_VALIDATION_FAILED"),
    ("{ getArtists { id @skip } }", "GRAPHQL_VALIDATION_FAILED"),
    (
        "{ getArtists(where: {id: 1, id: 2}) { id } }",
        "GRAPHQL_VALIDATION_FAILED",
    ),
    ("{ getArtists { ...f } }", "GRAPHQL_VALIDATION_FAILED"),
    (
        "{ getArtists { ...f } } fragment f on Artists { ...f }",
        "GRAPHQL_VALIDATION_FAILED",
    ),
    (
        "{ getArtists { ...f } } fragment f on Artists { ...g } fragment g on Artists { albums { artists { ...f } } }",
        "GRAPHQL_VALIDATION_FAILED",
    ),
    (
        "{ getArtists { id } } fragment f on Artists { id }",
        "GRAPHQL_VALIDATION_FAILED",
    ),
    (
        "{ getArtists { ...f } } fragment f on Albums { id }",
        "GRAPHQL_VALIDATION_FAILED",
    ),
    (
        "{ getArtists { a: id a: name } }",
        "GRAPHQL_VALIDATION_FAILED",
    ),
    (
        "{ getArtists(where: {id: 1}) { id } ...f } fragment f on Query { getArtists(where: {id: 2}) { name } }",
        "GRAPHQL_VALIDATION_FAILED",
    ),
    (
        "{ getArtists(where: {or: [{id: 1}, {id: 2}]}) { id } getArtists(where: {or: [{id: 2}, {id: 1}]}) { id } }",
        "GRAPHQL_VALIDATION_FAILED",
    ),
    (
        "{ getArtists(where: {id: 1}) { id } getArtists(where: {id: \"1\"}) { id } }",
        "GRAPHQL_VALIDATION_FAILED",
    ),
    (
        "{ getArtists(where: {id: 1}) { id } getArtists(where: {id: 1, name: \"x\"}) { id } }",
        "GRAPHQL_VALIDATION_FAILED",
    ),
    (
        "{ getArtists(limit: 1) { id } getArtists { id } }",
        "GRAPHQL_VALIDATION_FAILED",
    ),
    (
        "{ getArtists { albums { a: id } } ...f } fragment f on Query { getArtists { ...g } } fragment g on Artists { albums { ... { a: title } } }",
        "GRAPHQL_VALIDATION_FAILED",
    ),
    (
        "{ a: getArtists { id } ... { a: getAlbums { id } } }",
        "GRAPHQL_VALIDATION_FAILED",
    ),
    ("{ __typename } { __typename }", "GRAPHQL_VALIDATION_FAILED"),
    (
        "mutation { insertTotals(data: {}) { sum } }",
        "GRAPHQL_VALIDATION_FAILED",
    ),
    (
        "subscription { ArtistsMessageAdded { id } AlbumsMessageAdded { id } }",
        "GRAPHQL_VALIDATION_FAILED",
    ),
    (
        "subscription { TotalsMessageAdded { sum } }",
        "GRAPHQL_VALIDATION_FAILED",
    ),
    (
        "subscription { PartsMessageAdded { a } }",
        "GRAPHQL_VALIDATION_FAILED",
    ),
    ("type A { b: Int }", "GRAPHQL_PARSE_FAILED"),
];

#[test]
fn invalid_documents_are_refused_with_their_code_and_place() {
    let api = api();
    for (document, code) in INVALID {
        let errors = api.prepare(document, None).expect_err(document);
        assert!(
            errors.iter().all(|error| error.code.as_str() == *code),
            "{document}: {errors:?}"
        );
        let placed = errors.iter().all(|error| !error.locations.is_empty());
        assert!(placed, "{document}: {errors:?}");
    }
}

#[test]
fn places_count_lines_and_columns_from_one() {
    let errors = api().prepare("{\n  nothing\n}", None).unwrap_err();
    let place = errors[0].locations[0];
    assert_eq!((place.line, place.column), (2, 3));
}

#[test]
fn what_is_too_large_is_refused_before_it_is_validated() {
    let api = api();
    let mut deep = String::from("{ getArtists ");
    for _ in 0..8 {
        deep.push_str("{ albums { artists ");
    }
    deep.push_str("{ id }");
    deep.push_str(&"} }".repeat(8));
    deep.push('}');
    assert_eq!(codes(&api, &deep), ["TOO_COMPLEX"]);

    let mut wide = String::from("{ getArtists {");
    for number in 0..1_000 {
        write!(wide, " a{number}: id").unwrap();
    }
    wide.push_str("} }");
    assert_eq!(codes(&api, &wide), ["TOO_COMPLEX"]);

    let huge = format!(
        "{{ getArtists(where: {{name: \"{}\"}}) {{ id }} }}",
        "x".repeat(1 << 20)
    );
    assert_eq!(codes(&api, &huge), ["TOO_COMPLEX"]);

    let nested = format!(
        "{{ getArtists(where: {}{}) {{ id }} }}",
        "[".repeat(10_000),
        "]".repeat(10_000)
    );
    assert_eq!(codes(&api, &nested), ["TOO_COMPLEX"]);

    let mut bomb = String::from("{ getArtists { ...f0 } }");
    for number in 0..30 {
        let next = number + 1;
        write!(
            bomb,
            " fragment f{number} on Artists {{ ...f{next} ...f{next} }}"
        )
        .unwrap();
    }
    bomb.push_str(" fragment f30 on Artists { id }");
    assert_eq!(codes(&api, &bomb), ["TOO_COMPLEX"]);
}

#[test]
fn an_operation_is_chosen_by_its_name() {
    let api = api();
    let document = "query A { __typename } mutation B { __typename }";
    assert!(!api.prepare(document, Some("A")).unwrap().is_mutation());
    assert!(api.prepare(document, Some("B")).unwrap().is_mutation());
    for name in [None, Some("C"), Some("")] {
        let errors = api.prepare(document, name).unwrap_err();
        assert_eq!(errors[0].code.as_str(), "BAD_USER_INPUT");
    }
}

#[test]
fn overlapping_fields_are_reported_with_both_locations() {
    let document =
        "{ getArtists { a: id\n a: name\n a: id ...f } } fragment f on Artists { a: born }";
    let errors = api().prepare(document, None).unwrap_err();
    let places: Vec<_> = errors
        .iter()
        .map(|error| error.locations.iter().map(|at| (at.line, at.column)))
        .map(Vec::from_iter)
        .collect();
    assert_eq!(places, [[(1, 16), (2, 2)], [(1, 16), (3, 41)]]);
    let message = &errors[0].message;
    assert!(
        message.contains("`id` and `name` are different"),
        "{message}"
    );
}

/// A response key may occur as often as fields are allowed.
#[test]
fn as_many_fields_as_are_allowed_may_overlap() {
    let api = api();
    let repeated = |times: usize| format!("{{ getArtists {{{}}} }}", " name".repeat(times));
    assert_eq!(codes(&api, &repeated(999)), [""; 0]);
    assert_eq!(codes(&api, &repeated(1_000)), ["TOO_COMPLEX"]);
    let spread = |times: usize| {
        let fragment = format!("fragment f on Artists {{{}}}", " name".repeat(99));
        format!("{{ getArtists {{{}}} }} {fragment}", " ...f".repeat(times))
    };
    assert_eq!(codes(&api, &spread(10)), [""; 0]);
    assert_eq!(codes(&api, &spread(11)), ["TOO_COMPLEX"]);
}
