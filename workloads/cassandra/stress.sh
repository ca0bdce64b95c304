# stress.sh: how cassandra-stress is started, the same when it seeds and when it measures. Sourced by bash.

export LC_ALL=C.UTF-8 # the JVM takes its character set from it

# stress FOLDER [JVM FLAG…] -- ARGUMENT…: writes to FOLDER only. It is an instrument that is short of time: one level of compilation and
# the simplest collector take the least of the CPU, which is the guest's too on a small host.
stress() {
	local folder=$1 class_path= jar flags=()
	shift
	while [ "$1" != -- ]; do flags+=("$1") && shift; done
	shift
	while read -r jar; do class_path=$class_path:$TARE_WORK/$jar; done <"$TARE_WORK/stress.txt"
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
