package doctor

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/duration"
	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/operate"
)

// lookAtServers checks each master.
func (x *examination) lookAtServers(ctx context.Context) error {
	x.server.Each(func(name string, node *redis.Client) {
		if len(x.server.Masters()) > 1 {
			x.node = name
		}
		x.lookAtServer(ctx, node)
	})
	x.node = ""
	if !x.Quick {
		x.lookAtLibraries(ctx)
	}
	return ctx.Err()
}

func (x *examination) lookAtServer(ctx context.Context, node *redis.Client) {
	facts := map[string]string{}
	for _, section := range []string{"server", "replication", "memory", "persistence", "cluster"} {
		info, err := node.Info(ctx, section).Result()
		if engine.Denied(err) {
			x.denied("server", err)
			break
		}
		if err == nil {
			engine.ReadInfo(facts, info)
		}
	}
	x.lookAtVersion(facts)
	x.lookAtMemory(facts)
	if x.Quick {
		return
	}
	x.lookAtPersistence(facts)
	x.lookAtReplicas(facts)
	x.lookAtClock(ctx, node)
	x.lookAtSlowCalls(ctx, node)
	if _, cluster := x.rdb.(*redis.ClusterClient); cluster {
		x.lookAtCluster(ctx, node)
	}
}

// lookAtVersion reports the product and version of the server. operate.Connect refuses servers that are too old.
func (x *examination) lookAtVersion(facts map[string]string) {
	if engine.Embedded(facts) {
		x.report(Warn, "server", "the embedded server of `curfew dev`: one node that keeps nothing, has no users, and is slower than Redis", "use a real Redis to measure, and wherever tasks must not be lost")
		return
	}
	if facts["redis_version"] == "" {
		return
	}
	text := "Redis " + facts["redis_version"]
	for name, vendor := range map[string]string{"valkey_version": "Valkey", "dragonfly_version": "Dragonfly", "keydb_version": "KeyDB", "garnet_version": "Garnet"} {
		if v := facts[name]; v != "" {
			text = fmt.Sprintf("%s %s, which behaves like Redis %s", vendor, v, facts["redis_version"])
		}
	}
	if role := facts["role"]; role == "slave" {
		x.report(Fail, "server", text+", a replica", "connect to its master "+facts["master_host"]+":"+facts["master_port"])
		return
	}
	if facts["loading"] == "1" {
		x.report(Fail, "server", text+", which still loads its data", "wait until it has loaded them")
		return
	}
	x.report(OK, "server", text+", a master", "")
}

func number(facts map[string]string, name string) float64 {
	n, _ := strconv.ParseFloat(facts[name], 64)
	return n
}

func mib(bytes float64) string { return fmt.Sprintf("%.0f MiB", bytes/(1<<20)) }

func (x *examination) lookAtMemory(facts map[string]string) {
	limit := number(facts, "maxmemory")
	switch policy := facts["maxmemory_policy"]; {
	case policy == "":
	case policy == "noeviction":
		x.report(OK, "eviction", "maxmemory-policy is noeviction", "")
	case limit == 0:
		x.report(Warn, "eviction", "maxmemory-policy is "+policy+": Redis would evict tasks and deadlines if maxmemory were set", "run CONFIG SET maxmemory-policy noeviction")
	default:
		x.report(Fail, "eviction", "maxmemory-policy is "+policy+": a full Redis evicts tasks and deadlines", "run CONFIG SET maxmemory-policy noeviction")
	}
	used, system := number(facts, "used_memory"), number(facts, "total_system_memory")
	switch {
	case used == 0:
	case limit > 0:
		text := fmt.Sprintf("%s of %s (maxmemory) are used", mib(used), mib(limit))
		switch {
		case used > 0.95*limit:
			x.report(Fail, "memory", text+": new tasks are refused when it is full", "raise maxmemory, or remove what is not needed")
		case used > 0.8*limit:
			x.report(Warn, "memory", text, "raise maxmemory, or shorten the retention of tasks")
		default:
			x.report(OK, "memory", text, "")
		}
	case system > 0 && used > 0.6*system:
		x.report(Warn, "memory", fmt.Sprintf("%s of the %s of the machine are used, and maxmemory is not set", mib(used), mib(system)), "set maxmemory, so that Redis refuses tasks before the system kills it")
	default:
		x.report(OK, "memory", fmt.Sprintf("%s are used, and maxmemory is not set", mib(used)), "")
	}
}

