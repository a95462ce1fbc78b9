#!/usr/bin/env bash
# Finds or starts the PostgreSQL and the MariaDB (or MySQL) server that the tests need.
#
#   scripts/databases.sh run -- command args…   run a command with both servers at hand
#   scripts/databases.sh urls                   print what `run` would use, start nothing
#
# `run` sets OUTBOX_TEST_POSTGRES_URL and OUTBOX_TEST_MYSQL_URL for the command, stops
# whatever it started when the command ends, and exits with the command's exit code.
# `run -- bash` gives a shell in which `cargo test` can be run many times.
#
# For each database, the first of these that works:
#
#   1. the URL that is already in the environment, as it is;
#   2. a server on 127.0.0.1:5432 or 127.0.0.1:3306 that accepts a usual login and lets it
#      create databases;
#   3. an installed server, started from a temporary directory on a free port;
#   4. a container, by docker or podman;
#   5. as root on Debian and its relatives: the packages, then as 3.
#
# A database that cannot be had is an error: tests are never skipped for want of one.
#
# Environment:
#
#   OUTBOX_TEST_POSTGRES_URL     postgres://user:password@host:port/database
#   OUTBOX_TEST_MYSQL_URL        mysql://user:password@host:port/database
#                                (each test makes a database of its own, so the login must
#                                be allowed to create them)
#   OUTBOX_TEST_IGNORE_RUNNING   1: leave out step 2
#   OUTBOX_TEST_POSTGRES_IMAGE   the image of step 4; postgres:17 unless told
#   OUTBOX_TEST_MYSQL_IMAGE      the image of step 4; mariadb:11.4 unless told

set -euo pipefail

postgres_image=${OUTBOX_TEST_POSTGRES_IMAGE:-postgres:17}
mysql_image=${OUTBOX_TEST_MYSQL_IMAGE:-mariadb:11.4}

# The servers started here live as long as one test run, so nothing in them has to survive a
# power cut, and no commit needs to wait for the disk: that saves the tests this time.
# Transactions, locks and isolation are the same with and without it. Tests that crash a
# process crash a client, never the server. Tests run in parallel, each with connections of
# its own: hence their number.
postgres_settings=(
  -c max_connections=300 -c fsync=off -c synchronous_commit=off -c full_page_writes=off
)
mysql_settings=(
  --max-connections=300 --innodb-flush-log-at-trx-commit=0 --skip-log-bin
  --character-set-server=utf8mb4
)

dry=          # `urls`: find out, start nothing
temporary=    # the directory of the private servers
password=     # of the servers started here
pids=         # private servers
engine=       # docker or podman
containers=
updated=      # apt-get update was run
running=      # the command was started, as a "process" or as a "group" of its own

say() { printf 'databases: %s\n' "$*" >&2; }

# ---------------------------------------------------------------------------- stopping

cleanup() {
  set +e
  trap '' INT TERM HUP
  local pid container tries
  # SIGQUIT stops both servers without waiting for their clients.
  for pid in $pids; do kill -QUIT "$pid" 2>/dev/null; done
  for container in $containers; do "$engine" rm -f -v "$container" >/dev/null 2>&1; done
  for pid in $pids; do
    for ((tries = 0; tries < 150; tries++)); do
      kill -0 "$pid" 2>/dev/null || continue 2
      sleep 0.1
    done
    kill -KILL "$pid" 2>/dev/null
  done
  if [ -n "$temporary" ]; then rm -rf "$temporary"; fi
}

# interrupted NAME NUMBER: passes the signal on, lets the command end, and exits.
interrupted() {
  set +u # the signal may come before there is a $!
  case $running in
    process) kill -"$1" -- "$!" ;;
    group) kill -"$1" -- "-$!" ;;
  esac 2>/dev/null || :
  # Not by `wait`: inside a trap that interrupted another wait, it can wait for ever.
  while [ -n "$running" ] && kill -0 "$!" 2>/dev/null; do sleep 0.05; done
  exit $((128 + $2))
}

# ------------------------------------------------------------------------- small tools

# Servers are in directories that only root has on its PATH.
tool() { PATH=$PATH:/usr/sbin:/usr/local/sbin:/usr/libexec command -v "$1"; }

bounded() { # SECONDS COMMAND…
  local seconds=$1
  shift
  if command -v timeout >/dev/null; then timeout "$seconds" "$@"; else "$@"; fi
}

