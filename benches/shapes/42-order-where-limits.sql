-- name: 5 x 5 x 3, order, where and limits
-- set: first = random(1, 900)
-- graphql: owner >= 0.6
select r.id, r.name, a.id, a.title, t.id, t.title, t.seconds
from (
    select id, name from bench_artists where id > :first order by name desc, id limit 5
) r
left join lateral (
    select id, title from bench_albums where artist_id = r.id and title like '%1%'
    order by title desc, id limit 5
) a on true
left join lateral (
    select id, title, seconds from bench_tracks where album_id = a.id and seconds < 300
    order by seconds desc, id limit 3
) t on true
order by r.name desc, r.id, a.title desc, a.id, t.seconds desc, t.id;
