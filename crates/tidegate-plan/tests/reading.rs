//! Lists, relationships, limits.

use crate::MUSIC;
use crate::fixture::Stage;

#[tokio::test]
async fn rows_come_with_their_relationships_at_any_depth() {
    let stage = Stage::new("plan_depth", MUSIC).await;
    let answer = stage
        .run(
            r#"artists({"order": ["id"]}) { id name albums({"order": ["id"]}) {
            title tracks({"order": ["id"]}) { id genres { code } } } }"#,
        )
        .await
        .unwrap();
    assert_eq!(
        answer.data,
        concat!(
            r#"{"artists":[{"id":"1","name":"Björk","albums":["#,
            r#"{"title":"Debut","tracks":[{"id":"100","genres":{"code":"pop"}},"#,
            r#"{"id":"101","genres":{"code":"el"}}]},"#,
            r#"{"title":"Post","tracks":[{"id":"102","genres":{"code":"pop"}}]}]},"#,
            r#"{"id":"2","name":"Air \"quoted\" \\ back","albums":["#,
            r#"{"title":"Moon Safari","tracks":[{"id":"103","genres":null},"#,
            r#"{"id":"104","genres":{"code":"el"}}]}]},"#,
            r#"{"id":"3","name":"Can","albums":[]}]}"#,
        )
    );
    assert_eq!(answer.texts.len(), 3, "{:?}", answer.texts);
}
