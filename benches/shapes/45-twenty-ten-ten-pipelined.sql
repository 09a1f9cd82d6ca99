-- name: 20 x 10 x 10, floor in a pipeline
-- note: three statements that know the keys of their parents, in one snapshot
-- set: first = random(1, 900)
-- graphql: owner >= 0.9
\startpipeline
begin isolation level repeatable read read only;
select id, name from bench_artists where id > :first order by id limit 20;
select id, title, artist_id from bench_albums where artist_id = any(array[
    :first + 1, :first + 2, :first + 3, :first + 4, :first + 5, :first + 6, :first + 7,
    :first + 8, :first + 9, :first + 10, :first + 11, :first + 12, :first + 13, :first +
    14, :first + 15, :first + 16, :first + 17, :first + 18, :first + 19, :first + 20
]) order by id;
select id, title, seconds, album_id from bench_tracks
where album_id = any(array(select generate_series(:first * 10 + 1, :first * 10 + 200))) order by id;
commit;
\endpipeline