answers() { # HOST PORT
  # shellcheck disable=SC2016 # the inner bash expands them
  bounded 5 bash -c 'exec 3<>"/dev/tcp/$0/$1"' "$1" "$2" 2>/dev/null
}

free_port() {
  port=$((20000 + RANDOM % 12000))
  while answers 127.0.0.1 "$port"; do port=$((20000 + RANDOM % 12000)); done
}

make_password() {
  [ -n "$password" ] || password=$(od -An -N12 -tx1 /dev/urandom | tr -d ' \n')
}

# ------------------------------------------------------- 1. the URL in the environment

given_postgres() { given OUTBOX_TEST_POSTGRES_URL 5432; }
given_mysql() { given OUTBOX_TEST_MYSQL_URL 3306; }

given() { # VARIABLE DEFAULT_PORT
  url=${!1:-}
  [ -n "$url" ] || return 1
  from="the server of $1"
  # Lists of hosts, sockets and the like are left to the driver.
  local host=${url#*://} port=$2
  host=${host%%[/?]*}
  host=${host##*@}
  if [[ $host =~ ^([A-Za-z0-9._-]+)(:([0-9]+))?$ ]]; then
    host=${BASH_REMATCH[1]}
    port=${BASH_REMATCH[3]:-$port}
    if ! answers "$host" "$port"; then
      say "nothing answers at $host:$port, where $1 points: start that server, or unset the variable to have one started."
      exit 1
    fi
  fi
}

# ---------------------------------------------------------------- 2. a running server

running_postgres() {
  [ -z "${OUTBOX_TEST_IGNORE_RUNNING:-}" ] && answers 127.0.0.1 5432 || return 1
  local login
  if ! tool psql >/dev/null; then
    say "not using the server at 127.0.0.1:5432: there is no psql to try a login with (set OUTBOX_TEST_POSTGRES_URL to use it)"
    return 1
  fi
  for login in postgres postgres:postgres "$(id -un)"; do
    url=postgres://$login@127.0.0.1:5432/postgres
    from="the server running at 127.0.0.1:5432, as ${login%%:*}"
    if postgres_usable; then return 0; fi
  done
  say "not using the server at 127.0.0.1:5432: no usual login may create databases there (set OUTBOX_TEST_POSTGRES_URL to use it)"
  return 1
}

postgres_usable() {
  local name=outbox_probe_$$
  psql_ "CREATE DATABASE $name" && psql_ "DROP DATABASE $name"
}

# The URL alone decides, as it will for the tests: no password file, no PG* variables.
psql_() {
  env -u PGPASSWORD -u PGSERVICE -u PGOPTIONS -u PGHOSTADDR -u PGSSLMODE \
    PGPASSFILE=/dev/null PGCONNECT_TIMEOUT=5 \
    "$(tool psql)" -XAtqw -c "$1" "$url" >/dev/null 2>&1 </dev/null
}

running_mysql() {
  [ -z "${OUTBOX_TEST_IGNORE_RUNNING:-}" ] && answers 127.0.0.1 3306 || return 1
  local login
  if ! tool mariadb >/dev/null && ! tool mysql >/dev/null; then
    say "not using the server at 127.0.0.1:3306: there is no mariadb or mysql client to try a login with (set OUTBOX_TEST_MYSQL_URL to use it)"
    return 1
  fi
  for login in root root:root "$(id -un)"; do
    url=mysql://$login@127.0.0.1:3306/mysql
    from="the server running at 127.0.0.1:3306, as ${login%%:*}"
    if mysql_usable "$login"; then return 0; fi
  done
  say "not using the server at 127.0.0.1:3306: no usual login may create databases there, or it is older than MariaDB 10.6 and MySQL 8.0 (set OUTBOX_TEST_MYSQL_URL to use it)"
  return 1
}

# SKIP LOCKED: without it the server is too old for a relay.
mysql_usable() { # USER[:PASSWORD]
  local name=outbox_probe_$$ works=1
  mysql_ "$1" "CREATE DATABASE $name" || return 1
  mysql_ "$1" "CREATE TABLE $name.t (id INT PRIMARY KEY); SELECT id FROM $name.t FOR UPDATE SKIP LOCKED" || works=
  mysql_ "$1" "DROP DATABASE $name" && [ -n "$works" ]
}

mysql_() { # USER[:PASSWORD] SQL
  local secret=
  case $1 in *:*) secret=${1#*:} ;; esac
  MYSQL_PWD=$secret "$(tool mariadb || tool mysql)" --no-defaults --protocol=tcp \
    --host=127.0.0.1 --port=3306 --user="${1%%:*}" --connect-timeout=5 \
    --loose-skip-ssl-verify-server-cert --execute="$2" >/dev/null 2>&1 </dev/null
}

# ------------------------------------------------------------- 3. an installed server

installed_postgres() {
  local bin attempt data log
  bin=$(postgres_bin) || return 1
  from="a private server of $bin"
  if [ -n "$dry" ]; then return 0; fi
  private_directory postgres || return 1
  data=$temporary/postgres/data log=$temporary/postgres/log
  # A password keeps the other users of the machine out.
  printf '%s\n' "$password" >"$temporary/postgres/password"
  if ! (cd / && "${as[@]}" "$bin/initdb" --pgdata="$data" --username=postgres \
    --auth=scram-sha-256 --pwfile="$temporary/postgres/password" \
    --encoding=UTF8 --locale=C --no-sync) >"$log" 2>&1 </dev/null; then
    failed "$bin/initdb" "$log"
    return 1
  fi
  for attempt in 1 2 3; do # somebody else may take the port first
    free_port
    launch "$log" "$bin/postgres" -D "$data" -c port="$port" -c listen_addresses=127.0.0.1 \
      -c unix_socket_directories= "${postgres_settings[@]}"
    if ready '^ready' "$data/postmaster.pid"; then
      url=postgres://postgres:$password@127.0.0.1:$port/postgres
      return 0
    fi
  done
  failed "$bin/postgres ($attempt attempts)" "$log"
  return 1
}

postgres_bin() { # the newest
  local bin
  for bin in "$(dirname "$(command -v initdb)")" $(
    printf '%s\n' /usr/lib/postgresql/*/bin /usr/pgsql-*/bin \
      /opt/homebrew/opt/postgresql*/bin /usr/local/opt/postgresql*/bin | sort -rV
  ); do
    if [ -x "$bin/initdb" ] && [ -x "$bin/postgres" ]; then
      printf '%s\n' "$bin"
      return 0
    fi
  done
  return 1
}

installed_mysql() {
  local server install attempt data log
  server=$(tool mariadbd || tool mysqld) || return 1
  from="a private server of $server"
  case $("$server" --no-defaults --version 2>/dev/null) in
    *MariaDB*) install=$(tool mariadb-install-db || tool mysql_install_db) || return 1 ;;
    *) install= ;; # MySQL makes its own data directory
  esac
  if [ -n "$dry" ]; then return 0; fi
  private_directory mysql || return 1
  data=$temporary/mysql/data log=$temporary/mysql/log
  if ! (
    cd /
    if [ -n "$install" ]; then
      "${as[@]}" "$install" --no-defaults --datadir="$data" --tmpdir="$temporary/mysql" \
        --skip-test-db --skip-name-resolve
    else
      "${as[@]}" "$server" --no-defaults --initialize-insecure --datadir="$data" \
        --tmpdir="$temporary/mysql"
    fi
  ) >"$log" 2>&1 </dev/null; then
    failed "${install:-$server --initialize-insecure}" "$log"
    return 1
  fi
  # A password keeps the other users of the machine out.
  cat >"$temporary/mysql/init.sql" <<SQL
CREATE USER IF NOT EXISTS 'outbox'@'127.0.0.1' IDENTIFIED BY '$password';
GRANT ALL PRIVILEGES ON *.* TO 'outbox'@'127.0.0.1' WITH GRANT OPTION;
ALTER USER 'root'@'localhost' IDENTIFIED BY '$password';
SQL
  for attempt in 1 2 3; do # somebody else may take the port first
    free_port
    # The socket is relative to the data directory: the path of a socket must be short.
    launch "$log" "$server" --no-defaults --datadir="$data" --tmpdir="$temporary/mysql" \
      --bind-address=127.0.0.1 --port="$port" --socket=socket --pid-file="$data/pid" \
      --loose-mysqlx=OFF --skip-name-resolve --init-file="$temporary/mysql/init.sql" \
      "${mysql_settings[@]}"
    if ready ': ready for connections' "$log"; then
      url=mysql://outbox:$password@127.0.0.1:$port/mysql
      return 0
    fi
  done
  failed "$server ($attempt attempts)" "$log"
  return 1
}

