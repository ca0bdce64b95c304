#!/bin/sh
# seed.sh: makes the site and leaves data.tar. It has the folder state, from which the servers start, and recording.json, the visit.
set -eu
. "$TARE_WORK/servers.sh"
chmod a+rx "$TARE_SCRATCH"
mkdir -p "$state/db" "$state/opcache" "$state/site"
cp "$TARE_WORK/index.php" "$state/site/"
cp "$TARE_WORK/comment.php" "$state/site/wp-comments-post.php"
mkdir "$state/site/pictures"
chown www-data "$state" "$state/db" "$state/opcache"

mariadb-install-db --defaults-file="$TARE_WORK/mariadb.cnf" --datadir="$state/db" --tmpdir="$state" --user=www-data \
	--skip-test-db --cross-bootstrap --auth-root-authentication-method=socket >"$state/install.log" 2>&1 ||
	fail "MariaDB cannot be set up: $(tail -n 1 "$state/install.log")"

sql() { mariadb --no-defaults --socket="$socket" --user=root "$@"; }

stop_database() {
	mariadb-admin --no-defaults --socket="$socket" --user=root shutdown
	wait "$database"
}

start_database
sql -e "CREATE DATABASE wordpress CHARACTER SET utf8mb4; CREATE USER wordpress@localhost IDENTIFIED BY 'wordpress';
	GRANT ALL ON wordpress.* TO wordpress@localhost"
php "$TARE_WORK/seed.php"

# It records the visit and makes it three times. Afterwards every page exists, WordPress has stored what it stores at the first requests, and PHP
# has written its compiled scripts.
start_web 127.0.0.1 8080 2 2 2 2
tries=600
until php "$TARE_WORK/ready.php" 127.0.0.1 8080 2>"$state/ready.log"; do
	kill -0 "$web" 2>/dev/null || fail "Apache ended: $(head -n 1 "$state/apache.log")"
	[ $((tries -= 1)) -gt 0 ] || fail "$(tail -n 1 "$state/ready.log")"
	sleep 0.1
done
php "$TARE_WORK/record.php" 127.0.0.1 8080 >"$TARE_SCRATCH/recording.json" || fail "the visit cannot be recorded"
for time in 1 2 3; do
	said=$(sh "$TARE_WORK/load.sh" 127.0.0.1 8080 1 13 none "$TARE_SCRATCH/recording.json")
	case $said in *'"errors":0,'*) ;; *) fail "the site does not answer as recorded: $said" ;; esac
done
kill "$web"
wait "$web" || true
# WordPress keeps some values for half an hour. Here it keeps them forever, so a guest's state does not depend on the data's age.
sql -e "DELETE FROM wordpress.wp_options WHERE option_name LIKE '\\_%transient\\_timeout\\_%';
	DELETE FROM wordpress.wp_comments WHERE comment_approved = '0'"
stop_database

rm -f "$state"/*.log "$state"/*.pid "$state/db/ibtmp1" "$state/db/ib_buffer_pool"
tar --sort=name -C "$TARE_SCRATCH" -cf "$TARE_SCRATCH/data.tar" state
rm -r "$state" "$TARE_SCRATCH/k6.log"
