-- name: four levels, 1 x 10 x 10 x 10
-- set: id = random(1, 100)
-- graphql: owner >= 0.6
select l.id, l.name, r.id, r.name, a.id, a.title, t.id, t.title from bench_labels l
left join bench_artists r on r.label_id = l.id left join bench_albums a on a.artist_id = r.id
left join bench_tracks t on t.album_id = a.id where l.id = :id order by r.id, a.id, t.id;
