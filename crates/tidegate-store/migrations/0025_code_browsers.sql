-- The browser session in which a code was approved. The code is invalid after the browser session
-- has ended or the client was deleted. Existing codes are deleted. A statement ends with a
-- semicolon at the end of a line.

delete from tidegate.authorization_codes;

delete from tidegate.device_codes;

-- A used code is kept when its browser session is deleted, because a second use must still end the
-- session that the first use opened.
alter table tidegate.authorization_codes
    add column browser bytea references tidegate.browser_sessions (id) on delete set null,
    add foreign key (client_id) references tidegate.clients (id) on delete cascade;

create index authorization_codes_browser on tidegate.authorization_codes (browser);

create index authorization_codes_client on tidegate.authorization_codes (client_id);

alter table tidegate.device_codes
    add column browser bytea references tidegate.browser_sessions (id) on delete cascade,
    add foreign key (client_id) references tidegate.clients (id) on delete cascade;

create index device_codes_browser on tidegate.device_codes (browser);

create index device_codes_client on tidegate.device_codes (client_id);
