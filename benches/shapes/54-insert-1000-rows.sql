-- name: insert 1,000 rows
-- rows: 1000 {"name": "name of a row", "price": "7.50"}
-- variables: {"objects": :rows}
-- graphql: owner
insert into bench_write (name, price)
select name, price from json_to_recordset(':rows') as r(name text, price numeric) returning id;
