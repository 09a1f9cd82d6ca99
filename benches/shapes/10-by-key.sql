-- name: by key
-- set: id = random(1, 100000)
-- graphql: owner, guest
-- call: owner, guest
-- sql: owner, guest
select id, name, price, created_at from bench where id = :id;
