-- name: own note by key
-- note: row level security by current_user; the floor runs as one of the users
-- set: id = own(20)
-- graphql: one user, users, users with sign-ups, tenants
-- call: one user, users, users with sign-ups
-- sql: one user, 32 users
select id, author, title, body, created_at from bench_notes where id = :id;
