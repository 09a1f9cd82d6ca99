-- Values for ID tokens: the nonce of the authorization request, and the time of the sign-in. A
-- statement ends with a semicolon at the end of a line.

alter table tidegate.authorization_codes
    add column nonce text;

alter table tidegate.sessions
    -- Null in sessions of older versions. Their sign-in counts as the time when they were opened.
    add column authenticated_at timestamptz;
