-- name: five roots of four tables
-- set: a = random(1, 100000)
-- set: b = random(1, 1000)
-- variables: {"a": :a, "b": :b, "artist": :b}
-- graphql: owner >= 0.5
select row_to_json(x) from (select
    (select row_to_json(r) from (select id, name, price from bench where id = :a) r) as a,
    (select row_to_json(r) from (select id, name from bench_artists where id = :b) r) as b,
    (select json_agg(r order by id) from (select id, title from bench_albums where artist_id = :b) r) as c,
    (select row_to_json(r) from (select id, name from bench_labels where id = 7) r) as d,
    (select json_agg(r order by id) from (select id, name from bench_artists where label_id = 7) r) as e
) x;
