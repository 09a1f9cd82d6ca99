-- name: 10 rows, a to-one and 3 of a list
-- set: first = random(1, 9000)
-- graphql: owner
select a.id, a.title, r.id, r.name, t.id, t.title, t.seconds
from (
    select id, title, artist_id from bench_albums where id > :first order by id limit 10
) a
join bench_artists r on r.id = a.artist_id
left join lateral (
    select id, title, seconds from bench_tracks where album_id = a.id order by id limit 3
) t on true
order by a.id, t.id;
