use proptest::prelude::*;
use tidegate_methods::MethodName;

#[test]
fn names_are_what_the_grammar_says() {
    let longest = "x".repeat(128);
    for good in [
        "a",
        "_",
        "Z9",
        "get-date",
        "app.users.list",
        "a_.-",
        &longest,
    ] {
        assert_eq!(MethodName::parse(good).unwrap().as_str(), good);
    }
    let too_long = "x".repeat(129);
    for bad in [
        "", "1a", "-a", ".a", "a b", "a,b", "a/b", "é", "aé", "a\0", "a\n", &too_long,
    ] {
        assert!(MethodName::parse(bad).is_err(), "{bad:?}");
    }
}

proptest! {
    #[test]
    fn every_name_of_the_grammar_is_taken(text in "[A-Za-z_][A-Za-z0-9_.-]{0,127}") {
        prop_assert!(MethodName::parse(&text).is_ok());
    }
}
