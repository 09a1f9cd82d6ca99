-- Accounts at identity providers with which users sign in. A statement ends with a semicolon at the
-- end of a line.

create table tidegate.identities (
    database text not null,
    issuer text not null,
    subject text not null,
    user_name text not null,
    primary key (database, issuer, subject),
    foreign key (database, user_name) references tidegate.users (database, name) on delete cascade
);

create index identities_user on tidegate.identities (database, user_name);
