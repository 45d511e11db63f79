package main

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/redistest"
)

// free has the databases of the shared server that no test uses. A test gets the one whose last use is longest ago.
var free = func() chan int {
	c := make(chan int, 15)
	for n := range cap(c) {
		c <- n + 1 // 0 is the database of namespaces with names of their own
	}
	return c
}()

// database returns an empty database of the shared server, which the test has for itself, and its URL. That costs a twentieth of a
// server of its own, which loads all functions of Curfew again. Functions, users, settings, counts of commands and channels belong to
// the whole server.
func database(t *testing.T) (rdb *redis.Client, url string) {
	t.Helper()
	n := await.Receive(t, free, "a test no longer uses a database")
	t.Cleanup(func() { free <- n })
	address := redistest.Shared(t).Addr
	rdb = redis.NewClient(&redis.Options{Addr: address, DB: n})
	t.Cleanup(func() { rdb.Close() })
	if err := rdb.FlushDB(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	return rdb, fmt.Sprintf("redis://%s/%d", address, n)
}
