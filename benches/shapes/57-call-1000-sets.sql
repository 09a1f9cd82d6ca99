-- name: insert 1,000 sets by a call, one connection
-- set: n = random(1, 1000)
-- sets: 1000
-- connections: 1
-- call: owner
insert into bench_write (name, price) values ('name ' || :n::text, :n::text::numeric + 0.50);
