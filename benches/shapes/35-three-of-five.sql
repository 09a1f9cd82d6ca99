-- name: 3 of a list, 5 of each
-- set: id = random(1, 1000)
-- graphql: owner >= 0.6
select r.id, r.name, a.id, a.title, t.id, t.title, t.seconds from bench_artists r
left join lateral (
    select id, title from bench_albums where artist_id = r.id order by id limit 3
) a on true
left join lateral (
    select id, title, seconds from bench_tracks where album_id = a.id order by id limit 5
) t on true
where r.id = :id order by a.id, t.id;
