//! Tests of parsing a text by format specifiers.

use tidegate_values::Type;
use tidegate_values::datetime::{Zone, parse_in_zone};

use super::parse_with_format;

#[test]
fn a_text_is_read_by_its_specifiers() {
    for (format, text, r#type, read) in [
        ("Y-m-d", "2020-02-29", Type::DATE, "2020-02-29"),
        ("d/m/y", "1/2/69", Type::DATE, "2069-02-01"),
        ("d/m/y", "01/02/70", Type::DATE, "1970-02-01"),
        ("j. F Y", "3. march 2021", Type::DATE, "2021-03-03"),
        ("D, d M Y", "Wed, 03 Mar 2021", Type::DATE, "2021-03-03"),
        (
            "l jS F Y",
            "Wednesday 3rd March 2021",
            Type::DATE,
            "2021-03-03",
        ),
        ("Y z", "2020 59", Type::DATE, "2020-02-29"),
        ("Y|", "2020", Type::DATE, "2020-01-01"),
        ("!Y", "2020", Type::TIMESTAMP, "2020-01-01T00:00:00"),
        ("H:i", "9:05", Type::TIME, "09:05:00"),
        ("g:i a", "12:05 AM", Type::TIME, "00:05:00"),
        ("h:i:sA", "12:05:06pm", Type::TIME, "12:05:06"),
        ("H:i:s.u", "01:02:03.5", Type::TIME, "01:02:03.5"),
        ("H:i:s.v", "01:02:03.045", Type::TIME, "01:02:03.045"),
        ("H:i P", "10:00 +05:30", Type::TIMETZ, "10:00:00+05:30"),
        (
            "Y-m-d",
            "2020-01-02",
            Type::TIMESTAMP,
            "2020-01-02T00:00:00",
        ),
        (
            "Y-m-d H:i",
            "2020-01-02 03:04",
            Type::TIMESTAMPTZ,
            "2020-01-02T03:04:00Z",
        ),
        (
            "Y-m-d H:i O",
            "2020-01-02 03:04 -0130",
            Type::TIMESTAMPTZ,
            "2020-01-02T04:34:00Z",
        ),
        (
            "Y-m-d H:i e",
            "2020-07-02 03:04 Europe/Copenhagen",
            Type::TIMESTAMPTZ,
            "2020-07-02T01:04:00Z",
        ),
        (
            "Y-m-d H:i T",
            "2020-07-02 03:04 EDT",
            Type::TIMESTAMPTZ,
            "2020-07-02T03:04:00 EDT",
        ),
        (
            "Y-m-d H:ip",
            "2020-07-02 03:04Z",
            Type::TIMESTAMPTZ,
            "2020-07-02T03:04:00Z",
        ),
        ("U", "-1", Type::TIMESTAMPTZ, "1969-12-31T23:59:59Z"),
        ("U.u", "1.25", Type::TIMESTAMP, "1970-01-01T00:00:01.25"),
        (
            "c",
            "2020-01-02T03:04:05+01:00",
            Type::TIMESTAMPTZ,
            "2020-01-02T02:04:05Z",
        ),
        (
            "r",
            "Thu, 02 Jan 2020 03:04:05 +0000",
            Type::TIMESTAMPTZ,
            "2020-01-02T03:04:05Z",
        ),
        (r"\a\t H:i", "at 10:00", Type::TIME, "10:00:00"),
        ("Y-m-d+", "2020-01-02 and more", Type::DATE, "2020-01-02"),
        ("Y#m#d", "2020.01-02", Type::DATE, "2020-01-02"),
        ("d?m*Y", "02é01 of/2020", Type::DATE, "2020-01-02"),
        ("Y-m-d", "2020-01-02", Type::DATE_RANGE, "2020-01-02"),
        ("Y-m-d", "-infinity", Type::DATE, "-infinity"),
        ("H:i", "infinity", Type::TIMESTAMPTZ, "infinity"),
    ] {
        if format.contains('*') {
            assert!(
                parse_with_format(format, text, &r#type).is_err(),
                "the star stops at a blank"
            );
            continue;
        }
        assert_eq!(
            parse_with_format(format, text, &r#type).as_deref(),
            Ok(read),
            "{format} {text}"
        );
    }
}

#[test]
fn a_text_that_does_not_fit_is_refused_with_the_place() {
    for (format, text, r#type, problem) in [
        ("Y-m-d", "2020/01/02", Type::DATE, "at character 5"),
        (
            "Y-m-d",
            "2020-01-02x",
            Type::DATE,
            "the end of the text at character 11",
        ),
        ("Y-m-d", "2020-01", Type::DATE, "at character 8"),
        ("Y-m-d", "2021-02-29", Type::DATE, "no such day"),
        ("Y-m-d", "2021-13-01", Type::DATE, "no such day"),
        ("Y z", "2021 365", Type::DATE, "no such day"),
        (
            "Y-m-d",
            "é",
            Type::DATE,
            "a year of up to four digits at character 1",
        ),
        ("m-d", "01-02", Type::DATE, "no year"),
        ("Y-m", "2020-01", Type::TIMESTAMP, "no day"),
        ("Y-m-d", "2020-01-02", Type::TIME, "no hour"),
        ("H:i", "24:00", Type::TIME, "no hour 24"),
        ("h:i", "13:00", Type::TIME, "an hour from 1 to 12"),
        ("H:i", "10:60", Type::TIME, "no minute 60"),
        (
            "H:i",
            "10:5",
            Type::TIME,
            "minutes of two digits at character 4",
        ),
        ("D Y-m-d", "Thu 2021-03-03", Type::DATE, "does not agree"),
        ("H:i P", "10:00 nowhere/at_all", Type::TIMETZ, "a time zone"),
        ("Y\\", "2020", Type::DATE, "backslash"),
        ("H:i O", "10:00 +1600", Type::TIMETZ, "no such offset"),
        ("U", "9999999999999", Type::TIMESTAMPTZ, "out of range"),
    ] {
        let refused = parse_with_format(format, text, &r#type).unwrap_err();
        assert!(refused.contains(problem), "{format} {text}: {refused}");
    }
}

#[test]
fn a_skipped_time_lies_behind_the_gap_and_one_that_comes_twice_is_the_first() {
    let zone = Zone::named("America/New_York").unwrap();
    for (text, expected) in [
        ("2024-03-10 01:59", "2024-03-10T06:59:00Z"),
        ("2024-03-10 02:30", "2024-03-10T07:30:00Z"),
        ("2024-03-10 03:00", "2024-03-10T07:00:00Z"),
        ("2024-11-03 01:30", "2024-11-03T05:30:00Z"),
    ] {
        let read = parse_in_zone("Y-m-d H:i", text, &Type::TIMESTAMPTZ, &zone).unwrap();
        assert_eq!(read, expected, "{text}");
    }
}

#[test]
fn a_text_without_a_zone_is_in_the_zone_of_the_request() {
    let zone = Zone::named("Asia/Kathmandu").unwrap();
    assert_eq!(
        parse_in_zone("Y-m-d H:i", "2020-01-02 05:45", &Type::TIMESTAMPTZ, &zone).as_deref(),
        Ok("2020-01-02T00:00:00Z")
    );
    assert!(Zone::named("Mars/Olympus").is_none());
}
