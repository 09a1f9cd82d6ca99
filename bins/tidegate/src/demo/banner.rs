//! The text that the demo prints when it is ready.

use std::path::Path;

/// The text with URLs, credentials and five commands to try. `console` is the link for signing in
/// to the console, and `environment` the path of `demo.env`.
pub(super) fn banner(url: &str, console: Option<&str>, environment: &Path) -> String {
    let environment = environment.display();
    let console = console.map(|link| {
        format!(
            "\n  console  {link}\n           signs a browser on this machine in as the owner, once, within 15 minutes\n  docs     {url}/docs/\n"
        )
    });
    let console = console.unwrap_or_default();
    format!(
        r#"
Tidegate demo at {url}
{console}
  users    demo / demo1234 (owner), alice / alice1234, guest (anybody, reads only)
  clients  demo-app (public), demo-server / demo-server-secret
  tables   artists albums tracks venues concerts playlists playlist_tracks notes
  psql     the address is in {environment}
  operator set -a; . {environment}; set +a; tidegate user list demo

Query anonymously, list the tables, sign in, write as alice, export:

  curl -s {url}/api/v4/sql -H 'Content-Type: application/json' -d '{{"q":"select name, country, formed from artists where country = :c order by name","params":{{"c":"GB"}}}}'
  curl -s {url}/api/v4/sql/schema/public
  TOKEN=$(curl -s {url}/api/v4/oauth -d grant_type=password -d username=alice -d password=alice1234 -d database=demo -d client_id=demo-app | sed 's/.*"access_token":"\([^"]*\)".*/\1/')
  curl -s {url}/api/v4/sql -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' -d '{{"q":"insert into playlists (name) values (:name) returning id, name","params":{{"name":"Pasted from the banner"}}}}'
  curl -s {url}/api/v4/sql -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' -d '{{"q":"select title, released, price, tags from albums order by released desc limit 5","output_format":"csv"}}'

Ctrl-C stops the demo; its data stays (--fresh starts again).
"#
    )
}
