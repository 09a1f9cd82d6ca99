-- name: 10 calls by key in a batch
-- set: id = random(1, 100000)
-- batch: 10
-- call: owner >= 0.6
select id, name, price, created_at from bench where id = :id;
