-- name: 100 rows
-- set: first = random(1, 1000)
-- call: owner
-- sql: owner
select id, name, price, created_at from bench where id > :first order by id limit 100;