func (x *examination) lookAtPersistence(facts map[string]string) {
	if facts["aof_enabled"] == "" {
		return
	}
	before := len(x.findings)
	if status := facts["aof_last_write_status"]; facts["aof_enabled"] == "1" && status != "ok" && status != "" {
		x.report(Fail, "persistence", "the last write to the append-only file failed", "look into the log of Redis: the disk may be full")
	}
	if status := facts["rdb_last_bgsave_status"]; status != "ok" && status != "" {
		x.report(Fail, "persistence", "the last snapshot failed, so Redis may refuse writes", "look into the log of Redis: the disk may be full")
	}
	if status := facts["aof_last_bgrewrite_status"]; status != "ok" && status != "" {
		x.report(Warn, "persistence", "the last rewrite of the append-only file failed, so it grows", "look into the log of Redis, and run BGREWRITEAOF")
	}
	if facts["aof_enabled"] == "0" {
		x.report(Warn, "persistence", "appendonly is no: a restart loses all changes since the last snapshot", "run CONFIG SET appendonly yes, and set it in the configuration file")
	}
	if len(x.findings) == before {
		x.report(OK, "persistence", "the append-only file is written", "")
	}
}

func (x *examination) lookAtReplicas(facts map[string]string) {
	if facts["connected_slaves"] == "" {
		return
	}
	n, late := int(number(facts, "connected_slaves")), 0
	for i := range n {
		fields := map[string]string{}
		for field := range strings.SplitSeq(facts[fmt.Sprint("slave", i)], ",") {
			name, value, _ := strings.Cut(field, "=")
			fields[name] = value
		}
		if fields["state"] != "online" || number(fields, "lag") > 10 {
			late++
		}
	}
	switch {
	case n == 0:
		x.report(OK, "replicas", "none: when this server is gone, nothing takes over", "")
	case late > 0:
		x.report(Warn, "replicas", fmt.Sprintf("%d of %d are not in step", late, n), "look into the logs of the replicas")
	default:
		x.report(OK, "replicas", fmt.Sprintf("%d, in step", n), "")
	}
}

// lookAtClock compares the clock of the server with the local one. Only instants that a program makes of its own clock depend on it.
func (x *examination) lookAtClock(ctx context.Context, node *redis.Client) {
	best, ahead := time.Hour, time.Duration(0)
	for range 3 {
		began := time.Now()
		now, err := node.Time(ctx).Result()
		took := time.Since(began)
		if err != nil {
			x.denied("clock", err)
			return
		}
		if took < best {
			best, ahead = took, now.Sub(began.Add(took/2))
		}
	}
	word := "ahead of"
	if ahead < 0 {
		word = "behind"
	}
	text := fmt.Sprintf("that of Redis is %v %s the local one, ± %v", duration.Duration(ahead.Abs().Round(time.Millisecond)), word, duration.Duration(max((best/2).Round(time.Millisecond), time.Millisecond)))
	if ahead.Abs() > time.Second+best {
		x.report(Warn, "clock", text, "run NTP on both: deadlines are kept by the clock of Redis, and programs that give instants use their own")
	} else {
		x.report(OK, "clock", text, "")
	}
	if best > 50*time.Millisecond {
		x.report(Warn, "network", fmt.Sprintf("a round trip takes %v", duration.Duration(best.Round(time.Millisecond))), "run programs near Redis")
	}
}

