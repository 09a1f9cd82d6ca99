# Stops PostgreSQL and removes its temporary folder when the process that started this script has
# ended without doing both. Standard input is a pipe from that process: it closes when the process
# ends, even if the process is killed.
# $1 the data folder   $2 the signal that stops PostgreSQL   $3 the folder to remove, or nothing
trap '' HUP INT
pid=
while read -r word value; do
    case $word in
        pid) pid=$value ;;
        release) exit 0 ;;
    esac
done

# Whether the PostgreSQL with the received process id still runs in the folder $1. A PostgreSQL that
# another process has started there since has another process id and is not stopped.
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
