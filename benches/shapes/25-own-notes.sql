-- name: page of own notes
-- graphql: one user, users
-- call: one user, users
select id, title, created_at from bench_notes where id < 1000000000 order by id desc limit 10;
