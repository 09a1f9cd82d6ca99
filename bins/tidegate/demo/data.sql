-- The rows of the demonstration. They are invented, and the same in every run. Numbers that look
-- random are hashes of a name and of the row's number.

create function pg_temp.pick(what text, choices int) returns int language sql immutable as $$
    select 1 + (('x' || substr(md5(what), 1, 7))::bit(28)::int % choices)
$$;

insert into public.artists (name, country, formed, website) values
    ('The Paper Lanterns', 'GB', '1994-03-12', 'https://paperlanterns.example'),
    ('Marea Alta', 'ES', '2001-06-30', 'https://mareaalta.example'),
    ('Nordlicht Ensemble', 'DE', '1987-11-02', 'https://nordlicht.example'),
    ('Saltwater Radio', 'US', '2009-01-19', 'https://saltwaterradio.example'),
    ('Hollow Pine', 'CA', '2012-09-07', null),
    ('Ines Carvalho', 'PT', '1998-04-25', 'https://inescarvalho.example'),
    ('Kettle & Crane', 'IE', '2004-02-14', null),
    ('Glass Orchard', 'GB', '2015-05-01', 'https://glassorchard.example'),
    ('Okonkwo Brothers', 'NG', '1979-08-16', null),
    ('Lumen Choir', 'SE', '1991-12-13', 'https://lumenchoir.example'),
    ('Velvet Tram', 'CZ', '2007-10-28', null),
    ('Rosa del Norte', 'MX', '1985-09-16', 'https://rosadelnorte.example'),
    ('Tin Roof Theory', 'US', '2011-07-04', 'https://tinrooftheory.example'),
    ('Aiko Hayashi Trio', 'JP', '2003-03-03', 'https://aikohayashi.example'),
    ('Slow Harbour', 'NZ', '2010-02-06', null),
    ('Les Papillons Gris', 'FR', '1996-07-14', 'https://papillonsgris.example'),
    ('Copper Finch', 'AU', '2013-01-26', 'https://copperfinch.example'),
    ('Dmitri Volkov', null, '1989-05-09', null),
    ('Seven Ferries', 'GR', '2006-08-15', 'https://sevenferries.example'),
    ('Banjo for Beginners', 'US', '1999-10-31', null),
    ('Mira Lindqvist', 'SE', '2014-06-06', 'https://miralindqvist.example'),
    ('Electric Almanac', 'GB', '1983-04-01', 'https://electricalmanac.example'),
    ('The Quiet Carriage', 'GB', '2016-11-11', null),
    ('Amara Diallo', 'SN', '2000-04-04', 'https://amaradiallo.example'),
    ('Polder', 'NL', '2008-04-27', 'https://polder.example'),
    ('Ash & Juniper', 'US', '2017-09-22', null),
    ('Orquesta Bahía', 'CU', '1972-01-01', null),
    ('Northbound Seventeen', 'CA', '1997-07-01', 'https://northbound17.example'),
    ('Fjordline', 'NO', '2005-05-17', 'https://fjordline.example'),
    ('Clara & the Cartographers', 'DE', '2018-03-20', 'https://cartographers.example'),
    ('Monsoon Library', 'IN', '2002-08-15', 'https://monsoonlibrary.example'),
    ('Piccolo Mondo', 'IT', '1976-06-02', null),
    ('The Understudies', 'US', '1990-12-24', 'https://understudies.example'),
    ('Wren Holloway', 'GB', '2019-02-02', 'https://wrenholloway.example'),
    ('Kalliope', 'GR', '1993-03-25', null),
    ('Granite Sunday', 'US', '1988-06-19', 'https://granitesunday.example'),
    ('Tundra Post', 'FI', '2011-12-06', 'https://tundrapost.example'),
    ('Samba da Esquina', 'BR', '1981-02-28', 'https://sambadaesquina.example'),
    ('Harbour Lights Quartet', 'DK', '1968-05-05', null),
    ('Low Winter Sun', 'IS', '2013-06-17', 'https://lowwintersun.example'),
    ('Pascal Émile', 'BE', '1995-07-21', null),
    ('The Tenth Lighthouse', 'IE', '2009-09-09', 'https://tenthlighthouse.example'),
    ('Yara Haddad', 'LB', '2007-11-22', 'https://yarahaddad.example'),
    ('Corduroy Club', 'GB', '1992-08-08', null),
    ('Blue Signal Box', 'AU', '2003-10-10', 'https://bluesignalbox.example'),
    ('Zsófia Varga', 'HU', '2015-08-20', 'https://zsofiavarga.example'),
    ('Mercury Laundry', 'US', '2020-05-30', 'https://mercurylaundry.example'),
    ('Trio Sans Nom', 'CH', '1986-08-01', null),
    ('Paloma Ríos', 'AR', '1999-05-25', 'https://palomarios.example'),
    ('The Long Division', 'GB', '2001-01-01', 'https://longdivision.example'),
    ('Kite Weather', 'NZ', '2018-12-21', 'https://kiteweather.example'),
    ('Old Mill Collective', 'US', '1974-04-22', null),
    ('Sunday Cartel', 'CO', '2012-07-20', 'https://sundaycartel.example'),
    ('Frost & Ferrier', 'GB', '1984-02-29', null),
    ('Nairobi Night Shift', 'KE', '2010-12-12', 'https://nightshift.example'),
    ('Astrid Holm', 'NO', '2016-01-08', 'https://astridholm.example'),
    ('Marble Arcade', 'US', '1998-09-14', 'https://marblearcade.example'),
    ('Les Heures Creuses', 'FR', '2014-10-26', null),
    ('Salt & Cedar', 'LB', '2019-06-21', 'https://saltandcedar.example'),
    ('Echo Street Brass', 'US', '1965-02-23', 'https://echostreetbrass.example'),
    ('Velocity Garden', 'KR', '2017-03-01', 'https://velocitygarden.example'),
    ('Tomás & Lena', 'CL', '2008-09-18', null),
    ('The Weather Station Masters', 'GB', '1978-10-05', null),
    ('Quartz Meridian', 'DE', '1982-01-30', 'https://quartzmeridian.example');

