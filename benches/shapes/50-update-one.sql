-- name: update one
-- set: id = random(1, 1000)
-- variables: {"id": :id, "data": {"price": ":id.25"}}
-- graphql: owner >= 0.6
update bench_update set price = :id + 0.25 where id = :id returning id, price;
