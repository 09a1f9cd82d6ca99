//! Types that are dropped and made anew under their names, and types that change.

use crate::scene::Scene;

const TABLE: &str = "CREATE TABLE t (id int PRIMARY KEY, m mood, s spot, o other, l mood[]);
                     GRANT SELECT ON t TO PUBLIC";

#[tokio::test]
async fn types_that_are_made_anew_under_their_names_are_the_new_ones() {
    let scene = Scene::new("feed_made_anew").await;
    for (labels, base, attributes, row) in [
        ("'sad', 'glad'", "mood", ["x", "y"], ["(1,2)", "(3,t)"]),
        ("'glad', 'happy'", "text", ["y", "z"], ["(1,2)", "(3,t)"]),
        ("'ok', 'glad'", "mood", ["y", "x"], ["(1,2)", "(3,t)"]),
    ] {
        let [first, second] = attributes;
        scene
            .run(&format!(
                "CREATE TYPE mood AS ENUM ({labels}); CREATE DOMAIN feeling AS {base};
                 CREATE TYPE spot AS ({first} int, {second} int);
                 CREATE TABLE other ({second} int, {first} boolean); {TABLE};
                 ALTER TABLE t ADD f feeling"
            ))
            .await;
        let mut of_enum = scene.some("t", r#"{"m": "glad"}"#).await.unwrap();
        let mut of_domain = scene.some("t", r#"{"f": "glad"}"#).await.unwrap();
        let mut all = scene.all("t", &["m", "s", "o", "l"]).await;
        let [spot, other] = row;
        scene
            .run(&format!(
                "INSERT INTO t VALUES (1, 'glad', '{spot}', '{other}', '{{glad}}', 'glad')"
            ))
            .await;
        assert_eq!(of_enum.event().await, "+{\"id\":1}", "{labels}");
        assert_eq!(of_domain.event().await, "+{\"id\":1}", "{labels}");
        let expected = format!(
            "+{{\"m\":\"glad\",\"s\":{{\"{first}\":1,\"{second}\":2}},\
             \"o\":{{\"{second}\":3,\"{first}\":true}},\"l\":[\"glad\"]}}"
        );
        assert_eq!(all.event().await, expected);
        scene
            .run("DROP TABLE t, other; DROP DOMAIN feeling; DROP TYPE mood, spot")
            .await;
    }
}

#[tokio::test]
async fn labels_that_an_enum_gets_are_known_below_domains_too() {
    let scene = Scene::new("feed_domain_labels").await;
    scene
        .run(
            "CREATE TYPE mood AS ENUM ('sad', 'glad'); CREATE DOMAIN feeling AS mood;
             CREATE TABLE t (id int PRIMARY KEY, f feeling); GRANT SELECT ON t TO PUBLIC",
        )
        .await;
    let mut not_sad = scene.some("t", r#"{"f": {"gt": "sad"}}"#).await.unwrap();
    scene.run("INSERT INTO t VALUES (1, 'glad')").await;
    assert_eq!(not_sad.event().await, "+{\"id\":1}");
    scene.run("ALTER TYPE mood ADD VALUE 'happy'").await;
    scene.run("INSERT INTO t VALUES (2, 'happy')").await;
    assert_eq!(not_sad.event().await, "+{\"id\":2}");
}
