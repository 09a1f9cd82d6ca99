-- name: 1 x list x list, order and where
-- set: id = random(1, 1000)
-- graphql: owner >= 0.6
select r.id, r.name, a.id, a.title, t.id, t.title, t.seconds from bench_artists r
left join bench_albums a on a.artist_id = r.id and a.title like '%1%'
left join bench_tracks t on t.album_id = a.id and t.seconds < 300
where r.id = :id order by a.title desc, a.id, t.seconds desc, t.id;
