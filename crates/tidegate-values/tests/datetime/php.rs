//! Compares format specifiers with the output of PHP.

use tidegate_values::Type;

use super::show;

/// The expected texts are the output of PHP 8.2, in which PostgreSQL's year 44 BC is year -43.
#[test]
fn years_before_one_and_after_9999_are_written_as_php_does() {
    for (day, shown) in [
        ("0044-03-15 BC", "-0043 -43 -43 11"),
        ("0002-12-31 BC", "-0001 -1 -1 52"),
        ("0101-01-01 BC", "-0100 00 -100 01"),
        ("0001-03-01 BC", "0000 00 0 09"),
        ("0005-01-02", "0005 05 4 53"),
        ("12345-06-07", "12345 45 12345 23"),
    ] {
        assert_eq!(show(Type::DATE, day, "Y y o W", "UTC"), shown, "{day}");
    }
    for (day, c, r) in [
        (
            "0044-03-15 BC",
            "-043-03-15T00:00:00+00:00",
            "Fri, 15 Mar -043 00:00:00 +0000",
        ),
        (
            "0001-03-01 BC",
            "0000-03-01T00:00:00+00:00",
            "Wed, 01 Mar 0000 00:00:00 +0000",
        ),
        (
            "12345-06-07",
            "12345-06-07T00:00:00+00:00",
            "Thu, 07 Jun 12345 00:00:00 +0000",
        ),
    ] {
        assert_eq!(show(Type::DATE, day, "c", "UTC"), c);
        assert_eq!(show(Type::DATE, day, "r", "UTC"), r);
        // The specifier stands next to other specifiers, before and after them.
        assert_eq!(
            show(Type::DATE, day, "j c Y", "UTC"),
            show(Type::DATE, day, "j ", "UTC") + c + &show(Type::DATE, day, " Y", "UTC")
        );
    }
}

/// The expected texts are the output of PHP 8.2.
#[test]
fn zones_with_odd_offsets_and_names_are_written_as_php_does() {
    for (moment, zone, shown) in [
        (
            "2024-07-01 00:00:00+00",
            "America/St_Johns",
            "NDT 1 -0230 -02:30 -9000",
        ),
        (
            "2024-01-01 00:00:00+00",
            "Asia/Kathmandu",
            "+0545 0 +0545 +05:45 20700",
        ),
        (
            "2024-01-01 00:00:00+00",
            "America/Sao_Paulo",
            "-03 0 -0300 -03:00 -10800",
        ),
        (
            "2024-01-01 00:00:00+00",
            "Pacific/Chatham",
            "+1345 1 +1345 +13:45 49500",
        ),
        (
            "1930-01-01 00:00:00+00",
            "Africa/Monrovia",
            "MMT 0 -0044 -00:44 -2670",
        ),
        (
            "2024-01-01 00:00:00+00",
            "Etc/GMT+5",
            "-05 0 -0500 -05:00 -18000",
        ),
    ] {
        let letters = show(Type::TIMESTAMPTZ, moment, "T I O P Z", zone);
        assert_eq!(letters, shown, "{zone}");
    }
}