# private_directory NAME: a directory for a server, and in `as` what it is to be run with.
# The servers refuse to run as root: then they run as the user of their package, or as nobody.
private_directory() {
  local user parent=${TMPDIR:-/tmp}
  make_password
  as=(env)
  if [ -z "$temporary" ]; then
    # Not a directory that only root can enter, nor one that mariadb-install-db trips over.
    if [ "$(id -u)" = 0 ] || [[ $parent = *[[:space:]]* ]]; then parent=/tmp; fi
    temporary=$(mktemp -d "$parent/outbox-test.XXXXXX") || return 1
    chmod 711 "$temporary"
  fi
  rm -rf "${temporary:?}/$1"
  mkdir -m 700 "$temporary/$1"
  if [ "$(id -u)" = 0 ]; then
    user=$1
    if ! id "$user" >/dev/null 2>&1; then user=nobody; fi
    as=(setpriv "--reuid=$(id -u "$user")" "--regid=$(id -g "$user")" --clear-groups)
    if ! "${as[@]}" true 2>/dev/null; then
      say "cannot start a private server as root: setpriv (of util-linux) is needed to run it as $user"
      return 1
    fi
    chown "$user" "$temporary/$1"
  fi
}

# launch LOG COMMAND…: starts a server in a process group of its own, so that Ctrl-C at the
# terminal does not stop it before the tests have ended.
launch() {
  local log=$1
  shift
  : >"$log"
  set -m
  (cd / && exec "${as[@]}" "$@") >"$log" 2>&1 </dev/null &
  pid=$!
  pids="$pids $pid"
  set +m
  disown "$pid"
}

