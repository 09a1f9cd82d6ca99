//! Compares ranges, arrays and composites with PostgreSQL's own JSON.

use tidegate_values::{Type, WireFormat};

use super::{compare, connect, literals, texts, write};

/// An SQL expression for the JSON object of a range; `bound` is the expression for each of its
/// bounds.
fn range(v: &str, bound: &str) -> String {
    let bound = |which: &str| bound.replace('%', &format!("{which}({v})"));
    format!(
        "case when {v} is null then null else replace(json_build_object('lower', {}, 'upper', {}, 'lowerInclusive', lower_inc({v}), 'upperInclusive', upper_inc({v}))::text, ' : ', ':') end",
        bound("lower"),
        bound("upper")
    )
}

/// The same expression, without the spaces of `json_build_object` and with the fifth member of an
/// empty range.
fn range_text(v: &str, bound: &str) -> String {
    let object = format!(
        "replace(replace({}, ', \"', ',\"'), '\" :', '\":')",
        range(v, bound)
    );
    format!(
        "case when isempty({v}) then replace({object}, '}}', ',\"empty\":true}}') else {object} end"
    )
}

#[tokio::test]
async fn ranges_and_multiranges_agree() {
    let client = connect().await;
    let zulu = "replace(to_json(%)#>>'{}', '+00:00', 'Z')";
    for (name, bound, values) in [
        ("int4", "%", &["[1,5)", "(,)", "[3,)", "(,3]", "empty"][..]),
        ("int8", "%", &["[1,5)", "empty"]),
        (
            "num",
            "%::text",
            &["[1.50,5]", "(-Infinity,1)", "[,0.0)", "empty"],
        ),
        (
            "date",
            "%",
            &[
                "[2020-01-01,2020-02-01)",
                "[0044-03-15 BC,infinity)",
                "(,2020-01-01)",
            ],
        ),
        (
            "ts",
            "%",
            &[
                "[2020-01-01 00:00,2020-02-01 12:30:00.5)",
                "(,infinity]",
                "empty",
            ],
        ),
        (
            "tstz",
            zulu,
            &[
                "[2020-01-01 00:00+02,2020-02-01 12:30:00.5+00)",
                "(,)",
                "empty",
            ],
        ),
    ] {
        compare(
            &client,
            &literals(&format!("{name}range"), values),
            &range_text("v", bound),
        )
        .await;
        let object = range_text("r", bound);
        let list = format!(
            "case when v is not null then coalesce((select '[' || string_agg({object}, ',' order by r) || ']' from unnest(v) as r), '[]') end"
        );
        let present: Vec<_> = values
            .iter()
            .filter(|value| !value.starts_with("(,"))
            .collect();
        let all = format!(
            "{{{}}}",
            present
                .iter()
                .map(|value| (**value).to_owned())
                .collect::<Vec<_>>()
                .join(",")
        );
        let all = all
            .replace("empty", "(,)")
            .replace(",(,)", "")
            .replace("{(,)}", "{}");
        compare(
            &client,
            &literals(&format!("{name}multirange"), &["{}", &all]),
            &list,
        )
        .await;
    }
    client
        .batch_execute("create type pg_temp.textrange as range (subtype = text, collation = \"C\")")
        .await
        .unwrap();
    compare(
        &client,
        &literals(
            "pg_temp.textrange",
            &["[\"a \"\"q\"\" \\\\ , )\",zz)", "[\"\",b]", "[NULL,\u{e9})"],
        ),
        &range_text("v", "%"),
    )
    .await;
}

#[tokio::test]
async fn arrays_agree() {
    let client = connect().await;
    for (r#type, values) in [
        (
            "int4[]",
            &[
                "{}",
                "{1,NULL,3}",
                "{{1,2},{3,4}}",
                "[0:1]={5,6}",
                "[2:2][3:4]={{1,2}}",
                "{{{{{{1}}}}}}",
            ][..],
        ),
        (
            "text[]",
            &[
                "{\"\",NULL,\"NULL\",\"a,b\",\"q\\\"\\\\\",\"{}\",\" x \"}",
                "{{a},{b}}",
            ],
        ),
        ("bool[]", &["{t,f,NULL}"]),
        ("date[]", &["{2020-01-01,NULL,infinity}"]),
        ("timestamp[]", &["{\"2020-01-01 10:00\"}"]),
        ("jsonb[]", &["{\"{\\\"a\\\": [1, 2]}\",NULL}"]),
        ("uuid[]", &["{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}"]),
        ("inet[]", &["{10.0.0.1,NULL}"]),
        ("int2vector", &["1 2 3", ""]),
        ("money[]", &["{\"$1,000.00\",NULL}"]),
        ("varbit[]", &["{101,NULL}"]),
    ] {
        compare(&client, &literals(r#type, values), "to_json(v)::text").await;
    }
    compare(
        &client,
        "select array[1.50, null, 'NaN']::numeric[] as v",
        "'[\"1.50\",null,\"NaN\"]'",
    )
    .await;
    compare(
        &client,
        "select indkey as v from pg_index where indnatts = 3",
        "to_json(v)::text",
    )
    .await;
}

#[tokio::test]
async fn composites_agree() {
    let client = connect().await;
    client
        .batch_execute(
            "create domain year as int check (value > 0);
             create domain price as money;
             create type inner_pair as (a int, \"b \"\"q\"\"\" text);
             create type plain_row as (id int, name text, day date, ok bool, p inner_pair, ps inner_pair[], y year, nothing text);
             create type offer as (id int, price price, p inner_pair, tags text[], at timestamp, raw bytea, during int4range);",
        )
        .await
        .unwrap();
    let plain = "(1,\"it's \"\"x\"\" \\\\\",2020-01-01,t,\"(1,\"\"a b\"\")\",\"{\"\"(1,)\"\",NULL,\"\"(,\\\\\"\"q,\\\\\"\")\"\"}\",1999,)";
    compare(
        &client,
        &literals("plain_row", &[plain, "(,,,,,,,)"]),
        "to_json(v)::text",
    )
    .await;
    compare(
        &client,
        &format!(
            "select array['{}'::plain_row, null] as v",
            plain.replace('\'', "''")
        ),
        "to_json(v)::text",
    )
    .await;
    // `money` has no binary form here, so the whole row is requested as text. The JSON is the same.
    let offer = "(7,$1.50,\"(1,\"\"x \\\\\"\"y\\\\\"\"\"\")\",\"{a,\"\"b c\"\",NULL}\",\"2020-01-01 10:00:00\",\"\\\\x00ff\",\"[1,5)\")";
    let expected = r#"'{"id":7,"price":"$1.50","p":{"a":1,"b \"q\"":"x \"y\""},"tags":["a","b c",null],"at":"2020-01-01T10:00:00","raw":"AP8=","during":{"lower":1,"upper":5,"lowerInclusive":true,"upperInclusive":false}}'"#;
    compare(&client, &format!("select '{offer}'::offer as v"), expected).await;
    compare(
        &client,
        "select '{1999,2000,NULL}'::year[] as v",
        "'[1999,2000,null]'",
    )
    .await;
    assert_eq!(
        texts(&client, "select row(1, 'a \"b\"', null, true)")
            .await
            .first()
            .unwrap()
            .as_deref()
            .map(|text| write(&Type::RECORD, WireFormat::Text, text.as_bytes()))
            .unwrap(),
        r#"{"f1":"1","f2":"a \"b\"","f3":null,"f4":"t"}"#
    );
}
