-- name: 25 rows with a to-one
-- set: first = random(1, 1000)
-- graphql: owner >= 0.6
select a.id, a.title, r.id, r.name from bench_albums a join bench_artists r on r.id = a.artist_id
where a.id > :first order by a.id limit 25;
