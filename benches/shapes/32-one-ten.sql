-- name: 1 x 10, limit and order
-- set: id = random(1, 1000)
-- graphql: owner >= 0.6
select r.id, r.name, a.id, a.title from bench_artists r left join lateral (
    select id, title from bench_albums where artist_id = r.id order by title desc, id limit 10
) a on true where r.id = :id;
