-- name: one row, two to-ones and two lists
-- set: id = random(1, 10000)
-- graphql: owner >= 0.6
select row_to_json(x) from (
    select a.id, a.title, r.id as artist_id, r.name as artist, l.id as label_id, l.name as label,
        (
            select json_agg(o order by o.id)
            from (select o.id, o.title from bench_albums o where o.artist_id = r.id) o
        ) as albums,
        (
            select json_agg(t order by t.id)
            from (select t.id, t.title, t.seconds from bench_tracks t where t.album_id = a.id) t
        ) as tracks
    from bench_albums a join bench_artists r on r.id = a.artist_id
    join bench_labels l on l.id = r.label_id where a.id = :id
) x;
