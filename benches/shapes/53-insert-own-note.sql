-- name: insert own note
-- set: n = random(1, 1000)
-- variables: {"data": {"title": "note :n", "body": "written by its author"}}
-- graphql: one user, users
insert into bench_notes (title, body) values ('note ' || :n, 'written by its author') returning id;
