//! Members (docs/API.md, "Members"): users without a role, who share the role of a group, and see
//! only their own rows.

use serde_json::{Value, json};

use crate::graphql::wait_for_type;
use crate::service::{RestResponse, demo};
use crate::users::{owner, sign_in};

pub(crate) const USERS: &str = "/api/v4/users";
pub(crate) const GRAPHQL: &str = "/api/graphql/schema/public";

/// A member of the demo, signed in.
pub(crate) struct SignedIn {
    pub(crate) token: String,
    /// What `tidegate.user_id()` returns.
    pub(crate) id: String,
}

impl SignedIn {
    pub(crate) async fn of(name: &str) -> Self {
        let shown = owner("GET", &format!("{USERS}/{name}"), Value::Null).await;
        let response = sign_in(demo(), name, &format!("{name}-password")).await;
        assert_eq!(response.status, 200, "{response:?}");
        Self {
            token: response.body["access_token"].as_str().unwrap().to_owned(),
            id: shown.body["id"].as_str().unwrap().to_owned(),
        }
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> RestResponse {
        let token = Some(self.token.as_str());
        demo().rest_with(token, ("POST", path), &body).await
    }

    /// The data of a GraphQL document that must succeed.
    pub(crate) async fn data(&self, query: &str) -> Value {
        let response = self.post(GRAPHQL, json!({"query": query})).await;
        assert_eq!(response.status, 200, "{response:?}");
        assert!(
            response.body.get("errors").is_none(),
            "{query}: {response:?}"
        );
        response.body["data"].clone()
    }

    /// The status of a request that a valid token may send.
    pub(crate) async fn status(&self) -> u16 {
        let query = json!({"query": "{ __typename }"});
        self.post(GRAPHQL, query).await.status
    }
}

/// A member for the body of a request.
pub(crate) fn member(name: &str, group: &str) -> Value {
    json!({"name": name, "kind": "member", "user_group": group,
        "password": format!("{name}-password"), "properties": {"org": "acme"}})
}

/// Runs SQL as the owner of the demo.
pub(crate) async fn run(q: &str) {
    let response = owner("POST", "/api/v4/sql", json!({"q": q})).await;
    assert_eq!(response.status, 200, "{q}: {response:?}");
}

/// Creates the members `a` and `b` of a group, and a table of notes whose rows belong to their
/// authors.
pub(crate) async fn two(prefix: &str) -> (SignedIn, SignedIn) {
    let (group, table) = (format!("{prefix}_people"), format!("{prefix}_notes"));
    let names = ["a", "b"].map(|name| format!("{prefix}_{name}"));
    let members: Vec<_> = names.iter().map(|name| member(name, &group)).collect();
    let made = owner("POST", USERS, json!(members)).await;
    assert_eq!(made.status, 201, "{made:?}");
    for q in [
        format!(
            "create table {table} (id int generated always as identity primary key, author text \
             not null default tidegate.user_id(), about int references {table}, title text)"
        ),
        format!("alter table {table} enable row level security"),
        format!(
            "create policy own on {table} using (author = (select tidegate.user_id())) \
             with check (author = (select tidegate.user_id()))"
        ),
        format!("grant select, insert, update, delete on {table} to \"demo/group/{group}\""),
    ] {
        run(&q).await;
    }
    let type_of = |prefix: &str| {
        let mut letters = prefix.chars();
        let first: String = letters.next().unwrap().to_uppercase().collect();
        format!("{first}{}Notes", letters.as_str())
    };
    wait_for_type(&type_of(prefix)).await;
    (SignedIn::of(&names[0]).await, SignedIn::of(&names[1]).await)
}

#[tokio::test]
async fn a_member_is_a_row_and_not_a_role() {
    let made = owner("POST", USERS, member("mrow", "mrow_group")).await;
    assert_eq!((made.status, &*made.location), (201, "/api/v4/users/mrow"));
    let shown = owner("GET", "/api/v4/users/mrow", Value::Null).await.body;
    assert_eq!(shown["kind"], "member");
    assert_eq!(shown["user_group"], "mrow_group");
    assert_eq!(shown["id"].as_str().unwrap().len(), 36, "{shown}");
    let admin = demo().admin().await;
    let roles = "select array_agg(rolname::text || rolcanlogin order by 1) from pg_roles \
        where rolname ~ 'mrow'";
    let roles: Vec<String> = admin.query_one(roles, &[]).await.unwrap().get(0);
    assert_eq!(roles, ["demo/group/mrow_grouptrue"]);
    let alice = owner("GET", "/api/v4/users/alice", Value::Null).await.body;
    assert_eq!(
        (&alice["kind"], &alice["id"]),
        (&json!("role"), &json!("alice"))
    );
}

#[tokio::test]
async fn members_are_checked_and_errors_name_the_place() {
    let with = |more: Value| {
        let mut user = member("mbad", "mbad_group");
        let more = more.as_object().unwrap().clone();
        user.as_object_mut().unwrap().extend(more);
        user
    };
    for (user, text) in [
        (
            with(json!({"kind": "robot"})),
            "`kind`: expected role or member",
        ),
        (with(json!({"user_group": null})), "`user_group`"),
        (with(json!({"user_group": ["a", "b"]})), "`user_group`"),
        (with(json!({"default_user": true})), "`default_user`"),
        (with(json!({"id": ""})), "`id`"),
        (with(json!({"id": "a\nb"})), "`id`"),
        (with(json!({"id": "x".repeat(256)})), "`id`"),
        (with(json!({"kind": "role", "id": "7"})), "`id`"),
        (with(json!({"properties": {"a": "\u{0}"}})), "`properties`"),
    ] {
        let list = json!([member("mfine", "mbad_group"), user]);
        let response = owner("POST", USERS, list).await;
        let (status, _, message) = response.error();
        assert_eq!(status, 400, "{user}");
        assert!(
            message.starts_with("[1]: ") && message.contains(text),
            "{user}: {message}"
        );
    }
    let twice = json!([member("mfine", "mbad_group"), member("mfine", "mbad_group")]);
    let response = owner("POST", USERS, twice).await;
    assert_eq!(
        (response.error().0, response.error().1),
        (409, "ALREADY_EXISTS")
    );
    // If an id were the name of another user, policies would take both for the same person.
    let alias = with(json!({"id": "alice"}));
    let same = json!([
        with(json!({"name": "mfine", "id": "m-7"})),
        with(json!({"name": "mother", "id": "m-7"})),
    ]);
    for (users, place) in [(alias, ""), (same, "[1]: ")] {
        let refused = owner("POST", USERS, users).await;
        let text =
            format!("{place}another user has this `id`; the id of a user with a role is its name");
        assert_eq!(refused.error(), (409, "ALREADY_EXISTS", &*text));
    }
    let taken = json!([member("mfine", "mbad_group"), member("alice", "mbad_group")]);
    let response = owner("POST", USERS, taken).await;
    assert!(response.error().2.starts_with("[1]: "), "{response:?}");
    assert_eq!(
        owner("GET", "/api/v4/users/mfine", Value::Null)
            .await
            .status,
        404
    );
}

/// Inserts a note and a reply to it. Returns the id of the note.
async fn insert_notes(member: &SignedIn, title: &str) -> String {
    let insert =
        format!("mutation {{ insertMdoorNotes(data: {{title: \"{title}\"}}) {{ id author }} }}");
    let made = member.data(&insert).await;
    let row = &made["insertMdoorNotes"][0];
    assert_eq!(row["author"], *member.id, "{made}");
    let id = row["id"].to_string();
    insert_reply(member, "reply", &id).await;
    id
}

/// Inserts a row that references the note `about`. The foreign key does not ask whether the member
/// may see the note (PostgreSQL, "Row Security Policies").
async fn insert_reply(member: &SignedIn, title: &str, about: &str) {
    let data = format!("{{title: \"{title}\", about: {about}}}");
    member
        .data(&format!(
            "mutation {{ insertMdoorNotes(data: {data}) {{ id }} }}"
        ))
        .await;
}

/// Checks what a member sees in `mdoor_notes`, where it has the note `title`, a reply to it, and a
/// reply to a note of `other`.
async fn check_reads(member: &SignedIn, other: &SignedIn, title: &str) {
    let rows = member
        .data("{ getMdoorNotes(orderBy: {id: asc}) { title author } }")
        .await;
    let own = |title| json!({"title": title, "author": member.id});
    assert_eq!(
        rows["getMdoorNotes"],
        json!([own(title), own("reply"), own("to another")])
    );
    let aggregate = member
        .data("{ getMdoorNotesAggregate { count max { author } } }")
        .await;
    assert_eq!(
        aggregate["getMdoorNotesAggregate"],
        json!([{"count": 3, "max": {"author": member.id}}])
    );
    // The policy also applies to the rows that a filter reads, and to related rows.
    let filter = "{ getMdoorNotes(where: {mdoorNotes: {title: {like: \"of %\"}}}) { title } }";
    let filtered = member.data(filter).await;
    assert_eq!(filtered["getMdoorNotes"], json!([{"title": "reply"}]));
    let related = "{ getMdoorNotes(orderBy: {id: asc}) \
        { mdoorNotes { title } mdoorNotesByAbout { title } } }";
    let related = member.data(related).await;
    let row =
        |about: Value, replies: Value| json!({"mdoorNotes": about, "mdoorNotesByAbout": replies});
    assert_eq!(
        related["getMdoorNotes"],
        json!([
            row(Value::Null, json!([{"title": "reply"}])),
            row(json!({"title": title}), json!([])),
            row(Value::Null, json!([])),
        ])
    );
    let call = json!({"jsonrpc": "2.0", "method": "mdoor_mine", "id": 1});
    let response = member.post("/api/v4/call", call).await;
    assert_eq!(
        response.body["result"]["data"],
        json!([{"title": title, "id": member.id, "org": "acme"}]),
        "{response:?}"
    );
    let call = json!({"jsonrpc": "2.0", "method": "mdoor_take", "id": 1});
    let response = member.post("/api/v4/call", call).await.body.to_string();
    assert_eq!(response.matches(&member.id).count(), 3, "{response}");
    assert!(!response.contains(&other.id), "{response}");
}

/// Checks that members who change or delete all notes reach their own only.
async fn check_writes(a: &SignedIn, b: &SignedIn) {
    let titles = async |member: &SignedIn| {
        let rows = member.data("{ getMdoorNotes(orderBy: {id: asc}) { title } }");
        rows.await["getMdoorNotes"].clone()
    };
    let three = |member: &SignedIn| json!(vec![json!({"author": member.id}); 3]);
    let of_b = titles(b).await;
    let update = "mutation { updateMdoorNotes(data: {title: \"changed\", about: null}, \
        where: {title: {neq: \"\"}}) { author } }";
    let updated = a.data(update).await;
    assert_eq!(updated["updateMdoorNotes"], three(a));
    assert_eq!(titles(b).await, of_b);
    let delete = "mutation { deleteMdoorNotes(where: {title: {neq: \"\"}}) { author } }";
    let deleted = b.data(delete).await;
    assert_eq!(deleted["deleteMdoorNotes"], three(b));
    assert_eq!(titles(a).await, json!(vec![json!({"title": "changed"}); 3]));
}

#[tokio::test]
async fn each_member_sees_only_its_rows() {
    let (a, b) = two("mdoor").await;
    let of_a = insert_notes(&a, "of a").await;
    let of_b = insert_notes(&b, "of b").await;
    insert_reply(&a, "to another", &of_b).await;
    insert_reply(&b, "to another", &of_a).await;
    let method = json!([
        {"method": "mdoor_mine", "q": "select title, tidegate.user_id() as id, \
            tidegate.claim('org') as org from mdoor_notes where title like 'of %'"},
        {"method": "mdoor_take", "q": "update mdoor_notes set title = title returning author"},
    ]);
    assert_eq!(owner("POST", "/api/v4/methods", method).await.status, 201);
    // The members send requests in turn, so that both use the same connections.
    for _ in 0..5 {
        check_reads(&a, &b, "of a").await;
        check_reads(&b, &a, "of b").await;
    }
    let steal = format!(
        "mutation {{ insertMdoorNotes(data: {{title: \"x\", author: \"{}\"}}) {{ id }} }}",
        b.id
    );
    let refused = a.post(GRAPHQL, json!({"query": steal})).await;
    assert!(refused.body["errors"].is_array(), "{refused:?}");
    check_writes(&a, &b).await;
}

#[tokio::test]
async fn code_that_is_reached_forges_no_claims() {
    let (a, b) = two("mforge").await;
    b.data("mutation { insertMforgeNotes(data: {title: \"of b\"}) { id } }")
        .await;
    // An owner's function that runs its argument as SQL.
    run(
        "create function mforge_run(q text) returns text language plpgsql as \
         'declare found text; begin execute q into found; return found; end'",
    )
    .await;
    let method = json!({"method": "mforge_run", "q": "select mforge_run(:q) as found, \
        (select count(*) from mforge_notes) as seen", "type_hints": {"q": "text"}});
    let made = owner("POST", "/api/v4/methods", method).await;
    assert_eq!(made.status, 201, "{made:?}");
    let call = async |member: &SignedIn, q: &str| {
        let call = json!({"jsonrpc": "2.0", "method": "mforge_run", "params": {"q": q}, "id": 1});
        member.post("/api/v4/call", call).await.body
    };
    let known = call(&a, "select tidegate.user_id()").await;
    assert_eq!(
        known["result"]["data"],
        json!([{"found": a.id, "seen": 0}]),
        "{known}"
    );
    let seal = "encode(sha256('x'), 'hex')";
    for forgery in [
        format!("select set_config('tidegate.identity', '{}', true)", b.id),
        format!(
            "select set_config('tidegate.identity', {seal} || {seal} || '{}', true)",
            b.id
        ),
        "select set_config('tidegate.claims', '{\"org\":\"globex\"}', true)".to_owned(),
        "select set_config('tidegate.identity', '', false)".to_owned(),
        format!("select set_config('role', 'demo/{}', true)", "mforge_b"),
        "select set_config('session_authorization', 'demo', true)".to_owned(),
    ] {
        let response = call(&a, &forgery).await;
        let forged = response.to_string();
        assert!(!forged.contains("of b"), "{forgery}: {forged}");
        let seen = &response["result"]["data"][0]["seen"];
        assert!(
            response.get("error").is_some() || seen == 0,
            "{forgery}: {forged}"
        );
        // A setting of one member does not reach the next request of any member.
        for member in [&a, &b] {
            let response = call(member, "select tidegate.user_id() || tidegate.claim('org')").await;
            let expected = format!("{}acme", member.id);
            assert_eq!(
                response["result"]["data"][0]["found"], *expected,
                "{forgery}: {response}"
            );
        }
    }
}

#[tokio::test]
async fn pages_of_users_follow_each_other() {
    let members: Vec<_> = (0..7)
        .map(|n| json!({"name": format!("mpage{n}"), "kind": "member", "user_group": "mpage"}))
        .collect();
    assert_eq!(owner("POST", USERS, json!(members)).await.status, 201);
    let mut path = format!("{USERS}?kind=member&group=mpage&limit=3");
    let mut names = Vec::new();
    let mut pages = 0;
    loop {
        let token = demo().cached_token("demo").await;
        let request = demo()
            .request(reqwest::Method::GET, &path)
            .bearer_auth(token);
        let page = crate::service::TextResponse::of(request).await;
        assert_eq!(page.status, 200, "{page:?}");
        let users = page.json();
        let users = users.as_array().unwrap();
        names.extend(
            users
                .iter()
                .map(|user| user["name"].as_str().unwrap().to_owned()),
        );
        pages += 1;
        let link = page.header("link").to_owned();
        let Some(next) = link.strip_prefix('<') else {
            break;
        };
        let (next, relation) = next.split_once('>').unwrap();
        assert_eq!(relation, "; rel=\"next\"");
        path = next.to_owned();
    }
    let expected: Vec<_> = (0..7).map(|n| format!("mpage{n}")).collect();
    assert_eq!((names, pages), (expected, 3));
    let of_roles = owner("GET", &format!("{USERS}?kind=role&limit=1000"), Value::Null).await;
    assert!(!of_roles.body.to_string().contains("mpage"));
    for (query, text) in [
        ("limit=0", "`limit`"),
        ("limit=1001", "`limit`"),
        ("limit=x", "`limit`"),
        ("kind=x", "`kind`"),
        ("page=2", "`page`"),
    ] {
        let response = owner("GET", &format!("{USERS}?{query}"), Value::Null).await;
        let (status, _, message) = response.error();
        assert!(
            status == 400 && message.contains(text),
            "{query}: {message}"
        );
    }
}

#[tokio::test]
async fn an_array_of_a_thousand_members_is_stored_at_once() {
    let name = |n: usize| format!("mmany-with-a-long-name-{n}");
    let new = |n| json!({"name": name(n), "kind": "member", "user_group": "mmany"});
    let members: Vec<_> = (0..1_000).map(new).collect();
    let made = owner("POST", USERS, json!(members)).await;
    // The names would make the header too long for proxies; the body has all links.
    assert_eq!((made.status, &*made.location), (201, USERS));
    assert_eq!(made.body.as_array().unwrap().len(), 1_000);
    let last = owner("GET", &format!("{USERS}/{}", name(999)), Value::Null).await;
    assert_eq!(last.status, 200);
    let more: Vec<_> = (1_000..2_001).map(new).collect();
    let refused = owner("POST", USERS, json!(more)).await;
    assert!(refused.error().2.contains("1000"), "{refused:?}");
}
