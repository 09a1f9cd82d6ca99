-- name: insert 1,000 parameter sets
-- set: n = random(1, 1000)
-- sets: 1000
-- sql: owner
insert into bench_write (name, price) values ('name ' || :n::text, :n::text::numeric + 0.50);
