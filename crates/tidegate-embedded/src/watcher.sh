# Outlives the process that owns a cluster and clears up after it, however that process ended:
# its end of our standard input closes with it.
# $1 the data folder   $2 the signal that stops PostgreSQL   $3 the folder to remove, or nothing
trap '' HUP INT
pid=
while read -r word value; do
    case $word in
        pid) pid=$value ;;
        release) exit 0 ;;
    esac
done

# A later start may run another PostgreSQL in the same folder: that one is not ours to stop.
running() {
    first=
    { read -r first <"$1/postmaster.pid"; } 2>/dev/null
    [ -n "$pid" ] && [ "$first" = "$pid" ]
}

if running "$1"; then kill -s "$2" "$pid"; fi
left=300
while running "$1" && [ "$left" -gt 0 ]; do
    sleep 0.1
    left=$((left - 1))
done
if running "$1"; then kill -s KILL "$pid"; fi
if [ -n "$3" ]; then rm -rf -- "$3" || { sleep 1 && rm -rf -- "$3"; }; fi
