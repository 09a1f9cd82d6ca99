//! Tests of the names of tenants and users.

use tidegate_identity::{TenantName, UserName};

use crate::fixture::fault;

#[test]
fn names_of_tenants_follow_the_rule() {
    for good in ["a", "_", "a1_b", "pg", &"a".repeat(30)] {
        assert_eq!(TenantName::parse(good).unwrap().as_str(), good);
    }
    for bad in [
        "",
        "1a",
        "A",
        "a-b",
        "pg_x",
        "ä",
        "a b",
        "a/b",
        &"a".repeat(31),
    ] {
        assert_eq!(fault(TenantName::parse(bad)), "InvalidField", "{bad}");
    }
    assert_eq!(
        TenantName::adopted("My Database").unwrap().as_str(),
        "My Database"
    );
    for bad in ["", "a/b", "a\0b", &"a".repeat(64)] {
        assert_eq!(fault(TenantName::adopted(bad)), "InvalidField", "{bad}");
    }
}

#[test]
fn names_of_users_follow_the_rule() {
    for good in [
        "a",
        "Alice",
        "a.b@c.d",
        "x+y-z_1",
        "...",
        ".a",
        &"a".repeat(32),
    ] {
        assert_eq!(UserName::parse(good).unwrap().as_str(), good);
    }
    let long = "a".repeat(33);
    // Clients remove the dot segments `.` and `..` from URLs.
    for bad in [
        "", ".", "..", "a b", "a/b", "ä", "a'b", "a\"b", "<b>", &long,
    ] {
        assert_eq!(fault(UserName::parse(bad)), "InvalidField", "{bad}");
    }
}
