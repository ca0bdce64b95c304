# server.sh: the server's set-up, which is the same for seeding and measuring. bash sources it.

export LC_ALL=C.UTF-8 # the JVM takes its character set from it

fail() { echo "cassandra: $*" >&2; exit 1; }

# settle ADDRESS PORT CORES MEMORY SYNC MEMTABLE SEES: checks its arguments, and sets heap (MiB). The JVM counts CORES if it SEES the instance.
settle() {
	address=$1 port=$2 cores=$3 memory=$4 sync=$5 memtable=$6 sees=$7
	# Cassandra's own cassandra-env.sh uses max(min(1/2 memory, 1024 MiB), min(1/4 memory, 8192 MiB)). It reads the memory
	# from /proc, which shows the host's memory in a container. A container of 8 GB on a host of 32 GB or more would get a heap that fills it,
	# and be killed. Therefore every platform uses the instance's memory here, as an operator would set it.
	local half=$((memory / 2)) quarter=$((memory / 4))
	[ "$half" -le 1024 ] || half=1024
	[ "$quarter" -le 8192 ] || quarter=8192
	heap=$((half > quarter ? half : quarter))
	# In addition to the heap, it takes 300 to 400 MiB for code, threads and buffers.
	[ "$memory" -ge 1024 ] || fail "an instance with $memory MiB of memory is too small: must be at least 1024"
	free_port "$port"
	free_port "$storage_port"
}

# The port between nodes. There is only one node, which listens for others on loopback.
storage_port=7000

free_port() { # PORT
	if awk -v want="$(printf %04X "$1")" '$4 == "0A" { split($2, at, ":"); if (at[2] == want) found = 1 } END { exit !found }' \
		/proc/net/tcp /proc/net/tcp6 2>/dev/null; then
		fail "port $1 is in use: stop what listens there"
	fi
}

# configure: writes {scratch}/conf and sets jvm, the JVM's flags.
configure() {
	local s=$TARE_SCRATCH broadcast= class_path=$TARE_WORK jar settings=
	mkdir -p "$s/conf" "$s/tmp"
	case $sync in # as in cassandra.yaml
	periodic) settings="commitlog_sync_period: 10000ms" ;;
	group) settings="commitlog_sync_group_window: 1000ms" ;;
	esac
	[ "$memtable" = 0 ] || settings="$settings
memtable_heap_space: ${memtable}MiB"
	[ "$address" != 0.0.0.0 ] || broadcast="broadcast_rpc_address: 127.0.0.1"
	# Other settings have Cassandra's defaults, which its own cassandra.yaml mostly repeats.
	cat >"$s/conf/cassandra.yaml" <<EOF
cluster_name: tare
num_tokens: 16
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
endpoint_snitch: SimpleSnitch
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters: [{seeds: "127.0.0.1:$storage_port"}]
listen_address: 127.0.0.1
storage_port: $storage_port
rpc_address: $address
$broadcast
native_transport_port: $port
auto_bootstrap: false
data_file_directories: [$s/data]
commitlog_directory: $s/commitlog
hints_directory: $s/hints
saved_caches_directory: $s/caches
cdc_raw_directory: $s/cdc
commitlog_sync: $sync
$settings
commitlog_segment_size: 32MiB
concurrent_reads: 32
concurrent_writes: 32
memtable_allocation_type: heap_buffers
EOF
	cat >"$s/conf/logback.xml" <<'EOF'
<configuration scan="false">
  <appender name="STDERR" class="ch.qos.logback.core.ConsoleAppender">
    <target>System.err</target>
    <encoder><pattern>%level %logger{0}: %msg %replace(%ex{short}){'\s+', ' '}%nopex%n</pattern></encoder>
  </appender>
  <!-- The load's question for compactions would be the last that the server said. -->
  <logger name="org.apache.cassandra.cql3.statements.SelectStatement" level="ERROR"/>
  <root level="WARN"><appender-ref ref="STDERR"/></root>
</configuration>
EOF
	while read -r jar; do class_path=$class_path:$TARE_WORK/$jar; done <"$TARE_WORK/server.txt"
	class_path=${class_path#*:}
	jvm=(
		-cp "$class_path"
		-Xms${heap}m -Xmx${heap}m
		# These are Cassandra's own flags for Java 17. With G1, cassandra-env.sh does not set the size of the new generation.
		-ea -da:net.openhft... -Xss256k -XX:+UseThreadPriorities -XX:+AlwaysPreTouch
		-XX:+UseG1GC -XX:+ParallelRefProcEnabled -XX:MaxTenuringThreshold=1 -XX:G1HeapRegionSize=16m
		-XX:G1RSetUpdatingPauseTimePercent=5 -XX:MaxGCPauseMillis=300 -XX:InitiatingHeapOccupancyPercent=70
		-Djava.net.preferIPv4Stack=true -Djdk.attach.allowAttachSelf=true
		-Dio.netty.tryReflectionSetAccessible=true -Dio.netty.allocator.useCacheForAllThreads=true
		-Dio.netty.allocator.maxOrder=11
		-XX:+ExitOnOutOfMemoryError
		# It writes nothing outside {scratch}.
		-XX:-UsePerfData -XX:ErrorFile="$s/hs_err.log"
		-Djava.io.tmpdir="$s/tmp" -Djna.tmpdir="$s/tmp" -Dio.netty.native.workdir="$s/tmp"
		-Dcassandra.storagedir="$s" -Dcassandra.config="file://$s/conf/cassandra.yaml"
		-Dlogback.configurationFile="file:$s/conf/logback.xml"
		-Dcassandra-foreground=yes
		# A single node does not wait for others. JMX is off, because it has no port.
		-Dcassandra.ring_delay_ms=0 -Dcassandra.skip_wait_for_gossip_to_settle=0
	)
	# The JVM and Cassandra size their pools by the cores that they see, which differ between quota, pinning, bare metal and VM.
	[ "$sees" = host ] || jvm+=(-XX:ActiveProcessorCount="$cores")
	local opened
	for opened in java.base/{java.io,java.lang,java.lang.module,java.lang.reflect,java.nio,java.util,java.util.concurrent} \
		java.base/java.util.concurrent.atomic \
		java.base/{jdk.internal.loader,jdk.internal.ref,jdk.internal.reflect,jdk.internal.math,jdk.internal.module} \
		java.base/{jdk.internal.util.jar,sun.nio.ch} jdk.management/com.sun.management.internal; do
		jvm+=(--add-opens="$opened=ALL-UNNAMED")
	done
	for opened in java.base/{jdk.internal.misc,java.lang.ref,sun.nio.ch} java.management.rmi/com.sun.jmx.remote.internal.rmi \
		java.rmi/{sun.rmi.registry,sun.rmi.server} java.sql/java.sql jdk.unsupported/sun.misc jdk.attach/sun.tools.attach; do
		jvm+=(--add-exports="$opened=ALL-UNNAMED")
	done
	export MALLOC_ARENA_MAX=4 # as in cassandra-env.sh
}
