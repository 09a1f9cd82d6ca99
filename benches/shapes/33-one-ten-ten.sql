-- name: 1 x 10 x 10
-- set: id = random(1, 1000)
-- graphql: owner >= 0.6
select r.id, r.name, a.id, a.title, t.id, t.title, t.seconds from bench_artists r
left join bench_albums a on a.artist_id = r.id left join bench_tracks t on t.album_id = a.id
where r.id = :id order by a.id, t.id;
