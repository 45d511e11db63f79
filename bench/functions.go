package bench

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/lua"
)

// bare writes a hash and an entry of a sorted set, which is the least that a queue with deadlines could do.
var bare = redis.NewScript(`
local at = redis.call("TIME")[1] + ARGV[4]
redis.call("HSET", KEYS[1] .. ":" .. ARGV[1], "kind", ARGV[2], "payload", ARGV[3], "deadline_at", at)
return redis.call("ZADD", KEYS[1], at, ARGV[1])`)

// page is the payload of each task.
const page = `{"page":"index"}`

// listed is how many tasks a call of curfew_enqueue_many has. list is its argument.
const listed = 100

var list = "[" + strings.TrimSuffix(strings.Repeat(`{"kind":"render","payload":`+page+`,"timeout":"1h","max_retries":3},`, listed), ",") + "]"

// Functions measures how many tasks a second programs in other languages can enqueue and work off, with n
// tasks each: curfew_enqueue; curfew_enqueue_many; curfew_fetch and curfew_settle of one task. A script that writes a
// hash and an entry of a sorted set is measured beside them. The client is go-redis, with 1 connection and with 16,
// each of which sends its next call when the last one has returned.
//
// Functions also measures the cost of the functions on a server: the time of FUNCTION LOAD, and the memory of Lua.
func Functions(ctx context.Context, rdb *redis.Client, n int) (Report, error) {
	r := Report{Bench: "functions"}
	if err := loading(ctx, rdb, &r); err != nil {
		return r, err
	}
	for _, connections := range []int{1, 16} {
		f, err := openFunctions(ctx, rdb, connections)
		if err != nil {
			return r, err
		}
		err = f.measure(ctx, &r, n)
		f.rdb.Close()
		if err != nil {
			return r, err
		}
	}
	return r, nil
}

// loading measures the load of the functions into a server that has none.
func loading(ctx context.Context, rdb *redis.Client, r *Report) error {
	facade, err := lua.LoadFacade(nil)
	if err != nil {
		return err
	}
	if err := rdb.FunctionFlush(ctx).Err(); err != nil {
		return err
	}
	start := time.Now()
	if err := rdb.FunctionLoad(ctx, facade.Text()).Err(); err != nil {
		return err
	}
	r.add("FUNCTION LOAD", time.Since(start).Seconds()*1000, "ms")
	info, err := rdb.Info(ctx, "memory").Result()
	if err != nil {
		return err
	}
	bytes, err := strconv.ParseFloat(infoFields(info)["used_memory_vm_functions"], 64)
	r.add("used_memory_vm_functions", bytes/1024, "KiB")
	return err
}

// functions is a client of the functions, with a number of connections.
type functions struct {
	rdb     *redis.Client
	name    string      // of the connections
	workers chan string // those that do nothing; each makes one call at a time
}

// openFunctions empties the server, opens a namespace, and connects.
func openFunctions(ctx context.Context, rdb *redis.Client, connections int) (*functions, error) {
	if _, err := open(ctx, rdb, 1); err != nil {
		return nil, err
	}
	if err := bare.Load(ctx, rdb).Err(); err != nil {
		return nil, err
	}
	options := *rdb.Options()
	options.PoolSize, options.MinIdleConns = connections, connections
	f := &functions{redis.NewClient(&options), fmt.Sprint(connections, " connections"), make(chan string, connections)}
	if connections == 1 {
		f.name = "1 connection"
	}
	for i := range connections {
		f.workers <- fmt.Sprint("bench-", i)
	}
	return f, nil
}

// enqueueByFunction enqueues a task as programs in other languages do.
func enqueueByFunction(ctx context.Context, rdb redis.UniversalClient) error {
	return rdb.FCall(ctx, "curfew_enqueue", []string{"bench:{0}"}, "render", "payload", page, "timeout", "1h", "max_retries", 3).Err()
}

func (f *functions) call(ctx context.Context, function string, args ...any) *redis.Cmd {
	return f.rdb.FCall(ctx, "curfew_"+function, []string{"bench:{0}"}, args...)
}

// measure adds how many tasks a second each call handles.
func (f *functions) measure(ctx context.Context, r *Report, n int) error {
	for _, c := range []struct {
		name string
		per  int // tasks a call
		call func(i int) error
	}{
		{"curfew_enqueue", 1, func(int) error { return enqueueByFunction(ctx, f.rdb) }},
		{"HSET and ZADD", 1, func(i int) error { return f.write(ctx, i) }},
		{fmt.Sprint("curfew_enqueue_many of ", listed), listed, func(int) error { return f.call(ctx, "enqueue_many", list).Err() }},
		{"curfew_fetch and curfew_settle", 1, func(int) error { return f.work(ctx) }},
	} {
		calls, start := max(n/c.per, 1), time.Now()
		if err := fromGoroutines(calls, cap(f.workers), c.call); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		r.add(c.name+", "+f.name, float64(calls*c.per)/time.Since(start).Seconds(), "tasks/s")
	}
	return nil
}

func (f *functions) write(ctx context.Context, i int) error {
	return bare.EvalSha(ctx, f.rdb, []string{"bare"}, i, "render", page, 3600).Err()
}

// work claims one task and completes it.
func (f *functions) work(ctx context.Context) error {
	worker := <-f.workers
	defer func() { f.workers <- worker }()
	reply, err := f.call(ctx, "fetch", worker, "lease", "1h").Slice()
	if err != nil {
		return err
	}
	claims, _ := reply[5].([]any)
	if err := enough(len(claims), 1, nil); err != nil {
		return err
	}
	claim := claims[0].([]any)
	return f.call(ctx, "settle", worker, claim[1], claim[3], "result", "").Err()
}
