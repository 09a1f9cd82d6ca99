//! Compares dates, times and intervals with PostgreSQL's own JSON.

use tidegate_values::{Type, WireFormat};

use super::{ZULU, compare, connect, literals, texts, version, write};

#[tokio::test]
async fn dates_and_times_agree() {
    let client = connect().await;
    let dates = [
        "2000-01-01",
        "1999-12-31",
        "0001-01-01",
        "0044-03-15 BC",
        "4714-11-24 BC",
        "5874897-12-31",
        "9999-12-31",
        "10000-01-01",
        "2024-02-29",
        "infinity",
        "-infinity",
    ];
    compare(&client, &literals("date", &dates), "to_json(v)::text").await;
    compare(&client, "select (date '4713-01-01 BC' + (random() * 3000000)::int) as v from generate_series(1, 3000)", "to_json(v)::text").await;
    let times = [
        "00:00:00",
        "24:00:00",
        "23:59:59.999999",
        "12:30:00.5",
        "01:02:03.000001",
        "01:02:03.10",
    ];
    compare(&client, &literals("time", &times), "to_json(v)::text").await;
    let timestamps = [
        "2000-01-01 00:00:00",
        "1999-12-31 23:59:59.999999",
        "0001-01-01 00:00:00.1",
        "0001-12-31 23:59:59 BC",
        "4714-11-24 00:00:00 BC",
        "294276-12-31 23:59:59.999999",
        "10000-01-01 12:00:00",
        "infinity",
        "-infinity",
    ];
    compare(
        &client,
        &literals("timestamp", &timestamps),
        "to_json(v)::text",
    )
    .await;
    compare(&client, &literals("timestamptz", &timestamps), ZULU).await;
    let random = "select timestamp '4000-01-01 BC' + random() * interval '6000 years' + (random() * 1e6)::int * interval '1 microsecond'";
    compare(
        &client,
        &format!("{random} as v from generate_series(1, 3000)"),
        "to_json(v)::text",
    )
    .await;
    compare(
        &client,
        &format!("select ({random}) at time zone 'UTC' as v from generate_series(1, 50)"),
        ZULU,
    )
    .await;
    // The expression adds minutes to the offset, which ISO 8601 requires.
    let timetz = "to_json(regexp_replace(v::text, '([+-]\\d\\d)$', '\\1:00'))::text";
    compare(
        &client,
        &literals(
            "timetz",
            &[
                "10:00:00+00",
                "10:00:00.5+05:30",
                "23:59:59-12",
                "00:00:00+15:59:59",
                "24:00:00-00:30",
            ],
        ),
        timetz,
    )
    .await;
    // The zone of the session changes only the text format, not the JSON.
    client
        .batch_execute("set timezone = 'America/St_Johns'")
        .await
        .unwrap();
    compare(&client, &literals("timestamptz", &["1800-01-01 00:00:00+00", "2020-07-01 12:00:00.25+00"]), "to_json(to_char(v at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS') || case when extract(year from v) > 1900 then '.25Z' else 'Z' end)::text").await;
}

#[tokio::test]
async fn what_is_shown_is_accepted_back() {
    let client = connect().await;
    for (r#type, values) in [
        (
            "timestamptz",
            &[
                "0044-03-15 12:00:00.5+00 BC",
                "294276-12-31 23:59:59.999999+00",
                "infinity",
            ][..],
        ),
        (
            "timestamp",
            &[
                "0044-03-15 12:00:00.5 BC",
                "10000-01-01 00:00:00",
                "-infinity",
            ],
        ),
        ("date", &["0044-03-15 BC", "5874897-12-31", "-infinity"]),
        (
            "timetz",
            &["10:00:00.5+05:30", "00:00:00-12", "00:00:00+15:59:59"],
        ),
        ("numeric", &["NaN", "-Infinity", "0.00"]),
    ] {
        for value in values {
            let shown = write(
                &client
                    .prepare(&format!("select null::{type} as v"))
                    .await
                    .unwrap()
                    .columns()[0]
                    .type_()
                    .clone(),
                WireFormat::Text,
                texts(&client, &format!("select '{value}'::{type}")).await[0]
                    .as_ref()
                    .unwrap()
                    .as_bytes(),
            );
            let text: String = serde_json::from_str(&shown).unwrap();
            assert_eq!(
                texts(
                    &client,
                    &format!("select '{text}'::{type} = '{value}'::{type}")
                )
                .await,
                [Some("t".to_owned())],
                "{shown}"
            );
        }
    }
}

#[tokio::test]
async fn intervals_agree() {
    let client = connect().await;
    let object = "case when v is null then null else replace(json_build_object('y', extract(year from v)::int, 'm', extract(month from v)::int, 'd', extract(day from v)::int, 'h', extract(hour from v)::int8, 'i', extract(minute from v)::int, 's', trim_scale(extract(second from v)))::text, ' ', '') end";
    let mut intervals = vec![
        "0",
        "1 year 2 mons 3 days 04:05:06.789",
        "-1 year -2 mons +3 days -04:05:06",
        "1 mon -1 day",
        "-0.5 sec",
        "178000000 years",
        "-178000000 years",
        "-00:00:00.000001",
        "-90 sec",
    ];
    // PostgreSQL before version 15 does not accept that many hours.
    if version(&client).await >= 150_000 {
        intervals.push("100 days 2562047788:00:54.775807");
    }
    compare(&client, &literals("interval", &intervals), object).await;
    let random = "select make_interval(months => (random() * 200 - 100)::int, days => (random() * 200 - 100)::int, secs => round((random() * 2e6 - 1e6)::numeric, (random() * 6)::int)::float8) as v from generate_series(1, 1000)";
    compare(&client, random, object).await;
    client
        .batch_execute("set intervalstyle = iso_8601")
        .await
        .unwrap();
    assert_eq!(write(&Type::INTERVAL, WireFormat::Text, b"P1Y"), "\"P1Y\"");
}
