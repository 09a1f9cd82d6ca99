-- The tables of the cases. The demo's administrator creates them once for each data folder.
create table bench (id int primary key, name text not null, price numeric(8,2),
    created_at timestamptz not null);
insert into bench select i, 'name of row ' || i, (i % 10000) / 100.0,
    timestamptz '2024-01-01' + i * interval '1 second' from generate_series(1, 200000) i;
create table bench_update as select * from bench where id <= 1000;
alter table bench_update add primary key (id);
create table bench_write (id bigint generated always as identity primary key, name text,
    price numeric(10,2));

-- Each row has ten rows of the next level: 100 labels, 1,000 artists, 10,000 albums, 100,000
-- tracks.
create table bench_labels as select i as id, 'label ' || i as name, i % 50 + 1950 as founded
    from generate_series(1, 100) i;
create table bench_artists as select i as id, (i + 9) / 10 as label_id, 'artist ' || i as name
    from generate_series(1, 1000) i;
create table bench_albums as select i as id, (i + 9) / 10 as artist_id, 'album ' || i as title
    from generate_series(1, 10000) i;
create table bench_tracks as select i as id, (i + 9) / 10 as album_id, 'track ' || i as title,
    i % 600 as seconds from generate_series(1, 100000) i;
alter table bench_labels add primary key (id);
alter table bench_artists add primary key (id), add foreign key (label_id) references bench_labels;
alter table bench_albums add primary key (id), add foreign key (artist_id) references bench_artists;
alter table bench_tracks add primary key (id), add foreign key (album_id) references bench_albums;
create index on bench_artists (label_id);
create index on bench_albums (artist_id);
create index on bench_tracks (album_id);

grant select on bench to demo, "demo/guest";
grant select on bench_labels, bench_artists, bench_albums, bench_tracks to demo;
grant select, update on bench_update to demo;
grant select, insert on bench_write to demo;
grant usage on schema public to demo;
