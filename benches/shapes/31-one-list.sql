-- name: 1 x list
-- set: id = random(1, 1000)
-- graphql: owner >= 0.6
select r.id, r.name, a.id, a.title
from bench_artists r left join bench_albums a on a.artist_id = r.id where r.id = :id order by a.id;
