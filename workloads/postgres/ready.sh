#!/bin/sh
# ready.sh ADDRESS PORT: true when PostgreSQL answers a query.
export PATH="/usr/lib/postgresql/17/bin:$PATH" PGCONNECT_TIMEOUT=2
exec psql --no-psqlrc --quiet --tuples-only --host="$1" --port="$2" --username=bench --command="SELECT 1" bench
