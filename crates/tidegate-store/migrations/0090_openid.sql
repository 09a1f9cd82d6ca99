-- What ID tokens need: the nonce of the authorization request, and when the user signed in.
-- A statement ends with a semicolon at the end of a line.

alter table tidegate.authorization_codes
    add column nonce text;

alter table tidegate.sessions
    -- Null in sessions of older versions, which are taken as opened at sign-in.
    add column authenticated_at timestamptz;
