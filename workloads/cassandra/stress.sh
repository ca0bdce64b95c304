# stress.sh: starts cassandra-stress in the same way for seeding and measuring. bash sources it.

export LC_ALL=C.UTF-8 # the JVM takes its character set from it

# stress FOLDER [JVM FLAG…] -- ARGUMENT…: writes only to FOLDER. If TARE_REQUESTS names a file, Timer.java also writes the times of all operations
# there. One level of compilation and the simplest collector take the least CPU time, which on a small host is also the guest's.
stress() {
	local folder=$1 class_path= jar flags=()
	shift
	while [ "$1" != -- ]; do flags+=("$1") && shift; done
	shift
	while read -r jar; do class_path=$class_path:$TARE_WORK/$jar; done <"$TARE_WORK/stress.txt"
	if [ -n "${TARE_REQUESTS:-}" ]; then
		mkdir -p "$folder/org/apache/cassandra/stress/report"
		cp "$TARE_WORK/Timer.class" "$folder/org/apache/cassandra/stress/report/"
		class_path=:$folder$class_path
		flags+=(-Xshare:off) # the archive was made without our Timer
	fi
	cat >"$folder/logback.xml" <<'EOF'
<configuration scan="false">
  <appender name="STDERR" class="ch.qos.logback.core.ConsoleAppender">
    <target>System.err</target>
    <encoder><pattern>%level %logger{0}: %msg%n%nopex</pattern></encoder>
  </appender>
  <root level="ERROR"><appender-ref ref="STDERR"/></root>
</configuration>
EOF
	java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData -Xms512m -Xmx512m "${flags[@]}" -cp "${class_path#:}" \
		-Djava.io.tmpdir="$folder" -Dcassandra.storagedir="$folder" -Dlogback.configurationFile="file:$folder/logback.xml" \
		org.apache.cassandra.stress.Stress "$@"
}
