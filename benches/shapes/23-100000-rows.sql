-- name: 100,000 rows as ndjson
-- set: first = random(1, 1000)
-- accept: application/x-ndjson
-- sql: owner
select id, name, price, created_at from bench where id > :first order by id limit 100000;
