//! Tests `tidegate demo` in the way a new user runs it.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use reqwest::Method;
use serde_json::{Value, json};

use crate::process::{Process, ProcessOutput};
use crate::service::{BINARY, Service, demo, demo_folder, eventually};

/// Runs a demo that must refuse to start. Returns the exit code and the error.
fn refusal(arguments: &[&str]) -> (i32, String) {
    let output: Output = Command::new(BINARY)
        .arg("demo")
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    (
        output.status.code().unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

/// Starts a demo and returns its banner. The deadline is long enough for a busy machine.
fn start(arguments: &[&str]) -> (Process, String) {
    let child = Command::new(BINARY)
        .args(["demo", "--listen", "127.0.0.1:0"])
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn();
    let mut child = Process(child.unwrap());
    let banner = ProcessOutput::of(child.0.stdout.take().unwrap()).wait_for("Ctrl-C");
    (child, banner)
}

fn stop(mut child: Process, signal: &str) {
    let pid = child.0.id().to_string();
    assert!(
        Command::new("kill")
            .args([signal, &pid])
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(child.end().code(), Some(0));
}

#[test]
fn listening_beyond_loopback_needs_insecure_http() {
    let folder = demo_folder();
    let path = folder.path().join("demo");
    let (code, message) = refusal(&[
        "--listen",
        "0.0.0.0:0",
        "--data-dir",
        path.to_str().unwrap(),
    ]);
    assert_eq!(code, 2);
    assert!(
        message.contains("the demo's passwords are public"),
        "{message}"
    );
    assert!(message.contains("--insecure-http"), "{message}");
    assert!(!path.exists(), "a refused demo makes nothing");
}

#[test]
fn a_second_demo_on_the_same_port_or_folder_gets_one_message() {
    let demo = demo();
    let folder = demo_folder();
    let listen = demo.url.strip_prefix("http://").unwrap();
    let (code, message) = refusal(&[
        "--listen",
        listen,
        "--data-dir",
        folder.path().to_str().unwrap(),
    ]);
    assert_eq!((code, message.lines().count()), (1, 1), "{message}");
    assert!(
        message.contains(listen) && message.contains("--listen"),
        "{message}"
    );
    for fresh in [&[][..], &["--fresh"]] {
        let same = ["--listen", "127.0.0.1:0", "--data-dir", &demo.data_dir];
        let (code, message) = refusal(&[&same[..], fresh].concat());
        assert_eq!((code, message.lines().count()), (1, 1), "{message}");
        assert!(message.contains("in use by another Tidegate"), "{message}");
    }
}

#[test]
fn a_folder_with_other_files_is_left_alone() {
    let folder = demo_folder();
    let key = folder.path().join("master.key");
    std::fs::write(&key, "precious").unwrap();
    let path = folder.path().to_str().unwrap();
    let arguments = ["--listen", "127.0.0.1:0", "--fresh", "--data-dir", path];
    let (code, message) = refusal(&arguments);
    assert_eq!((code, message.lines().count()), (1, 1), "{message}");
    assert!(message.contains("holds no demo"), "{message}");
    assert_eq!(std::fs::read_to_string(&key).unwrap(), "precious");
}

/// Runs the five commands in the banner as printed.
fn paste(banner: &str) {
    let commands = banner.lines().filter_map(|line| line.strip_prefix("  "));
    let commands = commands.filter(|line| line.starts_with("curl ") || line.starts_with("TOKEN="));
    let commands: Vec<_> = commands.collect();
    assert_eq!(commands.len(), 5, "{banner}");
    let script = commands.join("; echo\n");
    let output = Command::new("bash")
        .args(["-e", "-c", &script])
        .output()
        .unwrap();
    assert!(output.status.success());
    let printed = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<_> = printed.lines().filter(|line| !line.is_empty()).collect();
    assert!(
        lines[0].contains("\"name\":\"Corduroy Club\",\"country\":\"GB\""),
        "{printed}"
    );
    assert!(
        lines[1].starts_with("{\"name\":\"public\",\"tables\":["),
        "{printed}"
    );
    assert!(lines[2].contains("\"affected_rows\":1"), "{printed}");
    assert_eq!(
        (lines[3], lines.len()),
        ("title,released,price,tags", 9),
        "{printed}"
    );
}

/// Runs the command of the operator in the banner.
fn operate(banner: &str) {
    let mut lines = banner.lines();
    let line = lines.find_map(|line| line.trim_start().strip_prefix("operator "));
    let folder = Path::new(BINARY).parent().unwrap();
    let output = Command::new("sh")
        .args(["-c", line.unwrap()])
        .env("PATH", format!("{}:/usr/bin:/bin", folder.display()))
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{printed}");
    assert!(
        printed.contains("demo/alice") && printed.contains("owner"),
        "{printed}"
    );
}

/// The playlists that the commands in the banner created.
fn pasted_playlists(folder: &Path) -> String {
    let env = std::fs::read_to_string(folder.join("demo.env")).unwrap();
    let url = env
        .lines()
        .find_map(|line| line.strip_prefix("TIDEGATE_URL="))
        .unwrap();
    let q = r#"{"q":"select count(*) from playlists where name ~ '^Pasted'"}"#;
    let mut curl = Command::new("curl");
    curl.args([
        "-s",
        &format!("{url}/api/v4/sql"),
        "-H",
        "Content-Type: application/json",
    ]);
    String::from_utf8(curl.args(["-d", q]).output().unwrap().stdout).unwrap()
}

#[test]
fn the_commands_of_the_banner_work_and_data_stays_until_fresh() {
    let folder = demo_folder();
    let path = folder.path().join("demo");
    let data = ["--data-dir", path.to_str().unwrap()];
    let (child, banner) = start(&data);
    paste(&banner);
    operate(&banner);
    for file in ["demo.env", "master.key"] {
        let mode = path.join(file).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    stop(child, "-INT");
    assert!(
        !path.join("postgresql/data/postmaster.pid").exists(),
        "PostgreSQL runs on"
    );

    let (child, _) = start(&data);
    assert!(pasted_playlists(&path).contains("[{\"count\":1}]"));
    stop(child, "-TERM");
    std::fs::remove_file(path.join("master.key")).unwrap();
    let (code, message) = refusal(&[&data[..], &["--listen", "127.0.0.1:0"]].concat());
    assert_eq!(code, 1, "{message}");
    assert!(message.contains("start again with --fresh"), "{message}");
    let (child, _) = start(&[&data[..], &["--fresh"]].concat());
    assert!(pasted_playlists(&path).contains("[{\"count\":0}]"));
    stop(child, "-TERM");
}

#[tokio::test]
async fn it_holds_a_few_thousand_believable_rows() {
    let counts = demo()
        .rows(
            "demo",
            "select (select count(*) from artists) artists, (select count(*) from albums) albums, \
             (select count(*) from tracks) tracks, (select count(*) from venues) venues, \
             (select count(*) from concerts) concerts, \
             (select min(id) from artists) + (select min(id) from albums) \
             + (select min(id) from tracks) + (select min(id) from concerts) as first_ids, \
             (select count(*) from albums where price > 0) > (select count(*) / 2 from albums) \
             as priced",
            json!({}),
        )
        .await;
    let row = &counts["data"][0];
    let total: i64 = ["artists", "albums", "tracks", "venues", "concerts"]
        .iter()
        .map(|table| row[table].as_i64().unwrap())
        .sum();
    assert!((3_000..10_000).contains(&total), "{row}");
    assert_eq!(
        (&row["first_ids"], &row["priced"]),
        (&json!(4), &json!(true))
    );
}

#[tokio::test]
async fn only_names_titles_and_keys_are_required() {
    let required = demo()
        .rows(
            "demo",
            "select string_agg(table_name || '.' || column_name, ' ' \
             order by table_name, column_name) as required from information_schema.columns \
             where table_schema = 'public' and is_nullable = 'NO' and column_default is null \
             and is_identity = 'NO' and table_name in ('artists', 'albums', 'tracks', 'venues', \
             'concerts', 'playlists', 'playlist_tracks', 'notes')",
            json!({}),
        )
        .await;
    assert_eq!(
        required["data"][0]["required"],
        "albums.artist_id albums.title artists.name concerts.artist_id concerts.venue_id \
         playlist_tracks.playlist_id playlist_tracks.track_id playlists.name tracks.album_id \
         tracks.title venues.name"
    );
}

#[tokio::test]
async fn each_user_may_do_its_part_and_sees_its_own_notes() {
    let demo = demo();
    let notes = "select distinct owner from notes";
    for (user, owner) in [("demo", "demo"), ("alice", "demo/alice")] {
        let seen = demo.rows(user, notes, json!({})).await;
        assert_eq!(seen["data"], json!([{"owner": owner}]), "{user}");
    }
    let body = json!({"q": notes});
    let seen: Value = demo.sql(None, &body).await.json().await.unwrap();
    assert_eq!(seen["data"], json!([{"owner": "demo/guest"}]));

    let add = "insert into notes (body) values ('a test') returning owner";
    let added = demo.rows("alice", add, json!({})).await;
    assert_eq!(added["data"], json!([{"owner": "demo/alice"}]));
    let forge = json!({"q": "insert into notes (owner, body) values ('demo', 'forged')"});
    assert_eq!(demo.refusal("alice", &forge).await.0, 403);
    let write = json!({"q": "update artists set name = name"});
    assert_eq!(demo.refusal("alice", &write).await.0, 403);
    let strangers = json!({"q": "insert into notes (body) values ('mine')"});
    assert_eq!(demo.sql(None, &strangers).await.status(), 401);
}

#[tokio::test]
async fn its_confidential_client_gets_a_token_for_the_guest() {
    let demo = demo();
    let body = json!({
        "database": "demo", "client_id": "demo-server", "client_secret": "demo-server-secret",
    });
    let response = demo
        .request(Method::POST, "/api/v4/oauth/guest")
        .json(&body)
        .send()
        .await;
    assert_eq!(response.unwrap().status(), 201);
}

#[tokio::test]
async fn its_issuer_is_the_address_on_which_it_listens() {
    let demo = demo();
    let path = "/.well-known/oauth-authorization-server";
    let response = demo.request(Method::GET, path).send().await.unwrap();
    let metadata: Value = response.json().await.unwrap();
    assert_eq!(metadata["issuer"], demo.url.as_str());
}

/// The tables that the demo creates. Other tests create more.
const TABLES: &str = "('artists', 'albums', 'tracks', 'venues', 'concerts', 'playlists', \
                      'playlist_tracks', 'notes')";

#[tokio::test]
async fn its_tables_have_these_columns() {
    let q = format!(
        "select c.relname::text as name, string_agg(a.attname || ' ' || \
         format_type(a.atttypid, a.atttypmod), ', ' order by a.attnum) as columns \
         from pg_class c join pg_attribute a on a.attrelid = c.oid \
         where c.relnamespace = 'public'::regnamespace and c.relname in {TABLES} \
         and a.attnum > 0 and not a.attisdropped group by c.relname order by c.relname"
    );
    let found = demo().rows("demo", &q, json!({})).await;
    let expected = [
        (
            "albums",
            "id integer, artist_id integer, title text, released date, price numeric(8,2), \
             tags text[], created_at timestamp with time zone",
        ),
        (
            "artists",
            "id integer, name text, country character(2), formed date, website text",
        ),
        (
            "concerts",
            "id integer, artist_id integer, venue_id uuid, during tstzrange, ages int4range, \
             ticket numeric, status text",
        ),
        ("notes", "id integer, owner text, body text"),
        (
            "playlist_tracks",
            "playlist_id integer, track_id integer, position integer",
        ),
        ("playlists", "id integer, name text"),
        (
            "tracks",
            "id integer, album_id integer, title text, seconds integer, \
             rating double precision, explicit boolean, meta jsonb",
        ),
        ("venues", "id uuid, name text, location point, area polygon"),
    ];
    let expected = expected.map(|(name, columns)| json!({"name": name, "columns": columns}));
    assert_eq!(found["data"], json!(expected));
}

#[tokio::test]
async fn alice_and_anonymous_callers_read_everything_and_alice_writes_three_tables() {
    let q = format!(
        "select c.relname::text as name, has_table_privilege(r.oid, c.oid, 'SELECT') as reads, \
         has_table_privilege(r.oid, c.oid, 'INSERT') as inserts, \
         has_table_privilege(r.oid, c.oid, 'UPDATE') as updates, \
         has_table_privilege(r.oid, c.oid, 'DELETE') as deletes, \
         has_table_privilege(r.oid, c.oid, 'TRUNCATE') as truncates \
         from pg_class c cross join pg_roles r \
         where c.relnamespace = 'public'::regnamespace and c.relname in {TABLES} \
         and r.rolname = :who"
    );
    for (role, written) in [
        ("demo/alice", &["notes", "playlist_tracks", "playlists"][..]),
        ("demo/guest", &[]),
    ] {
        let found = demo().rows("demo", &q, json!({"who": role})).await;
        let found = found["data"].as_array().unwrap();
        assert_eq!(found.len(), 8, "{found:?}");
        for table in found {
            let writes = written.contains(&table["name"].as_str().unwrap());
            let expected = json!({
                "name": table["name"], "reads": true, "inserts": writes, "updates": writes,
                "deletes": writes, "truncates": false,
            });
            assert_eq!(*table, expected, "{role}");
        }
    }
}

#[tokio::test]
async fn its_clients_return_to_a_page_on_this_machine() {
    for (client, public) in [("demo-app", true), ("demo-server", false)] {
        let path = format!("/api/v4/clients/{client}");
        let shown = demo()
            .rest(Some("demo"), ("GET", &path), &Value::Null)
            .await;
        assert_eq!(shown.status, 200, "{shown:?}");
        assert_eq!(shown.body["public"], public, "{client}");
        let uris = shown.body["redirect_uri"].as_array().unwrap();
        for uri in [
            "http://127.0.0.1:5173/callback",
            "http://localhost:5173/callback",
        ] {
            assert!(uris.contains(&json!(uri)), "{client}: {uris:?}");
        }
    }
}

#[tokio::test]
async fn a_postgresql_that_dies_is_started_again() {
    let folder = demo_folder();
    let demo = Service::start(folder.path().to_str().unwrap(), &[]);
    let admin = demo.admin().await;
    let data = "select setting from pg_settings where name = 'data_directory'";
    let data: String = admin.query_one(data, &[]).await.unwrap().get(0);
    let id = std::fs::read_to_string(format!("{data}/postmaster.pid")).unwrap();
    let id = id.lines().next().unwrap();
    let killed = Command::new("kill").args(["-9", id]).status().unwrap();
    assert!(killed.success());
    let path = "/api/v4/sql";
    let query = json!({"q": "select count(*) as n from artists"});
    eventually("it answers again", || async {
        let asked = demo.request(Method::POST, path).json(&query).send().await;
        asked.is_ok_and(|response| response.status() == 200)
    })
    .await;
    let again = std::fs::read_to_string(format!("{data}/postmaster.pid")).unwrap();
    assert_ne!(again.lines().next(), Some(id), "it was the same one");
}
