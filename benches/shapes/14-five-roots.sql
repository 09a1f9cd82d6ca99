-- name: five roots by key
-- set: a = random(1, 100000)
-- set: b = random(1, 100000)
-- set: c = random(1, 100000)
-- set: d = random(1, 100000)
-- set: e = random(1, 100000)
-- graphql: owner >= 0.5
select id, name, price, created_at from bench where id in (:a, :b, :c, :d, :e);
