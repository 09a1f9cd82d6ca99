-- name: 25 rows
-- set: first = random(1, 1000)
-- graphql: owner
-- sql: owner
select id, name, price, created_at from bench where id > :first order by id limit 25;
