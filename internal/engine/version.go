package engine

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/lua"
	"github.com/curfew-dev/curfew/refusal"
)

// OtherVersion returns [refusal.ErrNewer] or [refusal.ErrOlder] if a library does not work with a version of records,
// and [refusal.ErrRemoving] if the namespace is being removed. Behind a plus, a version has what else a program must know.
func OtherVersion(version string, mine lua.Versions) error {
	version, more, _ := strings.Cut(version, "+")
	number, err := strconv.Atoi(version)
	kind := refusal.ErrNewer
	switch {
	case err != nil:
		return refusal.ErrRemoving
	case more != "":
		return fmt.Errorf("%w: its records have %s, which this program does not know", kind, refusal.Clip(more))
	case mine.Includes(number):
		return nil
	case number < mine.Oldest:
		kind = refusal.ErrOlder
	}
	return fmt.Errorf("%w: its records have version %d, and this program works with %s", kind, number, mine)
}

// CheckVersion checks the version of a partition for readers that make no call. A partition that is gone has none, and
// has nothing to read.
func (e *Engine) CheckVersion(ctx context.Context, partition int) error {
	return e.checkVersion(ctx, partition, e.rdb.HGet(ctx, e.Root(partition), "version"))
}

// CheckVersions is like CheckVersion, for all partitions.
func (e *Engine) CheckVersions(ctx context.Context) error {
	versions := make([]*redis.StringCmd, e.partitions)
	e.Pipelined(ctx, func(pipe redis.Pipeliner, p int) { versions[p] = pipe.HGet(ctx, e.Root(p), "version") })
	for p, reply := range versions {
		if err := e.checkVersion(ctx, p, reply); err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) checkVersion(ctx context.Context, partition int, reply *redis.StringCmd) error {
	version, err := reply.Result()
	if errors.Is(err, redis.Nil) {
		return nil
	}
	if err != nil {
		return e.Unread(ctx, partition, err)
	}
	return OtherVersion(version, e.library.Versions())
}