ready() { # PATTERN FILE
  local tries
  for ((tries = 0; tries < 600; tries++)); do
    if grep -q "$1" "$2" 2>/dev/null; then return 0; fi
    kill -0 "$pid" 2>/dev/null || return 1
    sleep 0.1
  done
  return 1
}

failed() { # WHAT LOG
  say "$1 failed; the end of what it printed:"
  { grep -iE 'error|fatal|denied' "$2" || cat "$2"; } | tail -n 5 | sed 's/^/    /' >&2
}

# -------------------------------------------------------------------- 4. a container

container_postgres() {
  find_engine || return 1
  from="a container of $postgres_image, by $engine"
  if [ -n "$dry" ]; then return 0; fi
  make_password
  POSTGRES_PASSWORD=$password contain postgres 5432 \
    -e POSTGRES_PASSWORD "$postgres_image" "${postgres_settings[@]}" || return 1
  # Over TCP: the server that prepares the data directory listens on its socket only.
  contained pg_isready -q -h 127.0.0.1 -U postgres || return 1
  url=postgres://postgres:$password@127.0.0.1:$port/postgres
}

container_mysql() {
  find_engine || return 1
  from="a container of $mysql_image, by $engine"
  if [ -n "$dry" ]; then return 0; fi
  make_password
  MYSQL_ROOT_PASSWORD=$password contain mysql 3306 \
    -e MYSQL_ROOT_PASSWORD "$mysql_image" "${mysql_settings[@]}" || return 1
  # shellcheck disable=SC2016 # the shell in the container expands them
  contained sh -c 'MYSQL_PWD=$MYSQL_ROOT_PASSWORD exec "$(command -v mariadb || command -v mysql)" \
    --protocol=tcp --host=127.0.0.1 --user=root --execute="SELECT 1"' || return 1
  url=mysql://root:$password@127.0.0.1:$port/mysql
}

find_engine() {
  [ -z "$engine" ] || return 0
  for engine in docker podman; do
    if command -v "$engine" >/dev/null && bounded 20 "$engine" ps >/dev/null 2>&1; then
      return 0
    fi
  done
  engine=
  return 1
}

