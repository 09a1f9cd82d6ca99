-- Codes of built-in clients, which have no row. A code is deleted with its client by the statements
-- that delete clients, and the issuer accepts no code of a client that is gone.
-- A statement ends with a semicolon at the end of a line.

alter table tidegate.authorization_codes
    drop constraint authorization_codes_client_id_fkey;

alter table tidegate.device_codes
    drop constraint device_codes_client_id_fkey;

-- Whether the tenant's owner may act as its users.
alter table tidegate.tenants
    add column impersonation boolean not null default true;