insert into public.albums (artist_id, title, released, price, tags, created_at)
select artist.id,
       case pg_temp.pick('shape' || artist.id || '-' || number, 4)
           when 1 then word.adjective || ' ' || word.noun
           when 2 then 'The ' || word.noun || ' ' || word.place
           when 3 then word.noun || 's ' || word.place
           else word.adjective || ' ' || word.noun || 's'
       end,
       artist.formed + (date '2026-08-28' - artist.formed) * number / 7
           + pg_temp.pick('day' || artist.id || '-' || number, 200) - 100,
       case when pg_temp.pick('price' || artist.id || '-' || number, 12) = 1 then null
            when pg_temp.pick('price' || artist.id || '-' || number, 12) = 2 then 0.00
            else 4.99 + pg_temp.pick('price' || artist.id || '-' || number, 15) end,
       case when pg_temp.pick('tags' || artist.id || '-' || number, 15) = 1 then null
            else array[word.genre, word.mood] end,
       timestamptz '2024-01-08 09:00:00+00' + (artist.id * 7 + number) * interval '7 hours 13 minutes'
from public.artists as artist
cross join generate_series(1, 6) as number
cross join lateral (
    select (array['Quiet', 'Crooked', 'Amber', 'Northern', 'Paper', 'Electric', 'Borrowed', 'Hollow',
                  'Second', 'Silver', 'Restless', 'Faded', 'Distant', 'Open', 'Winter', 'Last',
                  'Burning', 'Patient', 'Secret', 'Golden'])
               [pg_temp.pick('adjective' || artist.id || '-' || number, 20)] as adjective,
           (array['Harbour', 'Garden', 'Lantern', 'River', 'Letter', 'Window', 'Machine', 'Orchard',
                  'Station', 'Mirror', 'Kingdom', 'Signal', 'Summer', 'Almanac', 'Parade', 'Season',
                  'Engine', 'Island', 'Postcard', 'Meadow', 'Ferryboat', 'Carousel', 'Telegram'])
               [pg_temp.pick('noun' || artist.id || '-' || number, 23)] as noun,
           (array['at Dawn', 'in Transit', 'by the Sea', 'After Hours', 'Without Maps', 'of Glass',
                  'on Fire', 'for Two', 'in Reverse', 'at the Border', 'Under Snow', 'and Other Stories'])
               [pg_temp.pick('place' || artist.id || '-' || number, 12)] as place,
           (array['rock', 'folk', 'jazz', 'electronic', 'pop', 'classical', 'latin', 'soul'])
               [pg_temp.pick('genre' || artist.id, 8)] as genre,
           (array['live', 'acoustic', 'studio', 'remastered', 'debut', 'late night'])
               [pg_temp.pick('mood' || artist.id || '-' || number, 6)] as mood
) as word
where number <= 3 + pg_temp.pick('albums' || artist.id, 3)
order by artist.id, number;

