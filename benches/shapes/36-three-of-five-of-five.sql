-- name: 3 rows, 5 of each, 5 of each
-- set: first = random(1, 900)
-- graphql: owner >= 0.6
select r.id, r.name, a.id, a.title, t.id, t.title, t.seconds
from (select id, name from bench_artists where id > :first order by id limit 3) r
left join lateral (
    select id, title from bench_albums where artist_id = r.id order by id limit 5
) a on true
left join lateral (
    select id, title, seconds from bench_tracks where album_id = a.id order by id limit 5
) t on true
order by r.id, a.id, t.id;
