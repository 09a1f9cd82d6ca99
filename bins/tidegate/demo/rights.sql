-- The privileges of the demonstration. Runs as the tenant's owner, after the rows were inserted.

alter table public.notes enable row level security;
alter table public.notes force row level security;
create policy own_notes on public.notes
    using (owner = current_user) with check (owner = current_user);

grant select on all tables in schema public to "demo/alice", "demo/guest";
grant insert, update, delete on public.playlists, public.playlist_tracks, public.notes
    to "demo/alice";

analyze public.artists, public.albums, public.tracks, public.venues, public.concerts,
    public.playlists, public.playlist_tracks, public.notes;
