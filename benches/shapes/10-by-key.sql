-- name: by key
-- set: id = random(1, 100000)
-- graphql: owner >= 0.6, guest >= 0.55
-- call: owner >= 0.6, guest >= 0.55
-- sql: owner >= 0.5, guest
select id, name, price, created_at from bench where id = :id;
