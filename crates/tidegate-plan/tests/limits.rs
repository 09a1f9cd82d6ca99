//! Tests that limits never cut a list silently.

use tidegate_plan::Limits;

use crate::MUSIC;
use crate::fixture::Fixture;

const SMALL: Limits = Limits {
    default_rows: 2,
    most_rows: 3,
    bytes: 1 << 20,
};

async fn fixture(name: &str) -> Fixture {
    let mut fixture = Fixture::new(name, MUSIC).await;
    fixture.limits = SMALL;
    fixture
}

#[tokio::test]
async fn a_list_without_a_limit_has_the_default_and_says_what_it_lacks() {
    let fixture = fixture("plan_default").await;
    let response = fixture.run("artists { id }").await.unwrap();
    assert_eq!(response.data.matches("id").count(), 2);
    assert_eq!(response.truncated(), ["artists"]);
    let response = fixture.run("genres { code }").await.unwrap();
    assert_eq!(
        response.data.matches("code").count(),
        2,
        "exactly as many as there are"
    );
    assert!(response.truncated().is_empty());
}

#[tokio::test]
async fn a_limit_that_the_request_gives_cuts_without_a_word_until_the_most() {
    let fixture = fixture("plan_given").await;
    let response = fixture.run(r#"tracks({"limit": 3}) { id }"#).await.unwrap();
    assert_eq!(
        response.data,
        r#"{"tracks":[{"id":"100"},{"id":"101"},{"id":"102"}]}"#
    );
    assert!(response.truncated().is_empty());
    let response = fixture
        .run(r#"tracks({"limit": 4, "offset": 1}) { id }"#)
        .await
        .unwrap();
    assert_eq!(
        response.data,
        r#"{"tracks":[{"id":"101"},{"id":"102"},{"id":"103"}]}"#
    );
    assert_eq!(response.truncated(), ["tracks"]);
    let response = fixture
        .run(r#"tracks({"limit": 4, "offset": 2}) { id }"#)
        .await
        .unwrap();
    assert!(response.truncated().is_empty(), "three are left");
    let response = fixture.run(r#"tracks({"limit": 0}) { id }"#).await.unwrap();
    assert_eq!(
        (&*response.data, response.truncated().len()),
        (r#"{"tracks":[]}"#, 0)
    );
    let huge = fixture
        .run(r#"tracks({"limit": 18446744073709551615, "offset": 18446744073709551615}) { id }"#);
    assert_eq!(huge.await.unwrap().data, r#"{"tracks":[]}"#);
}

#[tokio::test]
async fn each_nested_list_has_its_own_limit_and_path() {
    let fixture = Fixture::new("plan_nested_limits", MUSIC).await;
    let more = "insert into tracks select i, 12, null, 't', 1, 1 from generate_series(200, 210) i";
    fixture.admin.batch_execute(more).await.unwrap();
    let mut fixture = fixture;
    fixture.limits = SMALL;
    let response = fixture
        .run(r#"albums({"order": ["id"], "limit": 3}) { id tracks { id } }"#)
        .await
        .unwrap();
    assert_eq!(response.truncated(), ["albums.2.tracks"]);
    let counts: Vec<_> = response
        .data
        .split("tracks")
        .skip(1)
        .map(|t| t.matches(r#""id""#).count())
        .collect();
    assert_eq!(counts[0], 2 + 1, "two tracks and the next album");
    assert_eq!(counts[2], 2);
    assert_eq!(
        response.texts.len(),
        2,
        "read again, each list with its limit: {:?}",
        response.texts
    );
    let response = fixture
        .run(r#"albums({"order": ["id"], "limit": 3}) { artists { albums({"limit": 9}) { tracks({"limit": 9, "where": {"id": {"gt": 199}}}) { id } } } }"#)
        .await
        .unwrap();
    assert_eq!(response.truncated(), ["albums.2.artists.albums.0.tracks"]);
}

#[tokio::test]
async fn a_full_house_is_not_truncated() {
    let fixture = fixture("plan_full").await;
    // The shared limit of two lists of two is reached by two albums with two rows each.
    let response = fixture
        .run(r#"albums({"order": ["id"], "where": {"id": {"in": [10, 12]}}}) { tracks { id } }"#)
        .await
        .unwrap();
    assert!(response.truncated().is_empty(), "{response:?}");
    assert_eq!(response.texts.len(), 1, "not asked again");
}

#[tokio::test]
async fn groups_are_cut_at_the_most() {
    let fixture = fixture("plan_groups").await;
    let response = fixture
        .run(r#"aggregate.tracks({"groupBy": ["id"]}) { id count }"#)
        .await
        .unwrap();
    assert_eq!(response.data.matches("count").count(), 3);
    assert_eq!(response.truncated(), ["tracks"]);
}

#[tokio::test]
async fn pages_are_stable_by_the_primary_key() {
    let fixture = Fixture::new(
        "plan_pages",
        "create table t (a int, b int, c int, primary key (b, a));
        insert into t select i % 7, i, 1 from generate_series(1, 50) i",
    )
    .await;
    let mut seen = Vec::new();
    for offset in (0..50).step_by(10) {
        let data = fixture
            .data(&format!(
                r#"t({{"limit": 10, "offset": {offset}, "order": ["c"]}}) {{ b }}"#
            ))
            .await;
        seen.push(data.replace(r#"{"t":["#, "").replace("]}", ""));
    }
    let expected: Vec<_> = (1..=50).map(|b| format!(r#"{{"b":"{b}"}}"#)).collect();
    assert_eq!(seen.join(","), expected.join(","));
}

#[tokio::test]
async fn a_result_beyond_the_limit_of_bytes_is_an_error() {
    let mut fixture = Fixture::new("plan_bytes", MUSIC).await;
    fixture.limits.bytes = 100;
    let error = fixture.refusal("tracks { id title bytes }").await;
    assert!(
        matches!(error, tidegate_sql::Error::ResultTooLarge(100)),
        "{error:?}"
    );
    // The rows of each level are within the limit, but the merged response exceeds it.
    let error = fixture
        .refusal(r#"albums({"limit": 2}) { artists { albums { title } } }"#)
        .await;
    assert!(
        matches!(error, tidegate_sql::Error::ResultTooLarge(100)),
        "{error:?}"
    );
}

#[tokio::test]
async fn one_list_among_many_may_be_much_longer_than_the_others() {
    let setup = "create table p (id int primary key); create table c (id int primary key, p_id int references p);
        insert into p select generate_series(1, 300);
        insert into c select i, case when i < 80000 then 150 else i % 300 + 1 end from generate_series(1, 80599) i;
        create index on c (p_id)";
    let fixture = Fixture::new("plan_long", setup).await;
    let response = fixture
        .run(r#"p({"order": ["id"]}) { id c({"order": ["id desc"]}) { id } }"#)
        .await
        .unwrap();
    assert_eq!(
        response.texts.len(),
        2,
        "the first has too many rows, the second a limit for each list"
    );
    assert_eq!(response.truncated(), ["p.149.c"]);
    assert_eq!(
        response.data.matches('{').count(),
        1 + 300 + 1_000 + 299 * 2
    );
    assert!(
        response
            .data
            .contains(r#"{"id":"300","c":[{"id":"80399"},{"id":"80099"}]}"#),
        "{}",
        response.data.len()
    );
}
