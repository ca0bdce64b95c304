#!/bin/sh
# lock.sh: writes jars.txt, server.txt and stress.txt again, with Maven. It is for developers of this workload. A study only reads the three files.
#
#   jars.txt    all files from Maven Central: "sha256 group:artifact:version" in a line, with more fields for classifiers and archives
#   server.txt  the names of the files in the class path of Cassandra, the server
#   stress.txt  the names of the files in the class path of cassandra-stress, the load
set -eu
cd "$(dirname "$0")"
server=5.0.6      # the newest of 5.0 on Maven Central when this was written
stress=4.0-alpha2 # the last release whose tools are on Maven Central; it speaks to a 5.0 server
t=$(mktemp -d)
trap 'rm -rf "$t"' EXIT

cat >"$t/pom.xml" <<EOF
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>lock</groupId><artifactId>lock</artifactId><version>1</version><dependencies><dependency>
<groupId>org.apache.cassandra</groupId><artifactId>cassandra-all</artifactId><version>$server</version>
</dependency></dependencies></project>
EOF
maven() { mvn -q -B -f "$t/pom.xml" "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:$1" "$2" "$3" "$4" >&2; }

# Each line is "group:artifact:version:classifier:FILE". Maven's own lines are group:artifact:jar[:classifier]:version:scope:FILE.
# It keeps native code only for Linux, and none for TLS, which is not used.
maven list -DincludeScope=runtime -DoutputAbsoluteArtifactFilename=true -DoutputFile="$t/list"
sed -E 's/\x1b\[[0-9;]*m//g; s/ -- module .*//; s/^ +//' "$t/list" | awk -F: -v OFS=: '
	NF == 6 { print $1, $2, $4, "", $6 }
	NF == 7 && $4 ~ /^(linux-x86_64|linux-aarch_64|native)$/ && !/tcnative/ { print $1, $2, $5, $4, $7 }' >"$t/server"

# The release of stress has 60 jars. These are the ones from which a load takes classes (java -Xlog:class+load). HdrHistogram is
# the server's, because the release's 2.1.9 needs a class that Java 17 no longer has, and logs nothing.
for coordinates in \
	org.apache.cassandra:cassandra-all:$stress \
	com.datastax.cassandra:cassandra-driver-core:3.6.0:jar:shaded \
	org.apache.commons:commons-lang3:3.1 \
	org.apache.commons:commons-math3:3.2 \
	com.google.guava:guava:27.0-jre \
	com.carrotsearch:hppc:0.5.4 \
	com.fasterxml.jackson.core:jackson-annotations:2.9.5 \
	com.fasterxml.jackson.core:jackson-core:2.9.5 \
	com.fasterxml.jackson.core:jackson-databind:2.9.5 \
	org.hdrhistogram:HdrHistogram:2.1.12 \
	org.jctools:jctools-core:1.2.1 \
	ch.qos.logback:logback-classic:1.2.3 \
	ch.qos.logback:logback-core:1.2.3 \
	io.netty:netty-all:4.1.37.Final \
	org.slf4j:slf4j-api:1.7.25; do
	IFS=: read -r group artifact version packaging classifier <<EOF
$coordinates
EOF
	maven copy -Dartifact="$group:$artifact:$version:${packaging:-jar}${classifier:+:$classifier}" -DoutputDirectory="$t/jars" -Dmdep.useBaseVersion=true
	echo "$group:$artifact:$version:$classifier:$t/jars/$artifact-$version${classifier:+-$classifier}.jar"
done >"$t/stress"
maven copy -Dartifact="org.apache.cassandra:apache-cassandra:$stress:tar.gz:bin" -DoutputDirectory="$t" -Dmdep.useBaseVersion=true
member=apache-cassandra-$stress/tools/lib/stress.jar

names() { sed 's/.*\///' "$1" | LC_ALL=C sort; }
names "$t/server" >server.txt
{ names "$t/stress" && echo stress.jar; } >stress.txt
{
	cat "$t/server" "$t/stress" | LC_ALL=C sort -u -t: -k1,4 | while IFS=: read -r group artifact version classifier file; do
		echo "$(sha256sum <"$file" | cut -d' ' -f1) $group:$artifact:$version${classifier:+:jar:$classifier}"
	done
	echo "$(tar xzOf "$t"/*.tar.gz "$member" | sha256sum | cut -d' ' -f1) org.apache.cassandra:apache-cassandra:$stress:tar.gz:bin $member"
} >jars.txt
