-- Used at sign-up to find names that differ only in case.
create index users_name_fold on tidegate.users (database, pg_catalog.lower(name collate "C"));