insert into public.tracks (album_id, title, seconds, rating, explicit, meta)
select album.id,
       case pg_temp.pick('form' || album.id || '-' || number, 5)
           when 1 then word.verb || ' ' || word.thing
           when 2 then word.thing
           when 3 then word.verb || ' Me ' || word.ending
           when 4 then 'No More ' || word.thing
           else word.thing || ' ' || word.ending
       end,
       95 + pg_temp.pick('seconds' || album.id || '-' || number, 320),
       case when pg_temp.pick('rated' || album.id || '-' || number, 9) = 1 then null
            else 1 + pg_temp.pick('rating' || album.id || '-' || number, 40) / 10.0 end,
       pg_temp.pick('explicit' || album.id || '-' || number, 11) = 1,
       case when pg_temp.pick('meta' || album.id || '-' || number, 10) = 1 then null
            else jsonb_build_object(
                'bpm', 60 + pg_temp.pick('bpm' || album.id || '-' || number, 120),
                'key', (array['C major', 'A minor', 'G major', 'E minor', 'D major', 'F# minor', 'Bb major'])
                           [pg_temp.pick('key' || album.id || '-' || number, 7)],
                'track', number,
                'writers', to_jsonb((array['Avery', 'Bello', 'Castell', 'Duarte', 'Eklund', 'Farrow'])
                           [pg_temp.pick('writers' || album.id, 3):2 + pg_temp.pick('writers' || album.id, 3)]))
       end
from public.albums as album
cross join generate_series(1, 12) as number
cross join lateral (
    select (array['Carry', 'Follow', 'Remember', 'Call', 'Leave', 'Teach', 'Find', 'Forget', 'Hold',
                  'Meet', 'Paint', 'Wake', 'Trust', 'Write', 'Lose', 'Bring'])
               [pg_temp.pick('verb' || album.id || '-' || number, 16)] as verb,
           (array['Sundays', 'Thunder', 'The Night Bus', 'Cold Coffee', 'Neon', 'Gravity', 'Old Photographs',
                  'The Tide', 'Satellites', 'Rain on Tin', 'Promises', 'Telephone Wires', 'The Stairs',
                  'Marigolds', 'Seventeen', 'Smoke', 'Ordinary Magic', 'The Lighthouse', 'Static',
                  'Paper Boats', 'Daylight', 'Borrowed Time', 'Small Hours', 'Tangerine', 'The Long Way',
                  'Foxgloves', 'Chalk', 'Polaroids', 'The Last Train', 'Silence'])
               [pg_temp.pick('thing' || album.id || '-' || number, 30)] as thing,
           (array['Home', 'Tonight', 'Again', 'Slowly', 'in Colour', 'Before Morning', 'Anyway',
                  'Tomorrow', 'by Heart', 'for a While'])
               [pg_temp.pick('ending' || album.id || '-' || number, 10)] as ending
) as word
where number <= 8 + pg_temp.pick('tracks' || album.id, 4)
order by album.id, number;

insert into public.venues (id, name, location, area)
select (substr(hash, 1, 12) || '4' || substr(hash, 14, 3) || 'a' || substr(hash, 18, 15))::uuid,
       venue.name,
       point(longitude, latitude),
       case when pg_temp.pick(venue.name, 6) = 1 then null else polygon(box(
           point(longitude - 0.002, latitude - 0.001), point(longitude + 0.002, latitude + 0.001))) end
