-- name: four levels, 1 x 3 x 3 x 3, limits
-- set: id = random(1, 100)
-- graphql: owner >= 0.6
select l.id, l.name, r.id, r.name, a.id, a.title, t.id, t.title from bench_labels l
left join lateral (
    select id, name from bench_artists where label_id = l.id order by id limit 3
) r on true
left join lateral (
    select id, title from bench_albums where artist_id = r.id order by id limit 3
) a on true
left join lateral (
    select id, title from bench_tracks where album_id = a.id order by id limit 3
) t on true
where l.id = :id order by r.id, a.id, t.id;
