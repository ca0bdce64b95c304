#!/bin/bash
# ready.sh ADDRESS PORT: true if Cassandra answers a query for a seeded row. It uses no JVM, because it runs again and again.
set -u
[ $# = 3 ] || exec timeout 60 /bin/bash "$0" "$1" "$2" within
exec 2>/dev/null
. "$TARE_WORK/cql.sh"
cql_open "$1" "$2" && cql_query 'SELECT "C0" FROM keyspace1.standard1 LIMIT 1' || exit 1
# One row of a column of type blob (3), with a value of 34 bytes.
case $answer in *00030000000100000022*) exit 0 ;; esac
exit 1
