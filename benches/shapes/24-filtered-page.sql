-- name: filtered page
-- set: price = random(1, 50)
-- graphql: owner
select id, name, price, created_at from bench where price >= :price and name like '%7%'
order by id desc limit 25 offset 25;
