-- The generation of the key with which tidegate.user_id() and tidegate.claims() check claims in the
-- tenant's database.
alter table tidegate.tenants add column claims_generation integer not null default 1;
