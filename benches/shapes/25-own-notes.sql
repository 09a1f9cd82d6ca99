-- name: page of own notes
-- graphql: one user, users >= 0.7
-- call: one user, users >= 0.7
select id, title, created_at from bench_notes where id < 1000000000 order by id desc limit 10;