// lookAtSlowCalls looks for calls of Curfew in the slow log.
func (x *examination) lookAtSlowCalls(ctx context.Context, node *redis.Client) {
	entries, err := node.SlowLogGet(ctx, 128).Result()
	if err != nil {
		x.denied("slow calls", err)
		return
	}
	n, longest := 0, time.Duration(0)
	for _, entry := range entries {
		if len(entry.Args) == 0 || time.Since(entry.Time) > time.Hour {
			continue
		}
		switch strings.ToLower(entry.Args[0]) {
		case "fcall", "fcall_ro", "eval", "evalsha", "eval_ro", "evalsha_ro":
			n, longest = n+1, max(longest, entry.Duration)
		}
	}
	switch text := fmt.Sprintf("%s in the slow log of the last hour, the longest took %v", counted(int64(n), "function or script is", "functions or scripts are"), duration.Duration(longest.Round(time.Millisecond))); {
	case longest > 100*time.Millisecond:
		x.report(Warn, "slow calls", text, "see SLOWLOG GET: Redis does nothing else meanwhile; is the machine busy, or does it swap?")
	case n > 0:
		x.report(OK, "slow calls", text, "")
	default:
		x.report(OK, "slow calls", "none in the last hour", "")
	}
}

// defaultLease is the default of worker.Config.Lease.
const defaultLease = 15 * time.Second

func (x *examination) lookAtCluster(ctx context.Context, node *redis.Client) {
	settings, err := node.ConfigGet(ctx, "cluster-*").Result()
	if err != nil {
		x.denied("cluster", err)
		return
	}
	before := len(x.findings)
	ms, _ := strconv.Atoi(settings["cluster-node-timeout"])
	if timeout := time.Duration(ms) * time.Millisecond; 4*timeout > defaultLease {
		x.report(Warn, "cluster", fmt.Sprintf("cluster-node-timeout is %v, and the lease of a worker should be four times as long (its default is 15s): a failover looks like the death of all workers", duration.Duration(timeout)),
			"run CONFIG SET cluster-node-timeout 1000 on each node, or raise worker.Config.Lease")
	}
	if settings["cluster-require-full-coverage"] == "yes" {
		x.report(Warn, "cluster", "if one master fails, all partitions stop until its replica has taken over", "run CONFIG SET cluster-require-full-coverage no on each node")
	}
	if len(x.findings) == before {
		x.report(OK, "cluster", "its node timeout fits the leases", "")
	}
}

// lookAtLibraries checks the functions on each master.
func (x *examination) lookAtLibraries(ctx context.Context) {
	defer func() { x.node = "" }()
	for _, l := range x.server.Libraries(ctx) {
		if len(x.server.Masters()) > 1 {
			x.node = l.Node
		}
		if l.Err != nil {
			if !x.denied("functions", l.Err) {
				x.report(OK, "functions", "not checked: "+l.Err.Error(), "")
			}
			continue
		}
		x.lookAtFacade(l)
		if n := len(l.Unused()); n > 0 {
			x.report(OK, "functions", counted(int64(n), "library", "libraries")+" of programs in Go of other versions", "once none of them runs, `curfew functions prune` removes them")
		}
	}
}

func (x *examination) lookAtFacade(l operate.Libraries) {
	at := slices.IndexFunc(l.Has, func(library operate.Library) bool { return library.Name == "curfew" })
	if at < 0 {
		x.report(Warn, "functions", "the functions for programs in other languages are not loaded", "run `curfew functions load`")
		return
	}
	switch library := l.Has[at]; {
	case library.Kind == operate.Foreign:
		x.report(Warn, "functions", "another program has a library named curfew, so programs in other languages cannot call Curfew", "rename that library")
	case library.Mine:
		x.report(OK, "functions", fmt.Sprintf("build %d, that of this program", library.Build), "")
	default:
		x.report(Warn, "functions", fmt.Sprintf("build %d, of another version than this program", library.Build), "run `curfew functions load` with the newest version of curfew")
	}
}
