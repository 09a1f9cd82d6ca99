-- name: update own note
-- set: id = own(20)
-- variables: {"id": :id, "data": {"title": "note :id"}}
-- graphql: one user, users
update bench_notes set title = 'note ' || :id where id = :id returning id, title;
