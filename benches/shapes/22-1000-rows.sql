-- name: 1,000 rows
-- set: first = random(1, 1000)
-- graphql: owner >= 0.75
-- sql: owner >= 0.75
select id, name, price, created_at from bench where id > :first order by id limit 1000;
