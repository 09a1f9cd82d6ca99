//! Tests of format specifiers.

use std::sync::Arc;

use bytes::BytesMut;
use proptest::prelude::*;
use tidegate_values::codec::ValueWriter;
use tidegate_values::datetime::{DateFormat, Zone, parse_in_zone};
use tidegate_values::{Type, WireFormat};

use crate::rows::column;

mod parsing;
mod php;

fn show(r#type: Type, text: &str, format: &str, zone: &str) -> String {
    let format = DateFormat::new(format, Zone::named(zone).unwrap()).unwrap();
    let column = column("v", r#type, WireFormat::Text);
    let mut out = BytesMut::new();
    ValueWriter::formatted(&column, &Arc::new(format))
        .unwrap()
        .plain(text.as_bytes(), &mut out)
        .unwrap();
    String::from_utf8(out.to_vec()).unwrap()
}

/// Reads a text whose default zone is UTC.
fn parse_with_format(format: &str, text: &str, r#type: &Type) -> Result<String, String> {
    parse_in_zone(format, text, r#type, &Zone::default())
}

#[test]
fn each_specifier_writes_its_part() {
    // The day is a Sunday in a leap year, in an ISO week of the previous year.
    let moment = "2012-01-01 15:04:05.012345+00";
    for (letter, shown) in [
        ("d", "01"),
        ("j", "1"),
        ("D", "Sun"),
        ("l", "Sunday"),
        ("N", "7"),
        ("S", "st"),
        ("w", "0"),
        ("z", "0"),
        ("W", "52"),
        ("F", "January"),
        ("M", "Jan"),
        ("m", "01"),
        ("n", "1"),
        ("t", "31"),
        ("L", "1"),
        ("o", "2011"),
        ("Y", "2012"),
        ("y", "12"),
        ("a", "pm"),
        ("A", "PM"),
        ("g", "3"),
        ("G", "15"),
        ("h", "03"),
        ("H", "15"),
        ("i", "04"),
        ("s", "05"),
        ("u", "012345"),
        ("v", "012"),
        ("e", "UTC"),
        ("I", "0"),
        ("O", "+0000"),
        ("P", "+00:00"),
        ("p", "Z"),
        ("T", "UTC"),
        ("Z", "0"),
        ("U", "1325430245"),
        ("c", "2012-01-01T15:04:05+00:00"),
        ("r", "Sun, 01 Jan 2012 15:04:05 +0000"),
    ] {
        assert_eq!(
            show(Type::TIMESTAMPTZ, moment, letter, "UTC"),
            shown,
            "{letter}"
        );
    }
}

#[test]
fn z_stands_for_utc_alone() {
    let winter = |zone| show(Type::TIMESTAMPTZ, "2024-01-01 12:00:00+00", "p", zone);
    assert_eq!(winter("UTC"), "Z");
    assert_eq!(winter("Europe/London"), "+00:00");
    assert_eq!(winter("Europe/Berlin"), "+01:00");
}

#[test]
fn ordinals_have_their_suffix() {
    for (day, shown) in [
        (1, "1st"),
        (2, "2nd"),
        (3, "3rd"),
        (4, "4th"),
        (11, "11th"),
        (12, "12th"),
        (13, "13th"),
        (21, "21st"),
        (22, "22nd"),
        (23, "23rd"),
        (30, "30th"),
    ] {
        assert_eq!(
            show(Type::DATE, &format!("2020-01-{day:02}"), "jS", "UTC"),
            shown
        );
    }
}

#[test]
fn hours_of_a_half_day_run_from_twelve_to_eleven() {
    for (time, shown) in [
        ("00:30:00", "12 am"),
        ("11:30:00", "11 am"),
        ("12:00:00", "12 pm"),
        ("23:59:59", "11 pm"),
    ] {
        assert_eq!(show(Type::TIME, time, "g a", "UTC"), shown);
    }
}

#[test]
fn a_zone_moves_the_clock_and_names_itself() {
    for (moment, shown) in [
        (
            "2026-07-01 12:00:00+00",
            "2026-07-01 14:00 Europe/Copenhagen CEST +02:00 +0200 7200 1",
        ),
        (
            "2026-01-01 12:00:00+00",
            "2026-01-01 13:00 Europe/Copenhagen CET +01:00 +0100 3600 0",
        ),
        // The zone database ends before this year. The calendar repeats after 400 years.
        (
            "12426-07-01 12:00:00+00",
            "12426-07-01 14:00 Europe/Copenhagen CEST +02:00 +0200 7200 1",
        ),
    ] {
        assert_eq!(
            show(
                Type::TIMESTAMPTZ,
                moment,
                "Y-m-d H:i e T P O Z I",
                "Europe/Copenhagen"
            ),
            shown
        );
    }
    // A timestamp without time zone is local time.
    assert_eq!(
        show(
            Type::TIMESTAMP,
            "2026-07-01 12:00:00",
            "H:i P U",
            "Europe/Copenhagen"
        ),
        "12:00 +02:00 1782900000"
    );
    assert_eq!(
        show(
            Type::TIMETZ,
            "12:00:00-03:30",
            "H:i P e",
            "Europe/Copenhagen"
        ),
        "12:00 -03:30 -03:30"
    );
}

#[test]
fn literals_and_escapes_stand_for_themselves() {
    assert_eq!(
        show(Type::DATE, "2011-04-01", r"l jS \o\f F Y, x", "UTC"),
        "Friday 1st of April 2011, x"
    );
    assert_eq!(show(Type::DATE, "2011-04-01", r"\\Y\é", "UTC"), "\\2011é");
    assert!(DateFormat::new("Y\\", Zone::default()).is_err());
    assert!(DateFormat::new("", Zone::default()).is_err());
}

#[test]
fn a_quote_in_a_format_is_escaped_in_json() {
    let format = Arc::new(DateFormat::new("\"Y\"", Zone::default()).unwrap());
    let column = column("v", Type::DATE, WireFormat::Binary);
    let mut out = BytesMut::new();
    ValueWriter::formatted(&column, &format)
        .unwrap()
        .json(&0_i32.to_be_bytes(), &mut out)
        .unwrap();
    assert_eq!(&out[..], br#""\"2000\"""#);
}

#[test]
fn bounds_and_elements_are_formatted_and_infinity_stays_a_word() {
    assert_eq!(
        show(Type::DATE_RANGE, "[2020-01-31,infinity)", "d/m/y", "UTC"),
        r#"{"lower":"31/01/20","upper":"infinity","lowerInclusive":true,"upperInclusive":false}"#
    );
    assert_eq!(
        show(Type::DATE_ARRAY, "{2020-01-31,NULL}", "d/m/y", "UTC"),
        r#"["31/01/20",null]"#
    );
    assert_eq!(show(Type::DATE, "0044-03-15 BC", "Y", "UTC"), "-0043");
}

#[test]
fn other_types_take_no_format() {
    let format = Arc::new(DateFormat::new("Y", Zone::default()).unwrap());
    for r#type in [
        Type::INT4,
        Type::TEXT,
        Type::INTERVAL,
        Type::INT4_RANGE,
        Type::JSON,
    ] {
        assert!(
            ValueWriter::formatted(&column("v", r#type.clone(), WireFormat::Text), &format)
                .is_none()
        );
        assert!(
            parse_with_format("Y", "2020", &r#type)
                .unwrap_err()
                .contains(r#type.name())
        );
    }
}

#[test]
fn what_a_format_writes_it_reads() {
    let formats = [
        "Y-m-d H:i:s.u P",
        "D, d M Y h:i:s.u A T",
        "l jS F Y G:i:s u O",
        "U.u",
        "c u",
        "N w W t L z o Y H:i:s.u",
    ];
    for moment in [
        "2012-02-29 00:00:00+00",
        "1999-12-31 23:59:59.999999+00",
        "2026-11-20 12:00:00.5+00",
    ] {
        for format in formats {
            let shown = show(Type::TIMESTAMPTZ, moment, format, "UTC");
            let read = parse_with_format(format, &shown, &Type::TIMESTAMPTZ)
                .unwrap_or_else(|problem| panic!("{shown}: {problem}"));
            assert_eq!(
                show(
                    Type::TIMESTAMPTZ,
                    &read.replace('T', " ").replace('Z', "+00"),
                    "U.u",
                    "UTC"
                ),
                show(Type::TIMESTAMPTZ, moment, "U.u", "UTC"),
                "{format}"
            );
        }
    }
}

/// Specifiers, separators and special characters in any order.
const FORMATS: &str = "[djDlNSwzWFMmntLoYyaAgGhHisuveIOPpTZcrU!|+?#* /:.\\\\-]{1,12}";

proptest! {
    #[test]
    fn no_format_and_no_text_make_the_reader_panic(format in FORMATS, text in "[0-9A-Za-z+:/ .-]{0,40}") {
        for r#type in [Type::DATE, Type::TIME, Type::TIMETZ, Type::TIMESTAMP, Type::TIMESTAMPTZ] {
            let _ = parse_with_format(&format, &text, &r#type);
        }
    }

    #[test]
    fn no_bytes_make_a_formatted_value_panic(format in FORMATS, raw in prop::collection::vec(any::<u8>(), 12)) {
        let zone = Zone::named("Europe/Copenhagen").unwrap();
        let Ok(format) = DateFormat::new(&format, zone) else { return Ok(()) };
        let format = Arc::new(format);
        for (r#type, length) in [(Type::DATE, 4), (Type::TIME, 8), (Type::TIMETZ, 12), (Type::TIMESTAMP, 8), (Type::TIMESTAMPTZ, 8)] {
            let column = column("v", r#type, WireFormat::Binary);
            let _ = ValueWriter::formatted(&column, &format).unwrap().json(&raw[..length], &mut BytesMut::new());
        }
    }

    #[test]
    fn any_second_is_read_back_as_it_was_shown(epoch in -60_000_000_000_i64..200_000_000_000, zone in prop::sample::select(vec!["UTC", "Europe/Copenhagen", "America/New_York", "Asia/Kathmandu"])) {
        let micros = (epoch - 946_684_800) * 1_000_000;
        let column = column("v", Type::TIMESTAMPTZ, WireFormat::Binary);
        let shown = |format: &str, zone: &str| {
            let format = Arc::new(DateFormat::new(format, Zone::named(zone).unwrap()).unwrap());
            let mut out = BytesMut::new();
            ValueWriter::formatted(&column, &format).unwrap().plain(&micros.to_be_bytes(), &mut out).unwrap();
            String::from_utf8(out.to_vec()).unwrap()
        };
        prop_assert_eq!(shown("U", zone), epoch.to_string());
        // Offsets before standard time have seconds, which `P` cannot express.
        prop_assume!(epoch > 0);
        let read = parse_with_format("D, d M Y H:i:s P", &shown("D, d M Y H:i:s P", zone), &Type::TIMESTAMPTZ);
        let utc = shown("Y-m-d\\TH:i:s\\Z", "UTC");
        prop_assert_eq!(read, Ok(utc));
    }
}
