-- name: insert one
-- set: n = random(1, 1000)
-- variables: {"data": {"name": "name :n", "price": ":n.50"}}
-- graphql: owner >= 0.6
insert into bench_write (name, price) values ('name ' || :n, :n + 0.50) returning id;
