-- name: 20 x 10 x 10
-- set: first = random(1, 900)
-- graphql: owner >= 1.2
select r.id, r.name, a.id, a.title, t.id, t.title, t.seconds
from (select * from bench_artists where id > :first order by id limit 20) r
left join bench_albums a on a.artist_id = r.id left join bench_tracks t on t.album_id = a.id
order by r.id, a.id, t.id;
