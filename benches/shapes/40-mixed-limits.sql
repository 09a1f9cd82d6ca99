-- name: 10 rows, a to-one and 3 of a list
-- set: first = random(1, 9000)
-- graphql: owner >= 0.6
select json_agg(x) from (
    select a.id, a.title, (select row_to_json(r) from (select r.id, r.name) r) as artist, (
        select json_agg(t order by t.id)
        from (
            select id, title, seconds from bench_tracks t where t.album_id = a.id order by t.id limit 3
        ) t
    ) as tracks
    from bench_albums a join bench_artists r on r.id = a.artist_id
    where a.id > :first order by a.id limit 10
) x;