from (values
    ('The Boathouse', -0.1276, 51.5072), ('Sala Miramar', 2.1734, 41.3851),
    ('Kesselhaus am Kanal', 13.4050, 52.5200), ('Foundry Row', -73.9857, 40.7484),
    ('Cedar Hall', -123.1207, 49.2827), ('Teatro do Cais', -9.1393, 38.7223),
    ('The Tin Whistle', -6.2603, 53.3498), ('Marina Stage', 3.3792, 6.5244),
    ('Ljusgården', 18.0686, 59.3293), ('Klub Vltava', 14.4378, 50.0755),
    ('Foro Azul', -99.1332, 19.4326), ('Lantern Room', 139.6917, 35.6895),
    ('Wharf Seven', 174.7633, -36.8485), ('La Verrière', 2.3522, 48.8566),
    ('The Woolshed', 144.9631, -37.8136), ('Odeion Kyma', 23.7275, 37.9838),
    ('Cotton Exchange', -90.0715, 29.9511), ('De Sluis', 4.9041, 52.3676),
    ('Casa del Malecón', -82.3666, 23.1136), ('Prairie Lights', -97.1384, 49.8951),
    ('Havnehallen', 5.3221, 60.3913), ('Banyan Court', 77.5946, 12.9716),
    ('Anfiteatro Verde', 12.4964, 41.9028), ('Midnight Depot', -87.6298, 41.8781),
    ('Talvipuutarha', 24.9384, 60.1699), ('Praça das Artes', -46.6333, -23.5505),
    ('Fyrtårnet', 12.5683, 55.6761), ('Harpa Annex', -21.9426, 64.1466),
    ('Salle des Brasseurs', 4.3517, 50.8503), ('Beit el Bahr', 35.5018, 33.8938),
    ('Signal Yard', 151.2093, -33.8688), ('Duna Terasz', 19.0402, 47.4979),
    ('Zeughaus', 8.5417, 47.3769), ('Patio Sur', -58.3816, -34.6037),
    ('The Observatory Steps', 36.8219, -1.2921), ('Han River Hall', 126.9780, 37.5665)
) as venue (name, longitude, latitude)
cross join lateral (select md5('venue ' || venue.name) as hash) as made;

insert into public.concerts (artist_id, venue_id, during, ages, ticket, status)
select pg_temp.pick('artist of ' || number, 64),
       (array(select id from public.venues order by name))[pg_temp.pick('venue of ' || number, 36)],
       tstzrange(start, start + interval '2 hours' + pg_temp.pick('length ' || number, 6) * interval '15 minutes'),
       case pg_temp.pick('ages ' || number, 5)
           when 1 then int4range(18, null) when 2 then int4range(16, null)
           when 3 then int4range(6, 13) when 4 then null else int4range(0, null) end,
       case when pg_temp.pick('ticket ' || number, 14) = 1 then null
            else 12.5 + pg_temp.pick('ticket ' || number, 14) * 3.25 end,
       case when start < timestamptz '2026-06-01 00:00:00+00'
            then (array['done', 'done', 'done', 'cancelled'])[pg_temp.pick('status ' || number, 4)]
            else (array['planned', 'on sale', 'sold out', 'planned'])[pg_temp.pick('status ' || number, 4)] end
from generate_series(1, 320) as number
cross join lateral (
    select timestamptz '2025-01-10 19:00:00+00' + number * interval '3 days'
           + pg_temp.pick('hour ' || number, 4) * interval '30 minutes' as start
) as time
order by number;

insert into public.playlists (name) values
    ('Monday, gently'), ('Kitchen radio'), ('Long drives'), ('Rainy windows'), ('First coffee'),
    ('Songs in minor keys'), ('Under three minutes'), ('Late ferry home'), ('Writing hours'),
    ('Brass and strings'), ('Summer 2019'), ('Found in a taxi'), ('New this month'), ('Running, slowly'),
    ('Covers night'), ('For the garden'), ('Quiet carriage'), ('Loud carriage'), ('Sunday market'),
    ('Everything with handclaps');

insert into public.playlist_tracks (playlist_id, track_id, position)
select playlist_id, track_id, row_number() over (partition by playlist_id order by track_id % 97, track_id)
from (
    select distinct playlist.id as playlist_id,
           pg_temp.pick('slot ' || playlist.id || '-' || slot, 2400) as track_id
    from public.playlists as playlist
    cross join generate_series(1, 24) as slot
) as chosen;

insert into public.notes (owner, body) values
    ('demo', 'Ask the label for better scans of the early sleeves.'),
    ('demo', 'Prices of the reissues go up in March.'),
    ('demo', 'Three venues still owe us their floor plans.'),
    ('demo/alice', 'Swap the two last songs of "Late ferry home".'),
    ('demo/alice', 'Find out who plays the bass on track four.'),
    ('demo/alice', 'Tickets for the Lantern Room: row F, not row P.'),
    ('demo/guest', 'Anyone can read this one, for it is the guest''s.');
