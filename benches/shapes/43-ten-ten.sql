-- name: 10 x 10
-- set: first = random(1, 900)
-- graphql: owner >= 0.7
select r.id, r.name, a.id, a.title
from (select * from bench_artists where id > :first order by id limit 10) r
left join bench_albums a on a.artist_id = r.id order by r.id, a.id;