contain() { # NAME PORT ARGUMENTS…
  local published=$2
  container=outbox-test-$1-$$
  containers="$containers $container"
  shift 2
  say "starting $from"
  "$engine" run --detach --name "$container" --publish "127.0.0.1::$published" "$@" \
    >/dev/null </dev/null || return 1
  port=$("$engine" port "$container" "$published/tcp" | sed -n 1p) || return 1
  port=${port##*:}
}

contained() { # COMMAND…: waits until it succeeds in the container
  local tries
  for ((tries = 0; tries < 240; tries++)); do
    if "$engine" exec "$container" "$@" >/dev/null 2>&1 </dev/null; then
      if answers 127.0.0.1 "$port"; then return 0; fi
      say "$from runs, but its port $port cannot be reached at 127.0.0.1"
      return 1
    fi
    [ "$("$engine" inspect --format '{{.State.Running}}' "$container" 2>/dev/null)" = true ] || break
    sleep 0.5
  done
  say "$from did not get ready; the end of what it printed:"
  "$engine" logs --tail 5 "$container" 2>&1 | sed 's/^/    /' >&2
  return 1
}

# ----------------------------------------------------------------- 5. Debian packages

packages_postgres() {
  ! postgres_bin >/dev/null && packages postgresql || return 1
  if [ -z "$dry" ]; then installed_postgres; fi
}

packages_mysql() {
  ! tool mariadbd >/dev/null && packages mariadb-server || return 1
  if [ -z "$dry" ]; then installed_mysql; fi
}

packages() { # PACKAGE
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
  from="a private server, once apt-get has installed $1"
  if [ -n "$dry" ]; then return 0; fi
  say "installing $1"
  {
    if [ -z "$updated" ]; then apt-get update || return 1; fi
    updated=1
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$1" || return 1
  } >&2 </dev/null
}

# ------------------------------------------------------------------------------- main

# find_server postgres|mysql: sets `url` (empty if the server would be started) and `from`.
find_server() {
  local option
  for option in given running installed container packages; do
    url='' from=''
    if "${option}_$1"; then return 0; fi
  done
  return 1
}

# Both, so that one run tells all that is missing.
find_servers() {
  local missing=
  if find_server postgres; then
    postgres_url=$url postgres_from=$from
    [ -n "$dry" ] || say "PostgreSQL: $from"
  else
    missing=1
    say "no PostgreSQL for the tests: install PostgreSQL or Docker, or set OUTBOX_TEST_POSTGRES_URL=postgres://user:password@host:port/database with a login that may create databases."
  fi
  if find_server mysql; then
    mysql_url=$url mysql_from=$from
    [ -n "$dry" ] || say "MariaDB/MySQL: $from"
  else
    missing=1
    say "no MariaDB or MySQL for the tests: install MariaDB or Docker, or set OUTBOX_TEST_MYSQL_URL=mysql://user:password@host:port/database with a login that may create databases."
  fi
  [ -z "$missing" ] || exit 1
}

usage() {
  say "usage: scripts/databases.sh run -- command args… | scripts/databases.sh urls"
  exit 2
}

print_url() { # VARIABLE URL FROM
  if [ -n "$2" ]; then
    printf "%s='%s' # %s\n" "$@"
  else
    printf '# %s: to be started: %s\n' "$1" "$3"
  fi
}

trap cleanup EXIT
trap 'interrupted INT 2' INT
trap 'interrupted TERM 15' TERM
trap 'interrupted HUP 1' HUP

case ${1:-} in
  urls)
    [ $# = 1 ] || usage
    dry=1
    find_servers
    print_url OUTBOX_TEST_POSTGRES_URL "$postgres_url" "$postgres_from"
    print_url OUTBOX_TEST_MYSQL_URL "$mysql_url" "$mysql_from"
    ;;
  run)
    if [ "${2:-}" != -- ] || [ $# = 2 ]; then usage; fi
    shift 2
    find_servers
    export OUTBOX_TEST_POSTGRES_URL="$postgres_url" OUTBOX_TEST_MYSQL_URL="$mysql_url"
    # In the background, because bash answers no signal while a foreground command runs.
    # At a terminal the command stays in its process group and gets Ctrl-C from it; elsewhere
    # it gets a group of its own, through which a signal reaches its children too.
    if [ -t 0 ]; then running=process; else running=group; set -m; fi
    (trap - INT TERM HUP && exec "$@") <&0 &
    set +m
    code=0
    wait "$!" || code=$?
    running=
    exit "$code"
    ;;
  *) usage ;;
esac
