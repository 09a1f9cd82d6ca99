-- name: own note by key
-- note: row level security by current_user; the floor runs as one of the users
-- set: id = own(20)
-- graphql: one user, users >= 0.7, users with sign-ups >= 0.6
-- call: one user, users >= 0.7, users with sign-ups >= 0.6
-- sql: one user, 32 users >= 0.6
-- pgbench: one user, 32 users
select id, author, title, body, created_at from bench_notes where id = :id;
